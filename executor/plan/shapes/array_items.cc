#include "executor/plan/shapes/array_items.h"

#include <algorithm>

namespace heddle {

void ArrayItems::Seed() {
  for (uint32_t s = 0; s < plan_.slots.size(); ++s) {
    const Slot& slot = plan_.slots[s];
    if (slot.var == ir::kNoVar || slot.versioned || slot.storage != Storage::kPool ||
        d_.program.vars[slot.var].kind != ir::VarKind::kArray)
      continue;
    if (arrays_.empty()) arrays_.assign(plan_.slots.size(), false);
    arrays_[s] = true;
    d_.frame[s] = &d_.contents.emplace_back(TensorArray());
  }
}

void ArrayItems::Fit() {
  if (!arrays_.empty()) arrays_.resize(plan_.slots.size());
}

void ArrayItems::Note(uint32_t s, DType dtype, const Shape& shape) {
  if (Varies(s)) return;
  if (Of(s).empty())
    d_.frame[s] = &d_.contents.emplace_back(TensorArray{plan_.metas.Of(dtype, shape)->tensor()});
  else if (const Tensor& item = Of(s)[0]; item.dtype() != dtype || !(item.shape() == shape))
    NoteVarying(s);
}

void ArrayItems::NoteVarying(uint32_t s) {
  d_.shared.varies[plan_.slots[s].var] = true;
  d_.shared.contradicted = d_.shared.contradicted || !Of(s).empty();
}

bool ArrayItems::TakesVarying(const Instruction& in) const {
  if (arrays_.empty()) return false;
  const auto is_array = [&](uint32_t s) { return s != kNoSlot && arrays_[s]; };
  return std::any_of(in.op.out.begin(), in.op.out.end(), is_array) &&
         std::any_of(in.op.in.begin(), in.op.in.end(),
                     [&](uint32_t s) { return is_array(s) && Varies(s); });
}

void ArrayItems::NoteTaken(const Instruction& in) {
  if (arrays_.empty()) return;
  for (uint32_t from : in.op.in)
    for (uint32_t to : in.op.out)
      if (from != kNoSlot && to != kNoSlot && arrays_[from] && arrays_[to] && from != to)
        taken_.emplace_back(from, to);
}

void ArrayItems::Spread() {
  // The loop ends, since each array gets items once and becomes varying once.
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto& [from, to] : taken_) {
      const bool had = !Of(to).empty(), varied = Varies(to);
      if (Varies(from)) {
        if (!varied) NoteVarying(to);
      } else if (!Of(from).empty()) {
        Note(to, Of(from)[0].dtype(), Of(from)[0].shape());
      }
      changed = changed || had == Of(to).empty() || varied != Varies(to);
    }
  }
}

}  // namespace heddle
