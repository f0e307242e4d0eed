// Program: a checked static program. Model: a program with its parameters.
//
// A Program is immutable and cheap to copy (copies share it). Threads: any.
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

// An input or an output of a program, as the file declares it.
struct TensorInfo {
  std::string name;
  DType dtype = DType::kUnknown;
  Shape shape;  // -1: an open dimension
};

class Program {
 public:
  Program() = default;  // empty
  explicit Program(std::shared_ptr<const ir::Program> impl) : impl_(std::move(impl)) {}

  // Reads a program file of any format that heddle has: a `.pdmodel`, `__model__`,
  // `inference.json`, `.onnx`, or a TensorFlow graph (docs/formats.md). One error lists all
  // mistakes.
  static Result<Program> Load(const std::string& path);
  // The same for bytes in memory. `name` is for error messages.
  static Result<Program> Parse(std::string_view bytes, const std::string& name = "program");

  std::vector<TensorInfo> inputs() const;   // in the order of the feed operators' `col`
  std::vector<TensorInfo> outputs() const;  // in the order of the fetch operators' `col`
  // The feeds of a program without feed operators, such as training programs: tensors of block 0
  // that are not parameters and that are read before they are written, in the order of their first
  // readers.
  std::vector<TensorInfo> unwritten() const;
  // The outputs of a program without fetch operators: its loss if it has one, else the tensors that
  // are written and not read, in the order of their writers.
  std::vector<TensorInfo> results() const;
  // The tensors of block 0 that are not parameters and that its operators write.
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
  // The variable from which the program's backward pass begins; empty: it has none.
  std::string loss() const;
  int num_blocks() const;
  int num_ops() const;  // all blocks
  int64_t version() const;
  // The bytes of a file of this program: of its own file, with the changes of passes. `format`:
  // "paddle" for a `.pdmodel`, "pir" for an `inference.json`; empty: that of its file. A `.pdmodel`
  // may contain heddle's own operators, which Paddle does not know. kUnimplemented: the format
  // cannot express some operators, all of which are listed.
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

// Loads a program and its parameters, large ones at their first use
// (ParameterReading::kWhenNeeded). `path`: a program file as for Program::Load, or a directory with
// one under a usual name (`model.pdmodel`, `inference.pdmodel`, `__model__`, `inference.json`,
// `model.onnx`, `saved_model.pb`) or a single other one. `params`: a combined parameter file, a
// directory with one file per parameter, or a pickled `.pdparams`; empty = the `.pdiparams` beside
// the program, the program's directory, or the weights that the program file holds or names. A
// program without parameters needs no such file.
Result<Model> LoadModel(const std::string& path, const std::string& params = "");

// The types of all operators that heddle has kernels for, sorted.
std::vector<std::string> SupportedOps();
// An operator's definition as text: slots, attributes with defaults, dtypes, source file.
// kNotFound: there is no such operator. Threads: any.
Result<std::string> DescribeOp(const std::string& type);
// The file of heddle's source tree that defines the operator, such as "kernels/math/abs.cc"; empty:
// the program that uses heddle added it. kNotFound: there is no such operator. Threads: any.
Result<std::string> SourceOfOp(const std::string& type);

}  // namespace heddle
