// The microkernels for AVX-512. This source and avx512_*.cc are built for such processors.
#include "kernels/simd/microkernels.h"

#ifdef __AVX512F__

#include "kernels/simd/avx512_vector.h"
#include "kernels/simd/microkernel_table.h"

namespace heddle::simd {

const Microkernels* Avx512Microkernels() {
  static constexpr Microkernels table = TableOf<Avx512>(Isa::kAvx512);
  return &table;
}

}  // namespace heddle::simd

#else

const heddle::simd::Microkernels* heddle::simd::Avx512Microkernels() { return nullptr; }

#endif
