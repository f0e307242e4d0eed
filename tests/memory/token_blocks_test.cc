#include "memory/token_blocks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "memory/pool_allocator.h"

namespace heddle {
namespace {

// Counts what it is asked for, and has no more than `limit` bytes at once.
class CountingAllocator final : public TensorAllocator {
 public:
  explicit CountingAllocator(size_t limit = 0) : pool_(limit) {}
  BufferRef Allocate(size_t bytes) override {
    ++calls_;
    return pool_.Allocate(bytes);
  }
  int calls() const { return calls_; }
  size_t alive() const { return pool_.bytes_in_use(); }

 private:
  PoolAllocator pool_;
  std::atomic<int> calls_{0};
};

TEST(TokenBlocks, ABlockIsUsedAgainWithoutTheAllocator) {
  CountingAllocator allocator;
  TokenBlocks blocks(allocator, std::vector<size_t>{1000, 100});
  const void* place = blocks.Take(0, 1000)->data();
  EXPECT_EQ(allocator.calls(), 1);
  for (size_t bytes : {1000, 10, 0, 700}) {
    const BufferRef b = blocks.Take(0, bytes);
    EXPECT_EQ(b->data(), place);
    EXPECT_GE(b->bytes(), 1000u);
    EXPECT_TRUE(b->unique());
  }
  EXPECT_EQ(allocator.calls(), 1);
  EXPECT_NE(blocks.Take(1, 100)->data(), place);
  EXPECT_EQ(allocator.calls(), 2);
}

// Whoever still has a block keeps it: the next value gets other memory, and the token is not lost.
TEST(TokenBlocks, ABlockThatSomebodyHasIsNotHandedOut) {
  CountingAllocator allocator;
  TokenBlocks blocks(allocator, std::vector<size_t>{1000});
  BufferRef first = blocks.Take(0, 1000);
  const void* place = first->data();
  BufferRef kept = first;
  first.reset();
  EXPECT_NE(blocks.Take(0, 1000)->data(), place);
  EXPECT_EQ(allocator.calls(), 2);
  kept.reset();
  EXPECT_EQ(blocks.Take(0, 1000)->data(), place);
  EXPECT_EQ(allocator.calls(), 2);
}

TEST(TokenBlocks, ATokenGrowsAndStaysLarge) {
  CountingAllocator allocator;
  TokenBlocks blocks(allocator, std::vector<size_t>{100});
  blocks.Take(0, 100);
  const size_t small = allocator.alive();
  EXPECT_GE(blocks.Take(0, 5000)->bytes(), 5000u);
  EXPECT_LT(allocator.alive(), 5000 + 5000 / 4 + small) << "the small block is still held";
  EXPECT_EQ(allocator.calls(), 2);
  for (size_t bytes : {100, 5000, 1}) EXPECT_GE(blocks.Take(0, bytes)->bytes(), 5000u);
  EXPECT_EQ(allocator.calls(), 2);
  EXPECT_EQ(blocks.bytes(), allocator.alive());
}

TEST(TokenBlocks, TheFirstValueTakesTheWholeToken) {
  CountingAllocator allocator;
  TokenBlocks blocks(allocator, std::vector<size_t>{5000});
  EXPECT_GE(blocks.Take(0, 10)->bytes(), 5000u);
  blocks.Take(0, 5000);
  EXPECT_EQ(allocator.calls(), 1);
}

TEST(TokenBlocks, LargeBlocksThatNobodyHasGoBack) {
  CountingAllocator allocator;
  TokenBlocks blocks(allocator, std::vector<size_t>{5000, 6000, 100});
  const BufferRef held = blocks.Take(0, 5000);
  blocks.Take(1, 6000);
  blocks.Take(2, 100);
  std::memset(held->data(), 7, 5000);
  const size_t before = allocator.alive();
  blocks.GiveBack(4000);
  EXPECT_LE(allocator.alive(), before - 6000);
  EXPECT_GE(allocator.alive(), 5100u);
  EXPECT_EQ(static_cast<const unsigned char*>(held->data())[4999], 7);
  blocks.Take(2, 100);
  EXPECT_EQ(allocator.calls(), 3);
  blocks.Take(1, 6000);
  EXPECT_EQ(allocator.calls(), 4);
}

TEST(TokenBlocks, BuffersMayOutliveThem) {
  CountingAllocator allocator;
  BufferRef held, copy;
  {
    TokenBlocks blocks(allocator, std::vector<size_t>{1000, 2000, 3000});
    held = blocks.Take(0, 1000);
    copy = held;
    blocks.Take(1, 2000);
  }
  EXPECT_GE(allocator.alive(), 1000u);
  EXPECT_LT(allocator.alive(), 2000u);
  std::memset(held->data(), 1, 1000);
  held.reset();
  EXPECT_GE(allocator.alive(), 1000u);
  copy.reset();
  EXPECT_EQ(allocator.alive(), 0u);
}

// A value may well fit where its token, or all tokens together, do not.
TEST(TokenBlocks, WhereMemoryIsShortAValueGetsItsOwnBytesOnly) {
  CountingAllocator allocator(4096);
  TokenBlocks blocks(allocator, std::vector<size_t>{2048, 1024, 100000});
  blocks.Take(0, 2048);
  blocks.Take(1, 1024);
  EXPECT_GE(blocks.Take(2, 4000)->bytes(), 4000u);
  EXPECT_EQ(allocator.alive(), 0u);
  EXPECT_THROW(blocks.Take(2, 5000), std::bad_alloc);
  EXPECT_GE(blocks.Take(0, 2048)->bytes(), 2048u);
}

TEST(TokenBlocks, BlocksThatComeBackArePoisoned) {
  CountingAllocator allocator;
  TokenBlocks blocks(allocator, std::vector<size_t>{64}, true);
  std::memset(blocks.Take(0, 64)->data(), 0, 64);
  const BufferRef b = blocks.Take(0, 64);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(static_cast<const unsigned char*>(b->data())[i], 0xff);
}

// Threads write, share and drop blocks of few tokens in any order: what one holds nobody else
// writes.
TEST(TokenBlocks, ThreadsNeverHoldTheSameBlock) {
  CountingAllocator allocator;
  BufferRef outlives;
  {
    TokenBlocks blocks(allocator, std::vector<size_t>{256, 256, 512});
    std::atomic<int> torn{0};
    const auto work = [&](unsigned seed) {
      std::mt19937 random(seed);
      std::vector<std::pair<BufferRef, int>> held;
      for (int i = 0; i < 4000; ++i) {
        if (held.size() < 3 && random() % 2 == 0) {
          BufferRef b = blocks.Take(random() % 3, 1 + random() % 700);
          const int fill = static_cast<int>(random() % 200);
          std::memset(b->data(), fill, b->bytes());
          if (random() % 4 == 0) held.emplace_back(b, fill);  // a second reference
          held.emplace_back(std::move(b), fill);
        } else if (!held.empty()) {
          const auto at = static_cast<std::ptrdiff_t>(random() % held.size());
          const auto& [b, fill] = held[static_cast<size_t>(at)];
          const auto* bytes = static_cast<const unsigned char*>(b->data());
          for (size_t k = 0; k < b->bytes(); k += 37) torn += bytes[k] != fill;
          held.erase(held.begin() + at);
        }
      }
    };
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t) threads.emplace_back(work, t);
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(torn, 0);
    outlives = blocks.Take(0, 100);
  }
  outlives.reset();
  EXPECT_EQ(allocator.alive(), 0u);
}

// The last references go while the tokens do.
TEST(TokenBlocks, MayGoWhileBuffersDo) {
  CountingAllocator allocator;
  for (int round = 0; round < 200; ++round) {
    auto blocks = std::make_unique<TokenBlocks>(allocator, std::vector<size_t>{64, 64, 64});
    std::vector<std::thread> threads;
    for (uint32_t t = 0; t < 3; ++t)
      threads.emplace_back([b = blocks->Take(t, 64)]() mutable { b.reset(); });
    blocks.reset();
    for (std::thread& t : threads) t.join();
    ASSERT_EQ(allocator.alive(), 0u);
  }
}

}  // namespace
}  // namespace heddle
