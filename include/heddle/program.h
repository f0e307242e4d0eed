// Program: a checked static program, and Model: a program with its parameters.
//
// A Program is immutable and cheap to copy (copies share it); every thread may use it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/scope.h"
#include "heddle/status.h"

namespace heddle {

namespace ir {
class Program;
}

// An input or output of a program as the file declares it.
struct TensorInfo {
  std::string name;
  DType dtype = DType::kUnknown;
  Shape shape;  // -1 where the file leaves a dimension open
};

class Program {
 public:
  Program() = default;  // empty
  explicit Program(std::shared_ptr<const ir::Program> impl) : impl_(std::move(impl)) {}

  // Reads a `.pdmodel` file, or `__model__`. Everything wrong with it is reported at once.
  static Result<Program> Load(const std::string& path);
  // The same from memory. `name` appears in messages.
  static Result<Program> Parse(std::string_view bytes, const std::string& name = "program");

  std::vector<TensorInfo> inputs() const;   // feed operators in the order of `col`
  std::vector<TensorInfo> outputs() const;  // fetch operators in the order of `col`
  // The feeds of a program without feed operators, as training programs are: tensors of block 0
  // that are no parameters and that operators read before any writes them, in the order of their
  // first readers.
  std::vector<TensorInfo> unwritten() const;
  // The outputs of a program without fetch operators: its loss, if it has one; else the tensors
  // that operators write and none reads, in the order of their writers.
  std::vector<TensorInfo> results() const;
  // The tensors of block 0 that are no parameters and that its operators write.
  std::vector<TensorInfo> written() const;
  std::vector<TensorInfo> persistables() const;  // block 0, sorted bytewise by name: the order of
                                                 // a combined parameter file
  // The variable of block 0 with this name; nothing when there is none.
  std::optional<TensorInfo> variable(std::string_view name) const;
  struct OpCount {
    std::string type;
    int count;
  };
  std::vector<OpCount> op_counts() const;  // all blocks, most frequent first
  // The variable that the program's backward pass begins at; empty when it has none.
  std::string loss() const;
  int num_blocks() const;
  int num_ops() const;  // all blocks
  int64_t version() const;
  // The bytes of a file of this program: of the one it was read from, with what passes changed.
  // `format`: "paddle" for a `.pdmodel`, "pir" for an `inference.json`; empty: as it was read. In a
  // `.pdmodel` heddle's own operators are written like any other; Paddle does not know them.
  // kUnimplemented: the format cannot say some of the operators, which are all listed.
  Result<std::string> Serialize(const std::string& format = "") const;
  // XXH64 of the serialized program.
  uint64_t hash() const;
  const ir::Program& ir() const { return *impl_; }
  const std::shared_ptr<const ir::Program>& impl() const { return impl_; }
  explicit operator bool() const { return impl_ != nullptr; }

 private:
  std::shared_ptr<const ir::Program> impl_;
};

struct Model {
  Program program;
  std::shared_ptr<Scope> scope;  // holds the parameters
};

// Loads a program and its parameters, large ones when they are needed
// (ParameterReading::kWhenNeeded). `path`: a `.pdmodel` file, or a directory that holds
// `model.pdmodel`, `inference.pdmodel`, another single `.pdmodel`, or `__model__`. `params`: a
// combined parameter file, a directory with one file per parameter, or a pickled `.pdparams`; empty
// = the `.pdiparams` beside the program, or the program's directory. A program without parameters
// needs no such file.
Result<Model> LoadModel(const std::string& path, const std::string& params = "");

// Names of all operators heddle has kernels for, sorted.
std::vector<std::string> SupportedOps();
// One operator's definition as text (slots, attributes with defaults, dtypes, source file);
// NOT_FOUND otherwise. Threads: any, of this and the next one.
Result<std::string> DescribeOp(const std::string& type);
// The file of heddle's source tree that defines the operator, as in "kernels/math/abs.cc"; empty
// for operators that an embedding program added. NOT_FOUND where there is no such operator.
Result<std::string> SourceOfOp(const std::string& type);

}  // namespace heddle
