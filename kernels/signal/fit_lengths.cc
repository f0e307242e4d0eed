// The last dimensions cut or filled with zeros to given lengths, and a check of numbers.
#include <cmath>

#include "core/interrupts.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

Status FitShape(ShapeContext& ctx) {
  Shape x = ctx.InShape("x");
  if (!x.known_rank()) return ctx.Defer();
  if (!Known(ctx, "lengths")) return SameRank(ctx, "x", "y");
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts lengths, IntsIn(ctx, "lengths"));
  const int first = x.rank() - static_cast<int>(lengths.size());
  if (first < 0)
    return InvalidArgument("lengths has ", lengths.size(), " elements for x ", x.ToString());
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] < 0 || lengths[i] > int64_t{1} << 40)
      return InvalidArgument("lengths holds ", lengths[i], ", expected 0 or more");
    x[first + static_cast<int>(i)] = lengths[i];
  }
  ctx.SetOut("y", x, ctx.InDType("x"));
  return Status::Ok();
}

Status Fit(KernelContext& ctx) {
  const Tensor& x = ctx.In("x");
  Tensor& out = ctx.Out("y");
  ZeroBytes(ctx, out.mutable_raw(), out.bytes());
  if (x.numel() == 0 || out.numel() == 0) return Status::Ok();
  const auto from = RowMajorStrides(x.shape()), to = RowMajorStrides(out.shape());
  std::array<CopyDim, Shape::kMaxRank> dims;
  for (int i = 0; i < x.rank(); ++i)
    dims[i] = {std::min(x.shape()[i], out.shape()[i]), from[i], to[i]};
  StridedCopy(SizeOf(x.dtype()), std::span(dims.data(), static_cast<size_t>(x.rank())))
      .Run(ctx, x.raw(), out.mutable_raw());
  return Status::Ok();
}

// The whole of a spectrum of which x has the first half, for a real signal of `length` samples.
Status MirrorShape(ShapeContext& ctx) {
  Shape x = ctx.InShape("x");
  if (!x.known_rank()) return ctx.Defer();
  if (x.rank() < 1) return InvalidArgument("x is a scalar, expected at least one dimension");
  int64_t& n = x[x.rank() - 1];
  n = -1;
  if (Known(ctx, "length")) {
    HEDDLE_ASSIGN_OR_RETURN(n, IntIn(ctx, "length", 0));
    if (n < 1 || n > int64_t{1} << 40)
      return InvalidArgument("length is ", n, ", expected at least 1");
  }
  ctx.SetOut("y", x, ctx.InDType("x"));
  return Status::Ok();
}
template <typename T>
struct Mirror {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("x");
    Tensor& out = ctx.Out("y");
    const int64_t have = x.dim(-1), n = out.dim(-1);
    const T* from = x.data<T>();
    T* to = out.template mutable_data<T>();
    for (const int64_t i : Watched(out.numel())) {
      const int64_t row = i / n, k = i % n, at = k <= n / 2 ? k : n - k;
      const T v = at < have ? from[row * have + at] : T(0);
      to[i] = k <= n / 2 ? v : std::conj(v);
    }
    return Status::Ok();
  }
};

template <typename T>
struct CheckNumerics {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("tensor");
    Tensor& out = ctx.Out("output");
    for (const auto part : Stretches(x.numel()))
      for (int64_t i = part.begin; i < part.end; ++i)
        if (const auto v = static_cast<ComputeType<T>>(x.data<T>()[i]); !std::isfinite(v))
          return InvalidArgument(ctx.Str("message"), ": the tensor has ",
                                 std::isnan(v) ? "NaN" : "an infinity", " at position ", i);
    if (out.raw() != x.raw()) CopyBytes(ctx, x.raw(), out.mutable_raw(), x.bytes());
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(fit_lengths) {
  op.Doc("x with its last dimensions cut, or filled with zeros, to lengths").Input("x");
  op.Input("lengths", kShapeValue).Output("y").InferShape(FitShape).AnyKernel(Fit);
}
HEDDLE_OP(mirror_spectrum) {
  op.Doc("the whole spectrum of a real signal of length samples, from its first half");
  op.Input("x").Input("length", kShapeValue).Output("y").InferShape(MirrorShape).KernelKey("x");
  op.Kernels<Mirror, std::complex<float>, std::complex<double>>();
}
HEDDLE_OP(assert_finite) {
  op.Doc("tensor, and an error where it is not finite").Input("tensor").Output("output");
  op.Attr("message", "").Inplace("tensor", "output").InferShape(SameShape);
  op.Kernels<CheckNumerics, float, double, float16, bfloat16>();
}
