// TensorFlow graphs whose ranks are hidden from the reader, with TensorFlow's answers, packed into
// hidden_shapes.tar: random ones, recorded operator cases put into loops and functions, and such
// with indices of all integer types. scripts/hidden_shapes/pack_tensorflow.py makes the archive.
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

// Lines of a graph's io.txt: in or out, name, file, dtype, shape, check, rtol, atol.
int CheckGraphOutputs(const std::string& folder, const std::string& out) {
  int compared = 0;
  std::istringstream io(ReadFile(folder + "/io.txt"));
  for (std::string line; std::getline(io, line);) {
    const std::vector<std::string> f = Fields(line);
    if (f.empty() || f[0] != "out") continue;
    const auto want = ReadNpy(folder + "/" + f[2]), got = ReadNpy(out + "/" + f[2]);
    EXPECT_TRUE(want.ok()) << want.status().ToString();
    EXPECT_TRUE(got.ok()) << folder << ": " << got.status().ToString();
    if (!want.ok() || !got.ok()) continue;
    EXPECT_EQ(Compare(*got, *want, std::stod(f[6]), std::stod(f[7])), "") << folder << " " << f[1];
    ++compared;
  }
  return compared;
}

class HiddenShapes : public testing::TestWithParam<const char*> {};

TEST_P(HiddenShapes, GiveWhatTensorflowGave) {
  ASSERT_TRUE(fs::exists(ToolPath())) << ToolPath() << " is not built";
  TempDirectory temp;
  const auto cases = Unpack(HEDDLE_SOURCE_DIR "/tests/tools/cases/hidden_shapes.tar", temp / "in");
  ASSERT_GT(cases.size(), 60u);
  std::string list;
  for (const std::string& name : cases) {
    fs::create_directories(temp / ("out/" + name));
    list += (temp / ("in/" + name)) + "\t" + (temp / ("out/" + name)) + "\n";
  }
  WriteFile(temp / "list", list);
  const Outcome outcome = Heddle("run-cases --list " + (temp / "list") + " " + GetParam());
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, testing::HasSubstr(" 0 failed")) << outcome.err;
  for (const std::string& name : cases)
    EXPECT_GT(CheckGraphOutputs(temp / ("in/" + name), temp / ("out/" + name)), 0) << name;
}

INSTANTIATE_TEST_SUITE_P(Levels, HiddenShapes,
                         testing::Values("--opt 0 --threads 1", "--opt 1 --threads 2",
                                         "--opt 2 --threads 1", "--opt 2 --threads 2"));

}  // namespace
}  // namespace heddle::tools
