#include "device/emulated_device.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "device/emulated_stream.h"

namespace heddle {
namespace {

constexpr size_t kAlign = 256;

size_t RoundUp(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

std::byte* Reserve(size_t bytes, int protection) {
  void* range =
      mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) throw std::bad_alloc();
  return static_cast<std::byte*>(range);
}

}  // namespace

EmulatedDevice::EmulatedDevice(const EmulatedOptions& options)
    : options_(options), random_(options.seed) {
  addresses_ = Reserve(options_.memory_bytes, PROT_NONE);
  try {
    contents_ = Reserve(options_.memory_bytes, PROT_READ | PROT_WRITE);
  } catch (const std::bad_alloc&) {
    munmap(addresses_, options_.memory_bytes);
    throw;
  }
  free_[0] = options_.memory_bytes / kAlign * kAlign;
}

EmulatedDevice::~EmulatedDevice() {
  munmap(contents_, options_.memory_bytes);
  munmap(addresses_, options_.memory_bytes);
}

Status EmulatedDevice::LostError() const { return Internal("the device is lost"); }

Status EmulatedDevice::Admit(Call kind, bool* fails) {
  ++counts_.calls;
  if (lost_) return LostError();
  if (counts_.calls != options_.fail_call) return Status::Ok();
  if (options_.lost) {
    lost_ = true;
    return LostError();
  }
  if (kind == Call::kAllocation) return ResourceExhausted("no device memory (an injected fault)");
  if (kind == Call::kRefused) return Internal("the call was refused (an injected fault)");
  *fails = true;
  return Status::Ok();
}

int64_t EmulatedDevice::Delay(int64_t least_ns) {
  if (options_.jitter_ns <= 0) return least_ns;
  return least_ns + static_cast<int64_t>(random_() % static_cast<uint64_t>(options_.jitter_ns));
}

Status EmulatedDevice::NotCapturing(const char* what) const {
  const auto me = std::this_thread::get_id();
  if (std::find(capturing_.begin(), capturing_.end(), me) == capturing_.end()) return Status::Ok();
  return Internal(what, " under a capture");
}

Result<void*> EmulatedDevice::Allocate(size_t bytes) {
  MutexLock lock(mutex_);
  HEDDLE_RETURN_IF_ERROR(NotCapturing("memory was asked for"));
  HEDDLE_RETURN_IF_ERROR(Admit(Call::kAllocation));
  const size_t size = RoundUp(std::max<size_t>(bytes, 1), kAlign);
  for (auto at = free_.begin(); at != free_.end(); ++at) {
    if (at->second < size) continue;
    const size_t offset = at->first, left = at->second - size;
    free_.erase(at);
    if (left > 0) free_[offset + size] = left;
    used_[offset] = size;
    ++counts_.allocations;
    counts_.bytes += size;
    counts_.peak_bytes = std::max(counts_.peak_bytes, counts_.bytes);
    constexpr size_t kMost = 64 << 20;  // larger ones are not worth the time
    if (options_.lazy) std::memset(contents_ + offset, kScrub, std::min(size, kMost));
    return static_cast<void*>(addresses_ + offset);
  }
  return ResourceExhausted("the device has no room for ", bytes, " bytes; ", counts_.bytes, " of ",
                           options_.memory_bytes, " are in use");
}

void EmulatedDevice::Free(void* memory) {
  MutexLock lock(mutex_);
  auto used = used_.find(static_cast<size_t>(static_cast<std::byte*>(memory) - addresses_));
  if (used == used_.end()) return;
  auto [offset, size] = *used;
  used_.erase(used);
  --counts_.allocations;
  counts_.bytes -= size;
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && next->first == offset + size) {
    size += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second == offset) {
      before->second += size;
      return;
    }
  }
  free_[offset] = size;
}

Result<void*> EmulatedDevice::AllocateHost(size_t bytes) {
  MutexLock lock(mutex_);
  HEDDLE_RETURN_IF_ERROR(Admit(Call::kAllocation));
  void* memory = ::operator new(std::max<size_t>(bytes, 1), std::align_val_t(64), std::nothrow);
  if (memory == nullptr) return ResourceExhausted("no host memory for ", bytes, " bytes");
  ++counts_.allocations;
  host_[reinterpret_cast<uintptr_t>(memory)] = bytes;
  return memory;
}

void EmulatedDevice::FreeHost(void* memory) {
  {
    MutexLock lock(mutex_);
    --counts_.allocations;
    host_.erase(reinterpret_cast<uintptr_t>(memory));
  }
  ::operator delete(memory, std::align_val_t(64));
}

bool EmulatedDevice::IsPinned(const void* host, size_t bytes) const {
  const auto at = reinterpret_cast<uintptr_t>(host);
  const auto next = host_.upper_bound(at);
  if (next == host_.begin()) return bytes == 0;
  const auto& [begin, size] = *std::prev(next);
  return bytes == 0 || at + bytes <= begin + size;
}

Result<std::unique_ptr<Stream>> EmulatedDevice::NewStream(int priority) {
  {
    MutexLock lock(mutex_);
    HEDDLE_RETURN_IF_ERROR(Admit(Call::kRefused));
    ++counts_.streams;
  }
  return std::unique_ptr<Stream>(std::make_unique<EmulatedStream>(*this, priority));
}

Result<std::unique_ptr<Event>> EmulatedDevice::NewEvent(bool timed) {
  MutexLock lock(mutex_);
  HEDDLE_RETURN_IF_ERROR(Admit(Call::kRefused));
  ++counts_.events;
  return std::unique_ptr<Event>(std::make_unique<EmulatedEvent>(*this, timed));
}

bool EmulatedDevice::HasKernel(const CallView& call) const {
  const OpDef& def = call.def();
  // Operators that order themselves by what the host does, or whose kernel makes its own outputs,
  // cannot leave it.
  constexpr unsigned kHostOnly = kControlFlow | kSideEffect | kReader | kCommunication;
  if ((def.traits() & kHostOnly) != 0 || def.infer_shape() == nullptr) return false;
  const DType key = call.key();
  return key == DType::kUnknown ? def.has_any_kernel() : def.kernel(key) != nullptr;
}

bool EmulatedDevice::CanReach(const Device& other) const {
  const auto* peer = dynamic_cast<const EmulatedDevice*>(&other);
  return peer != nullptr && peer != this && options_.peers && peer->options_.peers;
}

bool EmulatedDevice::lost() const {
  MutexLock lock(mutex_);
  return lost_;
}

EmulatedCounts EmulatedDevice::counts() const {
  MutexLock lock(mutex_);
  return counts_;
}

std::byte* EmulatedDevice::Translate(const void* memory, size_t bytes) const {
  const auto at = reinterpret_cast<uintptr_t>(memory);
  const auto begin = reinterpret_cast<uintptr_t>(addresses_);
  if (at < begin || at >= begin + options_.memory_bytes) return nullptr;
  const size_t offset = at - begin;
  MutexLock lock(mutex_);
  auto used = used_.upper_bound(offset);
  if (used == used_.begin()) return nullptr;
  --used;
  if (offset + bytes > used->first + used->second) return nullptr;
  return contents_ + offset;
}

std::shared_ptr<Device> NewEmulatedDevice(const EmulatedOptions& options) {
  return std::make_shared<EmulatedDevice>(options);
}

EmulatedCounts CountsOf(const Device& emulated) {
  return dynamic_cast<const EmulatedDevice&>(emulated).counts();
}

}  // namespace heddle
