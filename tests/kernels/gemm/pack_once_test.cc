#include "kernels/gemm/pack_once.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <new>
#include <thread>
#include <vector>

#include "core/kernel_context.h"

namespace heddle::testing {
namespace {

using std::chrono::milliseconds;

struct Copy {
  static constexpr int kPackingVersion = 1;
  int value = 0;
  BufferRef memory;
};

class PackOnceTest : public ::testing::Test {
 protected:
  PackOnceTest() { services_.packs = &packs_; }
  PrepareContext Context() { return {op_, nullptr, services_, nullptr}; }

  PackCache packs_;
  Services services_;
  BoundOp op_;
  const Tensor source_ = Tensor::Zeros(DType::kF32, {4});
};

TEST_F(PackOnceTest, ManyThreadsMakeOne) {
  std::atomic<int> made{0};
  std::vector<std::shared_ptr<const Copy>> got(4);
  std::vector<std::thread> threads;
  for (auto& g : got)
    threads.emplace_back([&] {
      g = PackOnce<Copy>(Context(), source_, "a", [&](const Tensor&, Copy* c) {
        std::this_thread::sleep_for(milliseconds(5));
        c->value = ++made;
      });
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(made, 1);
  for (const auto& g : got) {
    EXPECT_EQ(g, got[0]);
    EXPECT_EQ(g->value, 1);
  }
}

TEST_F(PackOnceTest, DifferentOnesAreMadeAtTheSameTime) {
  std::latch both(2);  // each waits inside for the other
  const auto make = [&](const char* key) {
    PackOnce<Copy>(Context(), source_, key, [&](const Tensor&, Copy*) { both.arrive_and_wait(); });
  };
  std::thread other(make, "b");
  make("a");
  other.join();
}

TEST_F(PackOnceTest, AFailureIsNotKept) {
  const auto fails = [&] {
    PackOnce<Copy>(Context(), source_, "a", [](const Tensor&, Copy*) { throw std::bad_alloc(); });
  };
  EXPECT_THROW(fails(), std::bad_alloc);
  EXPECT_EQ(
      PackOnce<Copy>(Context(), source_, "a", [](const Tensor&, Copy* c) { c->value = 7; })->value,
      7);
}

TEST_F(PackOnceTest, KeepsThePacksMemory) {
  const BufferRef a = PackMemory(Context(), 100), b = PackMemory(Context(), 100);
  EXPECT_NE(a->data(), b->data());
}

// A store that has nothing, and notes what it is asked for and given.
class NotingStore : public PackStore {
 public:
  BufferRef Find(const ContentsOrigin&, const std::string& key, MakeRoom) override {
    asked.push_back(key);
    return BufferRef();
  }
  void Keep(const ContentsOrigin&, const std::string& key, BufferRef) override {
    kept.push_back(key);
  }
  std::vector<std::string> asked, kept;
};

class AnyFile : public SourceFile {
 public:
  Stamp stamp() const override { return {}; }
  Result<uint64_t> Hash() const override { return uint64_t{0}; }
};

struct NewerCopy {
  static constexpr int kPackingVersion = 2;
  BufferRef memory;
};

// A file of packed weights never serves a build that packs otherwise.
TEST_F(PackOnceTest, TheStoreTellsVersionsOfALayoutApart) {
  const auto store = std::make_shared<NotingStore>();
  const Tensor source(DType::kF32, {4},
                      MakeLazyBuffer(16, [](void*, size_t, size_t) { return Status::Ok(); },
                                     {std::make_shared<AnyFile>(), "all"}));
  const auto pack = [&](auto copy) {
    PackCache packs(store);
    services_.packs = &packs;
    PackOnceInParts<decltype(copy)>(Context(), source, "a", [&](decltype(copy)* to) {
      to->memory = PackMemory(Context(), 16);
    });
  };
  pack(Copy());
  pack(NewerCopy());
  services_.packs = &packs_;
  EXPECT_EQ(store->asked, store->kept);
  EXPECT_EQ(store->kept, (std::vector<std::string>{"a v1 [4]", "a v2 [4]"}));
}

}  // namespace
}  // namespace heddle::testing
