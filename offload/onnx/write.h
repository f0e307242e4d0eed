// Groups of operators as ONNX models, for engines that read those.
//
// What is written is right or nothing: an operator, or a form of it, that opset 17 has no exact
// words for leaves its group unwritten. NaN and the order of roundings are not part of that: ONNX
// does not say what Relu, Max and Min make of NaN, and its readers differ.
//
// Ownership: refers to the program and its parameters. Threads: one at a time.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/programs/ir.h"
#include "heddle/status.h"
#include "heddle/tensor.h"
#include "offload/onnx/known.h"
#include "offload/onnx/model.h"

namespace heddle::offload {

// A program of one block. What is declared of its feeds holds; what is declared of other variables
// is not believed.
class OnnxWriter {
 public:
  using Parameters = std::vector<std::pair<ir::VarId, Tensor>>;  // contiguous

  OnnxWriter(const ir::Program& program, const Parameters& parameters)
      : program_(program), parameters_(parameters) {}

  // A ModelProto of opset 17 with the parameters inside. Inputs and outputs have the names of their
  // variables, in the order of feeds and fetches; open dimensions have no name. kUnimplemented:
  // which operator has no words in ONNX, and why; or the model is larger than 2 GiB.
  Result<std::string> Write();
  // The same in two steps, of which the first one copies no weights: `types` and `outline` are then
  // known. kUnimplemented: as above, where sizes are told by the second one.
  Status Prepare();
  Result<std::string> Bytes() const;
  // The same of operators first .. last - 1, with what is known of their operands behind the
  // operators before them, and without outputs that ONNX does not make: statistics and shapes that
  // nobody may read.
  Result<std::string> WriteRange(size_t first, size_t last, const std::vector<ir::VarId>& inputs,
                                 const std::vector<ir::VarId>& outputs);
  // What tells apart the models of all ranges, where parameters are equal and have equal numbers:
  // of each operator by itself its nodes, or why it has none.
  std::string OutlineOfRanges();
  // Element types of the inputs and outputs of what was written or prepared last.
  const std::vector<std::pair<ir::VarId, DType>>& types() const { return types_; }
  // What tells models of the whole program apart, where parameters are equal and have equal
  // numbers: much less than the model.
  const std::string& outline() const { return outline_; }

 private:
  struct Part;
  to_onnx::KnownFacts Declared() const;
  Status PreparePart(const Part& part);
  void Walk();
  // Puts what is known of the operands of operator `at` before it runs.
  void SetBefore(size_t at, to_onnx::KnownFacts* facts) const;
  // Of parameters, by address.
  std::unordered_map<const void*, uint32_t> Numbers() const;

  const ir::Program& program_;
  const Parameters& parameters_;
  // Of each operator what is known of the variables in its slots, as they come.
  std::vector<std::vector<to_onnx::Facts>> before_;
  std::vector<std::pair<ir::VarId, DType>> types_;
  std::optional<to_onnx::ModelBuilder> model_;  // that was prepared last
  std::string outline_;
};

}  // namespace heddle::offload
