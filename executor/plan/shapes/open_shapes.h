// Open shapes: what a plan knows of values whose shapes differ from iteration to iteration of a
// loop. Dimensions that differ are open (-1); the others, the dtype and the rank hold for every
// value of the slot in a run. So an operator that reads such a value may have an output of known
// shape: keys that grow by a row per iteration give an attention result of the same shape each
// time.
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

  // Decides whether the plan may rely on open shapes: a run that finds one to be wrong is repeated
  // with a plan without them (Plan::misjudged), so it must not have had a visible effect. To be
  // called first.
  void Seed();
  bool used() const { return used_; }

  // Whether the frame has the certain dtype, rank and fixed dimensions of the slot.
  bool Knows(uint32_t s) const { return s < knows_.size() && knows_[s]; }
  void Forget(uint32_t s) {
    if (s < knows_.size()) knows_[s] = false;
  }

  // Infers the outputs from operands that are known at least this far, one entry per output. False:
  // nothing is known.
  bool Infer(const Instruction& in, Facts* outs);
  // Sets what is known of a versioned slot.
  void Set(uint32_t s, const passes::Fact& fact);

  // Notes a write to a shared variable without a single shape; nullptr: nothing is known of it.
  // Dimensions that differ from those of other writes become open; if the analysis has relied on
  // them, it must begin again.
  void NoteWrite(uint32_t s, const passes::Fact* fact);
  // Sets what all writes of the variable have in common. False: nothing.
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
