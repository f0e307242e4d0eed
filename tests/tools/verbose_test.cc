// Messages of the tool at the levels of GLOG_v.
#include "tools/verbose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/program_builder.h"
#include "tests/tools/cli.h"

namespace heddle::tools {
namespace {

using heddle::testing::ProgramBuilder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Verbose, EachLevelSaysMore) {
  const TempDirectory temp;
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2, 3});
  b.Unary("assign", "x", "copy").Unary("softmax", "copy", "y").Fetch("y");
  WriteFile(temp / "model.pdmodel", b.Bytes());
  const auto said = [&](const std::string& level) {
    const Outcome o = RunCommand((level.empty() ? "" : "GLOG_v=" + level + " ") + "'" + ToolPath() +
                                 "' run " + (temp / "model.pdmodel") + " --random-feed");
    EXPECT_EQ(o.status, 0) << o.err;
    return o.err;
  };
  const auto passes = HasSubstr("pass identity, round 1: 2 -> 1 operators");
  const auto plan = HasSubstr("0  softmax [static]");
  const auto run = HasSubstr("softmax(X float32 [2, 3]) -> y (Out float32 [2, 3])");
  const auto memory = HasSubstr("bytes alive at cpu");
  EXPECT_THAT(said(""), Not(HasSubstr("verbose.cc")));
  EXPECT_THAT(said("1"), AllOf(passes, Not(plan), Not(run), Not(memory)));
  EXPECT_THAT(said("2"), AllOf(passes, plan, Not(run), Not(memory)));
  EXPECT_THAT(said("3"), AllOf(passes, plan, run, Not(memory)));
  EXPECT_THAT(said("4"), AllOf(passes, plan, run, memory));
}

}  // namespace
}  // namespace heddle::tools
