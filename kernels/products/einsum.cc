#include <algorithm>
#include <array>
#include <complex>
#include <cstring>
#include <memory>
#include <span>

#include "core/dtype_of.h"
#include "core/operands/unwritten.h"
#include "kernels/base/convert.h"
#include "kernels/operands/operands.h"
#include "kernels/products/einsum_plan.h"

namespace heddle {
namespace {

// Of the operands in a slot, whose shapes are known.
template <typename Context>
Result<EinsumPlan> PlanOf(const Context& ctx, Key key) {
  const int count = ctx.InCount(key);
  if (count > kEinsumOperands)
    return InvalidArgument("einsum takes one to ", kEinsumOperands, " operands, not ", count);
  std::array<Shape, kEinsumOperands> shapes;
  for (int i = 0; i < count; ++i) shapes[static_cast<size_t>(i)] = ShapeIn(ctx, key, i);
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
    if (ctx.has_state()) return Run(ctx, ctx.State<EinsumState>().plan);
    HEDDLE_ASSIGN_OR_RETURN(const EinsumPlan plan, PlanOf(ctx, "Operands"));  // inside RunInFloat
    return Run(ctx, plan);
  }
  static Status Run(const KernelContext& ctx, const EinsumPlan& plan) {
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
      std::array<Tensor, kEinsumOperands> conjugates;
      for (size_t k = 0, at = 1; k < plan.operand_count; ++k)
        if (k != i) {
          operands[at] =
              Conjugate<T>(ctx, ctx.In("InnerCache", static_cast<int>(k)), &conjugates[at]);
          ++at;
        }
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
  op.Doc("sums of products by index notation")
      .Input("Operands", kList)
      .Output("Out")
      .Output("InnerCache", kList | kOptional)
      .Output("XShape", kList | kOptional | kNoData | kMayBeUnwritten)
      .Attr("equation", "")
      .InferShape(Infer)
      .Prepare(Prepare)
      .Kernels<Einsum, float, double, int32_t, int64_t, std::complex<float>, std::complex<double>>()
      .Kernel({DType::kF16, DType::kBF16}, RunInFloat);
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
