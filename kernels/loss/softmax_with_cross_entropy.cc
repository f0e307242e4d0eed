#include <Eigen/Core>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/call_heap.h"
#include "kernels/base/shape_checks.h"
#include "kernels/elementwise/convert.h"

namespace heddle {
namespace {

// Differences below this are raised to it, as the reference does: no probability becomes 0.
constexpr double kLowest = -64;

struct Setup {
  AxisSplit split;
  bool soft, use_softmax;
  int64_t ignore;
};

Result<Setup> Prepare(const OpContext& ctx, const Shape& s) {
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(ctx.Int("axis"), s.rank()));
  return Setup{SplitAt(s, axis), ctx.Bool("soft_label"), ctx.Bool("use_softmax"),
               ctx.Int("ignore_index")};
}

Status CheckLabelShape(const ShapeContext& ctx, const Shape& x, int axis) {
  const Shape& label = ctx.InShape("Label");
  if (!label.is_static() || !x.is_static()) return Status::Ok();
  const int64_t want =
      ctx.Bool("soft_label") ? x.numel() : x.Product(0, axis) * x.Product(axis + 1, x.rank());
  if (label.numel() != want)
    return InvalidArgument("Label ", label.ToString(), " must have ", want, " elements for logits ",
                           x.ToString(), " and axis ", axis);
  if (ctx.Bool("soft_label") && ctx.InDType("Label") != ctx.InDType("Logits"))
    return InvalidArgument("soft labels must have the dtype of Logits");
  return Status::Ok();
}

Status InferSoftmax(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("Logits");
  if (!x.known_rank()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(ctx.Int("axis"), x.rank()));
  if (x.rank() > 0 && x[axis] == 0)
    return InvalidArgument("Logits ", x.ToString(), " has no classes along axis ", axis);
  HEDDLE_RETURN_IF_ERROR(CheckLabelShape(ctx, x, axis));
  Shape loss = x;
  if (x.rank() > 0) loss[axis] = 1;
  if (ctx.HasOut("Softmax")) ctx.SetOut("Softmax", x, ctx.InDType("Logits"));
  ctx.SetOut("Loss", loss, ctx.InDType("Logits"));
  if (ctx.HasOut("Softmax")) ctx.ShareLoD("Logits", "Softmax");
  ctx.ShareLoD("Logits", "Loss");
  return Status::Ok();
}

// One group of `inner` neighbouring columns of [n, inner]; inner is 1 for the usual last axis.
template <typename T>
class Forward {
  using Mat = Eigen::Array<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Row = Eigen::Array<T, 1, Eigen::Dynamic>;

 public:
  static void LastAxis(const T* x, const T* soft, int64_t label, const Setup& s, T* prob, T* loss) {
    const int64_t n = s.split.n;
    Eigen::Map<const Row> in(x, n);
    Eigen::Map<Row> p(prob, n);
    p = (in - in.maxCoeff()).max(T(kLowest));
    const T z = soft || label == s.ignore ? T(0) : p[label];
    if (soft) {
      Eigen::Map<const Row> l(soft, n);
      const T weight = l.sum(), mixed = (l * p).sum();
      p = p.exp();
      const T sum = p.sum();
      *loss = weight * std::log(sum) - mixed;
      p *= T(1) / sum;
      return;
    }
    p = p.exp();
    const T sum = p.sum();
    p *= T(1) / sum;
    *loss = label == s.ignore ? T(0) : std::log(sum) - z;
  }

  // prob[n, inner] of x[n, inner], columns at once; the losses come from the probabilities. `room`:
  // for `inner` numbers.
  static void OtherAxis(const T* x, const Setup& s, T* prob, T* room) {
    Eigen::Map<const Mat> in(x, s.split.n, s.split.inner);
    Eigen::Map<Mat> p(prob, s.split.n, s.split.inner);
    Eigen::Map<Row> work(room, s.split.inner);
    work = in.colwise().maxCoeff();
    p = (in.rowwise() - work).max(T(kLowest)).exp();
    work = p.colwise().sum();
    p.rowwise() /= work;
  }
};

template <typename T>
void LossFromProbabilities(const T* prob, const T* soft, const int64_t* hard, const Setup& s,
                           T* loss) {
  const int64_t n = s.split.n, inner = s.split.inner;
  for (const int64_t j : Watched(inner)) {
    if (!soft) {
      const int64_t label = hard[j];
      loss[j] = label == s.ignore ? T(0) : -Tolerable(std::log(prob[label * inner + j]));
      continue;
    }
    T sum = 0;
    for (int64_t k = 0; k < n; ++k)
      sum += soft[k * inner + j] * Tolerable(std::log(prob[k * inner + j]));
    loss[j] = -sum;
  }
}

template <typename T>
struct SoftmaxCe {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("Logits");
    HEDDLE_ASSIGN_OR_RETURN(const Setup s, Prepare(ctx, x.shape()));
    const auto [outer, n, inner] = s.split;
    if (x.numel() == 0) return Status::Ok();
    const Tensor& label = ctx.In("Label");
    const T* soft = s.soft ? label.data<T>() : nullptr;
    std::optional<Labels> hard;
    if (!s.soft) {
      hard.emplace(ctx, label);
      HEDDLE_RETURN_IF_ERROR(hard->Check(outer * inner, n, s.ignore));
    }
    Tensor spare;
    T* prob;
    if (Tensor* out = ctx.OutOpt("Softmax")) {
      prob = out->mutable_data<T>();
    } else {
      spare = ctx.Scratch(x.dtype(), x.shape());
      prob = spare.mutable_data<T>();
    }
    const T* in = x.data<T>();
    T* loss = ctx.Out("Loss").mutable_data<T>();
    const int64_t block = n * inner;
    ctx.ParallelFor(outer, std::max<int64_t>(1, 8192 / block), [&](int64_t begin, int64_t end) {
      CallHeap heap(ctx);
      std::pmr::vector<T> room(s.use_softmax && inner > 1 ? static_cast<size_t>(inner) : 0, &heap);
      for (int64_t i = begin; i < end; ++i) {
        const T* soft_i = soft ? soft + i * block : nullptr;
        const int64_t* hard_i = hard ? hard->data() + i * inner : nullptr;
        if (s.use_softmax && inner == 1) {
          Forward<T>::LastAxis(in + i * n, soft_i, hard_i ? *hard_i : 0, s, prob + i * n, loss + i);
          continue;
        }
        if (s.use_softmax)
          Forward<T>::OtherAxis(in + i * block, s, prob + i * block, room.data());
        else if (prob != in)
          WatchedCopy(in + i * block, block, prob + i * block);
        LossFromProbabilities(prob + i * block, soft_i, hard_i, s, loss + i * inner);
      }
    });
    return Status::Ok();
  }
};

Status InferSoftmaxGrad(ShapeContext& ctx) {
  const Shape& p = ctx.InShape("Softmax");
  const Shape& g = ctx.InShape("Loss@GRAD");
  const Shape& label = ctx.InShape("Label");
  if (p.is_static() && g.is_static() && label.is_static()) {
    HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(ctx.Int("axis"), p.rank()));
    const int64_t rows = p.Product(0, axis) * p.Product(axis + 1, p.rank());
    if (g.numel() != rows || label.numel() != (ctx.Bool("soft_label") ? p.numel() : rows))
      return InvalidArgument("Loss@GRAD ", g.ToString(), " and Label ", label.ToString(),
                             " do not fit Softmax ", p.ToString());
    if (ctx.Bool("soft_label") && ctx.InDType("Label") != ctx.InDType("Softmax"))
      return InvalidArgument("soft labels must have the dtype of Softmax");
  }
  ctx.SetOut("Logits@GRAD", p, ctx.InDType("Softmax"));
  ctx.ShareLoD("Softmax", "Logits@GRAD");
  return Status::Ok();
}

// Gradient of one slice [n, inner]; `prob` and `dx` may be the same memory.
template <typename T>
void SoftGradSlice(const T* prob, const T* soft, const T* dloss, const Setup& s, T* dx) {
  const int64_t n = s.split.n, inner = s.split.inner;
  for (const auto part :
       Stretches(n, std::max<int64_t>(1, Stretches::kLength / std::max<int64_t>(1, inner))))
    for (int64_t k = part.begin; k < part.end; ++k)
#pragma GCC ivdep
      for (int64_t j = 0; j < inner; ++j) {
        const int64_t at = k * inner + j;
        dx[at] = s.use_softmax ? dloss[j] * (prob[at] - soft[at]) : -soft[at] / prob[at] * dloss[j];
      }
}

// Gradient of n probabilities that stand `step` apart. `d`: the loss's gradient, none when the
// label is ignored.
template <typename T, typename Step>
void HardGradColumn(const T* prob, int64_t label, std::optional<T> d, const Setup& s, Step step,
                    T* dx) {
  const int64_t n = s.split.n, at = label * step;
  if (s.use_softmax && d) {
    for (const auto part : Stretches(n))
#pragma GCC ivdep
      for (int64_t k = part.begin; k < part.end; ++k) dx[k * step] = prob[k * step] * *d;
    dx[at] -= *d;
    return;
  }
  const T p = d ? prob[at] : T(1);  // before dx, which may be the same memory
  for (const auto part : Stretches(n))
    for (int64_t k = part.begin; k < part.end; ++k) dx[k * step] = T(0);
  if (d) dx[at] = T(-1) / p * *d;
}

template <typename T>
void HardGradSlice(const T* prob, const int64_t* hard, const T* dloss, const Setup& s, T* dx) {
  const auto of = [&](int64_t j) {
    return hard[j] == s.ignore ? std::nullopt : std::optional<T>(dloss[j]);
  };
  // A step that the compiler knows makes the usual case a loop over vectors.
  if (s.split.inner == 1)
    return HardGradColumn(prob, hard[0], of(0), s, std::integral_constant<int64_t, 1>(), dx);
  for (const int64_t j : Watched(s.split.inner))
    HardGradColumn(prob + j, hard[j], of(j), s, s.split.inner, dx + j);
}

template <typename T>
struct SoftmaxCeGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& p = ctx.In("Softmax");
    HEDDLE_ASSIGN_OR_RETURN(const Setup s, Prepare(ctx, p.shape()));
    const auto [outer, n, inner] = s.split;
    if (p.numel() == 0) return Status::Ok();
    const Tensor& label = ctx.In("Label");
    std::optional<Labels> hard;
    if (!s.soft) {
      hard.emplace(ctx, label);
      HEDDLE_RETURN_IF_ERROR(hard->Check(outer * inner, n, s.ignore));
    }
    const T* prob = p.data<T>();
    const T* dloss = ctx.In("Loss@GRAD").data<T>();
    T* dx = ctx.Out("Logits@GRAD").mutable_data<T>();
    const int64_t block = n * inner;
    ctx.ParallelFor(outer, std::max<int64_t>(1, 32768 / block), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if (s.soft)
          SoftGradSlice(prob + i * block, label.data<T>() + i * block, dloss + i * inner, s,
                        dx + i * block);
        else
          HardGradSlice(prob + i * block, hard->data() + i * inner, dloss + i * inner, s,
                        dx + i * block);
      }
    });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(softmax_with_cross_entropy) {
  op.Doc("softmax along `axis` and the cross entropy against hard or soft labels")
      .Input("Logits")
      .Input("Label")
      .Output("Softmax", kOptional)
      .Output("Loss")
      .Attr("soft_label", false)
      .Attr("use_softmax", true)
      .Attr("numeric_stable_mode", true)
      .Attr("ignore_index", -100)
      .Attr("axis", -1)
      .Inplace("Logits", "Softmax")
      .InferShape(InferSoftmax)
      .Kernels<SoftmaxCe, float, double>()
      .Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}

HEDDLE_OP(softmax_with_cross_entropy_grad) {
  op.Input("Softmax")
      .Input("Label")
      .Input("Loss@GRAD")
      .Output("Logits@GRAD")
      .Attr("soft_label", false)
      .Attr("use_softmax", true)
      .Attr("numeric_stable_mode", true)
      .Attr("ignore_index", -100)
      .Attr("axis", -1)
      .Inplace("Softmax", "Logits@GRAD")
      .InferShape(InferSoftmaxGrad)
      .Kernels<SoftmaxCeGrad, float, double>()
      .Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}

HEDDLE_EXAMPLES(softmax_with_cross_entropy, R"(
example float32 2x2, axis -2, ignore_index 1
attr axis INT -2
attr ignore_index INT 1
in Label int64 [1, 2] 1 1
in Logits float32 [2, 2] 0.34 -0.37 -1.09 1.05
out Loss float32 [1, 2] 0 0
out Softmax float32 [2, 2] 0.8069013 0.1946616 0.19309866 0.80533844

example float64 3x4, ignore_index -1, soft_label, no use_softmax
attr ignore_index INT -1
attr soft_label BOOLEAN true
attr use_softmax BOOLEAN false
in Label float64 [3, 4] 0.12 0.22 0.46 0.2 0.19 0.3 0.28 0.23 0.03 0.3 0.43 0.24
in Logits float64 [3, 4] 0.21 0.47 0.12 0.2 0.09 0.37 0.3 0.24 0.36 0.12 0.33 0.19
out Loss float64 [3, 1] 1.6505915074717894 1.4211344946555113 1.5420290164674757
out Softmax float64 [3, 4] 0.21 0.47 0.12 0.2 0.09 0.37 0.3 0.24 0.36 0.12 0.33 0.19

example float64 3x4, ignore_index 2, no numeric_stable_mode, no use_softmax
attr ignore_index INT 2
attr numeric_stable_mode BOOLEAN false
attr use_softmax BOOLEAN false
in Label int64 [3, 1] 1 0 0
in Logits float64 [3, 4] 0.38 0.09 0.28 0.25 0.34 0.52 0.07 0.07 0.25 0.03 0.14 0.58
out Loss float64 [3, 1] 2.4079456086518722 1.0788096613719298 1.3862943611198906
out Softmax float64 [3, 4] 0.38 0.09 0.28 0.25 0.34 0.52 0.07 0.07 0.25 0.03 0.14 0.58

example float32 3x4x2, soft_label
attr soft_label BOOLEAN true
in Label float32 [3, 4, 2] 0.62 0.38 0.72 0.28 0.51 0.49 0.87 0.13 0.52 0.48 0.85 0.15 0.1 0.9 0.44
  0.56 0.47 0.53 0.35 0.65 0.71 0.29 0.89 0.11
in Logits float32 [3, 4, 2] -0.25 -0.41 0.7 1.34 -0.89 -1.84 0.38 -0.09 0.07 0.54 -1.52 -1.36 -1.21
  1.18 -0.57 1.81 1.02 0.22 -1.05 -0.73 1.5 1.65 -1.68 0.86
out Loss float32 [3, 4, 1] 0.67714375 0.8842966 0.7924564 0.5466092 0.7299092 0.7523437 0.32667175
  1.135715 0.7951007 0.65789294 0.7274571 2.3365107
out Softmax float32 [3, 4, 2] 0.5399149 0.46008512 0.34524652 0.6547535 0.7211152 0.2788848
  0.61538374 0.38461623 0.38461623 0.61538374 0.46008515 0.5399149 0.08393844 0.9160615 0.084710576
  0.9152894 0.6899744 0.3100255 0.42067575 0.57932425 0.46257013 0.5374298 0.07310118 0.92689884
)")

HEDDLE_EXAMPLES(softmax_with_cross_entropy_grad, R"(
example float64 3x4, axis 1, ignore_index 2, no numeric_stable_mode, no use_softmax
attr axis INT 1
attr ignore_index INT 2
attr numeric_stable_mode BOOLEAN false
attr use_softmax BOOLEAN false
in Label int64 [3, 1] 1 0 0
in Loss@GRAD float64 [3, 1] 0.2 -0.7 -0.1
in Softmax float64 [3, 4] 0.33 0.11 0.16 0.4 0.26 0.27 0.28 0.19 0.17 0.05 0.14 0.64
out Logits@GRAD float64 [3, 4] 0 -1.8181818181818183 0 0 2.692307692307692 0 0 0 0.5882352941176471
  0 0 0

example float64 2x1x4
in Label int64 [2, 1, 1] 2 1
in Loss@GRAD float64 [2, 1, 1] -0.8 -0.3
in Softmax float64 [2, 1, 4] 0.6761577047155184 0.18988646479320587 0.05279552006370346
  0.08116031042757235 0.5481586039981389 0.23429117242497355 0.06514168510105349 0.152408538475834
out Logits@GRAD float64 [2, 1, 4] -0.5409261637724148 -0.1519091718345647 0.7577635839490373
  -0.06492824834205789 -0.16444758119944167 0.22971264827250792 -0.019542505530316046
  -0.045722561542750194

example float64 3x4, soft_label
attr soft_label BOOLEAN true
in Label float64 [3, 4] 0.33 0.11 0.06 0.5 0.54 0.02 0.2 0.24 0.03 0.14 0.46 0.37
in Loss@GRAD float64 [3, 1] 0.4 0 0.2
in Softmax float64 [3, 4] 0.37642782371328326 0.21501898478991124 0.28449802899406146
  0.12405516250274407 0.24009650309982208 0.3176788410893424 0.02607666723366044 0.41614798857717505
  0.4725961789565401 0.11889506288345611 0.0513282498305502 0.35718050832945347
out Logits@GRAD float64 [3, 4] 0.0185711294853133 0.0420075939159645 0.08979921159762459
  -0.1503779349989024 -0 0 -0 0 0.08851923579130803 -0.004220987423308781 -0.08173435003388997
  -0.0025638983341093047

example float32 2x1x4
in Label int64 [2, 1, 1] 2 1
in Loss@GRAD float32 [2, 1, 1] -0.8 -0.3
in Softmax float32 [2, 1, 4] 0.6761577 0.18988647 0.052795522 0.08116031 0.5481586 0.23429117
  0.065141685 0.15240854
out Logits@GRAD float32 [2, 1, 4] -0.54092616 -0.15190917 0.7577636 -0.06492825 -0.16444758
  0.22971267 -0.019542506 -0.045722563
)")
