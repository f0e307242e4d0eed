// Memory that ends at a page without access.
#include "tests/ops/memory/guarded_memory.h"

#include <gtest/gtest.h>

#include <cstring>

#include "heddle/tensor.h"

namespace heddle::testing {
namespace {

// Bytes before and behind a tensor's elements that belong to it, too.
constexpr int64_t kOfTensor = 64;

Tensor Guarded(const Shape& shape) {
  const GuardedMemory memory;
  Tensor t = Tensor::Empty(DType::kF32, shape);
  t.mutable_data<float>();
  return t;
}

TEST(GuardedMemory, HoldsTensorsAndFindsWhatIsWrittenBesideThem) {
  const int64_t blocks = GuardedMemory::blocks();
  { Guarded({5}).mutable_data<float>()[4] = 1; }
  if (GuardedMemory::blocks() == blocks) GTEST_SKIP() << "a sanitizer guards memory";
  const int64_t damaged = GuardedMemory::damaged();
  { Guarded({5}).mutable_data<float>()[4] = 1; }
  EXPECT_EQ(GuardedMemory::damaged(), damaged);
  {
    Tensor t = Guarded({5});
    std::memset(static_cast<char*>(t.mutable_raw()) - kOfTensor - 1, 0, 1);
  }
  EXPECT_EQ(GuardedMemory::damaged(), damaged + 1);
}

TEST(GuardedMemory, EndsAtAPageWithoutAccess) {
  const int64_t blocks = GuardedMemory::blocks();
  Tensor t = Guarded({64});
  if (GuardedMemory::blocks() == blocks) GTEST_SKIP() << "a sanitizer guards memory";
  volatile float* const behind = t.mutable_data<float>() + 64 + kOfTensor / sizeof(float);
  EXPECT_DEATH(*behind = 1, "");
}

}  // namespace
}  // namespace heddle::testing
