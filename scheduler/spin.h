// Waiting in a short loop, without the operating system.
#pragma once

#include <chrono>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace heddle {

inline void CpuRelax() {
#if defined(__x86_64__) || defined(__i386__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Ticks() is a cheap clock of unknown unit, for differences on one thread; scale it by a known
// time.
inline uint64_t Ticks() {
#if defined(__x86_64__) || defined(__i386__)
  return __rdtsc();
#else
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

inline uint64_t NowNs() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

// while (!condition && spin.Once()) {}  waits about `limit_ns` at most.
class Spin {
 public:
  explicit Spin(uint64_t limit_ns) : limit_ns_(limit_ns) {}
  // False once the time is up.
  bool Once() {
    CpuRelax();
    if (++count_ % kBetweenLooks != 0) return true;
    const uint64_t now = NowNs();
    if (start_ == 0) start_ = now;
    waited_ = now - start_;
    return waited_ < limit_ns_;
  }
  // The time waited, in ns; lags behind by up to some pauses.
  uint64_t waited() const { return waited_; }

 private:
  static constexpr uint32_t kBetweenLooks = 8;
  uint64_t limit_ns_;
  uint64_t start_ = 0, waited_ = 0;
  uint32_t count_ = 0;
};

}  // namespace heddle
