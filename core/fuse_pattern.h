// Chains of operators that one operator computes at once, as that operator's own file declares
// them; the substitute_patterns pass makes the one of the chain. The list is made at first use,
// frozen afterwards; thread-safe.
//
//   HEDDLE_FUSES(fused_layer_norm) {
//     return {{.ops = {"elementwise_add", "layer_norm"},
//              .operands = {{"X", 0, "X"}, {"Y", 0, "Y"}, {"Scale", 1, "Scale"}, {"Bias", 1,
//              "Bias"}}, .output = "Out", .fits = Fits}};
//   }
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace heddle {

namespace ir {
class Program;
struct Op;
}  // namespace ir

// Operators of the program that have the types of a pattern, each but the first with the result of
// the one before.
struct FuseMatch {
  const ir::Program& program;
  std::vector<const ir::Op*> ops;
};

struct FusePattern {
  // Input `slot` of the fused operator is what operator `op` of the chain has as `from`.
  struct Operand {
    std::string slot;
    int op = 0;
    std::string from;
  };

  // Types. Each but the last hands its first output to the next one and to nobody else.
  std::vector<std::string> ops;
  // All inputs of the chain but those inside it: a chain that has another one does not match.
  // Absent ones stay absent.
  std::vector<Operand> operands;
  std::string output;  // of the fused operator: the chain's first output
  // Whether attributes, dtypes and shapes are such that the fused operator computes the same; sets
  // its attributes.
  bool (*fits)(const FuseMatch& match, ir::Op* fused) = nullptr;
};

// With the types of the operators that declare them; longest chains first.
const std::vector<std::pair<std::string, FusePattern>>& FusePatterns();

// Declares the patterns of an operator of the same file; the build lists every HEDDLE_FUSES line of
// kernels/*.cc by itself.
#define HEDDLE_FUSES(name)                          \
  namespace heddle {                                \
  std::vector<FusePattern> FusePatternsOf_##name(); \
  }                                                 \
  std::vector<heddle::FusePattern> heddle::FusePatternsOf_##name()

}  // namespace heddle
