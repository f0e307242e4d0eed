// Passes: what rewrites a program before it is planned, how to steer them, and how to add own ones.
//
//   heddle::CompileOptions options;
//   options.passes.disable = {"fuse_conv"};
//   options.passes.custom.push_back({.name = "relu_to_relu6", .run = Rewrite});
//
// Everything here is a value that is passed in: there is no global list to add to. Threads: a
// CustomPass may be called from any thread that compiles or runs a program, for different programs
// at the same time. Errors: a pass that fails, or leaves a program that the verifier refuses, ends
// the compilation with an error that begins with "GROUPING/name: "; the program that was
// given is never touched.
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
// "PRE_PLACEMENT" and so on.
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

// An operator by names. Slots and attributes that are not named are empty, or at their defaults.
struct OpSpec {
  std::string type;
  std::vector<std::pair<std::string, std::vector<std::string>>> inputs, outputs;
  std::vector<std::pair<std::string, AttributeValue>> attributes;

  // The only variable of a slot; empty when the slot does not hold exactly one.
  std::string input(const std::string& slot) const;
  std::string output(const std::string& slot) const;
};

// A program while a CustomPass rewrites it. Belongs to the caller, for the time of the call only.
class ProgramEditor {
 public:
  explicit ProgramEditor(internal::EditorState& state) : state_(state) {}

  int num_blocks() const;
  int num_ops(int block) const;
  // A copy of the operator; indices as in a vector. Precondition: both exist.
  OpSpec op(int block, int index) const;
  // The type alone, without copying.
  const std::string& op_type(int block, int index) const;

  // Fail when the specification names an operator, slot, attribute or variable that does not exist;
  // the program is then as it was.
  Status Replace(int block, int index, const OpSpec& op);
  Status Insert(int block, int index, const OpSpec& op);
  void Erase(int block, int index);

  // Towards the operators that one depends on (it reads their results, or must run after them), or
  // towards those that depend on it.
  enum class Toward { kBefore, kAfter };
  enum class Walk { kBreadthFirst, kDepthFirst };
  // The operators of the block next to this one, in the block's order.
  std::vector<int> neighbours(int block, int index, Toward toward) const;
  // Calls visit(index) once for `from` and for each operator of the block that is reached from it;
  // where it returns false, the walk does not go on behind that operator. Of several neighbours
  // those that stand nearer in the block come first. The program may not change meanwhile.
  void Visit(int block, int from, Toward toward, Walk walk,
             const std::function<bool(int)>& visit) const;

  // The variable must keep its meaning: somebody fetches it.
  bool fetched(const std::string& var) const;
  // The number of operators, of all blocks, that read or write the variable of block 0.
  int readers(const std::string& var) const;
  int writers(const std::string& var) const;
  // Name, dtype and shape of a variable seen from block 0; kNotFound when there is none.
  Result<TensorInfo> var(const std::string& name) const;
  // A new variable of block 0; returns its name, which begins with `stem`.
  std::string AddVar(const std::string& stem, DType dtype, const Shape& shape);
  // The value of a float32 parameter that no operator writes, else nullptr. When the user replaces
  // the parameter later, the program is compiled again.
  const Tensor* constant(const std::string& var) const;
  // A new parameter; returns its name.
  std::string AddConstant(const std::string& stem, Tensor value);

  // The places that the program is compiled for: "cpu", then the executor's devices, as
  // "emulated:0". A program that is only optimised has "cpu" alone.
  std::vector<std::string> places() const;
  // The memory of a device in bytes; 0: not known, or the host.
  size_t memory_bytes(const std::string& place) const;
  // The operator's place, one of places(). Before partitioning empty for operators that name no
  // place (op_device). With a device, the plan has the last word where it turns out to have no
  // kernel for an operand.
  std::string place(int block, int index) const;
  // Fails after partitioning (PassGrouping::kPostPartitioning), and for what is none of places().
  // An inserted operator runs at the place of the one behind it, or, at the end, of the last one.
  Status SetPlace(int block, int index, const std::string& place);
  // The time expected of the operator on one thread of the host, in ns, by which schedules are
  // made; 0 where its shapes are not declared.
  double cost_ns(int block, int index) const;
  // The options that the program is compiled with.
  const struct PassOptions& options() const;

 private:
  internal::EditorState& state_;
};

struct CustomPass {
  std::string name;  // none of heddle's own
  std::string doc = {};
  PassGrouping grouping = PassGrouping::kPrePlacement;
  // At most one of them: the name of a pass of the grouping, heddle's (PassOrder()) or one given
  // earlier in the list, next to which this one runs. Without: first in the grouping, in the order
  // of the list.
  std::string before = {}, after = {};
  int level = 1;        // the lowest optimisation level that runs it
  bool repeat = false;  // part of its grouping's rounds; else it runs once
  // True: something changed. False must leave the program as it was.
  std::function<Result<bool>(ProgramEditor&)> run = nullptr;
  // Of kPostPartitioning, instead of `run`: is given all programs of the partition at once
  // (heddle/passes/partitions.h). Offload runs it on the groups of targets before engines see them.
  std::function<Result<bool>(Partitions&)> run_partitions = nullptr;
};

// The precision of the factors in matrix products and convolutions with constant weights. Sums and
// all other operators stay in float32.
enum class Precision {
  kFloat32,
  // Both operands are rounded to bfloat16 (8 bits of mantissa) first: results differ by some tenths
  // of a percent. About twice as fast where the work is large and the processor has the
  // instructions (AVX512_BF16 or AMX); elsewhere, and in builds without oneDNN, products stay as
  // they are. A device with kernels of its own does so with products, not with convolutions.
  kBFloat16,
  // Constant matrices are held as integers of 8 bits with a factor for each 128 elements of a
  // column; what they multiply stays in float32. They take a quarter of the memory, and products of
  // few rows, which wait for memory, as much less time; results differ by about a percent. Needs
  // AVX2; without, and for convolutions, nothing changes.
  kInt8Weights,
  // As kBFloat16, and two pointwise convolutions in sequence multiply integers of 8 bits where the
  // processor does (AVX512_VNNI): filters with a factor for each output channel, and each pixel
  // with a factor and an offset of its own. Such pairs take two thirds of bfloat16's time; results
  // differ by several times as much as bfloat16's.
  kInt8Products,
};

struct PassOptions {
  Precision precision = Precision::kFloat32;
  std::vector<std::string> disable = {};  // names of passes that do not run
  std::vector<std::string> only = {};     // when not empty, no others run
  std::vector<CustomPass> custom = {};
  int max_rounds = 10;                  // of a grouping
  size_t max_folded_bytes = 10u << 20;  // the largest result that is computed ahead
  bool verify = true;                   // look the program through after each change
  bool check_unchanged = false;         // ... and whether one that says "unchanged" tells the truth
  // If not empty, an existing directory that receives the program as text before and after each
  // grouping that changed something and after each pass that did, as
  // NUMBER_GROUPING[_PASS].txt; with dump_dot also as .dot.
  std::string dump_dir = {};
  std::string dump_filter = {};  // regular expression; only passes whose name it finds are written
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
    int ops_before = 0, ops_after = 0;  // of all blocks
  };
  std::vector<Run> runs;
  std::vector<std::string> warnings;
  double ms = 0;  // all in all

  // A table, one line a pass.
  std::string ToString() const;
};

// One of heddle's own passes, for documentation.
struct PassInfo {
  std::string name, doc;
  std::string before, after;  // an example
  std::string refuses;        // when it leaves things alone
  std::vector<PassGrouping> groupings;
  int level = 1;
  bool repeat = false;
  double tolerance = 0;  // relative, of results against those without it; 0: the same bits
  std::vector<std::string> own_ops;  // what it may make that Paddle does not have
};
// In the order they first run.
std::vector<PassInfo> Passes();

// The passes of a grouping, in the order they run.
struct PassStage {
  PassGrouping grouping;
  std::vector<std::string> passes;
};
// All groupings with heddle's own passes, in the order they run.
std::vector<PassStage> PassOrder();

struct OptimizeOptions {
  int level = 1;
  std::vector<std::string> fetches = {};  // empty = the program's fetch operators
  PassOptions passes = {};
  // Variables that runs feed, besides those of feed operators: parameters among them are not taken
  // for constants.
  std::vector<std::string> feeds = {};
};
struct OptimizedModel {
  Model model;  // fetches as asked for; holds all parameters it needs
  PassReport report;
  std::vector<std::string> heddle_only;  // types of operators that Paddle does not have
};
// The passes' result as a model of its own, for Program::Serialize and SaveParameters.
Result<OptimizedModel> OptimizeModel(const Model& model, const OptimizeOptions& options = {});

}  // namespace heddle
