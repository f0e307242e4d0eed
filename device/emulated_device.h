// The emulated device: see include/heddle/device.h.
// Its addresses lie in a range that the host cannot read: code that follows one outside a kernel or
// a copy crashes. The contents lie elsewhere. Kernels, which are the host's, and copies receive
// operands there, after a check that the addresses belong to the device.
//
// Threads: one mutex guards all queues, marks and figures. Each stream has a thread (none when
// lazy), which lets go of the mutex while it executes a task. Streams and events that meet are of
// one device; since the analysis compares expressions, AssertHeld tells it that their mutex is one.
#pragma once

#include <deque>
#include <map>
#include <random>
#include <thread>

#include "core/thread_annotations.h"
#include "device/device.h"

namespace heddle {

class EmulatedStream;
class EmulatedGraph;
struct EmulatedCapture;

class EmulatedDevice final : public Device {
 public:
  // Throws std::bad_alloc when the system gives no address range.
  explicit EmulatedDevice(const EmulatedOptions& options);
  ~EmulatedDevice() override;

  const std::string& name() const override { return name_; }
  int number() const override { return options_.number; }
  size_t memory_bytes() const override { return options_.memory_bytes; }
  Result<void*> Allocate(size_t bytes) override;
  void Free(void* memory) override;
  Result<void*> AllocateHost(size_t bytes) override;
  void FreeHost(void* memory) override;
  Result<std::unique_ptr<Stream>> NewStream(int priority) override;
  Result<std::unique_ptr<Event>> NewEvent(bool timed) override;
  bool HasKernel(const CallView& call) const override;
  bool CanReach(const Device& other) const override;
  bool has_host_kernels() const override { return true; }
  bool lost() const override;
  std::optional<uint8_t> scrub() const override {
    return options_.lazy ? std::optional<uint8_t>(kScrub) : std::nullopt;
  }

  EmulatedCounts counts() const;
  // The address of the contents of [memory, memory + bytes); nullptr when that is not device memory
  // in use.
  std::byte* Translate(const void* memory, size_t bytes) const;

 private:
  friend class EmulatedStream;
  friend class EmulatedEvent;
  friend class EmulatedGraph;
  friend struct EmulatedCapture;

  // One Record of an event. All fields are guarded by mutex_ except `stream` and `capture`, which
  // do not change.
  struct Mark {
    EmulatedStream* stream = nullptr;
    bool reached = false;
    int64_t reached_ns = 0;
    std::optional<StreamError> error;
    std::shared_ptr<EmulatedCapture>
        capture;  // the Record was captured, so that the mark is never reached
  };
  struct Task {
    // One of: work, a graph, a mark to signal or to wait for.
    std::function<Status()> work;
    EmulatedGraph* graph = nullptr;
    std::shared_ptr<Mark> signal, wait;
    uint64_t tag = 0;
    int64_t delay_ns = 0;
  };
  // As a float, a large number.
  static constexpr uint8_t kScrub = 0x7E;
  enum class Call { kRefused, kAllocation, kWork };
  // Counts a call that can fail. An error when it does; of kWork only when the device is lost:
  // `*fails` says then that the work is to fail.
  Status Admit(Call kind, bool* fails = nullptr) HEDDLE_REQUIRES(mutex_);
  int64_t Delay(int64_t least_ns) HEDDLE_REQUIRES(mutex_);
  Status LostError() const;
  // An error while the calling thread captures.
  Status NotCapturing(const char* what) const HEDDLE_REQUIRES(mutex_);
  // The address is host memory that this device allocated.
  bool IsPinned(const void* host, size_t bytes) const HEDDLE_REQUIRES(mutex_);

  const std::string name_ = "emulated";
  const EmulatedOptions options_;
  std::byte* addresses_ = nullptr;  // the range that cannot be read
  std::byte* contents_ = nullptr;
  mutable Mutex mutex_;
  CondVar reached_;  // some mark is
  // With EmulatedOptions::units: how many are taken, and the streams that would have one.
  CondVar units_changed_;
  int units_taken_ HEDDLE_GUARDED_BY(mutex_) = 0;
  std::vector<const EmulatedStream*> for_units_ HEDDLE_GUARDED_BY(mutex_);
  EmulatedCounts counts_ HEDDLE_GUARDED_BY(mutex_);
  uint64_t next_error_ HEDDLE_GUARDED_BY(mutex_) = 1;
  bool lost_ HEDDLE_GUARDED_BY(mutex_) = false;
  std::mt19937_64 random_ HEDDLE_GUARDED_BY(mutex_);
  // Memory in use and free: offset -> bytes.
  std::map<size_t, size_t> used_ HEDDLE_GUARDED_BY(mutex_);
  std::map<size_t, size_t> free_ HEDDLE_GUARDED_BY(mutex_);
  // Pinned memory of the host: address -> bytes.
  std::map<uintptr_t, size_t> host_ HEDDLE_GUARDED_BY(mutex_);
  std::vector<std::thread::id> capturing_ HEDDLE_GUARDED_BY(mutex_);
};

}  // namespace heddle
