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
