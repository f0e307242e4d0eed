// What is known of a program's variables before it runs: element types and shapes, by the
// operators' own rules. What a file declares of intermediate results is not believed.
//
// Threads: one at a time.
#pragma once

#include <deque>
#include <vector>

#include "core/programs/ir.h"
#include "core/shape_context.h"
#include "heddle/tensor.h"

namespace heddle::offload::to_onnx {

struct Facts {
  DType dtype = DType::kUnknown;
  Shape shape = Shape::Unknown();  // -1: open
  const Tensor* value = nullptr;   // contents of a parameter
};

class KnownFacts {
 public:
  explicit KnownFacts(size_t vars) : facts_(vars) {}
  Facts& of(ir::VarId var) { return facts_[var]; }
  const Facts& of(ir::VarId var) const { return facts_[var]; }

  // What the operator gives its outputs, given what is known of its inputs: parallel to all
  // variables of its output slots, one slot after another.
  std::vector<Facts> Infer(const ir::Op& op) const;

 private:
  bool Try(const ir::Op& op, int64_t size, std::vector<ShapeContext::OutMeta>* outs) const;

  std::vector<Facts> facts_;
};

}  // namespace heddle::offload::to_onnx
