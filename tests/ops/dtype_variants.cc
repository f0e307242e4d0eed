#include "tests/ops/dtype_variants.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
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

// The real dtype of a complex one, and the reverse; kUnknown where there is none.
DType RealOf(DType dtype) {
  if (dtype == DType::kC64) return DType::kF32;
  return dtype == DType::kC128 ? DType::kF64 : DType::kUnknown;
}
DType ComplexOf(DType dtype) {
  if (dtype == DType::kF32) return DType::kC64;
  return dtype == DType::kF64 ? DType::kC128 : DType::kUnknown;
}

bool IsExact(DType dtype) { return IsInteger(dtype); }

// The widest of these dtypes' tolerances, or the example's own.
Tolerance WidestTolerance(const Example& e, std::initializer_list<DType> dtypes) {
  Tolerance widest = e.close.value_or(Tolerance{});
  for (const DType dtype : dtypes) {
    const Tolerance t = DefaultTolerance(dtype);
    widest = {std::max(widest.rtol, t.rtol), std::max(widest.atol, t.atol)};
  }
  return widest;
}

// Integer arithmetic for other, or the reverse: results may be cut or rounded where they are no
// integers, and mean nothing where they leave the integers' range.
std::string NearInteger(const Tensor& got, const Tensor& want, double rtol) {
  if (!(got.shape() == want.shape()))
    return got.shape().ToString() + ", expected " + want.shape().ToString();
  const DType integers = IsExact(got.dtype()) ? got.dtype() : want.dtype();
  const Tensor extreme = Tensor::Of<double>(DType::kF64, {2}, {-1e300, 1e300});
  const Tensor bounds = CastTensor(extreme, integers);
  const double least = ElementAt(bounds, 0).real(), most = ElementAt(bounds, 1).real();
  for (int64_t i = 0; i < want.numel(); ++i) {
    const double x = ElementAt(got, i).real(), y = ElementAt(want, i).real();
    if (!(std::min(x, y) > least && std::max(x, y) < most)) continue;
    const bool both = IsExact(got.dtype()) && IsExact(want.dtype());
    if (both ? x != y : std::abs(x - y) >= 1 + rtol * std::abs(y))
      return "element " + std::to_string(i) + " is " + std::to_string(x) + ", expected " +
             std::to_string(y);
  }
  return "";
}

// A fractional attribute means something else to integers.
bool HasFraction(const Example& e) {
  return std::any_of(e.attrs.begin(), e.attrs.end(), [](const proto::OpDesc_Attr& a) {
    return (a.type() == proto::FLOAT && a.f() != std::nearbyint(a.f())) ||
           (a.type() == proto::FLOAT64 && a.float64() != std::nearbyint(a.float64()));
  });
}

class DTypeVariant {
 public:
  DTypeVariant(Lab& lab, const Example& example, const OpDef& def, DType from, DType to)
      : lab_(lab), example_(example), def_(def), from_(from), to_(to) {
    any_ = def.kernel(from) == def.kernel(to);
    holds_ = Holds(example, from, to);
    want_ = example.outputs;
  }

  // Whether Run has had a result.
  bool ran() const { return ran_; }
  // What is wrong, on the host or with the CUDA kernels; empty when nothing is.
  //
  // A definition does not say which operands share the key's dtype: all that have it in the example
  // do, or else some of them beside the key.
  std::string Run() {
    CrashNote note(example_, std::string(Name(to_)));
    auto got = RunCast({});
    const Status refusal = got.status();
    const std::vector<std::string> others = SlotsOf(from_);
    constexpr size_t kMost = 5;
    if (!got.ok() && !others.empty() && others.size() <= kMost)
      for (size_t left_out = 1; !got.ok() && left_out < size_t{1} << others.size(); ++left_out) {
        std::vector<std::string> same;
        for (size_t i = 0; i < others.size(); ++i)
          if ((left_out >> i & 1) != 0) same.push_back(others[i]);
        got = RunCast(same);
      }
    if (!got.ok()) return IsRefusal(refusal) ? "" : refusal.ToString();
    ran_ = true;
    if (!holds_ && !Recompute()) return "";
    std::string wrong = CompareAll(*got);
    if (!wrong.empty() || def_.has(kRandom)) return wrong;
    const auto on_grid = RunExample(lab_.Grid(), cast_);
    wrong = on_grid.ok() ? CompareAll(*on_grid) : on_grid.status().ToString();
    return wrong.empty() ? "" : "CUDA kernels on the host: " + wrong;
  }

 private:
  // "Not for this dtype" of a kernel that serves all, or of values that the cast has changed.
  bool IsRefusal(const Status& s) const {
    if (s.code() == StatusCode::kUnimplemented) return true;
    return (any_ || !holds_) &&
           (s.code() == StatusCode::kInvalidArgument || s.code() == StatusCode::kOutOfRange);
  }

  // The outputs for the values that cast_ holds, in the example's own dtype. False when they are
  // outside the operator's domain.
  bool Recompute() {
    Example rounded = example_;
    for (size_t i = 0; i < rounded.inputs.size(); ++i)
      ChangeTensors(&rounded.inputs[i].value, from_, [&](const Tensor& t) {
        return WasCast(i) ? CastTensor(CastTensor(t, to_), from_) : t;
      });
    const auto outcome = RunExample(lab_.Reference(), rounded);
    if (!outcome.ok()) return false;
    for (size_t i = 0; i < want_.size(); ++i)
      if (want_[i].check == Check::kValues || want_[i].check == Check::kMeta)
        want_[i].value = outcome->outputs[i];
    return true;
  }

  // Sets cast_: the operands of dtype from_, but for those of the slots in `same`.
  Result<Outcome> RunCast(const std::vector<std::string>& same) {
    same_ = same;
    cast_ = example_;
    for (size_t i = 0; i < cast_.inputs.size(); ++i) {
      Value* const value = &cast_.inputs[i].value;
      const auto to = [](DType dtype) {
        return [dtype](const Tensor& t) { return CastTensor(t, dtype); };
      };
      // What keeps company with the key goes with its precision: real beside complex, and the
      // reverse.
      if (WasCast(i))
        ChangeTensors(value, from_, to(to_));
      else if (IsComplex(to_) && IsFloat(from_))
        ChangeTensors(value, from_, to(RealOf(to_)));
      if (ComplexOf(from_) != DType::kUnknown && ComplexOf(to_) != DType::kUnknown)
        ChangeTensors(value, ComplexOf(from_), to(ComplexOf(to_)));
      if (IsComplex(from_) && IsComplex(to_)) ChangeTensors(value, RealOf(from_), to(RealOf(to_)));
    }
    return RunExample(lab_.Reference(), cast_);
  }
  bool WasCast(size_t input) const {
    return std::find(same_.begin(), same_.end(), example_.inputs[input].slot) == same_.end();
  }

  // The slots with operands of this dtype, but for the one that chooses the kernel.
  std::vector<std::string> SlotsOf(DType dtype) const {
    const std::string key = KeySlot(example_, def_);
    std::vector<std::string> slots;
    for (const ExampleInput& in : example_.inputs)
      if (in.slot != key && in.value.is_tensor() && in.value.tensor().dtype() == dtype &&
          std::find(slots.begin(), slots.end(), in.slot) == slots.end())
        slots.push_back(in.slot);
    return slots;
  }

  std::string CompareAll(const Outcome& got) const {
    for (size_t i = 0; i < want_.size(); ++i) {
      const std::string wrong = Compare(got.outputs[i], want_[i]);
      if (!wrong.empty()) return want_[i].slot + ": " + wrong;
    }
    return "";
  }

  std::string Compare(const Value& got, const ExampleOutput& want) const {
    if (want.check == Check::kNothing || !want.value.is_tensor() || !got.is_tensor()) return "";
    const Tensor &x = got.tensor(), &y = want.value.tensor();
    if (want.check == Check::kStatistics) return CompareDrawn(got, want);
    const bool crosses = IsExact(from_) != IsExact(to_);
    // A gradient in integers is cut on the way.
    const bool cut = crosses && def_.name().ends_with("_grad");
    const bool values = want.check == Check::kValues && !def_.has(kRandom) && !cut &&
                        from_ != DType::kBool && to_ != DType::kBool &&
                        !(crosses && HasFraction(example_));
    if (!values)
      return x.shape() == y.shape() ? ""
                                    : x.shape().ToString() + ", expected " + y.shape().ToString();
    // An output may have another dtype than the one that it is computed in.
    const Tolerance t = WidestTolerance(example_, {x.dtype(), y.dtype(), to_, from_});
    if (IsExact(x.dtype()) || IsExact(y.dtype()) || crosses) return NearInteger(x, y, t.rtol);
    return Near(x, Comparable(y, x), t);
  }

  // Drawn values in a dtype that has fewer digits are rounded, and so are bounds and moments that
  // the statistics name. Those of booleans say nothing about other numbers.
  std::string CompareDrawn(const Value& got, const ExampleOutput& want) const {
    const DType dtype = got.tensor().dtype();
    ExampleOutput same = want;
    same.value = Value(CastTensor(want.value.tensor(), dtype));
    if (dtype != want.value.tensor().dtype() && dtype == DType::kBool) same.check = Check::kMeta;
    const Tolerance t = DefaultTolerance(dtype);
    const auto slack = [&t](double x) { return t.atol + t.rtol * std::abs(x); };
    Statistics& s = same.statistics;
    if (s.range)
      s.range = {s.range->first - slack(s.range->first), s.range->second + slack(s.range->second)};
    if (s.mean) s.mean->second += slack(s.mean->first);
    if (s.variance) s.variance->second += slack(s.variance->first);
    return Matches(got, same, std::nullopt);
  }

  // A finite number that `dtype` cannot hold.
  static bool Overflowed(std::complex<double> x, DType dtype) {
    const Tensor one = Tensor::Of<std::complex<double>>(DType::kC128, {1}, {x});
    return std::isfinite(x.real()) && std::isinf(ElementAt(CastTensor(one, dtype), 0).real());
  }

  // `want` in the dtype of `got`. Elements that say nothing become those of `got`: beyond that
  // dtype's range, or without a value in real numbers where the function may have a complex one.
  Tensor Comparable(const Tensor& want, const Tensor& got) const {
    Tensor comparable = CastTensor(want, got.dtype());
    if (!(got.shape() == want.shape())) return comparable;
    const size_t size = SizeOf(got.dtype());
    const bool wider = IsComplex(to_) && !IsComplex(from_);
    for (int64_t i = 0; i < want.numel(); ++i) {
      const std::complex<double> exact = ElementAt(want, i), cast = ElementAt(comparable, i);
      const bool beyond = std::isfinite(exact.real()) ? !std::isfinite(cast.real())
                                                      : Overflowed(ElementAt(got, i), want.dtype());
      if (beyond || (wider && std::isnan(exact.real())))
        std::memcpy(static_cast<char*>(comparable.mutable_raw()) + static_cast<size_t>(i) * size,
                    static_cast<const char*>(got.raw()) + static_cast<size_t>(i) * size, size);
    }
    return comparable;
  }

  Lab& lab_;
  const Example& example_;
  const OpDef& def_;
  const DType from_, to_;
  bool any_;    // one kernel serves both dtypes, and may refuse one
  bool holds_;  // the cast changes no value
  bool ran_ = false;
  Example cast_;
  std::vector<std::string> same_;  // slots that cast_ has as they are
  std::vector<ExampleOutput> want_;
};

}  // namespace

std::string KeySlot(const Example& example, const OpDef& def) {
  for (size_t slot = 0; slot < def.inputs().size(); ++slot) {
    const std::string& name = def.inputs()[slot].name;
    if (def.kernel_key() >= 0 && def.kernel_key() != static_cast<int>(slot)) continue;
    for (const ExampleInput& in : example.inputs)
      if (in.slot == name && !in.value.is_array()) return name;
  }
  return "";
}

DType KeyDType(const Example& example, const OpDef& def) {
  const std::string key = KeySlot(example, def);
  for (const ExampleInput& in : example.inputs)
    if (in.slot == key)
      return in.value.is_rows() ? in.value.rows().value.dtype() : in.value.tensor().dtype();
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

bool Holds(const Example& example, DType from, DType to) {
  bool holds = true;
  for (ExampleInput in : example.inputs)
    ChangeTensors(&in.value, from, [&](const Tensor& t) {
      const Tensor back = CastTensor(CastTensor(t, to), from);
      holds = holds && SameElements(Value(back), Value(t)).empty();
      return t;
    });
  return holds;
}

Problems CheckDTypes(Lab& lab, const Example& example, const OpDef& def, std::set<DType>* ran) {
  Problems problems;
  const DType from = KeyDType(example, def);
  ran->insert(from);
  if (from == DType::kUnknown || example.is_program() || !example.no_dtypes.empty())
    return problems;
  for (int i = 0; i + 1 < kNumDTypes; ++i) {
    const auto to = static_cast<DType>(i);
    if (to == from || def.kernel(to) == nullptr) continue;
    // A real part alone is another function's argument.
    if (IsComplex(from) && !IsComplex(to)) continue;
    if (IsComplex(to) && !IsComplex(from) && !example.no_complex.empty()) continue;
    DTypeVariant variant(lab, example, def, from, to);
    const std::string wrong = variant.Run();
    if (variant.ran()) ran->insert(to);
    if (!wrong.empty()) problems.push_back({std::string(Name(to)), wrong});
  }
  return problems;
}

}  // namespace heddle::testing
