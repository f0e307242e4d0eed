// cross_entropy and cross_entropy2: -log of given probabilities along the last axis.
#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

// X [.., C] with hard labels [.., 1] or [..]; soft labels have X's shape. The result keeps a
// trailing 1 unless the label has none.
Status InferCrossEntropy(ShapeContext& ctx, bool soft) {
  const Shape& x = ctx.InShape("X");
  const Shape& label = ctx.InShape("Label");
  if (!x.known_rank() || !label.known_rank()) return ctx.Defer();
  if (x.rank() < 1) return InvalidArgument("X must have at least one axis");
  if (x.dim(-1) == 0) return InvalidArgument("X ", x.ToString(), " has no classes");
  Shape y = x;
  y[x.rank() - 1] = 1;
  if (label.rank() == x.rank() - 1 && !soft) y.erase(x.rank() - 1);
  if (label.is_static() && x.is_static() && label.numel() != (soft ? x.numel() : y.numel()))
    return InvalidArgument("Label ", label.ToString(), " does not fit X ", x.ToString());
  if (soft && ctx.InDType("Label") != ctx.InDType("X"))
    return InvalidArgument("soft labels must have the dtype of X");
  ctx.SetOut("Y", y, ctx.InDType("X"));
  ctx.ShareLoD("X", "Y");
  return Status::Ok();
}
Status InferFirst(ShapeContext& ctx) { return InferCrossEntropy(ctx, ctx.Bool("soft_label")); }

Status InferSecond(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(InferCrossEntropy(ctx, false));
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return Status::Ok();
  Shape match = x, with_zero = x;  // X's shape is handed on with a 0 behind it
  match[x.rank() - 1] = 1;
  with_zero.push_back(0);
  if (ctx.HasOut("MatchX")) ctx.SetOut("MatchX", match, ctx.InDType("X"));
  if (ctx.HasOut("XShape")) {
    ctx.SetOut("XShape", with_zero, ctx.InDType("X"));
    ctx.ShareLoD("X", "XShape");
  }
  return Status::Ok();
}

template <typename T>
struct CrossEntropy {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const int64_t c = x.dim(-1), rows = c == 0 ? 0 : x.numel() / c;
    const T* p = x.data<T>();
    T* y = ctx.Out("Y").mutable_data<T>();
    if (ctx.Bool("soft_label")) {
      const T* label = ctx.In("Label").data<T>();
      for (const int64_t i : Watched(rows)) {
        T sum = 0;
        for (int64_t k = i * c; k < (i + 1) * c; ++k) sum += label[k] * Tolerable(std::log(p[k]));
        y[i] = -sum;
      }
      return Status::Ok();
    }
    const int64_t ignore = ctx.Int("ignore_index");
    const Labels label(ctx, ctx.In("Label"));
    HEDDLE_RETURN_IF_ERROR(label.Check(rows, c, ignore));
    for (const int64_t i : Watched(rows))
      y[i] = label[i] == ignore ? T(0) : -Tolerable(std::log(p[i * c + label[i]]));
    return Status::Ok();
  }
};

template <typename T>
struct CrossEntropyGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const int64_t c = x.dim(-1), rows = c == 0 ? 0 : x.numel() / c;
    const T* p = x.data<T>();
    const T* dy = ctx.In("Y@GRAD").data<T>();
    T* dx = ctx.Out("X@GRAD").mutable_data<T>();
    if (ctx.Bool("soft_label")) {
      const T* label = ctx.In("Label").data<T>();
      for (const int64_t i : Watched(rows))
        for (int64_t k = i * c; k < (i + 1) * c; ++k) dx[k] = -label[k] * dy[i] / p[k];
      return Status::Ok();
    }
    const int64_t ignore = ctx.Int("ignore_index");
    const Labels label(ctx, ctx.In("Label"));
    HEDDLE_RETURN_IF_ERROR(label.Check(rows, c, ignore));
    for (const int64_t i : Watched(rows)) {
      WatchedFill(dx + i * c, c, T(0));
      if (label[i] != ignore) dx[i * c + label[i]] = -dy[i] / p[i * c + label[i]];
    }
    return Status::Ok();
  }
};

template <typename T>
struct CrossEntropy2 {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const int64_t c = x.dim(-1), rows = c == 0 ? 0 : x.numel() / c;
    const int64_t ignore = ctx.Int("ignore_index");
    const Labels label(ctx, ctx.In("Label"));
    HEDDLE_RETURN_IF_ERROR(label.Check(rows, c, ignore));
    const T* p = x.data<T>();
    T* y = ctx.Out("Y").mutable_data<T>();
    Tensor* match = ctx.OutOpt("MatchX");
    for (const int64_t i : Watched(rows)) {
      const T m = label[i] == ignore ? T(0) : p[i * c + label[i]];
      y[i] = label[i] == ignore ? T(0) : -Tolerable(std::log(m));
      if (match) match->mutable_data<T>()[i] = m;
    }
    return Status::Ok();
  }
};

Status InferGrad2(ShapeContext& ctx) {
  const Shape& with_zero = ctx.InShape("XShape");
  if (!with_zero.known_rank()) return ctx.Defer();
  if (with_zero.rank() < 2) return InvalidArgument("XShape must hold the shape of X");
  Shape x = with_zero;
  x.erase(x.rank() - 1);
  const Shape& dy = ctx.InShape("Y@GRAD");
  if (x.is_static() && dy.is_static() && dy.numel() * x.dim(-1) != x.numel())
    return InvalidArgument("Y@GRAD ", dy.ToString(), " does not fit X ", x.ToString());
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "Y@GRAD", "Label"));
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "Y@GRAD", "MatchX"));
  ctx.SetOut("X@GRAD", x, ctx.InDType("Y@GRAD"));
  ctx.ShareLoD("XShape", "X@GRAD");
  return Status::Ok();
}

template <typename T>
struct CrossEntropyGrad2 {
  static Status Run(KernelContext& ctx) {
    Tensor& out = ctx.Out("X@GRAD");
    const int64_t c = out.dim(-1), rows = c == 0 ? 0 : out.numel() / c;
    const int64_t ignore = ctx.Int("ignore_index");
    const Labels label(ctx, ctx.In("Label"));
    HEDDLE_RETURN_IF_ERROR(label.Check(rows, c, ignore));
    const T* dy = ctx.In("Y@GRAD").data<T>();
    const T* match = ctx.In("MatchX").data<T>();
    T* dx = out.mutable_data<T>();
    for (const int64_t i : Watched(rows)) {
      WatchedFill(dx + i * c, c, T(0));
      if (label[i] != ignore) dx[i * c + label[i]] = -dy[i] / match[i];
    }
    return Status::Ok();
  }
};

Status InferCrossEntropyGrad(ShapeContext& ctx) {
  const Shape &x = ctx.InShape("X"), &dy = ctx.InShape("Y@GRAD"), &label = ctx.InShape("Label");
  if (x.is_static() && dy.is_static() && label.is_static()) {
    const int64_t rows = x.rank() < 1 || x.dim(-1) == 0 ? 0 : x.numel() / x.dim(-1);
    if (x.rank() < 1 || dy.numel() != rows ||
        label.numel() != (ctx.Bool("soft_label") ? x.numel() : rows))
      return InvalidArgument("Y@GRAD ", dy.ToString(), " and Label ", label.ToString(),
                             " do not fit X ", x.ToString());
  }
  return GradLikeInputs(ctx);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(cross_entropy) {
  op.Doc("-log of the probability of each row's label")
      .Input("X")
      .Input("Label")
      .Output("Y")
      .Attr("soft_label", false)
      .Attr("ignore_index", -100)
      .InferShape(InferFirst)
      .Kernels<CrossEntropy, float, double>();
}

HEDDLE_OP(cross_entropy_grad) {
  op.Input("X")
      .Input("Label")
      .Input("Y@GRAD")
      .Output("X@GRAD")
      .Attr("soft_label", false)
      .Attr("ignore_index", -100)
      .InferShape(InferCrossEntropyGrad)
      .Kernels<CrossEntropyGrad, float, double>();
}

HEDDLE_OP(cross_entropy2) {
  op.Doc("cross_entropy that keeps the matched probabilities for the gradient")
      .Input("X")
      .Input("Label")
      .Output("Y")
      .Output("XShape", kOptional | kNoData)
      .Output("MatchX", kOptional)
      .Attr("ignore_index", -100)
      .InferShape(InferSecond)
      .Kernels<CrossEntropy2, float, double>();
}

HEDDLE_OP(cross_entropy_grad2) {
  op.Input("Y@GRAD")
      .Input("Label")
      .Input("MatchX")
      .Input("XShape", kNoBuffer)
      .Output("X@GRAD")
      .Attr("ignore_index", -100)
      .InferShape(InferGrad2)
      .Kernels<CrossEntropyGrad2, float, double>();
}
