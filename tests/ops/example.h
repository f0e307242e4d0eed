// One example of an operator: operands, attributes, expected outputs.
// docs/examples.md describes the text.
//
// Examples are plain values: variants of one (another dtype, an empty tensor) are changed copies.
// Copies share the tensors' memory, which nobody writes to.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/attr.h"
#include "heddle/value.h"
#include "proto/framework.pb.h"

namespace heddle::testing {

struct Tolerance {
  double rtol = 0, atol = 0;
};

// The statistics that drawn values must have. Each is (wanted, allowed difference).
struct Statistics {
  std::optional<std::pair<double, double>> mean, variance;
  std::optional<std::pair<double, double>> range;  // every value lies in it
  std::optional<int64_t> distinct;                 // so many different values
};

// An operand of the operator; in a program, a variable.
struct ExampleInput {
  std::string slot;  // in a program, the variable's name
  Value value;
  bool param = false;  // persistable, as weights are
  // The variable is never written; `value` are zeros of the shape that is declared.
  bool nothing = false;
  // How the program declares the variable: "dense", "selected_rows", "tensor_array", "step_scopes",
  // "raw". Empty: as what it holds.
  std::string declared = {};
  // The dtype that the program declares, where that is not the value's.
  std::optional<DType> said = {};
};

enum class Check { kNothing, kMeta, kValues, kStatistics };

struct ExampleOutput {
  std::string slot;
  std::string same_as;  // the input slot whose variable this is; empty: a variable of its own
  int same_index = -1;  // which of that slot's variables; -1: the one of this output's position
  Check check = Check::kValues;
  Value value;
  Statistics statistics;
  std::string declared = {};       // as that of ExampleInput
  std::optional<DType> said = {};  // likewise, with `declared`
};

struct ExampleOp {
  std::string type;
  std::vector<std::pair<std::string, std::vector<std::string>>> inputs, outputs;
  std::vector<proto::OpDesc_Attr> attrs;
  int block = 0;
};

struct ExampleVar {
  std::string name;
  std::string kind;
  std::optional<DType> dtype;
  std::optional<Shape> shape;
  int block = 0;
};

struct Example {
  std::string op, title;
  std::string file;  // absolute
  int line = 0;
  std::vector<ExampleInput> inputs;
  std::vector<ExampleOutput> outputs;
  std::vector<proto::OpDesc_Attr> attrs;  // with the file format's types
  std::optional<Tolerance> close;         // of floating-point outputs, instead of the dtype's
  bool random = false;
  uint64_t seed = 0;
  // Variants that say nothing, each with the reason; empty: they are compared.
  std::string no_dtypes;      // any other dtype
  std::string no_complex;     // complex dtypes
  std::string no_gradient;    // the gradient against differences,
  Strings no_gradient_slots;  // of these operands alone; empty: of all
  // Differences are taken along symmetric (Hermitian) matrices, as the gradient is meant; the
  // reason.
  std::string symmetric;

  // A program instead of one operator; `inputs` and `outputs` name its variables.
  std::vector<ExampleOp> program;
  std::vector<ExampleVar> vars;
  std::vector<int> block_parents = {-1};
  std::vector<int> forward_blocks = {-1};  // whose gradient a block computes; -1: none
  bool is_program() const { return !program.empty(); }
};

// "relu / signs".
inline std::string NameOf(const Example& e) { return e.op + " / " + e.title; }

// What the format allows a floating-point element of this dtype; none for others.
Tolerance DefaultTolerance(DType dtype);

}  // namespace heddle::testing
