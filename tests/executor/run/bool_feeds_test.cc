// Bytes of bools that users feed: any but 0 is true, as in NumPy, whatever reads them.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

TEST(BoolFeeds, EveryByteButZeroIsTrue) {
  std::mt19937 random(1);
  for (int i = 0; i < 48; ++i) {
    const auto n = static_cast<int64_t>(1 + random() % 200);
    std::vector<uint8_t> bytes(static_cast<size_t>(n));
    for (uint8_t& b : bytes)
      b = random() % 2 == 0 ? static_cast<uint8_t>(random() % 2) : static_cast<uint8_t>(random());
    ProgramBuilder b;
    b.Feed("b", DType::kBool, {-1}).Feed("x", DType::kF32, {-1}).Feed("y", DType::kF32, {-1});
    b.Op("cast", {{"X", {"b"}}}, {{"Out", {"i"}}}, {{"in_dtype", 0}, {"out_dtype", 2}});
    b.Op("logical_not", {{"X", {"b"}}}, {{"Out", {"n"}}});
    b.Op("logical_and", {{"X", {"b"}}, {"Y", {"b"}}}, {{"Out", {"a"}}});
    b.Op("where", {{"Condition", {"b"}}, {"X", {"x"}}, {"Y", {"y"}}}, {{"Out", {"w"}}});
    b.Op("reduce_any", {{"X", {"b"}}}, {{"Out", {"any"}}}, {{"reduce_all", true}});
    b.Op("assign", {{"X", {"b"}}}, {{"Out", {"s"}}});
    const std::vector<std::string> fetches = {"i", "n", "a", "w", "any", "s"};
    for (const std::string& name : fetches) b.Fetch(name);
    const auto size = static_cast<size_t>(n);
    const Tensor fed = Tensor::Of(DType::kBool, {n}, bytes);
    Executor executor({.threads = 1 + i % 2});
    CompileOptions options;
    options.opt_level = i % 3;
    const auto compiled = MustCompile(executor, b.Build(), std::make_shared<Scope>(), options);
    const auto out = MustRun(executor, compiled,
                             {{"b", fed},
                              {"x", F32({n}, std::vector<float>(size, 1))},
                              {"y", F32({n}, std::vector<float>(size, 2))}});
    bool any = false;
    for (int64_t k = 0; k < n; ++k) {
      const bool truth = bytes[static_cast<size_t>(k)] != 0;
      any = any || truth;
      const auto at = [&](size_t f) { return static_cast<const uint8_t*>(out[f].raw())[k]; };
      ASSERT_EQ(static_cast<const int32_t*>(out[0].raw())[k], truth ? 1 : 0) << i << " " << k;
      ASSERT_EQ(at(1), truth ? 0 : 1) << i << " " << k;
      ASSERT_EQ(at(2), truth ? 1 : 0) << i << " " << k;
      ASSERT_EQ(out[3].data<float>()[k], truth ? 1 : 2) << i << " " << k;
      ASSERT_EQ(at(5), truth ? 1 : 0) << i << " " << k;
    }
    ASSERT_EQ(*static_cast<const uint8_t*>(out[4].raw()), any ? 1 : 0) << i;
    // The user's memory is as it was.
    ASSERT_EQ(std::vector<uint8_t>(static_cast<const uint8_t*>(fed.raw()),
                                   static_cast<const uint8_t*>(fed.raw()) + n),
              bytes);
  }
}

}  // namespace
}  // namespace heddle::testing
