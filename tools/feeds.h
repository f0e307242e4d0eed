// Values for a program's inputs, from files or at random, and the options that name them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heddle/executor.h"
#include "heddle/program.h"
#include "tools/command_line.h"

namespace heddle::tools {

struct FeedOptions {
  std::vector<std::string> files;   // NAME=FILE
  uint64_t unpack_limit = 0;        // bytes of an archive's arrays; 0: as ReadNpzArrays has it
  std::string npz;                  // members are named as the inputs (tools/values/sequences.h)
  bool random = false;              // inputs without a value get random ones
  std::vector<std::string> shapes;  // NAME=2,3: of a random input
  std::vector<std::string> lods;    // NAME=0,2,5: sequence offsets of an input

  bool empty() const { return files.empty() && npz.empty() && !random; }
};
void AddFeedOptions(Command app, FeedOptions* options);

// An option that takes one NAME=VALUE each time it is given.
void AddPairs(Command app, const std::string& name, std::vector<std::string>* pairs,
              const std::string& type, const std::string& help,
              std::function<std::string(const std::string&)> check);
// Why `text` is not of the form NAME=0,2,5|0,1,2,3,4,5, or NAME=2,3,4; empty when it is.
std::string CheckLod(const std::string& text);
std::string CheckShape(const std::string& text);
// The name and the shape of such a text. Precondition: CheckShape(text) is empty.
std::pair<std::string, Shape> SplitShape(const std::string& text);

// The program's inputs: those of its feed operators, or else what has to be fed without any.
std::vector<TensorInfo> InputsOf(const Program& program);

// The names that the pairs NAME=FILE feed, which decide the program where a file holds several.
// Where one may contain `=`, the inputs of the program without them tell how far it goes; through a
// pipe a program comes once, and names go as far as the first `=`.
Result<std::vector<std::string>> FeedNames(const std::string& model, const std::string& signature,
                                           const std::vector<std::string>& pairs);

// Inputs with the types that the program's file gives them.
struct ProgramInputs {
  std::vector<TensorInfo> infos;
  std::vector<std::string> types;  // one each, as heddle::InputTypes says
};
ProgramInputs TypedInputsOf(const Program& program);

// One value for every input, in the order of `inputs`. Random values depend on the input's name and
// shape only: the same in every run.
Result<std::vector<Feed>> MakeFeeds(const ProgramInputs& inputs, const FeedOptions& options);

}  // namespace heddle::tools
