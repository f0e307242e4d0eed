// Gradients of convolutions: of the input, whose sizes are an operand, and of the filter.
// Filters lie as TensorFlow has them, [spatial…, in / groups, out]; depthwise ones are
// [H, W, in, multiplier].
#include "kernels/onnx/operands.h"
#include "kernels/tf_nn/tf_convolution.h"
#include "kernels/tf_nn/tf_windows.h"

namespace heddle {
namespace {

struct BackpropState final : KernelState {
  std::unique_ptr<ConvRunner> runner;
  Shape filter;  // heddle's: [out, in / groups, kernel…]
};

// kData: gradient of the input, else of the filter.
template <bool kData, bool kDepthwise>
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
    HEDDLE_ASSIGN_OR_RETURN(const ConvGeometry g, TfConvGeometry(ctx, input, filter, kDepthwise));
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

template <bool kData, bool kDepthwise>
void DefineBackprop(OpDef& op, const char* doc) {
  using B = Backprop<kData, kDepthwise>;
  op.Doc(doc);
  if (kData)
    op.Input("input_sizes", kShapeValue).Input("filter");
  else
    op.Input("input").Input("filter_sizes", kShapeValue);
  op.Input("out_backprop").Output("output");
  DeclareTfWindows(op, false, true);
  op.InferShape(&B::Infer).Prepare(&B::Prepare).KernelKey("out_backprop");
  op.Kernel({DType::kF32, DType::kF64}, &B::Run);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_conv2d_backprop_input) {
  DefineBackprop<true, false>(op, "gradient of a convolution's input (a transposed convolution)");
}
HEDDLE_OP(tf_conv2d_backprop_filter) {
  DefineBackprop<false, false>(op, "gradient of a convolution's filter");
}
HEDDLE_OP(tf_conv3d_backprop_input_v2) {
  DefineBackprop<true, false>(op, "gradient of a 3-D convolution's input");
}
HEDDLE_OP(tf_conv3d_backprop_filter_v2) {
  DefineBackprop<false, false>(op, "gradient of a 3-D convolution's filter");
}
HEDDLE_OP(tf_depthwise_conv2d_native_backprop_input) {
  DefineBackprop<true, true>(op, "gradient of a depthwise convolution's input");
}
HEDDLE_OP(tf_depthwise_conv2d_native_backprop_filter) {
  DefineBackprop<false, true>(op, "gradient of a depthwise convolution's filter");
}

HEDDLE_EXAMPLES(tf_conv2d_backprop_input, R"(
example recorded case 1
attr strides INTS [1, 1, 2, 1]
attr padding STRING "VALID"
attr explicit_paddings INTS []
attr data_format STRING "NHWC"
attr dilations INTS [1, 1, 1, 1]
in input_sizes int32 [4] 2 5 9 1
in filter float32 [5, 1, 1, 2] 0.35428506 2.4190798 1.2153934 -0.3603025 -0.66563743 -0.08496138
  0.03464102 1.7476504 1.275545 -0.80346686
in out_backprop float32 [2, 1, 5, 2] 0.2844397 2.7885325 1.2394094 -1.2263186 -0.52658594
  0.106469765 -1.2733939 -0.61645687 -3.0190809 2.205782 0.5210499 1.2111462 0.3246526 -1.4181577
  1.2615772 -2.4277167 -0.5292042 -2.281886 -1.6534271 -2.6684802
out output float32 [2, 5, 9, 1] 6.8464556 0 -2.5274582 0 0.07099733 0 -1.9424028 0 4.266347
  -0.65900904 0 1.9482157 0 -0.6783704 0 -1.3255635 0 -4.46412 -0.4262513 0 -0.7208076 0 0.3414695 0
  0.89999366 0 1.822207 4.883233 0 -2.1002417 0 0.16783045 0 -1.1214627 0 3.7503517 -1.8776779 0
  2.5662289 0 -0.75722903 0 -1.1289685 0 -5.623246 3.1144595 0 -3.315617 0 -5.4258823 0 -5.7075534 0
  -7.041051 0.19690162 0 0.9055464 0 2.408025 0 0.17897803 0 -1.0481043 -0.449731 0 -0.0956123 0
  -0.63349086 0 0.5461303 0 1.3273007 2.1347098 0 -2.4671977 0 -4.199098 0 -4.0062714 0 -4.7208467
  -0.30849326 0 1.5535517 0 3.5597885 0 1.158396 0 0.03501463

example recorded case 2
attr strides INTS [1, 2, 2, 1]
attr padding STRING "SAME"
in input_sizes int32 [4] 1 9 5 3
in filter float32 [1, 3, 3, 2] -0.055047657 0.024923483 -1.243305 2.5566485 1.0011089 -1.2872329
  2.0413306 -0.053776503 -0.3731728 1.1233096 -1.8976032 1.3581109 -2.2050853 -0.11106582 -1.307873
  -0.7639956 -0.7267395 -0.54203993
in out_backprop float32 [1, 5, 3, 2] -2.567824 2.8444867 -0.2943031 1.4831599 3.0484211 1.3792523
  0.8136987 2.2677774 -2.9451585 0.269151 -1.5476526 1.1762005 0.999915 -3.2450988 -2.4810855
  -3.604985 -0.9962702 -3.3498673 1.1371015 0.41661435 2.1005733 0.44040868 0.72761774 -2.4046502
  0.24849953 -0.5420011 -0.31361136 -0.46117932 0.09506258 -1.9091809
out output float32 [1, 9, 5, 3] -5.394744 4.1534815 8.735839 5.399512 5.343039 -1.879488 -0.68052906
  1.7758737 2.572766 0.35080236 -1.0120704 0.68633235 6.1486635 0.4117396 -3.9115162 0*15 1.5390749
  2.243766 1.535816 -1.8773153 1.5530684 -5.1154575 -6.026516 1.4013929 5.954279 6.578942 8.577599
  -1.0689403 -3.2225225 1.8987792 4.534241 0*15 2.215667 -4.0183916 -6.304646 -1.7977492 -4.9604545
  3.1889138 -4.8708525 -3.1236408 -0.18785386 5.8427477 -1.3266282 7.071833 -1.8535725 -3.3911572
  -2.6589658 0*15 2.2987962 0.043651547 -1.591959 -2.6583323 -3.2911592 0.48379588 4.264281
  -0.28916147 -3.3879306 -4.7808437 -10.13625 2.0584807 1.614622 -2.972694 -4.6465116 0*15 0.5364166
  -0.70156837 -1.2076511 -0.4819955 -0.7000782 0.39287788 -0.61538386 -0.40101594 -0.031222777
  0.6899446 -4.2367935 3.0306199 0.29672322 -2.1800761 -2.7732704
)")

HEDDLE_EXAMPLES(tf_conv2d_backprop_filter, R"(
example recorded case 1
attr strides INTS [1, 1, 1, 1]
attr padding STRING "VALID"
attr explicit_paddings INTS []
attr data_format STRING "NHWC"
attr dilations INTS [1, 1, 1, 1]
in input float64 [1, 5, 10, 1] 1.2556622768954866 -2.1142884042373993 -1.8017169874727221
  -0.5572026422057325 0.9091861758993296 1.4497682400174081 0.20800381384499367 1.0159411873485218
  -0.05377210861258509 -0.5412211421053703 -0.7071086528238518 0.5273490584841263 1.1211428353378219
  0.8429880468196862 2.86524503637467 3.238022068079114 -2.7204302251561043 2.285481808581122
  -0.9937398358701693 -0.24991093417032684 1.0794248807676108 -0.9695425665843818 -1.359206028886711
  0.21573436372181903 0.26831375280103176 1.0397056246209277 -1.0391525587348642 1.697934400126792
  2.5844859603908423 -0.8242514172149122 1.2312787039742201 -0.2742763362147801 -2.2989181386955657
  -3.4291589748075215 2.14676690585385 0.7843438030608003 0.4135354935944201 -1.982936235362498
  -1.000062923478692 1.2164625308837285 -1.0549514128482183 1.5249950898463915 2.7691205964446857
  -2.1068700703692276 2.0515910840457963 -1.9295160333802897 -0.9262637834269765 -0.6822368850100786
  -0.9873742950310169 0.9962121389187162
in filter_sizes int32 [4] 5 1 1 2
in out_backprop float64 [1, 1, 10, 2] 0.1806597880918977 -0.9488371169415368 0.3871753148695085
  -2.3909868623662103 -0.7343296207183548 0.1877787951998917 1.2494991916727665 0.07802532482781561
  -1.5289105259965514 0.07935759844863877 1.6959457044024489 0.2891583245821449 1.7761877819842684
  -2.565067456036836 -2.036357035714712 -1.0959549064586254 -2.1443075088526697 -0.8872306662551761
  -0.4705133050693777 -1.324186968819696
out output float64 [5, 1, 1, 2] -0.22566825950606828 3.090796752351749 -5.820320427172852
  6.5359348273459785 -8.017094683718645 0.9805647509325681 1.9122353006075905 -0.4256544120125276
  -9.282617688981341 -0.004311973045109552

example recorded case 2
attr strides INTS [1, 3, 1, 1]
attr padding STRING "SAME"
attr explicit_paddings INTS []
attr data_format STRING "NHWC"
attr dilations INTS [1, 1, 1, 1]
in input float64 [2, 6, 5, 1] -1.6822585 1.8924007 0.2563446 -2.6004477 0.29703602 -2.1748216
  1.9991266 -0.5212944 0.69586056 -1.6536276 1.5866485 -0.8829991 3.7594402 -1.113954 1.192205
  1.1771004 0.62243676 -1.1231278 -0.25597215 -1.4064178 -1.0242335 -1.3992678 -0.17693396
  -0.18516017 -2.545382 -0.5374235 1.6276525 0.015452105 0.76604766 -4.0533605 -0.16442841 1.900413
  1.1757356 0.71757084 -2.8813922 -1.5215951 -1.4093126 0.37024185 -0.3335389 -0.89674246
  -0.24037573 -1.4727758 0.68956 -0.45656267 -0.3032056 -2.5482473 -0.15982893 1.7387671 -0.50020856
  -1.5387452 1.8750697 -2.469992 1.2674624 0.34028265 1.9977745 0.2314965 0.5035962 1.0619621
  0.666107 -0.1105517
in filter_sizes int32 [4] 2 3 1 1
in out_backprop float64 [2, 2, 5, 1] -0.600188 -1.2112818 3.3047051 0.2960542 -1.2538226 -1.1782198
  1.0249829 0.89951426 -1.5866622 1.2676413 -0.31773522 0.21401818 -0.1484383 -1.2453858 -1.4539274
  0.49867588 1.267187 1.0291097 -0.096890435 0.06988817
out output float64 [2, 3, 1, 1] 8.430008434838898 -0.8764263908062038 -4.947679469243477
  5.594105510469117 -2.816823098103173 8.805367490103768
)")

HEDDLE_EXAMPLES(tf_conv3d_backprop_input_v2, R"(
example recorded case 1
attr strides INTS [1, 1, 2, 2, 1]
attr padding STRING "VALID"
attr data_format STRING "NDHWC"
attr dilations INTS [1, 1, 1, 1, 1]
in input_sizes int32 [5] 2 6 4 6 2
in filter float32 [3, 1, 1, 2, 1] 0.5551845 -0.60125256 0.6903269 0.61405605 -1.9262522 -0.74067914
in out_backprop float32 [2, 4, 2, 3, 1] -1.9443064 1.2282039 -1.2615012 -2.5878382 -0.05941618
  0.6871863 1.1599492 0.77430767 -3.1635635 -0.6136351 0.3162044 -0.38558763 0.6447089 -0.982762
  -0.16401716 0.88276803 1.1678829 0.9058012 1.407762 -3.9715886 0.51508546 1.2991991 1.51868
  -2.252663 -0.069956064 -1.7102728 0.8456262 0.20950188 2.8000886 -1.4836198 0.17459488 -2.4731061
  -2.3089323 1.0479212 1.62714 -2.0359051 1.7728769 0.39464748 -1.5541375 -2.7648041 -1.6868106
  -3.5231204 2.5490158 0.66244566 1.6454605 0.6336902 -1.4661037 -0.26975024
out output float32 [2, 6, 4, 6, 2] -1.0794487 1.1690192 0 0 0.68187976 -0.7384607 0 0 -0.7003659
  0.7584808 0*14 -1.4367276 1.5559443 0 0 -0.03298694 0.03572413 0 0 0.38151518 -0.4131725 0*14
  -0.69822127 -1.8913355 0 0 1.2777458 0.28863156 0 0 -2.6272097 1.1274682 0*14 -2.127135 -1.220128
  0 0 0.1345352 -0.22660357 0 0 0.26031095 0.65380645 0*14 4.903901 1.7647481 0 0 -2.3769193
  0.15665148 0 0 0.1550167 -0.909622 0*14 5.051319 1.009185 0 0 0.9811254 -0.46401703 0 0 -1.0869888
  -1.2903723 0*14 -1.0077271 -1.3096833 0 0 -4.374903 1.2109432 0 0 6.266563 1.9327734 0*14
  2.5127099 0.215429 0 0 1.0402792 -0.43017066 0 0 0.117394455 2.1962287 0*14 -0.2700559 0.3869224 0
  0 -0.8486471 -1.7108667 0 0 0.67151576 0.43777543 0*14 -0.80356187 0.14393319 0 0 -1.2012514
  0.0675281 0 0 -3.2998755 -2.0541694 0*14 -2.7117047 -1.0426999 0 0 7.6502814 2.9416728 0 0
  -0.9921845 -0.38151306 0*14 -2.5025852 -0.9622897 0 0 -2.9253607 -1.1248546 0 0 4.339197 1.6685004
  0*14 -0.03883852 0.04206126 0 0 -0.9495169 1.0283059 0 0 0.46947852 -0.5084349 0*14 0.11631219
  -0.12596354 0 0 1.5545658 -1.6835605 0 0 -0.8236827 0.8920302 0*14 0.04863981 -0.14793256 0 0
  -2.5536776 0.43675807 0 0 -0.6981249 1.9075134 0*14 0.7264144 -0.50141937 0 0 2.8363395 0.7410893
  0 0 -2.1544857 0.31306747 0*14 1.2395543 -0.9069207 0 0 1.8062673 -0.48914528 0 0 -4.0856404
  -1.1097224 0*14 -1.2151216 2.1506543 0 0 -5.2069097 -0.06061286 0 0 -0.5035959 1.9670116 0*14
  2.3027248 -0.57327527 0 0 5.404042 1.6758167 0 0 4.288257 -0.23348683 0*14 -3.575364 -2.8549259 0
  0 -5.112691 -1.3594863 0 0 1.3398007 -0.4932529 0*14 -1.6553539 0.25210568 0 0 -0.30288652
  0.1144716 0 0 4.129566 2.1615222 0*14 5.7631636 2.436954 0 0 2.2371318 0.34911564 0 0 6.6002026
  2.44386 0*14 -4.9100475 -1.8880029 0 0 -1.2760375 -0.49065968 0 0 -3.1695719 -1.2187582 0*14
  -1.2206471 -0.4693611 0 0 2.8240855 1.0859125 0 0 0.519607 0.19979838 0*14

example recorded case 2
attr strides INTS [1, 1, 1, 2, 1]
attr padding STRING "VALID"
attr data_format STRING "NDHWC"
attr dilations INTS [1, 1, 1, 1, 1]
in input_sizes int32 [5] 2 4 5 5 2
in filter float32 [2, 2, 2, 2, 1] -0.84447855 1.3884454 1.1018585 -1.6291524 2.3419259 -0.3360298
  0.25104523 0.51247 0.52690935 -1.2498684 -0.10607075 0.18251038 2.4623587 -1.52931 1.117389
  0.40296483
in out_backprop float32 [2, 3, 4, 2, 1] -0.2604359 2.3836865 -0.9743107 0.17198324 -0.028143466
  2.0487914 -0.9727549 0.8850625 0.0934145 -2.23103 3.5470164 0.015368554 2.0876906 -1.1575843
  -1.8534881 1.0817055 0.66332585 1.3434664 0.4407422 -2.5858958 2.1862268 0.60518056 -2.5280738
  0.5661903 1.4609504 0.9536723 -0.41196084 -1.6621684 0.32844618 -1.0692096 -2.087578 1.2671163
  1.2557977 1.1120926 -0.2904933 1.1381018 1.2753097 0.83687574 -3.5906436 1.3807536 -1.9814466
  2.5962653 -1.2845539 -2.5680983 -2.2695706 1.3258951 -0.8756176 -0.04701119
out output float32 [2, 4, 5, 5, 2] 0.21993254 -0.36160102 -0.28696352 0.4242898 -2.012972 3.3096185
  2.6264853 -3.8833888 0 0 0.21286291 -1.265263 -1.1389337 1.453835 5.437181 -0.56220037 0.78791434
  0.941381 0 0 -2.2579968 0.28832176 -0.27560616 -0.453455 -1.3273884 2.7868435 2.3006537 -3.2496572
  0 0 0.75556076 -1.3411599 -1.0789036 1.5703433 4.050701 0.540406 1.489553 -0.39195758 0 0
  -2.2781198 0.32687464 -0.24420547 -0.4985077 2.0727508 -0.2974074 0.22219072 0.45356798 0 0
  -0.21611266 0.45521155 0.1305542 -0.19971871 3.1400437 -6.0769577 -2.7111187 4.0697355 0 0
  -3.9312694 6.5094957 3.7440991 -6.0135264 0.7222254 -3.0893214 2.1021073 -0.17644313 0 0 4.1299076
  3.23194 2.1051025 -1.9811761 2.516559 -4.436142 -1.2967806 2.336986 0 0 5.8725944 -2.0161376
  -1.4464432 3.9006147 1.8867534 -2.3485773 3.096698 -1.3683662 0 0 -6.7360034 2.110471 -1.5522549
  -1.341843 4.7126155 -1.7170202 1.260516 0.91099066 0 0 -0.5109435 0.8042359 0.7209827 -1.0636098
  -2.310079 4.6538234 1.7169569 -2.5958977 0 0 3.2802386 -4.187114 0.38030598 0.30690846 -0.15546627
  -0.64909184 -5.006579 4.005083 0 0 9.020014 -5.146472 6.2615128 -1.5254815 -7.1391373 3.132523
  0.157605 -2.5162034 0 0 11.418908 -5.1208396 0.29262552 5.741978 -1.3412745 1.0010815 -0.6324199
  -0.8813167 0 0 -10.484514 3.6840658 -2.705728 -2.0424526 3.9895225 -1.8445197 1.3508251 0.7260448
  0 0 0.34951258 -0.82907003 -0.07035947 0.12106385 0.707885 -1.6791562 -0.14250249 0.24519655 0 0
  1.8655773 -1.5653006 0.69444317 0.347737 1.9455636 1.1774528 1.7754625 0.069416925 0 0 2.2372088
  -3.4065273 0.26058573 0.5766127 -6.0485277 3.1982403 -2.9536436 -0.93157333 0 0 4.051209
  -0.18365908 2.7110205 0.4195728 1.7885027 -1.633172 0.6161659 0.3472021 0 0 -6.2250247 3.8662086
  -2.8248417 -1.0187248 1.3941636 -0.8658805 0.6326548 0.22815478 0 0 -1.2337413 2.0284498 1.6097606
  -2.3801107 -0.8053558 1.3241218 1.0508119 -1.5536776 0 0 3.7693295 -1.0629079 -0.08715795
  1.4198402 3.6370955 -2.6282923 -1.5920595 3.196654 0 0 -1.2421476 0.5944607 0.2584804 -0.74620646
  -2.9897506 -0.926001 -1.5953971 0.8900939 0 0 2.5321114 -3.0088558 -2.2177608 3.5693016 -3.574062
  2.118608 1.1277629 -2.6122634 0 0 -4.888953 0.70148844 -0.5240765 -1.0698211 2.9674923 -0.42578885
  0.3181035 0.6493591 0 0 -0.29070586 -0.08238911 1.2287474 -1.7792473 -0.4366395 0.35211498
  1.1242119 -1.6377133 0 0 6.566619 -2.5446687 1.6713264 1.630341 3.115807 1.8255271 2.7751431
  -1.2032938 0 0 -2.5986195 2.0878136 0.8371248 -2.332604 -2.697605 4.657862 -0.53604305 -1.6450924
  0 0 5.72769 -3.3070526 -3.0477877 6.2546115 -1.1712378 1.6873101 0.40236178 -2.0201764 0 0
  -13.549387 4.3991175 -3.2340505 -2.6813178 6.3537173 -2.401788 1.7624934 1.2181982 0 0 2.3349807
  -4.320712 -2.3164773 3.4572747 -1.6065184 2.2148032 2.7427566 -4.0267434 0 0 -0.6164619 -2.6751335
  -0.47880188 1.5303264 11.587012 -7.5612984 -1.0559802 6.1701813 0 0 -1.1350523 -3.8692415
  -3.2830937 3.1548798 -3.8906133 -0.08260449 1.9991744 -2.864805 0 0 -3.3273995 2.0843842
  0.27130768 0.1220029 5.9330683 -3.5164154 1.0697181 1.3453032 0 0 -10.892084 5.785441 -4.231965
  -1.8956308 3.289814 -2.0958033 1.531037 0.53230333 0 0 -1.0440427 2.4765475 0.21017353 -0.36163458
  1.3679965 -3.2449899 -0.2753878 0.47384536 0 0 -5.555876 4.6357694 -2.077793 -1.0328977 5.0397816
  -0.7607096 3.1734383 0.57749903 0 0 -4.3588905 4.8011456 -1.1946113 -0.9318502 -5.624953 2.270224
  -3.0102034 -0.7928637 0 0 -6.0498676 4.565284 -2.4431157 -1.0743665 3.2400587 -1.9689467 1.4865271
  0.52570903 0 0 -2.1560848 1.3390908 -0.9784055 -0.3528431 -0.11575841 0.07189468 -0.052529786
  -0.018943856 0 0
)")

HEDDLE_EXAMPLES(tf_conv3d_backprop_filter_v2, R"(
example SAME
attr strides INTS [1, 1, 1, 1, 1]
attr padding STRING "SAME"
attr data_format STRING "NDHWC"
in input float64 [1, 2, 3, 3, 1] -0.17 0.75 0.65 0.83 -0.24 1.00 0.51 0.78 -0.70 0.56 -0.16 0.94
  0.99 -0.57 -0.16 -0.46 -0.06 -0.43
in filter_sizes int32 [5] 1 2 2 1 2
in out_backprop float64 [1, 2, 3, 3, 2] 0.33 -0.75 -0.66 -0.08 -0.85 -0.24 0.79 0.77 -0.61 -0.96
  0.66 0.92 0.20 -0.73 -0.53 0.84 0.88 -0.94 -0.63 -0.14 -0.47 0.51 -0.25 0.55 -0.70 0.04 0.95 0.40
  -0.82 -0.78 0.29 -0.25 -0.26 -0.04 0.16 0.93
out output float64 [1, 2, 2, 1, 2] -2.3714 2.6528 -0.4537 -2.4695 -0.6508 -2.0677000000000003
  0.37180000000000013 1.1964000000000001
)")

HEDDLE_EXAMPLES(tf_depthwise_conv2d_native_backprop_input, R"(
example stride 2, two outputs for each channel
attr strides INTS [1, 2, 2, 1]
attr padding STRING "SAME"
in input_sizes int32 [4] 1 4 3 2
in filter float32 [2, 3, 2, 2] -0.52 0.14 -0.47 0.09 0.46 -0.73 -0.04 0.41 -0.98 0.54 -0.16 0.01
  0.22 0.59 -0.89 0.00 -0.92 -0.23 -0.31 -0.96 -0.40 -0.10 0.31 0.85
in out_backprop float32 [1, 2, 2, 4] -0.26 0.06 0.43 0.87 0.90 0.98 -0.40 -0.67 0.86 -0.85 -0.10
  0.47 0.06 -0.22 0.85 -0.40
out output float32 [1, 4, 3, 2] -0.1634 0.3395 -0.043599978 0.067600004 -0.30140004 -0.2587 0.2254
  -0.9685 0.8742 1.2288 -1.0534 0.7672 1.0161 0.19669999 -1.3638 -0.41480002 0.18820001 -0.19800001
  -0.5957 -0.4202 -0.37559998 -0.388 -0.0045999996 0.1205
)")

HEDDLE_EXAMPLES(tf_depthwise_conv2d_native_backprop_filter, R"(
example stride 2, two outputs for each channel
attr strides INTS [1, 2, 2, 1]
attr padding STRING "SAME"
in input float64 [1, 4, 3, 2] 0.10 0.66 -0.72 -0.30 -0.01 0.13 -0.59 -0.09 -0.88 -0.82 -0.32 -0.71
  0.94 -0.47 -0.45 0.57 0.48 -0.48 0.66 0.25 -0.22 0.26 -0.51 -0.47
in filter_sizes int32 [4] 2 3 2 2
in out_backprop float64 [1, 2, 2, 4] 0.75 -0.12 0.79 -0.65 -0.73 -0.90 0.48 0.12 -0.98 -0.91 0.65
  -0.01 0.74 -0.92 0.18 -0.77
out output float64 [2, 3, 2, 2] 0.19259999999999994 1.062 -0.041400000000000006 -0.47489999999999993
  -0.4836999999999999 -1.2999999999999998 0.19190000000000013 -0.03910000000000008
  -0.09900000000000003 0.4959 0.1335 0.1893 0.47959999999999997 0.9944000000000001
  -0.34679999999999994 -0.2986 -1.2331 0.2274 -0.33399999999999996 0.3327 -0.4444 0.3058 -0.4788
  0.5304
)")
