#include "core/memory/item_blocks.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "memory/pool_allocator.h"

namespace heddle::testing {
namespace {

// Counts the blocks that are out, through a pool that poisons what comes back.
struct Counted final : TensorAllocator {
  PoolAllocator pool{0, true};
  int taken = 0;
  BufferRef Allocate(size_t bytes) override {
    ++taken;
    return pool.Allocate(bytes);
  }
};

struct Held {
  BufferRef memory;
  int value = 0;
};

bool Holds(const Held& h) {
  const auto* const p = static_cast<const unsigned char*>(h.memory->data());
  for (size_t i = 0; i < h.memory->bytes(); ++i)
    if (p[i] != h.value) return false;
  return true;
}

Held Take(size_t bytes, const BufferRef& neighbour, size_t count, int value, Counted& from) {
  Held h{TakeItem(bytes, neighbour, count, from), value};
  EXPECT_EQ(h.memory->bytes(), bytes);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(h.memory->data()) % 64, 0u);
  EXPECT_TRUE(h.memory->unique());
  std::memset(h.memory->data(), value, bytes);
  return h;
}

// Items of any sizes beside any others, released in any order, keep their bytes, and the pool gets
// all of its blocks back.
TEST(ItemBlocks, ItemsKeepTheirBytesInAnyOrderOfLives) {
  std::mt19937 rng(20);
  const auto draw = [&](size_t n) { return rng() % n; };
  for (int round = 0; round < 200; ++round) {
    Counted from;
    std::vector<Held> held;
    for (int step = 0; step < 300; ++step) {
      if (!held.empty() && draw(3) == 0) {
        const size_t at = draw(held.size());
        EXPECT_TRUE(Holds(held[at]));
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(at));
        continue;
      }
      BufferRef neighbour;
      if (const size_t kind = draw(8); kind == 0)
        neighbour = from.pool.Allocate(100);
      else if (!held.empty() && kind > 1)
        neighbour = held[draw(held.size())].memory;
      held.push_back(Take(draw(kSmallItem + 1), neighbour, draw(40), step % 256, from));
    }
    for (const Held& h : held) EXPECT_TRUE(Holds(h));
    held.clear();
    EXPECT_EQ(from.pool.bytes_in_use(), 0u);
  }
}

TEST(ItemBlocks, EqualItemsOfAListShareBlocksOfSixteen) {
  Counted from;
  std::vector<Held> list;
  constexpr size_t kItems = 1000;
  for (size_t i = 0; i < kItems; ++i)
    list.push_back(Take(64, list.empty() ? BufferRef() : list.back().memory, i,
                        static_cast<int>(i % 256), from));
  for (const Held& h : list) EXPECT_TRUE(Holds(h));
  EXPECT_LE(from.taken, static_cast<int>(kItems / 16 + 8));
}

TEST(ItemBlocks, OutliveTheAllocator) {
  BufferRef a, b;
  {
    Counted from;
    a = TakeItem(10, BufferRef(), 4, from);
    b = TakeItem(10, a, 4, from);
    EXPECT_EQ(from.taken, 1);
  }
  std::memset(a->data(), 1, 10);
  a.reset();
  std::memset(b->data(), 2, 10);
}

// Lists that share items may grow on several threads.
TEST(ItemBlocks, ThreadsGrowListsFromOneItem) {
  PoolAllocator pool(0, true);
  struct Plain final : TensorAllocator {
    explicit Plain(PoolAllocator& p) : pool(p) {}
    BufferRef Allocate(size_t bytes) override { return pool.Allocate(bytes); }
    PoolAllocator& pool;
  } from(pool);
  for (int round = 0; round < 50; ++round) {
    const BufferRef first = TakeItem(64, BufferRef(), 16, from);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        std::vector<Held> mine;
        for (int i = 0; i < 40; ++i) {
          Held h{TakeItem(64, mine.empty() ? first : mine.back().memory, 16, from), 10 * t + i % 7};
          std::memset(h.memory->data(), h.value, 64);
          mine.push_back(std::move(h));
          if (i % 5 == 4) mine.erase(mine.begin());
        }
        for (const Held& h : mine) EXPECT_TRUE(Holds(h));
      });
    for (std::thread& t : threads) t.join();
  }
  EXPECT_EQ(pool.bytes_in_use(), 0u);
}

}  // namespace
}  // namespace heddle::testing
