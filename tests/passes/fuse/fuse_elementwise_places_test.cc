// Element-wise fusion keeps the places that operators name.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "passes/pass_manager.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

// In a body, too, operators of one place are one loop, and those of two places are two.
TEST(FuseElementwisePlaces, PlacesInABody) {
  for (const bool two : {false, true}) {
    ProgramBuilder b;
    const Shape s{4};
    b.Feed("h", DType::kF32, s).Feed("n", DType::kI64, {1}).Fill("i", {1}, 0, DType::kI64);
    b.Var("go", DType::kBool, {1}).Binary("less_than", "i", "n", "go");
    const int body = b.Block(0);
    b.In(body);
    std::string at = "h";
    for (int k = 0; k < 8; ++k) {
      const std::string next = "t" + std::to_string(k);
      b.Var(next, DType::kF32, s)
          .Op("tanh", {{"X", {at}}}, {{"Out", {next}}},
              {{"op_device", std::string(two && k >= 4 ? "gpu:0" : "cpu")}});
      at = next;
    }
    b.Unary("assign", at, "h").Increment("i").Binary("less_than", "i", "n", "go").In(0);
    b.Op("while", {{"X", {"h", "i", "n"}}, {"Condition", {"go"}}},
         {{"Out", {"h", "i", "go"}}, {"StepScopes", {}}}, {{"sub_block", BlockRef{body}}});
    b.Fetch("h");
    const auto optimized =
        passes::Optimize(b.Build().impl(), std::make_shared<Scope>(), {2, {}, {}});
    ASSERT_TRUE(optimized.ok()) << optimized.status().ToString();
    std::vector<std::string> places;
    for (const ir::Op& op : optimized->program->blocks[static_cast<size_t>(body)].ops)
      if (op.type() == "fused_elementwise") places.push_back(op.device);
    EXPECT_EQ(places,
              two ? std::vector<std::string>({"cpu", "gpu:0"}) : std::vector<std::string>({"cpu"}));
  }
}

}  // namespace
}  // namespace heddle::testing
