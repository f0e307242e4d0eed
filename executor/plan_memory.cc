// Where every slot lives, who shares memory with whom, and when memory is given back.
#include <algorithm>

#include "executor/block_access.h"
#include "executor/plan_draft.h"
#include "memory/arena_planner.h"

namespace heddle {
namespace {

class MemoryPlanner {
 public:
  explicit MemoryPlanner(PlanDraft& d)
      : plan_(*d.plan), ins_(plan_.blocks[0].instructions), fetched_(plan_.slots.size(), false) {}

  void Run() {
    for (const PlanFetch& f : plan_.fetches) fetched_[f.slot] = true;
    if (plan_.parallel)
      ShareAtRunTime();
    else
      PlaceInArena();
    MarkFetches();
    Lists();
    for (BlockPlan& block : plan_.blocks) Releases(block.instructions, &block == &plan_.blocks[0]);
  }

 private:
  Slot& At(uint32_t s) { return plan_.slots[s]; }
  // Contents that never change after they are there.
  bool Stable(uint32_t s) { return At(s).versioned || plan_.constant[s]; }

  // The view an instruction is, or false when it must compute.
  bool FindView(const Instruction& in, uint32_t* from, uint32_t* to) {
    const auto& views = in.op.def->views();
    if (views.empty() || in.mode != Instruction::Mode::kStatic) return false;
    const uint32_t i = in.op.in_begin[views[0].in], o = in.op.out_begin[views[0].out];
    if (i >= in.op.in_begin[views[0].in + 1] || o >= in.op.out_begin[views[0].out + 1]) return false;
    *from = in.op.in[i];
    *to = in.op.out[o];
    if (*from == kNoSlot || *to == kNoSlot || !Stable(*from) || fetched_[*to]) return false;
    for (uint32_t k = 0; k < in.op.out.size(); ++k)
      if (k != o && in.op.out[k] != kNoSlot) return false;
    return At(*from).is_static && At(*from).bytes() == At(*to).bytes() &&
           At(*from).dtype == At(*to).dtype;
  }

  // --- parallel: memory is taken and given back as instructions run ---
  void ShareAtRunTime() {
    for (Instruction& in : ins_) {
      uint32_t from, to;
      if (FindView(in, &from, &to)) {
        in.mode = Instruction::Mode::kShare;
        in.takeovers = {{PositionOf(in.op.in, from), PositionOf(in.op.out, to)}};
        continue;
      }
      if (in.mode == Instruction::Mode::kStatic) in.mode = Instruction::Mode::kPooled;
      for (const auto& pair : in.op.def->inplace()) {
        const uint32_t i = in.op.in_begin[pair.in], o = in.op.out_begin[pair.out];
        if (in.mode != Instruction::Mode::kPooled || i == in.op.in_begin[pair.in + 1] ||
            o == in.op.out_begin[pair.out + 1] || in.op.in[i] == kNoSlot || in.op.out[o] == kNoSlot)
          continue;
        const Slot& a = At(in.op.in[i]);
        if (std::count(in.op.in.begin(), in.op.in.end(), in.op.in[i]) != 1) continue;
        if (a.storage == Storage::kPool && a.versioned && a.is_static && !fetched_[in.op.in[i]] &&
            a.bytes() == At(in.op.out[o]).bytes())
          in.takeovers.push_back({i, o});
      }
    }
  }
  static uint32_t PositionOf(const std::vector<uint32_t>& list, uint32_t slot) {
    return static_cast<uint32_t>(std::find(list.begin(), list.end(), slot) - list.begin());
  }

  // --- serial: offsets in one arena ---
  uint32_t Root(uint32_t s) {
    while (root_[s] != s) s = root_[s] = root_[root_[s]];
    return s;
  }

  void PlaceInArena() {
    const auto n = static_cast<uint32_t>(plan_.slots.size());
    root_.resize(n);
    for (uint32_t s = 0; s < n; ++s) root_[s] = s;
    DropViews();
    first_.assign(n, -1);
    last_.assign(n, -1);
    FindLifetimes();
    ShareInPlace();
    std::vector<LiveRange> ranges;
    std::vector<uint32_t> owner;
    for (uint32_t s = 0; s < n; ++s) {
      if (Root(s) != s || first_[s] < 0 || At(s).storage != Storage::kArena) continue;
      ranges.push_back({At(s).bytes(), first_[s], std::max(first_[s], last_[s])});
      owner.push_back(s);
    }
    const ArenaLayout layout = PlanArena(ranges);
    for (size_t k = 0; k < owner.size(); ++k) At(owner[k]).offset = layout.offsets[k];
    for (uint32_t s = 0; s < n; ++s)
      if (At(s).storage == Storage::kArena) At(s).offset = At(Root(s)).offset;
    plan_.arena_bytes = layout.bytes;
    plan_.arena_bound = layout.bound;
  }

  void DropViews() {
    size_t kept = 0;
    for (Instruction& in : ins_) {
      uint32_t from, to;
      if (FindView(in, &from, &to)) {
        root_[to] = Root(from);
        At(to).storage = Storage::kView;
        At(to).base = Root(from);
        continue;
      }
      if (in.mode == Instruction::Mode::kStatic)
        for (uint32_t s : in.op.out)
          if (s != kNoSlot) At(s).storage = fetched_[s] ? Storage::kOutput : Storage::kArena;
      if (&ins_[kept] != &in) ins_[kept] = std::move(in);
      ++kept;
    }
    ins_.erase(ins_.begin() + static_cast<std::ptrdiff_t>(kept), ins_.end());
    for (Slot& s : plan_.slots)  // a view of an arena slot is an arena slot at the same offset
      if (s.storage == Storage::kView && At(s.base).storage == Storage::kArena)
        s.storage = Storage::kArena;
  }

  void FindLifetimes() {
    BlockAccess blocks(plan_);
    for (size_t i = 0; i < ins_.size(); ++i) {
      const auto at = static_cast<int32_t>(i);
      Touch(ins_[i].op.in, at);
      Touch(ins_[i].op.out, at);
      for (int sub : BlocksOf(plan_, ins_[i])) {
        Touch(blocks.Of(sub).reads, at);
        Touch(blocks.Of(sub).writes, at);
      }
    }
    // Views read through their root; fetched roots live to the end.
  }
  void Touch(const std::vector<uint32_t>& slots, int32_t at) {
    for (uint32_t s : slots) {
      if (s == kNoSlot) continue;
      const uint32_t r = Root(s);
      if (first_[r] < 0) first_[r] = at;
      last_[r] = at;
    }
  }

  // out takes over in's place where in's last reader is the instruction itself.
  void ShareInPlace() {
    for (size_t i = 0; i < ins_.size(); ++i) {
      const Instruction& in = ins_[i];
      if (in.mode != Instruction::Mode::kStatic) continue;
      for (const auto& pair : in.op.def->inplace()) {
        const uint32_t a = in.op.in_begin[pair.in], b = in.op.out_begin[pair.out];
        if (a == in.op.in_begin[pair.in + 1] || b == in.op.out_begin[pair.out + 1]) continue;
        const uint32_t from = in.op.in[a], to = in.op.out[b];
        if (from == kNoSlot || to == kNoSlot) continue;
        const uint32_t r = Root(from);
        if (At(r).storage != Storage::kArena || At(to).storage != Storage::kArena ||
            Root(to) == r || Root(to) != to || At(r).bytes() != At(to).bytes() ||
            At(from).bytes() != At(to).bytes() || last_[r] != static_cast<int32_t>(i) ||
            ReadsOf(in, r) != 1)
          continue;
        root_[to] = r;
        last_[r] = std::max(last_[r], last_[to]);
      }
    }
  }

  // How many operands lie in r's memory: the taken one must be the only one.
  int ReadsOf(const Instruction& in, uint32_t r) {
    int n = 0;
    for (uint32_t s : in.op.in) n += s != kNoSlot && Root(s) == r;
    return n;
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

  // The last instruction of a block that touches a pooled slot gives it back. In the outermost block
  // the readers are counted as well.
  void Releases(std::vector<Instruction>& ins, bool outermost) {
    if (outermost) plan_.consumers.assign(plan_.slots.size(), 0);
    touched_in_.resize(plan_.slots.size(), nullptr);
    read_by_.resize(plan_.slots.size(), nullptr);
    for (size_t i = ins.size(); i-- > 0;) {
      for (const auto* list : {&ins[i].op.in, &ins[i].op.out}) {
        for (uint32_t s : *list) {
          if (s == kNoSlot || touched_in_[s] == &ins || !Releasable(s)) continue;
          touched_in_[s] = &ins;
          ins[i].release.push_back(s);
        }
      }
      if (!outermost) continue;
      for (uint32_t s : ins[i].op.in) {
        if (s == kNoSlot || read_by_[s] == &ins[i] || !Releasable(s)) continue;
        read_by_[s] = &ins[i];
        ins[i].reads.push_back(s);
        ++plan_.consumers[s];
      }
    }
  }
  bool Releasable(uint32_t s) {
    return At(s).storage == Storage::kPool && At(s).versioned && !fetched_[s];
  }

  Plan& plan_;
  std::vector<Instruction>& ins_;
  std::vector<bool> fetched_;
  std::vector<uint32_t> root_;
  std::vector<int32_t> first_, last_;
  // Per slot: the list whose last toucher, and the instruction whose operand, was found last.
  std::vector<const std::vector<Instruction>*> touched_in_;
  std::vector<const Instruction*> read_by_;
};

}  // namespace

void PlanMemory(PlanDraft& draft) { MemoryPlanner(draft).Run(); }

}  // namespace heddle
