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
