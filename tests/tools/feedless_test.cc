// Programs without feed and fetch operators, as training programs are: what is read before it is
// written is fed, and the loss, or what nobody reads, is fetched.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "heddle/params.h"
#include "tests/support/program_builder.h"
#include "tests/tools/cli.h"
#include "tests/tools/npz_maker.h"

namespace heddle::tools {
namespace {

using heddle::testing::ProgramBuilder;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

class Feedless : public ::testing::Test {
 protected:
  void SetUp() override {
    ProgramBuilder b;
    b.Var("x", DType::kF32, {-1, 3}).Param("w", DType::kF32, {3, 1});
    b.Binary("matmul_v2", "x", "w", "y").Op("mean", {{"X", {"y"}}}, {{"Out", {"loss"}}});
    b.Fill("loss@GRAD", {1}, 1);
    b.Op("mean_grad", {{"X", {"y"}}, {"Out@GRAD", {"loss@GRAD"}}}, {{"X@GRAD", {"y@GRAD"}}});
    b.Scale("w", "w", 0.5);
    Scope scope;
    scope.Set("w", heddle::testing::F32({3, 1}, {1, 2, 3}));
    WriteFile(temp_ / "main.pdmodel", b.Bytes());
    ASSERT_TRUE(SaveParameters(b.Build(), scope, temp_ / "w.pdiparams").ok());
    WriteFile(temp_ / "x.npy", FloatNpy("(2, 3)", {1, 1, 1, 2, 2, 2}));
    model_ = (temp_ / "main.pdmodel") + " --params " + (temp_ / "w.pdiparams");
  }
  static Json Parsed(const Outcome& o) {
    EXPECT_EQ(o.status, 0) << o.err;
    return o.status == 0 ? Json::parse(o.out) : Json();
  }
  TempDirectory temp_;
  std::string model_;
};

TEST_F(Feedless, Runs) {
  const std::string feed = " --feed x=" + (temp_ / "x.npy");
  const Json json = Parsed(Heddle("run " + model_ + feed + " --json"));
  ASSERT_EQ(json["outputs"].size(), 1u);
  EXPECT_EQ(json["outputs"][0]["name"], "loss");
  EXPECT_EQ(json["outputs"][0]["mean"], 9);
  const Json named = Parsed(Heddle("run " + model_ + feed + " --fetch y --json"));
  EXPECT_EQ(named["outputs"][0]["name"], "y");
  EXPECT_EQ(named["outputs"][0]["max"], 12);
  const Outcome missing = Heddle("run " + model_);
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(missing.err, HasSubstr("'x'"));
  const Outcome other = Heddle("run " + model_ + " --feed y=" + (temp_ / "x.npy"));
  EXPECT_THAT(other.err, HasSubstr("the model's inputs are: x"));
}

TEST_F(Feedless, PlansBenchesAndProfiles) {
  const Json plan = Parsed(Heddle("plan " + model_ + " --shape x=5,3 --json"));
  ASSERT_EQ(plan["feeds"].size(), 1u);
  EXPECT_EQ(plan["feeds"][0]["name"], "x");
  EXPECT_EQ(plan["fetches"][0]["name"], "loss");
  const Json bench =
      Parsed(Heddle("bench " + model_ + " --random-feed --seconds 0.05 --warmup 0 --json"));
  EXPECT_GT(bench["instructions"], 2);
  const Outcome profile = Heddle("profile " + model_ + " --random-feed --seconds 0.05");
  EXPECT_EQ(profile.status, 0) << profile.err;
  EXPECT_THAT(profile.out, HasSubstr("matmul"));
}

TEST_F(Feedless, WithoutALossWhatNobodyReadsIsFetched) {
  ProgramBuilder b;
  b.Var("x", DType::kF32, {2}).Unary("relu", "x", "a").Unary("exp", "a", "b").Scale("a", "c", 2);
  WriteFile(temp_ / "plain.pdmodel", b.Bytes());
  const Json json = Parsed(Heddle("run " + (temp_ / "plain.pdmodel") + " --random-feed --json"));
  ASSERT_EQ(json["outputs"].size(), 2u);
  EXPECT_EQ(json["outputs"][0]["name"], "b");
  EXPECT_EQ(json["outputs"][1]["name"], "c");
}

TEST_F(Feedless, WhatBlocksReadIsFed) {
  ProgramBuilder b;
  b.Var("x", DType::kF32, {1}).Var("step", DType::kF32, {1}).Fill("i", {1}, 0);
  b.Binary("less_than", "i", "x", "go");
  const int body = b.Block(0);
  b.In(body).Binary("elementwise_add", "i", "step", "i").Binary("less_than", "i", "x", "go").In(0);
  b.Op("while", {{"X", {"i", "x"}}, {"Condition", {"go"}}},
       {{"Out", {"i", "go"}}, {"StepScopes", {}}}, {{"sub_block", BlockRef{body}}});
  std::vector<std::string> names;
  for (const TensorInfo& info : b.Build().unwritten()) names.push_back(info.name);
  EXPECT_EQ(names, (std::vector<std::string>{"x", "step"}));
}

}  // namespace
}  // namespace heddle::tools
