#include <algorithm>
#include <cmath>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

Status Infer(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  if (x.rank() != 2 || (x[1] >= 0 && x[1] < 2))
    return InvalidArgument("X must be [N, D] with D at least 2, not ", x.ToString());
  const bool keep = ctx.Bool("use_cvm");
  ctx.SetOut("Y", keep || x[1] < 0 ? x : Shape{x[0], x[1] - 2}, ctx.InDType("X"));
  ctx.ShareLoD("X", "Y");
  return Status::Ok();
}

template <typename T>
struct Cvm {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("X");
    const int64_t rows = in.dim(0), width = in.dim(1);
    const bool keep = ctx.Bool("use_cvm");
    const T* x = in.data<T>();
    T* y = ctx.Out("Y").template mutable_data<T>();
    for (int64_t i = 0; i < rows; ++i, x += width) {
      LookForInterrupt();
      if (keep) {
        y[0] = std::log(x[0] + T(1));
        y[1] = std::log(x[1] + T(1)) - y[0];
        y += 2;
      }
      y = WatchedCopy(x + 2, width - 2, y);
    }
    return Status::Ok();
  }
};

Status InferGrad(ShapeContext& ctx) {
  const Shape &x = ctx.InShape("X"), &cvm = ctx.InShape("CVM"), &dy = ctx.InShape("Y@GRAD");
  if (x.is_static() && (x.rank() != 2 || x[1] < 2))
    return InvalidArgument("X must be [N, D] with D at least 2, not ", x.ToString());
  if (cvm.is_static() && (cvm.rank() != 2 || cvm[1] != 2))
    return InvalidArgument("CVM must be [N, 2], not ", cvm.ToString());
  if (x.is_static() && dy.is_static() &&
      dy.numel() != x[0] * (ctx.Bool("use_cvm") ? x[1] : x[1] - 2))
    return InvalidArgument("Y@GRAD ", dy.ToString(), " does not fit X ", x.ToString());
  ctx.SetOut("X@GRAD", x, ctx.InDType("X"));
  ctx.ShareLoD("X", "X@GRAD");
  return Status::Ok();
}

// The first two columns carry the counts themselves; with sequences, one row of CVM for each.
template <typename T>
struct CvmGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &cvm = ctx.In("CVM");
    const int64_t rows = x.dim(0), width = x.dim(1);
    const int64_t skip = ctx.Bool("use_cvm") ? 2 : 0;
    const Offsets* offsets = nullptr;
    if (x.has_lod()) {
      HEDDLE_ASSIGN_OR_RETURN(offsets, OffsetsOf(x, "X"));
    }
    if (cvm.dim(0) != (offsets ? SequenceCount(*offsets) : rows))
      return InvalidArgument("CVM ", cvm.shape().ToString(),
                             " must have one row per row or sequence");
    const T* dy = ctx.In("Y@GRAD").template data<T>();
    T* dx = ctx.Out("X@GRAD").template mutable_data<T>();
    int64_t s = 0;
    for (int64_t i = 0; i < rows; ++i, dx += width) {
      while (offsets && Begin(*offsets, s + 1) <= i) ++s;
      std::copy_n(cvm.data<T>() + (offsets ? s : i) * 2, 2, dx);
      WatchedCopy(dy + skip, width - 2, dx + 2);
      dy += skip + width - 2;
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(cvm) {
  op.Doc("logarithms of show and click counts in the first two columns, or their removal")
      .Input("X")
      .Input("CVM")
      .Output("Y")
      .Attr("use_cvm", true)
      .InferShape(Infer)
      .Kernels<Cvm, float, double>();
}

HEDDLE_OP(cvm_grad) {
  op.Input("X", kNoBuffer)
      .Input("CVM")
      .Input("Y@GRAD")
      .Output("X@GRAD")
      .Attr("use_cvm", true)
      .InferShape(InferGrad)
      .Kernels<CvmGrad, float, double>();
}
