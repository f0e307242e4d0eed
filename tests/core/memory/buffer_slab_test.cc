#include "core/memory/buffer_slab.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "core/memory/large_memory.h"

namespace heddle::testing {
namespace {

void Fill(const BufferRef& b, int value) { std::memset(b->data(), value, b->bytes()); }
bool Holds(const BufferRef& b, int value) {
  const auto* p = static_cast<const unsigned char*>(b->data());
  for (size_t i = 0; i < b->bytes(); ++i)
    if (p[i] != value) return false;
  return true;
}

TEST(LargeMemory, IsAlignedAndWritableToItsEnd) {
  for (const size_t bytes :
       {size_t{1}, size_t{4096}, (size_t{2} << 20) - 1, size_t{2} << 20, (size_t{5} << 20) + 1}) {
    void* memory = TakeMemory(bytes);
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0u);
    std::memset(memory, 1, bytes);
    ReturnMemory(memory, bytes);
  }
}

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

// Of memory from `at` on, the bytes that are there: whole pages.
size_t Resident(void* at, size_t bytes) {
  constexpr uintptr_t kPage = 4096;
  auto* const first = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(at) & ~(kPage - 1));
  std::vector<unsigned char> there(bytes / kPage);
  EXPECT_EQ(mincore(first, bytes, there.data()), 0);
  return static_cast<size_t>(std::count(there.begin(), there.end(), 1)) * kPage;
}

TEST(BufferSlab, WhatIsFreeInATightOneTakesNoMemory) {
  constexpr size_t kBytes = 2 << 20;  // too few for one that will surely be filled to begin there
  BufferSlab slab(kBytes, true);
  const BufferRef first = slab.Allocate(100000);
  ASSERT_TRUE(first);
  Fill(first, 1);
  EXPECT_LE(Resident(first->data(), kBytes), size_t{100} << 10);
}

// However much it holds: nobody says that a huge page will be filled.
TEST(BufferSlab, ATightOneTakesNoHugePageThatStaysHalfEmpty) {
  constexpr size_t kPiece = 500000, kPieces = 18, kRest = 1 << 20;
  BufferSlab slab(0, true);
  std::vector<BufferRef> pieces;
  for (size_t i = 0; i < kPieces; ++i) {
    pieces.push_back(slab.Allocate(kPiece));
    ASSERT_TRUE(pieces.back());
    Fill(pieces.back(), 1);
  }
  auto* const end = static_cast<char*>(pieces.back()->data()) + kPiece;
  EXPECT_LE(Resident(end, kRest), size_t{8} << 10);
}

TEST(LargeMemory, TrimmingGivesBackWhatIsFree) {
  constexpr size_t kPiece = 64 << 10, kPieces = 64;
  std::vector<void*> pieces;
  for (size_t i = 0; i < kPieces; ++i) {
    pieces.push_back(std::malloc(kPiece));
    std::memset(pieces.back(), 1, kPiece);
  }
  // Every other one, so that these are holes in the heap and not its end.
  size_t before = 0, after = 0;
  for (size_t i = 0; i < kPieces; i += 2) {
    std::free(pieces[i]);
    before += Resident(pieces[i], kPiece);
  }
  TrimHeap();
  for (size_t i = 0; i < kPieces; i += 2) after += Resident(pieces[i], kPiece);
  EXPECT_LE(after, before / 4);
  for (size_t i = 1; i < kPieces; i += 2) std::free(pieces[i]);
}

#endif

TEST(BufferSlab, BuffersDoNotOverlapAndAreAligned) {
  BufferSlab slab;
  std::vector<BufferRef> buffers;
  for (int i = 0; i < 200; ++i) {
    buffers.push_back(slab.Allocate(static_cast<size_t>(i * i)));
    ASSERT_TRUE(buffers.back());
    EXPECT_EQ(buffers.back()->bytes(), static_cast<size_t>(i * i));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffers.back()->data()) % 64, 0u);
    Fill(buffers.back(), i);
  }
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(Holds(buffers[static_cast<size_t>(i)], i)) << i;
}

TEST(BufferSlab, KnownSizesShareOneBlock) {
  constexpr size_t kEach = 1000, kCount = 50;
  BufferSlab slab(kEach * kCount);
  std::vector<BufferRef> buffers;
  for (size_t i = 0; i < kCount / 2; ++i) buffers.push_back(slab.Allocate(kEach));
  for (size_t i = 1; i < buffers.size(); ++i)
    EXPECT_LT(static_cast<char*>(buffers[i]->data()) - static_cast<char*>(buffers[i - 1]->data()),
              static_cast<ptrdiff_t>(kEach + 128));
}

TEST(BufferSlab, BuffersOutliveTheSlab) {
  auto slab = std::make_unique<BufferSlab>();
  BufferRef a = slab->Allocate(100), b = slab->Allocate(3 << 20), c = slab->Allocate(100);
  slab.reset();
  Fill(a, 1);
  Fill(b, 2);
  Fill(c, 3);
  a.reset();
  EXPECT_TRUE(Holds(c, 3));
  EXPECT_TRUE(Holds(b, 2));
}

TEST(BufferSlab, ThreadsShareIt) {
  BufferSlab slab;
  std::vector<std::vector<BufferRef>> made(4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) {
        made[static_cast<size_t>(t)].push_back(slab.Allocate(300));
        Fill(made[static_cast<size_t>(t)].back(), t);
      }
    });
  for (std::thread& t : threads) t.join();
  for (int t = 0; t < 4; ++t)
    for (const BufferRef& b : made[static_cast<size_t>(t)]) EXPECT_TRUE(Holds(b, t));
}

}  // namespace
}  // namespace heddle::testing
