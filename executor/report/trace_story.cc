#include "executor/report/trace_story.h"

#include <algorithm>
#include <map>

#include "core/error.h"
#include "executor/plan/device/insert_copies.h"
#include "executor/plan/device_plan.h"

namespace heddle::internal {
namespace {

using Part = RunTrace::Part;

// The operands by name. `begin`: per slot of the definition, + end, positions in `list`.
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

// The event of an instruction without its times.
TraceEvent StoryOf(const Plan& plan, const Instruction& in) {
  const BoundOp& op = in.op;
  const OpLocation where = plan.Locate(in);
  TraceEvent t;
  t.op = op.def->name();  // also for a copy, which is no operator of the program
  t.output = where.output;
  t.block = where.block;
  t.index = where.op;
  t.inputs = OperandsOf(plan, op.def->inputs(), op.in_begin, op.in);
  t.outputs = OperandsOf(plan, op.def->outputs(), op.out_begin, op.out);
  t.implementation = IsPeerCopy(plan, in) ? "peer" : ImplementationOf(in);
  return t;
}

std::string NameOf(const Plan& plan, const Instruction* in) {
  return in == nullptr ? std::string()
                       : StrCat(in->op.def->name(), " -> ", plan.Locate(*in).output);
}

const char* KindOf(Part part) {
  constexpr const char* kKinds[] = {"infer_shape", "compute",   "release",      "start",
                                    "wait_lane",   "wait_work", "wait_event",   "wait_streams",
                                    "wait_task",   "dispatch",  "wait_dispatch"};
  return kKinds[static_cast<int>(part)];
}

// The last instruction before the signal that the span waits for.
const Instruction* SignalledBy(const Plan& plan, const RunTrace::Span& span) {
  const LaneWait& wait = span.lane;
  const LaneSchedule& lanes = *plan.LanesOf(span.block);
  const Instruction* last = nullptr;
  for (uint32_t k = lanes.segment_begin[wait.lane]; k < lanes.segment_begin[wait.lane + 1]; ++k) {
    const LaneSegment& s = lanes.segments[k];
    if (s.signal > wait.signal) break;
    if (s.end > s.begin) last = &plan.blocks[span.block].instructions[s.end - 1];
  }
  return last;
}

// The events of block 0 by thread, in order. Those of loops' bodies are many more, and would be
// skipped for each span.
class OuterEvents {
 public:
  explicit OuterEvents(const RunTrace& trace) : of_thread_(trace.threads.size()) {
    for (size_t t = 0; t < of_thread_.size(); ++t)
      for (const RunTrace::Event& e : trace.threads[t].events)
        if (e.in->ir_block == 0) of_thread_[t].push_back(&e);
  }

  // The instruction that threads other than `thread` executed for most of the span; nullptr: none.
  const Instruction* ExecutedMeanwhile(size_t thread, const RunTrace::Span& span) const {
    const Instruction* most = nullptr;
    uint64_t longest = 0;
    for (size_t t = 0; t < of_thread_.size(); ++t) {
      if (t == thread) continue;
      const auto& events = of_thread_[t];
      auto at = std::lower_bound(
          events.begin(), events.end(), span.begin,
          [](const RunTrace::Event* e, uint64_t begin) { return e->end <= begin; });
      for (; at != events.end() && (*at)->begin < span.end; ++at) {
        const uint64_t both = std::min((*at)->end, span.end) - std::max((*at)->begin, span.begin);
        if (both <= longest) continue;
        longest = both;
        most = (*at)->in;
      }
    }
    return most;
  }

 private:
  std::vector<std::vector<const RunTrace::Event*>> of_thread_;
};

// Finds the lane of each event of a thread; events are in the order of their ends.
class LaneOfEvents {
 public:
  LaneOfEvents(const Plan& plan, const RunTrace::Thread& thread, int number)
      : plan_(plan), number_(number) {
    if (plan.dispatch != Dispatch::kLanes) return;
    for (const auto& e : thread.events)
      if (e.in->ir_block == 0) outer_.push_back(&e);
  }
  int Of(const RunTrace::Event& event) const {
    if (plan_.dispatch != Dispatch::kLanes) return number_;
    const Instruction* in = event.in;
    if (in->ir_block != 0) {
      const auto at = std::lower_bound(
          outer_.begin(), outer_.end(), event.begin,
          [](const RunTrace::Event* e, uint64_t begin) { return e->end <= begin; });
      if (at == outer_.end()) return number_;
      in = (*at)->in;
    }
    const auto position = static_cast<uint32_t>(in - plan_.blocks[0].instructions.data());
    const auto& begin = plan_.lanes->lane_begin;
    return static_cast<int>(std::upper_bound(begin.begin(), begin.end(), position) -
                            begin.begin()) -
           1;
  }

 private:
  const Plan& plan_;
  const int number_;
  std::vector<const RunTrace::Event*> outer_;
};

template <typename T>
void SortByBegin(std::vector<T>* list) {
  std::stable_sort(list->begin(), list->end(),
                   [](const T& a, const T& b) { return a.begin_us < b.begin_us; });
}

}  // namespace

double TraceStory::UsOfNs(uint64_t ns) const {
  return (static_cast<double>(ns) - static_cast<double>(trace_->start_ns)) * 1e-3;
}

double TraceStory::Us(uint64_t ticks) const {
  const auto all = static_cast<double>(trace_->end - trace_->start);
  const double us_per_tick = all > 0 ? UsOfNs(trace_->end_ns) / all : 0;
  return (static_cast<double>(ticks) - static_cast<double>(trace_->start)) * us_per_tick;
}

std::vector<TraceEvent> TraceStory::TellEvents() const {
  std::vector<TraceEvent> events;
  for (size_t t = 0; t < trace_->threads.size(); ++t) {
    const RunTrace::Thread& thread = trace_->threads[t];
    const LaneOfEvents lanes(*plan_, thread, static_cast<int>(t));
    const auto tell = [&](const RunTrace::Event& e) {
      TraceEvent& told = events.emplace_back(StoryOf(*plan_, *e.in));
      told.thread = static_cast<int>(t);
      told.lane = lanes.Of(e);
      told.begin_us = Us(e.begin);
      told.end_us = Us(e.end);
      told.self_us = told.end_us - told.begin_us;
      if (e.self != e.end - e.begin) told.self_us = Us(trace_->start + e.self);
      told.times = e.times;
    };
    for (const auto& e : thread.events) tell(e);
    for (const auto& [in, e] : thread.sums) tell(e);
  }
  for (const RunTrace::DeviceWork& work : trace_->device) {
    TraceEvent& told = events.emplace_back(StoryOf(*plan_, *work.in));
    told.thread = -1;
    told.lane = work.number;
    told.stream = work.stream;
    told.begin_us = UsOfNs(work.begin_ns);
    told.end_us = UsOfNs(work.end_ns);
    told.self_us = told.end_us - told.begin_us;
  }
  SortByBegin(&events);
  return events;
}

std::vector<TraceSpan> TraceStory::TellSpans() const {
  std::vector<TraceSpan> spans;
  const OuterEvents outer(*trace_);
  for (int t = 0; t < static_cast<int>(trace_->threads.size()); ++t) {
    const RunTrace::Thread& thread = trace_->threads[static_cast<size_t>(t)];
    // Threads that dispatch for devices come after all others.
    if (t >= threads_ && !thread.joined) continue;
    uint64_t last = trace_->start;
    for (const auto& e : thread.events) last = std::max(last, e.end);
    for (const RunTrace::Span& s : thread.spans) {
      const Instruction* of = s.of;
      if (s.part == Part::kWaitLane) of = SignalledBy(*plan_, s);
      if (s.part == Part::kWaitWork || s.part == Part::kWaitTask)
        of = outer.ExecutedMeanwhile(static_cast<size_t>(t), s);
      spans.push_back({KindOf(s.part), NameOf(*plan_, of), t, "", Us(s.begin), Us(s.end)});
      last = std::max(last, s.end);
    }
    // A thread that never joined did not wake in time: its whole time is "start".
    if (last < trace_->end)
      spans.push_back({thread.joined ? "finish" : "start", "", t, "", Us(last), Us(trace_->end)});
  }
  if (plan_->device) TellIdleStreams(&spans);
  SortByBegin(&spans);
  return spans;
}

// Adds what streams did between two pieces of work: they waited for an event of other work, or for
// the host to put the next piece on the stream.
void TraceStory::TellIdleStreams(std::vector<TraceSpan>* spans) const {
  const DevicePlan& device = *plan_->device;
  std::map<int, std::vector<const RunTrace::DeviceWork*>> streams;
  for (const auto& work : trace_->device) streams[work.number].push_back(&work);
  for (auto& [number, list] : streams) {
    std::sort(list.begin(), list.end(),
              [](const RunTrace::DeviceWork* a, const RunTrace::DeviceWork* b) {
                return a->begin_ns < b->begin_ns;
              });
    uint64_t last = trace_->start_ns;
    for (const RunTrace::DeviceWork* work : list) {
      if (work->begin_ns > last) {
        const DeviceStep& step = device.StepOf(*plan_, *work->in);
        const Instruction* of = nullptr;
        for (uint32_t w = step.wait_begin; w < step.wait_end; ++w) {
          const DeviceStep& recorder = device.steps[device.recorder[device.waits[w]]];
          of = &plan_->blocks[recorder.block].instructions[recorder.at];
        }
        spans->push_back({of != nullptr ? "wait_event" : "idle", NameOf(*plan_, of), -1,
                          work->stream, UsOfNs(last), UsOfNs(work->begin_ns)});
      }
      last = std::max(last, work->end_ns);
    }
    if (last < trace_->end_ns)
      spans->push_back(
          {"finish", "", -1, list.back()->stream, UsOfNs(last), UsOfNs(trace_->end_ns)});
  }
}

const std::vector<TraceEvent>& TraceStory::events() {
  std::call_once(events_made_, [this] { events_ = TellEvents(); });
  return events_;
}

const std::vector<TraceSpan>& TraceStory::spans() {
  std::call_once(spans_made_, [this] { spans_ = TellSpans(); });
  return spans_;
}

const std::vector<MemorySample>& TraceStory::memory() {
  std::call_once(memory_made_, [this] { memory_ = MemoryLine(*plan_, *trace_, *this, places_); });
  return memory_;
}

}  // namespace heddle::internal

namespace heddle {
namespace {

std::string QuotedText(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + '"';
}

// One bar of the Chrome trace. Process 1 has the host's threads, process 2 the devices' streams.
std::string Bar(bool host, int row, const std::string& name, double begin, double end) {
  return StrCat("{\"ph\": \"X\", \"pid\": ", host ? 1 : 2, ", \"tid\": ", row,
                ", \"name\": ", QuotedText(name), ", \"ts\": ", std::to_string(begin),
                ", \"dur\": ", std::to_string(end - begin));
}

std::string EventJson(const TraceEvent& e) {
  const bool host = e.stream.empty();
  std::string out = Bar(host, host ? e.thread : e.lane, e.op, e.begin_us, e.end_us) +
                    StrCat(", \"args\": {\"output\": ", QuotedText(e.output),
                           ", \"block\": ", e.block, ", \"index\": ", e.index);
  if (host && e.lane != e.thread) out += StrCat(", \"lane\": ", e.lane);
  if (e.times > 1)
    out += StrCat(", \"times\": ", e.times, ", \"self_us\": ", std::to_string(e.self_us));
  const auto shapes = [](const std::vector<TraceEvent::Operand>& list) {
    std::string text;
    for (const auto& o : list)
      text += StrCat(text.empty() ? "" : " ", Name(o.dtype), o.shape.ToString());
    return QuotedText(text);
  };
  out += StrCat(", \"inputs\": ", shapes(e.inputs), ", \"outputs\": ", shapes(e.outputs));
  if (!e.implementation.empty()) out += ", \"implementation\": " + QuotedText(e.implementation);
  return out + (host ? "}}" : StrCat(", \"stream\": ", QuotedText(e.stream), "}}"));
}

}  // namespace

std::string RunReport::ToChromeTrace() const {
  std::string out = "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [";
  const char* border = "\n";
  const auto add = [&](const std::string& text) {
    out += border + text;
    border = ",\n";
  };
  std::map<std::string, int> rows;  // rows of streams, by name
  for (const TraceEvent& e : events) {
    add(EventJson(e));
    if (!e.stream.empty()) rows[e.stream] = e.lane;
  }
  for (const TraceSpan& s : spans) {
    const bool host = s.stream.empty();
    add(Bar(host, host ? s.thread : rows[s.stream], s.kind, s.begin_us, s.end_us) +
        StrCat(", \"cat\": ", s.idle() ? "\"idle\"" : "\"part\"",
               ", \"args\": {\"of\": ", QuotedText(s.of), "}}"));
  }
  for (const MemorySample& m : memory)
    add(StrCat("{\"ph\": \"C\", \"pid\": 1, \"name\": ", QuotedText("memory " + m.place),
               ", \"ts\": ", std::to_string(m.us), ", \"args\": {\"bytes\": ", m.bytes, "}}"));
  return out + "\n]}\n";
}

}  // namespace heddle
