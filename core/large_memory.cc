#include "core/large_memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>

namespace heddle {
namespace {

constexpr size_t kAlign = 64, kHugePage = 2 << 20;
#ifdef __SANITIZE_ADDRESS__
constexpr size_t kLeast = ~size_t{0};  // the sanitizer guards what comes from operator new
#else
constexpr size_t kLeast = kHugePage;
#endif

size_t WholePages(size_t bytes) { return (bytes + 4095) & ~size_t{4095}; }

// Huge pages start at multiples of their size: more is mapped, and what is beside is given back. The
// rest behind the last whole one stays in small pages, so that no memory is taken that isn't used.
void* Map(size_t bytes, int protection) {
  const size_t size = WholePages(bytes), more = size + kHugePage;
  void* map = ::mmap(nullptr, more, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) return nullptr;
  char* const begin = static_cast<char*>(map);
  const size_t before = -reinterpret_cast<uintptr_t>(begin) & (kHugePage - 1);
  char* const data = begin + before;
  if (before > 0) ::munmap(begin, before);
  if (kHugePage > before) ::munmap(data + size, kHugePage - before);
#ifdef MADV_HUGEPAGE
  ::madvise(data, size & ~(kHugePage - 1), MADV_HUGEPAGE);  // a wish: it may fail
#endif
  return data;
}

}  // namespace

void* TakeMemory(size_t bytes) {
  if (bytes >= kLeast) return Map(bytes, PROT_READ | PROT_WRITE);
  return ::operator new(bytes, std::align_val_t(kAlign), std::nothrow);
}

void ReturnMemory(void* memory, size_t bytes) {
  if (bytes >= kLeast)
    ::munmap(memory, WholePages(bytes));
  else
    ::operator delete(memory, std::align_val_t(kAlign));
}

void* ReserveMemory(size_t bytes) {
  if (bytes >= kHugePage) return Map(bytes, PROT_NONE);
  void* map = ::mmap(nullptr, WholePages(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return map == MAP_FAILED ? nullptr : map;
}

bool CommitMemory(void* memory, size_t bytes) {
  return ::mprotect(memory, WholePages(bytes), PROT_READ | PROT_WRITE) == 0;
}

void ReleaseMemory(void* memory, size_t bytes) { ::munmap(memory, WholePages(bytes)); }

}  // namespace heddle
