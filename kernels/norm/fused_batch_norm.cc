// heddle's own: what is left of an inference batch_norm, with the activation after it. The fusion
// passes make it.
#include <algorithm>

#include "core/shapes.h"
#include "core/threads/look_meter.h"
#include "kernels/base/check.h"
#include "kernels/gemm/gemm_epilogue.h"
#include "kernels/simd/fast_math.h"

namespace heddle {
namespace {

struct State final : KernelState {
  Epilogue epilogue;
};

bool ChannelsLast(const OpContext& ctx) { return ctx.Str("data_layout") == "NHWC"; }

Status InferShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  if (x.rank() < 2) return InvalidArgument("X has shape ", x.ToString(), ", no channels");
  const int64_t channels = x.dim(ChannelsLast(ctx) ? -1 : 1);
  for (const Shape& s : {ctx.InShape("Scale"), ctx.InShape("Bias")})
    if (s.is_static() && channels >= 0 && s.numel() != channels)
      return InvalidArgument("Scale or Bias has shape ", s.ToString(), ", X ", channels,
                             " channels");
  ctx.SetOut("Y", x, ctx.InDType("X"));
  ctx.ShareLoD("X", "Y");
  return Status::Ok();
}

Result<std::unique_ptr<KernelState>> Prepare(PrepareContext& ctx) {
  auto state = std::make_unique<State>();
  HEDDLE_ASSIGN_OR_RETURN(state->epilogue,
                          ParseEpilogue(ctx.Str("fuse_activation"), ctx.Float("fuse_alpha"),
                                        ctx.Float("fuse_beta"), false, false));
  return std::unique_ptr<KernelState>(std::move(state));
}

// y[i] = x[i] scale(i) + bias(i), and relu of it at once. x may be y.
template <Activation kActivation, typename Scale, typename Bias>
inline void Affine(int64_t n, const float* x, Scale scale, Bias bias, float* y) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const float v = x[i] * scale(i) + bias(i);
    y[i] = kActivation == Activation::kRelu           ? fast::Select(v > 0.f, v, 0.f)
           : kActivation == Activation::kReluKeepsNan ? fast::Select(v < 0.f, 0.f, v)
                                                      : v;
  }
}
template <typename Scale, typename Bias>
inline void Line(const Epilogue& e, int64_t n, const float* x, Scale scale, Bias bias, float* y) {
  if (e.activation == Activation::kRelu) return Affine<Activation::kRelu>(n, x, scale, bias, y);
  if (e.activation == Activation::kReluKeepsNan)
    return Affine<Activation::kReluKeepsNan>(n, x, scale, bias, y);
  Affine<Activation::kNone>(n, x, scale, bias, y);
  ApplyEpilogue(e, 1, n, n, nullptr, false, y);
}

Status Run(KernelContext& ctx) {
  const Tensor& in = ctx.In("X");
  Tensor& out = ctx.Out("Y");
  HEDDLE_RETURN_IF_ERROR(CheckDType(DType::kF32, {&in, &ctx.In("Scale"), &ctx.In("Bias")}));
  if (in.numel() == 0) return Status::Ok();
  const Epilogue& e = ctx.State<State>().epilogue;
  const float *x = in.data<float>(), *scale = ctx.In("Scale").data<float>(),
              *bias = ctx.In("Bias").data<float>();
  float* y = out.mutable_data<float>();
  constexpr int64_t kGrain = 1 << 15;
  constexpr int64_t kLine = 4096;  // stays in the first cache between the two loops over it
  if (ChannelsLast(ctx)) {
    const int64_t channels = in.dim(-1);
    ctx.ParallelFor(in.numel() / channels, 1 + kGrain / channels, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        Line(
            e, channels, x + row * channels, [scale](int64_t c) { return scale[c]; },
            [bias](int64_t c) { return bias[c]; }, y + row * channels);
    });
    return Status::Ok();
  }
  const int64_t channels = in.dim(1), size = in.shape().Product(2, in.rank());
  ctx.ParallelFor(in.dim(0) * channels, 1 + kGrain / size, [&](int64_t begin, int64_t end) {
    LookMeter meter;
    for (int64_t p = begin; p < end; ++p) {
      const float k = scale[p % channels], b = bias[p % channels];
      for (int64_t at = p * size; at < (p + 1) * size; at += kLine) {
        meter.Did(kLine);
        Line(
            e, std::min(kLine, (p + 1) * size - at), x + at, [k](int64_t) { return k; },
            [b](int64_t) { return b; }, y + at);
      }
    }
  });
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(fused_batch_norm) {
  op.Doc("activation(X times Scale plus Bias, per channel); fuse_activation as in fused_conv2d");
  op.Input("X").Input("Scale").Input("Bias").Output("Y");
  op.Attr("data_layout", "NCHW");
  op.Attr("fuse_activation", "").Attr("fuse_alpha", 0.0).Attr("fuse_beta", 0.0);
  op.Traits(kChannelsLast).Inplace("X", "Y").InferShape(InferShape).Prepare(Prepare);
  op.Kernel(DType::kF32, Run);
}

HEDDLE_EXAMPLES(fused_batch_norm, R"(
example relu
attr fuse_activation STRING "relu"
in X float32 [2, 2, 2, 1] 0.94 -0.1 -1.11 -0.84 -0.57 1.14 -1.67 -0.84
in Scale float32 [2] 1.4 1.27
in Bias float32 [2] -0.63 0.59
from elementwise_mul X=X Y=Scale -> Out=t
attr axis INT 1
from elementwise_add X=t Y=Bias -> Out=u
attr axis INT 1
from relu X=u -> Out=Y
out Y float32 [2, 2, 2, 1] 0.686 0*4 0.96599996 0 0

example leaky_relu
attr fuse_activation STRING "leaky_relu"
attr fuse_alpha FLOAT 0.2
in X float32 [2, 2, 2, 1] 1.64 -1.69 0.2 1.83 -1.61 1.73 -1.4 -0.95
in Scale float32 [2] 1.89 0.92
in Bias float32 [2] -0.95 0.36
from elementwise_mul X=X Y=Scale -> Out=t
attr axis INT 1
from elementwise_add X=t Y=Bias -> Out=u
attr axis INT 1
from leaky_relu X=u -> Out=Y
attr alpha FLOAT 0.2
out Y float32 [2, 2, 2, 1] 2.1495998 -0.82882005 0.544 2.0436 -0.79858005 2.3197 -0.1856
  -0.102800004

example clip
attr fuse_activation STRING "clip"
attr fuse_alpha FLOAT -0.5
attr fuse_beta FLOAT 0.4
in X float32 [2, 2, 2, 1] 1.96 -1.08 -1.26 0.26 -1.93 -0.09 -0.84 -0.39
in Scale float32 [2] 1.66 1.11
in Bias float32 [2] -0.36 -0.36
from elementwise_mul X=X Y=Scale -> Out=t
attr axis INT 1
from elementwise_add X=t Y=Bias -> Out=u
attr axis INT 1
from clip X=u -> Out=Y
attr min FLOAT -0.5
attr max FLOAT 0.4
out Y float32 [2, 2, 2, 1] 0.4 -0.5 -0.5 -0.07140002 -0.5*4

example hard_swish
attr fuse_activation STRING "hard_swish"
attr fuse_alpha FLOAT 0.0
attr fuse_beta FLOAT 0.0
in X float32 [2, 2, 2, 1] 0.7 -1.98 1.63 -0.17 0.16 1.84 -0.32 -1.66
in Scale float32 [2] 1.19 1.18
in Bias float32 [2] -0.6 0.93
from elementwise_mul X=X Y=Scale -> Out=t
attr axis INT 1
from elementwise_add X=t Y=Bias -> Out=u
attr axis INT 1
from hard_swish X=u -> Out=Y
out Y float32 [2, 2, 2, 1] 0.12554815 -0.021580199 2.7836819 0.45337078 -0.17683798 1.2159382
  0.32705763 -0.33799505

example swish
attr fuse_activation STRING "swish"
in X float32 [2, 2, 2, 1] 1.54 1.33 1.61 -1.11 -1.31 0.92 0.4 -0.1
in Scale float32 [2] 0.77 0.62
in Bias float32 [2] -0.48 -0.5
from elementwise_mul X=X Y=Scale -> Out=t
attr axis INT 1
from elementwise_add X=t Y=Bias -> Out=u
attr axis INT 1
from swish X=u -> Out=Y
attr beta FLOAT 1
out Y float32 [2, 2, 2, 1] 0.4725136 0.34428784 0.30989844 -0.27754095 -0.27409488 0.12718524
  -0.110207476 -0.20405367

example gelu
attr fuse_activation STRING "gelu"
in X float32 [2, 2, 2, 1] 0.53 -1.32 1.33 1.43 -0.11 -1.05 -0.54 1.9
in Scale float32 [2] 0.51 1.19
in Bias float32 [2] -0.6 0.38
from elementwise_mul X=X Y=Scale -> Out=t
attr axis INT 1
from elementwise_add X=t Y=Bias -> Out=u
attr axis INT 1
from gelu X=u -> Out=Y
out Y float32 [2, 2, 2, 1] -0.122257166 -0.1291961 1.9139457 2.0428033 -0.1678828 -0.1454382
  -0.10410239 2.6300848

example sigmoid
attr fuse_activation STRING "sigmoid"
in X float32 [2, 2, 2, 1] 0.54 1.56 -0.73 -1.15 -1.68 -1.85 0.12 -0.12
in Scale float32 [2] 1.47 1
in Bias float32 [2] -0.02 -0.78
from elementwise_mul X=X Y=Scale -> Out=t
attr axis INT 1
from elementwise_add X=t Y=Bias -> Out=u
attr axis INT 1
from sigmoid X=u -> Out=Y
out Y float32 [2, 2, 2, 1] 0.6843423 0.9066331 0.1809388 0.12675059 0.076590486 0.060682394
  0.3407396 0.2890505

example tanh
attr fuse_activation STRING "tanh"
in X float32 [2, 2, 2, 1] 0.02 -1 -1.33 1.44 -0.88 1.11 1.57 -1.68
in Scale float32 [2] 1.51 1.43
in Bias float32 [2] 0.12 -0.29
from elementwise_mul X=X Y=Scale -> Out=t
attr axis INT 1
from elementwise_add X=t Y=Bias -> Out=u
attr axis INT 1
from tanh X=u -> Out=Y
out Y float32 [2, 2, 2, 1] 0.14908059 -0.88317084 -0.97535175 0.9435218 -0.8363192 0.9464005
  0.96071416 -0.9908704

example hard_sigmoid
attr fuse_activation STRING "hard_sigmoid"
in X float32 [2, 2, 2, 1] 0.4 -0.2 0.88 1.11 -0.55 -0.53 0.81 -0.2
in Scale float32 [2] 1.82 1.24
in Bias float32 [2] -0.56 0.07
from elementwise_mul X=X Y=Scale -> Out=t
attr axis INT 1
from elementwise_add X=t Y=Bias -> Out=u
attr axis INT 1
from hard_sigmoid X=u -> Out=Y
out Y float32 [2, 2, 2, 1] 0.53360003 0.31519997 0.73224 0.78928006 0.18779996 0.19507998 0.71488
  0.4644

example channels last
attr data_layout STRING "NHWC"
in X float32 [1, 2, 2, 3] -1.12 -0.7 -0.22 -1.57 -1.43 -0.32 -1.59 1.12 -0.44 1.85 0.37 0.93
in Scale float32 [3] 1.26 1.87 0.58
in Bias float32 [3] 0.46 -0.81 -0.29
from elementwise_mul X=X Y=Scale -> Out=t
attr axis INT 3
from elementwise_add X=t Y=Bias -> Out=Y
attr axis INT 3
out Y float32 [1, 2, 2, 3] -0.9512 -2.119 -0.41759998 -1.5182 -3.4840999 -0.4756 -1.5434 1.2844
  -0.5452 2.7910001 -0.11809999 0.24939999
)")
