#include "kernels/estimators/scores.h"

#include <cmath>

namespace heddle {
namespace {

template <typename T>
T Logistic(T x) {
  const T v = T(1) / (T(1) + std::exp(-std::fabs(x)));
  return x < 0 ? T(1) - v : v;
}

// The inverse of the error function, by the approximation that ONNX's runtimes share.
template <typename T>
T ErfInverse(T x) {
  const T sign = x < 0 ? T(-1) : T(1);
  const T log = std::log((T(1) - x) * (T(1) + x));
  const T v = T(2) / (T(3.14159265) * T(0.147)) + T(0.5) * log;
  return sign * std::sqrt(-v + std::sqrt(v * v - log / T(0.147)));
}
template <typename T>
T Probit(T x) {
  return T(1.41421356) * ErfInverse(T(2) * x - T(1));
}

template <typename T>
void Softmax(std::pmr::vector<T>* scores) {
  const T most = *std::max_element(scores->begin(), scores->end());
  T sum = 0;
  for (T& x : *scores) sum += x = std::exp(x - most);
  for (T& x : *scores) x /= sum;
}

// Scores of zero stay near zero.
template <typename T>
void SoftmaxZero(std::pmr::vector<T>* scores) {
  const T most = *std::max_element(scores->begin(), scores->end());
  const T least = std::exp(-most);
  T sum = 0;
  for (T& x : *scores) sum += x = std::fabs(x) > T(0.0000001) ? std::exp(x - most) : x * least;
  for (T& x : *scores) x = sum == 0 ? T(0.5) : x / sum;
}

}  // namespace

Result<PostTransform> PostTransformOf(const std::string& name) {
  constexpr const char* kNames[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  for (size_t i = 0; i < std::size(kNames); ++i)
    if (name == kNames[i]) return static_cast<PostTransform>(i);
  return InvalidArgument("post_transform is '", name,
                         "', expected NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT");
}

template <typename T>
void TransformScores(PostTransform transform, SecondScore second, std::pmr::vector<T>* scores) {
  if (scores->empty()) return;
  if (scores->size() == 1) {
    const T x = (*scores)[0];
    if (transform == PostTransform::kProbit) {
      (*scores)[0] = Probit(x);
      return;
    }
    if (second == SecondScore::kComplement) {
      scores->assign({T(1) - x, x});
      return;
    }
    if (second == SecondScore::kAbsent) {
      if (transform == PostTransform::kLogistic) (*scores)[0] = Logistic(x);
      return;
    }
    scores->assign({-x, x});
  }
  switch (transform) {
    case PostTransform::kNone:
      return;
    case PostTransform::kSoftmax:
      return Softmax(scores);
    case PostTransform::kSoftmaxZero:
      return SoftmaxZero(scores);
    case PostTransform::kLogistic:
      for (T& x : *scores) x = Logistic(x);
      return;
    case PostTransform::kProbit:
      for (T& x : *scores) x = Probit(x);
  }
}
template void TransformScores(PostTransform, SecondScore, std::pmr::vector<float>*);
template void TransformScores(PostTransform, SecondScore, std::pmr::vector<double>*);

Result<SampleRows> SampleRowsOf(const Shape& x) {
  if (x.rank() == 1) return SampleRows{1, x[0]};
  if (x.rank() == 2) return SampleRows{x[0], x[1]};
  return InvalidArgument("X has shape ", x.ToString(), ", expected [N, features] or [features]");
}

Result<int64_t> LabelCountOf(const OpContext& ctx, Key ints) {
  const size_t numbers = ctx.IntList(ints).size();
  const size_t texts = ctx.Attr<Strings>("classlabels_strings").size();
  if (numbers != 0 && texts != 0)
    return InvalidArgument(ints.name, " has ", numbers, " and classlabels_strings ", texts,
                           " labels, expected one of the two lists");
  return static_cast<int64_t>(numbers + texts);
}

template <typename T>
std::pmr::vector<T> Samples(const KernelContext& ctx, const Tensor& x, CallHeap* heap) {
  std::pmr::vector<T> values(static_cast<size_t>(x.numel()), heap);
  ConvertElements(ctx, x.raw(), x.dtype(), values.data(), kDTypeOf<T>, x.numel());
  return values;
}
template std::pmr::vector<float> Samples(const KernelContext&, const Tensor&, CallHeap*);
template std::pmr::vector<double> Samples(const KernelContext&, const Tensor&, CallHeap*);

}  // namespace heddle
