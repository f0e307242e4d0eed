#include "executor/run/check_finite.h"

#include <cmath>
#include <complex>

#include "core/dtype_of.h"
#include "core/error.h"
#include "core/half.h"
#include "executor/plan/shapes/instruction_facts.h"

namespace heddle {
namespace {

template <typename T>
bool IsFinite(T v) {
  return std::isfinite(static_cast<double>(v));
}
template <typename T>
bool IsFinite(std::complex<T> v) {
  return std::isfinite(v.real()) && std::isfinite(v.imag());
}

template <typename T>
std::string Text(T v) {
  return StrCat(static_cast<double>(v));
}
template <typename T>
std::string Text(std::complex<T> v) {
  return StrCat("(", v.real(), ", ", v.imag(), ")");
}

// The first non-finite element as "nan at [1, 2]"; empty: all are finite.
template <typename T>
std::string FindIn(const Tensor& t) {
  const T* x = t.data<T>();
  for (int64_t i = 0; i < t.numel(); ++i) {
    if (IsFinite(x[i])) [[likely]]
      continue;
    Shape at = t.shape();
    int64_t rest = i;
    for (int k = t.rank(); k-- > 0; rest /= t.dim(k)) at[k] = rest % t.dim(k);
    return StrCat(Text(x[i]), " at ", at.ToString());
  }
  return "";
}

std::string Find(const Tensor& t) {
  if (!t.initialized() || t.numel() == 0 || !t.is_contiguous()) return "";
  switch (t.dtype()) {
    case DType::kF32:
      return FindIn<float>(t);
    case DType::kF64:
      return FindIn<double>(t);
    case DType::kF16:
      return FindIn<float16>(t);
    case DType::kBF16:
      return FindIn<bfloat16>(t);
    case DType::kC64:
      return FindIn<std::complex<float>>(t);
    case DType::kC128:
      return FindIn<std::complex<double>>(t);
    default:
      return "";
  }
}

std::string Find(const Value& v) {
  if (v.is_tensor()) return Find(v.tensor());
  if (v.is_rows()) return Find(v.rows().value);
  if (!v.is_array()) return "";
  for (size_t i = 0; i < v.array().size(); ++i)
    if (std::string found = Find(v.array()[i]); !found.empty())
      return StrCat(found, " of entry ", i);
  return "";
}

// The slot with the result: a hidden slot has become the variable by now.
uint32_t SlotAfter(const Instruction& in, uint32_t slot) {
  const Instruction::Rewrite* r = RewriteOf(in, slot);
  return r == nullptr ? slot : r->real;
}

}  // namespace

Status CheckFinite(const Plan& plan, const Instruction& in, Value* const* frame) {
  // Outputs of control flow were written, and checked, inside the blocks.
  if (in.op.def->has(kControlFlow)) return Status::Ok();
  const auto& outputs = in.op.def->outputs();
  for (size_t o = 0; o < outputs.size(); ++o)
    for (uint32_t k = in.op.out_begin[o]; k < in.op.out_begin[o + 1]; ++k) {
      if (in.op.out[k] == kNoSlot) continue;
      const uint32_t slot = SlotAfter(in, in.op.out[k]);
      const std::string found = Find(*frame[slot]);
      if (found.empty()) continue;
      const Value& v = *frame[slot];
      const std::string what =
          v.is_tensor() ? StrCat(", ", Name(v.tensor().dtype()), " ", v.tensor().shape().ToString())
                        : "";
      return OutOfRange("check_nan_inf: output '", outputs[o].name, "' (variable '",
                        plan.program->vars[plan.slots[slot].var].name, "'", what, ") holds ",
                        found);
    }
  return Status::Ok();
}

}  // namespace heddle
