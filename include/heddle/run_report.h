// RunReport: what happened in one run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "heddle/dtype.h"
#include "heddle/shape.h"

namespace heddle {

// One execution of an instruction. Times are in microseconds since the run began. An event begins
// where the one before it on its thread ended, unless the thread did something else in between: the
// interpreter's work between two instructions belongs to the later one. The events of a block's
// instructions lie within that of the instruction that runs the block, one per iteration; after
// 65,536 events on a thread, all further executions of an instruction are one event.
struct TraceEvent {
  std::string op;            // operator type
  std::string output;        // its first output variable
  int block = 0, index = 0;  // position in the optimised program
  int lane = 0;              // with a queue the participant, on a device the number of the stream
  int thread = 0;            // among those of the run, 0: the caller's; -1: a stream
  std::string stream;        // of the device, by whose clock the times are; empty: the host
  double begin_us = 0, end_us = 0;
  double self_us = 0;  // without the instructions of blocks that it runs
  int64_t times = 1;   // number of executions
  // A variable that the instruction read or wrote; absent operands are left out. dtype and shape
  // are the plan's; kUnknown and an unknown shape if the plan does not know them.
  struct Operand {
    std::string slot;  // of the operator's definition
    DType dtype = DType::kUnknown;
    Shape shape = Shape::Unknown();
  };
  std::vector<Operand> inputs, outputs;
  std::string implementation;  // as in PlanDescription::Instruction
};

// A part of an instruction's execution, or what a thread did between instructions. The events, and
// the spans outside them, fill the time of each thread of a run, and with the waits that of each
// stream.
struct TraceSpan {
  // infer_shape, compute: parts of an instruction whose shapes are found in the run. release: frees
  // memory. start: before the thread has joined the run. finish: the other threads are not done
  // yet. wait_lane, wait_work, wait_event, wait_streams, wait_task: idle, until what `of` names is
  // done. wait_dispatch: idle, until another thread has put work on a stream, or executed it.
  // dispatch: puts a device's work on its streams. idle: a stream has no work.
  std::string kind;
  // The instruction that it is part of, or that the thread waits for, such as "conv2d -> y"; empty:
  // none.
  std::string of;
  int thread = 0;      // as in TraceEvent; those of devices follow the executor's
  std::string stream;  // likewise
  double begin_us = 0, end_us = 0;
  bool idle() const { return kind == "idle" || kind.starts_with("wait_") || kind == "finish"; }
};

// The live bytes of temporaries and outputs at a place from this moment on, including tensor
// arrays, selected rows and recorded steps of loops, but not feeds, parameters and work space of
// kernels. (In very long loops only the first steps are sampled, if sampling would take longer than
// the loop.)
struct MemorySample {
  double us = 0;
  std::string place;  // as in PlaceMemory
  size_t bytes = 0;
};

namespace internal {
class TraceStory;
}

// A list of a traced run, which is made at its first use, so that the run need not take time for
// it. Copies share it. Threads: any.
template <typename T>
class TraceList {
 public:
  using Tell = const std::vector<T>& (*)(internal::TraceStory&);
  TraceList() = default;
  TraceList(std::shared_ptr<internal::TraceStory> story, Tell tell)
      : story_(std::move(story)), tell_(tell) {}
  const std::vector<T>& get() const {
    static const std::vector<T> none;
    return story_ == nullptr ? none : tell_(*story_);
  }
  auto begin() const { return get().begin(); }
  auto end() const { return get().end(); }
  size_t size() const { return get().size(); }
  bool empty() const { return get().empty(); }
  const T& operator[](size_t i) const { return get()[i]; }

 private:
  std::shared_ptr<internal::TraceStory> story_;
  Tell tell_ = nullptr;
};

// Facts about one run. Times are those of the run, without the search for its plan.
struct RunReport {
  std::string
      dispatch;  // "serial", "lanes", "queue"; "device", "graph" where that was a captured one
  int lanes = 1;
  int threads = 1;      // that took part
  bool settled = true;  // false while the first runs are used to find the fastest way
  double run_us = 0;
  // With lanes: waits that had to wait, changes of a thread to another lane, threads put to sleep;
  // the time spent spinning and asleep, all threads together.
  uint64_t waits = 0, switches = 0, parks = 0;
  double spun_us = 0, parked_us = 0;
  // From the costs of the schedule: all instructions, and the longest path through them.
  double work_us = 0, critical_path_us = 0;
  // With RunOptions::trace: ordered by begin_us.
  TraceList<TraceEvent> events;
  TraceList<TraceSpan> spans;
  // Ordered by time: a sample after each instruction of block 0, and whenever the bytes change.
  TraceList<MemorySample> memory;

  // Events, spans and, as counters, memory in the Trace Event format, for chrome://tracing and
  // ui.perfetto.dev.
  std::string ToChromeTrace() const;
};

}  // namespace heddle
