#include "tests/ops/dtype_variants.h"

#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>

#include "core/dtype_of.h"
#include "tests/ops/compare.h"
#include "tests/ops/crash_note.h"
#include "tests/ops/examine.h"

namespace heddle::testing {
namespace {

template <typename T>
T CastElement(std::complex<double> x) {
  if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
    return T(x);
  } else if constexpr (std::is_same_v<T, bool>) {
    return x.real() != 0;
  } else if constexpr (std::is_integral_v<T>) {
    constexpr auto kLeast = static_cast<double>(std::numeric_limits<T>::min());
    constexpr auto kMost = static_cast<double>(std::numeric_limits<T>::max());
    if (std::isnan(x.real())) return 0;
    if (x.real() >= kMost) return std::numeric_limits<T>::max();
    return static_cast<T>(std::nearbyint(std::max(x.real(), kLeast)));
  } else {
    return T(static_cast<ComputeType<T>>(x.real()));
  }
}

// Applies `change` to the tensors of dtype `from` that the value holds.
template <typename Change>
void ChangeTensors(Value* value, DType from, Change&& change) {
  const auto apply = [&](Tensor* t) {
    if (t->dtype() == from) *t = change(*t);
  };
  if (value->is_tensor()) apply(&value->tensor());
  if (value->is_rows()) apply(&value->mutable_rows().value);
  if (value->is_array())
    for (Tensor& t : value->mutable_array()) apply(&t);
}

template <typename Change>
Example ChangeInputs(const Example& example, DType from, Change&& change) {
  Example changed = example;
  for (ExampleInput& in : changed.inputs) ChangeTensors(&in.value, from, change);
  return changed;
}

// The dtype of a real or imaginary part.
DType PartOf(DType dtype) {
  if (dtype == DType::kC64) return DType::kF32;
  if (dtype == DType::kC128) return DType::kF64;
  return dtype;
}

// Whether an output of dtype `want` in the example may be of dtype `got` when `from` became `to`.
// Attributes or other operands may decide it, hence `want` itself.
bool MayBe(DType got, DType want, DType from, DType to) {
  return got == want || (want == from && (got == to || got == PartOf(to)));
}

// An integer result for one that is none is cut or rounded.
std::string NearInteger(const Tensor& got, const Tensor& want) {
  if (!(got.shape() == want.shape()))
    return got.shape().ToString() + ", expected " + want.shape().ToString();
  const Tensor largest = CastTensor(Tensor::Of<double>(DType::kF64, {1}, {1e300}), got.dtype());
  const double bound = ElementAt(largest, 0).real();
  for (int64_t i = 0; i < want.numel(); ++i) {
    const double x = ElementAt(got, i).real(), y = ElementAt(want, i).real();
    const bool held = std::abs(y) <= bound && (y >= 0 || got.dtype() != DType::kU8);
    const bool whole = y == std::nearbyint(y);
    if (held && !(whole ? x == y : std::abs(x - y) < 1))
      return "element " + std::to_string(i) + " is " + std::to_string(x) + ", expected " +
             std::to_string(y);
  }
  return "";
}

class DTypeVariant {
 public:
  DTypeVariant(Lab& lab, const Example& example, const OpDef& def, DType from, DType to)
      : lab_(lab), example_(example), from_(from), to_(to) {
    any_ = def.kernel(from) == def.kernel(to);
  }

  // What is wrong; empty when nothing is.
  std::string Run() {
    CrashNote note(example_, std::string(Name(to_)));
    const Example cast = CastInputs(example_, from_, to_);
    std::vector<ExampleOutput> want = example_.outputs;
    if (!Holds(example_, from_, to_) && !Recompute(&want)) return "";
    const auto got = RunExample(lab_.Reference(), cast);
    if (!got.ok()) return any_ && IsRefusal(got.status()) ? "" : got.status().ToString();
    for (size_t i = 0; i < want.size(); ++i) {
      const std::string wrong = Compare(got->outputs[i], want[i]);
      if (!wrong.empty()) return want[i].slot + ": " + wrong;
    }
    return "";
  }

 private:
  static bool IsRefusal(const Status& s) {
    return s.code() == StatusCode::kUnimplemented || s.code() == StatusCode::kInvalidArgument;
  }

  // The outputs for the values that `to` holds, in the example's own dtype. False when they are
  // outside the operator's domain.
  bool Recompute(std::vector<ExampleOutput>* want) {
    const Example rounded = CastInputs(CastInputs(example_, from_, to_), to_, from_);
    const auto outcome = RunExample(lab_.Reference(), rounded);
    if (!outcome.ok()) return false;
    for (size_t i = 0; i < want->size(); ++i) {
      ExampleOutput& out = (*want)[i];
      if (out.check == Check::kValues || out.check == Check::kMeta) out.value = outcome->outputs[i];
    }
    return true;
  }

  std::string Compare(const Value& got, const ExampleOutput& want) const {
    if (want.check == Check::kNothing || !want.value.is_tensor() || !got.is_tensor()) return "";
    const Tensor &x = got.tensor(), &y = want.value.tensor();
    if (!MayBe(x.dtype(), y.dtype(), from_, to_))
      return std::string(Name(x.dtype())) + " where the example has " +
             std::string(Name(y.dtype()));
    if (want.check == Check::kMeta)
      return x.shape() == y.shape() ? ""
                                    : x.shape().ToString() + ", expected " + y.shape().ToString();
    if (want.check == Check::kStatistics) {
      ExampleOutput same = want;
      same.value = Value(CastTensor(y, x.dtype()));
      return Matches(got, same, std::nullopt);
    }
    if (IsInteger(x.dtype()) != IsInteger(y.dtype()) || x.dtype() == DType::kBool)
      return x.dtype() == DType::kBool ? Near(x, CastTensor(y, DType::kBool), {})
                                       : NearInteger(x, y);
    if (IsInteger(x.dtype())) return NearInteger(x, y);
    const Tolerance own = example_.close.value_or(DefaultTolerance(y.dtype()));
    const Tolerance other = DefaultTolerance(x.dtype());
    return Near(x, y, {std::max(own.rtol, other.rtol), std::max(own.atol, other.atol)});
  }

  Lab& lab_;
  const Example& example_;
  const DType from_, to_;
  bool any_;  // one kernel serves both dtypes, and may refuse one
};

}  // namespace

DType KeyDType(const Example& example, const OpDef& def) {
  for (size_t slot = 0; slot < def.inputs().size(); ++slot) {
    if (def.kernel_key() >= 0 && def.kernel_key() != static_cast<int>(slot)) continue;
    for (const ExampleInput& in : example.inputs) {
      if (in.slot != def.inputs()[slot].name) continue;
      if (in.value.is_tensor()) return in.value.tensor().dtype();
      if (in.value.is_rows()) return in.value.rows().value.dtype();
    }
  }
  return DType::kUnknown;
}

Tensor CastTensor(const Tensor& tensor, DType to) {
  Tensor cast = Tensor::Empty(to, tensor.shape());
  VisitDType<bool, uint8_t, int8_t, int16_t, int32_t, int64_t, float16, bfloat16, float, double,
             std::complex<float>, std::complex<double>>(to, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < tensor.numel(); ++i)
      cast.mutable_data<T>()[i] = CastElement<T>(ElementAt(tensor, i));
  });
  cast.set_lod(tensor.lod());
  return cast;
}

Example CastInputs(const Example& example, DType from, DType to) {
  return ChangeInputs(example, from, [&](const Tensor& t) { return CastTensor(t, to); });
}

bool Holds(const Example& example, DType from, DType to) {
  bool holds = true;
  ChangeInputs(example, from, [&](const Tensor& t) {
    const Tensor back = CastTensor(CastTensor(t, to), from);
    holds = holds && SameElements(Value(back), Value(t)).empty();
    return t;
  });
  return holds;
}

Problems CheckDTypes(Lab& lab, const Example& example, const OpDef& def) {
  Problems problems;
  const DType from = KeyDType(example, def);
  if (from == DType::kUnknown || example.is_program()) return problems;
  for (int i = 0; i + 1 < kNumDTypes; ++i) {
    const auto to = static_cast<DType>(i);
    if (to == from || def.kernel(to) == nullptr) continue;
    // A real part alone is another function's argument.
    if (IsComplex(from) && !IsComplex(to)) continue;
    const std::string wrong = DTypeVariant(lab, example, def, from, to).Run();
    if (!wrong.empty()) problems.push_back({std::string(Name(to)), wrong});
  }
  return problems;
}

}  // namespace heddle::testing
