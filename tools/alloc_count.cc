#include "tools/alloc_count.h"

#include <atomic>
#include <cerrno>
#include <cstddef>

// Sanitizers bring a heap of their own. GCC says so with macros, Clang with features.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HEDDLE_SANITIZED_HEAP 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HEDDLE_SANITIZED_HEAP 1
#endif
#if defined(__GLIBC__) && !defined(HEDDLE_SANITIZED_HEAP)
#define HEDDLE_WATCH_HEAP 1
#endif

namespace heddle::tools {
namespace {

std::atomic<bool> counting{false};
std::atomic<int64_t> calls{0}, aside_calls{0};
thread_local int aside = 0;      // calls of the library that this thread is in
std::atomic<int> all_aside{0};   // calls of all threads
std::atomic<uint64_t> count{0};  // how many counts there were
thread_local uint64_t seen = 0;  // the last one that this thread started or called it in

// A thread that has not called the library since the count began is the library's own, and helps
// while there is a call.
bool IsAside() {
  return aside > 0 || (seen != count.load(std::memory_order_relaxed) &&
                       all_aside.load(std::memory_order_relaxed) > 0);
}

[[maybe_unused]] void EnterAside() {
  seen = count.load(std::memory_order_relaxed);
  ++aside;
  all_aside.fetch_add(1, std::memory_order_relaxed);
}

[[maybe_unused]] void LeaveAside() {
  all_aside.fetch_sub(1, std::memory_order_relaxed);
  --aside;
}

}  // namespace

int64_t AllocationsPutAside() { return aside_calls.load(std::memory_order_relaxed); }

bool CanCountAllocations() {
#ifdef HEDDLE_WATCH_HEAP
  return true;
#else
  return false;
#endif
}

void StartCountingAllocations() {
  seen = count.fetch_add(1, std::memory_order_relaxed) + 1;
  calls.store(0, std::memory_order_relaxed);
  aside_calls.store(0, std::memory_order_relaxed);
  counting.store(true, std::memory_order_seq_cst);
}

int64_t StopCountingAllocations() {
  counting.store(false, std::memory_order_seq_cst);
  return calls.load(std::memory_order_relaxed);
}

namespace heap {

// Memory ordering: the count is a statistic and orders nothing.
[[maybe_unused]] inline void Count() {
  if (!counting.load(std::memory_order_relaxed)) return;
  (IsAside() ? aside_calls : calls).fetch_add(1, std::memory_order_relaxed);
}

}  // namespace heap
}  // namespace heddle::tools

#ifdef HEDDLE_WATCH_HEAP

// glibc's own functions under the names that stay when malloc is replaced; what they return may be
// given to its free().
extern "C" {
void* __libc_malloc(size_t size);                      // NOLINT(bugprone-reserved-identifier)
void* __libc_calloc(size_t count, size_t size);        // NOLINT(bugprone-reserved-identifier)
void* __libc_realloc(void* old, size_t size);          // NOLINT(bugprone-reserved-identifier)
void* __libc_memalign(size_t alignment, size_t size);  // NOLINT(bugprone-reserved-identifier)

void* malloc(size_t size) {
  heddle::tools::heap::Count();
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  heddle::tools::heap::Count();
  return __libc_calloc(count, size);
}
void* realloc(void* old, size_t size) {
  heddle::tools::heap::Count();
  return __libc_realloc(old, size);
}
void* memalign(size_t alignment, size_t size) {
  heddle::tools::heap::Count();
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void** result, size_t alignment, size_t size) {
  if (alignment % sizeof(void*) != 0 || alignment == 0 || (alignment & (alignment - 1)) != 0)
    return EINVAL;
  void* memory = memalign(alignment, size);
  if (memory == nullptr) return ENOMEM;
  *result = memory;
  return 0;
}
}  // extern "C"

// Called around oneDNN's functions that compute (kernels/gemm/onednn.cc).
extern "C" {
void heddle_library_call_begins() {
  if (heddle::tools::counting.load(std::memory_order_relaxed)) heddle::tools::EnterAside();
}
void heddle_library_call_ends() {
  if (heddle::tools::aside > 0) heddle::tools::LeaveAside();
}
}  // extern "C"

#endif  // HEDDLE_WATCH_HEAP
