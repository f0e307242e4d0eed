// Examples with empty operands and with operands of one element.
#include <algorithm>
#include <cstring>

#include "tests/ops/compare.h"
#include "tests/ops/crash_note.h"
#include "tests/ops/examine.h"

namespace heddle::testing {

Tensor Resized(const Tensor& t, const Shape& shape) {
  Tensor resized = Tensor::Zeros(t.dtype(), shape);
  std::memcpy(resized.mutable_raw(), t.raw(), std::min(t.bytes(), resized.bytes()));
  LoD lod = t.lod();
  for (size_t level = 0; level < lod.size(); ++level)
    for (size_t i = 1; i < lod[level].size(); ++i) {
      const size_t below = level + 1 < lod.size()
                               ? lod[level + 1].size() - 1
                               : static_cast<size_t>(shape.rank() > 0 ? shape[0] : 1);
      lod[level][i] = std::min(lod[level][i], below);
    }
  resized.set_lod(std::move(lod));
  return resized;
}

namespace {

template <typename NewShape>
Example WithShapes(const Example& example, NewShape&& new_shape) {
  Example changed = example;
  for (ExampleInput& in : changed.inputs) {
    if (!in.value.is_tensor()) continue;
    const Tensor& t = in.value.tensor();
    if (const Shape shape = new_shape(t.shape()); !(shape == t.shape()))
      in.value = Value(Resized(t, shape));
  }
  for (ExampleOutput& out : changed.outputs)
    if (out.check != Check::kNothing) out.check = Check::kMeta;
  return changed;
}

const Shape* FirstShape(const Example& example) {
  for (const ExampleInput& in : example.inputs)
    if (in.value.is_tensor()) return &in.value.tensor().shape();
  return nullptr;
}

// The same result or the same error however it is run. What is wrong; empty when nothing is.
std::string AgreesWithItself(Lab& lab, const Example& example, const std::string& variant) {
  CrashNote note(example, variant);
  const auto reference = RunExample(lab.Reference(), example);
  if (!reference.ok()) {
    const StatusCode code = reference.status().code();
    const bool clear = code == StatusCode::kInvalidArgument || code == StatusCode::kUnimplemented ||
                       code == StatusCode::kOutOfRange;
    return clear ? "" : "no clear refusal: " + reference.status().ToString();
  }
  struct {
    const char* name;
    Executor& executor;
    Operands operands;
  } const others[] = {{"memory that is not NaN before", lab.Plain(), Operands::kFed},
                      {"2 threads", lab.TwoThreads(), Operands::kFed},
                      {"operands that nobody needs afterwards", lab.Reference(), Operands::kDead}};
  for (const auto& other : others) {
    const auto outcome = RunExample(other.executor, example, other.operands);
    if (!outcome.ok()) return std::string(other.name) + ": " + outcome.status().ToString();
    for (size_t i = 0; i < example.outputs.size(); ++i) {
      const auto wrong = SameElements(outcome->outputs[i], reference->outputs[i]);
      if (!wrong.empty())
        return std::string(other.name) + ": " + example.outputs[i].slot + ": " + wrong;
    }
  }
  return "";
}

}  // namespace

Problems CheckSmallShapes(Lab& lab, const Example& example, const OpDef&) {
  Problems problems;
  const Shape* const first = FirstShape(example);
  if (first == nullptr || example.is_program()) return problems;
  const auto check = [&](const std::string& variant, const Example& changed) {
    const std::string wrong = AgreesWithItself(lab, changed, variant);
    if (!wrong.empty()) problems.push_back({variant, wrong});
  };
  // The dimension of every operand that has it: those of one rank mostly belong together.
  for (int axis = 0; axis < first->rank(); ++axis)
    check("dimension " + std::to_string(axis) + " empty", WithShapes(example, [&](Shape shape) {
            if (shape.rank() == first->rank() && shape[axis] == (*first)[axis]) shape[axis] = 0;
            return shape;
          }));
  check("one element", WithShapes(example, [](Shape shape) {
          for (int axis = 0; axis < shape.rank(); ++axis) shape[axis] = 1;
          return shape;
        }));
  return problems;
}

}  // namespace heddle::testing
