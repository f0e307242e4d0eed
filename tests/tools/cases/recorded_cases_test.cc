// Small operator cases recorded under Paddle 2.6.2, packed into recorded_cases.tar: the operators
// that the large collections of cases do not hold. scripts/pack_cases.py makes the archive.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <filesystem>
#include <map>
#include <sstream>

#include "core/dtype_of.h"
#include "tests/tools/cli.h"
#include "tools/values/npy.h"

namespace heddle::tools {
namespace {

namespace fs = std::filesystem;

// Unpacks a tar of plain files; the names of their folders.
std::vector<std::string> Unpack(const std::string& archive, const std::string& to) {
  constexpr size_t kBlock = 512;
  const std::string bytes = ReadFile(archive);
  std::vector<std::string> folders;
  for (size_t at = 0; at + kBlock <= bytes.size() && bytes[at] != '\0';) {
    const std::string name(bytes.c_str() + at);  // ends before the header does
    const size_t size = std::stoul(bytes.substr(at + 124, 11), nullptr, 8);
    const std::string folder = fs::path(name).parent_path();
    if (folders.empty() || folders.back() != folder) {
      folders.push_back(folder);
      fs::create_directories(to + "/" + folder);
    }
    WriteFile(to + "/" + name, bytes.substr(at + kBlock, size));
    at += kBlock + (size + kBlock - 1) / kBlock * kBlock;
  }
  return folders;
}

std::vector<std::string> Fields(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream in(line);
  for (std::string field; std::getline(in, field, '\t');) fields.push_back(field);
  return fields;
}

// Why the tensors do not agree; empty when they do.
std::string Compare(const Tensor& got, const Tensor& want, double rtol, double atol) {
  if (got.dtype() != want.dtype() || !(got.shape() == want.shape()))
    return std::string(Name(got.dtype())) + " " + got.shape().ToString() + ", expected " +
           std::string(Name(want.dtype())) + " " + want.shape().ToString();
  std::string reason = "a dtype that is not compared";
  VisitDType<bool, uint8_t, int8_t, int16_t, int32_t, int64_t, float, double>(
      want.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        reason.clear();
        for (int64_t i = 0; i < want.numel() && reason.empty(); ++i) {
          const auto a = static_cast<double>(got.data<T>()[i]);
          const auto b = static_cast<double>(want.data<T>()[i]);
          if (a == b || (std::isnan(a) && std::isnan(b))) continue;
          if (!(std::abs(a - b) <= atol + rtol * std::abs(b)))
            reason = "element " + std::to_string(i) + ": " + std::to_string(a) + ", expected " +
                     std::to_string(b);
        }
      });
  return reason;
}

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
