#include <algorithm>

#include "core/interrupts.h"
#include "core/shapes.h"

namespace heddle {
namespace {

constexpr int64_t kGrain = 65536;

// (1 - epsilon) * X + epsilon * the prior distribution (uniform when none is given).
template <typename T>
struct LabelSmooth {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const Tensor* prior = ctx.InOpt("PriorDist");
    T* out = ctx.Out("Out").template mutable_data<T>();
    const T* in = x.data<T>();
    const int64_t classes = x.rank() == 0 ? 1 : x.dim(-1);
    // The attribute is a float, and Paddle computes with it as one.
    const auto share_of_prior = static_cast<float>(ctx.Float("epsilon"));
    const T epsilon = static_cast<T>(share_of_prior), keep = static_cast<T>(1 - share_of_prior);
    if (prior == nullptr) {
      const T share =
          static_cast<T>(share_of_prior / static_cast<float>(std::max<int64_t>(1, classes)));
      ctx.ParallelFor(x.numel(), kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) out[i] = keep * in[i] + share;
      });
      return Status::Ok();
    }
    if (prior->numel() != classes || prior->dtype() != x.dtype())
      return InvalidArgument("'PriorDist' (", Name(prior->dtype()), " ", prior->shape().ToString(),
                             ") does not fit 'X' (", Name(x.dtype()), " ", x.shape().ToString(),
                             ")");
    const T* p = prior->data<T>();
    const int64_t rows = classes == 0 ? 0 : x.numel() / classes;
    const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, classes));
    ctx.ParallelFor(rows, grain, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r)
        for (const auto piece : Stretches(classes))
          for (int64_t j = piece.begin; j < piece.end; ++j)
            out[r * classes + j] = keep * in[r * classes + j] + epsilon * p[j];
    });
    return Status::Ok();
  }
};

template <typename T>
struct LabelSmoothGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& grad = ctx.In("Out@GRAD");
    const T* in = grad.data<T>();
    T* out = ctx.Out("X@GRAD").template mutable_data<T>();
    const T keep = static_cast<T>(1 - static_cast<float>(ctx.Float("epsilon")));
    ctx.ParallelFor(grad.numel(), kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) out[i] = keep * in[i];
    });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(label_smooth) {
  op.Doc("Labels mixed with a share `epsilon` of a prior (by default uniform) distribution.")
      .Input("X")
      .Input("PriorDist", kOptional)
      .Output("Out")
      .Attr("epsilon", 0.0)
      .Inplace("X", "Out")
      .InferShape(SameShape)
      .Kernels<LabelSmooth, float, double>();
}
HEDDLE_OP(label_smooth_grad) {
  op.Input("Out@GRAD")
      .Output("X@GRAD")
      .Attr("epsilon", 0.0)
      .Inplace("Out@GRAD", "X@GRAD")
      .InferShape(SameShape)
      .Kernels<LabelSmoothGrad, float, double>();
}
