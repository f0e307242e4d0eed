// Random programs over a few variables of six floats that are written again and again, in place,
// through views and inside nested blocks, with a plain interpreter that says what must come out.
#pragma once

#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/support/program_builder.h"

namespace heddle::testing {

class RandomProgram {
 public:
  struct Options {
    int ops = 30;
    bool control_flow = true;
    bool parameters = true;  // that the program writes
  };
  RandomProgram(uint32_t seed, const Options& options);

  const std::string& bytes() const { return bytes_; }
  const std::vector<std::string>& fetches() const { return fetches_; }
  std::vector<heddle::Feed> Feeds() const;
  std::shared_ptr<Scope> NewScope() const;
  const std::vector<std::string>& parameters() const { return parameters_; }

  struct Var {
    Shape shape;
    std::vector<float> values;
  };
  using State = std::map<std::string, Var>;
  // Feeds and parameters as they are at first.
  const State& start() const { return start_; }
  // Executes the program once over `state`, which keeps the parameters from run to run.
  // False when a value grew beyond what float32 holds exactly enough to compare.
  bool Execute(State* state) const;

 private:
  struct Step {
    enum Kind {
      kScale,
      kRelu,
      kAdd,
      kSub,
      kMax,
      kAssign,
      kReshape,
      kTranspose,
      kScatter,
      kJoin,
      kIf,
      kWhile
    };
    Kind kind;
    std::string x, y, out;
    float scale = 1, bias = 0;
    Shape shape;
    bool local = false;  // `out` is a new variable of the block
    int flag = 0, trips = 0, id = 0;
    int parts[2] = {
        0, 0};  // kJoin: of scaled x, y, x and scaled x in one, the two that are subtracted
    std::vector<Step> body;
  };

  int Pick(int n) { return static_cast<int>(rng_() % static_cast<unsigned>(n)); }
  const std::string& Any(const std::vector<std::string>& names) {
    return names[static_cast<size_t>(Pick(static_cast<int>(names.size())))];
  }
  std::string WithShape(const Shape& shape, bool writable_only);
  bool IsParameter(const std::string& name) const;
  void Generate(std::vector<Step>* steps, int count, int depth);
  bool MakeStep(Step* step, int depth);
  void Emit(ProgramBuilder& b, const std::vector<Step>& steps) const;
  void EmitBlock(ProgramBuilder& b, const Step& step) const;
  void EmitJoin(ProgramBuilder& b, const Step& step) const;
  bool Run(const std::vector<Step>& steps, State* state) const;
  // Declared in a block, with its shape; gone behind the block.
  static bool IsLocal(const std::string& name) { return name[0] == 'l'; }
  static void Names(const std::vector<Step>& steps, std::vector<std::string>* read,
                    std::vector<std::string>* written);

  std::mt19937 rng_;
  Options options_;
  std::map<std::string, Shape> shapes_;  // of what exists so far, while generating
  std::vector<std::string> parameters_, fetches_;
  std::vector<Step> steps_;
  State start_;
  bool flags_[2] = {false, false};
  int blocks_ = 0, locals_ = 0;
  std::string bytes_;
};

}  // namespace heddle::testing
