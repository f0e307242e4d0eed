#include "core/memory/large_memory.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <new>

namespace heddle {
namespace {

constexpr size_t kAlignment = 64;
#ifdef __SANITIZE_ADDRESS__
constexpr bool kSanitized = true;  // sanitizers track only memory of operator new
#else
constexpr bool kSanitized = false;
#endif
constexpr size_t kLeast = kSanitized ? ~size_t{0} : kHugePage;

size_t WholePages(size_t bytes) { return (bytes + PageBytes() - 1) & ~(PageBytes() - 1); }

// Huge pages begin at multiples of their size, so more is mapped and the excess is unmapped. The
// part after the last huge page that will be filled stays in small pages, so that unused memory is
// not taken.
void* Map(size_t bytes, size_t filled, int protection) {
  const size_t size = WholePages(bytes), more = size + kHugePage;
  void* map = ::mmap(nullptr, more, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) return nullptr;
  char* const begin = static_cast<char*>(map);
  const size_t before = -reinterpret_cast<uintptr_t>(begin) & (kHugePage - 1);
  char* const data = begin + before;
  if (before > 0) ::munmap(begin, before);
  if (kHugePage > before) ::munmap(data + size, kHugePage - before);
  WantHugePages(data, WholePages(filled) & ~(kHugePage - 1));
  return data;
}

void* MapSmall(size_t bytes, int protection) {
  void* map = ::mmap(nullptr, WholePages(bytes), protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return map == MAP_FAILED ? nullptr : map;
}

}  // namespace

size_t PageBytes() {
  static const auto bytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

void* TakeMemory(size_t bytes) {
  if (bytes >= kLeast) return Map(bytes, bytes, PROT_READ | PROT_WRITE);
  return ::operator new(bytes, std::align_val_t(kAlignment), std::nothrow);
}

void* TakeTightMemory(size_t bytes, size_t filled) {
  if (bytes < kLeast) return TakeMemory(bytes);
  void* const memory = Map(bytes, filled, PROT_READ | PROT_WRITE);
  const size_t huge = WholePages(filled) & ~(kHugePage - 1);
  if (memory != nullptr)
    PopulatePages(static_cast<char*>(memory) + huge, filled - std::min(filled, huge));
  return memory;
}

void ReturnMemory(void* memory, size_t bytes) {
  if (bytes >= kLeast)
    ::munmap(memory, WholePages(bytes));
  else
    ::operator delete(memory, std::align_val_t(kAlignment));
}

void* TakeSmallPages(size_t bytes) {
  return kSanitized ? TakeMemory(bytes) : MapSmall(bytes, PROT_READ | PROT_WRITE);
}

void ReturnSmallPages(void* memory, size_t bytes) {
  if (kSanitized) return ReturnMemory(memory, bytes);
  ::munmap(memory, WholePages(bytes));
}

void WantHugePages(void* memory, size_t bytes) {
#ifdef MADV_HUGEPAGE
  if (bytes > 0) ::madvise(memory, bytes, MADV_HUGEPAGE);
#else
  (void)memory, (void)bytes;
#endif
}

void PopulatePages(void* memory, size_t bytes) {
#ifdef MADV_POPULATE_WRITE
  const uintptr_t page = PageBytes();
  const auto begin = (reinterpret_cast<uintptr_t>(memory) + page - 1) & ~(page - 1);
  const auto end = (reinterpret_cast<uintptr_t>(memory) + bytes) & ~(page - 1);
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_WRITE);
#else
  (void)memory, (void)bytes;
#endif
}

void TrimHeap() {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

void* ReserveMemory(size_t bytes) {
  return bytes >= kHugePage ? Map(bytes, bytes, PROT_NONE) : MapSmall(bytes, PROT_NONE);
}

bool CommitMemory(void* memory, size_t bytes) {
  return ::mprotect(memory, WholePages(bytes), PROT_READ | PROT_WRITE) == 0;
}

void DecommitMemory(void* memory, size_t bytes) {
  ::mmap(memory, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

void ReleaseMemory(void* memory, size_t bytes) { ::munmap(memory, WholePages(bytes)); }

}  // namespace heddle
