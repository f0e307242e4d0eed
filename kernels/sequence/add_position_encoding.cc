#include <cmath>

#include "core/interrupts.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

Status InferEncoded(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (x.known_rank() && x.rank() != 2 && x.rank() != 3)
    return InvalidArgument("X must be [N, L, D], or sequences [T, D], not ", x.ToString());
  if (x.known_rank() && x.dim(-1) % 2 != 0 && x.dim(-1) >= 0)
    return InvalidArgument("X's last axis must be even, not ", x.dim(-1));
  return SameShape(ctx);
}

template <typename T>
void Encode(const T* x, int64_t rows, int64_t width, T alpha, T beta, T* out) {
  const int64_t half = width / 2;
  for (int64_t pos = 0; pos < rows; ++pos, x += width, out += width)
    for (const int64_t k : Watched(half)) {
      const double power = half > 1 ? static_cast<double>(k) / static_cast<double>(half - 1) : 1.0;
      const double angle = static_cast<double>(pos) / std::pow(10000.0, power);
      out[k] = x[k] * alpha + static_cast<T>(std::sin(angle)) * beta;
      out[half + k] = x[half + k] * alpha + static_cast<T>(std::cos(angle)) * beta;
    }
}

template <typename T>
struct AddPositionEncoding {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const T alpha = static_cast<T>(ctx.Float("alpha")), beta = static_cast<T>(ctx.Float("beta"));
    T* out = ctx.Out("Out").template mutable_data<T>();
    const int64_t width = x.dim(-1);
    if (x.rank() == 3) {
      for (int64_t i = 0, step = x.dim(1) * width; i < x.dim(0); ++i)
        Encode(x.data<T>() + i * step, x.dim(1), width, alpha, beta, out + i * step);
      return Status::Ok();
    }
    HEDDLE_ASSIGN_OR_RETURN(const Offsets* const offsets, OffsetsOf(x, "X"));
    for (const int64_t i : Watched(SequenceCount(*offsets))) {
      const int64_t at = Begin(*offsets, i) * width;
      Encode(x.data<T>() + at, Length(*offsets, i), width, alpha, beta, out + at);
    }
    return Status::Ok();
  }
};

template <typename T>
struct AddPositionEncodingGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& d = ctx.In("Out@GRAD");
    const T alpha = static_cast<T>(ctx.Float("alpha"));
    T* dx = ctx.Out("X@GRAD").template mutable_data<T>();
    for (const auto part : Stretches(d.numel()))
      for (int64_t i = part.begin; i < part.end; ++i) dx[i] = d.data<T>()[i] * alpha;
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(add_position_encoding) {
  op.Doc("alpha X + beta times sines and cosines of the position")
      .Input("X")
      .Output("Out")
      .Attr("alpha", 1.0)
      .Attr("beta", 1.0)
      .InferShape(InferEncoded)
      .Kernels<AddPositionEncoding, float, double>();
}

HEDDLE_OP(add_position_encoding_grad) {
  op.Input("Out@GRAD")
      .Output("X@GRAD")
      .Attr("alpha", 1.0)
      .Attr("beta", 1.0)
      .Inplace("Out@GRAD", "X@GRAD")
      .InferShape(SameShape)
      .Kernels<AddPositionEncodingGrad, float, double>();
}

HEDDLE_EXAMPLES(add_position_encoding, R"(
example float64 2x3x4, alpha 0.6, beta 0.5
attr alpha FLOAT 0.6
attr beta FLOAT 0.5
in X float64 [2, 3, 4] 0.32 0.925 0.249 0.356 0.961 0.854 0.213 0.747 0.783 0.712 0.641 0.498 0.676
  0.285 0.534 0.569 0.463 0.427 0.605 0.89 0.178 0.142 0.391 0.819
out Out float64 [2, 3, 4] 0.19200000762939454 0.5550000220537186 0.6494000059366226
  0.7136000084877014 0.9973355153159736 0.5124500203608633 0.3979511580123856 0.9482000153098679
  0.9244487320810156 0.4273000169747362 0.17652659700905973 0.7988000018732453 0.40560001611709595
  0.1710000067949295 0.8204000127315522 0.8414000135660171 0.6985355034427285 0.25625001018039
  0.6331511673583938 1.0340000187192535 0.5614487176566916 0.08530000338487714 0.026526591048595255
  0.9914000095264817

example float32 2x3x4, alpha 0.6, beta 0.5
attr alpha FLOAT 0.6
attr beta FLOAT 0.5
in X float32 [2, 3, 4] 0.32 0.925 0.249 0.356 0.961 0.854 0.213 0.747 0.783 0.712 0.641 0.498 0.676
  0.285 0.534 0.569 0.463 0.427 0.605 0.89 0.178 0.142 0.391 0.819
out Out float32 [2, 3, 4] 0.192 0.555 0.6494 0.71360004 0.9973355 0.51245004 0.39795116 0.9482
  0.9244487 0.4273 0.17652659 0.7988 0.4056 0.171 0.8204 0.8414 0.6985355 0.25625002 0.6331512 1.034
  0.5614487 0.085300006 0.026526589 0.9914
)")

HEDDLE_EXAMPLES(add_position_encoding_grad, R"(
example float64 2x3x4, alpha 0.6, beta 0.5
attr alpha FLOAT 0.6
attr beta FLOAT 0.5
in Out@GRAD float64 [2, 3, 4] -0.8 0.9 -0 -0.5 0.1 -0.4 0.7 -0.9 -0.8 0.5 -0.9 0.6 -1 0.2 0.6 0.8 1
  -0 -0.3 0.7 -0.2 0.3 -1 0.6
out X@GRAD float64 [2, 3, 4] -0.48000001907348633 0.5400000214576721 -0 -0.30000001192092896
  0.06000000238418579 -0.24000000953674316 0.42000001668930054 -0.5400000214576721
  -0.48000001907348633 0.30000001192092896 -0.5400000214576721 0.36000001430511475
  -0.6000000238418579 0.12000000476837158 0.36000001430511475 0.48000001907348633 0.6000000238418579
  -0 -0.18000000715255737 0.42000001668930054 -0.12000000476837158 0.18000000715255737
  -0.6000000238418579 0.36000001430511475

example float32 2x3x4, alpha 0.6, beta 0.5
attr alpha FLOAT 0.6
attr beta FLOAT 0.5
in Out@GRAD float32 [2, 3, 4] -0.8 0.9 -0 -0.5 0.1 -0.4 0.7 -0.9 -0.8 0.5 -0.9 0.6 -1 0.2 0.6 0.8 1
  -0 -0.3 0.7 -0.2 0.3 -1 0.6
out X@GRAD float32 [2, 3, 4] -0.48000002 0.54 -0 -0.3 0.060000002 -0.24000001 0.42000002 -0.54
  -0.48000002 0.3 -0.54 0.36 -0.6 0.120000005 0.36 0.48000002 0.6 -0 -0.18 0.42000002 -0.120000005
  0.18 -0.6 0.36
)")
