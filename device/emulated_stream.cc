#include "device/emulated_stream.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "core/error.h"
#include "device/emulated_graph.h"
#include "device/host_kernel.h"

namespace heddle {
namespace {

int64_t NowNs() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

// --- events ---

EmulatedEvent::~EmulatedEvent() {
  MutexLock lock(device_.mutex_);
  --device_.counts_.events;
}

bool EmulatedEvent::Reached() const {
  MutexLock lock(device_.mutex_);
  return mark_ == nullptr || mark_->reached;
}

Status EmulatedEvent::Wait() {
  MutexLock lock(device_.mutex_);
  const Status refused = device_.Admit(EmulatedDevice::Call::kRefused);
  const auto mark = mark_;
  if (mark != nullptr && mark->capture != nullptr)
    return mark->capture->Misuse("the host waited for an event");
  const bool ignored = ++device_.counts_.waits == device_.options_.ignore_wait;
  if (!ignored && mark != nullptr && !mark->reached) {
    if (device_.options_.lazy) {
      mark->stream->device_.mutex_.AssertHeld();
      mark->stream->Force(mark.get());
    }
    while (!mark->reached) device_.reached_.Wait(device_.mutex_);
  }
  HEDDLE_RETURN_IF_ERROR(refused);
  return mark != nullptr && mark->error ? mark->error->status : Status::Ok();
}

Result<int64_t> EmulatedEvent::NanosecondsSince(const Event& earlier) const {
  const auto& other = static_cast<const EmulatedEvent&>(earlier);
  MutexLock lock(device_.mutex_);
  other.device_.mutex_.AssertHeld();
  if (!HasTime() || !other.HasTime())
    return InvalidArgument("an event has no time: it is not timed, or not reached");
  return mark_->reached_ns - other.mark_->reached_ns;
}

// --- streams ---

EmulatedStream::EmulatedStream(EmulatedDevice& device, int priority)
    : device_(device), priority_(priority) {
  if (!device_.options_.lazy) thread_ = std::thread([this] { Work(); });
}

EmulatedStream::~EmulatedStream() {
  {
    MutexLock lock(device_.mutex_);
    if (device_.options_.lazy) Force(nullptr);
    if (capture_ != nullptr) capture_->entries.clear();  // their marks hold it
    stopping_ = true;
    --device_.counts_.streams;
  }
  changed_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

void EmulatedStream::Push(Task task) {
  if (capture_ != nullptr) {
    capture_->entries.push_back({capture_->IndexOf(this), std::move(task)});
    return;
  }
  tasks_.push_back(std::move(task));
  changed_.NotifyAll();
}

void EmulatedStream::Count(Kind kind, const void* host, size_t bytes) {
  auto& counts = device_.counts_;
  const bool pageable = kind == Kind::kHostCopy && !device_.IsPinned(host, bytes);
  if (capture_ != nullptr) {
    ++(kind == Kind::kKernel ? capture_->kernels : capture_->copies);
    capture_->pageable_copies += pageable;
  } else {
    ++(kind == Kind::kKernel ? counts.kernels : counts.copies);
    counts.pageable_copies += pageable;
    counts.peer_copies += kind == Kind::kPeerCopy;
  }
}

Status EmulatedStream::Put(Kind kind, uint64_t tag, const void* host, size_t bytes,
                           std::function<Status()> work) {
  MutexLock lock(device_.mutex_);
  const bool kernel = kind == Kind::kKernel;
  bool fails = false;
  HEDDLE_RETURN_IF_ERROR(device_.Admit(EmulatedDevice::Call::kWork, &fails));
  const char* const what = kernel ? "the kernel" : "the copy";
  if (fails && capture_ != nullptr) return Internal(what, " was refused (an injected fault)");
  Count(kind, host, bytes);
  Task task;
  task.work = std::move(work);
  if (fails) task.work = [what] { return Internal(what, " failed (an injected fault)"); };
  task.tag = tag;
  task.delay_ns =
      device_.Delay(kernel ? device_.options_.kernel_delay_ns : device_.options_.copy_delay_ns);
  Push(std::move(task));
  if (eager_) Force(nullptr);
  return Status::Ok();
}

// Work refers to the device alone: a graph may outlive the stream.

Status EmulatedStream::CopyToDevice(void* to, const void* from, size_t bytes, uint64_t tag) {
  return Put(Kind::kHostCopy, tag, from, bytes, [&device = device_, to, from, bytes] {
    std::byte* at = device.Translate(to, bytes);
    if (at == nullptr) return Internal("a copy to the device goes elsewhere");
    if (bytes > 0) std::memcpy(at, from, bytes);
    return Status::Ok();
  });
}

Status EmulatedStream::CopyToHost(void* to, const void* from, size_t bytes, uint64_t tag) {
  return Put(Kind::kHostCopy, tag, to, bytes, [&device = device_, to, from, bytes] {
    const std::byte* at = device.Translate(from, bytes);
    if (at == nullptr) return Internal("a copy from the device comes from elsewhere");
    if (bytes > 0) std::memcpy(to, at, bytes);
    return Status::Ok();
  });
}

Status EmulatedStream::CopyOnDevice(void* to, const void* from, size_t bytes, uint64_t tag) {
  return Put(Kind::kOther, tag, nullptr, 0, [&device = device_, to, from, bytes] {
    std::byte* target = device.Translate(to, bytes);
    const std::byte* source = device.Translate(from, bytes);
    if (target == nullptr || source == nullptr)
      return Internal("a copy on the device leaves its memory");
    if (bytes > 0) std::memmove(target, source, bytes);
    return Status::Ok();
  });
}

Status EmulatedStream::CopyFromPeer(void* to, Device& peer, const void* from, size_t bytes,
                                    uint64_t tag) {
  if (!device_.CanReach(peer)) return Stream::CopyFromPeer(to, peer, from, bytes, tag);
  auto& other = static_cast<EmulatedDevice&>(peer);
  return Put(Kind::kPeerCopy, tag, nullptr, 0, [&device = device_, &other, to, from, bytes] {
    if (other.lost()) {
      const std::string number = other.number() > 0 ? StrCat(":", other.number()) : "";
      return Internal("the peer of a copy, '", other.name(), number, "', is lost");
    }
    std::byte* target = device.Translate(to, bytes);
    const std::byte* source = other.Translate(from, bytes);
    if (target == nullptr) return Internal("a copy from a peer goes elsewhere");
    if (source == nullptr) return Internal("a copy from a peer comes from elsewhere");
    if (bytes > 0) std::memcpy(target, source, bytes);
    return Status::Ok();
  });
}

Status EmulatedStream::Fill(void* to, uint8_t byte, size_t bytes, uint64_t tag) {
  return Put(Kind::kOther, tag, nullptr, 0, [&device = device_, to, byte, bytes] {
    std::byte* at = device.Translate(to, bytes);
    if (at == nullptr) return Internal("memory to be filled is not the device's");
    if (bytes > 0) std::memset(at, byte, bytes);
    return Status::Ok();
  });
}

Status EmulatedStream::Launch(KernelCall call, uint64_t tag) {
  auto shared = std::make_shared<const KernelCall>(std::move(call));
  return Put(Kind::kKernel, tag, nullptr, 0, [&device = device_, shared] {
    return CallHostKernel(*shared, [&device](const void* address, size_t bytes) {
      return device.Translate(address, bytes);
    });
  });
}

Status EmulatedStream::Record(Event& event) {
  MutexLock lock(device_.mutex_);
  HEDDLE_RETURN_IF_ERROR(device_.Admit(EmulatedDevice::Call::kRefused));
  ++device_.counts_.records;
  auto mark = std::make_shared<Mark>();
  mark->stream = this;
  mark->capture = capture_;
  auto& recorded = static_cast<EmulatedEvent&>(event);
  recorded.device_.mutex_.AssertHeld();
  recorded.mark_ = mark;
  Task task;
  task.signal = std::move(mark);
  Push(std::move(task));
  return Status::Ok();
}

Status EmulatedStream::WaitFor(Event& event) {
  MutexLock lock(device_.mutex_);
  HEDDLE_RETURN_IF_ERROR(device_.Admit(EmulatedDevice::Call::kRefused));
  if (++device_.counts_.waits == device_.options_.ignore_wait) {
    eager_ = device_.options_.lazy;
    return Status::Ok();
  }
  Task task;
  auto& awaited = static_cast<EmulatedEvent&>(event);
  awaited.device_.mutex_.AssertHeld();
  task.wait = awaited.mark_;
  if (task.wait == nullptr) return Status::Ok();
  const auto& capture = task.wait->capture;
  if (capture_ != nullptr && capture != capture_)
    return capture_->Misuse("a stream waited for an event from outside");
  if (capture != nullptr && capture->ended)
    return Internal("the event was recorded under a capture that has ended");
  capture_ = capture;
  Push(std::move(task));
  return Status::Ok();
}

Status EmulatedStream::BeginCapture() {
  MutexLock lock(device_.mutex_);
  HEDDLE_RETURN_IF_ERROR(device_.Admit(EmulatedDevice::Call::kRefused));
  if (capture_ != nullptr) return capture_->Misuse("another capture was begun");
  HEDDLE_RETURN_IF_ERROR(device_.NotCapturing("a capture was begun"));
  capture_ = std::make_shared<EmulatedCapture>();
  capture_->streams.push_back(this);
  device_.capturing_.push_back(std::this_thread::get_id());
  return Status::Ok();
}

Result<std::unique_ptr<Graph>> EmulatedStream::EndCapture() {
  std::unique_ptr<EmulatedGraph> graph;  // let go of without the mutex
  MutexLock lock(device_.mutex_);
  const Status refused = device_.Admit(EmulatedDevice::Call::kRefused);
  const auto capture = capture_;
  if (capture == nullptr || capture->streams[0] != this)
    return Internal("a capture was ended that this stream did not begin");
  for (EmulatedStream* s : capture->streams) {
    s->device_.mutex_.AssertHeld();
    s->capture_ = nullptr;
  }
  std::erase(device_.capturing_, std::this_thread::get_id());
  capture->ended = true;
  const Status misuse = refused.ok() ? capture->misuse : refused;
  if (misuse.ok()) graph = std::make_unique<EmulatedGraph>(device_, *capture);
  capture->entries.clear();  // their marks hold the capture
  HEDDLE_RETURN_IF_ERROR(misuse);
  if (graph->has_loose_ends())
    return Internal("a stream has captured work that the capturing one did not wait for");
  return std::unique_ptr<Graph>(std::move(graph));
}

Status EmulatedStream::Replay(Graph& graph) {
  MutexLock lock(device_.mutex_);
  HEDDLE_RETURN_IF_ERROR(device_.Admit(EmulatedDevice::Call::kRefused));
  if (capture_ != nullptr) return capture_->Misuse("a graph was replayed");
  auto& g = static_cast<EmulatedGraph&>(graph);
  auto& counts = device_.counts_;
  ++counts.replays;
  counts.kernels += g.kernels_;
  counts.copies += g.copies_;
  counts.pageable_copies += g.pageable_copies_;
  Task task;
  task.graph = &g;
  task.delay_ns = g.delay_ns_;
  Push(std::move(task));
  return Status::Ok();
}

Status EmulatedStream::Synchronize() {
  MutexLock lock(device_.mutex_);
  const Status refused = device_.Admit(EmulatedDevice::Call::kRefused);
  if (capture_ != nullptr) return capture_->Misuse("the host waited for a stream");
  AwaitAll();
  if (error_) return error_->status;
  return refused;
}

void EmulatedStream::WaitUntilDone() {
  MutexLock lock(device_.mutex_);
  AwaitAll();
}

void EmulatedStream::AwaitAll() {
  if (device_.options_.lazy) Force(nullptr);
  while (!tasks_.empty()) changed_.Wait(device_.mutex_);
}

std::optional<StreamError> EmulatedStream::TakeError() {
  MutexLock lock(device_.mutex_);
  return std::exchange(error_, std::nullopt);
}

void EmulatedStream::Fail(Status status, uint64_t tag) {
  if (!error_) error_ = StreamError{std::move(status), tag, device_.next_error_++};
}

// Executes a task; the caller has released the mutex. Returns the failure and the work's tag.
std::pair<Status, uint64_t> EmulatedStream::Do(const Task& task) const {
  if (task.delay_ns > 0 && !device_.options_.lazy)
    std::this_thread::sleep_for(std::chrono::nanoseconds(task.delay_ns));
  return task.graph != nullptr ? task.graph->Execute() : std::pair(task.work(), task.tag);
}

void EmulatedStream::Execute() {
  Task& task = tasks_.front();  // stays where it is: tasks come at the other end only
  if (task.wait) {
    if (task.wait->error && !error_) error_ = task.wait->error;
  } else if (task.signal) {
    if (device_.lost_) Fail(device_.LostError(), task.tag);
    task.signal->error = error_;
    task.signal->reached_ns = NowNs();
    task.signal->reached = true;
    device_.reached_.NotifyAll();
  } else {
    if (device_.lost_) Fail(device_.LostError(), task.tag);
    if (!error_) {
      std::pair<Status, uint64_t> done;
      {
        MutexUnlock meanwhile(device_.mutex_);
        done = Do(task);
      }
      if (!done.first.ok()) Fail(std::move(done.first), done.second);
    }
  }
  tasks_.pop_front();
  if (tasks_.empty()) changed_.NotifyAll();
}

void EmulatedStream::Work() {
  MutexLock lock(device_.mutex_);
  for (;;) {
    while (!stopping_ && tasks_.empty()) changed_.Wait(device_.mutex_);
    if (tasks_.empty()) return;
    if (const auto wait = tasks_.front().wait)
      while (!wait->reached) device_.reached_.Wait(device_.mutex_);
    const bool works = tasks_.front().work || tasks_.front().graph != nullptr;
    const bool unit = works && device_.options_.units > 0;
    if (unit) TakeUnit();
    Execute();
    if (unit) GiveUnitBack();
  }
}

void EmulatedStream::TakeUnit() {
  auto& waiting = device_.for_units_;
  waiting.push_back(this);
  const auto is_next = [&] {
    device_.mutex_.AssertHeld();
    return *std::min_element(waiting.begin(), waiting.end(), [](const auto* a, const auto* b) {
      return a->priority_ < b->priority_;
    }) == this;
  };
  while (device_.units_taken_ >= device_.options_.units || !is_next())
    device_.units_changed_.Wait(device_.mutex_);
  std::erase(waiting, this);
  ++device_.units_taken_;
  device_.units_changed_.NotifyAll();  // there may be another one, for the next
}

void EmulatedStream::GiveUnitBack() {
  --device_.units_taken_;
  device_.units_changed_.NotifyAll();
}

void EmulatedStream::Force(const Mark* until) {
  while (!tasks_.empty() && (until == nullptr || !until->reached)) {
    // Another thread may be at it: memory is trimmed by any.
    if (executing_) {
      changed_.Wait(device_.mutex_);
      continue;
    }
    const auto wait = tasks_.front().wait;
    if (wait && !wait->reached) {
      wait->stream->device_.mutex_.AssertHeld();
      wait->stream->Force(wait.get());
      continue;
    }
    executing_ = true;
    Execute();
    executing_ = false;
    changed_.NotifyAll();
  }
}

}  // namespace heddle
