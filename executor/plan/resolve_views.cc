// Instructions that only look at memory in another shape (reshape, squeeze, …) become the memory
// they look at, where that never changes: nothing is left to run. Operands of which only the shape
// is read need no memory at all.
#include "executor/plan/block_access.h"
#include "executor/plan/plan_draft.h"

namespace heddle {

// Contents that never change after they are there.
bool PlanDraft::Stable(uint32_t s) const { return plan->slots[s].versioned || plan->constant[s]; }

bool PlanDraft::IsFixed(uint32_t s) const {
  const Slot& slot = plan->slots[s];
  return !slot.versioned && slot.is_static && !handed[s] && !unsure[s] &&
         (slot.storage == Storage::kPool || slot.storage == Storage::kFeed) &&
         (slot.home > 0 || slot.storage == Storage::kFeed ||
          (request.dispatch != Dispatch::kQueue && request.dispatch != Dispatch::kDevice));
}

// The view an instruction is, or false when it must compute.
bool PlanDraft::FindView(const Instruction& in, uint32_t* from, uint32_t* to) const {
  const auto& views = in.op.def->views();
  if (views.empty() || in.mode != Instruction::Mode::kStatic || HasControlEdges(in)) return false;
  const uint32_t i = in.op.in_begin[views[0].in], o = in.op.out_begin[views[0].out];
  if (i >= in.op.in_begin[views[0].in + 1] || o >= in.op.out_begin[views[0].out + 1]) return false;
  *from = in.op.in[i];
  *to = in.op.out[o];
  if (*from == kNoSlot || *to == kNoSlot || !Stable(*from) || fetched[*to]) return false;
  for (uint32_t k = 0; k < in.op.out.size(); ++k)
    if (k != o && in.op.out[k] != kNoSlot) return false;
  const Slot& a = plan->slots[*from];
  const Slot& b = plan->slots[*to];
  if (!b.versioned) return false;
  return a.is_static && a.bytes() == b.bytes() && a.dtype == b.dtype;
}

bool PlanDraft::ReadsContents(const Instruction& in, uint32_t slot) {
  const auto& inputs = in.op.def->inputs();
  const bool runs_blocks = in.op.def->has(kControlFlow);
  for (size_t k = 0, i = 0; k < in.op.in.size(); ++k) {
    while (i < inputs.size() && in.op.in_begin[i + 1] <= k) ++i;
    if (in.op.in[k] != slot) continue;
    if (i >= inputs.size() || runs_blocks || (inputs[i].flags & kNoBuffer) == 0) return true;
  }
  return false;
}

namespace {

class ShapeOperands {
 public:
  explicit ShapeOperands(PlanDraft& d)
      : d_(d), plan_(*d.plan), shape_of_(plan_.slots.size(), kNoSlot) {}

  void Run() {
    for (BlockPlan& block : plan_.blocks)
      for (Instruction& in : block.instructions) Visit(in);
  }

 private:
  void Visit(Instruction& in) {
    if (in.op.def->has(kControlFlow)) return;
    const auto& inputs = in.op.def->inputs();
    for (size_t i = 0; i < inputs.size(); ++i) {
      if ((inputs[i].flags & kNoBuffer) == 0) continue;
      for (uint32_t k = in.op.in_begin[i]; k < in.op.in_begin[i + 1]; ++k)
        if (IsTemporary(in.op.in[k])) in.op.in[k] = ShapeOf(in.op.in[k]);
    }
  }

  bool IsTemporary(uint32_t s) const {
    return s != kNoSlot && plan_.slots[s].storage == Storage::kPool && plan_.slots[s].versioned &&
           plan_.slots[s].is_static;
  }

  uint32_t ShapeOf(uint32_t s) {
    if (shape_of_[s] != kNoSlot) return shape_of_[s];
    Slot shape = plan_.slots[s];
    shape.storage = Storage::kShape;
    shape.crosses = false;
    const auto added = static_cast<uint32_t>(plan_.slots.size());
    plan_.slots.push_back(shape);
    plan_.constants.emplace_back(added, *shape.meta);
    plan_.constant.push_back(false);
    d_.frame.push_back(d_.frame[s]);
    d_.known_meta.push_back(true);
    d_.unsure.push_back(false);
    d_.handed.push_back(false);
    if (!d_.fetched.empty()) d_.fetched.push_back(false);
    return shape_of_[s] = added;
  }

  PlanDraft& d_;
  Plan& plan_;
  std::vector<uint32_t> shape_of_;  // per slot: the one that has its shape
};

}  // namespace

void FreeShapeOperands(PlanDraft& draft) { ShapeOperands(draft).Run(); }

namespace {

// Whether a slot's memory is there before the block runs that looks at it, and stays.
bool HasPlace(const PlanDraft& d, uint32_t slot, int block) {
  if (d.handed[d.plan->RootOf(slot)]) return false;  // an operator that runs blocks brings it
  if (block == 0) return d.request.dispatch != Dispatch::kQueue;
  const uint32_t r = d.plan->RootOf(slot);
  const Slot& root = d.plan->slots[r];
  if (root.storage != Storage::kPool) return true;
  return d.fetched[r] ? root.home == 0 && d.request.dispatch != Dispatch::kQueue
                      : root.home > 0 || d.request.dispatch != Dispatch::kQueue;
}

void ResolveBlock(PlanDraft& d, int block) {
  Plan& plan = *d.plan;
  auto& ins = plan.blocks[block].instructions;
  size_t kept = 0;
  for (size_t i = 0; i < ins.size(); ++i) {
    for (int sub : BlocksOf(plan, ins[i]))
      if (d.CompilesBodies() && d.run_once[sub]) ResolveBlock(d, sub);
    uint32_t from, to;
    if (d.FindView(ins[i], &from, &to) && HasPlace(d, from, block)) {
      plan.slots[to].storage = Storage::kView;
      plan.slots[to].base = plan.RootOf(from);
      continue;
    }
    if (kept != i) ins[kept] = std::move(ins[i]);
    ++kept;
  }
  ins.erase(ins.begin() + static_cast<std::ptrdiff_t>(kept), ins.end());
  if (block > 0) JoinCopies(d, block);
}

}  // namespace

void ResolveViews(PlanDraft& d) {
  Plan& plan = *d.plan;
  d.fetched.assign(plan.slots.size(), false);
  for (const PlanFetch& f : plan.fetches) d.fetched[f.slot] = true;
  // From a queue, memory is there only while it is used: views of block 0 share it when they run.
  ResolveBlock(d, 0);
}

}  // namespace heddle
