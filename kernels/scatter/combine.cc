#include "kernels/scatter/combine.h"

#include "kernels/base/convert.h"

namespace heddle {
namespace {

template <typename T, Update kHow, bool kNewStays>
T Combined(T old, T update) {
  using C = ComputeType<T>;
  const C a = static_cast<C>(old), b = static_cast<C>(update);
  if constexpr (kHow == Update::kMin)
    return kNewStays ? (a < b ? old : update) : (b < a ? update : old);
  else if constexpr (kHow == Update::kMax)
    return kNewStays ? (a > b ? old : update) : (a < b ? update : old);
  else if constexpr (kHow == Update::kAssign)
    return update;
  else if constexpr (std::is_same_v<T, bool>)
    return kHow == Update::kMul ? a && b : kHow == Update::kAdd ? a || b : a != b;
  else if constexpr (kHow == Update::kAdd)
    return static_cast<T>(AddFn::Apply(a, b));
  else if constexpr (kHow == Update::kSub)
    return static_cast<T>(SubFn::Apply(a, b));
  else if constexpr (kHow == Update::kMul)
    return static_cast<T>(MulFn::Apply(a, b));
  else
    return static_cast<T>(DivFn::Apply(a, b));
}

template <typename T, Update kHow, bool kNewStays = false>
void Combine(void* to_raw, const void* from_raw, int64_t n, int64_t step) {
  T* to = static_cast<T*>(to_raw);
  const T* from = static_cast<const T*>(from_raw);
  for (const auto part : Stretches(n))
    for (int64_t i = part.begin; i < part.end; ++i)
      to[i] = Combined<T, kHow, kNewStays>(to[i], from[i * step]);
}

// Null: the dtype has no such combination.
template <typename T>
CombineFn CombineAs(Update how, bool new_stays) {
  switch (how) {
    case Update::kAssign:
      return &Combine<T, Update::kAssign>;
    case Update::kAdd:
      return &Combine<T, Update::kAdd>;
    case Update::kSub:
      return &Combine<T, Update::kSub>;
    case Update::kMul:
      return &Combine<T, Update::kMul>;
    case Update::kDiv:
      if constexpr (!std::is_same_v<T, bool>) return &Combine<T, Update::kDiv>;
      return nullptr;
    case Update::kMin:
      if constexpr (!kIsComplex<T>)
        return new_stays ? &Combine<T, Update::kMin, true> : &Combine<T, Update::kMin>;
      return nullptr;
    case Update::kMax:
      if constexpr (!kIsComplex<T>)
        return new_stays ? &Combine<T, Update::kMax, true> : &Combine<T, Update::kMax>;
      return nullptr;
  }
  return nullptr;
}

}  // namespace

Result<Update> UpdateOf(const std::string& reduce) {
  constexpr std::string_view kNames[] = {"assign", "add", "sub", "mul", "div", "min", "max"};
  for (size_t i = 0; i < std::size(kNames); ++i)
    if (reduce == kNames[i]) return static_cast<Update>(i);
  return InvalidArgument("reduce is '", reduce,
                         "', expected assign, add, sub, mul, div, min or max");
}

Result<CombineFn> CombineOf(Update how, bool new_stays, DType dtype) {
  CombineFn fn = nullptr;
  VisitAnyDType(dtype,
                [&](auto tag) { fn = CombineAs<typename decltype(tag)::type>(how, new_stays); });
  if (fn == nullptr) return Unimplemented("elements of ", Name(dtype), " cannot be combined so");
  return fn;
}

Result<bool> NewStays(const OpContext& ctx) {
  const std::string& stays = ctx.Str("undecided");
  if (stays == "old" || stays == "new") return stays == "new";
  return InvalidArgument("undecided is '", stays, "', expected old or new");
}

}  // namespace heddle
