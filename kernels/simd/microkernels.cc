#include "kernels/simd/microkernels.h"

#include "core/machine.h"
#include "kernels/simd/bf16.h"
#include "kernels/simd/int8.h"

namespace heddle::simd {

const Microkernels* MicrokernelsFor(const Machine& machine) {
  const Isa isa = IsaOf(machine);
  if (isa >= Isa::kAvx512 && Avx512Microkernels() != nullptr) return Avx512Microkernels();
  // Kernels that are built for AVX2 run nowhere else: then there is no other table.
  return Avx2Microkernels() != nullptr ? Avx2Microkernels() : PortableMicrokernels();
}

std::string_view VectorsOf(const Machine& machine) {
  return IsaName(MicrokernelsFor(machine)->isa);
}

const Microkernels* BestMicrokernels() {
  static const Microkernels* const best = MicrokernelsFor(ThisMachine());
  return best;
}

const Int8Kernels* Int8KernelsFor(const Machine& machine) {
  return machine.has(kAvx512 | kAvx512Vnni) ? Avx512VnniKernels() : nullptr;
}

const Bf16Kernels* Bf16KernelsFor(const Machine& machine) {
  return machine.has(kAvx512 | kAvx512Bf16) ? Avx512Bf16Kernels() : nullptr;
}

}  // namespace heddle::simd
