// Kernels shared by matmul, matmul_v2, bmm and mul, which differ in how they see their operands.
#pragma once

#include <complex>
#include <cstring>
#include <type_traits>

#include "core/dtype_of.h"
#include "core/interrupts.h"
#include "core/operands/addend.h"
#include "kernels/gemm/gemm_matmul.h"

namespace heddle {

// Tells how an operator's operands are matrices.
using MatmulViewFn = Result<MatmulShapes> (*)(const OpContext& ctx, const Shape& x, const Shape& y);

struct MatmulForwardState final : KernelState {
  BatchedGemm gemm;
  double alpha = 1;
  std::unique_ptr<GemmRunner> runner;  // of floats
};
struct MatmulGradState final : KernelState {
  MatmulGradState(const MatmulShapes& s, double a) : plans(s), alpha(a) {}
  MatmulPlans plans;
  double alpha;
};

// Tensors of a type that products are not computed in pass through float.
template <typename T>
struct GemmOperand {
  static constexpr bool kDirect = std::is_same_v<T, ComputeType<T>>;
  using C = ComputeType<T>;
  const C* data;
  Tensor hold;
  GemmOperand(const KernelContext& ctx, const Tensor& t) {
    if constexpr (kDirect) {
      data = t.data<T>();
    } else {
      hold = ctx.Scratch(kDTypeOf<C>, {t.numel()});
      C* to = hold.mutable_data<C>();
      const T* from = t.data<T>();
      for (const auto part : Stretches(t.numel()))
        for (int64_t i = part.begin; i < part.end; ++i) to[i] = static_cast<C>(from[i]);
      data = to;
    }
  }
};
// `data` is the tensor's own, or wider numbers that Store() rounds into it when the product is
// done.
template <typename T>
struct GemmResult {
  using C = ComputeType<T>;
  Tensor& to;
  Tensor hold;
  C* data;
  GemmResult(const KernelContext& ctx, Tensor& t) : to(t) {
    if constexpr (std::is_same_v<T, C>) {
      data = t.mutable_data<T>();
    } else {
      hold = ctx.Scratch(kDTypeOf<C>, {t.numel()});
      data = hold.mutable_data<C>();
    }
  }
  // Begins with what the addend holds, if there is one: whether there is.
  bool Begin(const Tensor* addend) {
    if (addend == nullptr) return false;
    const T* from = addend->data<T>();
    if (static_cast<const void*>(from) == static_cast<const void*>(data)) return true;
    for (const auto part : Stretches(to.numel()))
      for (int64_t i = part.begin; i < part.end; ++i) data[i] = static_cast<C>(from[i]);
    return true;
  }
  void Store() {
    if constexpr (!std::is_same_v<T, C>) {
      T* out = to.mutable_data<T>();
      for (const auto part : Stretches(to.numel()))
        for (int64_t i = part.begin; i < part.end; ++i) out[i] = T(data[i]);
    }
  }
};

template <typename T>
struct MatmulForward {
  static Status Run(KernelContext& ctx) {
    using C = ComputeType<T>;
    const auto& state = ctx.State<MatmulForwardState>();
    const GemmOperand<T> x(ctx, ctx.In("X")), y(ctx, ctx.In("Y"));
    GemmResult<T> out(ctx, ctx.Out("Out"));
    if constexpr (std::is_same_v<C, float>) {
      if (state.runner) {
        state.runner->Run(ctx, x.data, y.data, nullptr, nullptr, out.data);
        out.Store();
        return Status::Ok();
      }
    }
    state.gemm.Run(ctx, static_cast<C>(state.alpha), x.data, y.data, out.data);
    out.Store();
    return Status::Ok();
  }
};

template <typename T>
struct MatmulGrad {
  static Status Run(KernelContext& ctx) {
    using C = ComputeType<T>;
    const auto& state = ctx.State<MatmulGradState>();
    const GemmOperand<T> x(ctx, ctx.In("X")), y(ctx, ctx.In("Y")), grad(ctx, ctx.In("Out@GRAD"));
    const C alpha = static_cast<C>(state.alpha);
    if (Tensor* t = ctx.OutOpt("X@GRAD")) {
      GemmResult<T> to(ctx, *t);
      const bool add = to.Begin(ctx.InOpt("AddendOfX"));
      state.plans.XGrad(ctx, alpha, grad.data, y.data, to.data, add);
      to.Store();
    }
    if (Tensor* t = ctx.OutOpt("Y@GRAD")) {
      GemmResult<T> to(ctx, *t);
      const bool add = to.Begin(ctx.InOpt("AddendOfY"));
      state.plans.YGrad(ctx, alpha, x.data, grad.data, to.data, add);
      to.Store();
    }
    return Status::Ok();
  }
};

// Preparation and shapes, given the operator's view of its operands and its factor's attribute.
template <MatmulViewFn kView, typename AlphaFn>
struct MatmulFamily {
  static double Alpha(const OpContext& ctx) { return AlphaFn()(ctx); }

  static Result<std::unique_ptr<KernelState>> PrepareForward(PrepareContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const MatmulShapes s, kView(ctx, ctx.InShape("X"), ctx.InShape("Y")));
    auto state = std::make_unique<MatmulForwardState>();
    state->gemm = PlanOut(s);
    state->alpha = Alpha(ctx);
    if (ctx.InDType("X") == DType::kF32) {
      HEDDLE_ASSIGN_OR_RETURN(state->runner,
                              MakeGemm(ctx, state->gemm, static_cast<float>(state->alpha),
                                       ctx.ConstIn("Y"), Epilogue(), {.unfused = true}));
      state->facts().implementation = state->runner->name();
      if (!state->runner->reads_b()) ctx.MarkPacked("Y", state.get());
    }
    return std::unique_ptr<KernelState>(std::move(state));
  }

  static Result<std::unique_ptr<KernelState>> PrepareGrad(PrepareContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const MatmulShapes s, kView(ctx, ctx.InShape("X"), ctx.InShape("Y")));
    if (ctx.InShape("Out@GRAD").numel() != s.out.numel())
      return InvalidArgument("Out@GRAD has shape ", ctx.InShape("Out@GRAD").ToString(),
                             ", expected ", s.result.ToString());
    constexpr Key kAddends[][2] = {{"AddendOfX", "X"}, {"AddendOfY", "Y"}};
    for (const auto& [addend, of] : kAddends)
      if (ctx.HasIn(addend) && !(ctx.InShape(addend) == ctx.InShape(of)))
        return InvalidArgument(addend.name, " has shape ", ctx.InShape(addend).ToString(),
                               ", expected that of ", of.name, ", ", ctx.InShape(of).ToString());
    return std::unique_ptr<KernelState>(std::make_unique<MatmulGradState>(s, Alpha(ctx)));
  }

  // With the sequence offsets, which gradients of sequence operators read.
  static Status GradShape(ShapeContext& ctx) {
    if (ctx.HasOut("X@GRAD")) {
      ctx.SetOut("X@GRAD", ctx.InShape("X"), ctx.InDType("X"));
      ctx.ShareLoD("X", "X@GRAD");
    }
    if (ctx.HasOut("Y@GRAD")) {
      ctx.SetOut("Y@GRAD", ctx.InShape("Y"), ctx.InDType("Y"));
      ctx.ShareLoD("Y", "Y@GRAD");
    }
    return Status::Ok();
  }

  static double Cost(const ShapeContext& ctx) {
    const Result<MatmulShapes> s = kView(ctx, ctx.InShape("X"), ctx.InShape("Y"));
    if (!s.ok() || !s->out.is_static()) return 0;
    return 60 + static_cast<double>(s->out.numel()) * static_cast<double>(s->k) / 40;
  }

  static void Define(OpDef& op) {
    op.Input("X").Input("Y").Output("Out");
    op.Prepare(PrepareForward).Cost(Cost);
    op.Kernels<MatmulForward, float, double, int32_t, int64_t, float16, bfloat16>();
    op.Kernels<MatmulForward, std::complex<float>, std::complex<double>>();
  }
  static void DefineGrad(OpDef& op) {
    op.Input("X").Input("Y").Input("Out@GRAD");
    op.Input("AddendOfX", kOptional | kAddend).Input("AddendOfY", kOptional | kAddend);
    op.Output("X@GRAD", kOptional).Output("Y@GRAD", kOptional);
    op.Inplace("AddendOfX", "X@GRAD").Inplace("AddendOfY", "Y@GRAD");
    op.InferShape(GradShape).Prepare(PrepareGrad);
    op.Cost([](const ShapeContext& ctx) { return 2 * Cost(ctx); });
    op.Kernels<MatmulGrad, float, double, float16, bfloat16>();
  }
};

}  // namespace heddle
