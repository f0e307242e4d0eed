// Decides when pooled memory is released: after the instruction that is its last user, if the order
// of the users is fixed; else when the count of readers has reached zero.
#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "core/programs/sub_block_slots.h"
#include "executor/plan/block_access.h"
#include "executor/plan/plan_draft.h"

namespace heddle {
namespace {

class ReleasePlanner {
 public:
  explicit ReleasePlanner(PlanDraft& d) : d_(d), plan_(*d.plan) {}

  void Run() {
    plan_.consumers.assign(plan_.slots.size(), 0);
    if (d_.request.reuse == Reuse::kNone) return;
    FindReleasable();
    read_by_.assign(plan_.slots.size(), nullptr);
    for (size_t b = 0; b < plan_.blocks.size(); ++b) {
      lanes_ = plan_.LanesOf(static_cast<int>(b));
      FindCounted(b);
      Walk(plan_.blocks[b].instructions);
      if (counted_ == Counted::kNone) OfferAppends(plan_.blocks[b].instructions);
      if (b != 0 && lanes_ != nullptr) ListCounted(b);
    }
    for (uint32_t s = 0; s < plan_.consumers.size(); ++s)
      if (plan_.consumers[s] > 0) plan_.counted_slots.push_back(s);
  }

 private:
  enum class Counted : uint8_t { kNone, kSome, kAll };

  // Finds the pooled slots that only the block which writes them uses.
  void FindReleasable() {
    releasable_.reserve(plan_.slots.size());
    for (uint32_t s = 0; s < plan_.slots.size(); ++s)
      releasable_.push_back(plan_.slots[s].storage == Storage::kPool && plan_.slots[s].versioned &&
                            !plan_.slots[s].crosses && !d_.fetched[s]);
  }

  // Finds the slots that several threads may read at the same time.
  void FindCounted(size_t block) {
    counted_ = Counted::kNone;
    if (block == 0 && (plan_.dispatch == Dispatch::kQueue || d_.has_tasks))
      counted_ = Counted::kAll;
    if (lanes_ == nullptr) return;
    counted_ = Counted::kSome;
    several_lanes_.clear();
    const auto& ins = plan_.blocks[block].instructions;
    std::unordered_map<uint32_t, int> lane_of;
    for (int lane = 0; lane < lanes_->lanes; ++lane)
      for (uint32_t i = lanes_->lane_begin[lane]; i < lanes_->lane_begin[lane + 1]; ++i)
        for (const auto* list : {&ins[i].op.in, &ins[i].op.out})
          for (uint32_t s : *list)
            if (s != kNoSlot && lane_of.try_emplace(s, lane).first->second != lane)
              several_lanes_.insert(s);
  }
  void ListCounted(size_t block) {
    std::vector<uint32_t>& list = plan_.blocks[block].counted_slots;
    for (const Instruction& in : plan_.blocks[block].instructions)
      list.insert(list.end(), in.reads.begin(), in.reads.end());
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }

  bool IsCounted(uint32_t s) const {
    return counted_ == Counted::kAll || (counted_ == Counted::kSome && several_lanes_.contains(s));
  }

  // Walks from the last instruction to the first, so that the first user met is the last one to
  // run. (The instructions are stored in a possible order; of a slot's users in one lane, the last
  // one stored runs last.)
  void Walk(std::vector<Instruction>& ins) {
    for (size_t i = ins.size(); i-- > 0;) {
      Instruction& in = ins[i];
      const auto& inputs = in.op.def->inputs();
      bool measures = false;  // it reads only the shape of some operand
      for (size_t k = 0, d = 0; k < in.op.in.size(); ++k) {
        while (d < inputs.size() && in.op.in_begin[d + 1] <= k) ++d;
        const uint32_t s = in.op.in[k];
        if (s == kNoSlot || !releasable_[s]) continue;
        // Even a thread that only reads the shape must not do so while another one clears the
        // value.
        if (IsCounted(s))
          AddReader(s, &in);
        else if (PlanDraft::ReadsInput(in, d))
          AddRelease(s, &in);
        else
          measures = true;
      }
      for (size_t k = 0; measures && k < in.op.in.size(); ++k)
        if (const uint32_t s = in.op.in[k]; s != kNoSlot && releasable_[s] && !IsCounted(s))
          KeepShape(s);
      // A counted slot is released by its readers. In lanes it has readers, since two lanes touch
      // it.
      for (uint32_t s : in.op.out) {
        if (s == kNoSlot || !releasable_[s]) continue;
        if (!IsCounted(s) || (lanes_ == nullptr && plan_.consumers[s] == 0)) AddRelease(s, &in);
      }
      in.gives_back = !in.release.empty() || !in.reads.empty();
    }
  }
  void AddReader(uint32_t s, Instruction* in) {
    if (read_by_[s] == in) return;
    read_by_[s] = in;
    in->reads.push_back(s);
    ++plan_.consumers[s];
  }
  void KeepShape(uint32_t s) {
    plan_.keeps_shape.resize(plan_.slots.size());
    plan_.keeps_shape[s] = true;
  }
  // Releases the slot after the instruction that asks first.
  void AddRelease(uint32_t s, Instruction* in) {
    in->release.push_back(s);
    releasable_[s] = false;
    OfferMemory(s, in);
  }
  // Whether the host takes memory for its outputs at run time.
  bool MayTakeMemory(const Instruction& in) const {
    return in.mode == Instruction::Mode::kDynamic && d_.request.in_place &&
           d_.request.dispatch != Dispatch::kDevice;
  }
  // A copy of a value whose last user is the copy takes over its memory. Loops make such copies of
  // growing values.
  void OfferMemory(uint32_t s, Instruction* in) const {
    if (!MayTakeMemory(*in) || in->op.def->views().empty() || !in->rewrites.empty() ||
        !in->var_attrs.empty())
      return;
    const OpDef::SlotPair pair = in->op.def->views()[0];
    const uint32_t i = in->op.in_begin[pair.in], o = in->op.out_begin[pair.out];
    if (i == in->op.in_begin[pair.in + 1] || in->op.in[i] != s ||
        std::count(in->op.in.begin(), in->op.in.end(), s) != 1 || o >= in->op.out.size() ||
        o == in->op.out_begin[pair.out + 1] || in->op.out[o] == kNoSlot)
      return;
    for (uint32_t k = 0; k < in->op.out.size(); ++k)
      if (k != o && in->op.out[k] != kNoSlot) return;
    const Slot& to = plan_.slots[in->op.out[o]];
    if (to.storage == Storage::kPool && d_.program.vars[to.var].kind == ir::VarKind::kTensor)
      in->takeovers = {i, o};
  }

  // Growing values: an operator that joins tensors to a value which is not used afterwards appends
  // them in the value's own memory.
  void OfferAppends(std::vector<Instruction>& ins) {
    for (size_t i = 0; i < ins.size(); ++i) {
      Instruction& in = ins[i];
      const OpDef& def = *in.op.def;
      if (!MayTakeMemory(in) || !def.has(kAlongAxis) || (def.inputs()[0].flags & kList) == 0 ||
          in.op.in_begin[1] < 2 || in.op.in.size() != in.op.in_begin[1] || in.op.out.size() != 1 ||
          in.op.out[0] == kNoSlot || !in.rewrites.empty() || !in.var_attrs.empty())
        continue;
      const uint32_t s = in.op.in[0], to = in.op.out[0];
      if (s == kNoSlot || plan_.slots[s].storage != Storage::kPool ||
          plan_.slots[to].storage != Storage::kPool || !plan_.slots[to].versioned ||
          std::count(in.op.in.begin(), in.op.in.end(), s) != 1)
        continue;
      const bool ends = plan_.slots[s].versioned
                            ? std::count(in.release.begin(), in.release.end(), s) == 1
                            : IsOverwritten(s, ins, i + 1);
      if (!ends) continue;
      in.appends = true;
      in.takeovers = {0, 0};
    }
  }
  // Whether the first use of the variable from instruction `at` on overwrites it. With many growing
  // values the search may go far each time: after kMostFollowed instructions in all, further values
  // are copied when they grow.
  static constexpr size_t kMostFollowed = size_t{1} << 24;
  bool IsOverwritten(uint32_t s, const std::vector<Instruction>& ins, size_t at) {
    const auto names = [s](const auto& list) {
      return std::find(list.begin(), list.end(), s) != list.end();
    };
    if (d_.handed[s]) return false;
    for (; at < ins.size() && followed_ < kMostFollowed; ++at, ++followed_) {
      const Instruction& in = ins[at];
      for (const int block : BlocksOf(plan_, in)) {
        if (!access_) access_.emplace(plan_);
        if (names(access_->Of(block).reads) || names(access_->Of(block).writes)) return false;
      }
      if (names(in.op.in)) return false;
      for (const auto& r : in.rewrites)
        if (r.real == s) return false;
      if (names(in.op.out))
        return !in.op.def->has(kControlFlow) && !ir::SelectsOutput(*in.op.def) && !in.once;
    }
    return false;
  }

  PlanDraft& d_;
  Plan& plan_;
  std::optional<BlockAccess> access_;
  size_t followed_ = 0;                  // instructions visited by IsOverwritten
  const LaneSchedule* lanes_ = nullptr;  // of the present block
  // Per slot, as bits, since they are accessed at random.
  std::vector<bool> releasable_;  // and not released by an instruction yet
  // For the present block. A hash set, since few of a plan's slots may be in its lanes.
  Counted counted_ = Counted::kNone;
  std::unordered_set<uint32_t> several_lanes_;  // kSome: these
  // Per slot: the instruction that was counted last as its reader.
  std::vector<const Instruction*> read_by_;
};

}  // namespace

void PlanReleases(PlanDraft& draft) { ReleasePlanner(draft).Run(); }

}  // namespace heddle
