// Conditional random fields over a chain of tags: linear_chain_crf, its gradient, and crf_decoding.
// Transition has a row of start weights, a row of end weights, then a row per tag.
#include <cmath>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/shape_checks.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

// The sequences in Emission: padded [N, T, D] with Length, or packed [sum of lengths, D].
struct Chains {
  std::vector<int64_t> begin, length;  // in rows of D
  int64_t tags = 0;
  bool padded = false;
};

Result<Chains> ChainsOf(KernelContext& ctx) {
  const Tensor &emission = ctx.In("Emission"), &transition = ctx.In("Transition");
  Chains chains;
  chains.tags = emission.rank() > 0 ? emission.dim(emission.rank() - 1) : 0;
  if (transition.rank() != 2 || transition.dim(1) != chains.tags ||
      transition.dim(0) != chains.tags + 2 || transition.dtype() != emission.dtype())
    return InvalidArgument("Transition ", transition.shape().ToString(), " does not fit Emission ",
                           emission.shape().ToString());
  const Tensor* lengths = ctx.InOpt("Length");
  chains.padded = lengths != nullptr;
  if (lengths == nullptr) {
    if (emission.rank() != 2)
      return InvalidArgument("Emission must be 2-D without Length, not ",
                             emission.shape().ToString());
    HEDDLE_ASSIGN_OR_RETURN(const Offsets* const offsets, OffsetsOf(emission, "Emission"));
    for (const int64_t i : Watched(SequenceCount(*offsets))) {
      chains.begin.push_back(Begin(*offsets, i));
      chains.length.push_back(Length(*offsets, i));
    }
    return chains;
  }
  const Ints given = ToInts(*lengths);
  if (emission.rank() != 3 || std::ssize(given) != emission.dim(0))
    return InvalidArgument("Length does not fit Emission ", emission.shape().ToString());
  for (const int64_t i : Watched(emission.dim(0))) {
    const int64_t n = given[static_cast<size_t>(i)];
    if (n < 0 || n > emission.dim(1))
      return OutOfRange("length ", n, " is not in [0, ", emission.dim(1), "]");
    chains.begin.push_back(i * emission.dim(1));
    chains.length.push_back(n);
  }
  return chains;
}

Status CheckLabels(KernelContext& ctx, const Chains& chains, const Labels& labels) {
  const int64_t rows = ctx.In("Emission").numel() / std::max<int64_t>(chains.tags, 1);
  if (ctx.In("Label").numel() < rows) return InvalidArgument("Label has too few elements");
  for (size_t i = 0; i < chains.begin.size(); ++i)
    for (int64_t k = chains.begin[i]; k < chains.begin[i] + chains.length[i]; ++k)
      if (labels[k] < 0 || labels[k] >= chains.tags)
        return OutOfRange("label ", labels[k], " is not in [0, ", chains.tags, ")");
  return Status::Ok();
}

// Divides by the sum, which it returns: keeps products of many probabilities in range.
template <typename T>
T Normalize(T* x, int64_t n) {
  T sum = 0;
  for (const auto part : Stretches(n))
    for (int64_t i = part.begin; i < part.end; ++i) sum += x[i];
  for (const auto part : Stretches(n))
    for (int64_t i = part.begin; i < part.end; ++i) x[i] /= sum;
  return sum;
}

template <typename T>
struct Chain {
  int64_t length, tags;
  const T *x, *x_exp, *w, *w_exp;
  const int64_t* label;
};

// The negative log-likelihood of a chain's labels. alpha: the forward probabilities.
template <typename T>
T Forward(const Chain<T>& c, T* alpha) {
  const int64_t d = c.tags;
  T log_z = 0;
  for (const int64_t k : Watched(c.length)) {
    T* now = alpha + k * d;
    for (int64_t i = 0; i < d; ++i) {
      T sum = k == 0 ? c.w_exp[i] : T(0);
      for (int64_t j = 0; k > 0 && j < d; ++j) sum += now[j - d] * c.w_exp[(j + 2) * d + i];
      now[i] = c.x_exp[k * d + i] * sum;
    }
    log_z += *std::max_element(c.x + k * d, c.x + (k + 1) * d) + std::log(Normalize(now, d));
  }
  T sum = 0, score = 0;
  const int64_t last = c.length - 1;
  for (int64_t i = 0; i < d; ++i) sum += alpha[last * d + i] * c.w_exp[d + i];
  log_z += std::log(sum);
  for (const int64_t k : Watched(c.length))
    score += c.x[k * d + c.label[k]] +
             (k == 0 ? c.w[c.label[0]] : c.w[(c.label[k - 1] + 2) * d + c.label[k]]);
  return log_z - score - c.w[d + c.label[last]];
}

Status InferCrf(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("Emission");
  if (!x.is_static()) return ctx.Defer();
  const DType dtype = ctx.InDType("Emission");
  for (const Key key : {Key("Alpha"), Key("EmissionExps")}) {
    ctx.SetOut(key, x, dtype);
  }
  ctx.SetOut("TransitionExps", ctx.InShape("Transition"), dtype);
  if (!ctx.HasIn("Length")) {
    const LoD& lod = ctx.InLoD("Emission");
    if (lod.empty()) return InvalidArgument("Emission has no sequences, and Length is missing");
    ctx.SetOut("LogLikelihood", Shape{std::ssize(lod.back()) - 1, 1}, dtype);
  } else {
    ctx.SetOut("LogLikelihood", Shape{x[0], 1}, dtype);
  }
  return Status::Ok();
}

template <typename T>
struct Crf {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("Emission"), &w = ctx.In("Transition");
    HEDDLE_ASSIGN_OR_RETURN(const Chains chains, ChainsOf(ctx));
    const Labels labels(ctx, ctx.In("Label"));
    HEDDLE_RETURN_IF_ERROR(CheckLabels(ctx, chains, labels));
    const int64_t d = chains.tags;
    T* alpha = ctx.Out("Alpha").template mutable_data<T>();
    T* x_exp = ctx.Out("EmissionExps").template mutable_data<T>();
    T* w_exp = ctx.Out("TransitionExps").template mutable_data<T>();
    T* cost = ctx.Out("LogLikelihood").template mutable_data<T>();
    WatchedFill(alpha, x.numel(), T(0));
    for (const auto part : Stretches(w.numel()))
      for (int64_t i = part.begin; i < part.end; ++i) w_exp[i] = std::exp(w.data<T>()[i]);
    for (const int64_t r : Watched(d > 0 ? x.numel() / d : 0)) {
      const T* row = x.data<T>() + r * d;
      const T max = *std::max_element(row, row + d);
      for (int64_t i = 0; i < d; ++i) x_exp[r * d + i] = std::exp(row[i] - max);
    }
    for (size_t i = 0; i < chains.begin.size(); ++i) {
      const int64_t at = chains.begin[i] * d;
      const Chain<T> chain{chains.length[i],
                           d,
                           x.data<T>() + at,
                           x_exp + at,
                           w.data<T>(),
                           w_exp,
                           labels.data() + chains.begin[i]};
      cost[i] = chain.length == 0 ? T(0) : Forward(chain, alpha + at);
    }
    return Status::Ok();
  }
};

// The gradient of one chain's cost, times `d_cost`; dw may be null.
template <typename T>
void Backward(const Chain<T>& c, const T* alpha, T d_cost, T* dx, T* dw) {
  const int64_t d = c.tags, last = c.length - 1;
  std::vector<T> beta(static_cast<size_t>(c.length * d));
  for (int64_t k = last; k >= 0; --k) {
    T* now = beta.data() + k * d;
    for (const int64_t i : Watched(d)) {
      now[i] = k == last ? c.w_exp[d + i] : T(0);
      for (int64_t j = 0; k < last && j < d; ++j)
        now[i] += c.w_exp[(i + 2) * d + j] * c.x_exp[(k + 1) * d + j] * now[d + j];
    }
    Normalize(now, d);
  }
  for (const int64_t k : Watched(c.length)) {
    T* row = dx + k * d;
    for (int64_t i = 0; i < d; ++i)
      row[i] = alpha[k * d + i] * beta[static_cast<size_t>(k * d + i)];
    Normalize(row, d);
    row[c.label[k]] -= T(1);
    for (int64_t i = 0; i < d; ++i) row[i] *= d_cost;
  }
  if (dw == nullptr) return;
  for (int64_t i = 0; i < d; ++i) {
    dw[i] += dx[i];
    dw[d + i] += dx[last * d + i];
  }
  std::vector<T> pair(static_cast<size_t>(d * d));
  for (const int64_t k : Watched(1, c.length)) {
    for (int64_t i = 0; i < d; ++i)
      for (int64_t j = 0; j < d; ++j)
        pair[static_cast<size_t>(i * d + j)] = c.w_exp[(i + 2) * d + j] * alpha[(k - 1) * d + i] *
                                               c.x_exp[k * d + j] *
                                               beta[static_cast<size_t>(k * d + j)];
    Normalize(pair.data(), d * d);
    for (int64_t i = 0; i < d * d; ++i) dw[2 * d + i] += pair[static_cast<size_t>(i)] * d_cost;
    dw[(c.label[k - 1] + 2) * d + c.label[k]] -= d_cost;
  }
}

Status InferCrfGrad(ShapeContext& ctx) {
  SetOutsLike(ctx, {{"Emission", "Emission@GRAD"}, {"Transition", "Transition@GRAD"}});
  ctx.ShareLoD("Emission", "Emission@GRAD");
  return Status::Ok();
}

template <typename T>
struct CrfGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("Emission"), &w = ctx.In("Transition");
    const Tensor &alpha = ctx.In("Alpha"), &x_exp = ctx.In("EmissionExps");
    const Tensor &w_exp = ctx.In("TransitionExps"), &d_cost = ctx.In("LogLikelihood@GRAD");
    HEDDLE_ASSIGN_OR_RETURN(const Chains chains, ChainsOf(ctx));
    const Labels labels(ctx, ctx.In("Label"));
    HEDDLE_RETURN_IF_ERROR(CheckLabels(ctx, chains, labels));
    if (alpha.numel() != x.numel() || x_exp.numel() != x.numel() || w_exp.numel() != w.numel() ||
        d_cost.numel() != std::ssize(chains.begin))
      return InvalidArgument("what the forward operator left does not fit Emission");
    Tensor hold;
    Tensor *dx = ctx.OutOpt("Emission@GRAD"), *dw = ctx.OutOpt("Transition@GRAD");
    if (dx == nullptr) dx = &(hold = ctx.Scratch(x.dtype(), x.shape()));
    ZeroAll(*dx);
    if (dw != nullptr) ZeroAll(*dw);
    for (size_t i = 0; i < chains.begin.size(); ++i) {
      if (chains.length[i] == 0) continue;
      const int64_t at = chains.begin[i] * chains.tags;
      const Chain<T> chain{chains.length[i],
                           chains.tags,
                           x.data<T>() + at,
                           x_exp.data<T>() + at,
                           w.data<T>(),
                           w_exp.data<T>(),
                           labels.data() + chains.begin[i]};
      Backward(chain, alpha.data<T>() + at, d_cost.data<T>()[i], dx->mutable_data<T>() + at,
               dw != nullptr ? dw->mutable_data<T>() : nullptr);
    }
    return Status::Ok();
  }
};

// --- crf_decoding ---

// The best path; `best` and `from` are work space.
template <typename T>
void BestPath(int64_t length, int64_t d, const T* x, const T* w, int64_t* path) {
  std::vector<T> best(static_cast<size_t>(d)), next(best.size());
  std::vector<int64_t> from(static_cast<size_t>(length * d), 0);
  for (int64_t i = 0; i < d; ++i) best[static_cast<size_t>(i)] = w[i] + x[i];
  for (const int64_t k : Watched(1, length)) {
    for (int64_t i = 0; i < d; ++i) {
      T max = -std::numeric_limits<T>::max();
      int64_t arg = 0;
      for (int64_t j = 0; j < d; ++j) {
        const T score = best[static_cast<size_t>(j)] + w[(j + 2) * d + i];
        if (score > max) max = score, arg = j;
      }
      next[static_cast<size_t>(i)] = max + x[k * d + i];
      from[static_cast<size_t>(k * d + i)] = arg;
    }
    best.swap(next);
  }
  T max = -std::numeric_limits<T>::max();
  int64_t at = 0;
  for (int64_t i = 0; i < d; ++i) {
    const T score = best[static_cast<size_t>(i)] + w[d + i];
    if (score > max) max = score, at = i;
  }
  for (int64_t k = length - 1; k >= 0; --k) {
    path[k] = at;
    at = from[static_cast<size_t>(k * d + at)];
  }
}

// With Label: whether each tag is the label.
template <typename T>
struct CrfDecoding {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("Emission"), &w = ctx.In("Transition");
    HEDDLE_ASSIGN_OR_RETURN(const Chains chains, ChainsOf(ctx));
    const int64_t rows = chains.tags == 0 ? 0 : x.numel() / chains.tags;
    const Shape shape = chains.padded ? Shape{x.dim(0), x.dim(1)} : Shape{rows, 1};
    Tensor& out = ctx.Alloc("ViterbiPath", DType::kI64, shape);
    ZeroAll(out);
    int64_t* path = out.mutable_data<int64_t>();
    for (size_t i = 0; i < chains.begin.size(); ++i)
      if (chains.length[i] > 0)
        BestPath(chains.length[i], chains.tags, x.data<T>() + chains.begin[i] * chains.tags,
                 w.data<T>(), path + chains.begin[i]);
    if (x.has_lod()) out.set_lod(x.lod());
    if (const Tensor* label = ctx.InOpt("Label")) {
      if (label->numel() != rows) return InvalidArgument("Label has ", label->numel(), " elements");
      const Labels labels(ctx, *label);
      for (size_t i = 0; i < chains.begin.size(); ++i)
        for (int64_t k = chains.begin[i]; k < chains.begin[i] + chains.length[i]; ++k)
          path[k] = labels[k] == path[k] ? 1 : 0;
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(linear_chain_crf) {
  op.Doc("the negative log-likelihood of tags under a conditional random field");
  op.Input("Emission").Input("Transition").Input("Label").Input("Length", kOptional);
  op.Output("Alpha").Output("EmissionExps").Output("TransitionExps").Output("LogLikelihood");
  op.InferShape(InferCrf).Kernels<Crf, float, double>();
}
HEDDLE_OP(linear_chain_crf_grad) {
  op.Input("Emission").Input("Transition").Input("Label").Input("Length", kOptional);
  op.Input("Alpha").Input("EmissionExps").Input("TransitionExps").Input("LogLikelihood@GRAD");
  op.Output("Emission@GRAD", kOptional).Output("Transition@GRAD", kOptional);
  op.InferShape(InferCrfGrad).Kernels<CrfGrad, float, double>();
}
HEDDLE_OP(crf_decoding) {
  op.Doc("the most likely tags under a conditional random field").Input("Emission");
  op.Input("Transition").Input("Label", kOptional).Input("Length", kOptional);
  op.Output("ViterbiPath").Kernels<CrfDecoding, float, double>();
}
