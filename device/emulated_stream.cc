#include "device/emulated_stream.h"

#include <chrono>
#include <cstring>

#include "core/guard.h"

namespace heddle {
namespace {

bool IsOutput(const BoundOp& op, size_t position) {
  for (uint32_t s : op.out)
    if (s == position) return true;
  return false;
}

// Replaces device addresses by where the contents lie; `real`: those of outputs.
Status Enter(const EmulatedDevice& device, const BoundOp& op, std::vector<Value>* operands,
             std::vector<std::byte*>* real) {
  real->assign(operands->size(), nullptr);
  for (size_t i = 0; i < operands->size(); ++i) {
    Value& v = (*operands)[i];
    if (!v.is_tensor() || !v.initialized()) continue;
    Tensor& t = v.tensor();
    std::byte* at = device.Translate(t.raw(), t.bytes());
    if (at == nullptr)
      return Internal("operand ", i, " of ", op.def->name(), " is not in the device's memory");
    t.Bind(at);
    if (IsOutput(op, i)) (*real)[i] = at;
  }
  return Status::Ok();
}

// Kernels may leave an output at an input's memory instead of its own.
Status Leave(const BoundOp& op, const std::vector<size_t>& bytes, std::vector<Value>* operands,
             const std::vector<std::byte*>& real) {
  for (size_t i = 0; i < operands->size(); ++i) {
    if (real[i] == nullptr) continue;
    const Tensor& t = (*operands)[i].tensor();
    if (!(*operands)[i].is_tensor() || t.bytes() != bytes[i])
      return Internal(op.def->name(), " changed the shape of an output while it ran");
    if (t.raw() != real[i] && t.bytes() > 0) std::memmove(real[i], t.raw(), t.bytes());
  }
  return Status::Ok();
}

Status Execute(const EmulatedDevice& device, KernelCall& call) {
  std::vector<std::byte*> real;
  HEDDLE_RETURN_IF_ERROR(Enter(device, *call.op, &call.operands, &real));
  std::vector<Value*> frame;
  std::vector<size_t> bytes;
  for (Value& v : call.operands) {
    frame.push_back(&v);
    bytes.push_back(v.is_tensor() ? v.tensor().bytes() : 0);
  }
  KernelContext ctx(*call.op, frame.data(), *call.services, call.state);
  HEDDLE_RETURN_IF_ERROR(Guard([&] { return call.host_kernel(ctx); }));
  HEDDLE_RETURN_IF_ERROR(Leave(*call.op, bytes, &call.operands, real));
  if (call.offsets)
    for (size_t i = 0; i < call.operands.size(); ++i)
      if (real[i] != nullptr) call.offsets(i, call.operands[i].tensor().lod());
  return Status::Ok();
}

}  // namespace

// --- events ---

EmulatedEvent::~EmulatedEvent() {
  std::lock_guard lock(device_.mutex_);
  --device_.counts_.events;
}

bool EmulatedEvent::Reached() const {
  std::lock_guard lock(device_.mutex_);
  return mark_ == nullptr || mark_->reached;
}

Status EmulatedEvent::Wait() {
  std::unique_lock lock(device_.mutex_);
  const Status refused = device_.Admit(EmulatedDevice::Call::kRefused);
  const auto mark = mark_;
  const bool ignored = ++device_.counts_.waits == device_.options_.ignore_wait;
  if (!ignored && mark != nullptr && !mark->reached) {
    if (device_.options_.lazy) mark->stream->Force(lock, mark.get());
    device_.reached_.wait(lock, [&] { return mark->reached; });
  }
  HEDDLE_RETURN_IF_ERROR(refused);
  return mark != nullptr && mark->error ? mark->error->status : Status::Ok();
}

// --- streams ---

EmulatedStream::EmulatedStream(EmulatedDevice& device) : device_(device) {
  if (!device_.options_.lazy) thread_ = std::thread([this] { Work(); });
}

EmulatedStream::~EmulatedStream() {
  {
    Lock lock(device_.mutex_);
    if (device_.options_.lazy) Force(lock, nullptr);
    stopping_ = true;
    --device_.counts_.streams;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void EmulatedStream::Push(Task task) {
  tasks_.push_back(std::move(task));
  changed_.notify_all();
}

Status EmulatedStream::Put(bool kernel, uint64_t tag, std::function<Status()> work) {
  Lock lock(device_.mutex_);
  bool fails = false;
  HEDDLE_RETURN_IF_ERROR(device_.Admit(EmulatedDevice::Call::kWork, &fails));
  ++(kernel ? device_.counts_.kernels : device_.counts_.copies);
  Task task;
  task.work = std::move(work);
  if (fails)
    task.work = [kernel] {
      return Internal(kernel ? "the kernel" : "the copy", " failed (an injected fault)");
    };
  task.tag = tag;
  task.delay_ns = device_.Delay(kernel ? device_.options_.kernel_delay_ns
                                       : device_.options_.copy_delay_ns);
  Push(std::move(task));
  if (eager_) Force(lock, nullptr);
  return Status::Ok();
}

Status EmulatedStream::CopyToDevice(void* to, const void* from, size_t bytes, uint64_t tag) {
  return Put(false, tag, [this, to, from, bytes] {
    std::byte* at = device_.Translate(to, bytes);
    if (at == nullptr) return Internal("a copy to the device goes elsewhere");
    if (bytes > 0) std::memcpy(at, from, bytes);
    return Status::Ok();
  });
}

Status EmulatedStream::CopyToHost(void* to, const void* from, size_t bytes, uint64_t tag) {
  return Put(false, tag, [this, to, from, bytes] {
    const std::byte* at = device_.Translate(from, bytes);
    if (at == nullptr) return Internal("a copy from the device comes from elsewhere");
    if (bytes > 0) std::memcpy(to, at, bytes);
    return Status::Ok();
  });
}

Status EmulatedStream::CopyOnDevice(void* to, const void* from, size_t bytes, uint64_t tag) {
  return Put(false, tag, [this, to, from, bytes] {
    std::byte* target = device_.Translate(to, bytes);
    const std::byte* source = device_.Translate(from, bytes);
    if (target == nullptr || source == nullptr)
      return Internal("a copy on the device leaves its memory");
    if (bytes > 0) std::memmove(target, source, bytes);
    return Status::Ok();
  });
}

Status EmulatedStream::Fill(void* to, uint8_t byte, size_t bytes, uint64_t tag) {
  return Put(false, tag, [this, to, byte, bytes] {
    std::byte* at = device_.Translate(to, bytes);
    if (at == nullptr) return Internal("memory to be filled is not the device's");
    if (bytes > 0) std::memset(at, byte, bytes);
    return Status::Ok();
  });
}

Status EmulatedStream::Launch(KernelCall call, uint64_t tag) {
  auto shared = std::make_shared<KernelCall>(std::move(call));
  return Put(true, tag, [this, shared] { return heddle::Execute(device_, *shared); });
}

Status EmulatedStream::Record(Event& event) {
  std::lock_guard lock(device_.mutex_);
  HEDDLE_RETURN_IF_ERROR(device_.Admit(EmulatedDevice::Call::kRefused));
  ++device_.counts_.records;
  auto mark = std::make_shared<Mark>();
  mark->stream = this;
  static_cast<EmulatedEvent&>(event).mark_ = mark;
  Task task;
  task.signal = std::move(mark);
  Push(std::move(task));
  return Status::Ok();
}

Status EmulatedStream::WaitFor(Event& event) {
  std::lock_guard lock(device_.mutex_);
  HEDDLE_RETURN_IF_ERROR(device_.Admit(EmulatedDevice::Call::kRefused));
  if (++device_.counts_.waits == device_.options_.ignore_wait) {
    eager_ = device_.options_.lazy;
    return Status::Ok();
  }
  Task task;
  task.wait = static_cast<EmulatedEvent&>(event).mark_;
  if (task.wait == nullptr) return Status::Ok();
  Push(std::move(task));
  return Status::Ok();
}

Status EmulatedStream::Synchronize() {
  Lock lock(device_.mutex_);
  const Status refused = device_.Admit(EmulatedDevice::Call::kRefused);
  if (device_.options_.lazy) Force(lock, nullptr);
  changed_.wait(lock, [&] { return tasks_.empty(); });
  if (error_) return error_->status;
  return refused;
}

void EmulatedStream::WaitUntilDone() {
  Lock lock(device_.mutex_);
  if (device_.options_.lazy) Force(lock, nullptr);
  changed_.wait(lock, [&] { return tasks_.empty(); });
}

std::optional<StreamError> EmulatedStream::TakeError() {
  std::lock_guard lock(device_.mutex_);
  return std::exchange(error_, std::nullopt);
}

void EmulatedStream::Fail(Status status, uint64_t tag) {
  if (!error_) error_ = StreamError{std::move(status), tag, device_.next_error_++};
}

void EmulatedStream::Execute(Lock& lock) {
  Task& task = tasks_.front();  // stays where it is: tasks come at the other end only
  if (task.wait) {
    if (task.wait->error && !error_) error_ = task.wait->error;
  } else if (task.signal) {
    if (device_.lost_) Fail(device_.LostError(), task.tag);
    task.signal->error = error_;
    task.signal->reached = true;
    device_.reached_.notify_all();
  } else {
    if (device_.lost_) Fail(device_.LostError(), task.tag);
    if (!error_) {
      lock.unlock();
      if (task.delay_ns > 0 && !device_.options_.lazy)
        std::this_thread::sleep_for(std::chrono::nanoseconds(task.delay_ns));
      Status status = task.work();
      lock.lock();
      if (!status.ok()) Fail(std::move(status), task.tag);
    }
  }
  tasks_.pop_front();
  if (tasks_.empty()) changed_.notify_all();
}

void EmulatedStream::Work() {
  Lock lock(device_.mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    if (const auto wait = tasks_.front().wait)
      device_.reached_.wait(lock, [&] { return wait->reached; });
    Execute(lock);
  }
}

void EmulatedStream::Force(Lock& lock, const Mark* until) {
  while (!tasks_.empty() && (until == nullptr || !until->reached)) {
    // Another thread may be at it: memory is trimmed by any.
    if (executing_) {
      changed_.wait(lock, [&] { return !executing_; });
      continue;
    }
    const auto wait = tasks_.front().wait;
    if (wait && !wait->reached) {
      wait->stream->Force(lock, wait.get());
      continue;
    }
    executing_ = true;
    Execute(lock);
    executing_ = false;
    changed_.notify_all();
  }
}

}  // namespace heddle
