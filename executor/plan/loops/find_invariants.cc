// Finds loop invariants: instructions of a loop's body whose operands no iteration changes. Only
// the first iteration executes them; later ones find their results. (A loop without iterations
// executes none of them, so none can fail.)
#include <algorithm>

#include "core/programs/sub_block_slots.h"
#include "executor/plan/block_access.h"
#include "executor/plan/plan_draft.h"

namespace heddle {
namespace {

class InvariantFinder {
 public:
  explicit InvariantFinder(PlanDraft& d)
      : d_(d),
        plan_(*d.plan),
        access_(plan_),
        fetched_(plan_.slots.size(), false),
        changes_(plan_.slots.size(), false) {
    for (const PlanFetch& f : plan_.fetches) fetched_[f.slot] = true;
  }

  void Run() {
    for (size_t b = 0; b < plan_.blocks.size(); ++b)
      for (Instruction& in : plan_.blocks[b].instructions)
        for (int body : BlocksOf(plan_, in))
          if (ir::RunsAgain(*in.op.def) && d_.run_once[body])
            Divide(&in, static_cast<int>(b), body);
  }

 private:
  // Moves the invariant instructions to the beginning. Their results get memory in the block of the
  // loop, since the body's own work space is reused in every iteration.
  void Divide(Instruction* loop, int runner, int body) {
    auto& ins = plan_.blocks[body].instructions;
    std::vector<uint32_t> marked;
    const auto mark = [&](uint32_t s) {
      if (s == kNoSlot || changes_[s]) return;
      changes_[s] = true;
      marked.push_back(s);
    };
    for (uint32_t s : loop->op.out) mark(s);
    for (uint32_t s : access_.Of(body).writes) mark(s);
    for (Instruction& in : ins) {
      in.once = IsInvariant(in);
      if (!in.once) continue;
      for (uint32_t s : in.op.out) {
        if (s == kNoSlot) continue;
        changes_[s] = false;
        plan_.slots[s].home = runner;
      }
    }
    for (uint32_t s : marked) changes_[s] = false;
    const auto once = [](const Instruction& in) { return in.once; };
    if (std::none_of(ins.begin(), ins.end(), once)) return;
    std::stable_partition(ins.begin(), ins.end(), once);
    loop->loops.push_back(body);
  }

  bool IsInvariant(const Instruction& in) const {
    constexpr unsigned kImpure = kRandom | kSideEffect | kCommunication | kReader | kControlFlow;
    if (in.mode != Instruction::Mode::kStatic || (in.op.def->traits() & kImpure) != 0 ||
        !in.rewrites.empty() || d_.HasControlEdges(in))
      return false;
    for (uint32_t s : in.op.in)
      if (s != kNoSlot && (changes_[s] || d_.handed[s] || !plan_.slots[s].is_static)) return false;
    for (uint32_t s : in.op.out)
      if (s != kNoSlot && (!plan_.slots[s].versioned || fetched_[s] || d_.handed[s])) return false;
    return true;
  }

  PlanDraft& d_;
  Plan& plan_;
  BlockAccess access_;
  std::vector<bool> fetched_;  // per slot
  std::vector<bool> changes_;  // per slot: an iteration may write it
};

}  // namespace

void FindInvariants(PlanDraft& draft) {
  if (draft.CompilesBodies() && draft.request.dispatch != Dispatch::kQueue)
    InvariantFinder(draft).Run();
}

}  // namespace heddle
