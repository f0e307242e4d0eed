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

HEDDLE_EXAMPLES(label_smooth, R"(
example float64 4x3, epsilon 0.1
attr epsilon FLOAT 0.1
in PriorDist float64 [1, 3] 0.684 0.436 0.221
in X float64 [4, 3] 1*5 0 1*5 0
out Out float64 [4, 3] 0.9683999771773815 0.9435999768078327 0.9220999764874578 0.9683999771773815
  0.9435999768078327 0.022100000329315663 0.9683999771773815 0.9435999768078327 0.9220999764874578
  0.9683999771773815 0.9435999768078327 0.022100000329315663

example float32 2x3x1, epsilon 0.1
attr epsilon FLOAT 0.1
in X float32 [2, 3, 1] -0.46 1.03 0.04 1.53 -0.95 0.54
out Out float32 [2, 3, 1] -0.314 1.027 0.136 1.477 -0.75499994 0.586

example float32 1x6, epsilon 0.257171
attr epsilon FLOAT 0.2571714
in X float32 [1, 6] 0.5 0.262 0.381 0.619 0.143 0.738
out Out float32 [1, 6] 0.4142762 0.23748298 0.3258796 0.5026728 0.14908639 0.5910694

example float64 2x4x3, epsilon 0.1
attr epsilon FLOAT 0.1
in X float64 [2, 4, 3] 1 1 0 1 1 0 1 0 1 1 0 1 1 0 0 1 1 1 0 0 1 1 1 0
out Out float64 [2, 4, 3] 0.9333333112299442 0.9333333112299442 0.03333333507180214
  0.9333333112299442 0.9333333112299442 0.03333333507180214 0.9333333112299442 0.03333333507180214
  0.9333333112299442 0.9333333112299442 0.03333333507180214 0.9333333112299442 0.9333333112299442
  0.03333333507180214 0.03333333507180214 0.9333333112299442 0.9333333112299442 0.9333333112299442
  0.03333333507180214 0.03333333507180214 0.9333333112299442 0.9333333112299442 0.9333333112299442
  0.03333333507180214
)")

HEDDLE_EXAMPLES(label_smooth_grad, R"(
example float64 1x6, epsilon 0.257171
attr epsilon FLOAT 0.2571714
in Out@GRAD float64 [1, 6] 0.9 -0.1 -0.6 0.2 0.2 0.4
out X@GRAD float64 [1, 6] 0.6685457468032837 -0.07428286075592042 -0.44569716453552244
  0.14856572151184083 0.14856572151184083 0.29713144302368166

example float64 2x4x3, epsilon 0.1
attr epsilon FLOAT 0.1
in Out@GRAD float64 [2, 4, 3] -0.8 0.9 -0 -0.5 0.1 -0.4 0.7 -0.9 -0.8 0.5 -0.9 0.6 -1 0.2 0.6 0.8 1
  -0 -0.3 0.7 -0.2 0.3 -1 0.6
out X@GRAD float64 [2, 4, 3] -0.7199999809265137 0.8099999785423279 -0 -0.44999998807907104
  0.08999999761581422 -0.35999999046325687 0.6299999833106994 -0.8099999785423279
  -0.7199999809265137 0.44999998807907104 -0.8099999785423279 0.5399999856948853 -0.8999999761581421
  0.17999999523162843 0.5399999856948853 0.7199999809265137 0.8999999761581421 -0
  -0.26999999284744264 0.6299999833106994 -0.17999999523162843 0.26999999284744264
  -0.8999999761581421 0.5399999856948853

example float32 1x6, epsilon 0.257171
attr epsilon FLOAT 0.2571714
in Out@GRAD float32 [1, 6] 0.9 -0.1 -0.6 0.2 0.2 0.4
out X@GRAD float32 [1, 6] 0.6685457 -0.07428286 -0.4456972 0.14856572 0.14856572 0.29713145
)")
