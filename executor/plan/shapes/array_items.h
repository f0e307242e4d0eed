// The dtype and shape of tensor arrays' items, as far as a plan knows them.
#pragma once

#include <utility>
#include <vector>

#include "executor/plan/plan_draft.h"

namespace heddle {

// All items of an array have one dtype and shape, as long as no operator writes another: then one
// item without contents stands for them. Nothing is known of items until an operator writes some.
// Arrays that come from outside of a run have items already, and are none of these.
class ArrayItems {
 public:
  explicit ArrayItems(PlanDraft& draft) : d_(draft), plan_(*draft.plan) {}

  void Seed();
  // Slots that were added since are no arrays.
  void Fit();
  bool IsArray(uint32_t s) const { return !arrays_.empty() && arrays_[s]; }
  const TensorArray& Of(uint32_t s) const { return d_.frame[s]->array(); }

  void Note(uint32_t s, DType dtype, const Shape& shape);
  // An operator writes items of which the plan does not know the shape, or of several shapes.
  void NoteVarying(uint32_t s);

  // The operator writes an array that begins as another one, whose items vary.
  bool TakesVarying(const Instruction& in) const;
  // The arrays that the operator writes have the items of those that it reads, also of such as the
  // plan learns of later.
  void NoteTaken(const Instruction& in);
  // Applies that, once all operators have been looked at: an array that a loop carries gets items
  // behind the operators that take it.
  void Spread();

 private:
  bool Varies(uint32_t s) const { return d_.shared.varies[plan_.slots[s].var]; }

  PlanDraft& d_;
  Plan& plan_;
  std::vector<bool> arrays_;  // per slot; empty: none is
  std::vector<std::pair<uint32_t, uint32_t>> taken_;
};

}  // namespace heddle
