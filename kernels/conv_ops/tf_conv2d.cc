// Convolutions whose groups or padding are known when shapes are: conv2d and its kin need them
// before. Filters lie as TensorFlow has them.
#include "kernels/conv_ops/tf_convolution.h"
#include "kernels/operands/operands.h"
#include "kernels/pool/tf_windows.h"

namespace heddle {
namespace {

struct TfConvState final : KernelState {
  std::unique_ptr<ConvRunner> runner;
  Shape filter;
};

template <bool kDepthwise>
struct TfConv {
  static Status Infer(ShapeContext& ctx) {
    const Shape &x = ctx.InShape("input"), &filter = ctx.InShape("filter");
    if (ctx.InDType("filter") != ctx.InDType("input"))
      return InvalidArgument("filter is ", Name(ctx.InDType("filter")), ", input ",
                             Name(ctx.InDType("input")));
    if (!x.is_static() || !filter.is_static()) {
      const int rank = x.known_rank() ? x.rank() : filter.rank();
      if (rank != 4 && rank != 5) return ctx.Defer();
      Shape open;
      for (int i = 0; i < rank; ++i) open.push_back(-1);
      ctx.SetOut("output", open, ctx.InDType("input"));
      return Status::Ok();
    }
    HEDDLE_ASSIGN_OR_RETURN(const ConvGeometry g, TfConvGeometry(ctx, x, filter, kDepthwise));
    ctx.SetOut("output", ConvOutShape(g), ctx.InDType("input"));
    return Status::Ok();
  }

  static Result<std::unique_ptr<KernelState>> Prepare(PrepareContext& ctx) {
    auto state = std::make_unique<TfConvState>();
    HEDDLE_ASSIGN_OR_RETURN(
        const ConvGeometry g,
        TfConvGeometry(ctx, ctx.InShape("input"), ctx.InShape("filter"), kDepthwise));
    if (ConvOutShape(g).numel() > 0 && ctx.InShape("input").numel() > 0) {
      HEDDLE_ASSIGN_OR_RETURN(
          state->runner, MakeConv(ctx, g, ctx.InDType("input"), ConvDirection::kForward, nullptr));
      state->facts().implementation = state->runner->name();
    }
    state->filter = HeddleFilter(g);
    return std::unique_ptr<KernelState>(std::move(state));
  }

  static Status Run(KernelContext& ctx) {
    const auto& state = ctx.State<TfConvState>();
    const Tensor& x = ctx.In("input");
    Tensor& out = ctx.Out("output");
    if (state.runner == nullptr) {
      ZeroBytes(ctx, out.mutable_raw(), out.bytes());
      return Status::Ok();
    }
    Tensor filter = ctx.Scratch(x.dtype(), state.filter);
    TurnFilter(ctx, state.filter, ctx.In("filter").raw(), filter.mutable_raw(), SizeOf(x.dtype()),
               true);
    state.runner->Run(ctx, {.src = x.raw(), .filter = filter.raw(), .dst = out.mutable_raw()});
    return Status::Ok();
  }
};

template <bool kDepthwise>
void DefineTfConv(OpDef& op, const char* doc) {
  using C = TfConv<kDepthwise>;
  op.Doc(doc).Input("input").Input("filter").Output("output");
  DeclareTfWindows(op, false, true);
  op.InferShape(&C::Infer).Prepare(&C::Prepare).Kernel({DType::kF32, DType::kF64}, &C::Run);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_conv2d) {
  DefineTfConv<false>(op, "convolution; a filter of fewer channels than there are has groups");
}
HEDDLE_OP(tf_conv3d) { DefineTfConv<false>(op, "3-D convolution"); }
HEDDLE_OP(tf_depthwise_conv2d_native) {
  DefineTfConv<true>(op, "convolution of each channel by itself");
}
