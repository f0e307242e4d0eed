#include "executor/plan/loose_values.h"

#include "executor/plan/device/insert_copies.h"
#include "executor/plan/plan_draft.h"
#include "executor/plan/shapes/instruction_facts.h"

namespace heddle {
namespace {

class LooseFinder {
 public:
  explicit LooseFinder(PlanDraft& d) : d_(d), plan_(*d.plan) {}

  void Run() {
    for (uint32_t s = 0; s < plan_.slots.size() && !any_; ++s) any_ = IsLoose(s);
    if (!any_) return;
    plan_.loose_of.assign(plan_.slots.size(), kNoSlot);
    for (uint32_t b = 0; b < plan_.blocks.size(); ++b) {
      const auto& ins = plan_.blocks[b].instructions;
      const bool lanes = plan_.LanesOf(static_cast<int>(b)) != nullptr;
      for (uint32_t at = 0; at < ins.size(); ++at)
        Visit(ins[lanes ? plan_.SerialOrderOf(static_cast<int>(b))[at] : at], b,
              static_cast<int32_t>(at));
    }
    for (uint32_t s : aliases_) plan_.loose_of[s] = kNoSlot;
  }

 private:
  bool IsLoose(uint32_t s) const {
    const Slot& slot = plan_.slots[s];
    // On a device, values of known size have planned offsets, or are allocated one by one if there
    // is no block for them.
    return slot.storage == Storage::kPool && slot.versioned && !slot.crosses && !d_.fetched[s] &&
           (slot.place == kOnHost || !slot.is_static);
  }

  void Visit(const Instruction& in, uint32_t block, int32_t at) {
    const auto& inputs = in.op.def->inputs();
    for (size_t k = 0, d = 0; k < in.op.in.size(); ++k) {
      while (d < inputs.size() && in.op.in_begin[d + 1] <= k) ++d;
      const uint32_t s = in.op.in[k];
      if (s != kNoSlot && plan_.loose_of[s] != kNoSlot &&
          (PlanDraft::ReadsInput(in, d) || !KeepsShape(s)))
        plan_.loose[plan_.loose_of[s]].last = at;
    }
    for (uint32_t k = 0; k < in.op.out.size(); ++k) {
      const uint32_t s = in.op.out[k];
      if (s == kNoSlot || !IsLoose(s) || IsHidden(in, s)) continue;
      // A copy to the host lies in memory that the device has pinned.
      if (IsAdded(in) && plan_.slots[s].place == kOnHost) continue;
      if (const uint32_t from = MemoryFrom(in, k); from != kNoSlot) {
        plan_.loose_of[s] = plan_.loose_of[from];  // its memory is the input's
        aliases_.push_back(s);
        continue;
      }
      plan_.loose_of[s] = static_cast<uint32_t>(plan_.loose.size());
      plan_.loose.push_back({s, at, at, block});
    }
  }

  // The contents have been released if only the shape is read.
  bool KeepsShape(uint32_t s) const { return !plan_.keeps_shape.empty() && plan_.keeps_shape[s]; }

  // Whether the slot's value becomes a variable's value, which lasts until the next rewrite.
  static bool IsHidden(const Instruction& in, uint32_t slot) {
    return RewriteOf(in, slot) != nullptr;
  }

  // The input whose memory the k-th output is expected to take over or view.
  uint32_t MemoryFrom(const Instruction& in, uint32_t k) const {
    if (in.appends) return kNoSlot;  // a new block is taken if there is no room behind the input
    const bool view =
        in.mode == Instruction::Mode::kShare || in.mode == Instruction::Mode::kDynamic;
    for (size_t t = 0; t < in.takeovers.size(); t += 2) {
      const uint32_t from = in.op.in[in.takeovers[t]];
      if (in.takeovers[t + 1] == k && (view || plan_.consumers[from] == 1)) return from;
    }
    return kNoSlot;
  }

  PlanDraft& d_;
  Plan& plan_;
  bool any_ = false;
  std::vector<uint32_t> aliases_;  // slots in another slot's memory
};

}  // namespace

void FindLooseValues(PlanDraft& draft) { LooseFinder(draft).Run(); }

std::vector<uint32_t> LooseValuesAt(const Plan& plan, uint8_t place) {
  std::vector<uint32_t> values;
  for (uint32_t v = 0; v < plan.loose.size(); ++v)
    if (plan.slots[plan.loose[v].slot].place == place) values.push_back(v);
  return values;
}

uint32_t TokenKind(uint8_t place, DType dtype) {
  return place == kOnHost ? 0 : place | (static_cast<uint32_t>(dtype) + 1) << 8;
}

TokenPlan PlanLooseValues(const Plan& plan, std::span<const uint32_t> which,
                          std::span<const size_t> bytes, std::span<const uint32_t> kinds) {
  std::vector<TokenValue> values;
  values.reserve(which.size());
  for (size_t k = 0; k < which.size(); ++k) {
    const Plan::Loose& loose = plan.loose[which[k]];
    values.push_back({.bytes = bytes[k],
                      .first = loose.first,
                      .last = loose.last,
                      .kind = kinds.empty() ? 0 : kinds[k],
                      .scope = loose.block});
  }
  if (auto tokens = PlanTokens(values)) return *std::move(tokens);
  return {std::vector<uint32_t>(values.size(), kNoToken), {}, 0};
}

}  // namespace heddle
