#include "kernels/conv_ops/conv_ops.h"

#include "core/operands/addend.h"
#include "core/shapes.h"
#include "kernels/base/convert.h"
#include "kernels/conv/conv.h"

namespace heddle {
namespace {

// The runners of one operator, in the order its kernel uses them; null where an output is not
// wanted.
struct ConvState final : KernelState {
  std::array<std::unique_ptr<ConvRunner>, 4> runners;
  Shape out;
};
using Prepared = Result<std::unique_ptr<KernelState>>;

// Joins the names of the runners.
Prepared Named(std::unique_ptr<ConvState> state) {
  std::string& name = state->facts().implementation;
  for (const auto& runner : state->runners)
    if (runner) name += (name.empty() ? "" : "; ") + runner->name();
  return std::unique_ptr<KernelState>(std::move(state));
}

template <bool kTransposed>
Result<ConvGeometry> Geometry(const OpContext& ctx, const Shape& input, const Shape& filter) {
  if constexpr (kTransposed) return ConvTransposeGeometryOf(ctx, input, filter);
  return ConvGeometryOf(ctx, input, filter);
}

constexpr ConvDirection kFwd = ConvDirection::kForward;
constexpr ConvDirection kData = ConvDirection::kBackwardData;
constexpr ConvDirection kWeights = ConvDirection::kBackwardFilter;

// The direction of a forward pass and of the gradient with respect to its input.
template <bool kTransposed>
constexpr ConvDirection kForwardOf = kTransposed ? kData : kFwd;
template <bool kTransposed>
constexpr ConvDirection kInputGradOf = kTransposed ? kFwd : kData;

template <bool kTransposed>
Status ConvShape(ShapeContext& ctx) {
  const Shape& input = ctx.InShape("Input");
  const Shape& filter = ctx.InShape("Filter");
  if (!input.known_rank() || !filter.known_rank()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const ConvGeometry g, Geometry<kTransposed>(ctx, input, filter));
  ctx.SetOut("Output", kTransposed ? ConvInShape(g) : ConvOutShape(g), ctx.InDType("Input"));
  return Status::Ok();
}

// 16-bit floats pass through float32 (RunInFloat).
DType ComputedIn(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16 ? DType::kF32 : dtype;
}

template <bool kTransposed>
Prepared PrepareConv(PrepareContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const ConvGeometry g,
                          Geometry<kTransposed>(ctx, ctx.InShape("Input"), ctx.InShape("Filter")));
  auto state = std::make_unique<ConvState>();
  const DType dtype = ctx.InDType("Input");
  const DType computed = ComputedIn(dtype);
  HEDDLE_ASSIGN_OR_RETURN(state->runners[0],
                          MakeConv(ctx, g, computed, kForwardOf<kTransposed>,
                                   computed == dtype ? ctx.ConstIn("Filter") : nullptr));
  if (!state->runners[0]->reads_filter()) ctx.MarkPacked("Filter", state.get());
  return Named(std::move(state));
}

Status RunConv(KernelContext& ctx) {
  ctx.State<ConvState>().runners[0]->Run(ctx, {.src = ctx.In("Input").raw(),
                                               .filter = ctx.In("Filter").raw(),
                                               .dst = ctx.Out("Output").mutable_raw()});
  return Status::Ok();
}

// Every gradient output has the shape of the input it belongs to.
Status ConvGradShape(ShapeContext& ctx) {
  if (ctx.HasOut("Input@GRAD"))
    ctx.SetOut("Input@GRAD", ctx.InShape("Input"), ctx.InDType("Input"));
  if (ctx.HasOut("Filter@GRAD"))
    ctx.SetOut("Filter@GRAD", ctx.InShape("Filter"), ctx.InDType("Filter"));
  return Status::Ok();
}

// The geometry, after a check that the gradient coming in fits it.
template <bool kTransposed>
Result<ConvGeometry> GradGeometry(const PrepareContext& ctx, Key key) {
  const Shape& grad = ctx.InShape(key);
  for (const Key other : {Key("Filter"), key})
    if (ctx.InDType(other) != ctx.InDType("Input"))
      return InvalidArgument(other.name, " is ", Name(ctx.InDType(other)), ", but Input is ",
                             Name(ctx.InDType("Input")));
  HEDDLE_ASSIGN_OR_RETURN(const ConvGeometry g,
                          Geometry<kTransposed>(ctx, ctx.InShape("Input"), ctx.InShape("Filter")));
  const Shape expected = kTransposed ? ConvInShape(g) : ConvOutShape(g);
  if (!(grad == expected))
    return InvalidArgument("the output's gradient has shape ", grad.ToString(), ", expected ",
                           expected.ToString());
  return g;
}

// The epilogue of a gradient of the operand `of`: what it is added to.
Result<Epilogue> AddendEpilogue(const PrepareContext& ctx, Key addend, Key of) {
  Epilogue e;
  e.residual = ctx.HasIn(addend);
  if (e.residual &&
      (!(ctx.InShape(addend) == ctx.InShape(of)) || ctx.InDType(addend) != ctx.InDType(of)))
    return InvalidArgument(addend.name, " is ", Name(ctx.InDType(addend)), " ",
                           ctx.InShape(addend).ToString(), ", expected it to be like ", of.name,
                           ", ", Name(ctx.InDType(of)), " ", ctx.InShape(of).ToString());
  return e;
}

template <bool kTransposed>
Prepared PrepareConvGrad(PrepareContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const ConvGeometry g, GradGeometry<kTransposed>(ctx, "Output@GRAD"));
  auto state = std::make_unique<ConvState>();
  const DType dtype = ComputedIn(ctx.InDType("Input"));
  if (ctx.HasOut("Input@GRAD")) {
    HEDDLE_ASSIGN_OR_RETURN(const Epilogue e, AddendEpilogue(ctx, "AddendOfInput", "Input"));
    HEDDLE_ASSIGN_OR_RETURN(state->runners[0],
                            MakeConv(ctx, g, dtype, kInputGradOf<kTransposed>, nullptr, e));
  }
  if (ctx.HasOut("Filter@GRAD")) {
    HEDDLE_ASSIGN_OR_RETURN(const Epilogue e, AddendEpilogue(ctx, "AddendOfFilter", "Filter"));
    HEDDLE_ASSIGN_OR_RETURN(state->runners[1], MakeConv(ctx, g, dtype, kWeights, nullptr, e));
  }
  return Named(std::move(state));
}

const void* RawOr(const Tensor* t) { return t != nullptr ? t->raw() : nullptr; }

// The filter's gradient for an input and an output's gradient, whichever way round the operator is.
template <bool kTransposed>
void FilterGrad(const KernelContext& ctx, const ConvRunner& runner, const Tensor& input,
                const Tensor& out_grad, const Tensor* addend, Tensor& to) {
  runner.Run(ctx, {.src = (kTransposed ? out_grad : input).raw(),
                   .filter = (kTransposed ? input : out_grad).raw(),
                   .residual = RawOr(addend),
                   .dst = to.mutable_raw()});
}

template <bool kTransposed>
Status RunConvGrad(KernelContext& ctx) {
  const auto& runners = ctx.State<ConvState>().runners;
  const Tensor& grad = ctx.In("Output@GRAD");
  if (runners[0])
    runners[0]->Run(ctx, {.src = grad.raw(),
                          .filter = ctx.In("Filter").raw(),
                          .residual = RawOr(ctx.InOpt("AddendOfInput")),
                          .dst = ctx.Out("Input@GRAD").mutable_raw()});
  if (runners[1])
    FilterGrad<kTransposed>(ctx, *runners[1], ctx.In("Input"), grad, ctx.InOpt("AddendOfFilter"),
                            ctx.Out("Filter@GRAD"));
  return Status::Ok();
}

Status ConvDoubleGradShape(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(ConvGradShape(ctx));
  if (ctx.HasOut("grad_out@GRAD"))
    ctx.SetOut("grad_out@GRAD", ctx.InShape("grad_out"), ctx.InDType("grad_out"));
  return Status::Ok();
}

template <bool kTransposed>
Prepared PrepareConvDoubleGrad(PrepareContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const ConvGeometry g, GradGeometry<kTransposed>(ctx, "grad_out"));
  auto state = std::make_unique<ConvState>();
  const DType dtype = ctx.InDType("Input");
  if (ctx.HasOut("Input@GRAD")) {
    HEDDLE_ASSIGN_OR_RETURN(state->runners[0],
                            MakeConv(ctx, g, dtype, kInputGradOf<kTransposed>, nullptr));
  }
  if (ctx.HasOut("Filter@GRAD")) {
    HEDDLE_ASSIGN_OR_RETURN(state->runners[1], MakeConv(ctx, g, dtype, kWeights, nullptr));
  }
  if (ctx.HasOut("grad_out@GRAD")) {
    HEDDLE_ASSIGN_OR_RETURN(state->runners[2],
                            MakeConv(ctx, g, dtype, kForwardOf<kTransposed>, nullptr));
  }
  return Named(std::move(state));
}

template <typename T>
void AddTo(const KernelContext& ctx, const Tensor& from, Tensor& to) {
  const T* a = from.data<T>();
  T* b = to.mutable_data<T>();
  ctx.ParallelFor(to.numel(), 1 << 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) b[i] += a[i];
  });
}

// A gradient's gradient, if it is there, is like what it belongs to.
Status CheckLike(const Tensor* grad, const Tensor& of, const char* what) {
  if (grad == nullptr || (grad->shape() == of.shape() && grad->dtype() == of.dtype()))
    return Status::Ok();
  return InvalidArgument("the gradient that belongs to ", what, " is ", Name(grad->dtype()), " ",
                         grad->shape().ToString(), ", expected ", Name(of.dtype()), " ",
                         of.shape().ToString());
}

template <bool kTransposed>
struct DoubleGrad {
  template <typename T>
  struct Kernel {
    static Status Run(KernelContext& ctx) {
      const auto& runners = ctx.State<ConvState>().runners;
      const Tensor& grad = ctx.In("grad_out");
      const Tensor* dd_input = ctx.InOpt("grad_input@GRAD");
      const Tensor* dd_filter = ctx.InOpt("grad_filter@GRAD");
      HEDDLE_RETURN_IF_ERROR(CheckLike(dd_input, ctx.In("Input"), "Input"));
      HEDDLE_RETURN_IF_ERROR(CheckLike(dd_filter, ctx.In("Filter"), "Filter"));
      if (runners[0]) {
        Tensor& to = ctx.Out("Input@GRAD");
        if (dd_filter)
          runners[0]->Run(ctx,
                          {.src = grad.raw(), .filter = dd_filter->raw(), .dst = to.mutable_raw()});
        else
          std::memset(to.mutable_raw(), 0, to.bytes());
      }
      if (runners[1]) {
        Tensor& to = ctx.Out("Filter@GRAD");
        if (dd_input)
          FilterGrad<kTransposed>(ctx, *runners[1], *dd_input, grad, nullptr, to);
        else
          std::memset(to.mutable_raw(), 0, to.bytes());
      }
      if (runners[2]) OutGrad(ctx, *runners[2], dd_input, dd_filter, ctx.Out("grad_out@GRAD"));
      return Status::Ok();
    }

    static void OutGrad(const KernelContext& ctx, const ConvRunner& runner, const Tensor* dd_input,
                        const Tensor* dd_filter, Tensor& to) {
      if (!dd_input && !dd_filter) {
        std::memset(to.mutable_raw(), 0, to.bytes());
        return;
      }
      if (dd_input)
        runner.Run(
            ctx,
            {.src = dd_input->raw(), .filter = ctx.In("Filter").raw(), .dst = to.mutable_raw()});
      if (!dd_filter) return;
      Tensor part = dd_input ? ctx.Scratch(to.dtype(), to.shape()) : to;
      runner.Run(
          ctx,
          {.src = ctx.In("Input").raw(), .filter = dd_filter->raw(), .dst = part.mutable_raw()});
      if (dd_input) AddTo<T>(ctx, part, to);
    }
  };
};

template <bool kTransposed>
double Cost(const ShapeContext& ctx) {
  return ConvCost(ctx, kTransposed);
}
template <bool kTransposed>
double GradCost(const ShapeContext& ctx) {
  return 2 * ConvCost(ctx, kTransposed);
}

template <bool kTransposed>
void Define(OpDef& op, int spatial) {
  op.Input("Input").Input("Filter");
  if (kTransposed) op.Input("Bias", kOptional);
  op.Output("Output");
  ConvAttrs(op, spatial, kTransposed);
  if (spatial == 2) op.Traits(kChannelsLast);
  op.InferShape(ConvShape<kTransposed>).Prepare(PrepareConv<kTransposed>);
  op.Contract("Filter: as Input");
  op.Cost(Cost<kTransposed>);
  op.Kernel({DType::kF32, DType::kF64}, RunConv);
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}

template <bool kTransposed>
void DefineGrad(OpDef& op, int spatial) {
  op.Input("Input").Input("Filter").Input("Bias", kOptional).Input("Output@GRAD");
  op.Input("AddendOfInput", kOptional | kAddend).Input("AddendOfFilter", kOptional | kAddend);
  op.Output("Input@GRAD", kOptional).Output("Filter@GRAD", kOptional);
  op.Inplace("AddendOfInput", "Input@GRAD").Inplace("AddendOfFilter", "Filter@GRAD");
  ConvAttrs(op, spatial, kTransposed);
  op.InferShape(ConvGradShape).Prepare(PrepareConvGrad<kTransposed>);
  op.Cost(GradCost<kTransposed>);
  op.Kernel({DType::kF32, DType::kF64}, RunConvGrad<kTransposed>);
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}

template <bool kTransposed>
void DefineDoubleGrad(OpDef& op, int spatial) {
  op.Input("Input").Input("Filter").Input("grad_out");
  op.Input("grad_input@GRAD", kOptional).Input("grad_filter@GRAD", kOptional);
  op.Output("Input@GRAD", kOptional).Output("Filter@GRAD", kOptional);
  op.Output("grad_out@GRAD", kOptional);
  ConvAttrs(op, spatial, kTransposed);
  op.InferShape(ConvDoubleGradShape).Prepare(PrepareConvDoubleGrad<kTransposed>);
  op.Kernels<DoubleGrad<kTransposed>::template Kernel, float, double>();
}

}  // namespace

void DefineConv(OpDef& op, int spatial) { Define<false>(op, spatial); }
void DefineConvGrad(OpDef& op, int spatial) { DefineGrad<false>(op, spatial); }
void DefineConvDoubleGrad(OpDef& op, int spatial) { DefineDoubleGrad<false>(op, spatial); }
void DefineConvTranspose(OpDef& op, int spatial) { Define<true>(op, spatial); }
void DefineConvTransposeGrad(OpDef& op, int spatial) { DefineGrad<true>(op, spatial); }
void DefineConvTransposeDoubleGrad(OpDef& op, int spatial) { DefineDoubleGrad<true>(op, spatial); }

}  // namespace heddle
