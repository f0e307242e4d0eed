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

HEDDLE_EXAMPLES(cross_entropy, R"(
example float64 3x4, ignore_index 3
attr ignore_index INT 3
in Label int64 [3] 2 1 2
in X float64 [3, 4] 0.5 0.23 0.03 0.24 0.24 0.5 0.2 0.06 0.09 0.15 0.46 0.3
out Y float64 [3] 3.506557897319982 0.6931471805599453 0.7765287894989963

example float64 4x3, soft_label
attr soft_label BOOLEAN true
in Label float64 [4, 3] 0 0 1 0 0 1 0 1*4 0
in X float64 [4, 3] 0.19 0.5 0.31 0.38 0.43 0.19 0.17 0.37 0.46 0.38 0.53 0.09
out Y float64 [4, 1] 1.171182981502945 1.6607312068216509 1.7707810628428633 1.602462298697675

example float64 3x4, ignore_index 3, no. 2
attr ignore_index INT 3
in Label int64 [3, 1] 2 2 2
in X float64 [3, 4] 0 0.51 0.36 0.13 0.41 0.28 0.15 0.16 0.07 0.07 0.14 0.72
out Y float64 [3, 1] 1.0216512475319814 1.8971199848858813 1.9661128563728327

example float64 4x3x3, soft_label
attr soft_label BOOLEAN true
in Label float64 [4, 3, 3] 0.17 0.14 0.69 0.2 0.37 0.43 0.42 0.36 0.22 0.23 0.35 0.42 0.65 0.24 0.11
  0.28 0.46 0.26 0.33 0.39 0.28 0.42 0.27 0.31 0.07 0.19 0.74 0.53 0.2 0.27 0.49 0.11 0.4 0.13 0.04
  0.83
in X float64 [4, 3, 3] 0.27 0.59 0.14 0.36 0.12 0.52 0.2 0.15 0.65 0.18 0.52 0.3 0.15 0.27 0.58 0.36
  0.26 0.38 0.53 0.44 0.03 0.3 0.45 0.25 0.09 0.53 0.38 0.47 0.45 0.08 0.31 0.25 0.44 0.65 0.19 0.16
out Y float64 [4, 3, 1] 1.6530731191860262 1.2700161388852955 1.4536993593215795 1.1289464798703688
  1.60728797627051 1.1572880742016385 1.5115284564606988 1.1510169077428576 1.0051952438021274
  1.2418102428741409 1.0547642614875632 1.6434736422759824

example float32 3x4, ignore_index 3
attr ignore_index INT 3
in Label int64 [3] 2 1 2
in X float32 [3, 4] 0.5 0.23 0.03 0.24 0.24 0.5 0.2 0.06 0.09 0.15 0.46 0.3
out Y float32 [3] 3.506558 0.6931472 0.7765288
)")

HEDDLE_EXAMPLES(cross_entropy_grad, R"(
example float64 3x4, ignore_index 3
attr ignore_index INT 3
in Label int64 [3, 1] 2 0 0
in X float64 [3, 4] 0.13 0.33 0.2 0.34 0.47 0.21 0.1 0.22 0.17 0.31 0.44 0.08
in Y@GRAD float64 [3, 1] 0.2 -0.7 -0.1
out X@GRAD float64 [3, 4] 0 0 -1 0 1.4893617021276595 0 0 0 0.5882352941176471 0 0 0

example float64 4x3, soft_label
attr soft_label BOOLEAN true
in Label float64 [4, 3] 0.57 0.16 0.27 0.08 0.29 0.63 0.53 0.25 0.22 0.14 0.56 0.3
in X float64 [4, 3] 0.66 0.3 0.04 0.22 0.26 0.52 0.64 0.2 0.16 0.17 0.5 0.33
in Y@GRAD float64 [4, 1] -0.8 -0.6 -0.5 -0.7
out X@GRAD float64 [4, 3] 0.6909090909090908 0.4266666666666667 5.4 0.2181818181818182
  0.6692307692307692 0.7269230769230769 0.4140625 0.625 0.6875 0.5764705882352941 0.784
  0.6363636363636364

example float32 3x4, ignore_index 3
attr ignore_index INT 3
in Label int64 [3, 1] 2 0 0
in X float32 [3, 4] 0.13 0.33 0.2 0.34 0.47 0.21 0.1 0.22 0.17 0.31 0.44 0.08
in Y@GRAD float32 [3, 1] 0.2 -0.7 -0.1
out X@GRAD float32 [3, 4] 0 0 -1 0 1.4893616 0 0 0 0.5882353 0 0 0
)")

HEDDLE_EXAMPLES(cross_entropy2, R"(
example float64 4x3, ignore_index 3
attr ignore_index INT 3
in Label int64 [4] 2*4
in X float64 [4, 3] 1.384 1.077 1.308 1.846 1.231 1.154 1.692 1.769 1.538 1.922 1.615 1.461
out MatchX float64 [4, 1] 1.308 1.154 1.538 1.461
out XShape ?
out Y float64 [4] -0.268499253035007 -0.14323416808590775 -0.43048287108345223 -0.37912113276856246

example float32 4x3
in Label int64 [4, 1] 1*4
in X float32 [4, 3] 0 0.59 0.41 0.15 0.51 0.34 0.37 0.38 0.25 0.07 0.15 0.78
out MatchX float32 [4, 1] 0.59 0.51 0.38 0.15
out XShape ?
out Y float32 [4, 1] 0.5276328 0.67334455 0.967584 1.89712

example float32 1x6x2
in Label int64 [1, 6, 1] 0*4 1 1
in X float32 [1, 6, 2] 0.31 0.69 0.6 0.4 0.5 0.5 0.81 0.19 0.74 0.26 0.79 0.21
out MatchX float32 [1, 6, 1] 0.31 0.6 0.5 0.81 0.26 0.21
out XShape ?
out Y float32 [1, 6, 1] 1.171183 0.5108256 0.6931472 0.21072103 1.3470737 1.5606477
)")

HEDDLE_EXAMPLES(cross_entropy_grad2, R"(
example int64 4x1, ignore_index -100
attr ignore_index INT -100
in Label int64 [4, 1] 1*4
in MatchX float64 [4, 1] 0.5 0.43 0.37 0.53
in XShape float32 [4, 3, 0] none
in Y@GRAD float64 [4, 1] -0.7 -0.7 -0.6 -0.7
out X@GRAD float64 [4, 3] 0 1.4 0 0 1.627906976744186 0 0 1.6216216216216215 0 0 1.320754716981132 0

example int64 1x6x1, ignore_index -100
attr ignore_index INT -100
in Label int64 [1, 6, 1] 1 1 0*4
in MatchX float64 [1, 6, 1] 0.44 0.59 0.74 0.26 0.82 0.2
in XShape float32 [1, 6, 2, 0] none
in Y@GRAD float64 [1, 6, 1] 0.8 0.1 0.3 0.7 -0.6 -0.7
out X@GRAD float64 [1, 6, 2] 0 -1.8181818181818183 0 -0.16949152542372883 -0.4054054054054054 0
  -2.692307692307692 0 0.7317073170731707 0 3.4999999999999996 0

example int64 4x1, ignore_index 3
attr ignore_index INT 3
in Label int64 [4, 1] 1 2 2 2
in MatchX float64 [4, 1] 1.692 1.077 1.769 1.846
in XShape float32 [4, 3, 0] none
in Y@GRAD float64 [4, 1] -0.7 -0.7 -0.6 -0.7
out X@GRAD float64 [4, 3] 0 0.41371158392434987 0 0 0 0.6499535747446611 0 0 0.3391746749576032 0 0
  0.37919826652221017
)")
