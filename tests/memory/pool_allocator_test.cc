#include "memory/pool_allocator.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

namespace heddle {
namespace {

TEST(PoolAllocator, BlocksAreAlignedAndLargeEnough) {
  PoolAllocator pool;
  for (size_t bytes = 0; bytes < 5000; bytes += 37) {
    BufferRef b = pool.Allocate(bytes);
    ASSERT_TRUE(b);
    EXPECT_GE(b->bytes(), bytes);
    EXPECT_LE(b->bytes(), std::max<size_t>(64, bytes + bytes / 4 + 1)) << bytes;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(b->data()) % 64, 0u);
    std::memset(b->data(), 1, bytes);
  }
  EXPECT_EQ(pool.bytes_in_use(), 0u);
}

TEST(PoolAllocator, EverySizeAroundAPowerOfTwoFits) {
  PoolAllocator pool;
  for (int log = 6; log < 24; ++log)
    for (int d = -2; d <= 2; ++d) {
      const size_t bytes = (size_t{1} << log) + static_cast<size_t>(d);
      BufferRef b = pool.Allocate(bytes);
      ASSERT_GE(b->bytes(), bytes);
      std::memset(b->data(), 1, bytes);
    }
}

// Pages of [data, data + bytes) that memory is behind.
size_t PagesThere(const void* data, size_t bytes) {
  const uintptr_t begin = reinterpret_cast<uintptr_t>(data) & ~uintptr_t{4095};
  const size_t length = reinterpret_cast<uintptr_t>(data) + bytes - begin;
  std::vector<unsigned char> there((length + 4095) / 4096);
  EXPECT_EQ(::mincore(reinterpret_cast<void*>(begin), length, there.data()), 0);
  return static_cast<size_t>(
      std::count_if(there.begin(), there.end(), [](unsigned char p) { return p & 1; }));
}

TEST(PoolAllocator, ATightBlockTakesNoMemoryBehindWhatWasAskedFor) {
  constexpr size_t kBytes = (4 << 20) - 50 * 4096;  // less than its class, in two huge pages
  PoolAllocator pool;
  const BufferRef b = pool.AllocateTight(kBytes);
  ASSERT_GT(b->bytes(), kBytes + 40 * 4096);
  std::memset(b->data(), 1, kBytes);
  EXPECT_LE(PagesThere(b->data(), b->bytes()), kBytes / 4096 + 2);
  EXPECT_EQ(pool.bytes_in_use(), b->bytes());
}

TEST(PoolAllocator, BlocksAreUsedAgain) {
  PoolAllocator pool;
  BufferRef b = pool.Allocate(1000);
  const void* place = b->data();
  b.reset();
  EXPECT_GT(pool.bytes_cached(), 0u);
  b = pool.Allocate(990);
  EXPECT_EQ(b->data(), place);
  EXPECT_EQ(pool.bytes_cached(), 0u);
  EXPECT_TRUE(b->unique());
  b.reset();
  pool.Trim();
  EXPECT_EQ(pool.bytes_cached(), 0u);
}

// Sizes of many classes, one after another: what is free does not pile up.
TEST(PoolAllocator, FreeBlocksStayBelowWhatWasAlive) {
  PoolAllocator pool;
  constexpr size_t kMega = 1 << 20;
  const BufferRef alive = pool.Allocate(20 * kMega);
  size_t all = 0, peak = 0;
  for (size_t mega = 1; mega <= 40; ++mega) {
    const BufferRef b = pool.Allocate(mega * kMega);
    all += b->bytes();
    peak = std::max(peak, pool.bytes_in_use());
    EXPECT_LE(pool.bytes_cached(), peak) << mega;
  }
  EXPECT_GT(all, 10 * peak);
}

TEST(PoolAllocator, SomeFreeBlocksStayWhateverIsAlive) {
  PoolAllocator pool;
  constexpr size_t kMega = 1 << 20;
  pool.Allocate(8 * kMega);
  pool.Allocate(4 * kMega);
  pool.Allocate(100);
  EXPECT_GE(pool.bytes_cached(), 12 * kMega);
}

TEST(PoolAllocator, TheLimitCountsWhatIsAlive) {
  PoolAllocator pool(4096);
  BufferRef a = pool.Allocate(2048), b = pool.Allocate(2048);
  try {
    pool.Allocate(1);
    FAIL() << "above the limit";
  } catch (const OutOfMemory& e) {
    const std::string what = e.what();
    EXPECT_NE(what.find("4096"), std::string::npos) << what;
    EXPECT_NE(what.find("1 bytes"), std::string::npos) << what;
  }
  a.reset();
  EXPECT_NO_THROW(pool.Allocate(2048));
  EXPECT_THROW(pool.Allocate(2049), std::bad_alloc);
}

TEST(PoolAllocator, AbsurdSizesAreRefused) {
  PoolAllocator pool;
  EXPECT_THROW(pool.Allocate(SIZE_MAX), OutOfMemory);
  EXPECT_THROW(pool.Allocate(size_t{1} << 61), OutOfMemory);
  EXPECT_EQ(pool.bytes_in_use(), 0u);
  EXPECT_NO_THROW(pool.Allocate(64));
}

TEST(PoolAllocator, BlocksOutliveIt) {
  BufferRef a, b;
  {
    PoolAllocator pool;
    a = pool.Allocate(100);
    b = pool.Allocate(100);
    pool.Allocate(100);
  }
  std::memset(a->data(), 7, 100);
  a.reset();
  EXPECT_NE(b->data(), nullptr);
  BufferRef copy = b;
  b.reset();
  std::memset(copy->data(), 7, 100);
}

// Keeps the calling thread on the k-th of its processors while it lives.
class OnProcessor {
 public:
  explicit OnProcessor(int k) {
    CPU_ZERO(&before_);
    if (::sched_getaffinity(0, sizeof(before_), &before_) != 0) return;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &before_) || k-- != 0) continue;
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      there_ = ::sched_setaffinity(0, sizeof(one), &one) == 0;
    }
  }
  ~OnProcessor() { ::sched_setaffinity(0, sizeof(before_), &before_); }
  OnProcessor(const OnProcessor&) = delete;
  OnProcessor& operator=(const OnProcessor&) = delete;
  bool there() const { return there_; }

 private:
  cpu_set_t before_;
  bool there_ = false;
};

BufferRef AllocateOn(PoolAllocator& pool, int k, size_t bytes) {
  const OnProcessor on(k);
  return on.there() ? pool.Allocate(bytes) : BufferRef();
}

TEST(PoolAllocator, AProcessorGetsItsOwnMemoryBack) {
  PoolAllocator pool;
  BufferRef a = AllocateOn(pool, 0, 1000), b = AllocateOn(pool, 1, 1000);
  if (!b) GTEST_SKIP() << "one processor";
  const void *const first = a->data(), *const second = b->data();
  for (int k = 0; k < 3; ++k) {
    a.reset();
    b.reset();
    a = AllocateOn(pool, 0, 1000);
    b = AllocateOn(pool, 1, 1000);
    EXPECT_EQ(a->data(), first);
    EXPECT_EQ(b->data(), second);
  }
}

TEST(PoolAllocator, AnotherProcessorsMemoryIsTakenBeforeTheSystems) {
  BufferRef b;
  {
    PoolAllocator pool;
    BufferRef a = AllocateOn(pool, 0, 1000);
    const void* const place = a->data();
    const size_t held = pool.bytes_in_use();
    a.reset();
    b = AllocateOn(pool, 1, 1000);
    if (!b) GTEST_SKIP() << "one processor";
    EXPECT_EQ(b->data(), place);
    EXPECT_EQ(pool.bytes_cached(), 0u);
    EXPECT_EQ(pool.bytes_in_use(), held);
  }
  std::memset(b->data(), 7, 1000);  // it outlives the pool where it is now
}

TEST(PoolAllocator, ALimitIsForAllProcessorsTogether) {
  PoolAllocator pool(4096);
  const BufferRef a = AllocateOn(pool, 0, 2048);
  const OnProcessor on(1);
  if (!on.there()) GTEST_SKIP() << "one processor";
  const BufferRef b = pool.Allocate(2048);
  EXPECT_THROW(pool.Allocate(1), OutOfMemory);
}

TEST(PoolAllocator, ManyThreads) {
  PoolAllocator pool;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 rng(static_cast<unsigned>(t));
      std::vector<std::pair<BufferRef, size_t>> held;
      for (int k = 0; k < 3000; ++k) {
        if (held.size() > 8 || (rng() % 2 == 0 && !held.empty())) {
          auto& [buffer, bytes] = held[rng() % held.size()];
          const auto* p = static_cast<unsigned char*>(buffer->data());
          if (p[0] != t || p[bytes - 1] != t) ++wrong;
          std::swap(held.back().first, buffer);
          std::swap(held.back().second, bytes);
          held.pop_back();
        } else {
          const size_t bytes = 1 + rng() % 2000;
          held.emplace_back(pool.Allocate(bytes), bytes);
          std::memset(held.back().first->data(), t, bytes);
        }
        if (k % 500 == 0) pool.Trim();
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(pool.bytes_in_use(), 0u);
}

}  // namespace
}  // namespace heddle
