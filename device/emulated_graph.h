// Captures and graphs of the emulated device.
//
// Guarded by the device's mutex, but for a graph's work, which nothing changes once it is made.
#pragma once

#include "device/emulated_device.h"

namespace heddle {

// The work that streams record from BeginCapture to EndCapture.
struct EmulatedCapture {
  struct Entry {
    uint32_t stream;  // index in `streams`
    EmulatedDevice::Task task;
  };
  std::vector<EmulatedStream*> streams;  // the capturing one, then those that joined
  std::vector<Entry> entries;            // in the order they came
  Status misuse;                         // the first one
  bool ended = false;
  int64_t kernels = 0, copies = 0, pageable_copies = 0;

  // The index of a stream, which is added if it is new.
  uint32_t IndexOf(EmulatedStream* stream);
  // The first misuse is what EndCapture answers.
  Status Misuse(const char* what);
};

// Executes its work one after another, in an order in which everything comes as late as the
// captured events allow; takes the time that streams would have taken side by side.
class EmulatedGraph final : public Graph {
 public:
  EmulatedGraph(EmulatedDevice& device, EmulatedCapture& capture) HEDDLE_REQUIRES(device.mutex_);
  ~EmulatedGraph() override;

  // The capturing stream did not wait for all work: the graph must not be used.
  bool has_loose_ends() const { return loose_ends_; }

 private:
  friend class EmulatedStream;
  using Task = EmulatedDevice::Task;

  // The first failure, with the tag of its work.
  std::pair<Status, uint64_t> Execute() const;

  EmulatedDevice& device_;
  std::vector<Task> work_;
  int64_t delay_ns_ = 0;
  bool loose_ends_ = false;
  int64_t kernels_, copies_, pageable_copies_;
};

}  // namespace heddle
