// Finds loops that the interpreter runs without calling their kernel, and their numbers of
// iterations if these follow from constants.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "core/interrupts.h"
#include "core/kernel_context.h"
#include "core/memory/lazy_buffer.h"
#include "core/programs/sub_block_slots.h"
#include "executor/plan/block_access.h"
#include "executor/plan/plan_draft.h"

namespace heddle {
namespace {

// The most iterations that are counted while planning, by executing their scalar steps: a few
// nanoseconds each.
constexpr int kMostCounted = 4096;

uint32_t FirstOperand(const Instruction& in, int slot) {
  const auto s = static_cast<size_t>(slot);
  return slot < 0 || in.op.in_begin[s] == in.op.in_begin[s + 1] ? kNoSlot
                                                                : in.op.in[in.op.in_begin[s]];
}

// Whether the loop's kernel would only read the condition and run the block: it keeps no records of
// steps and empties no arrays.
bool FindLoop(const Plan& plan, const Instruction& at, LoopPlan* loop) {
  const OpDef& def = *at.op.def;
  if (!ir::RunsAgain(def) || ir::ConditionSlot(def) < 0 || !at.var_attrs.empty()) return false;
  const bool keeps = at.op.out_begin[1] != at.op.out_begin[2] &&
                     at.op.out[at.op.out_begin[1]] != kNoSlot &&
                     !std::get<bool>(at.op.attrs[def.FindAttr("is_test")]);
  loop->condition = FirstOperand(at, ir::ConditionSlot(def));
  if (keeps || loop->condition == kNoSlot ||
      FirstOperand(at, def.FindInput("sub_block:arrays")) != kNoSlot)
    return false;
  loop->body = BlocksOf(plan, at).front();
  loop->may_end = FirstOperand(at, def.FindInput("sub_block:changing(Condition)")) != kNoSlot;
  const BlockPlan& body = plan.blocks[static_cast<size_t>(loop->body)];
  loop->plain = body.lanes == nullptr;
  return true;
}

// Finds the number of iterations of loops whose counters and conditions nothing else uses, by
// computing the scalar steps at the end of the body as a run would.
class TurnCounter {
 public:
  explicit TurnCounter(PlanDraft& draft)
      : d_(draft), plan_(*draft.plan), frame_(plan_.slots.size(), nullptr) {
    ListUsers();
  }

  // Counts the iterations of all loops. If they are known, the instructions that initialise an
  // inner loop's counters are removed, since no iteration reads them. (Block 0 keeps them: costs
  // are measured by the positions of its instructions. An observed run computes the steps all the
  // same, from whatever their memory holds: no step on integers and bools can fail, and nothing
  // reads the result.)
  void Run() {
    // Per block: removed instructions; empty: none.
    std::vector<std::vector<bool>> gone(plan_.blocks.size());
    for (size_t b = 0; b < plan_.blocks.size(); ++b) {
      const auto& ins = plan_.blocks[b].instructions;
      for (size_t i = 0; i < ins.size(); ++i) {
        if (ins[i].loop == kNoSlot) continue;
        LoopPlan& loop = plan_.loops[ins[i].loop];
        loop.turns = Count(loop, static_cast<int>(b), i);
        if (loop.turns < 0 || b == 0 || plan_.LanesOf(static_cast<int>(b)) != nullptr) continue;
        gone[b].resize(ins.size());
        for (const size_t first : firsts_) gone[b][first] = true;
      }
    }
    for (size_t b = 0; b < plan_.blocks.size(); ++b)
      if (!gone[b].empty()) EraseMarked(gone[b], &plan_.blocks[b].instructions);
  }

 private:
  struct Place {
    int block;
    size_t at;
  };

  // Lists the instructions that name slots written by scalar steps of bodies.
  void ListUsers() {
    for (const LoopPlan& loop : plan_.loops)
      for (const ScalarStep& step : plan_.blocks[static_cast<size_t>(loop.body)].tail)
        users_[plan_.RootOf(step.out)];
    if (users_.empty()) return;
    for (size_t b = 0; b < plan_.blocks.size(); ++b) {
      const auto& ins = plan_.blocks[b].instructions;
      for (size_t i = 0; i < ins.size(); ++i) {
        const auto note = [&](uint32_t s) {
          if (s == kNoSlot) return;
          const auto user = users_.find(plan_.RootOf(s));
          if (user != users_.end()) user->second.push_back({static_cast<int>(b), i});
        };
        for (uint32_t s : ins[i].op.in) note(s);
        for (uint32_t s : ins[i].op.out) note(s);
        for (const auto& r : ins[i].rewrites) note(r.real);
      }
    }
  }

  // The number of iterations of the loop at `at`; -1: known only at run time.
  int Count(const LoopPlan& loop, int block, size_t at) {
    const BlockPlan& body = plan_.blocks[static_cast<size_t>(loop.body)];
    if (!loop.plain || body.tail.empty() || !d_.run_once[static_cast<size_t>(loop.body)]) return -1;
    for (uint32_t s : named_) frame_[s] = nullptr;
    named_.clear();
    written_.clear();
    firsts_.clear();
    for (const ScalarStep& step : body.tail) written_[plan_.RootOf(step.out)];
    const auto& ins = plan_.blocks[static_cast<size_t>(block)].instructions;
    if (!IsWritten(loop.condition) || !IsTruthValue(loop.condition) || !AreAlone(loop, block, at) ||
        !Begin(ins) || !AreCounters(body))
      return -1;
    return GoThrough(loop, body);
  }

  bool IsWritten(uint32_t s) const {
    return s != kNoSlot && written_.find(plan_.RootOf(s)) != written_.end();
  }
  // Whether the slot is a bool of one element; a run refuses any other condition.
  bool IsTruthValue(uint32_t s) const {
    const Slot& slot = plan_.slots[s];
    return slot.dtype == DType::kBool && slot.is_static && slot.shape().numel() == 1;
  }
  bool IsConstant(uint32_t s) const {
    return plan_.constant[s] && d_.frame[s]->is_tensor() && d_.frame[s]->tensor().numel() == 1 &&
           MakeResident(d_.frame[s]->tensor()).ok();
  }

  // Whether only the loop, the steps at its end, and instructions before it in its block name the
  // slots.
  bool AreAlone(const LoopPlan& loop, int block, size_t at) {
    const BlockPlan& body = plan_.blocks[static_cast<size_t>(loop.body)];
    const size_t steps = body.instructions.size() - body.tail.size();
    for (const PlanFetch& f : plan_.fetches)
      if (IsWritten(f.slot)) return false;
    for (const auto& [slot, value] : written_)
      for (const Place& user : users_.at(slot)) {
        if (user.block == loop.body ? user.at >= steps : user.block == block && user.at == at)
          continue;
        if (user.block != block || user.at > at) return false;
        if (std::find(firsts_.begin(), firsts_.end(), user.at) == firsts_.end())
          firsts_.push_back(user.at);
      }
    std::sort(firsts_.begin(), firsts_.end());
    return firsts_.size() == written_.size();
  }

  bool HasBegun(uint32_t s) const {
    return IsWritten(s) && written_.at(plan_.RootOf(s)).initialized();
  }

  // Computes the initial values: each slot must be written by one instruction, from constants and
  // from slots that have a value already.
  bool Begin(const std::vector<Instruction>& ins) {
    constexpr unsigned kImpure = kRandom | kSideEffect | kCommunication | kReader | kControlFlow;
    for (const size_t i : firsts_) {
      const Instruction& in = ins[i];
      if (in.mode != Instruction::Mode::kStatic || (in.op.def->traits() & kImpure) != 0 ||
          in.op.out.size() != 1 || !IsWritten(in.op.out[0]) || !in.rewrites.empty() ||
          in.gives_back || d_.HasControlEdges(in))
        return false;
      for (uint32_t s : in.op.in)
        if (s != kNoSlot && !HasBegun(s) && !IsConstant(s)) return false;
      Value& out = written_[plan_.RootOf(in.op.out[0])];
      if (out.initialized()) return false;
      const Slot& slot = plan_.slots[in.op.out[0]];
      out = Value(Tensor::Zeros(slot.dtype, slot.shape()));
      for (uint32_t s : in.op.in)
        if (s != kNoSlot) Name(s);
      Name(in.op.out[0]);
      KernelContext ctx(in.op, frame_.data(), *d_.request.services, in.state);
      if (!GuardPlanning([&] { return in.fn(ctx); }).ok()) return false;
    }
    return true;
  }

  // Whether the steps read only constants and what they write themselves.
  bool AreCounters(const BlockPlan& body) const {
    const auto& ins = body.instructions;
    for (size_t i = ins.size() - body.tail.size(); i < ins.size(); ++i)
      for (uint32_t s : ins[i].op.in)
        if (s != kNoSlot && !IsWritten(s) && !IsConstant(s)) return false;
    return true;
  }

  int GoThrough(const LoopPlan& loop, const BlockPlan& body) {
    const auto& ins = body.instructions;
    for (size_t i = ins.size() - body.tail.size(); i < ins.size(); ++i)
      for (uint32_t s : ins[i].op.in)
        if (s != kNoSlot) Name(s);
    for (const ScalarStep& step : body.tail) Name(step.out);
    Name(loop.condition);
    for (int turns = 0; turns <= kMostCounted; ++turns) {
      LookForInterrupt();
      if (!*frame_[loop.condition]->tensor().data<bool>()) return turns;
      for (const ScalarStep& step : body.tail) step.fn(step, frame_.data());
    }
    return -1;
  }
  void Name(uint32_t s) {
    frame_[s] = IsWritten(s) ? &written_.at(plan_.RootOf(s)) : d_.frame[s];
    named_.push_back(s);
  }

  PlanDraft& d_;
  Plan& plan_;
  std::map<uint32_t, std::vector<Place>> users_;  // by root slot, as are the following
  std::map<uint32_t, Value> written_;             // values that the present loop's steps write
  std::vector<size_t> firsts_;  // positions of the instructions that initialise them
  std::vector<Value*> frame_;
  std::vector<uint32_t> named_;  // slots that are in the frame
};

}  // namespace

void FindLoops(PlanDraft& draft) {
  Plan& plan = *draft.plan;
  for (BlockPlan& block : plan.blocks)
    for (Instruction& in : block.instructions) {
      LoopPlan loop;
      if (!FindLoop(plan, in, &loop)) continue;
      in.loop = static_cast<uint32_t>(plan.loops.size());
      plan.loops.push_back(loop);
    }
  if (!draft.CompilesBodies() || draft.request.dispatch == Dispatch::kQueue) return;
  if (!plan.loops.empty()) TurnCounter(draft).Run();
}

}  // namespace heddle
