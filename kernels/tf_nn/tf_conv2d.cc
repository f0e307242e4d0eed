// Convolutions whose groups or padding are known when shapes are: conv2d and its kin need them
// before. Filters lie as TensorFlow has them.
#include "kernels/onnx/operands.h"
#include "kernels/tf_nn/tf_convolution.h"
#include "kernels/tf_nn/tf_windows.h"

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

HEDDLE_EXAMPLES(tf_conv2d, R"(
example SAME, stride 2, two groups
attr strides INTS [1, 2, 2, 1]
attr padding STRING "SAME"
in input float32 [1, 3, 4, 2] 0.34 0.53 0.15 0.75 -0.37 0.39 0.19 0.16 -0.09 0.68 0.89 -0.05 0.33
  -0.88 0.40 0.29 0.99 0.64 -0.43 -0.23 0.34 -0.95 -0.08 -0.66
in filter float32 [2, 3, 1, 2] -0.77 -0.88 0.54 -0.74 -0.50 -0.22 0.74 -0.84 -0.10 0.10 0.77 0.64
out output float32 [1, 2, 2, 2] 0.1027 -2.2466002 0.5917 0.30659997 -1.1645 -0.18400002 -0.305
  1.3244

example explicit paddings, dilated
attr strides INTS [1, 1, 1, 1]
attr padding STRING "EXPLICIT"
attr explicit_paddings INTS [0, 0, 1, 0, 0, 2, 0, 0]
attr dilations INTS [1, 2, 1, 1]
in input float32 [1, 3, 3, 1] 0.73 -0.44 -0.17 -0.28 0.77 0.92 -0.70 -0.65 -0.54
in filter float32 [2, 2, 1, 3] -0.53 -0.03 0.18 -0.47 -0.99 -0.16 -0.26 0.13 0.91 0.38 0.03 0.24
out output float32 [1, 2, 4, 3] 0.3654 -0.013299999 -0.07000003 0.14940001 0.1277 0.92149997 -0.2392
  0.1196 0.83720005 0 0 0 -0.24509998 0.30320004 -0.5912 0.27689996 0.08080001 -0.77309996 0.2305
  -0.0651 -0.522 0 0 0
)")

HEDDLE_EXAMPLES(tf_conv3d, R"(
example SAME
attr strides INTS [1, 1, 2, 1, 1]
attr padding STRING "SAME"
attr data_format STRING "NDHWC"
in input float32 [1, 2, 3, 2, 1] 0.35 -0.89 0.80 0.56 0.75 0.60 -0.22 -0.20 -0.79 0.27 -0.88 -0.87
in filter float32 [1, 2, 2, 1, 2] -0.58 -0.68 -0.32 -0.89 -1.00 -0.70 -0.80 -0.27
out output float32 [1, 2, 2, 2, 2] -1.1662 -0.15710002 -0.043799996 0.2132 -0.62700003 -1.044 -0.348
  -0.40800002 0.7656 0.80770004 -0.15400001 -0.052999996 0.7888 1.3727 0.5046 0.5916
)")

HEDDLE_EXAMPLES(tf_depthwise_conv2d_native, R"(
example SAME, two outputs for each channel
attr strides INTS [1, 2, 2, 1]
attr padding STRING "SAME"
in input float32 [1, 4, 3, 2] -0.95 0.75 0.23 -0.70 -0.50 -0.31 -0.27 -0.75 0.70 0.99 -0.07 -0.03
  -0.83 -0.80 -0.31 -0.47 0.66 -0.68 -0.95 0.90 0.06 -0.71 0.09 -0.95
in filter float32 [2, 3, 2, 2] 0.06 0.96 0.73 0.39 -0.48 -0.27 -0.67 0.54 0.07 0.56 -0.34 -0.55 0.62
  0.97 0.71 0.61 0.64 0.48 -0.55 0.04 -0.29 -0.94 -0.94 -0.44
out output float32 [1, 2, 2, 4] 0.09629996 -0.4023 -0.7825999 0.32440004 0.643 1.0012001 0.41610003
  0.16230004 -0.2487 -0.46189997 0.8682 0.17489998 -0.24059997 -0.37440002 0.13090003 -1.0216
)")
