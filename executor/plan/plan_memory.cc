// Chooses the storage of every slot, and which slots share memory.
#include <algorithm>
#include <memory>
#include <utility>

#include "core/interrupts.h"
#include "core/programs/sub_block_slots.h"
#include "executor/plan/arena_sharing.h"
#include "executor/plan/block_access.h"
#include "executor/plan/plan_draft.h"
#include "executor/plan/shapes/instruction_facts.h"
#include "executor/plan/slot_index.h"
#include "memory/arena_planner.h"

namespace heddle {
namespace {

class MemoryPlanner {
 public:
  explicit MemoryPlanner(PlanDraft& d)
      : d_(d),
        plan_(*d.plan),
        ins_(plan_.blocks[0].instructions),
        access_(plan_),
        near_(plan_.slots.size()) {}

  void Run() {
    const bool at_run_time =
        plan_.dispatch == Dispatch::kQueue || plan_.dispatch == Dispatch::kDevice;
    if (!at_run_time) ChooseStorages(0);
    if (d_.PlacesBodies()) FindNested(0);
    for (const FunctionPlan& f : plan_.functions) nested_.push_back({f.block, 0});
    for (const Nested& n : nested_) ChooseStorages(n.block);
    for (Slot& s : plan_.slots)  // a view of an arena slot becomes an arena slot
      if (s.storage == Storage::kView && At(s.base).storage == Storage::kArena)
        s.storage = Storage::kArena;
    FindHomes();
    plan_.buffers.resize(plan_.slots.size(), kNoSlot);
    for (size_t n = nested_.size(); n-- > 0;) PlaceInWorkspace(nested_[n]);
    if (at_run_time)
      ShareAtRunTime(&ins_);
    else
      Take(SmallEnough(0), 0);
    if (plan_.dispatch == Dispatch::kDevice) TakeInBodies();
    if (at_run_time) StackWorkspaces();
    PlaceWorkspaces();
    MarkFetches();
    Lists();
  }

 private:
  Slot& At(uint32_t s) { return plan_.slots[s]; }

  // Whether temporaries may share memory.
  bool Shares() const { return d_.request.reuse != Reuse::kNone; }

  // --- from a queue, or with a device: memory is taken and released as instructions run ---
  void ShareAtRunTime(std::vector<Instruction>* instructions) {
    for (Instruction& in : *instructions) {
      LookForInterrupt();
      uint32_t from, to;
      if (d_.FindView(in, &from, &to)) {
        in.mode = Instruction::Mode::kShare;
        in.takeovers = {PositionOf(in.op.in, from), PositionOf(in.op.out, to)};
        continue;
      }
      if (in.mode == Instruction::Mode::kStatic) in.mode = Instruction::Mode::kPooled;
      if (in.mode == Instruction::Mode::kPooled && d_.request.in_place && Shares())
        OfferMemory(&in);
    }
  }
  // Bodies on a device take memory as block 0 does; those on the host only for their outputs.
  void TakeInBodies() {
    for (size_t b = 1; b < plan_.blocks.size(); ++b) {
      if (d_.RunsOnDevice(static_cast<int>(b))) {
        ShareAtRunTime(&plan_.blocks[b].instructions);
        continue;
      }
      for (Instruction& in : plan_.blocks[b].instructions)
        if (in.mode == Instruction::Mode::kStatic) in.mode = Instruction::Mode::kPooled;
    }
  }
  void OfferMemory(Instruction* in) {
    OperandIndex operands(in->op.in);
    for (const auto& pair : in->op.def->inplace()) {
      const uint32_t o = in->op.out_begin[pair.out];
      for (uint32_t i : ArenaSharing::TakeableInputs(*in, pair)) {
        const uint32_t from = in->op.in[i];
        const Slot& a = At(from);
        if (a.storage == Storage::kPool && a.versioned && a.is_static && !d_.fetched[from] &&
            a.bytes() == At(in->op.out[o]).bytes() && operands.Count(from) == 1)
          for (uint32_t at : {i, o}) in->takeovers.push_back(at);
      }
    }
  }
  static uint32_t PositionOf(const IdList& list, uint32_t slot) {
    return static_cast<uint32_t>(std::find(list.begin(), list.end(), slot) - list.begin());
  }

  // --- in a known order: offsets in one arena ---
  //
  // Which slots share memory, and the offsets of the buffers.
  struct Arena {
    std::unique_ptr<ArenaSharing> sharing;
    std::vector<uint32_t> owners;  // the slots that identify the buffers
    std::vector<size_t> offsets;   // of the buffers
    size_t bytes = 0, bound = 0;
  };

  // Chooses the storage of what the block's instructions write, if its size is known before the
  // run.
  void ChooseStorages(int block) {
    using Mode = Instruction::Mode;
    for (Instruction& in : plan_.blocks[block].instructions) {
      LookForInterrupt();
      if (in.mode != Mode::kStatic && in.mode != Mode::kReplace) continue;
      for (uint32_t s : in.op.out) {
        if (s == kNoSlot || At(s).storage != Storage::kPool || !At(s).is_static) continue;
        if (!IsPlaced(in, s))
          in.mode = in.mode == Mode::kStatic ? Mode::kPooled : in.mode;
        else
          At(s).storage = d_.fetched[s] ? Storage::kOutput : Storage::kArena;
      }
    }
  }
  bool IsPlaced(const Instruction& in, uint32_t s) const {
    const Slot& slot = plan_.slots[s];
    if (d_.fetched[s] && slot.home != 0) return false;
    if (const Instruction::Rewrite* r = RewriteOf(in, s);
        r != nullptr && plan_.slots[r->real].storage == Storage::kPool && !d_.IsFixed(r->real))
      return false;  // its memory becomes the variable's
    return slot.versioned || d_.IsFixed(s);
  }

  // A sub-block that runs, and the block that runs it, in whose layout its work space is a value.
  // Outer blocks come first.
  struct Nested {
    int block, runner;
  };
  void FindNested(int runner) {
    for (const Instruction& in : plan_.blocks[runner].instructions)
      for (int sub : BlocksOf(plan_, in)) {
        if (!d_.run_once[sub]) continue;  // no slot of it has an offset, or it is a function
        nested_.push_back({sub, runner});
        FindNested(sub);
      }
  }

  // Lists the arena slots by the block whose layout they belong to.
  void FindHomes() {
    at_home_.resize(plan_.blocks.size());
    for (uint32_t s = 0; s < plan_.slots.size(); ++s)
      if (At(s).storage == Storage::kArena) at_home_[static_cast<size_t>(HomeOf(s))].push_back(s);
  }

  void PlaceInWorkspace(const Nested& nested) {
    const uint32_t w = plan_.blocks[nested.block].workspace;
    const Arena arena = SmallEnough(nested.block);
    Take(arena, nested.block);
    if (arena.bytes == 0) return;
    Slot& workspace = At(w);
    workspace.meta =
        plan_.metas.Of(DType::kU8, Shape{static_cast<int64_t>((arena.bytes + 63) / 64 * 64)});
    workspace.dtype = DType::kU8;
    workspace.is_static = true;
    workspace.storage = Storage::kArena;
    workspace.home = nested.runner;
    at_home_[static_cast<size_t>(nested.runner)].push_back(w);
  }

  // For a queue, where instructions run in no known order: gives each sub-block memory of its own,
  // one after another.
  void StackWorkspaces() {
    for (const Nested& n : nested_) {
      const uint32_t w = plan_.blocks[n.block].workspace;
      if (At(w).storage != Storage::kArena || n.runner != 0) continue;
      At(w).offset = plan_.arena_bytes;
      plan_.buffers[w] = w;
      plan_.arena_bytes += At(w).bytes();
    }
    plan_.arena_bound = plan_.arena_bytes;
  }

  // Converts offsets in work spaces to offsets in the arena.
  void PlaceWorkspaces() {
    for (const Nested& n : nested_) {
      const size_t offset = At(plan_.blocks[n.block].workspace).offset;
      for (uint32_t s : at_home_[static_cast<size_t>(n.block)]) At(s).offset += offset;
      for (Instruction& in : plan_.blocks[n.block].instructions)
        if (in.op.spare.size > 0) in.op.spare.begin += static_cast<uint32_t>(offset / 64);
    }
  }
  int HomeOf(uint32_t s) { return At(plan_.RootOf(s)).home; }

  // Numbers all slots that `block` touches, for ArenaSharing, including the work spaces of inner
  // blocks, which were added since.
  void NumberSlots(int block) {
    near_.Clear();
    auto& here = at_home_[static_cast<size_t>(block)];
    std::sort(here.begin(), here.end());
    const auto add = [&](uint32_t s) {
      if (s == kNoSlot) return;
      near_.Add(s);
      near_.Add(plan_.RootOf(s));
    };
    for (uint32_t s : here) add(s);
    for (const Instruction& in : plan_.blocks[block].instructions) {
      for (uint32_t s : in.op.in) add(s);
      for (uint32_t s : in.op.out) add(s);
      for (int sub : BlocksOf(plan_, in)) {
        for (uint32_t s : access_.Of(sub).reads) add(s);
        for (uint32_t s : access_.Of(sub).writes) add(s);
        add(plan_.blocks[sub].workspace);
      }
    }
  }

  // Lays the block out with and without pieces in their wholes. They save copies, but the whole
  // takes its memory from the first piece on.
  Arena SmallEnough(int block) {
    constexpr size_t kWorth = 256;  // saved copies are worth 1/256 more memory
    NumberSlots(block);
    Arena arena = Layout(block, true);
    if (arena.sharing->pieces() == 0) return arena;
    Arena without = Layout(block, false);
    return arena.bytes <= without.bytes + without.bytes / kWorth ? std::move(arena)
                                                                 : std::move(without);
  }

  // Lays out each region by itself, one after another; with lanes, perhaps all of them together
  // instead.
  Arena Layout(int block, bool pieces) {
    Arena arena;
    arena.sharing = std::make_unique<ArenaSharing>(d_, block, pieces, near_, access_);
    const ArenaSharing& life = *arena.sharing;
    struct Region {
      std::vector<LiveRange> ranges;
      std::vector<size_t> members;  // indices in `owners`
    };
    std::vector<Region> regions(static_cast<size_t>(life.regions()));
    for (uint32_t s : at_home_[static_cast<size_t>(block)]) {
      if (plan_.slots[s].home != block || arena.sharing->BufferOf(s) != s || !life.touched(s))
        continue;
      const Lifetimes::Range range = life.RangeOf(s);
      Region& region = regions[static_cast<size_t>(range.region)];
      region.ranges.push_back(
          {plan_.slots[s].bytes(), range.first, std::max(range.first, range.last)});
      region.members.push_back(arena.owners.size());
      arena.owners.push_back(s);
    }
    arena.offsets.resize(arena.owners.size());
    for (const Region& region : regions) {
      const ArenaLayout layout = PlanArena(region.ranges);
      for (size_t k = 0; k < region.members.size(); ++k)
        arena.offsets[region.members[k]] = arena.bytes + layout.offsets[k];
      arena.bytes += layout.bytes;
      arena.bound += layout.bound;
    }
    if (!Shares())
      PutOneBehindAnother(&arena);
    else if (plan_.LanesOf(block) != nullptr)
      ShareAcrossLanes(&arena);
    return arena;
  }

  void PutOneBehindAnother(Arena* arena) const {
    constexpr size_t kAlign = 64;
    arena->bytes = 0;
    for (size_t k = 0; k < arena->owners.size(); ++k) {
      arena->offsets[k] = arena->bytes;
      arena->bytes += (plan_.slots[arena->owners[k]].bytes() + kAlign - 1) / kAlign * kAlign;
    }
  }

  // With lanes, one layout of all buffers, in which only those share memory whose order the waits
  // guarantee, is mostly smaller than a layout per region: short-lived buffers of one lane fit
  // between those that several lanes use. The bound is what is alive at the same time if one thread
  // follows the walk, which is a possible execution.
  void ShareAcrossLanes(Arena* arena) const {
    const ArenaSharing& life = *arena->sharing;
    std::vector<size_t> bytes;
    std::vector<LiveRange> walk;
    for (uint32_t s : arena->owners) {
      const Lifetimes::Range range = life.WalkRange(s);
      bytes.push_back(plan_.slots[s].bytes());
      walk.push_back({plan_.slots[s].bytes(), range.first, range.last});
    }
    arena->bound = PeakOf(walk);
    ArenaLayout layout = PlanArenaByConflicts(bytes, [&](int32_t i, int32_t j) {
      const uint32_t a = arena->owners[static_cast<size_t>(i)];
      const uint32_t b = arena->owners[static_cast<size_t>(j)];
      return !life.Before(a, b) && !life.Before(b, a);
    });
    if (layout.offsets.empty() || layout.bytes >= arena->bytes) return;
    arena->offsets = std::move(layout.offsets);
    arena->bytes = layout.bytes;
  }

  void Take(const Arena& arena, int block) {
    if (block == 0) {
      plan_.arena_bytes = arena.bytes;
      plan_.arena_bound = arena.bound;
    }
    for (size_t k = 0; k < arena.owners.size(); ++k) At(arena.owners[k]).offset = arena.offsets[k];
    for (uint32_t s : at_home_[static_cast<size_t>(block)]) {
      const uint32_t owner = plan_.buffers[s] = arena.sharing->BufferOf(s);
      if (owner != s) At(s).offset = At(owner).offset + arena.sharing->OffsetOf(s);
    }
    const bool in_order = block == 0 ? plan_.dispatch == Dispatch::kSerial : d_.IsFunction(block);
    if (in_order && Shares())
      FindSpare(arena, &plan_.blocks[static_cast<size_t>(block)].instructions);
  }

  // Finds work space for kernels: for each instruction, the largest range of the arena that no
  // buffer uses meanwhile. Skipped where more than kMostAlive buffers are alive at once.
  void FindSpare(const Arena& arena, std::vector<Instruction>* instructions) const {
    std::vector<Instruction>& ins = *instructions;
    constexpr size_t kUnit = 64, kMostAlive = 256;
    const ArenaSharing& life = *arena.sharing;
    struct Buffer {
      size_t begin, end;
      int32_t last;
    };
    std::vector<std::vector<Buffer>> begins(ins.size());
    for (size_t k = 0; k < arena.owners.size(); ++k) {
      const Lifetimes::Range range = life.RangeOf(arena.owners[k]);
      const size_t at = arena.offsets[k], bytes = plan_.slots[arena.owners[k]].bytes();
      begins[static_cast<size_t>(range.first)].push_back(
          {at, at + bytes, std::max(range.first, range.last)});
    }
    std::vector<Buffer> alive;  // sorted by offset
    for (size_t i = 0; i < ins.size(); ++i) {
      std::erase_if(alive, [&](const Buffer& b) { return b.last < static_cast<int32_t>(i); });
      if (alive.size() + begins[i].size() > kMostAlive) return;
      for (const Buffer& b : begins[i])
        alive.insert(
            std::upper_bound(alive.begin(), alive.end(), b,
                             [](const Buffer& x, const Buffer& y) { return x.begin < y.begin; }),
            b);
      size_t done = 0, at = 0, most = 0;
      const auto offer = [&](size_t next) {
        const size_t begin = (done + kUnit - 1) / kUnit * kUnit;
        if (next > begin && next - begin > most) at = begin, most = next - begin;
      };
      for (const Buffer& b : alive) {
        offer(b.begin);
        done = std::max(done, b.end);
      }
      offer(arena.bytes);
      if ((at + most) / kUnit > ~uint32_t{0}) continue;
      ins[i].op.spare = {static_cast<uint32_t>(at / kUnit), static_cast<uint32_t>(most / kUnit)};
    }
  }

  // --- for both ---
  void MarkFetches() {
    // If a slot is fetched several times, only its last fetch may take the memory.
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
          if (At(At(s).base).storage != Storage::kBound) plan_.view_slots.push_back(s);
          break;
        case Storage::kPool:
          (IsList(s)      ? plan_.list_slots
           : MayBeKept(s) ? plan_.kept_lists
                          : plan_.run_slots)
              .push_back(s);
          break;
        default:
          break;
      }
    }
    const auto rank = [&](uint32_t s) {
      const ir::Var& var = d_.program.vars[At(s).var];
      return std::pair(var.kind != ir::VarKind::kScopes, var.block);
    };
    std::stable_sort(plan_.list_slots.begin(), plan_.list_slots.end(),
                     [&](uint32_t a, uint32_t b) { return rank(a) < rank(b); });
    if (plan_.kept_lists.empty()) return;
    std::vector<uint32_t> place(plan_.slots.size(), kNoSlot);
    for (uint32_t k = 0; k < plan_.kept_lists.size(); ++k) place[plan_.kept_lists[k]] = k;
    for (size_t b = 1; b < plan_.blocks.size(); ++b) {
      std::vector<uint32_t>& fills = plan_.blocks[b].fills;
      for (uint32_t s : WrittenFirst(static_cast<int>(b)))
        if (place[s] != kNoSlot) fills.push_back(place[s]);
      std::sort(fills.begin(), fills.end());
    }
  }
  // Whether the run may keep the list and empty it. A fetched list is given to the caller instead.
  bool IsList(uint32_t s) {
    if (!MayBeKept(s)) return false;
    if (d_.program.vars[At(s).var].kind == ir::VarKind::kScopes) return true;
    if (written_first_.empty()) {
      written_first_.assign(plan_.slots.size(), false);
      for (uint32_t first : WrittenFirst(0)) written_first_[first] = true;
    }
    return written_first_[s];
  }
  bool MayBeKept(uint32_t s) {
    if (At(s).var == ir::kNoVar || d_.fetched[s] || At(s).place != 0) return false;
    const ir::VarKind kind = d_.program.vars[At(s).var].kind;
    return kind == ir::VarKind::kScopes || kind == ir::VarKind::kArray ||
           kind == ir::VarKind::kRows;
  }
  // The slots that every run of the block writes before it uses them otherwise.
  std::vector<uint32_t> WrittenFirst(int block) {
    std::vector<uint32_t> first;
    used_in_.resize(plan_.slots.size(), -1);
    std::vector<const Instruction*> in_file_order;  // the schedule may have changed the order
    for (const Instruction& in : plan_.blocks[block].instructions) in_file_order.push_back(&in);
    std::stable_sort(in_file_order.begin(), in_file_order.end(),
                     [](const auto* a, const auto* b) { return a->ir_op < b->ir_op; });
    for (const Instruction* at : in_file_order) {
      const Instruction& in = *at;
      const auto use = [&](uint32_t s) {
        if (s != kNoSlot) used_in_[s] = block;
      };
      const auto write = [&](uint32_t s) {
        if (s != kNoSlot && used_in_[s] != block) first.push_back(s);
        use(s);
      };
      for (uint32_t s : in.op.in) use(s);
      for (int sub : BlocksOf(plan_, in)) {
        for (uint32_t s : access_.Of(sub).reads) use(s);
        for (uint32_t s : access_.Of(sub).writes) use(s);
      }
      const bool perhaps = in.op.def->has(kControlFlow) || ir::SelectsOutput(*in.op.def);
      for (uint32_t s : in.op.out) perhaps ? use(s) : write(s);
      for (const auto& r : in.rewrites) perhaps ? use(r.real) : write(r.real);
    }
    return first;
  }

  PlanDraft& d_;
  Plan& plan_;
  std::vector<Instruction>& ins_;
  std::vector<Nested> nested_;
  BlockAccess access_;
  BlockSlots near_;                             // slots of the block that is being planned
  std::vector<std::vector<uint32_t>> at_home_;  // ascending
  // Per slot: block 0 writes it before other uses; made on demand.
  std::vector<bool> written_first_;
  std::vector<int> used_in_;  // per slot: the last block in which WrittenFirst met it
};

}  // namespace

void PlanMemory(PlanDraft& draft) { MemoryPlanner(draft).Run(); }

}  // namespace heddle
