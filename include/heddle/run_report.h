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

// One instruction's execution. Times in microseconds since the run began. An event begins where
// the one before it on its thread ended, if the thread did nothing else meanwhile: what the
// interpreter does between two instructions belongs to the later one. The instructions of a
// block have their events within that of the instruction that runs the block, one per iteration;
// once they are 65,536 on a thread, all further executions of an instruction are one event.
struct TraceEvent {
  std::string op;            // operator type
  std::string output;        // its first output variable
  int block = 0, index = 0;  // position in the optimised program
  int lane = 0;              // or the participant, where tasks come from a queue
  int thread = 0;            // of those that took part, 0: the caller's; -1: a stream
  std::string stream;        // of the device, whose clock it is then; empty: the host
  double begin_us = 0, end_us = 0;
  double self_us = 0;  // in it, and in no instruction of a block that it runs
  int64_t times = 1;   // how many executions it stands for
  // A variable that the instruction read or wrote; absent operands are left out. dtype and shape
  // are those of the plan, kUnknown and an unknown shape where it does not know them.
  struct Operand {
    std::string slot;  // of the operator's definition
    DType dtype = DType::kUnknown;
    Shape shape = Shape::Unknown();
  };
  std::vector<Operand> inputs, outputs;
  std::string implementation;  // as in PlanDescription::Instruction
};

// A part of an instruction's execution, or what a thread did beside instructions. Together with the
// events, the spans that lie in none fill the time of each thread of a run, and waits that of
// streams.
struct TraceSpan {
  // infer_shape, compute: of an instruction whose shapes are found while running. release: memory
  // is given back. start: until the thread has joined the run. finish: the others are not done yet.
  // wait_lane, wait_work, wait_event, wait_streams, wait_task: idle, until what `of` names has
  // been done. wait_dispatch: idle, until another thread has put something on a stream, or done it.
  // dispatch: the thread puts work of a device on its streams. idle: of a stream that
  // has no work.
  std::string kind;
  // The instruction that it is a part of, or that is waited for, as "conv2d -> y"; empty: none in
  // particular.
  std::string of;
  int thread = 0;      // as in TraceEvent; those of devices stand behind the executor's
  std::string stream;  // likewise
  double begin_us = 0, end_us = 0;
  bool idle() const { return kind == "idle" || kind.starts_with("wait_") || kind == "finish"; }
};

// The bytes of temporaries and outputs that were alive at a place, from this moment on, what tensor
// arrays, selected rows and the steps of loops hold included. Feeds, parameters and work space of
// kernels are not counted. (Of loops so long that all looks at what they keep would take longer
// than the loop, the first steps.)
struct MemorySample {
  double us = 0;
  std::string place;  // as in PlaceMemory
  size_t bytes = 0;
};

namespace internal {
class TraceStory;
}

// Part of what a traced run recorded, put into words when somebody first looks at it, so that the
// run need not wait for that. Copies share it. Threads: any.
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

// Facts about one run. Times are of the run itself, without finding the plan.
struct RunReport {
  std::string
      dispatch;  // "serial", "lanes", "queue"; "device", "graph" where that was a captured one
  int lanes = 1;
  int threads = 1;      // that took part
  bool settled = true;  // false while the first runs are used to find out what is fastest
  double run_us = 0;
  // Between lanes: waits that did not find the other lane far enough, lanes let go of for another
  // one, threads put to sleep; time spent waiting awake and asleep, all threads together.
  uint64_t waits = 0, switches = 0, parks = 0;
  double spun_us = 0, parked_us = 0;
  // From the costs the schedule was made with: all instructions, and the longest path through them.
  double work_us = 0, critical_path_us = 0;
  // With RunOptions::trace: in the order of begin_us.
  TraceList<TraceEvent> events;
  TraceList<TraceSpan> spans;
  // ... in the order of time: a sample after each instruction of block 0, and wherever the bytes
  // change.
  TraceList<MemorySample> memory;

  // Events, spans and, as counters, memory in the Trace Event format, for chrome://tracing and
  // ui.perfetto.dev.
  std::string ToChromeTrace() const;
};

}  // namespace heddle
