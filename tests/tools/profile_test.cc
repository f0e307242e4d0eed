// heddle profile: every instruction is listed, and what is computed from shapes is right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/program_builder.h"
#include "tests/tools/cli.h"

namespace heddle::tools {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

// A convolution, a product with its result and a function of that.
std::string Model() {
  heddle::testing::ProgramBuilder b;
  b.Feed("x", DType::kF32, {2, 3, 8, 8});
  b.Feed("w", DType::kF32, {4, 3, 3, 3});
  b.Feed("m", DType::kF32, {36, 5});
  b.Var("c", DType::kF32, {2, 4, 6, 6});
  b.Op("conv2d", {{"Input", {"x"}}, {"Filter", {"w"}}}, {{"Output", {"c"}}},
       {{"strides", Ints{1, 1}}, {"paddings", Ints{0, 0}}, {"dilations", Ints{1, 1}}});
  b.Reshape("c", "r", {2, 4, 36});
  b.Op("matmul_v2", {{"X", {"r"}}, {"Y", {"m"}}}, {{"Out", {"p"}}});
  b.Unary("tanh", "p", "t").Fetch("t");
  return b.Bytes();
}

TEST(Profile, CountsWhatInstructionsDo) {
  const TempDirectory directory;
  WriteFile(directory / "m.pdmodel", Model());
  const std::string command = "profile '" + (directory / "m.pdmodel") +
                              "' --random-feed --threads 1 --opt 0 --seconds 0.02 --json";
  const Outcome outcome = Heddle(command);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["threads"], 1);
  EXPECT_GE(json["runs"], 3);
  EXPECT_GT(json["run_us"], 0);
  EXPECT_GE(json["outside_share"], 0);
  EXPECT_LE(json["outside_share"], 1);
  EXPECT_GT(json["peak_copy_gbs"], 0);
  ASSERT_EQ(json["instructions"].size(), 3u);
  double us = 0, share = 0;
  for (const Json& i : json["instructions"]) {
    us += i["us"].get<double>();
    share += i["share"].get<double>();
    if (i["op"] == "conv2d") {
      EXPECT_EQ(i["flops"], 2.0 * (2 * 4 * 6 * 6) * (3 * 3 * 3));
      EXPECT_EQ(i["bytes"], 4.0 * (2 * 3 * 64 + 4 * 3 * 9 + 2 * 4 * 36));
      EXPECT_EQ(i["inputs"], "[2, 3, 8, 8] [4, 3, 3, 3]");
      EXPECT_EQ(i["outputs"], "[2, 4, 6, 6]");
    } else if (i["op"] == "matmul_v2") {
      EXPECT_EQ(i["flops"], 2.0 * (2 * 4 * 5) * 36);
    } else {
      EXPECT_EQ(i["op"], "tanh");
      EXPECT_EQ(i["flops"], 0);
      EXPECT_EQ(i["bytes"], 4.0 * 2 * (2 * 4 * 5));
    }
  }
  EXPECT_NEAR(us, json["kernels_us"].get<double>(), 1e-6 * us);
  EXPECT_NEAR(share, 1, 1e-6);
  ASSERT_EQ(json["operators"].size(), 3u);
  for (size_t i = 1; i < 3; ++i)
    EXPECT_GE(json["operators"][i - 1]["us"], json["operators"][i]["us"]);
}

TEST(Profile, TextListsTheSlowest) {
  const TempDirectory directory;
  WriteFile(directory / "m.pdmodel", Model());
  const std::string command =
      "profile '" + (directory / "m.pdmodel") + "' --random-feed --opt 0 --seconds 0 --top 1";
  const Outcome outcome = Heddle(command);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  for (const char* part : {"median of 3 runs", "outside kernels", "conv2d", "matmul_v2", "tanh"})
    EXPECT_THAT(outcome.out, HasSubstr(part));
  // Of the instructions, with their shapes, one.
  const size_t list = outcome.out.find("instruction\n");
  ASSERT_NE(list, std::string::npos) << outcome.out;
  const std::string rest = outcome.out.substr(list);
  EXPECT_EQ(std::count(rest.begin(), rest.end(), '\n'), 2) << rest;
}

TEST(Profile, WrongUsage) {
  EXPECT_EQ(Heddle("profile m --top -1").status, 2);
  EXPECT_EQ(Heddle("profile /no/such/model --random-feed").status, 1);
}

}  // namespace
}  // namespace heddle::tools
