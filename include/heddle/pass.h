// Passes, which rewrite a program before it is planned: options for heddle's own, and how to add
// others.
//
//   heddle::CompileOptions options;
//   options.passes.disable = {"fuse_conv"};
//   options.passes.custom.push_back({.name = "relu_to_relu6", .run = Rewrite});
//
// Everything here is a value that is passed in: there is no global list. Threads: a CustomPass may
// be called from any thread that compiles or runs a program, for different programs at the same
// time. Errors: a pass that fails, or whose result the verifier rejects, ends the compilation with
// an error that begins with "GROUPING/name: "; the given program is never changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "heddle/program.h"
#include "heddle/status.h"
#include "heddle/tensor.h"

namespace heddle {

class Partitions;

// When a pass runs: the groupings follow each other in this order. PassOrder() says how a
// grouping's own passes follow each other.
enum class PassGrouping {
  kPrePlacement,        // clean-ups, on the program as it came
  kPostPlacement,       // what depends on the place: fusion, layouts
  kPostRewriteForExec,  // clean-ups after those
  // May edit what a place was given, never move anything between places: devices by `run`, targets
  // by `run_partitions`.
  kPostPartitioning,
};
// The grouping's name: "PRE_PLACEMENT" etc.
const char* Name(PassGrouping grouping);

namespace internal {
class EditorState;
}

// A block of the program, as the value of an attribute.
struct BlockId {
  int id = -1;
  friend bool operator==(const BlockId&, const BlockId&) = default;
};
using AttributeValue =
    std::variant<bool, int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                 std::vector<std::string>, BlockId, std::vector<BlockId>>;

// An operator, by names. Slots that are not named are empty, attributes have their defaults.
struct OpSpec {
  std::string type;
  std::vector<std::pair<std::string, std::vector<std::string>>> inputs, outputs;
  std::vector<std::pair<std::string, AttributeValue>> attributes;

  // The only variable of a slot; empty: the slot has none or several.
  std::string input(const std::string& slot) const;
  std::string output(const std::string& slot) const;
};

// The program that a CustomPass rewrites. Owned by the caller; valid during the call only.
class ProgramEditor {
 public:
  explicit ProgramEditor(internal::EditorState& state) : state_(state) {}

  int num_blocks() const;
  int num_ops(int block) const;
  // A copy of the operator. Precondition: the block and the operator exist.
  OpSpec op(int block, int index) const;
  // The type of the operator.
  const std::string& op_type(int block, int index) const;

  // An error, without a change, if `op` names an operator, slot, attribute or variable that does
  // not exist.
  Status Replace(int block, int index, const OpSpec& op);
  Status Insert(int block, int index, const OpSpec& op);
  void Erase(int block, int index);

  // Direction of a walk: to the operators on which an operator depends (it reads their results, or
  // must run after them), or to those that depend on it.
  enum class Toward { kBefore, kAfter };
  enum class Walk { kBreadthFirst, kDepthFirst };
  // The operators of the block that directly precede or follow this one, in the block's order.
  std::vector<int> neighbours(int block, int index, Toward toward) const;
  // Calls visit(index) once for `from` and for each operator of the block that can be reached from
  // it; if it returns false, the walk does not continue beyond that operator. Nearer neighbours
  // come first. The program must not change meanwhile.
  void Visit(int block, int from, Toward toward, Walk walk,
             const std::function<bool(int)>& visit) const;

  // Whether the variable is fetched, so that it must keep its meaning.
  bool fetched(const std::string& var) const;
  // The number of operators, in all blocks, that read or write the variable of block 0.
  int readers(const std::string& var) const;
  int writers(const std::string& var) const;
  // Name, dtype and shape of a variable that is visible in block 0; kNotFound: there is none.
  Result<TensorInfo> var(const std::string& name) const;
  // Adds a variable to block 0; returns its name, which begins with `stem`.
  std::string AddVar(const std::string& stem, DType dtype, const Shape& shape);
  // The value of a float32 parameter that no operator writes; nullptr: it is not such a parameter.
  // If the user replaces the parameter later, the program is compiled again.
  const Tensor* constant(const std::string& var) const;
  // Adds a parameter; returns its name.
  std::string AddConstant(const std::string& stem, Tensor value);

  // The places for which the program is compiled: "cpu", then the executor's devices, such as
  // "emulated:0". A program that is only optimised has "cpu" alone.
  std::vector<std::string> places() const;
  // The memory of a device in bytes; 0: unknown, or the host.
  size_t memory_bytes(const std::string& place) const;
  // The operator's place, one of places(). Before partitioning it is empty for operators that name
  // no place (op_device). The plan moves an operator to the host if the device turns out to have no
  // kernel for an operand.
  std::string place(int block, int index) const;
  // An error after partitioning (PassGrouping::kPostPartitioning), and for a place that is not in
  // places(). An inserted operator runs at the place of its successor, or of the last operator.
  Status SetPlace(int block, int index, const std::string& place);
  // The expected time of the operator on one thread of the host, in ns, which schedules use; 0: its
  // shapes are not declared.
  double cost_ns(int block, int index) const;
  // The options with which the program is compiled.
  const struct PassOptions& options() const;

 private:
  internal::EditorState& state_;
};

struct CustomPass {
  std::string name;  // not the name of one of heddle's
  std::string doc = {};
  PassGrouping grouping = PassGrouping::kPrePlacement;
  // The name of a pass of the grouping, of heddle (PassOrder()) or earlier in the list, next to
  // which this one runs; at most one of the two. Without: first in the grouping, in the list's
  // order.
  std::string before = {}, after = {};
  int level = 1;        // the lowest optimisation level at which it runs
  bool repeat = false;  // runs in each round of its grouping; else once
  // Returns whether something changed. False requires that the program is as it was.
  std::function<Result<bool>(ProgramEditor&)> run = nullptr;
  // Of kPostPartitioning, instead of `run`: is given all programs of the partition at once
  // (heddle/passes/partitions.h). Offload runs it on the groups of targets before engines see them.
  std::function<Result<bool>(Partitions&)> run_partitions = nullptr;
};

// The precision of the operands of matrix products and convolutions with constant weights. Sums and
// all other operators stay in float32.
enum class Precision {
  kFloat32,
  // Both operands are rounded to bfloat16 (8 bits of mantissa): results differ by some tenths of a
  // percent. About twice as fast for large operands if the processor has the instructions
  // (AVX512_BF16 or AMX); otherwise, and in builds without oneDNN, products stay as they are. A
  // device with its own kernels uses it for products, not for convolutions.
  kBFloat16,
  // Constant matrices are stored as 8-bit integers with a factor per 128 elements of a column; the
  // other operand stays in float32. They take a quarter of the memory, and products of few rows,
  // which are bound by memory, a quarter of the time; results differ by about a percent. Requires
  // AVX2; without it, and for convolutions, nothing changes.
  kInt8Weights,
  // As kBFloat16, and two pointwise convolutions in sequence multiply 8-bit integers if the
  // processor can (AVX512_VNNI): filters with a factor per output channel, and each pixel with its
  // own factor and offset. Such pairs take two thirds of bfloat16's time; results differ by several
  // times as much as bfloat16's.
  kInt8Products,
};

struct PassOptions {
  Precision precision = Precision::kFloat32;
  std::vector<std::string> disable = {};  // names of passes that do not run
  std::vector<std::string> only = {};     // if not empty, no others run
  std::vector<CustomPass> custom = {};
  int max_rounds = 10;                  // rounds of a grouping
  size_t max_folded_bytes = 10u << 20;  // the largest result that is computed ahead, in bytes
  bool verify = true;                   // checks the program after each change
  bool check_unchanged = false;         // also checks that a pass that reports no change made none
  // If not empty, an existing directory to which the program is written as text, before and after
  // each grouping and after each pass that changed something, as NUMBER_GROUPING[_PASS].txt; with
  // dump_dot also as .dot.
  std::string dump_dir = {};
  std::string dump_filter = {};  // regular expression: only passes whose names match are written
  bool dump_dot = false;
};

// The changes that passes made to a program.
struct PassReport {
  struct Run {
    PassGrouping grouping;
    std::string name;
    int round = 1;
    bool changed = false;
    double ms = 0;
    int ops_before = 0, ops_after = 0;  // numbers of operators in all blocks
  };
  std::vector<Run> runs;
  std::vector<std::string> warnings;
  double ms = 0;  // total time

  // A table, one line per pass.
  std::string ToString() const;
};

// One of heddle's passes, for documentation.
struct PassInfo {
  std::string name, doc;
  std::string before, after;  // an example
  std::string refuses;        // when it changes nothing
  std::vector<PassGrouping> groupings;
  int level = 1;
  bool repeat = false;
  // The largest relative difference of results from those without it; 0: the same bits.
  double tolerance = 0;
  std::vector<std::string> own_ops;  // operators it may make that Paddle lacks
};
// All of heddle's passes, in the order of their first runs.
std::vector<PassInfo> Passes();

// The passes of a grouping, in order.
struct PassStage {
  PassGrouping grouping;
  std::vector<std::string> passes;
};
// All groupings with heddle's passes, in order.
std::vector<PassStage> PassOrder();

struct OptimizeOptions {
  int level = 1;
  std::vector<std::string> fetches = {};  // empty = the program's fetch operators
  PassOptions passes = {};
  // Variables that runs feed, besides those of feed operators: parameters among them are not
  // constants.
  std::vector<std::string> feeds = {};
};
struct OptimizedModel {
  Model model;  // has the requested fetches and all parameters it needs
  PassReport report;
  std::vector<std::string> heddle_only;  // types of operators that Paddle lacks
};
// Runs the passes; returns a model, for Program::Serialize and SaveParameters.
Result<OptimizedModel> OptimizeModel(const Model& model, const OptimizeOptions& options = {});

}  // namespace heddle
