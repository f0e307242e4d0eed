// Where every slot lives and who shares memory with whom.
#include <algorithm>
#include <span>

#include "executor/block_access.h"
#include "executor/lifetimes.h"
#include "executor/plan_draft.h"
#include "memory/arena_planner.h"

namespace heddle {
namespace {

class MemoryPlanner {
 public:
  explicit MemoryPlanner(PlanDraft& d)
      : d_(d), plan_(*d.plan), ins_(plan_.blocks[0].instructions) {}

  void Run() {
    if (plan_.dispatch == Dispatch::kQueue || plan_.dispatch == Dispatch::kDevice)
      ShareAtRunTime();
    else
      PlaceInArena();
    MarkFetches();
    Lists();
  }

 private:
  Slot& At(uint32_t s) { return plan_.slots[s]; }

  // --- from a queue, and where a device has a part: memory is taken and given back as instructions
  // run ---
  void ShareAtRunTime() {
    for (Instruction& in : ins_) {
      uint32_t from, to;
      if (d_.FindView(in, &from, &to)) {
        in.mode = Instruction::Mode::kShare;
        in.takeovers = {PositionOf(in.op.in, from), PositionOf(in.op.out, to)};
        continue;
      }
      if (in.mode == Instruction::Mode::kStatic) in.mode = Instruction::Mode::kPooled;
      if (in.mode == Instruction::Mode::kPooled)
        for (const auto& pair : in.op.def->inplace())
          for (uint32_t k : TakeableInputs(in, pair))
            OfferMemory(k, in.op.out_begin[pair.out], &in);
    }
  }
  void OfferMemory(uint32_t i, uint32_t o, Instruction* in) {
    const uint32_t from = in->op.in[i];
    const Slot& a = At(from);
    if (std::count(in->op.in.begin(), in->op.in.end(), from) != 1) return;
    if (a.storage == Storage::kPool && a.versioned && a.is_static && !d_.fetched[from] &&
        a.bytes() == At(in->op.out[o]).bytes())
      for (uint32_t at : {i, o}) in->takeovers.push_back(at);
  }
  // The inputs, by position, whose memory the pair's output may take over. Where a list becomes one
  // output, as in a sum of gradients, any of the list; else the first.
  static std::vector<uint32_t> TakeableInputs(const Instruction& in, const OpDef::SlotPair& pair) {
    const uint32_t b = in.op.out_begin[pair.out], outs = in.op.out_begin[pair.out + 1] - b;
    std::vector<uint32_t> inputs;
    if (outs == 0 || in.op.out[b] == kNoSlot) return inputs;
    const uint32_t first = in.op.in_begin[pair.in], end = in.op.in_begin[pair.in + 1];
    for (uint32_t a = first; a < (outs == 1 ? end : std::min(end, first + 1)); ++a)
      if (in.op.in[a] != kNoSlot) inputs.push_back(a);
    return inputs;
  }
  static uint32_t PositionOf(const IdList& list, uint32_t slot) {
    return static_cast<uint32_t>(std::find(list.begin(), list.end(), slot) - list.begin());
  }

  // --- in a known order: offsets in one arena ---
  uint32_t Root(uint32_t s) {
    while (root_[s] != s) s = root_[s] = root_[root_[s]];
    return s;
  }
  // Calls fn(instruction) in an order that one thread could follow.
  template <typename Fn>
  void Walk(Fn&& fn) {
    if (!plan_.lanes) {
      for (uint32_t i = 0; i < ins_.size(); ++i) fn(i);
    } else {
      for (uint32_t i : plan_.serial_order) fn(i);
    }
  }

  void PlaceInArena() {
    const auto n = static_cast<uint32_t>(plan_.slots.size());
    root_.resize(n);
    for (uint32_t s = 0; s < n; ++s) root_[s] = plan_.RootOf(s);
    for (const Instruction& in : ins_) {
      if (in.mode != Instruction::Mode::kStatic) continue;
      for (uint32_t s : in.op.out)
        if (s != kNoSlot && At(s).storage == Storage::kPool)
          At(s).storage = d_.fetched[s] ? Storage::kOutput : Storage::kArena;
    }
    for (Slot& s : plan_.slots)  // a view of an arena slot is an arena slot at the same offset
      if (s.storage == Storage::kView && At(s.base).storage == Storage::kArena)
        s.storage = Storage::kArena;
    Lifetimes life(n, plan_.lanes.get());
    BlockAccess blocks(plan_);
    Walk([&](uint32_t i) {
      Touch(ins_[i].op.in, i, &life);
      Touch(ins_[i].op.out, i, &life);
      for (int sub : BlocksOf(plan_, ins_[i])) {
        Touch(blocks.Of(sub).reads, i, &life);
        Touch(blocks.Of(sub).writes, i, &life);
      }
    });
    Walk([&](uint32_t i) { ShareInPlace(i, &life); });
    Layout(life);
  }

  void Touch(std::span<const uint32_t> slots, uint32_t at, Lifetimes* life) {
    for (uint32_t s : slots)
      if (s != kNoSlot) life->Touch(Root(s), at);
  }

  // An output takes over the place of an input that nobody needs any more.
  void ShareInPlace(uint32_t i, Lifetimes* life) {
    const Instruction& in = ins_[i];
    if (in.mode != Instruction::Mode::kStatic) return;
    for (const auto& pair : in.op.def->inplace())
      for (uint32_t a : TakeableInputs(in, pair))
        if (TakeOver(i, in.op.in[a], in.op.out[in.op.out_begin[pair.out]], life)) break;
  }
  bool TakeOver(uint32_t i, uint32_t from, uint32_t to, Lifetimes* life) {
    const uint32_t r = Root(from);
    if (At(r).storage != Storage::kArena || At(to).storage != Storage::kArena || Root(to) == r ||
        Root(to) != to || At(r).bytes() != At(to).bytes() || At(from).bytes() != At(to).bytes() ||
        !life->IsLastUser(r, i) || ReadsOf(ins_[i], r) != 1)
      return false;
    root_[to] = r;
    life->Merge(r, to);
    return true;
  }
  // How many operands lie in r's memory: the taken one must be the only one.
  int ReadsOf(const Instruction& in, uint32_t r) {
    int n = 0;
    for (uint32_t s : in.op.in) n += s != kNoSlot && Root(s) == r;
    return n;
  }

  // Regions one after another, each with its own layout.
  void Layout(const Lifetimes& life) {
    struct Region {
      std::vector<LiveRange> ranges;
      std::vector<uint32_t> owners;
    };
    std::vector<Region> regions(static_cast<size_t>(life.regions()));
    const auto n = static_cast<uint32_t>(plan_.slots.size());
    for (uint32_t s = 0; s < n; ++s) {
      if (Root(s) != s || !life.touched(s) || At(s).storage != Storage::kArena) continue;
      const Lifetimes::Range range = life.RangeOf(s);
      Region& region = regions[static_cast<size_t>(range.region)];
      region.ranges.push_back({At(s).bytes(), range.first, std::max(range.first, range.last)});
      region.owners.push_back(s);
    }
    for (const Region& region : regions) {
      const ArenaLayout layout = PlanArena(region.ranges);
      for (size_t k = 0; k < region.owners.size(); ++k)
        At(region.owners[k]).offset = plan_.arena_bytes + layout.offsets[k];
      plan_.arena_bytes += layout.bytes;
      plan_.arena_bound += layout.bound;
    }
    if (plan_.lanes) ShareAcrossLanes(life);
    for (uint32_t s = 0; s < n; ++s)
      if (At(s).storage == Storage::kArena) At(s).offset = At(Root(s)).offset;
  }

  // With lanes, one layout of everything, where only what the waits put in order shares memory, is
  // mostly smaller than a region each: short-lived buffers of one lane fit between those that cross.
  // The bound: what is alive at the same time when one thread follows the walk, which it may.
  void ShareAcrossLanes(const Lifetimes& life) {
    std::vector<uint32_t> owners;
    std::vector<size_t> bytes;
    std::vector<LiveRange> walk;
    for (uint32_t s = 0; s < plan_.slots.size(); ++s) {
      if (Root(s) != s || !life.touched(s) || At(s).storage != Storage::kArena) continue;
      const Lifetimes::Range range = life.WalkRange(s);
      owners.push_back(s);
      bytes.push_back(At(s).bytes());
      walk.push_back({At(s).bytes(), range.first, range.last});
    }
    plan_.arena_bound = PeakOf(walk);
    const ArenaLayout layout = PlanArenaByConflicts(bytes, [&](int32_t i, int32_t j) {
      const uint32_t a = owners[static_cast<size_t>(i)], b = owners[static_cast<size_t>(j)];
      return !life.Before(a, b) && !life.Before(b, a);
    });
    if (layout.offsets.empty() || layout.bytes >= plan_.arena_bytes) return;
    for (size_t k = 0; k < owners.size(); ++k) At(owners[k]).offset = layout.offsets[k];
    plan_.arena_bytes = layout.bytes;
  }

  // --- both ---
  void MarkFetches() {
    // The last fetch of a slot is the one that may take the memory.
    std::vector<bool> taken(plan_.slots.size(), false);
    for (auto f = plan_.fetches.rbegin(); f != plan_.fetches.rend(); ++f) {
      const Slot& s = At(f->slot);
      f->move = (s.storage == Storage::kOutput || s.storage == Storage::kPool) && !taken[f->slot];
      taken[f->slot] = true;
    }
  }

  void Lists() {
    for (uint32_t s = 0; s < plan_.slots.size(); ++s) {
      switch (At(s).storage) {
        case Storage::kArena:
          plan_.arena_slots.push_back(s);
          break;
        case Storage::kOutput:
          plan_.output_slots.push_back(s);
          break;
        case Storage::kView:
          plan_.view_slots.push_back(s);
          break;
        case Storage::kPool:
          plan_.run_slots.push_back(s);
          break;
        default:
          break;
      }
    }
  }

  PlanDraft& d_;
  Plan& plan_;
  std::vector<Instruction>& ins_;
  std::vector<uint32_t> root_;
};

}  // namespace

void PlanMemory(PlanDraft& draft) { MemoryPlanner(draft).Run(); }

}  // namespace heddle
