#include "kernels/simd/isa.h"

namespace heddle::simd {
namespace {

// __builtin_cpu_supports also asks whether the operating system saves the registers.
Isa Detect() {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return Isa::kPortable;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512cd"))
    return Isa::kAvx512;
  return Isa::kAvx2;
#else
  return Isa::kPortable;
#endif
}

}  // namespace

std::string_view IsaName(Isa isa) {
  switch (isa) {
    case Isa::kPortable:
      return "portable";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
  }
  return "";
}

Isa BestIsa() {
  static const Isa best = Detect();
  return best;
}

}  // namespace heddle::simd
