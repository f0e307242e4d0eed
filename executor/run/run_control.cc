#include "executor/run/run_control.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "executor/plan/block_access.h"
#include "scheduler/spin.h"

namespace heddle {

Status RunControl::Interrupted() const {
  const uint32_t a = attention_.load(std::memory_order_relaxed);
  if (a & kCancel) return Status(StatusCode::kCancelled, "the run was cancelled");
  if (a & kDeadline)
    return Status(StatusCode::kDeadlineExceeded, "the run was not finished at its deadline");
  return Status::Ok();
}

RunControl::Watch RunControl::BeginInstruction(int lane, const Instruction& in) {
  LaneView& v = views_[lane];
  if (in.op.def->has(kControlFlow))
    for (int block : BlocksOf(plan_, in)) lane_of_[static_cast<size_t>(block)] = lane;
  Watch watch;
  watch.outer = v.current.load(std::memory_order_relaxed);
  v.current.store(&in, std::memory_order_relaxed);
  if (!trace_) return watch;
  watch.outer_nested_ns = std::exchange(v.nested_ns, 0);
  watch.begin_ns = NowNs();
  return watch;
}

void RunControl::EndInstruction(int lane, const Instruction& in, const Watch& watch) {
  LaneView& v = views_[lane];
  if (trace_) {
    const uint64_t end_ns = NowNs(), took_ns = end_ns - watch.begin_ns;
    Record(&v, {&in, watch.begin_ns, end_ns, took_ns - std::min(took_ns, v.nested_ns), 1});
    v.nested_ns = watch.outer_nested_ns + took_ns;
  }
  v.current.store(watch.outer, std::memory_order_relaxed);
  v.ended.fetch_add(1, std::memory_order_relaxed);
}

void RunControl::Record(LaneView* view, const Event& event) {
  constexpr size_t kMostNested = 1 << 16;
  if (event.in->ir_block == 0 || view->nested++ < kMostNested) {
    view->events.push_back(event);
    return;
  }
  const auto [at, first] = view->sums.emplace(event.in, event);
  if (first) return;
  at->second.end_ns = event.end_ns;
  at->second.self_ns += event.self_ns;
  ++at->second.times;
}

bool RunControl::IsAmong(const CheckedOps& ops, const Instruction& in) const {
  const auto block = static_cast<size_t>(in.ir_block);
  if (block >= ops.size()) return false;  // made by passes
  const std::vector<bool>& marks = ops[block];
  const int index = plan_.program->blocks[in.ir_block].ops[in.ir_op].index;
  return index >= 0 && static_cast<size_t>(index) < marks.size() &&
         marks[static_cast<size_t>(index)];
}

void RunControl::Arm(const RunOptions& options, int lanes, Watcher& watcher,
                     const CheckedOps* checked) {
  attention_.store(0, std::memory_order_relaxed);
  checked_ = checked;
  watcher_ = &watcher;
  lanes_ = lanes;
  trace_ = options.trace && options.report != nullptr;
  const bool stalls = options.stall_limit.count() > 0 && options.on_stall;
  if (trace_ || stalls) {
    views_ = std::make_unique<LaneView[]>(static_cast<size_t>(lanes));
    lane_of_.assign(plan_.blocks.size(), 0);
    device_work_.clear();
    start_ns_ = NowNs();
    Interrupt(kObserved);
  }
  if (options.check_nan_inf) Interrupt(kCheck);
  if (options.stop.stop_possible()) stopper_.emplace(options.stop, Stopper{this});
  if (options.deadline && *options.deadline <= std::chrono::steady_clock::now())
    Interrupt(kDeadline);  // nothing is left to chance, however short the program
  else if (options.deadline)
    deadline_id_ = watcher.At(*options.deadline, [this] { Interrupt(kDeadline); });
  if (stalls) {
    MutexLock lock(stall_mutex_);
    stall_options_ = &options;
    ended_before_ = 0;
    stall_id_ = watcher.At(std::chrono::steady_clock::now() + options.stall_limit,
                           [this] { LookForStall(); });
  }
}

void RunControl::Disarm() {
  stopper_.reset();
  if (deadline_id_ != 0) watcher_->Remove(deadline_id_);
  deadline_id_ = 0;
  uint64_t stall = 0;
  {
    MutexLock lock(stall_mutex_);
    stall_options_ = nullptr;  // from here on no further look is arranged
    std::swap(stall, stall_id_);
  }
  if (stall != 0) watcher_->Remove(stall);
  attention_.store(0, std::memory_order_relaxed);
}

void RunControl::LookForStall() {
  MutexLock lock(stall_mutex_);
  if (stall_options_ == nullptr) return;
  uint64_t ended = 0;
  std::string pending;
  for (int l = 0; l < lanes_; ++l) {
    ended += views_[l].ended.load(std::memory_order_relaxed);
    if (const Instruction* in = views_[l].current.load(std::memory_order_relaxed))
      pending += StrCat(pending.empty() ? "" : "; ", Describe(*in), " (lane ", l, ")");
  }
  if (ended == ended_before_)
    stall_options_->on_stall(StrCat("no instruction has ended for ",
                                    stall_options_->stall_limit.count(),
                                    " ms; in execution: ", pending.empty() ? "none" : pending));
  ended_before_ = ended;
  stall_id_ = watcher_->At(std::chrono::steady_clock::now() + stall_options_->stall_limit,
                           [this] { LookForStall(); });
}

std::string RunControl::Describe(const Instruction& in) const {
  const OpLocation where = plan_.Locate(in);
  return StrCat(where.op_type, " (block ", where.block, ", op ", where.op, ", output '",
                where.output, "')");
}

namespace {

// `begin`: per slot of the definition, + end, positions in `list`.
std::vector<TraceEvent::Operand> OperandsOf(const Plan& plan, const std::vector<SlotDef>& defs,
                                            const IdList& begin, const IdList& list) {
  std::vector<TraceEvent::Operand> operands;
  for (size_t d = 0; d < defs.size(); ++d)
    for (uint32_t k = begin[d]; k < begin[d + 1]; ++k) {
      if (list[k] == kNoSlot) continue;
      const Slot& slot = plan.slots[list[k]];
      TraceEvent::Operand operand;
      operand.slot = defs[d].name;
      if (slot.is_static) {
        operand.dtype = slot.dtype;
        operand.shape = slot.shape();
      }
      operands.push_back(std::move(operand));
    }
  return operands;
}

}  // namespace

TraceEvent RunControl::Describe(const Event& event, int lane) const {
  const BoundOp& op = event.in->op;
  const OpLocation where = plan_.Locate(*event.in);
  TraceEvent t;
  t.op = op.def->name();  // of a copy, no operator of the program's
  t.output = where.output;
  t.block = where.block;
  t.index = where.op;
  t.lane = lane;
  t.begin_us = (static_cast<double>(event.begin_ns) - static_cast<double>(start_ns_)) * 1e-3;
  t.end_us = (static_cast<double>(event.end_ns) - static_cast<double>(start_ns_)) * 1e-3;
  t.self_us = static_cast<double>(event.self_ns) * 1e-3;
  t.times = event.times;
  t.inputs = OperandsOf(plan_, op.def->inputs(), op.in_begin, op.in);
  t.outputs = OperandsOf(plan_, op.def->outputs(), op.out_begin, op.out);
  t.implementation = ImplementationOf(*event.in);
  return t;
}

void RunControl::FillTrace(RunReport* report) {
  if (!std::exchange(trace_, false)) return;
  for (int l = 0; l < lanes_; ++l) {
    for (const Event& e : views_[l].events) report->events.push_back(Describe(e, l));
    for (const auto& [in, e] : views_[l].sums) report->events.push_back(Describe(e, l));
  }
  for (DeviceWork& work : device_work_) {
    report->events.push_back(Describe(work.event, work.lane));
    report->events.back().stream = std::move(work.stream);
  }
  device_work_.clear();
  std::stable_sort(
      report->events.begin(), report->events.end(),
      [](const TraceEvent& a, const TraceEvent& b) { return a.begin_us < b.begin_us; });
}

std::string RunReport::ToChromeTrace() const {
  auto quoted = [](const std::string& text) {
    std::string out = "\"";
    for (char c : text) {
      if (c == '"' || c == '\\') out += '\\';
      out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    return out + '"';
  };
  std::string out = "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [";
  for (size_t i = 0; i < events.size(); ++i) {
    const TraceEvent& e = events[i];
    const bool host = e.stream.empty();
    out += StrCat(i == 0 ? "\n" : ",\n", "{\"ph\": \"X\", \"pid\": ", host ? 1 : 2,
                  ", \"tid\": ", e.lane, ", \"name\": ", quoted(e.op),
                  ", \"ts\": ", std::to_string(e.begin_us),
                  ", \"dur\": ", std::to_string(e.end_us - e.begin_us),
                  ", \"args\": {\"output\": ", quoted(e.output), ", \"block\": ", e.block,
                  ", \"index\": ", e.index);
    if (e.times > 1)
      out += StrCat(", \"times\": ", e.times, ", \"self_us\": ", std::to_string(e.self_us));
    if (!e.implementation.empty()) out += ", \"implementation\": " + quoted(e.implementation);
    out += host ? "}}" : StrCat(", \"stream\": ", quoted(e.stream), "}}");
  }
  return out + "\n]}\n";
}

}  // namespace heddle
