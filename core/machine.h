// Machine: the facts about a processor by which kernels choose their implementations; and the
// implementations on which a caller insists.
//
// Plain values. Threads: ThisMachine() may be called from any thread; the rest is immutable once
// made. Errors: a malformed text is refused in one sentence that names the position.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/status.h"

namespace heddle {

// Instruction sets that an implementation may need, as bits of Machine::instructions.
enum InstructionSet : unsigned {
  kAvx2 = 1,
  kFma = 2,
  kAvx512 = 4,  // F, VL, DQ, BW and CD: the set of every server since 2017
  kAvx512Vnni = 8,
  kAvx512Bf16 = 16,
  kAvx512Fp16 = 32,
  kAmxBf16 = 64,  // only if tiles exist: some virtual machines advertise AMX without them
  kAmxInt8 = 128,
};

// The choice of an implementation depends on the case and on these numbers alone.
struct Machine {
  std::string name = "this machine";
  unsigned instructions = 0;  // InstructionSet
  // Sizes in bytes of the data caches that one core can use. The defaults are the smallest among
  // the servers on which heddle is measured.
  int64_t l1_bytes = 32 << 10, l2_bytes = 512 << 10, l3_bytes = 8 << 20;
  // Clock frequency of one core under full load.
  double cycles_per_ns = 3;
  // Vector multiply-adds that a core starts per cycle.
  double vector_fmas_per_cycle = 2;
  // Cycles to load a vector of a large packed matrix from memory, read once and in order. Measured
  // with the filters of Winograd's method, with AVX2 and AVX-512.
  double cycles_to_read_vector = 16;
  // The least work in ns to hand to another thread: a shorter piece is done before that thread has
  // come.
  double handover_ns = 6500;

  bool has(unsigned sets) const { return (instructions & sets) == sets; }

  // Parses a JSON object whose keys are the members' names; "instructions" is a string such as
  // "avx2 fma avx512". Missing keys keep their defaults; unknown ones are refused.
  static Result<Machine> Parse(std::string_view json);
  std::string ToJson() const;
};

// The processor of this process: instruction sets that it and the system support, and the cache
// sizes that the system reports. Found out once.
const Machine& ThisMachine();

// Whether the processor advertises AMX but describes no tiles, as some virtual machines do: its
// instructions would fault. ThisMachine() leaves AMX out then.
bool AmxIsBroken();

// The instruction sets of this processor that matter to kernels, and those that kernels require
// (see the compiler flags of kernels/) and it lacks.
struct InstructionSetNames {
  std::vector<std::string> offered, missing;
};
InstructionSetNames ProcessorInstructionSets();

// `machine`, or this machine if it is null.
inline const Machine& MachineOr(const Machine* machine) {
  return machine != nullptr ? *machine : ThisMachine();
}

// Implementations on which a caller insists. Text form: "conv=direct,gemm=panels"; several of a
// family, as in "conv=winograd:direct", are tried in this order.
struct ForcedImplementations {
  std::vector<std::pair<std::string, std::vector<std::string>>> families;

  // Parses the text form; refuses unknown families and malformed lists.
  static Result<ForcedImplementations> Parse(std::string_view text);
  // The names for a family; nullptr: any implementation may be chosen.
  const std::vector<std::string>* Find(std::string_view family) const;
};

// The families of operators whose implementation can be forced; kernels/base/implementations.cc.
std::span<const std::string_view> ImplementationFamilies();

}  // namespace heddle
