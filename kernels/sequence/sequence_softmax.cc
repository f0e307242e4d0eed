#include <cmath>

#include "core/interrupts.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

template <typename T>
struct SequenceSoftmax {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const Offsets* const offsets, OffsetsOf(in, "X"));
    if (in.numel() != in.dim(0))
      return InvalidArgument("X must be [N] or [N, 1], not ", in.shape().ToString());
    const T* x = in.data<T>();
    T* out = ctx.Out("Out").template mutable_data<T>();
    for (const int64_t i : Watched(SequenceCount(*offsets))) {
      const int64_t begin = Begin(*offsets, i), end = Begin(*offsets, i + 1);
      if (begin == end) continue;
      T top = x[begin], sum = 0;
      for (int64_t k = begin; k < end; ++k) top = std::max(top, x[k]);
      for (int64_t k = begin; k < end; ++k) sum += out[k] = std::exp(x[k] - top);
      for (int64_t k = begin; k < end; ++k) out[k] /= sum;
    }
    return Status::Ok();
  }
};

// The sequences are those of X; only their offsets are read of it.
template <typename T>
struct SequenceSoftmaxGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &y_in = ctx.In("Out"), &dy_in = ctx.In("Out@GRAD");
    HEDDLE_ASSIGN_OR_RETURN(const Offsets* const offsets, OffsetsOf(x, "X"));
    if (y_in.numel() != x.numel() || dy_in.numel() != x.numel() || x.numel() != x.dim(0))
      return InvalidArgument("Out and Out@GRAD must have the shape of X ", x.shape().ToString());
    const T *y = y_in.data<T>(), *dy = dy_in.data<T>();
    T* dx = ctx.Out("X@GRAD").template mutable_data<T>();
    for (const int64_t i : Watched(SequenceCount(*offsets))) {
      const int64_t begin = Begin(*offsets, i), end = Begin(*offsets, i + 1);
      T dot = 0;
      for (int64_t k = begin; k < end; ++k) dot += y[k] * dy[k];
      for (int64_t k = begin; k < end; ++k) dx[k] = y[k] * (dy[k] - dot);
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(sequence_softmax) {
  op.Doc("softmax within each sequence")
      .Input("X")
      .Output("Out")
      .Attr("data_format", "AnyLayout")
      .InferShape(SameShape)
      .Kernels<SequenceSoftmax, float, double>();
}

HEDDLE_OP(sequence_softmax_grad) {
  op.Input("X", kNoBuffer)
      .Input("Out")
      .Input("Out@GRAD")
      .Output("X@GRAD")
      .Attr("data_format", "AnyLayout")
      .InferShape(SequenceGradLikeX)
      .Kernels<SequenceSoftmaxGrad, float, double>();
}

HEDDLE_EXAMPLES(sequence_softmax, R"(
example float32 4x1, data_format AnyLayout
attr data_format STRING "AnyLayout"
in X float32 [4, 1] lod [[0, 4]] -0.61 -0.18 0.04 -0.39
out Out float32 [4, 1] lod [[0, 4]] 0.17547321 0.26974753 0.33612612 0.2186531

example float64 4x1, data_format AnyLayout
attr data_format STRING "AnyLayout"
in X float64 [4, 1] lod [[0, 4]] -0.61 -0.18 0.04 -0.39
out Out float64 [4, 1] lod [[0, 4]] 0.17547322680519906 0.2697475380875862 0.3361261303441744
  0.21865310476304037
)")

HEDDLE_EXAMPLES(sequence_softmax_grad, R"(
example float64 4x1, data_format AnyLayout
attr data_format STRING "AnyLayout"
in Out float64 [4, 1] lod [[0, 4]] 0.17547322680519906 0.2697475380875862 0.3361261303441744
  0.21865310476304037
in Out@GRAD float64 [4, 1] lod [[0, 4]] -0.8 -0.3 0.7 -0.8
in X float64 [4, 1] lod [[0, 4]] -0.61 -0.18 0.04 -0.39
out X@GRAD float64 [4, 1] lod [[0, 4]] -0.11213844052304937 -0.03751189232923599 0.28938343419241414
  -0.1397331013401288

example float64 3x1, data_format AnyLayout
attr data_format STRING "AnyLayout"
in Out float64 [3, 1] lod [[0, 2, 3]] 0.7310585786300049 0.26894142136999516 1
in Out@GRAD float64 [3, 1] 0.2 0.4 -0.4
in X float64 [3, 1] lod [[0, 2, 3]] 0.24 -0.76 0.79
out X@GRAD float64 [3, 1] lod [[0, 2, 3]] -0.03932238664829636 0.03932238664829638 0

example float32 4x1, data_format AnyLayout
attr data_format STRING "AnyLayout"
in Out float32 [4, 1] lod [[0, 4]] 0.17547323 0.26974753 0.33612612 0.2186531
in Out@GRAD float32 [4, 1] lod [[0, 4]] -0.8 -0.3 0.7 -0.8
in X float32 [4, 1] lod [[0, 4]] -0.61 -0.18 0.04 -0.39
out X@GRAD float32 [4, 1] lod [[0, 4]] -0.11213845 -0.037511893 0.2893834 -0.1397331
)")
