// The instruction sets that microkernels are built for, and which of them this processor runs.
#pragma once

#include <cstdint>
#include <string_view>

namespace heddle {
struct Machine;
}

namespace heddle::simd {

// In the order of preference, the best one last.
enum class Isa : uint8_t {
  kPortable,  // vectors of the compiler, for any processor
  kAvx2,      // AVX2 and FMA
  kAvx512,    // F, VL, DQ, BW and CD
};

std::string_view IsaName(Isa isa);

// The best one of a machine, which need not be this one.
Isa IsaOf(const Machine& machine);
// The best one that the processor and the operating system run (ThisMachine()). The build need not
// have an instance for it. Threads: any.
Isa BestIsa();

}  // namespace heddle::simd
