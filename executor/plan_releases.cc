// When pooled memory is given back: after the instruction that is its last user, where the order of
// the users is fixed; else when a count of readers has come down to zero.
#include <algorithm>

#include "executor/plan_draft.h"

namespace heddle {
namespace {

class ReleasePlanner {
 public:
  explicit ReleasePlanner(PlanDraft& d)
      : d_(d), plan_(*d.plan), last_(plan_.slots.size(), kNoSlot) {}

  void Run() {
    plan_.consumers.assign(plan_.slots.size(), 0);
    FindCounted();
    CountReaders();
    for (BlockPlan& block : plan_.blocks) AfterLastUser(block.instructions);
    for (uint32_t s = 0; s < plan_.consumers.size(); ++s)
      if (plan_.consumers[s] > 0) plan_.counted_slots.push_back(s);
    for (BlockPlan& block : plan_.blocks)
      for (Instruction& in : block.instructions)
        in.gives_back = !in.release.empty() || !in.reads.empty();
  }

 private:
  // Slots whose memory only the block that writes them uses.
  bool Releasable(uint32_t s) const {
    return s != kNoSlot && plan_.slots[s].storage == Storage::kPool && plan_.slots[s].versioned &&
           !d_.fetched[s];
  }

  // Slots that several threads may read at the same time.
  void FindCounted() {
    counted_.assign(plan_.slots.size(), plan_.dispatch == Dispatch::kQueue);
    if (plan_.dispatch != Dispatch::kLanes) return;
    std::vector<int> lane_of(plan_.slots.size(), -1);
    for (int lane = 0; lane < plan_.lanes->lanes; ++lane)
      for (uint32_t i = plan_.lanes->lane_begin[lane]; i < plan_.lanes->lane_begin[lane + 1]; ++i)
        for (const auto* list : {&Block0()[i].op.in, &Block0()[i].op.out})
          for (uint32_t s : *list) {
            if (s == kNoSlot) continue;
            if (lane_of[s] >= 0 && lane_of[s] != lane) counted_[s] = true;
            lane_of[s] = lane;
          }
  }
  std::vector<Instruction>& Block0() { return plan_.blocks[0].instructions; }

  void CountReaders() {
    if (plan_.dispatch == Dispatch::kSerial) return;
    for (Instruction& in : Block0()) {
      for (uint32_t s : in.op.in) {
        if (!Releasable(s) || !counted_[s] ||
            std::find(in.reads.begin(), in.reads.end(), s) != in.reads.end())
          continue;
        in.reads.push_back(s);
        ++plan_.consumers[s];
      }
    }
  }

  // All others. (A block's instructions are stored in an order in which they may run; of a slot's
  // users in one lane the last one stored is the last one run.)
  void AfterLastUser(std::vector<Instruction>& ins) {
    std::vector<uint32_t> users;
    for (uint32_t i = 0; i < ins.size(); ++i)
      for (const auto* list : {&ins[i].op.in, &ins[i].op.out})
        for (uint32_t s : *list) {
          if (!Releasable(s) || plan_.consumers[s] > 0) continue;
          if (last_[s] == kNoSlot) users.push_back(s);
          last_[s] = i;
        }
    for (uint32_t s : users) {
      ins[last_[s]].release.push_back(s);
      last_[s] = kNoSlot;
    }
  }

  PlanDraft& d_;
  Plan& plan_;
  std::vector<uint32_t> last_;  // per slot, within one block
  std::vector<bool> counted_;
};

}  // namespace

void PlanReleases(PlanDraft& draft) { ReleasePlanner(draft).Run(); }

}  // namespace heddle
