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
  bool HasTime() const HEDDLE_REQUIRES(device_.mutex_) {
    return timed_ && mark_ != nullptr && mark_->reached;
  }

  EmulatedDevice& device_;
  const bool timed_;
  // The newest Record.
  std::shared_ptr<EmulatedDevice::Mark> mark_ HEDDLE_GUARDED_BY(device_.mutex_);
};

class EmulatedStream final : public Stream {
 public:
  EmulatedStream(EmulatedDevice& device, int priority);
  ~EmulatedStream() override;
  Status CopyToDevice(void* to, const void* from, size_t bytes, uint64_t tag) override;
  Status CopyToHost(void* to, const void* from, size_t bytes, uint64_t tag) override;
  Status CopyOnDevice(void* to, const void* from, size_t bytes, uint64_t tag) override;
  Status CopyFromPeer(void* to, Device& peer, const void* from, size_t bytes,
                      uint64_t tag) override;
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

  enum class Kind { kKernel, kHostCopy, kPeerCopy, kOther };
  // `host`: that of a copy.
  Status Put(Kind kind, uint64_t tag, const void* host, size_t bytes, std::function<Status()> work);
  void Count(Kind kind, const void* host, size_t bytes) HEDDLE_REQUIRES(device_.mutex_);
  // For the thread, or for the capture that keeps it.
  void Push(Task task) HEDDLE_REQUIRES(device_.mutex_);
  void Work();
  // With EmulatedOptions::units: waits until one is free and no stream of less priority, or that
  // has waited longer with the same, would have it.
  void TakeUnit() HEDDLE_REQUIRES(device_.mutex_);
  void GiveUnitBack() HEDDLE_REQUIRES(device_.mutex_);
  // Executes the first task; its wait must be over. The mutex is let go of meanwhile.
  void Execute() HEDDLE_REQUIRES(device_.mutex_);
  std::pair<Status, uint64_t> Do(const Task& task) const;
  void Fail(Status status, uint64_t tag) HEDDLE_REQUIRES(device_.mutex_);
  // Lazy: executes until the mark is reached, or all, and elsewhere what that needs.
  void Force(const Mark* until) HEDDLE_REQUIRES(device_.mutex_);
  void AwaitAll() HEDDLE_REQUIRES(device_.mutex_);

  EmulatedDevice& device_;
  const int priority_;
  CondVar changed_;  // tasks came or went
  std::deque<Task> tasks_ HEDDLE_GUARDED_BY(device_.mutex_);
  std::optional<StreamError> error_ HEDDLE_GUARDED_BY(device_.mutex_);
  std::shared_ptr<EmulatedCapture> capture_ HEDDLE_GUARDED_BY(device_.mutex_);  // null: none
  bool stopping_ HEDDLE_GUARDED_BY(device_.mutex_) = false;
  // Lazy: some thread has let go of the mutex in Execute.
  bool executing_ HEDDLE_GUARDED_BY(device_.mutex_) = false;
  bool eager_ HEDDLE_GUARDED_BY(device_.mutex_) = false;
  std::thread thread_;
};

}  // namespace heddle
