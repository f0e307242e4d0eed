#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

// One sequence: the score of the best path, and the path. The last row of the transitions is that
// of the start tag, the one before that of the stop tag.
template <typename T>
T ViterbiPath(const T* x, const T* w, int64_t length, int64_t d, bool tagged, int64_t* path) {
  std::vector<T> best(x, x + d), next(static_cast<size_t>(d));
  std::vector<int64_t> from(static_cast<size_t>(std::max<int64_t>(length, 1) * d), 0);
  const T *stop = w + (d - 2) * d, *start = w + (d - 1) * d;
  for (int64_t i = 0; tagged && i < d; ++i)
    best[static_cast<size_t>(i)] += start[i] + (length == 1 ? stop[i] : T(0));
  for (const int64_t k : Watched(1, length)) {
    for (int64_t i = 0; i < d; ++i) {
      int64_t arg = 0;
      for (int64_t j = 1; j < d; ++j)
        if (best[static_cast<size_t>(j)] + w[j * d + i] >
            best[static_cast<size_t>(arg)] + w[arg * d + i])
          arg = j;
      from[static_cast<size_t>(k * d + i)] = arg;
      T& score = next[static_cast<size_t>(i)];
      score = best[static_cast<size_t>(arg)] + w[arg * d + i] + x[k * d + i];
      if (tagged && k == length - 1) score += stop[i];
    }
    best.swap(next);
  }
  const auto max = std::max_element(best.begin(), best.end());
  int64_t at = max - best.begin();
  for (int64_t k = length - 1; k >= 0; --k) {
    path[k] = at;
    at = from[static_cast<size_t>(k * d + at)];
  }
  return *max;
}

template <typename T>
struct ViterbiDecode {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("Input"), &w = ctx.In("Transition");
    const Ints lengths = ToInts(ctx.In("Length"));
    const bool tagged = ctx.Bool("include_bos_eos_tag");
    if (x.rank() != 3 || w.rank() != 2 || w.dim(0) != x.dim(2) || w.dim(1) != x.dim(2) ||
        w.dtype() != x.dtype() || std::ssize(lengths) != x.dim(0) || x.dim(1) < 1 ||
        x.dim(2) < (tagged ? 2 : 1))
      return InvalidArgument("Input ", x.shape().ToString(), ", Transition ", w.shape().ToString(),
                             " and ", lengths.size(), " lengths do not fit each other");
    int64_t longest = 0;
    for (int64_t n : lengths) {
      if (n < 0 || n > x.dim(1)) return OutOfRange("length ", n, " is not in [0, ", x.dim(1), "]");
      longest = std::max(longest, n);
    }
    T* scores = ctx.Alloc("Scores", x.dtype(), Shape{x.dim(0)}).template mutable_data<T>();
    Tensor& out = ctx.Alloc("Path", DType::kI64, Shape{x.dim(0), longest});
    WatchedFill(out.mutable_data<int64_t>(), out.numel(), 0);
    for (int64_t n = 0; n < x.dim(0); ++n)
      scores[n] = ViterbiPath(x.data<T>() + n * x.dim(1) * x.dim(2), w.data<T>(),
                              lengths[static_cast<size_t>(n)], x.dim(2), tagged,
                              out.mutable_data<int64_t>() + n * longest);
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(viterbi_decode) {
  op.Doc("the best path of tags through each sequence, and its score");
  op.Input("Input").Input("Transition").Input("Length").Output("Scores").Output("Path");
  op.Attr("include_bos_eos_tag", true).Kernels<ViterbiDecode, float, double>();
}
