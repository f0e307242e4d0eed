// ArrayItems: the dtype and shape of the items of tensor arrays, as far as a plan knows them.
#pragma once

#include <utility>
#include <vector>

#include "executor/plan/plan_draft.h"

namespace heddle {

// All items of an array have one dtype and shape, unless an operator writes another: one item
// without contents represents them. Nothing is known of items until an operator writes some. Arrays
// from outside of a run have items already and are not covered.
class ArrayItems {
 public:
  explicit ArrayItems(PlanDraft& draft) : d_(draft), plan_(*draft.plan) {}

  void Seed();
  // Grows the tables for slots added since; these are no arrays.
  void Fit();
  bool IsArray(uint32_t s) const { return !arrays_.empty() && arrays_[s]; }
  const TensorArray& Of(uint32_t s) const { return d_.frame[s]->array(); }

  void Note(uint32_t s, DType dtype, const Shape& shape);
  // Notes that an operator writes items of unknown shape, or of several shapes.
  void NoteVarying(uint32_t s);

  // Whether the operator writes an array that begins as a copy of one with varying items.
  bool TakesVarying(const Instruction& in) const;
  // Notes that the arrays which the operator writes have the items of those that it reads,
  // including items that become known later.
  void NoteTaken(const Instruction& in);
  // Applies these notes once all operators have been visited: an array that a loop carries gets its
  // items after the operators that take it.
  void Spread();

 private:
  bool Varies(uint32_t s) const { return d_.shared.varies[plan_.slots[s].var]; }

  PlanDraft& d_;
  Plan& plan_;
  std::vector<bool> arrays_;  // per slot; empty: none is
  std::vector<std::pair<uint32_t, uint32_t>> taken_;
};

}  // namespace heddle
