// The dtypes and shapes of an operator's outputs for operands that are partly known.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "core/shape_context.h"
#include "passes/facts/declarations.h"

namespace heddle::passes {

// Calls shape functions. These need a size for each dimension, so each is called with several sizes
// in place of the open ones, and what the answers have in common is kept. Memory is reused from
// call to call.
class FactInference {
 public:
  // An operand: its fact, and perhaps contents that determine a shape. nullptr: absent. An array
  // has no elements yet.
  struct Operand {
    const Fact* fact = nullptr;
    const Tensor* contents = nullptr;
    bool is_array = false;
  };
  // kAlsoEmpty: the answers also hold for open dimensions of size 0, as a list has that grows from
  // nothing. Passes do not need that, since their facts are compared with the feeds.
  enum Sizes { kNotEmpty, kAlsoEmpty };
  explicit FactInference(Sizes sizes = kNotEmpty) : sizes_(sizes) {}

  // `operands`: one entry per operand, slot by slot. `outputs`: likewise; an entry is empty if the
  // shape function does not set it. False: the shape function defers, or rejects such operands.
  bool Infer(const ir::Op& op, const std::vector<Operand>& operands,
             std::vector<std::optional<Fact>>* outputs);
  // Whether the shape function accepted only one size for open dimensions, so that only ranks and
  // dtypes are known.
  bool told_ranks_alone() const { return told_ranks_alone_; }

 private:
  void Bind(const ir::Op& op, const std::vector<Operand>& operands);
  // Calls the shape function with `size` in place of open dimensions. `beside`: an open dimension
  // that meets a known one of another operand, counted from the last, gets that size.
  bool Ask(const std::vector<Operand>& operands, int64_t size, bool beside = false);
  // Reduces the outputs to what the latest answer has in common with those before.
  void Take(bool first, std::vector<std::optional<Fact>>* outputs) const;

  const Sizes sizes_;
  BoundOp bound_;
  std::deque<Value> values_;
  std::vector<Value*> frame_;
  std::vector<ShapeContext::OutMeta> answer_;
  bool told_ranks_alone_ = false;
};

}  // namespace heddle::passes
