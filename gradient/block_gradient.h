// BlockGradient: the gradient of the operators of one block.
//
// A variable may be written several times, so the pass works on values: one version of one
// variable. The gradient of a value is the sum of what its readers give. Where the gradient reads a
// value that is overwritten later, a copy is made before that.
//
// Ownership: refers to the program, which it changes: new variables, outputs of the forward
// operators that a file left out, copies. Threads: one at a time.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/programs/ir.h"
#include "gradient/rule.h"
#include "passes/facts/infer_facts.h"

namespace heddle::gradient {

// What the gradients of all blocks of a program share.
class OpGradient;

class Shared {
 public:
  explicit Shared(ir::Program* p);

  ir::Program& program;
  // Variables that the file marks with stop_gradient, and those that the caller names.
  std::unordered_set<std::string> stopped, no_grad;
  bool IsMarked(const std::string& name) const {
    return stopped.contains(name) || no_grad.contains(name);
  }
  bool dense = false;  // no gradient is made of selected rows
  // Lists operators without a known gradient, each as one sentence.
  std::vector<std::string> problems;

  // `stem`, or stem@2, stem@3, … if there is one of this name.
  std::string NewName(const std::string& stem);
  bool IsTaken(const std::string& name) const { return names_.contains(name); }
  ir::VarId AddVar(const std::string& stem, int block, const ir::Var& like);
  void Rename(ir::VarId v, const std::string& stem);
  // Sets dtypes and shapes of an operator's outputs that are not known, as far as they follow from
  // those of its inputs.
  void InferOutputs(const ir::Op& op);
  // A new block without operators.
  int AddBlock(int parent);
  // Gradients of arrays: arrays with an element for each of theirs.
  std::unordered_map<ir::VarId, ir::VarId> array_gradients;

 private:
  std::unordered_map<std::string, int> names_;  // with the last number that NewName gave
  passes::FactInference inference_;
};

class BlockGradient {
 public:
  using ValueId = uint32_t;
  static constexpr ValueId kNoValue = ~0u;

  // `ops`: the operators, which are in `block`; emitted operators belong into `into`.
  // `stops`: whether the variables of Shared::stopped stop gradients.
  // `hold`: the block of variables that are added to the forward operators.
  BlockGradient(Shared& shared, std::vector<ir::Op>* ops, int block, int into, bool stops = true,
                int hold = -1);

  // The value that the variable has in the beginning, or in the end.
  ValueId First(ir::VarId v);
  ValueId Last(ir::VarId v);
  ir::VarId VarOf(ValueId v) const { return values_[v].var; }

  void Want(ValueId v) {
    values_[v].wanted = true;
    wanted_.insert(values_[v].var);
  }
  void Seed(ValueId v, ir::VarId gradient) { AddPart(v, gradient); }
  // What flows from a seed that the pass makes is announced, so that the walk knows where to begin.
  void Expect(ValueId v) { values_[v].expected = true; }

  // Finds what lies between the wanted values and the seeds.
  void Trace();
  // Whether gradients flow from a seed to the value.
  bool Reached(ValueId v) const { return values_[v].reached; }
  // Whether a seed depends on the value at all.
  bool DependsOn(ValueId v) const { return values_[v].needed; }
  // For a value that no gradient reaches: the operators in the way, with paths from the loss.
  std::string Obstacles(ValueId v) const;

  // Emits the operators of the gradients. All seeds are given.
  Status Run();
  // The gradient of a value after Run; kNoVar: none.
  ir::VarId GradientOf(ValueId v) const { return values_[v].total; }
  std::vector<ir::Op>& emitted() { return emitted_; }
  // Puts the copies of overwritten values into the operators. To be called last.
  void InsertCopies();

  // --- for rules
  Shared& shared() { return shared_; }
  ir::Program& program() { return shared_.program; }
  int block() const { return block_; }
  int into() const { return into_; }
  int hold() const { return hold_; }
  // Adds an operator in front of operator `at`, when InsertCopies is called.
  void InsertBefore(size_t at, ir::Op op) {
    inserted_.emplace_back(static_cast<int>(at), std::move(op));
  }
  const std::vector<std::vector<ValueId>>& InValues(size_t at) const { return at_[at].in; }
  const std::vector<std::vector<ValueId>>& OutValues(size_t at) const { return at_[at].out; }
  ir::Op& OpAt(size_t at) { return (*ops_)[at]; }
  size_t ops() const { return ops_->size(); }
  // The variable that holds the value when the gradients are computed.
  ir::VarId Held(ValueId v);
  ValueId InValue(size_t at, size_t slot, size_t i) const { return at_[at].in[slot][i]; }
  ValueId OutValue(size_t at, size_t slot, size_t i) const { return at_[at].out[slot][i]; }
  // A new output of a forward operator, where a file left it out.
  ir::VarId AddOutput(size_t at, size_t slot, size_t i);
  bool Wants(ValueId v) const { return v != kNoValue && values_[v].reached && !Ends(v); }
  ir::VarId FlowsOut(ValueId v) const { return v == kNoValue ? ir::kNoVar : values_[v].flows; }
  void AddPart(ValueId v, ir::VarId gradient);
  void Emit(ir::Op op);
  // Reads and writes of an operator with sub-blocks that are in none of its slots.
  const std::vector<ValueId>& HiddenReads(size_t at) const { return at_[at].reads; }
  const std::vector<ValueId>& HiddenWrites(size_t at) const { return at_[at].writes; }
  // The value that the variable had before operator `at`; kNoValue: none is known.
  ValueId Before(size_t at, ir::VarId v) const;

 private:
  struct Value {
    ir::VarId var = ir::kNoVar;
    int producer = -1;
    int overwritten = -1;  // the operator that writes the next version
    bool last = true;
    bool wanted = false, expected = false, stopped = false;
    bool from_wanted = false;  // gradients flow from it to a wanted value
    bool reached = false;      // … and a seed is reached from it
    bool needed = false;       // a seed depends on it
    ir::VarId saved = ir::kNoVar, total = ir::kNoVar, flows = ir::kNoVar;
    std::vector<ir::VarId> parts;
  };
  struct At {
    std::vector<std::vector<ValueId>> in, out;
    std::vector<ValueId> reads, writes;  // beside the slots
    bool active = false;
  };

  void Number();
  ValueId Current(ir::VarId v);
  ValueId Write(ir::VarId v, int at);
  void FindHidden(const ir::Op& op, At* at);
  bool Stops(const std::string& name, int at) const;
  bool Ends(ValueId v) const { return values_[v].stopped && !values_[v].wanted; }
  bool Flows(ValueId v) const;
  void Total(ValueId v);
  // "; path from the loss: …" to the operator; empty: no loss depends on it.
  std::string PathTo(size_t from) const;
  // Calls fn for each value that the operator reads or writes.
  template <typename Fn>
  void EachValue(size_t at, bool outputs, Fn&& fn) const {
    for (const auto& slot : outputs ? at_[at].out : at_[at].in)
      for (const ValueId v : slot)
        if (v != kNoValue) fn(v);
    for (const ValueId v : outputs ? at_[at].writes : at_[at].reads) fn(v);
  }

  Shared& shared_;
  std::vector<ir::Op>* ops_;
  const int block_, into_;
  const bool stops_;
  const int hold_;
  std::vector<Value> values_;
  std::vector<At> at_;
  std::unordered_map<ir::VarId, ValueId> first_, current_;
  std::vector<std::pair<int, ir::Op>> inserted_;  // before which operator
  std::vector<ir::Op> emitted_;
  std::unordered_set<ir::VarId> wanted_;
  std::unordered_set<ir::VarId> named_;  // gradients that have their name
};

// Emits the gradient operator of a rule of kind kNamed.
Status EmitNamed(OpGradient& g, const Rule& rule);

// "operator matmul_v2 (block 0, operator 3)"
std::string PlaceOf(int block, const ir::Op& op, size_t at);

}  // namespace heddle::gradient
