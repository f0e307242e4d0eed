#include "core/buffer_slab.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "core/large_memory.h"

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
  for (const size_t bytes : {size_t{1}, size_t{4096}, (size_t{2} << 20) - 1, size_t{2} << 20,
                             (size_t{5} << 20) + 1}) {
    void* memory = TakeMemory(bytes);
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0u);
    std::memset(memory, 1, bytes);
    ReturnMemory(memory, bytes);
  }
}

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
