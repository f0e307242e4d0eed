// The processor as kernels choose their implementations for it, and what a caller insists on.
//
// Plain values. Threads: ThisMachine() may be called from any thread; the rest is immutable once
// made. Errors: texts that cannot be read are refused in one sentence that names the place.
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
  kAmxBf16 = 64,  // with tiles that exist: some virtual machines advertise AMX without them
  kAmxInt8 = 128,
};

// A choice of an implementation is a function of the case and of these numbers alone.
struct Machine {
  std::string name = "this machine";
  unsigned instructions = 0;  // InstructionSet
  // Data caches that one core reaches, in bytes. The defaults are the smallest of the servers that
  // heddle is measured on.
  int64_t l1_bytes = 32 << 10, l2_bytes = 512 << 10, l3_bytes = 8 << 20;
  // Clock, of one core under full load.
  double cycles_per_ns = 3;
  // Vector multiply-adds that a core begins per cycle.
  double vector_fmas_per_cycle = 2;
  // Cycles until a vector of a large packed matrix, read once and in order, has come from memory.
  // Measured with the filters of Winograd's method, on AVX2 and AVX-512.
  double cycles_to_read_vector = 16;
  // Work worth handing to another thread: shorter pieces are done before it has come to help.
  double handover_ns = 6500;

  bool has(unsigned sets) const { return (instructions & sets) == sets; }

  // One JSON object, whose keys are the members' names; "instructions" is a string such as
  // "avx2 fma avx512". Keys that are missing keep their defaults; others are refused.
  static Result<Machine> Parse(std::string_view json);
  std::string ToJson() const;
};

// The processor of this process: instruction sets, by what it and the system offer, and cache
// sizes, as the system tells them. Found out once.
const Machine& ThisMachine();

// The processor advertises AMX and describes no tiles, as some virtual machines do: its
// instructions would fault. ThisMachine() is without them then.
bool AmxIsBroken();

// The names of the instruction sets of this processor that matter to the kernels, and of those that
// the kernels cannot do without and it lacks (see the compiler flags of kernels/).
struct InstructionSetNames {
  std::vector<std::string> offered, missing;
};
InstructionSetNames ProcessorInstructionSets();

// `machine`, or this one where it is null.
inline const Machine& MachineOr(const Machine* machine) {
  return machine != nullptr ? *machine : ThisMachine();
}

// Implementations that a caller insists on. Text: "conv=direct,gemm=panels"; several for a family,
// as in "conv=winograd:direct", are tried in this order.
struct ForcedImplementations {
  std::vector<std::pair<std::string, std::vector<std::string>>> families;

  // Refuses families that there are not, and what is no such list.
  static Result<ForcedImplementations> Parse(std::string_view text);
  // nullptr: any implementation of the family will do.
  const std::vector<std::string>* Find(std::string_view family) const;
};

// The families of operators whose implementation can be forced; kernels/base/implementations.cc.
std::span<const std::string_view> ImplementationFamilies();

}  // namespace heddle
