// Inner loops of reductions, from a functor.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <limits>

#include "core/dtype_of.h"
#include "kernels/folds/reduce.h"

namespace heddle {

inline constexpr size_t kMaxAccumulator = sizeof(std::complex<double>);

// A reduction R has Acc<T>, Init<A>(), Load<A>(x), Combine(a, b), Finish<A>(a, count) and
// kAnyOrder. A row has several independent accumulators, so that the loop becomes vector code and
// rounding errors stay small.
template <typename R, typename T, typename Out>
struct ReduceLoop {
  using A = typename R::template Acc<T>;
  static_assert(sizeof(A) <= kMaxAccumulator);
  static constexpr int kLanes = static_cast<int>(std::max<size_t>(4, 128 / sizeof(A)));

  static void Init(void* acc, int64_t n) {
    A* a = static_cast<A*>(acc);
    for (int64_t i = 0; i < n; ++i) a[i] = R::template Init<A>();
  }
  static void Row(const void* xv, int64_t n, void* acc) {
    constexpr int kFew = R::kAnyOrder ? std::min(kLanes, 8) : kLanes;
    const T* x = static_cast<const T*>(xv);
    A& total = *static_cast<A*>(acc);
    int64_t taken = 0;
    if (n >= kLanes) {
      total = R::Combine(total, InLanes<kLanes>(x, n, &taken));
    } else if (n >= kFew) {
      total = R::Combine(total, InLanes<kFew>(x, n, &taken));
    }
    for (int64_t i = taken; i < n; ++i) total = R::Combine(total, R::template Load<A>(x[i]));
  }
  template <int kCount>
  static A InLanes(const T* x, int64_t n, int64_t* taken) {
    A lanes[kCount];
    for (int j = 0; j < kCount; ++j) lanes[j] = R::template Load<A>(x[j]);
    int64_t i = kCount;
    for (; i + kCount <= n; i += kCount)
      for (int j = 0; j < kCount; ++j)
        lanes[j] = R::Combine(lanes[j], R::template Load<A>(x[i + j]));
    // The rest has several sums too: in a single one each addition would wait for the one before.
    if constexpr (R::kAnyOrder) {
      for (int64_t j = 0; j < n - i; ++j)
        lanes[j] = R::Combine(lanes[j], R::template Load<A>(x[i + j]));
      i = n;
    }
    *taken = i;
    for (int w = kCount / 2; w > 0; w /= 2)
      for (int j = 0; j < w; ++j) lanes[j] = R::Combine(lanes[j], lanes[j + w]);
    return lanes[0];
  }
  static void Column(const void* xv, int64_t n, void* acc) {
    const T* x = static_cast<const T*>(xv);
    A* a = static_cast<A*>(acc);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) a[i] = R::Combine(a[i], R::template Load<A>(x[i]));
  }
  static void Merge(const void* other, int64_t n, void* acc) {
    const A* o = static_cast<const A*>(other);
    A* a = static_cast<A*>(acc);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) a[i] = R::Combine(a[i], o[i]);
  }
  static void Finish(const void* acc, int64_t n, int64_t count, void* out) {
    const A* a = static_cast<const A*>(acc);
    Out* o = static_cast<Out*>(out);
    for (int64_t i = 0; i < n; ++i) o[i] = static_cast<Out>(R::Finish(a[i], count));
  }
  static constexpr ReduceLoops kLoops = {&Init,   &Row,      &Column,   &Merge,
                                         &Finish, sizeof(T), sizeof(A), sizeof(Out)};
};

struct SumReduction {
  template <typename T>
  using Acc = ComputeType<T>;
  static constexpr bool kAnyOrder = false;  // whether the order does not change the result
  template <typename A>
  static A Init() {
    return A(0);
  }
  template <typename A, typename T>
  static A Load(T x) {
    return static_cast<A>(x);
  }
  template <typename A>
  static A Combine(A a, A b) {
    if constexpr (std::is_integral_v<A>)  // integers wrap
      return static_cast<A>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    else
      return a + b;
  }
  template <typename A>
  static A Finish(A a, int64_t) {
    return a;
  }
};

// Adds up in the type of the result `Out`.
template <typename Out>
struct SumTo : SumReduction {
  template <typename T>
  using Acc = ComputeType<Out>;
};
// reduce_sum adds few floats in double, at almost no cost: terms that cancel leave no rounding
// error.
inline constexpr int64_t kFewToSum = 1 << 14;

struct MeanReduction : SumReduction {
  template <typename A>
  static A Finish(A a, int64_t count) {
    if constexpr (std::is_integral_v<A>)
      return count == 0 ? A(0) : static_cast<A>(a / static_cast<A>(count));
    else
      return a / A(count);
  }
};

struct SumOfAbs : SumReduction {
  template <typename A, typename T>
  static A Load(T x) {
    return std::fabs(static_cast<A>(x));
  }
};

struct SumOfSquares : SumReduction {
  template <typename A, typename T>
  static A Load(T x) {
    const A a = static_cast<A>(x);
    return a * a;
  }
};

// The 2-norm.
struct RootOfSquares : SumOfSquares {
  template <typename A>
  static A Finish(A a, int64_t) {
    return std::sqrt(a);
  }
};

struct ProdReduction : SumReduction {
  template <typename A>
  static A Init() {
    return A(1);
  }
  template <typename A>
  static A Combine(A a, A b) {
    if constexpr (std::is_integral_v<A>)
      return static_cast<A>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    else
      return a * b;
  }
};

// NaN wins.
struct MaxReduction : SumReduction {
  static constexpr bool kAnyOrder = true;
  template <typename A>
  static A Init() {
    if constexpr (std::numeric_limits<A>::has_infinity)
      return -std::numeric_limits<A>::infinity();
    else
      return std::numeric_limits<A>::lowest();
  }
  template <typename A>
  static A Combine(A a, A b) {
    if constexpr (std::is_floating_point_v<A>)
      return (a > b) | (a != a) ? a : b;
    else
      return a > b ? a : b;
  }
};

struct MinReduction : SumReduction {
  static constexpr bool kAnyOrder = true;
  template <typename A>
  static A Init() {
    if constexpr (std::numeric_limits<A>::has_infinity)
      return std::numeric_limits<A>::infinity();
    else
      return std::numeric_limits<A>::max();
  }
  template <typename A>
  static A Combine(A a, A b) {
    if constexpr (std::is_floating_point_v<A>)
      return (a < b) | (a != a) ? a : b;
    else
      return a < b ? a : b;
  }
};

struct AllReduction : SumReduction {
  template <typename T>
  using Acc = uint8_t;
  template <typename A>
  static A Init() {
    return 1;
  }
  template <typename A, typename T>
  static A Load(T x) {
    return x != T(0);
  }
  template <typename A>
  static A Combine(A a, A b) {
    return a & b;
  }
};

struct AnyReduction : AllReduction {
  template <typename A>
  static A Init() {
    return 0;
  }
  template <typename A>
  static A Combine(A a, A b) {
    return a | b;
  }
};

}  // namespace heddle
