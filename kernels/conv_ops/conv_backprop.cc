// Gradients of convolutions: of the input, whose sizes are an operand, and of the filter.
// Filters are [spatial…, in / groups, out]; depthwise ones [H, W, in, multiplier].
#include "kernels/conv_ops/tf_convolution.h"
#include "kernels/operands/operands.h"
#include "kernels/pool/tf_windows.h"

namespace heddle {
namespace {

struct BackpropState final : KernelState {
  std::unique_ptr<ConvRunner> runner;
  Shape filter;  // heddle's: [out, in / groups, kernel…]
};

// kData: gradient of the input, else of the filter.
template <bool kData>
struct Backprop {
  static constexpr Key Sizes() { return kData ? Key("input_sizes") : Key("filter_sizes"); }

  // The shape of the input, which input_sizes may give without batch and channels.
  template <typename Context>
  static Result<Shape> InputOf(const Context& ctx) {
    if (!kData) return ShapeIn(ctx, "input");
    const Shape& grad = ShapeIn(ctx, "out_backprop");
    const Shape& filter = ShapeIn(ctx, "filter");
    HEDDLE_ASSIGN_OR_RETURN(ShortInts dims, IntsIn(ctx, "input_sizes"));
    if (grad.rank() >= 4 && static_cast<int>(dims.size()) == grad.rank() - 2 &&
        filter.rank() == grad.rank()) {
      const int64_t c = filter[filter.rank() - 2];
      dims.insert(0, 1, grad[0]);
      dims.insert(ctx.Str("data_format").back() == 'C' ? dims.size() : 1, 1, c);
    }
    return MakeShape(dims, "input_sizes");
  }
  template <typename Context>
  static Result<Shape> FilterOf(const Context& ctx) {
    if (kData) return ShapeIn(ctx, "filter");
    HEDDLE_ASSIGN_OR_RETURN(const ShortInts dims, IntsIn(ctx, "filter_sizes"));
    return MakeShape(dims, "filter_sizes");
  }

  static Result<ConvGeometry> GeometryOf(const OpContext& ctx, const Shape& input,
                                         const Shape& filter, const Shape& grad) {
    HEDDLE_ASSIGN_OR_RETURN(const ConvGeometry g,
                            TfConvGeometry(ctx, input, filter, ctx.Bool("depthwise")));
    if (!(ConvOutShape(g) == grad))
      return InvalidArgument("out_backprop has shape ", grad.ToString(), ", a convolution of ",
                             input.ToString(), " with ", filter.ToString(), " has ",
                             ConvOutShape(g).ToString());
    return g;
  }

  static Status Infer(ShapeContext& ctx) {
    const DType dtype = ctx.InDType("out_backprop");
    if (!Known(ctx, Sizes())) {
      const int rank = ctx.InShape("out_backprop").rank();
      if (rank < 0) return ctx.Defer();
      Shape open;
      for (int i = 0; i < rank; ++i) open.push_back(-1);
      ctx.SetOut("output", open, dtype);
      return Status::Ok();
    }
    if (ctx.InDType(kData ? "filter" : "input") != dtype)
      return InvalidArgument("out_backprop is ", Name(dtype), ", the other operand ",
                             Name(ctx.InDType(kData ? "filter" : "input")));
    if (!ctx.InShape("out_backprop").is_static() ||
        !ctx.InShape(kData ? "filter" : "input").is_static())
      return kData && ctx.InShape("out_backprop").rank() < 0 ? ctx.Defer() : SetKnown(ctx, dtype);
    HEDDLE_ASSIGN_OR_RETURN(const Shape input, InputOf(ctx));
    HEDDLE_ASSIGN_OR_RETURN(const Shape filter, FilterOf(ctx));
    HEDDLE_RETURN_IF_ERROR(GeometryOf(ctx, input, filter, ctx.InShape("out_backprop")).status());
    ctx.SetOut("output", kData ? input : filter, dtype);
    return Status::Ok();
  }
  static Status SetKnown(ShapeContext& ctx, DType dtype) {
    HEDDLE_ASSIGN_OR_RETURN(const ShortInts dims, IntsIn(ctx, Sizes()));
    if (kData && static_cast<int>(dims.size()) != ctx.InShape("out_backprop").rank())
      return ctx.Defer();
    HEDDLE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims, Sizes().name));
    ctx.SetOut("output", shape, dtype);
    return Status::Ok();
  }

  static Result<std::unique_ptr<KernelState>> Prepare(PrepareContext& ctx) {
    const Shape& out = ctx.OutShape("output");
    const Shape& input = kData ? out : ctx.InShape("input");
    const Shape& filter = kData ? ctx.InShape("filter") : out;
    auto state = std::make_unique<BackpropState>();
    HEDDLE_ASSIGN_OR_RETURN(const ConvGeometry g,
                            GeometryOf(ctx, input, filter, ctx.InShape("out_backprop")));
    if (out.numel() > 0 && ctx.InShape("out_backprop").numel() > 0) {
      HEDDLE_ASSIGN_OR_RETURN(
          state->runner,
          MakeConv(ctx, g, ctx.InDType("out_backprop"),
                   kData ? ConvDirection::kBackwardData : ConvDirection::kBackwardFilter, nullptr));
      state->facts().implementation = state->runner->name();
    }
    state->filter = HeddleFilter(g);
    return std::unique_ptr<KernelState>(std::move(state));
  }

  static Status Run(KernelContext& ctx) {
    const auto& state = ctx.State<BackpropState>();
    const Tensor& grad = ctx.In("out_backprop");
    Tensor& out = ctx.Out("output");
    if (state.runner == nullptr) {
      ZeroBytes(ctx, out.mutable_raw(), out.bytes());
      return Status::Ok();
    }
    const size_t size = SizeOf(grad.dtype());
    Tensor filter = ctx.Scratch(grad.dtype(), state.filter);
    if (kData) {
      TurnFilter(ctx, state.filter, ctx.In("filter").raw(), filter.mutable_raw(), size, true);
      state.runner->Run(ctx, {.src = grad.raw(), .filter = filter.raw(), .dst = out.mutable_raw()});
    } else {
      state.runner->Run(
          ctx, {.src = ctx.In("input").raw(), .filter = grad.raw(), .dst = filter.mutable_raw()});
      TurnFilter(ctx, state.filter, filter.raw(), out.mutable_raw(), size, false);
    }
    return Status::Ok();
  }
};

template <bool kData>
void DefineBackprop(OpDef& op, const char* doc) {
  using B = Backprop<kData>;
  op.Doc(doc);
  if (kData)
    op.Input("input_sizes", kShapeValue).Input("filter");
  else
    op.Input("input").Input("filter_sizes", kShapeValue);
  op.Input("out_backprop").Output("output").Attr("depthwise", false);
  DeclareTfWindows(op, {.explicit_paddings = true, .dilations = true});
  op.InferShape(&B::Infer).Prepare(&B::Prepare).KernelKey("out_backprop");
  op.Kernel({DType::kF32, DType::kF64}, &B::Run);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(conv_backprop_input) {
  DefineBackprop<true>(op,
                       "gradient of a convolution's input of given sizes, in 2 or 3 dimensions");
}
HEDDLE_OP(conv_backprop_filter) {
  DefineBackprop<false>(op,
                        "gradient of a convolution's filter of given sizes, in 2 or 3 dimensions");
}
