// --memory-limit and --deadline-ms of the commands that run models.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/program_builder.h"
#include "tests/tools/cli.h"

namespace heddle::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kDigits = HEDDLE_SOURCE_DIR "/examples/digits";
const std::string kFeed = " --feed x=" + kDigits + "/input.npy";

void ExpectError(const Outcome& outcome, int status, const std::string& what) {
  EXPECT_EQ(outcome.status, status) << outcome.err;
  EXPECT_THAT(outcome.err, StartsWith("heddle: "));
  EXPECT_THAT(outcome.err, HasSubstr(what));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
}

TEST(Limits, OfMemoryAndTimeEndARun) {
  TempDirectory temp;
  ExpectError(Heddle("run --memory-limit 16 " + kDigits + kFeed), 1, "RESOURCE_EXHAUSTED: ");
  EXPECT_EQ(Heddle("run --memory-limit 100000000 --deadline-ms 60000 " + kDigits + kFeed).status,
            0);
  ExpectError(Heddle("bench --seconds 0.1 --memory-limit 16 " + kDigits + kFeed), 1,
              "RESOURCE_EXHAUSTED: ");
  ExpectError(Heddle("profile --seconds 0.1 --memory-limit 16 " + kDigits + kFeed), 1,
              "RESOURCE_EXHAUSTED: ");
  heddle::testing::ProgramBuilder loop;  // counts down for hours
  loop.Fill("n", {1}, 1e15, DType::kF64).Fill("none", {1}, 0, DType::kF64);
  loop.Binary("greater_than", "n", "none", "go");
  const int body = loop.Block(0);
  loop.Op("while", {{"X", {"n", "none"}}, {"Condition", {"go"}}},
          {{"Out", {"n", "go"}}, {"StepScopes", {"s"}}},
          {{"sub_block", BlockRef{body}}, {"is_test", true}});
  loop.Fetch("n");
  loop.In(body).Increment("n", -1).Binary("greater_than", "n", "none", "on");
  loop.Op("assign", {{"X", {"on"}}}, {{"Out", {"go"}}});
  WriteFile(temp / "loop.pdmodel", loop.Bytes());
  for (const char* ms : {"100", "0.5", "0.00001", "1e-300"})
    ExpectError(Heddle("run --deadline-ms " + std::string(ms) + " " + (temp / "loop.pdmodel")), 1,
                "DEADLINE_EXCEEDED: ");
  ExpectError(Heddle("bench --seconds 0.1 --deadline-ms 100 " + (temp / "loop.pdmodel")), 1,
              "DEADLINE_EXCEEDED: ");
  ExpectError(Heddle("profile --seconds 0.1 --deadline-ms 100 " + (temp / "loop.pdmodel")), 1,
              "DEADLINE_EXCEEDED: ");
}

TEST(Limits, AreNumbersInTheirRange) {
  const std::string run = "run " + kDigits + kFeed;
  for (const char* ms : {"1e300", "123456.75", "0x7fffffff"})
    EXPECT_EQ(Heddle(run + " --deadline-ms " + ms).status, 0) << ms;
  for (const char* wrong : {"--deadline-ms nan", "--deadline-ms 0", "--deadline-ms=-1",
                            "--deadline-ms 1ms", "--deadline-ms inf", "--memory-limit 1.5",
                            "--memory-limit=-1", "--memory-limit 99999999999999999999",
                            "--threads 4294967297", "--threads 2.5", "--repeat nan"})
    ExpectError(Heddle(run + " " + wrong), 2,
                std::string(wrong).substr(0, std::string(wrong).find_first_of(" =")) + ": ");
  ExpectError(Heddle(run + " --threads 4294967297"), 2,
              "'4294967297' is not a whole number from -2147483648 to 2147483647");
}

}  // namespace
}  // namespace heddle::tools
