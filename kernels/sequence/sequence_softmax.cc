#include <cmath>

#include "core/interrupts.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

// A sequence may be long.
template <typename Fn>
void EachOf(int64_t begin, int64_t end, const Fn& fn) {
  for (const auto part : Stretches(Stretches::Range{begin, end}))
    for (int64_t k = part.begin; k < part.end; ++k) fn(k);
}

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
      EachOf(begin, end, [&](int64_t k) { top = std::max(top, x[k]); });
      EachOf(begin, end, [&](int64_t k) { sum += out[k] = std::exp(x[k] - top); });
      EachOf(begin, end, [&](int64_t k) { out[k] /= sum; });
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
      EachOf(begin, end, [&](int64_t k) { dot += y[k] * dy[k]; });
      EachOf(begin, end, [&](int64_t k) { dx[k] = y[k] * (dy[k] - dot); });
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
