// Gradients that nobody asked for: an absent operand counts as zeros.
#include <algorithm>

#include "tests/ops/compare.h"
#include "tests/ops/crash_note.h"
#include "tests/ops/examine.h"

namespace heddle::testing {

bool IsOptionalGradient(const SlotDef& slot) {
  if ((slot.flags & kOptional) == 0) return false;
  return slot.name.find("grad") != std::string::npos || slot.name.find("GRAD") != std::string::npos;
}

Problems CheckAbsentGradients(Lab& lab, const Example& example, const OpDef& def) {
  Problems problems;
  if (example.is_program() || example.random) return problems;
  // Where another operand holds nothing, too, nothing may tell the results' shape.
  if (std::any_of(example.inputs.begin(), example.inputs.end(),
                  [](const ExampleInput& in) { return in.nothing; }))
    return problems;
  for (const SlotDef& slot : def.inputs()) {
    const auto is_slot = [&](const ExampleInput& in) { return in.slot == slot.name; };
    const bool rewritten =
        std::any_of(example.outputs.begin(), example.outputs.end(),
                    [&](const ExampleOutput& out) { return out.same_as == slot.name; });
    if (!IsOptionalGradient(slot) || rewritten ||
        std::none_of(example.inputs.begin(), example.inputs.end(), is_slot))
      continue;
    Example zeros = example, absent = example;
    bool dense = true;
    for (ExampleInput& in : zeros.inputs) {
      if (!is_slot(in)) continue;
      dense = dense && in.value.is_tensor();
      if (!dense) break;
      Tensor zero = Tensor::Zeros(in.value.tensor().dtype(), in.value.tensor().shape());
      zero.set_lod(in.value.tensor().lod());
      in.value = Value(zero);
    }
    if (!dense) continue;
    std::erase_if(absent.inputs, is_slot);
    const std::string variant = "without " + slot.name;
    CrashNote note(example, variant);
    const auto want = RunExample(lab.Reference(), zeros), got = RunExample(lab.Reference(), absent);
    if (!got.ok() || !want.ok()) {
      problems.push_back({variant, (got.ok() ? want : got).status().ToString()});
      continue;
    }
    for (size_t i = 0; i < example.outputs.size(); ++i) {
      const Value &x = got->outputs[i], &y = want->outputs[i];
      if (!x.is_tensor() || !y.is_tensor() || !x.tensor().initialized()) continue;
      const std::string wrong = Near(x.tensor(), y.tensor(), DefaultTolerance(y.tensor().dtype()));
      if (!wrong.empty()) problems.push_back({variant, example.outputs[i].slot + ": " + wrong});
    }
  }
  return problems;
}

}  // namespace heddle::testing
