#include <cmath>

#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

Status Infer(ShapeContext& ctx) {
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
    for (int64_t k = 0; k < half; ++k) {
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
    for (int64_t i = 0; i < SequenceCount(*offsets); ++i) {
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
    for (int64_t i = 0, n = d.numel(); i < n; ++i) dx[i] = d.data<T>()[i] * alpha;
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
      .InferShape(Infer)
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
