#include "kernels/simd/microkernels.h"

namespace heddle::simd {

const Microkernels* BestMicrokernels() {
  static const Microkernels* const best = [] {
    if (BestIsa() >= Isa::kAvx512 && Avx512Microkernels() != nullptr) return Avx512Microkernels();
    // Kernels that are built for AVX2 run nowhere else: then there is no other table.
    return Avx2Microkernels() != nullptr ? Avx2Microkernels() : PortableMicrokernels();
  }();
  return best;
}

}  // namespace heddle::simd
