#include "ranks/reduce.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

#include "core/dtype_of.h"
#include "core/half.h"
#include "core/interrupts.h"

namespace heddle {
namespace {

constexpr int64_t kBlock = 1024;  // elements: a level's partial results stay in the nearest cache

template <typename T>
constexpr bool kIsHalf = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

// Integers wrap around.
struct Sum {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    else
      return a + b;
  }
};
struct Product {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    else
      return a * b;
  }
};
struct Largest {
  template <typename T>
  T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};
struct Least {
  template <typename T>
  T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};

template <typename T>
T Divide(T a, int64_t by) {
  if constexpr (kIsHalf<T>)
    return T(static_cast<float>(a) / static_cast<float>(by));
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<int64_t>(a) / by);
  else
    return a / static_cast<T>(by);
}

template <typename T, typename Combine>
class Reducer {
 public:
  Reducer(std::span<const std::byte* const> in, bool average) : in_(in), average_(average) {}

  void Run(std::span<std::byte* const> out, int64_t begin, int64_t end, int64_t shift) {
    // A look for interrupts every some blocks.
    constexpr int64_t kBetweenLooks = 64 * kBlock;
    for (int64_t at = begin; at < end; at += kBlock) {
      if ((at - begin) % kBetweenLooks == 0) LookForInterrupt();
      const auto n = static_cast<size_t>(std::min(kBlock, end - at));
      Block result;
      Tree(0, std::bit_ceil(in_.size()), static_cast<size_t>(at), n, &result);
      for (size_t i = 0; average_ && i < n; ++i)
        result[i] = Divide(result[i], static_cast<int64_t>(in_.size()));
      for (std::byte* o : out)
        std::memcpy(o + static_cast<size_t>(at - shift) * sizeof(T), result.data(), n * sizeof(T));
    }
  }

 private:
  using Block = std::array<T, kBlock>;

  // Of the ranks [first, first + span) those that there are. Precondition: first is one of them.
  void Tree(size_t first, size_t span, size_t at, size_t n, Block* result) {
    if (span == 1) {
      std::memcpy(result->data(), in_[first] + at * sizeof(T), n * sizeof(T));
      return;
    }
    const size_t half = span / 2;
    Tree(first, half, at, n, result);
    if (first + half >= in_.size()) return;
    Block other;
    Tree(first + half, half, at, n, &other);
    for (size_t i = 0; i < n; ++i) {
      if constexpr (kIsHalf<T>)
        (*result)[i] = T(Combine()(static_cast<float>((*result)[i]), static_cast<float>(other[i])));
      else
        (*result)[i] = Combine()((*result)[i], other[i]);
    }
  }

  const std::span<const std::byte* const> in_;
  const bool average_;
};

template <typename Fn>
bool VisitReducible(DType dtype, Fn&& fn) {
  return VisitDType<float, double, float16, bfloat16, int8_t, uint8_t, int16_t, int32_t, int64_t>(
      dtype, fn);
}

}  // namespace

bool IsReducible(DType dtype) {
  return VisitReducible(dtype, [](auto) {});
}

void ReduceRange(Reduction how, DType dtype, std::span<const std::byte* const> in,
                 std::span<std::byte* const> out, int64_t begin, int64_t end, int64_t shift) {
  VisitReducible(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    switch (how) {
      case Reduction::kSum:
        return Reducer<T, Sum>(in, false).Run(out, begin, end, shift);
      case Reduction::kAvg:
        return Reducer<T, Sum>(in, true).Run(out, begin, end, shift);
      case Reduction::kMax:
        return Reducer<T, Largest>(in, false).Run(out, begin, end, shift);
      case Reduction::kMin:
        return Reducer<T, Least>(in, false).Run(out, begin, end, shift);
      case Reduction::kProd:
        return Reducer<T, Product>(in, false).Run(out, begin, end, shift);
    }
  });
}

}  // namespace heddle
