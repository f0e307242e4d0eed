#include "kernels/elementwise/convert.h"
#include "kernels/elementwise/tile_loop.h"
#include "kernels/elementwise/unary.h"

namespace heddle {
namespace {

constexpr int64_t kGrain = 1 << 17;

template <typename T>
struct Scale {
  using C = ComputeType<T>;

  static Status Run(KernelContext& ctx) {
    // Integers see whole factors: 0.5 counts as 0.
    C scale = ConvertTo<C>(ctx.Float("scale"));
    C bias = ConvertTo<C>(ctx.Float("bias"));
    if (const Tensor* s = ctx.InOpt("ScaleTensor")) scale = ConvertTo<C>(ScalarOf(*s));
    if (!ctx.Bool("bias_after_scale")) bias = static_cast<C>(bias * scale);
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
        y[i] = static_cast<T>(static_cast<C>(static_cast<C>(a[i]) * scale + bias));
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
  op.Doc("scale * x + bias, or scale * (x + bias).").Input("X").Input("ScaleTensor", kOptional);
  op.Output("Out").Attr("scale", 1.0).Attr("bias", 0.0).Attr("bias_after_scale", true);
  op.Inplace("X", "Out").Traits(kElementwise).InferShape(ScaleShape);
  op.Kernels<Scale, float, double, int32_t, int64_t, uint8_t, int8_t, int16_t, float16, bfloat16,
             complex64, complex128>();
}

HEDDLE_TILE(scale) { return {1, &Affine<float>::Make, &Affine<double>::Make}; }
