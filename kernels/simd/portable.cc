// The microkernels for any processor; none if all kernels are built for AVX2.
#include "kernels/simd/portable.h"

#include "kernels/simd/microkernels.h"

#ifndef __AVX2__

#include "kernels/simd/microkernel_table.h"

namespace heddle::simd {

const Microkernels* PortableMicrokernels() {
  static constexpr Microkernels table = TableOf<Portable>(Isa::kPortable);
  return &table;
}

}  // namespace heddle::simd

#else

const heddle::simd::Microkernels* heddle::simd::PortableMicrokernels() { return nullptr; }

#endif
