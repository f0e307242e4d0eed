#include <algorithm>
#include <array>
#include <complex>
#include <cstring>
#include <memory>
#include <span>

#include "core/dtype_of.h"
#include "core/operands/unwritten.h"
#include "kernels/gemm/einsum_plan.h"

namespace heddle {
namespace {

// Of the operands in a slot, whose shapes are known.
template <typename Context>
Result<EinsumPlan> PlanOf(const Context& ctx, Key key) {
  const int count = ctx.InCount(key);
  if (count > kEinsumOperands)
    return InvalidArgument("einsum takes one or two operands, not ", count);
  std::array<Shape, kEinsumOperands> shapes;
  for (int i = 0; i < count; ++i) shapes[static_cast<size_t>(i)] = ctx.InShape(key, i);
  return PlanEinsum(ctx.Str("equation"),
                    std::span<const Shape>(shapes.data(), static_cast<size_t>(count)));
}

bool AreKnown(const ShapeContext& ctx, Key key) {
  for (int i = 0; i < ctx.InCount(key); ++i)
    if (!ctx.InShape(key, i).is_static()) return false;
  return true;
}

struct EinsumState final : KernelState {
  explicit EinsumState(const EinsumPlan& p) : plan(p) {}
  EinsumPlan plan;
};

Result<std::unique_ptr<KernelState>> PrepareFor(PrepareContext& ctx, Key key) {
  HEDDLE_ASSIGN_OR_RETURN(const EinsumPlan plan, PlanOf(ctx, key));
  return std::unique_ptr<KernelState>(std::make_unique<EinsumState>(plan));
}
Result<std::unique_ptr<KernelState>> Prepare(PrepareContext& ctx) {
  return PrepareFor(ctx, "Operands");
}
Result<std::unique_ptr<KernelState>> PrepareGrad(PrepareContext& ctx) {
  return PrepareFor(ctx, "InnerCache");
}

Status Infer(ShapeContext& ctx) {
  if (!AreKnown(ctx, "Operands")) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const EinsumPlan plan, PlanOf(ctx, "Operands"));
  const DType dtype = ctx.InDType("Operands");
  ctx.SetOut("Out", plan.out_shape, dtype);
  for (int i = 0; i < ctx.InCount("Operands"); ++i) {
    if (ctx.InDType("Operands", i) != dtype)
      return InvalidArgument("all Operands must have the same dtype");
    const Shape& s = ctx.InShape("Operands", i);
    if (i < ctx.OutCount("InnerCache")) ctx.SetOut("InnerCache", s, dtype, i);
    // XShape stays unwritten: InnerCache has the shape.
  }
  return Status::Ok();
}

// The gradient is given no operands, only the caches: they hold the operands as they were.
template <typename T>
struct Einsum {
  static Status Run(KernelContext& ctx) {
    const EinsumPlan& plan = ctx.State<EinsumState>().plan;
    std::array<const T*, kEinsumOperands> data{};
    for (size_t i = 0; i < plan.operand_count; ++i) {
      const Tensor& x = ctx.In("Operands", static_cast<int>(i));
      data[i] = x.data<T>();
      if (Tensor* cache = ctx.OutOpt("InnerCache", static_cast<int>(i)))
        if (x.bytes() > 0) std::memcpy(cache->mutable_raw(), x.raw(), x.bytes());
    }
    Contract<T>(ctx, plan, std::span(data).first(plan.operand_count),
                ctx.Out("Out").template mutable_data<T>());
    return Status::Ok();
  }
};

Status InferGrad(ShapeContext& ctx) {
  if (!AreKnown(ctx, "InnerCache")) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const EinsumPlan plan, PlanOf(ctx, "InnerCache"));
  const Shape& dout = ctx.InShape("Out@GRAD");
  if (dout.is_static() && dout.numel() != plan.out_shape.numel())
    return InvalidArgument("Out@GRAD ", dout.ToString(), " should have shape ",
                           plan.out_shape.ToString());
  for (int i = 0; i < ctx.InCount("InnerCache"); ++i)
    if (i < ctx.OutCount("Operands@GRAD"))
      ctx.SetOut("Operands@GRAD", ctx.InShape("InnerCache", i), ctx.InDType("InnerCache"), i);
  return Status::Ok();
}

// The values themselves, unless they are complex: then their conjugates, in `room`.
template <typename T>
const T* Conjugate(const KernelContext& ctx, const Tensor& x, Tensor* room) {
  if constexpr (IsComplex(kDTypeOf<T>)) {
    *room = ctx.CallScratch(x.dtype(), x.shape());
    std::transform(x.data<T>(), x.data<T>() + x.numel(), room->mutable_data<T>(),
                   [](T v) { return std::conj(v); });
    return room->data<T>();
  }
  return x.data<T>();
}

template <typename T>
struct EinsumGrad {
  static Status Run(KernelContext& ctx) {
    const EinsumPlan& plan = ctx.State<EinsumState>().plan;
    for (size_t i = 0; i < plan.operand_count; ++i) {
      Tensor* dx = ctx.OutOpt("Operands@GRAD", static_cast<int>(i));
      if (dx == nullptr) continue;
      std::array<const T*, kEinsumOperands> operands{ctx.In("Out@GRAD").template data<T>()};
      Tensor conjugates;
      if (plan.operand_count == 2)
        operands[1] = Conjugate<T>(ctx, ctx.In("InnerCache", static_cast<int>(1 - i)), &conjugates);
      if (dx->bytes() > 0) std::memset(dx->mutable_raw(), 0, dx->bytes());
      Contract<T>(ctx, GradientPlan(plan, i), std::span(operands).first(plan.operand_count),
                  dx->template mutable_data<T>());
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(einsum) {
  op.Doc("sums of products by index notation, for one or two operands")
      .Input("Operands", kList)
      .Output("Out")
      .Output("InnerCache", kList | kOptional)
      .Output("XShape", kList | kOptional | kNoData | kMayBeUnwritten)
      .Attr("equation", "")
      .InferShape(Infer)
      .Prepare(Prepare)
      .Kernels<Einsum, float, double, std::complex<float>, std::complex<double>>();
}

HEDDLE_OP(einsum_grad) {
  op.Input("x_shape", kList | kOptional | kNoBuffer)
      .Input("InnerCache", kList)
      .Input("Out@GRAD")
      .Output("Operands@GRAD", kList)
      .Attr("equation", "")
      .KernelKey("InnerCache")
      .InferShape(InferGrad)
      .Prepare(PrepareGrad)
      .Kernels<EinsumGrad, float, double, std::complex<float>, std::complex<double>>();
}

HEDDLE_EXAMPLES(einsum, R"(
example float64 4, equation i,i->
attr equation STRING "i,i->"
in Operands float64 [4] 0.212 0.408 0.8 0.604
in Operands float64 [4] 0.2 0.594 0.397 0.791
out InnerCache ?
out InnerCache ?
out Out float64 [] 1.080116
out XShape ?
out XShape ?

example float64 4x4, equation ii->
attr equation STRING "ii->"
in Operands float64 [4, 4] 0.362 0.189 0.823 0.592 0.419 0.938 0.304 0.65 0.535 0.765 0.131 0.707
  0.074 0.88 0.477 0.247
out InnerCache ?
out Out float64 [] 1.678
out XShape ?

example float64 3x3x2, equation mij,jk->ki
attr equation STRING "mij,jk->ki"
in Operands float64 [3, 3, 2] 0.211 0.894 0.789 0.263 0.631 0.421 0.158 0.947 0.737 0.368 0.842
  0.474 0.684 0.105 0.053 0.316 0.579 0.526
in Operands float64 [2, 4] 0.112 0.852 0.429 0.746 0.323 0.64 0.535 0.218
out InnerCache ?
out InnerCache ?
out Out float64 [4, 3] 0.746494 0.482729 0.688807 2.142596 1.9513880000000001 2.6577439999999997
  1.4928469999999998 1.1840359999999999 1.640543 1.209766 1.3843800000000002 1.8405699999999996
out XShape ?
out XShape ?

example float64 4x4, equation ij,jk->ik
attr equation STRING "ij,jk->ik"
in Operands float64 [4, 4] 0.419 0.189 0.304 0.535 0.823 0.477 0.88 0.65 0.074 0.247 0.707 0.592
  0.131 0.938 0.765 0.362
in Operands float64 [4, 4] 0.061 0.235 0.409 0.872 0.525 0.293 0.93 0.64 0.582 0.351 0.814 0.467
  0.177 0.756 0.119 0.698
out InnerCache ?
out InnerCache ?
out Out float64 [4, 4] 0.39640699999999995 0.665006 0.658262 1.001726 0.9278379999999999 1.133446
  1.573887 1.887596 0.650447 0.7854699999999999 0.9059219999999999 0.9659929999999999 1.009745
  0.8478059999999998 1.591707 1.3244829999999999
out XShape ?
out XShape ?

example float32 4, equation i,i->
attr equation STRING "i,i->"
in Operands float32 [4] 0.212 0.408 0.8 0.604
in Operands float32 [4] 0.2 0.594 0.397 0.791
out InnerCache ?
out InnerCache ?
out Out float32 [] 1.080116
out XShape ?
out XShape ?

example complex64 4, equation i,i->
attr equation STRING "i,i->"
in Operands complex64 [4] 0.212+0j 0.408+0j 0.8+0j 0.604+0j
in Operands complex64 [4] 0.2+0j 0.594+0j 0.397+0j 0.791+0j
out InnerCache ?
out InnerCache ?
out Out complex64 [] 1.080116+0j
out XShape ?
out XShape ?
)")

HEDDLE_EXAMPLES(einsum_grad, R"(
example ij,jk->ik
attr equation STRING "ij,jk->ik"
in InnerCache float64 [2, 3] 0.5 -1 0.25 2 -0.5 1
in InnerCache float64 [3, 2] 1 0.5 -0.25 0.75 2 -1
in Out@GRAD float64 [2, 2] 0.5 -0.25 1 2
from matmul_v2_grad X=InnerCache.0 Y=InnerCache.1 Out@GRAD=Out@GRAD -> X@GRAD=Operands@GRAD.0
  Y@GRAD=Operands@GRAD.1
out Operands@GRAD float64 [2, 3] 0.375 -0.3125 1.25 2 1.25 0
out Operands@GRAD float64 [3, 2] 2.25 3.875 -1 -0.75 1.125 1.9375

example ij->ji, float32
attr equation STRING "ij->ji"
in InnerCache float32 [2, 3] 0.5 -1 0.25 2 -0.5 1
in Out@GRAD float32 [3, 2] 1 0.5 -0.25 0.75 2 -1
from transpose2 X=Out@GRAD -> Out=Operands@GRAD XShape=s
attr axis INTS [1, 0]
out Operands@GRAD float32 [2, 3] 1 -0.25 2 0.5 0.75 -1
)")
