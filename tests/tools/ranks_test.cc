// --ranks: programs that run as a group.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/program_builder.h"
#include "tests/tools/cli.h"
#include "tests/tools/npz_maker.h"

namespace heddle::tools {
namespace {

using heddle::testing::ProgramBuilder;
using ::testing::HasSubstr;
using Json = nlohmann::json;

TEST(RanksOption, RunsAGroup) {
  const TempDirectory temp;
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2, 3});
  b.Op("c_allreduce_sum", {{"X", {"x"}}}, {{"Out", {"y"}}});
  b.Fetch("y");
  WriteFile(temp / "sum.pdmodel", b.Bytes());
  WriteFile(temp / "x.npy", FloatNpy("(2, 3)", {1, 1, 1, 2, 2, 2}));
  const std::string run = "run " + (temp / "sum.pdmodel") + " --feed x=" + (temp / "x.npy");
  for (const int ranks : {1, 3}) {
    const Outcome o = Heddle(run + " --json --repeat 2 --ranks " + std::to_string(ranks));
    ASSERT_EQ(o.status, 0) << o.err;
    EXPECT_EQ(Json::parse(o.out)["outputs"][0]["max"], 2 * ranks);
  }
  const Outcome alone = Heddle(run);
  EXPECT_EQ(alone.status, 1);
  EXPECT_THAT(alone.err, HasSubstr("none of a group's"));
  const Outcome wrong = Heddle(run + " --ranks 0");
  EXPECT_EQ(wrong.status, 2);
  // What fails, fails on all ranks, and the command ends.
  ProgramBuilder two;
  two.Feed("x", DType::kF32, {2, 3});
  two.Op("c_allgather", {{"X", {"x"}}}, {{"Out", {"y"}}}, {{"nranks", int64_t{2}}});
  two.Fetch("y");
  WriteFile(temp / "two.pdmodel", two.Bytes());
  const Outcome three =
      Heddle("run " + (temp / "two.pdmodel") + " --feed x=" + (temp / "x.npy") + " --ranks 3");
  EXPECT_EQ(three.status, 1);
  EXPECT_THAT(three.err, HasSubstr("is made for 2 ranks; this group has 3"));
}

TEST(RanksOption, TrainsOnShards) {
  const TempDirectory temp;
  const std::string folder = HEDDLE_SOURCE_DIR "/tests/ranks/data_parallel/";
  for (const int ranks : {1, 2, 4}) {
    const std::string n = std::to_string(ranks);
    const Outcome o = Heddle("train --startup " + folder + "startup.pdmodel --main " + folder +
                             "main_" + n + ".pdmodel --ranks " + n + " --threads 1 --data " +
                             folder + "shards.npz --batch-size " + std::to_string(32 / ranks) +
                             " --epochs 1 --quiet --json --save " + (temp / ("p" + n + "/")));
    ASSERT_EQ(o.status, 0) << o.err;
    const Json json = Json::parse(o.out);
    EXPECT_EQ(json["steps"], 12);
    // The last line of what Paddle computes, rank 0.
    std::istringstream words(ReadFile(folder + "losses_" + n + ".txt"));
    double expected = 0;
    for (int at = 0; at < 11 * ranks + 1; ++at) words >> expected;
    ASSERT_EQ(json["last"].size(), 1u);
    EXPECT_NEAR(json["last"].begin()->get<double>(), expected, 1e-5 * expected + 1e-7);
  }
  const Outcome checkpoint =
      Heddle("train --startup " + folder + "startup.pdmodel --main " + folder +
             "main_2.pdmodel --ranks 2 --data " + folder +
             "shards.npz --batch-size 16 --epochs 1 --checkpoint " + (temp / "run"));
  EXPECT_EQ(checkpoint.status, 1);
  EXPECT_THAT(checkpoint.err, HasSubstr("--checkpoint is for one rank"));
}

}  // namespace
}  // namespace heddle::tools
