// Computes the memory report from a finished plan; runs do not need it.
#include "heddle/memory_report.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <numeric>

#include "core/error.h"
#include "executor/plan/block_access.h"
#include "executor/report/describe_plan.h"
#include "executor/report/memory_report.h"

namespace heddle {
namespace {

size_t Rounded(size_t bytes) { return (bytes + 63) / 64 * 64; }

class Reporter {
 public:
  explicit Reporter(const Plan& plan)
      : plan_(plan),
        first_(plan.slots.size(), kNever),
        last_(plan.slots.size(), 0),
        buffer_of_(plan.slots.size()) {
    std::iota(buffer_of_.begin(), buffer_of_.end(), 0u);
  }

  MemoryReport Run() {
    FindUses();
    constexpr const char* kSchedules[] = {"serial", "lanes", "queue", "device"};
    report_.schedule = kSchedules[static_cast<int>(plan_.dispatch)];
    report_.decided = !at_run_time_;
    if (at_run_time_)
      JoinTakeovers();
    else
      JoinByPlan();
    report_.planned_bytes = plan_.arena_bytes;
    Gather();
    return std::move(report_);
  }

 private:
  static constexpr uint32_t kNever = ~0u;

  // Whether the slot is a temporary of known size.
  bool Counts(uint32_t s) const {
    const Slot& slot = plan_.slots[s];
    if (!slot.is_static || first_[s] == kNever) return false;
    if (plan_.slots[plan_.RootOf(s)].home != 0) return false;  // part of a work space
    if (slot.storage == Storage::kArena) return true;
    return at_run_time_ && slot.storage == Storage::kPool && slot.versioned && !fetched_[s];
  }

  // Finds the first and last instruction that touch each slot, in an order for one thread.
  void FindUses() {
    fetched_.assign(plan_.slots.size(), false);
    for (const PlanFetch& f : plan_.fetches) fetched_[f.slot] = true;
    const auto& ins = plan_.blocks[0].instructions;
    BlockAccess blocks(plan_);
    for (uint32_t at = 0; at < ins.size(); ++at) {
      const Instruction& in = InstructionAt(at);
      Touch(in.op.in, at);
      Touch(in.op.out, at);
      for (int sub : BlocksOf(plan_, in)) {
        Touch(blocks.Of(sub).reads, at);
        Touch(blocks.Of(sub).writes, at);
        Touch({&plan_.blocks[sub].workspace, 1}, at);
      }
    }
  }
  const Instruction& InstructionAt(uint32_t at) const {
    return plan_.blocks[0].instructions[plan_.lanes ? plan_.serial_order[at] : at];
  }
  void Touch(std::span<const uint32_t> slots, uint32_t at) {
    for (uint32_t s : slots) {
      if (s == kNoSlot) continue;
      // A view has no instruction of its own: its readers count as readers of its base.
      for (const uint32_t t : {s, plan_.RootOf(s)}) {
        first_[t] = std::min(first_[t], at);
        last_[t] = std::max(last_[t], at);
      }
    }
  }

  uint32_t BufferOf(uint32_t s) {
    while (buffer_of_[s] != s) s = buffer_of_[s] = buffer_of_[buffer_of_[s]];
    return s;
  }
  void Join(uint32_t into, uint32_t s) { buffer_of_[BufferOf(s)] = BufferOf(into); }

  // With an arena: joins the slots that share a buffer (views, outputs in place, pieces).
  void JoinByPlan() {
    for (uint32_t s = 0; s < plan_.slots.size(); ++s)
      if (Counts(s) && plan_.slots[s].bytes() > 0) buffer_of_[s] = plan_.buffers[s];
  }

  // From a queue, joins an output with an input whose last user makes it in place; on a device,
  // joins views only.
  void JoinTakeovers() {
    for (uint32_t at = 0; at < plan_.blocks[0].instructions.size(); ++at) {
      const Instruction& in = InstructionAt(at);
      uint32_t taken = kNoSlot;
      for (size_t t = 0; t < in.takeovers.size(); t += 2) {
        const uint32_t from = in.op.in[in.takeovers[t]], to = in.op.out[in.takeovers[t + 1]];
        const bool view = in.mode == Instruction::Mode::kShare;
        if (!view && plan_.slots[to].place != 0) continue;
        if (to == taken || !Counts(from) || !Counts(to) || (!view && LastOf(from) != at)) continue;
        Join(from, to);
        const uint32_t buffer = BufferOf(from);
        joined_last_.resize(plan_.slots.size());
        joined_last_[buffer] = std::max(LastOf(from), last_[to]);
        taken = to;
      }
    }
  }
  uint32_t LastOf(uint32_t s) {
    const uint32_t buffer = BufferOf(s);
    const uint32_t joined = joined_last_.empty() ? 0 : joined_last_[buffer];
    return std::max(joined, last_[buffer]);
  }

  void Gather() {
    const auto n = static_cast<uint32_t>(plan_.slots.size());
    struct Range {
      size_t bytes = 0;
      uint32_t first = kNever, last = 0;
    };
    std::vector<Range> ranges(n);
    for (uint32_t s = 0; s < n; ++s) {
      if (!Counts(s)) continue;
      const Slot& slot = plan_.slots[s];
      const uint32_t buffer = BufferOf(s);
      Range& r = ranges[buffer];
      r.bytes = std::max(r.bytes, Rounded(slot.bytes()));
      r.first = std::min(r.first, first_[s]);
      r.last = std::max(r.last, last_[s]);
      report_.values.push_back(
          {SlotName(plan_, s), s, buffer, slot.offset, slot.bytes(), first_[s], last_[s]});
    }
    std::vector<int64_t> change(plan_.blocks[0].instructions.size() + 1, 0);
    for (const Range& r : ranges) {
      if (r.first == kNever) continue;
      ++report_.buffers;
      report_.naive_bytes += r.bytes;
      change[r.first] += static_cast<int64_t>(r.bytes);
      change[r.last + 1] -= static_cast<int64_t>(r.bytes);
    }
    int64_t live = 0, peak = 0;
    for (const int64_t c : change) peak = std::max(peak, live += c);
    report_.bound_bytes = static_cast<size_t>(peak);
  }

  const Plan& plan_;
  const bool at_run_time_ =  // memory is taken and released at run time
      plan_.dispatch == Dispatch::kQueue || plan_.dispatch == Dispatch::kDevice;
  std::vector<uint32_t> first_, last_;  // per slot: positions in the order for one thread
  std::vector<uint32_t> buffer_of_;     // per slot: a slot in the same buffer (union-find)
  std::vector<uint32_t> joined_last_;   // per root
  std::vector<bool> fetched_;
  MemoryReport report_;
};

}  // namespace

MemoryReport ReportMemory(const Plan& plan) {
  MemoryReport report = Reporter(plan).Run();
  std::map<std::pair<uint8_t, DType>, size_t> kinds;
  for (const Plan::Loose& loose : plan.loose) {
    const Slot& slot = plan.slots[loose.slot];
    const bool declared = slot.place != 0 && slot.var != ir::kNoVar;
    ++kinds[{slot.place, declared ? plan.program->vars[slot.var].dtype : DType::kUnknown}];
  }
  for (const auto& [kind, values] : kinds) {
    const auto& [place, dtype] = kind;
    report.tokens.push_back({place == 0 ? "cpu" : StrCat("device ", place - 1),
                             dtype == DType::kUnknown ? "" : std::string(Name(dtype)), values});
  }
  return report;
}

double MemoryReport::ratio() const {
  if (!decided || bound_bytes == 0) return 1;
  return static_cast<double>(planned_bytes) / static_cast<double>(bound_bytes);
}

std::string MemoryReport::ToString() const {
  std::string text = StrCat("schedule ", schedule, "\n", values.size(), " values in ", buffers,
                            " buffers\nwithout sharing  ", naive_bytes, " bytes\nlower bound      ",
                            bound_bytes, " bytes (one instruction after another)\n");
  char ratio_text[32];
  std::snprintf(ratio_text, sizeof ratio_text, "%.3f", ratio());
  text += decided ? StrCat("planned          ", planned_bytes, " bytes, ", ratio_text,
                           " times the bound\n")
                  : "planned          nothing: memory is taken and given back while running\n";
  if (block_bytes > 0) text += StrCat("in a block of    ", block_bytes, " bytes, for all shapes\n");
  for (const Tokens& t : tokens)
    text += StrCat("tokens           for ", t.values, " values on ", t.place,
                   t.dtype.empty() ? "" : ", " + t.dtype, ", sized by earlier runs\n");
  for (const Way& w : ways) {
    char line[128];
    std::snprintf(line, sizeof line, "  %-7s %12zu bytes, %.3f times the bound, %.0f us",
                  w.name.c_str(), w.planned_bytes, w.ratio, w.makespan_us);
    text += StrCat(line, w.edges > 0 ? StrCat(", ", w.edges, " waits added") : "", "\n");
  }
  text += decided ? "    offset      bytes    first     last  value\n"
                  : "    buffer      bytes    first     last  value\n";
  for (const Value& v : values) {
    char line[96];
    std::snprintf(line, sizeof line, "%10zu %10zu %8u %8u  ", decided ? v.offset : v.buffer,
                  v.bytes, v.first, v.last);
    text += StrCat(line, v.name, "#", v.slot, "\n");
  }
  return text;
}

}  // namespace heddle
