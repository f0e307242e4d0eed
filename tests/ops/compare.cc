#include "tests/ops/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <sstream>

#include "core/dtype_of.h"

namespace heddle::testing {
namespace {

using Complex = std::complex<double>;

std::string Meta(const Tensor& t) {
  return std::string(Name(t.dtype())) + " " + t.shape().ToString();
}

std::string Text(const Tensor& t, int64_t i) {
  std::ostringstream out;
  out.precision(9);
  const Complex x = ElementAt(t, i);
  if (t.dtype() == DType::kI64)
    out << t.data<int64_t>()[i];
  else if (IsComplex(t.dtype()))
    out << x.real() << (x.imag() < 0 ? "" : "+") << x.imag() << "j";
  else
    out << x.real();
  return out.str();
}

std::string LoDText(const LoD& lod) {
  std::string text = "[";
  for (const auto& level : lod) {
    text += "[";
    for (size_t offset : level) text += (text.back() == '[' ? "" : ", ") + std::to_string(offset);
    text += "]";
  }
  return text + "]";
}

std::string Differ(const Tensor& got, const Tensor& want, int64_t i) {
  return "element " + std::to_string(i) + " of " + Meta(want) + " is " + Text(got, i) +
         ", expected " + Text(want, i);
}

// The same shape, and the sequence offsets where some are expected.
std::string SameForm(const Tensor& got, const Tensor& want) {
  if (!(got.shape() == want.shape())) return Meta(got) + ", expected " + Meta(want);
  if (want.has_lod() && got.lod() != want.lod())
    return "sequence offsets " + LoDText(got.lod()) + ", expected " + LoDText(want.lod());
  return "";
}

std::string SameMeta(const Tensor& got, const Tensor& want) {
  if (got.dtype() != want.dtype()) return Meta(got) + ", expected " + Meta(want);
  return SameForm(got, want);
}

bool Close(double x, double y, const Tolerance& t) {
  if (x == y || (std::isnan(x) && std::isnan(y))) return true;
  return std::isfinite(x) && std::isfinite(y) && std::abs(x - y) <= t.atol + t.rtol * std::abs(y);
}

// Complex elements count as one number, unless a part is not finite.
bool Close(Complex x, Complex y, const Tolerance& t) {
  if (Close(x.real(), y.real(), t) && Close(x.imag(), y.imag(), t)) return true;
  const bool finite = std::isfinite(std::abs(x)) && std::isfinite(std::abs(y));
  return finite && std::abs(x - y) <= t.atol + t.rtol * std::abs(y);
}

std::string CloseTensors(const Tensor& got, const Tensor& want, const Tolerance& tolerance) {
  if (std::string wrong = SameMeta(got, want); !wrong.empty()) return wrong;
  if (want.dtype() == DType::kI64) {
    for (int64_t i = 0; i < want.numel(); ++i)
      if (got.data<int64_t>()[i] != want.data<int64_t>()[i]) return Differ(got, want, i);
    return "";
  }
  for (int64_t i = 0; i < want.numel(); ++i)
    if (!Close(ElementAt(got, i), ElementAt(want, i), tolerance)) return Differ(got, want, i);
  return "";
}

std::string OutOf(const char* what, double got, const std::pair<double, double>& bound) {
  if (std::abs(got - bound.first) <= bound.second) return "";
  std::ostringstream out;
  out << what << " is " << got << ", expected " << bound.first << " within " << bound.second;
  return out.str();
}

std::string HasStatistics(const Tensor& t, const Statistics& want) {
  double sum = 0, squares = 0;
  std::set<double> distinct;
  for (int64_t i = 0; i < t.numel(); ++i) {
    const double x = ElementAt(t, i).real();
    sum += x;
    squares += x * x;
    distinct.insert(x);
    if (want.range && !(x >= want.range->first && x <= want.range->second))
      return "element " + std::to_string(i) + " is " + Text(t, i) + ", outside the range";
  }
  const double n = static_cast<double>(t.numel()), mean = sum / n;
  std::string wrong;
  if (want.mean) wrong = OutOf("the mean", mean, *want.mean);
  if (want.variance && wrong.empty())
    wrong = OutOf("the variance", squares / n - mean * mean, *want.variance);
  if (want.distinct && wrong.empty() && static_cast<int64_t>(distinct.size()) != *want.distinct)
    wrong = std::to_string(distinct.size()) + " different values, expected " +
            std::to_string(*want.distinct);
  return wrong;
}

std::string MatchTensor(const Tensor& got, const Tensor& want, const ExampleOutput& out,
                        const std::optional<Tolerance>& close) {
  switch (out.check) {
    case Check::kNothing:
      return "";
    case Check::kMeta:
      return SameMeta(got, want);
    case Check::kStatistics: {
      const std::string wrong = SameMeta(got, want);
      return wrong.empty() ? HasStatistics(got, out.statistics) : wrong;
    }
    case Check::kValues:
      break;
  }
  const bool exact = IsInteger(want.dtype());
  return CloseTensors(got, want,
                      exact ? Tolerance{} : close.value_or(DefaultTolerance(want.dtype())));
}

// Applies `compare` to the tensors that both values hold.
template <typename Compare>
std::string Each(const Value& got, const Value& want, Compare&& compare) {
  if (got.kind() != want.kind()) return "another kind of value";
  if (want.is_tensor()) return compare(got.tensor(), want.tensor());
  if (want.is_rows()) {
    if (got.rows().rows != want.rows().rows) return "other row numbers";
    if (got.rows().height != want.rows().height)
      return "height " + std::to_string(got.rows().height) + ", expected " +
             std::to_string(want.rows().height);
    return compare(got.rows().value, want.rows().value);
  }
  if (got.array().size() != want.array().size())
    return std::to_string(got.array().size()) + " tensors in the array, expected " +
           std::to_string(want.array().size());
  for (size_t i = 0; i < want.array().size(); ++i) {
    const std::string wrong = compare(got.array()[i], want.array()[i]);
    if (!wrong.empty()) return "item " + std::to_string(i) + ": " + wrong;
  }
  return "";
}

bool IsNan(Complex x) { return std::isnan(x.real()) || std::isnan(x.imag()); }

double LargestFinite(const Tensor& t) {
  double largest = 0;
  for (int64_t i = 0; i < t.numel(); ++i) {
    const double size = std::abs(ElementAt(t, i));
    if (std::isfinite(size)) largest = std::max(largest, size);
  }
  return largest;
}

}  // namespace

Complex ElementAt(const Tensor& t, int64_t i) {
  Complex x = 0;
  VisitDType<bool, uint8_t, int8_t, int16_t, int32_t, int64_t, float16, bfloat16, float, double,
             std::complex<float>, std::complex<double>>(t.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>)
      x = Complex(t.data<T>()[i]);
    else
      x = static_cast<double>(static_cast<ComputeType<T>>(t.data<T>()[i]));
  });
  return x;
}

std::string SameElements(const Value& got, const Value& want) {
  return Each(got, want, [](const Tensor& a, const Tensor& b) -> std::string {
    if (a.initialized() != b.initialized()) return "one of both holds nothing";
    if (!b.initialized()) return "";
    if (std::string wrong = SameMeta(a, b); !wrong.empty()) return wrong;
    if (a.has_lod() != b.has_lod()) return "only one of both has sequence offsets";
    const size_t size = SizeOf(b.dtype());
    const auto *x = static_cast<const char*>(a.raw()), *y = static_cast<const char*>(b.raw());
    for (int64_t i = 0; i < b.numel(); ++i, x += size, y += size)
      if (std::memcmp(x, y, size) != 0 && !(IsNan(ElementAt(a, i)) && IsNan(ElementAt(b, i))))
        return Differ(a, b, i);
    return "";
  });
}

std::string Matches(const Value& got, const ExampleOutput& want,
                    const std::optional<Tolerance>& close) {
  if (want.check == Check::kNothing) return "";
  return Each(got, want.value,
              [&](const Tensor& a, const Tensor& b) { return MatchTensor(a, b, want, close); });
}

std::string Near(const Tensor& got, const Tensor& want, const Tolerance& tolerance) {
  if (std::string wrong = SameForm(got, want); !wrong.empty()) return wrong;
  const double scale = std::max(1.0, LargestFinite(want));
  const Tolerance scaled{tolerance.rtol, tolerance.atol * scale};
  for (int64_t i = 0; i < want.numel(); ++i)
    if (!Close(ElementAt(got, i), ElementAt(want, i), scaled)) return Differ(got, want, i);
  return "";
}

}  // namespace heddle::testing
