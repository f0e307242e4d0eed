#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "core/threads/look_meter.h"
#include "kernels/base/only_value.h"
#include "kernels/linalg/linalg.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

struct Context {
  int64_t start, length, up, down;  // up, down: rows of padding before and behind a sequence
  bool trainable;
};

Result<Context> ReadContext(const OpContext& ctx) {
  Context c;
  c.start = ctx.Int("contextStart");
  c.length = ctx.Int("contextLength");
  c.trainable = ctx.Bool("paddingTrainable");
  c.up = std::max<int64_t>(0, -c.start);
  c.down = std::max<int64_t>(0, c.start + c.length - 1);
  if (c.length <= 0) return InvalidArgument("contextLength is ", c.length, ", expected 1 or more");
  HEDDLE_RETURN_IF_ERROR(CheckOnlyValue(ctx, "contextStride"));
  return c;
}

Status CheckOperands(const ShapeContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const Context c, ReadContext(ctx));
  const Shape &x = ctx.InShape("X"), &filter = ctx.InShape("Filter");
  if (!x.known_rank() || !filter.is_static()) return Status::Ok();
  if (x.rank() != 2 || filter.rank() != 2)
    return InvalidArgument("X ", x.ToString(), " and Filter ", filter.ToString(),
                           " must have two axes");
  if (x[1] >= 0 && filter[0] != c.length * x[1])
    return InvalidArgument("Filter ", filter.ToString(), " must have ", c.length * x[1], " rows");
  if (!c.trainable || !ctx.HasIn("PaddingData")) return Status::Ok();
  const Shape& pad = ctx.InShape("PaddingData");
  if (pad.is_static() && x[1] >= 0 &&
      (pad.rank() != 2 || pad[0] != c.up + c.down || pad[1] != x[1]))
    return InvalidArgument("PaddingData ", pad.ToString(), " must be [", c.up + c.down, ", ", x[1],
                           "]");
  return Status::Ok();
}

Status InferConv(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckOperands(ctx));
  const Shape &x = ctx.InShape("X"), &filter = ctx.InShape("Filter");
  if (!x.known_rank() || !filter.known_rank()) return ctx.Defer();
  ctx.SetOut("Out", Shape{x[0], filter[1]}, ctx.InDType("X"));
  ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

// Calls fn(row, position, source): what stands at `position` of the context of `row` is X's row
// `source`, or padding row -1 - source where it is negative. `width`: of a row, which fn goes over.
template <typename Fn>
void ForEachSource(const Context& c, const Offsets& offsets, int64_t width, Fn fn) {
  LookMeter meter;
  for (const int64_t s : Watched(SequenceCount(offsets))) {
    const int64_t begin = Begin(offsets, s), length = Length(offsets, s);
    for (int64_t t = 0; t < length; ++t)
      for (int64_t k = 0; k < c.length; ++k) {
        meter.Did(width + 4);
        const int64_t at = t + k + c.start;
        if (at < 0)
          fn(begin + t, k, -1 - (at + c.up));
        else if (at >= length)
          fn(begin + t, k, -1 - (c.up + at - length));
        else
          fn(begin + t, k, begin + at);
      }
  }
}

// The rows' contexts side by side: [rows, length * width].
template <typename T>
Matrix<T> Unfold(const Context& c, const Offsets& offsets, const Tensor& x, const Tensor* pad) {
  const int64_t width = RowSize(x);
  Matrix<T> columns(x.dim(0), c.length * width);
  WatchedFill(columns.data(), columns.size(), T(0));
  ForEachSource(c, offsets, width, [&](int64_t row, int64_t k, int64_t source) {
    T* to = columns.data() + row * c.length * width + k * width;
    if (source >= 0)
      WatchedCopy(x.data<T>() + source * width, width, to);
    else if (pad)
      WatchedCopy(pad->data<T>() + (-1 - source) * width, width, to);
  });
  return columns;
}

template <typename T>
struct SequenceConv {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const Context c, ReadContext(ctx));
    HEDDLE_ASSIGN_OR_RETURN(const Offsets* const offsets, OffsetsOf(x, "X"));
    const Tensor* pad = c.trainable ? ctx.InOpt("PaddingData") : nullptr;
    if (ctx.Out("Out").numel() == 0) return Status::Ok();
    SetProduct(MutableMatrixAt<T>(ctx.Out("Out"), 0), Unfold<T>(c, *offsets, x, pad),
               MatrixAt<T>(ctx.In("Filter"), 0));
    return Status::Ok();
  }
};

Status InferConvGrad(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckOperands(ctx));
  const Shape &x = ctx.InShape("X"), &filter = ctx.InShape("Filter"),
              &dout = ctx.InShape("Out@GRAD");
  if (x.is_static() && filter.is_static() && dout.is_static() && dout.numel() != x[0] * filter[1])
    return InvalidArgument("Out@GRAD ", dout.ToString(), " does not fit X and Filter");
  SetOutsLike(ctx,
              {{"X", "X@GRAD"}, {"Filter", "Filter@GRAD"}, {"PaddingData", "PaddingData@GRAD"}});
  if (ctx.HasOut("X@GRAD")) ctx.ShareLoD("X", "X@GRAD");
  return Status::Ok();
}

template <typename T>
struct SequenceConvGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &filter = ctx.In("Filter"), &dout = ctx.In("Out@GRAD");
    HEDDLE_ASSIGN_OR_RETURN(const Context c, ReadContext(ctx));
    HEDDLE_ASSIGN_OR_RETURN(const Offsets* const offsets, OffsetsOf(x, "X"));
    const Tensor* pad = c.trainable ? ctx.InOpt("PaddingData") : nullptr;
    const int64_t width = RowSize(x);
    const ConstMatrixMap<T> slope(dout.data<T>(), x.dim(0), filter.dim(1));
    if (Tensor* df = ctx.OutOpt("Filter@GRAD"))
      SetProduct(MutableMatrixAt<T>(*df, 0), Turned<T>(Unfold<T>(c, *offsets, x, pad)), slope);
    Tensor *dx = ctx.OutOpt("X@GRAD"), *dpad = ctx.OutOpt("PaddingData@GRAD");
    if (dx) ZeroAll(*dx);
    if (dpad) ZeroAll(*dpad);
    if (!c.trainable) dpad = nullptr;  // the operand is not read, whatever its shape
    if (!dx && !dpad) return Status::Ok();
    const Matrix<T> columns = Product<T>(slope, Turned<T>(MatrixAt<T>(filter, 0)));
    ForEachSource(c, *offsets, width, [&](int64_t row, int64_t k, int64_t source) {
      Tensor* to = source >= 0 ? dx : dpad;
      if (to == nullptr) return;
      T* at = to->mutable_data<T>() + (source >= 0 ? source : -1 - source) * width;
      const T* from = columns.data() + row * c.length * width + k * width;
      for (int64_t i = 0; i < width; ++i) at[i] += from[i];
    });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(sequence_conv) {
  op.Doc("convolution along each sequence")
      .Input("X")
      .Input("PaddingData", kOptional)
      .Input("Filter")
      .Output("Out")
      .Attr("paddingTrainable", false)
      .Attr("contextLength", 1)
      .Attr("contextStart", 0)
      .Attr("contextStride", 1)
      .InferShape(InferConv)
      .Kernels<SequenceConv, float, double>();
}

HEDDLE_OP(sequence_conv_grad) {
  op.Input("X")
      .Input("PaddingData", kOptional)
      .Input("Filter")
      .Input("Out@GRAD")
      .Output("X@GRAD", kOptional)
      .Output("Filter@GRAD", kOptional)
      .Output("PaddingData@GRAD", kOptional)
      .Attr("paddingTrainable", false)
      .Attr("contextLength", 1)
      .Attr("contextStart", 0)
      .Attr("contextStride", 1)
      .InferShape(InferConvGrad)
      .Kernels<SequenceConvGrad, float, double>();
}
