// Variances and operand checks of operators on boxes.
#pragma once

#include "core/interrupts.h"
#include "kernels/base/shape_checks.h"

namespace heddle {

// Writes the attribute `variances` for every box of `to` [.., 4].
template <typename T>
Status FillVariances(const OpContext& ctx, Tensor& to) {
  const Floats& variances = ctx.Attr<Floats>("variances");
  if (variances.size() != 4) return InvalidArgument("variances must have 4 values");
  T* out = to.mutable_data<T>();
  for (const auto part : Stretches(to.numel()))
    for (int64_t i = part.begin; i < part.end; ++i)
      out[i] = static_cast<T>(variances[static_cast<size_t>(i % 4)]);
  return Status::Ok();
}

inline Status CheckBoxes(const ShapeContext& ctx, Key key) {
  const Shape& s = ctx.InShape(key);
  if (s.known_rank() && (s.rank() != 2 || (s[1] >= 0 && s[1] != 4)))
    return InvalidArgument(key.name, " must be [N, 4], not ", s.ToString());
  return Status::Ok();
}

}  // namespace heddle
