#include "executor/plan.h"

#include "core/error.h"

namespace heddle {
namespace {

const char* StorageName(Storage s) {
  constexpr const char* kNames[] = {"none",  "feed", "scope", "const",
                                    "arena", "output", "view", "pool"};
  return kNames[static_cast<int>(s)];
}

const char* ModeName(Instruction::Mode m) {
  constexpr const char* kNames[] = {"static", "pooled", "dynamic", "share"};
  return kNames[static_cast<int>(m)];
}

}  // namespace

Result<std::shared_ptr<const KernelState>> StateCache::Get(const BoundOp& op, Value* const* frame,
                                                           Services& services,
                                                           const std::vector<bool>* constant) {
  std::vector<int64_t> signature;
  for (uint32_t s : op.in) {
    if (s == kNoSlot) continue;
    const Tensor& t = frame[s]->tensor();
    signature.push_back(static_cast<int64_t>(t.dtype()));
    signature.push_back(t.rank());
    signature.insert(signature.end(), t.shape().begin(), t.shape().end());
  }
  std::lock_guard lock(mutex_);
  for (size_t i = entries_.size(); i-- > 0;) {
    if (entries_[i].signature != signature) continue;
    auto state = entries_[i].state;
    if (i + 1 != entries_.size()) std::swap(entries_[i], entries_.back());
    return state;
  }
  PrepareContext ctx(op, frame, services, constant);
  auto made = op.def->prepare()(ctx);
  if (!made.ok()) return made.status();
  if (entries_.size() == kCapacity) entries_.erase(entries_.begin());
  entries_.push_back({std::move(signature), std::shared_ptr<const KernelState>(*std::move(made))});
  return entries_.back().state;
}

void Plan::MarkWritten() const {
  for (size_t i = 0; i < scope_slots.size(); ++i)
    if (scope_uses[i].written) scope->MarkWritten(program->vars[slots[scope_slots[i]].var].name);
}

std::string Plan::ToString() const {
  auto slot_text = [&](uint32_t s) {
    if (s == kNoSlot) return std::string("-");
    const Slot& slot = slots[s];
    std::string t = StrCat(program->vars[slot.var].name, "#", s, ":", StorageName(slot.storage));
    if (slot.storage == Storage::kArena) t += StrCat("+", slot.offset);
    if (slot.is_static) t += StrCat(" ", Name(slot.dtype), slot.shape.ToString());
    return t;
  };
  std::string text =
      StrCat("plan of ", program->name, ": ", stats.instructions, " instructions, ",
             parallel ? StrCat("parallel, ", stats.tasks, " tasks") : std::string("serial"),
             ", arena ", arena_bytes, " bytes (bound ", arena_bound, ")\n");
  for (const PlanFeed& f : feeds) text += StrCat("feed  ", slot_text(f.slot), "\n");
  for (size_t b = 0; b < blocks.size(); ++b) {
    if (b > 0) text += StrCat("block ", b, "\n");
    for (size_t i = 0; i < blocks[b].instructions.size(); ++i) {
      const Instruction& in = blocks[b].instructions[i];
      text += StrCat("  ", i, "  ", in.op.def->name(), " [", ModeName(in.mode), "] (");
      for (size_t k = 0; k < in.op.in.size(); ++k) text += (k ? ", " : "") + slot_text(in.op.in[k]);
      text += ") -> (";
      for (size_t k = 0; k < in.op.out.size(); ++k)
        text += (k ? ", " : "") + slot_text(in.op.out[k]);
      text += StrCat(")  ~", static_cast<int64_t>(in.cost_ns), " ns\n");
    }
  }
  for (const PlanFetch& f : fetches) text += StrCat("fetch ", slot_text(f.slot), "\n");
  return text;
}

}  // namespace heddle
