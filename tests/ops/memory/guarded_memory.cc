#include "tests/ops/memory/guarded_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

namespace heddle::testing {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// Addresses are used once, so that memory which was returned stays without access.
constexpr size_t kRoom = size_t{1} << 38, kMost = size_t{1} << 30;
constexpr unsigned char kBeside = 0xa5;

std::atomic<bool> guards{false};
std::atomic<char*> room{nullptr};
std::atomic<size_t> used{0};
std::atomic<int64_t> blocks_guarded{0}, blocks_damaged{0};

// In the page in front of the one that the memory begins in.
struct Head {
  size_t bytes = 0, pages = 0;
  char* memory = nullptr;
};

size_t PageSize() {
  static const auto size = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

bool IsGuarded(const void* memory) {
  const char* const from = room.load(std::memory_order_acquire);
  return from != nullptr && memory >= from && memory < from + kRoom;
}

Head* HeadOf(char* memory) {
  const size_t page = PageSize();
  char* const from = room.load(std::memory_order_acquire);
  // The page that the memory begins in, and one before it.
  return reinterpret_cast<Head*>(from + (static_cast<size_t>(memory - from) / page - 1) * page);
}

// nullptr: there is no room.
void* TakeGuarded(size_t bytes, size_t alignment) {
  const size_t page = PageSize(), pages = std::max<size_t>(1, (bytes + page - 1) / page);
  if (bytes > kMost || alignment > page) return nullptr;
  const size_t at = used.fetch_add((pages + 2) * page);
  if (at + (pages + 2) * page > kRoom) return nullptr;
  char* const begin = room.load(std::memory_order_acquire) + at;
  if (::mprotect(begin, (pages + 1) * page, PROT_READ | PROT_WRITE) != 0) return nullptr;
  char* const first = begin + page;
  const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  char* const memory = first + pages * page - rounded;
  std::memset(first, kBeside, pages * page);
  *reinterpret_cast<Head*>(begin) = {bytes, pages, memory};
  ++blocks_guarded;
  return memory;
}

void ReturnGuarded(char* memory) {
  Head* head = HeadOf(memory);
  const char* const first = reinterpret_cast<char*>(head) + PageSize();
  const char* const end = first + head->pages * PageSize();
  const auto is_untouched = [](const char* from, const char* to) {
    return std::all_of(from, to, [](char c) { return static_cast<unsigned char>(c) == kBeside; });
  };
  if (!is_untouched(first, memory) || !is_untouched(memory + head->bytes, end)) ++blocks_damaged;
  const size_t all = (head->pages + 1) * PageSize();
  ::madvise(head, all, MADV_DONTNEED);
  ::mprotect(head, all, PROT_NONE);
}

}  // namespace

void* TakeAligned(size_t bytes, size_t alignment) noexcept {
  if (!kSanitized && guards.load(std::memory_order_relaxed) && bytes > 0)
    if (void* const memory = TakeGuarded(bytes, alignment)) return memory;
  void* memory = nullptr;
  return ::posix_memalign(&memory, std::max(alignment, sizeof(void*)),
                          std::max<size_t>(1, bytes)) == 0
             ? memory
             : nullptr;
}

void ReturnAligned(void* memory) noexcept {
  if (IsGuarded(memory))
    ReturnGuarded(static_cast<char*>(memory));
  else
    std::free(memory);
}

GuardedMemory::GuardedMemory() {
  if (room.load() == nullptr) {
    void* const map =
        ::mmap(nullptr, kRoom, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) return;
    room.store(static_cast<char*>(map), std::memory_order_release);
  }
  guards = true;
}
GuardedMemory::~GuardedMemory() { guards = false; }

int64_t GuardedMemory::blocks() { return blocks_guarded; }
int64_t GuardedMemory::damaged() { return blocks_damaged; }

}  // namespace heddle::testing

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void* operator new(size_t bytes, std::align_val_t alignment) {
  if (void* const memory = heddle::testing::TakeAligned(bytes, static_cast<size_t>(alignment)))
    return memory;
  throw std::bad_alloc();
}
void* operator new(size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return heddle::testing::TakeAligned(bytes, static_cast<size_t>(alignment));
}
void operator delete(void* memory, std::align_val_t) noexcept {
  heddle::testing::ReturnAligned(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  heddle::testing::ReturnAligned(memory);
}
void operator delete(void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
  heddle::testing::ReturnAligned(memory);
}
#endif
