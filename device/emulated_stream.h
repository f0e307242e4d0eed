// Streams and events of the emulated device.
#pragma once

#include "device/emulated_device.h"

namespace heddle {

class EmulatedEvent final : public Event {
 public:
  EmulatedEvent(EmulatedDevice& device, bool timed) : device_(device), timed_(timed) {}
  ~EmulatedEvent() override;
  bool Reached() const override;
  Status Wait() override;
  Result<int64_t> NanosecondsSince(const Event& earlier) const override;

 private:
  friend class EmulatedStream;
  EmulatedDevice& device_;
  const bool timed_;
  std::shared_ptr<EmulatedDevice::Mark> mark_;  // of the newest Record
};

class EmulatedStream final : public Stream {
 public:
  explicit EmulatedStream(EmulatedDevice& device);
  ~EmulatedStream() override;
  Status CopyToDevice(void* to, const void* from, size_t bytes, uint64_t tag) override;
  Status CopyToHost(void* to, const void* from, size_t bytes, uint64_t tag) override;
  Status CopyOnDevice(void* to, const void* from, size_t bytes, uint64_t tag) override;
  Status Fill(void* to, uint8_t byte, size_t bytes, uint64_t tag) override;
  Status Launch(KernelCall call, uint64_t tag) override;
  Status Record(Event& event) override;
  Status WaitFor(Event& event) override;
  Status Synchronize() override;
  void WaitUntilDone() override;
  std::optional<StreamError> TakeError() override;
  Status BeginCapture() override;
  Result<std::unique_ptr<Graph>> EndCapture() override;
  Status Replay(Graph& graph) override;

 private:
  friend class EmulatedEvent;
  using Task = EmulatedDevice::Task;
  using Mark = EmulatedDevice::Mark;
  using Lock = std::unique_lock<std::mutex>;

  enum class Kind { kKernel, kHostCopy, kOther };
  // `host`: that of a copy.
  Status Put(Kind kind, uint64_t tag, const void* host, size_t bytes, std::function<Status()> work);
  void Count(Kind kind, const void* host, size_t bytes);
  // For the thread, or for the capture that keeps it.
  void Push(Task task);
  void Work();
  // Executes the first task; its wait must be over. The lock is let go of meanwhile.
  void Execute(Lock& lock);
  void Fail(Status status, uint64_t tag);
  // Lazy: executes until the mark is reached, or all, and elsewhere what that needs.
  void Force(Lock& lock, const Mark* until);

  EmulatedDevice& device_;
  std::condition_variable changed_;  // tasks came or went
  std::deque<Task> tasks_;
  std::optional<StreamError> error_;
  std::shared_ptr<EmulatedCapture> capture_;  // null: none
  bool stopping_ = false;
  bool executing_ = false;  // lazy: some thread has let go of the lock in Execute
  bool eager_ = false;
  std::thread thread_;
};

}  // namespace heddle
