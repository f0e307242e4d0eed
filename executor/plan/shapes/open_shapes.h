// Shapes with open dimensions: what a plan knows of values whose shapes differ from turn to turn of
// a loop. A dimension is open (-1) where it differs; the others, dtypes and ranks hold for every
// value that the slot has in a run. So an operator that reads such a value may make one whose shape
// is known: keys that grow by a row a turn give attention whose result has the same shape in each.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "executor/plan/plan_draft.h"
#include "passes/facts/infer_facts.h"

namespace heddle {

class OpenShapes {
 public:
  using Facts = std::vector<std::optional<passes::Fact>>;

  explicit OpenShapes(PlanDraft& draft)
      : d_(draft), plan_(*draft.plan), inference_(passes::FactInference::kAlsoEmpty) {}

  // Whether the plan may go by open shapes: a run that finds one to be wrong is made again by a
  // plan without them (Plan::misjudged), and must have done nothing that shows. Called before all
  // else.
  void Seed();
  bool used() const { return used_; }

  // The frame tells dtype, rank and fixed dimensions of the slot for certain.
  bool Knows(uint32_t s) const { return s < knows_.size() && knows_[s]; }
  void Forget(uint32_t s) {
    if (s < knows_.size()) knows_[s] = false;
  }

  // What the instruction makes of operands that are known at least so far, one entry for each of
  // its outputs. False: nothing is known.
  bool Infer(const Instruction& in, Facts* outs);
  // The frame tells this of a versioned slot.
  void Set(uint32_t s, const passes::Fact& fact);

  // A shared variable without one shape is written: as `fact` says, nullptr: in an unknown way.
  // Dimensions that differ from those of other writes become open, and the analysis has to begin
  // again if it has gone by less.
  void NoteWrite(uint32_t s, const passes::Fact* fact);
  // The frame tells what all writes of the variable have in common. False: they have nothing.
  bool SetShared(uint32_t s);

 private:
  bool MayHold(uint32_t s) const;

  PlanDraft& d_;
  Plan& plan_;
  bool used_ = false;
  std::vector<bool> knows_;  // per slot
  passes::FactInference inference_;
  std::vector<passes::FactInference::Operand> operands_;
  std::vector<passes::Fact> facts_;  // of operands
};

}  // namespace heddle
