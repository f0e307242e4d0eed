// Programs on the grid device against the host: what is placed there, and what comes out.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/grid/grid_device.h"
#include "tests/support/net_program.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

std::vector<double> Doubles(const Tensor& t) {
  std::vector<double> v;
  for (int64_t i = 0; i < t.numel(); ++i)
    v.push_back(t.dtype() == DType::kF32 ? static_cast<double>(t.data<float>()[i])
                                         : t.data<double>()[i]);
  return v;
}

// Sums are added up in another order than on the host.
void ExpectNear(const Tensor& got, const Tensor& want, const std::string& what) {
  ASSERT_EQ(got.dtype(), want.dtype()) << what;
  ASSERT_EQ(got.shape().ToString(), want.shape().ToString()) << what;
  if (want.dtype() != DType::kF32 && want.dtype() != DType::kF64) {
    EXPECT_TRUE(Bits(got) == Bits(want)) << what;
    return;
  }
  const std::vector<double> a = Doubles(got), b = Doubles(want);
  double largest = 1e-3;
  for (const double v : b) largest = std::max(largest, std::fabs(v));
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    ASSERT_NEAR(a[i], b[i], 1e-4 * largest) << what << " [" << i << "]";
  }
}

// Ten programs each. Some hold little that the device has kernels for.
class GridPrograms : public ::testing::TestWithParam<uint32_t> {};

void Compare(uint32_t seed, size_t* on_device) {
  const NetProgram net(seed, 25);
  const Program program = net.Build();
  for (const int level : {0, 2}) {
    auto device = std::make_shared<GridDevice>();
    Executor host({.threads = 1}), grid({.threads = 1, .device = device});
    const auto host_scope = net.NewScope(), grid_scope = net.NewScope();
    const CompiledProgram there = MustCompile(host, program, host_scope, {.opt_level = level});
    const CompiledProgram here = MustCompile(grid, program, grid_scope, {.opt_level = level});
    for (int run = 0; run < 2; ++run) {
      const auto want = MustRun(host, there, net.feeds()), got = MustRun(grid, here, net.feeds());
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < got.size(); ++i)
        ExpectNear(got[i], want[i],
                   "seed " + std::to_string(seed) + ", level " + std::to_string(level) +
                       ", result " + std::to_string(i));
    }
    *on_device += device->covered().size();
  }
}

TEST_P(GridPrograms, AreAsOnTheHost) {
  size_t on_device = 0;
  for (uint32_t k = 0; k < 10; ++k) {
    Compare(10 * GetParam() + k, &on_device);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(on_device, 10u * 2 * 3) << "next to nothing ran on the device";
}
INSTANTIATE_TEST_SUITE_P(Seeds, GridPrograms, ::testing::Range(0u, 4u));

// Products of pieces side by side, an empty one among them.
TEST(GridProducts, OfPieces) {
  for (const bool trans : {false, true})
    for (const bool residual : {false, true}) {
      ProgramBuilder b;
      const Shape w = trans ? Shape{9, 12} : Shape{12, 9};
      std::vector<Feed> feeds;
      Slots in{{"X", {}}, {"Y", {"w"}}};
      for (const int64_t width : {5, 0, 7}) {
        const std::string name = "x" + std::to_string(width);
        b.Feed(name, DType::kF32, {2, 3, width});
        feeds.push_back({name, RandomF32({2, 3, width}, static_cast<uint32_t>(width) + 1)});
        in[0].second.push_back(name);
      }
      b.Param("w", DType::kF32, w);
      if (residual) {
        b.Feed("r", DType::kF32, {2, 3, 9});
        feeds.push_back({"r", RandomF32({2, 3, 9}, 20)});
        in.push_back({"ResidualData", {"r"}});
      }
      b.Op("fused_matmul", in, {{"Out", {"y"}}}, {{"trans_y", trans}}).Fetch("y");
      const Program program = b.Build();
      auto scope = std::make_shared<Scope>();
      scope->Set("w", Value(RandomF32(w, 3)));
      auto device = std::make_shared<GridDevice>();
      Executor host({.threads = 1}), grid({.threads = 1, .device = device});
      const auto there = MustCompile(host, program, scope, {.opt_level = 0});
      const auto here = MustCompile(grid, program, scope, {.opt_level = 0});
      const Tensor want = MustRun(host, there, feeds)[0];
      ExpectNear(MustRun(grid, here, feeds)[0], want, trans ? "transposed" : "plain");
      EXPECT_EQ(device->covered().count("fused_matmul"), 1u);
    }
}

}  // namespace
}  // namespace heddle::testing
