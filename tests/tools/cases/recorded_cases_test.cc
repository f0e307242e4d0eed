// Small operator cases recorded under Paddle 2.6.2, packed into recorded_cases.tar: the operators
// that the large collections of cases do not hold. scripts/pack_cases.py makes the archive.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "tests/tools/cases/recorded.h"
#include "tests/tools/cli.h"
#include "tools/values/npy.h"

namespace heddle::tools {
namespace {

namespace fs = std::filesystem;

// Compares what a case left in `out` with what is recorded; counts the outputs in *compared.
void CheckOutputs(const std::string& folder, const std::string& out, int* compared) {
  std::istringstream io(ReadFile(folder + "/io.txt"));
  for (std::string line; std::getline(io, line);) {
    const std::vector<std::string> f = Fields(line);
    if (f.empty() || f[0] != "out" || f[2] != "dense" || f[3] == "shape") continue;
    const auto want = ReadNpy(folder + "/" + f[6]), got = ReadNpy(out + "/" + f[6]);
    ASSERT_TRUE(want.ok()) << want.status().ToString();
    ASSERT_TRUE(got.ok()) << folder << ": " << got.status().ToString();
    EXPECT_EQ(Compare(*got, *want, std::stod(f[4]), std::stod(f[5])), "")
        << folder << " " << f.back();
    ++*compared;
  }
}

TEST(RecordedCases, GiveWhatPaddleGave) {
  ASSERT_TRUE(fs::exists(ToolPath())) << ToolPath() << " is not built";
  TempDirectory temp;
  const auto cases = Unpack(HEDDLE_SOURCE_DIR "/tests/tools/cases/recorded_cases.tar", temp / "in");
  ASSERT_GT(cases.size(), 30u);
  std::string list;
  for (const std::string& name : cases) {
    fs::create_directories(temp / ("out/" + name));
    list += (temp / ("in/" + name)) + "\t" + (temp / ("out/" + name)) + "\n";
  }
  WriteFile(temp / "list", list);
  const Outcome outcome = Heddle("run-cases --list " + (temp / "list"));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, testing::HasSubstr(" 0 failed")) << outcome.err;
  for (const std::string& name : cases) {
    int compared = 0;
    CheckOutputs(temp / ("in/" + name), temp / ("out/" + name), &compared);
    EXPECT_GT(compared, 0) << name << " compares nothing";
  }
}

}  // namespace
}  // namespace heddle::tools
