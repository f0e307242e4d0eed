// Turns instructions that only view memory in another shape (reshape, squeeze, …) into views, if
// the memory does not change: nothing is left to run. Operands of which only the shape is read get
// no memory at all.
#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/kernel_context.h"
#include "core/operands/window.h"
#include "core/programs/sub_block_slots.h"
#include "executor/plan/block_access.h"
#include "executor/plan/calls/plan_calls.h"
#include "executor/plan/device/device_bodies.h"
#include "executor/plan/join_copies.h"
#include "executor/plan/plan_draft.h"
#include "executor/plan/slot_index.h"

namespace heddle {

// Whether the slot's contents never change once they are written.
bool PlanDraft::Stable(uint32_t s) const {
  const Slot& slot = plan->slots[s];
  return slot.versioned || plan->constant[s] || slot.storage == Storage::kBound;
}

bool PlanDraft::IsFixed(uint32_t s) const {
  const Slot& slot = plan->slots[s];
  return !slot.versioned && slot.is_static && !handed[s] && !unsure[s] &&
         (slot.storage == Storage::kPool || slot.storage == Storage::kFeed) &&
         (slot.home > 0 || slot.storage == Storage::kFeed ||
          (request.dispatch != Dispatch::kQueue && request.dispatch != Dispatch::kDevice));
}

// Finds the view that an instruction is; false: it must compute.
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
  return a.is_static && a.is_dense() && a.bytes() == b.bytes() && a.dtype == b.dtype;
}

static bool MakesWindows(const Instruction& in) { return (in.op.def->traits() & kWindows) != 0; }

uint32_t PlanDraft::FindWhole(const Instruction& in) const {
  if (!MakesWindows(in) || in.mode != Instruction::Mode::kStatic || in.op.in_begin[1] != 1)
    return kNoSlot;
  const uint32_t from = in.op.in[0];
  // No parts of constants, which kernels pack as they are.
  if (from == kNoSlot || !plan->slots[from].versioned || !plan->slots[from].is_static ||
      plan->constant[from] || frame[from]->tensor().has_lod())
    return kNoSlot;
  for (uint32_t k = 0; k < in.op.out.size(); ++k) {
    const uint32_t to = in.op.out[k];
    if (to == kNoSlot) continue;
    const Slot& s = plan->slots[to];
    if (k >= in.op.out_begin[1] || fetched[to] || !s.versioned || !s.is_static ||
        s.storage != Storage::kPool || s.bytes() == 0 || s.dtype != plan->slots[from].dtype)
      return kNoSlot;
  }
  return from;
}

bool PlanDraft::ReadsInput(const Instruction& in, size_t input) {
  const auto& inputs = in.op.def->inputs();
  return input >= inputs.size() || in.op.def->has(kControlFlow) ||
         (inputs[input].flags & kNoBuffer) == 0;
}

bool PlanDraft::ReadsContents(const Instruction& in, uint32_t slot) {
  const auto& inputs = in.op.def->inputs();
  for (size_t k = 0, i = 0; k < in.op.in.size(); ++k) {
    while (i < inputs.size() && in.op.in_begin[i + 1] <= k) ++i;
    if (in.op.in[k] == slot && ReadsInput(in, i)) return true;
  }
  return false;
}

namespace {

class ShapeOperands {
 public:
  explicit ShapeOperands(PlanDraft& d)
      : d_(d),
        plan_(*d.plan),
        shape_of_(plan_.slots.size(), kNoSlot),
        in_blocks_(plan_.slots.size()) {}

  void Run() {
    for (BlockPlan& block : plan_.blocks)
      for (Instruction& in : block.instructions) Visit(in);
    BlockAccess access(plan_);
    for (BlockPlan& block : plan_.blocks)
      for (Instruction& in : block.instructions) VisitLoop(in, access);
  }

 private:
  // The kernel of an operator that runs a block once or repeatedly reads only the condition, and
  // what it records of each step. Its other operands keep their shapes alone.
  void VisitLoop(Instruction& in, BlockAccess& access) {
    if (ConditionOf(in) == kNoSlot) return;
    const auto& inputs = in.op.def->inputs();
    const auto condition = static_cast<size_t>(ir::ConditionSlot(*in.op.def));
    in_blocks_.Clear();
    for (const int block : BlocksOf(plan_, in)) {
      for (uint32_t s : access.Of(block).reads) in_blocks_.Add(s);
      for (uint32_t s : access.Of(block).writes) in_blocks_.Add(s);
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (i == condition || ir::HandsValues(inputs[i])) continue;
      for (uint32_t k = in.op.in_begin[i]; k < in.op.in_begin[i + 1]; ++k)
        if (IsTemporary(in.op.in[k]) && !in_blocks_.Has(in.op.in[k]))
          in.op.in[k] = ShapeOf(in.op.in[k]);
    }
  }

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
  std::vector<uint32_t> shape_of_;  // per slot: the slot with its shape alone
  BlockSlots in_blocks_;            // slots that blocks of the present instruction touch
};

}  // namespace

void FreeShapeOperands(PlanDraft& draft) { ShapeOperands(draft).Run(); }

namespace {

// Whether the slot's memory exists before the block with the view runs, and stays the same.
bool HasPlace(const PlanDraft& d, uint32_t slot, int block) {
  // An operator that runs blocks provides the memory.
  if (d.handed[d.plan->RootOf(slot)]) return false;
  if (block == 0) return d.request.dispatch != Dispatch::kQueue;
  const uint32_t r = d.plan->RootOf(slot);
  const Slot& root = d.plan->slots[r];
  if (root.storage != Storage::kPool) return true;
  return d.fetched[r] ? root.home == 0 && d.request.dispatch != Dispatch::kQueue
                      : root.home > 0 || d.request.dispatch != Dispatch::kQueue;
}

// Turns a block's slices, splits and transposes into views, if no reader needs their results
// contiguous: all readers accept strides, or are such views themselves.
class Windows {
 public:
  // `near`: scratch, overwritten here and not kept.
  Windows(PlanDraft& d, int block, JoinTables& tables, BlockSlots& near)
      : d_(d), plan_(*d.plan), ins_(plan_.blocks[block].instructions), tables_(tables) {
    if (std::none_of(ins_.begin(), ins_.end(), MakesWindows)) return;
    near.Clear();
    for (const Instruction& in : ins_)
      for (const auto* list : {&in.op.in, &in.op.out})
        for (uint32_t s : *list) near.Add(s);
    FindReaders(near);
  }

  // Whether instruction `i` became a view. Preconditions: instructions before it were asked
  // already, and `i` is still where it was when this was made.
  bool Resolve(size_t i, int block) {
    if (candidates_.empty() || candidates_[i].whole == kNoSlot) return false;
    const Candidate& c = candidates_[i];
    if (!HasPlace(d_, c.whole, block)) return false;
    const std::span<const uint32_t> outs = Outs(ins_[i]);
    std::vector<Place> places(outs.size());
    for (size_t k = 0; k < outs.size(); ++k) {
      if (outs[k] == kNoSlot) continue;
      places[k] = PlaceOf(c.windows[k], c.whole, outs[k]);
      if (!places[k].dense && !c.strided && !(c.rows && IsRows(places[k], outs[k]))) return false;
    }
    for (size_t k = 0; k < outs.size(); ++k)
      if (outs[k] != kNoSlot) Set(c.whole, outs[k], std::move(places[k]));
    return true;
  }

 private:
  struct Place {
    size_t shift = 0;  // offset in the whole, in bytes
    std::vector<int64_t> strides;
    bool dense = true;
  };

  static std::span<const uint32_t> Outs(const Instruction& in) {
    if (in.op.out_begin.size() < 2) return {};
    return {in.op.out.begin(), in.op.out.begin() + in.op.out_begin[1]};
  }

  // An instruction that may become a view.
  struct Candidate {
    uint32_t whole = kNoSlot;  // the outputs are parts of this slot; kNoSlot: no candidate
    bool strided = false;      // all readers of the outputs accept strides
    bool rows = false;         // ... or contiguous rows with gaps between them
    std::vector<Window> windows;
  };

  // From the last instruction to the first: finds out whether all readers of its outputs accept
  // strides.
  void FindReaders(const BlockSlots& number) {
    enum Need : uint8_t { kAny, kRows, kDense };
    std::vector<Need> needs(number.all().size(), kAny);
    // Per slot: 1 + the position of the last reader, through views too.
    std::vector<size_t> last(number.all().size(), 0);
    for (uint32_t s : number.all())  // readers in other blocks are not examined
      if (plan_.slots[s].crosses) needs[number[s]] = kDense;
    candidates_.resize(ins_.size());
    for (size_t i = ins_.size(); i-- > 0;) {
      const Instruction& in = ins_[i];
      Candidate& c = candidates_[i];
      c.whole = d_.FindWhole(in);
      if (c.whole != kNoSlot && !FindWindows(in, &c.windows)) c.whole = kNoSlot;
      if (c.whole == kNoSlot) c.whole = FindSqueezed(in, &c.windows);
      const std::span<const uint32_t> outs = Outs(in);
      size_t end = 0;
      for (uint32_t s : outs)
        if (s != kNoSlot) end = std::max(end, last[number[s]]);
      if (c.whole != kNoSlot && end > last[number[c.whole]] && IsSmallPart(c.whole, outs))
        c.whole = kNoSlot;
      uint32_t from, to;
      const bool view = c.whole != kNoSlot || d_.FindView(in, &from, &to);
      for (uint32_t s : in.op.in)
        if (s != kNoSlot) last[number[s]] = std::max(last[number[s]], view ? end : i + 1);
      Need need = c.whole == kNoSlot ? kDense : kAny;
      for (uint32_t s : outs)
        if (s != kNoSlot) need = std::max(need, needs[number[s]]);
      c.strided = need == kAny;
      c.rows = need == kRows;
      const auto& inputs = in.op.def->inputs();
      const bool by_strides =
          in.mode == Instruction::Mode::kStatic && !in.op.def->has(kControlFlow);
      for (size_t k = 0, slot = 0; k < in.op.in.size(); ++k) {
        while (slot < inputs.size() && in.op.in_begin[slot + 1] <= k) ++slot;
        if (in.op.in[k] == kNoSlot || (c.strided && k == 0)) continue;
        const unsigned flags = by_strides && slot < inputs.size() ? inputs[slot].flags : 0;
        Need& operand = needs[number[in.op.in[k]]];
        if ((flags & (kByStrides | kNoBuffer)) == 0)
          operand = std::max(operand, (flags & kByRows) != 0 ? kRows : kDense);
      }
    }
  }

  // Whether views of the parts would keep alive much more memory than copies of them take.
  bool IsSmallPart(uint32_t whole, std::span<const uint32_t> parts) const {
    constexpr size_t kLarge = 64 << 10;
    const Slot& w = plan_.slots[whole];
    if (w.storage != Storage::kPool || d_.fetched[whole] || w.bytes() < kLarge) return false;
    size_t bytes = 0;
    for (uint32_t s : parts)
      if (s != kNoSlot) bytes += plan_.slots[s].bytes();
    return 2 * bytes < w.bytes();
  }

  // Reads from the operator's prepared state which parts the outputs are.
  bool FindWindows(const Instruction& in, std::vector<Window>* windows) const {
    std::unique_ptr<KernelState> prepared;
    const PrepareContext ctx(in.op, d_.frame.data(), *d_.request.services, &plan_.constant);
    const Status status = GuardPlanning([&] {
      PrepareContext context = ctx;
      HEDDLE_ASSIGN_OR_RETURN(prepared, in.op.def->prepare()(context));
      return Status::Ok();
    });
    const auto* const state = dynamic_cast<const WindowState*>(prepared.get());
    if (!status.ok() || state == nullptr) return false;
    windows->resize(in.op.out_begin[1]);
    for (size_t k = 0; k < windows->size(); ++k)
      if (in.op.out[k] != kNoSlot && !state->WindowOf(static_cast<int>(k), &(*windows)[k]))
        return false;
    return true;
  }

  // The input of an instruction that only adds or drops dimensions of length 1, which is also
  // possible with gaps; else kNoSlot.
  uint32_t FindSqueezed(const Instruction& in, std::vector<Window>* windows) const {
    uint32_t from, to;
    if (!d_.FindView(in, &from, &to) || plan_.constant[from] || in.op.in[0] != from ||
        in.op.out[0] != to || in.op.out_begin[1] != 1)
      return kNoSlot;
    const Shape &a = plan_.slots[from].shape(), &b = plan_.slots[to].shape();
    Window w;
    int at = 0;
    for (int d = 0; d < b.rank(); ++d) {
      if (b[d] == 1) continue;
      while (at < a.rank() && a[at] == 1) ++at;
      if (at == a.rank() || a[at] != b[d]) return kNoSlot;
      w.axis[d] = at++;
      w.step[d] = 1;
    }
    windows->assign(1, w);
    return from;
  }

  Place PlaceOf(const Window& w, uint32_t from, uint32_t to) const {
    const Slot &a = plan_.slots[from], &b = plan_.slots[to];
    const std::vector<int64_t> within = StridesOf(a);
    Place place;
    int64_t first = 0, dense = 1;
    for (int d = 0; d < a.shape().rank(); ++d) first += w.start[d] * within[d];
    place.shift = static_cast<size_t>(first) * SizeOf(a.dtype);
    place.strides.resize(static_cast<size_t>(b.shape().rank()));
    for (int d = b.shape().rank() - 1; d >= 0; --d) {
      const int64_t stride = w.step[d] * within[w.axis[d]];
      place.strides[d] = stride;
      place.dense = place.dense && (b.shape()[d] == 1 || stride == dense);
      dense *= b.shape()[d];
    }
    return place;
  }
  bool IsRows(const Place& place, uint32_t s) const {
    const Shape& shape = plan_.slots[s].shape();
    return shape.rank() > 0 && RowStep(shape, place.strides, shape.rank() - 1) >= 0;
  }
  static std::vector<int64_t> StridesOf(const Slot& slot) {
    if (!slot.is_dense()) return slot.meta->tensor().strides();
    std::vector<int64_t> strides(static_cast<size_t>(slot.shape().rank()));
    int64_t step = 1;
    for (int d = slot.shape().rank() - 1; d >= 0; --d) {
      strides[d] = step;
      step *= slot.shape()[d];
    }
    return strides;
  }

  void Set(uint32_t from, uint32_t to, Place place) {
    Slot& slot = plan_.slots[to];
    slot.storage = Storage::kView;
    slot.base = plan_.RootOf(from);
    slot.shift = plan_.slots[from].shift + place.shift;
    tables_.views[slot.base].push_back(to);
    if (place.dense) return;
    d_.frame[to] = plan_.metas.Strided(slot.dtype, slot.shape(), std::move(place.strides));
    slot.meta = d_.frame[to];
  }

  PlanDraft& d_;
  Plan& plan_;
  const std::vector<Instruction>& ins_;
  JoinTables& tables_;
  std::vector<Candidate> candidates_;  // per instruction; empty: there are none
};

void ResolveBlock(PlanDraft& d, int block, JoinTables& tables, BlockSlots& near) {
  Plan& plan = *d.plan;
  auto& ins = plan.blocks[block].instructions;
  size_t kept = 0;
  Windows windows(d, block, tables, near);
  for (size_t i = 0; i < ins.size(); ++i) {
    for (int sub : BlocksOf(plan, ins[i]))
      if (d.CompilesBodies() && d.run_once[sub]) ResolveBlock(d, sub, tables, near);
    uint32_t from, to;
    if (d.FindView(ins[i], &from, &to) && HasPlace(d, from, block)) {
      plan.slots[to].storage = Storage::kView;
      plan.slots[to].base = plan.RootOf(from);
      plan.slots[to].shift = plan.slots[from].shift;
      tables.views[plan.slots[to].base].push_back(to);
      continue;
    }
    if (windows.Resolve(i, block)) continue;
    if (kept != i) ins[kept] = std::move(ins[i]);
    ++kept;
  }
  ins.erase(ins.begin() + static_cast<std::ptrdiff_t>(kept), ins.end());
  if (block > 0) JoinCopies(d, block, tables);
}

}  // namespace

void ResolveViews(PlanDraft& d) {
  Plan& plan = *d.plan;
  d.fetched.assign(plan.slots.size(), false);
  for (const PlanFetch& f : plan.fetches) d.fetched[f.slot] = true;
  // From a queue, memory exists only while it is used: views of block 0 are made at run time.
  JoinTables tables(plan);
  BlockSlots near(plan.slots.size());
  ResolveBlock(d, 0, tables, near);
  for (const FunctionPlan& f : plan.functions) ResolveBlock(d, f.block, tables, near);
  FindBoundViews(plan);
}

}  // namespace heddle
