// The dtype and shape of what an operator makes, for operands that are known in part.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "core/op_context.h"
#include "passes/facts/declarations.h"

namespace heddle::passes {

// Asks shape functions. They need a size for each dimension, so each is asked with several sizes in
// place of open ones, and what the answers have in common is kept. Memory is used again from call
// to call.
class FactInference {
 public:
  // An operand: its fact, or also contents that decide a shape. Null: left out. An array has no
  // items as yet.
  struct Operand {
    const Fact* fact = nullptr;
    const Tensor* contents = nullptr;
    bool is_array = false;
  };
  // kAlsoEmpty: what is said holds for open dimensions without elements, too, as a list has that
  // grows from nothing. Passes are not that careful: what they go by is compared with what is fed.
  enum Sizes { kNotEmpty, kAlsoEmpty };
  explicit FactInference(Sizes sizes = kNotEmpty) : sizes_(sizes) {}

  // One entry for each operand and each output, slot by slot; an output is empty where the shape
  // function does not say it. False: it says nothing about such operands, or refuses them.
  bool Infer(const ir::Op& op, const std::vector<Operand>& operands,
             std::vector<std::optional<Fact>>* outputs);
  // The shape function took one size alone for open dimensions: it told ranks and dtypes.
  bool told_ranks_alone() const { return told_ranks_alone_; }

 private:
  void Bind(const ir::Op& op, const std::vector<Operand>& operands);
  // Answers with `size` in place of open dimensions. `beside`: one that stands beside a known
  // dimension of another operand, counted from the last, is as large as that.
  bool Ask(const std::vector<Operand>& operands, int64_t size, bool beside = false);
  // The outputs are what the latest answer has in common with those before.
  void Take(bool first, std::vector<std::optional<Fact>>* outputs) const;

  const Sizes sizes_;
  BoundOp bound_;
  std::deque<Value> values_;
  std::vector<Value*> frame_;
  std::vector<ShapeContext::OutMeta> answer_;
  bool told_ranks_alone_ = false;
};

}  // namespace heddle::passes
