// multinomial: samples of categories.
#include <cmath>
#include <random>

#include "core/interrupts.h"
#include "kernels/base/shape_checks.h"
#include "kernels/random/random.h"

namespace heddle {
namespace {

Status InferMultinomial(ShapeContext& ctx) {
  Shape out = ctx.InShape("X");
  if (!out.known_rank()) return ctx.Defer();
  if (out.rank() < 1 || out.rank() > 2)
    return InvalidArgument("X must have one or two axes, not ", out.ToString());
  if (ctx.Int("num_samples") < 1) return InvalidArgument("num_samples must be positive");
  out[out.rank() - 1] = ctx.Int("num_samples");
  ctx.SetOut("Out", out, DType::kI64);
  return Status::Ok();
}

// A category out of cumulated probabilities.
template <typename T>
int64_t Search(const std::vector<T>& cumulated, T at) {
  return std::lower_bound(cumulated.begin(), cumulated.end(), at) - cumulated.begin();
}

// Takes a category away and scales the others up.
template <typename T>
void Remove(int64_t category, std::vector<T>* cumulated) {
  const auto at = static_cast<size_t>(category);
  const T share = (*cumulated)[at] - (at > 0 ? (*cumulated)[at - 1] : T(0));
  const T rest = T(1) - share;
  for (size_t i = 0; i < cumulated->size(); ++i)
    (*cumulated)[i] = ((*cumulated)[i] - (i >= at ? share : T(0))) / rest;
}

template <typename T>
struct Multinomial {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const int64_t categories = x.dim(x.rank() - 1), samples = ctx.Int("num_samples");
    const bool replace = ctx.Bool("replacement");
    OpRandom random(ctx, ctx.Int("seed"));
    int64_t* out = ctx.Out("Out").template mutable_data<int64_t>();
    std::uniform_real_distribution<T> uniform(0, 1);
    std::vector<T> cumulated(static_cast<size_t>(categories));
    for (const int64_t r : Watched((x.rank() == 2 ? x.dim(0) : 1))) {
      const T* weights = x.data<T>() + r * categories;
      T sum = 0;
      int64_t possible = 0;
      for (const int64_t i : Watched(categories)) {
        if (!(weights[i] >= 0) || !std::isfinite(weights[i]))
          return InvalidArgument("X holds ", weights[i], ", which is no probability");
        possible += weights[i] > 0;
        cumulated[static_cast<size_t>(i)] = sum += weights[i];
      }
      if (!(sum > 0)) return InvalidArgument("the probabilities of row ", r, " are all 0");
      if (!replace && possible < samples)
        return InvalidArgument(samples, " samples without replacement out of ", possible,
                               " possible categories");
      for (T& c : cumulated) c /= sum;
      for (const int64_t s : Watched(samples)) {
        const int64_t found = std::min(Search(cumulated, uniform(*random)), categories - 1);
        out[r * samples + s] = found;
        if (!replace && s + 1 < samples) Remove(found, &cumulated);
      }
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(multinomial) {
  op.Doc("categories drawn by their weights").Input("X").Output("Out").Attr("num_samples", 1);
  op.Attr("replacement", false).Attr("seed", 0).Traits(kRandom).InferShape(InferMultinomial);
  op.Kernels<Multinomial, float, double>();
}
