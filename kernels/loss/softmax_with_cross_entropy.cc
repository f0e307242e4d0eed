#include <Eigen/Core>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/call_heap.h"
#include "kernels/base/convert.h"
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

// Differences below this are raised to it, as the reference does: no probability becomes 0. Where
// they are not bounded, a label of 0 counts nothing, whatever its probability is.
constexpr double kLowest = -64;

struct Setup {
  AxisSplit split;
  bool soft, use_softmax, bounded;
  int64_t ignore;
};

Result<Setup> Prepare(const OpContext& ctx, const Shape& s) {
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(ctx.Int("axis"), s.rank()));
  const bool bounded = ctx.def().FindAttr("bounded") < 0 || ctx.Bool("bounded");
  return Setup{SplitAt(s, axis), ctx.Bool("soft_label"), ctx.Bool("use_softmax"), bounded,
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
    p = in - in.maxCoeff();
    if (s.bounded) p = p.max(T(kLowest));
    const T z = soft || label == s.ignore ? T(0) : p[label];
    if (soft) {
      Eigen::Map<const Row> l(soft, n);
      const T weight = l.sum();
      const T mixed = s.bounded ? (l * p).sum() : (l == T(0)).select(T(0), l * p).sum();
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
    if (!s.bounded && (!s.use_softmax || inner != 1))
      return Unimplemented("attribute bounded is false, expected the last axis and use_softmax");
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
      .Attr("bounded", true)
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
