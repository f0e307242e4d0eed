// RunTrace: the raw records of a traced run, from which report/trace_story.h makes readable ones.
//
// Threads: each thread of a run writes to an entry of its own; all others read after the run.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "executor/plan/plan.h"
#include "scheduler/lane_schedule.h"
#include "scheduler/spin.h"

namespace heddle {

struct RunTrace {
  // Times are Ticks(), except those of a device.
  struct Event {
    const Instruction* in;
    uint64_t begin, end;
    uint64_t self;  // without instructions of blocks that it runs
    int64_t times;  // number of executions; the times are those of the first begin and the last end
  };
  // See TraceSpan::kind.
  enum class Part : uint8_t {
    kInferShape,
    kCompute,
    kRelease,
    kStart,
    kWaitLane,
    kWaitWork,
    kWaitEvent,
    kWaitStreams,
    kWaitTask,
    kDispatch,
    kWaitDispatch,
  };
  struct Span {
    Part part;
    // The instruction that the part belongs to or waits for; nullptr: it follows from the events of
    // other threads.
    const Instruction* of;
    LaneWait lane;  // kWaitLane: the wait
    uint64_t begin, end;
    int block = 0;  // kWaitLane: the block with the lanes
  };
  // Memory that an instruction has taken for values without a planned place, or has put into lists
  // (arrays, rows, records of steps) or taken out of them.
  struct Made {
    enum class What : uint8_t { kTaken, kPutIn, kTakenOut };
    uint32_t event;  // index in `events`; happened by its end
    uint32_t slot;
    What what;
    const void* memory;
    size_t bytes;
  };
  using Memory = std::pair<const void*, size_t>;
  // The records of one thread, on cache lines of their own.
  struct alignas(128) Thread {
    bool joined = false;
    uint64_t last = 0;          // end of the latest event or span; 0: the next does not follow it
    uint64_t nested = 0;        // ticks in instructions inside the current one
    std::vector<Event> events;  // in the order of their ends
    // A loop may execute more instructions than there is memory for events: later executions of a
    // sub-block's instruction are summed up.
    std::unordered_map<const Instruction*, Event> sums;
    size_t nested_events = 0, nested_spans = 0;
    std::vector<Span> spans;
    std::vector<Made> made;
  };
  struct DeviceWork {
    const Instruction* in;
    int number;  // of the stream
    std::string stream;
    uint64_t begin_ns, end_ns;  // on the host's clock
  };

  // The most events, and the most spans, per thread in sub-blocks.
  static constexpr size_t kMostNested = 1 << 16;

  explicit RunTrace(size_t count) : threads(count) {}
  void Start() {
    start_ns = NowNs();
    start = Ticks();
  }
  void Stop() {
    end = Ticks();
    end_ns = NowNs();
  }
  // Records an execution; true: as an event of its own.
  bool Record(int thread, const Event& event) {
    Thread& t = threads[static_cast<size_t>(thread)];
    if (event.in->ir_block == 0 || t.nested_events++ < kMostNested) {
      t.events.push_back(event);
      return true;
    }
    const auto [at, first] = t.sums.emplace(event.in, event);
    if (first) return false;
    at->second.end = event.end;
    at->second.self += event.self;
    ++at->second.times;
    return false;
  }
  // Ends the thread's activity since its latest event or span, or since `begin` if there is none.
  void EndSpan(int thread, Part part, uint64_t begin, const Instruction* of, LaneWait lane = {}) {
    Thread& t = threads[static_cast<size_t>(thread)];
    const uint64_t now = Ticks();
    t.spans.push_back({part, of, lane, t.last != 0 ? t.last : begin, now});
    t.last = now;
  }
  // EndSpan inside a sub-block. A loop may wait more often than there is memory for spans: spans
  // beyond kMostNested are left out.
  void EndNestedSpan(int thread, Part part, uint64_t begin, LaneWait lane = {}, int block = 0) {
    Thread& t = threads[static_cast<size_t>(thread)];
    if (t.nested_spans++ >= kMostNested) {
      t.last = Ticks();
      return;
    }
    EndSpan(thread, part, begin, nullptr, lane);
    t.spans.back().block = block;
  }
  void Join(int thread) {
    threads[static_cast<size_t>(thread)].joined = true;
    EndSpan(thread, Part::kStart, start, nullptr);
  }

  std::vector<Thread> threads;
  std::vector<DeviceWork> device;
  // Per slot with a list: the memory that it held when it was last looked at. Only the thread that
  // may write to the list may write here. `looks` limits the number of items looked at, since in a
  // loop it grows with the square of the steps.
  std::vector<std::vector<Memory>> lists;
  std::atomic<int64_t> looks{int64_t{1} << 24};
  // Whether the memory was held by slots or lists before the run, so that it is not counted as the
  // run's. Any thread may call this; the first call sorts the list, which most programs never need.
  bool IsForeign(const void* memory) {
    std::call_once(foreign_sorted, [this] { std::sort(foreign.begin(), foreign.end()); });
    return std::binary_search(foreign.begin(), foreign.end(), memory);
  }
  std::vector<const void*> foreign;
  std::once_flag foreign_sorted;
  uint64_t start = 0, end = 0, start_ns = 0, end_ns = 0;
};

}  // namespace heddle
