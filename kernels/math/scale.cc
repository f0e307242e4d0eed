#include "core/operands/slot_kinds.h"
#include "kernels/elementwise/convert.h"
#include "kernels/elementwise/scalar_step.h"
#include "kernels/elementwise/tile_loop.h"
#include "kernels/elementwise/unary.h"

namespace heddle {
namespace {

constexpr int64_t kGrain = 1 << 17;

// The attributes as they are; only where nothing else decides what the kernel does.
struct ScaleState : KernelState {
  double scale = 1, bias = 0;
  bool bias_first = false;
  int64_t numel = 0;
  int64_t whole_scale = 1, whole_bias = 0;  // for int64: x * whole_scale + whole_bias
};

Result<std::unique_ptr<KernelState>> PrepareScale(PrepareContext& ctx) {
  const Value* x = ctx.InVar("X");
  if (x == nullptr || !x->is_tensor() || ctx.InVar("ScaleTensor") != nullptr)
    return std::unique_ptr<KernelState>();
  auto state = std::make_unique<ScaleState>();
  state->scale = ctx.Float("scale");
  state->bias = ctx.Float("bias");
  state->bias_first = !ctx.Bool("bias_after_scale");
  state->numel = ctx.InShape("X").numel();
  state->whole_scale = ConvertTo<int64_t>(state->scale);
  state->whole_bias = ConvertTo<int64_t>(state->bias);
  if (state->bias_first)
    state->whole_bias = static_cast<int64_t>(static_cast<uint64_t>(state->whole_bias) *
                                             static_cast<uint64_t>(state->whole_scale));
  return std::unique_ptr<KernelState>(std::move(state));
}

// x * scale + bias, where integers wrap around.
template <typename C>
C Scaled(C x, C scale, C bias) {
  if constexpr (std::is_integral_v<C> && !std::is_same_v<C, bool>) {
    using U = std::common_type_t<std::make_unsigned_t<C>, unsigned>;
    return static_cast<C>(static_cast<U>(x) * static_cast<U>(scale) + static_cast<U>(bias));
  } else {
    return static_cast<C>(x * scale + bias);
  }
}

template <typename T>
struct Scale {
  using C = ComputeType<T>;

  static Status Run(KernelContext& ctx) {
    if constexpr (std::is_same_v<T, int64_t>) {
      if (ctx.has_state() && ctx.State<ScaleState>().numel == 1) {  // a counter
        const auto& s = ctx.State<ScaleState>();
        const int64_t x = *ctx.frame()[ctx.op().in[0]]->tensor().template data<T>();
        *ctx.frame()[ctx.op().out[0]]->tensor().template mutable_data<T>() =
            Scaled(x, s.whole_scale, s.whole_bias);
        return Status::Ok();
      }
    }
    return RunAny(ctx);
  }

  [[gnu::noinline]] static Status RunAny(KernelContext& ctx) {
    if (ctx.has_state()) {
      const auto& s = ctx.State<ScaleState>();
      const C scale = ConvertTo<C>(s.scale), given = ConvertTo<C>(s.bias);
      const C bias = s.bias_first ? Scaled(given, scale, C(0)) : given;
      const Tensor& x = ctx.frame()[ctx.op().in[0]]->tensor();
      Tensor& out = ctx.frame()[ctx.op().out[0]]->tensor();
      if (s.numel == 1)  // a counter
        *out.mutable_data<T>() = static_cast<T>(Scaled(static_cast<C>(*x.data<T>()), scale, bias));
      else
        Apply(ctx, x, out, scale, bias);
      return Status::Ok();
    }
    // Integers see whole factors: 0.5 counts as 0.
    C scale = ConvertTo<C>(ctx.Float("scale"));
    C bias = ConvertTo<C>(ctx.Float("bias"));
    if (const Tensor* s = ctx.InOpt("ScaleTensor"))
      ConvertElements(ctx, s->raw(), s->dtype(), &scale, kDTypeOf<C>, 1);
    if (!ctx.Bool("bias_after_scale")) bias = Scaled(bias, scale, C(0));
    const Value& in = *ctx.InVar("X");
    if (in.is_rows()) {
      const Tensor x = in.rows().value;
      Tensor& out = AllocRowsLike(ctx, in.rows(), *ctx.OutVar("Out")).value;
      Apply(ctx, x, out, scale, bias);
    } else {
      Apply(ctx, ctx.In("X"), ctx.Out("Out"), scale, bias);
    }
    return Status::Ok();
  }

  static void Apply(KernelContext& ctx, const Tensor& x, Tensor& out, C scale, C bias) {
    const T* a = x.data<T>();
    T* y = out.mutable_data<T>();
    ctx.ParallelFor(x.numel(), kGrain, [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i)
        y[i] = static_cast<T>(Scaled(static_cast<C>(a[i]), scale, bias));
    });
  }
};

Status ScaleShape(ShapeContext& ctx) {
  if (ctx.InVar("X") == nullptr) return InvalidArgument("input X is missing");
  if (ctx.HasIn("ScaleTensor")) {
    const Shape& s = ctx.InShape("ScaleTensor");
    if (s.is_static() && s.numel() != 1)
      return InvalidArgument("ScaleTensor must hold one element, but has shape ", s.ToString());
  }
  return SameShape(ctx);
}

// scale and bias as Scale has them.
template <typename T>
struct Affine {
  T scale, bias;
  T operator()(T x) const { return x * scale + bias; }
  static Status Make(const KernelContext& attrs, TileStep* step) {
    Affine m{static_cast<T>(attrs.Float("scale")), static_cast<T>(attrs.Float("bias"))};
    if (!attrs.Bool("bias_after_scale")) m.bias *= m.scale;
    return SetTile<T, 1>(m, kGrain, step);
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(scale) {
  op.Doc("scale * x + bias, or scale * (x + bias).")
      .Input("X", kAnyKind | kTakesRows)
      .Input("ScaleTensor", kOptional);
  op.Output("Out", kTakesRows).Attr("scale", 1.0).Attr("bias", 0.0).Attr("bias_after_scale", true);
  op.Inplace("X", "Out").Traits(kElementwise).InferShape(ScaleShape);
  op.Prepare(PrepareScale);
  op.Kernels<Scale, float, double, bool, int32_t, int64_t, uint8_t, int8_t, int16_t, float16,
             bfloat16, complex64, complex128>();
}

HEDDLE_SCALAR(scale) = {1, [](const KernelContext& attrs, DType dtype, ScalarStep* step) {
                          return attrs.Float("scale") != 1
                                     ? ScalarStep::Fn()
                                     : MakeAddNumber(attrs.Float("bias"), dtype, step);
                        }};

HEDDLE_TILE(scale) { return {1, &Affine<float>::Make, &Affine<double>::Make}; }

HEDDLE_EXAMPLES(scale, R"(
example float32 2x4, bias 3, scale 2
attr bias FLOAT 3.0
attr scale FLOAT 2.0
in X float32 [2, 4] 0.108 0.43 0.751 0.537 0.216 0.858 0.323 0.644
out Out float32 [2, 4] 3.216 3.8600001 4.502 4.074 3.432 4.716 3.646 4.288

example float64 2, bias 0.614934, scale 0.241695
attr bias FLOAT 0.61493397
attr scale FLOAT 0.24169523
in ScaleTensor float64 [1] 1.7
in X float64 [2] -0.657 -0.606
out Out float64 [2] -0.501966032409668 -0.415266032409668

example float64 3x4 rows, scale 2
attr scale FLOAT 2.0
in X float64 [3, 4] rows [0, 4, 7] height 10 0.156 0.597 0.744 0.45 0.082 0.891 0.818 0.671 0.303
  0.377 0.229 0.524
out Out float64 [3, 4] rows [0, 4, 7] height 10 0.312 1.194 1.488 0.9 0.164 1.782 1.636 1.342 0.606
  0.754 0.458 1.048

example float32 2x4x3, bias 0.0305735, scale -1.16477
attr bias FLOAT 0.030573465
attr scale FLOAT -1.1647675
in X float32 [2, 4, 3] 0.62 -0.54 0.16 0 -0.15 -0.07 0.47 -0.46 0.86 -0.92 0.78 0.08 0.7 0.24 -0.85
  -0.61 -0.23 -0.69 0.31 -0.77 -0.3 0.55 0.39 -0.38
out Out float32 [2, 4, 3] -0.6915824 0.659548 -0.15578935 0.030573465 0.20528859 0.11210719
  -0.5168672 0.56636655 -0.97112656 1.1021596 -0.8779451 -0.06260794 -0.78476375 -0.24897075
  1.0206258 0.74108166 0.29847 0.8342631 -0.33050448 0.92744446 0.38000372 -0.61004865 -0.42368585
  0.4731851

example int32 2x4, bias 3, scale 2
attr bias FLOAT 3.0
attr scale FLOAT 2.0
in X int32 [2, 4] 1 1 0 0 1 1 0 1
out Out int32 [2, 4] 5 5 3 3 5 5 3 5

example int64 2x4, bias 3, scale 2
attr bias FLOAT 3.0
attr scale FLOAT 2.0
in X int64 [2, 4] 1 1 0 0 1 1 0 1
out Out int64 [2, 4] 5 5 3 3 5 5 3 5

example int64 1, whole factors
attr bias FLOAT -1.5
attr scale FLOAT 2.7
in X int64 [1] -5
out Out int64 [1] -11

example int64 1, whole factors, bias first
attr bias FLOAT -1.5
attr bias_after_scale BOOLEAN false
attr scale FLOAT 2.7
in X int64 [1] -5
out Out int64 [1] -12

example complex64 2x4, bias 3, scale 2
attr bias FLOAT 3.0
attr scale FLOAT 2.0
in X complex64 [2, 4] 0.108+0.8j 0.43+0.3j 0.751+0.5j 0.537-0.7j 0.216-0.8j 0.858+0.6j 0.323-0.3j
  0.644+0.1j
out Out complex64 [2, 4] 3.216+1.6j 3.8600001+0.6j 4.502+1j 4.074-1.4j 3.432-1.6j 4.716+1.2j
  3.646-0.6j 4.288+0.2j

example bfloat16 2x4, bias 3, scale 2
attr bias FLOAT 3.0
attr scale FLOAT 2.0
in X bfloat16 [2, 4] 0.108 0.43 0.75 0.535 0.216 0.86 0.322 0.645
out Out bfloat16 [2, 4] 3.2 3.86 4.5 4.06 3.42 4.72 3.64 4.28

example float16 2x4, bias 3, scale 2
attr bias FLOAT 3.0
attr scale FLOAT 2.0
in X float16 [2, 4] 0.108 0.43 0.751 0.537 0.216 0.858 0.323 0.644
out Out float16 [2, 4] 3.215 3.86 4.5 4.074 3.432 4.715 3.645 4.285

example bool 2x4, bias 3, scale 2
attr bias FLOAT 3.0
attr scale FLOAT 2.0
in X bool [2, 4] 1*8
out Out bool [2, 4] 1*8

example complex64, a complex factor
attr bias FLOAT 1.5
in X complex64 [2] 1+2j 3-1j
in ScaleTensor complex64 [1] 0.5+2j
out Out complex64 [2] -2+3j 5+5.5j

example int64, a factor that no double holds
in X int64 [2] 1 -1
in ScaleTensor int64 [1] 4611686018427387905
out Out int64 [2] 4611686018427387905 -4611686018427387905
)")
