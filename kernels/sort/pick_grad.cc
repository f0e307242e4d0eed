#include "kernels/sort/pick_grad.h"

#include <algorithm>

#include "core/error.h"
#include "core/interrupts.h"
#include "kernels/base/check.h"
#include "kernels/base/index_args.h"

namespace heddle {

template <typename T>
Status ScatterPicked(const Tensor& index, const Tensor& dout, int64_t axis, Tensor& dx) {
  HEDDLE_ASSIGN_OR_RETURN(const AxisLines lines, AxisLines::At(dx.shape(), axis));
  HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {&dx, &dout}));
  // One or more elements per line, with or without the axis kept.
  const int64_t per_line = lines.lines() == 0 ? 0 : dout.numel() / lines.lines();
  if (per_line * lines.lines() != dout.numel() || index.numel() != dout.numel() ||
      (index.dtype() != DType::kI64 && index.dtype() != DType::kI32))
    return InvalidArgument("Indices ", Name(index.dtype()), " ", index.shape().ToString(),
                           " and Out@GRAD ", dout.shape().ToString(), " do not fit X ",
                           dx.shape().ToString());
  const AxisLines from{lines.outer, per_line, lines.inner};
  std::fill_n(dx.mutable_data<T>(), dx.numel(), T(0));
  const T* g = dout.data<T>();
  T* d = dx.mutable_data<T>();
  for (const int64_t l : Watched(from.lines())) {
    for (int64_t i = 0, p = from.Begin(l); i < from.n; ++i, p += from.inner) {
      const int64_t at = IntAt(index, p);
      if (at < 0 || at >= lines.n)
        return OutOfRange("Indices holds ", at, ", expected 0 to ", lines.n - 1);
      d[lines.Begin(l) + at * lines.inner] = g[p];
    }
  }
  return Status::Ok();
}

template Status ScatterPicked<float>(const Tensor&, const Tensor&, int64_t, Tensor&);
template Status ScatterPicked<double>(const Tensor&, const Tensor&, int64_t, Tensor&);
template Status ScatterPicked<int32_t>(const Tensor&, const Tensor&, int64_t, Tensor&);
template Status ScatterPicked<int64_t>(const Tensor&, const Tensor&, int64_t, Tensor&);
template Status ScatterPicked<float16>(const Tensor&, const Tensor&, int64_t, Tensor&);
template Status ScatterPicked<bfloat16>(const Tensor&, const Tensor&, int64_t, Tensor&);

}  // namespace heddle
