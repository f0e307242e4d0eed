#include "kernels/simd/isa.h"

#include "core/machine.h"

namespace heddle::simd {

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

Isa IsaOf(const Machine& machine) {
  if (!machine.has(kAvx2 | kFma)) return Isa::kPortable;
  return machine.has(kAvx512) ? Isa::kAvx512 : Isa::kAvx2;
}

Isa BestIsa() { return IsaOf(ThisMachine()); }

}  // namespace heddle::simd
