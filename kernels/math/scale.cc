#include "core/operands/slot_kinds.h"
#include "kernels/base/convert.h"
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
