// The tool on damaged and foreign files: one line on stderr, status 1, nothing else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/tools/cli.h"

namespace heddle::tools {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const std::string kDigits = HEDDLE_SOURCE_DIR "/examples/digits";

class BadFiles : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(std::filesystem::exists(ToolPath())) << ToolPath() << " is not built";
    program_ = ReadFile(kDigits + "/model.pdmodel");
    parameters_ = ReadFile(kDigits + "/model.pdiparams");
    WriteFile(temp_ / "input.npy", ReadFile(kDigits + "/input.npy"));
  }
  // Runs the model with these files in place of its own.
  void ExpectRefused(const std::string& program, const std::string& parameters,
                     const std::string& what, const std::string& input = "input.npy") {
    WriteFile(temp_ / "model.pdmodel", program);
    WriteFile(temp_ / "model.pdiparams", parameters);
    const Outcome o = Heddle("run " + (temp_ / "model.pdmodel") + " --feed x=" + (temp_ / input));
    EXPECT_EQ(o.status, 1) << o.err;
    EXPECT_THAT(o.err, StartsWith("heddle: "));
    EXPECT_THAT(o.err, HasSubstr(what));
    EXPECT_EQ(std::count(o.err.begin(), o.err.end(), '\n'), 1) << o.err;
  }
  TempDirectory temp_;
  std::string program_, parameters_;
};

TEST_F(BadFiles, GoodOnesRun) {
  WriteFile(temp_ / "model.pdmodel", program_);
  WriteFile(temp_ / "model.pdiparams", parameters_);
  EXPECT_EQ(
      Heddle("run " + (temp_ / "model.pdmodel") + " --feed x=" + (temp_ / "input.npy")).status, 0);
}

TEST_F(BadFiles, APrefixOfAProgram) {
  for (size_t n = 1; n < program_.size(); n += program_.size() / 7)
    ExpectRefused(program_.substr(0, n), parameters_, "model.pdmodel");
  ExpectRefused("", parameters_, "empty");
}

TEST_F(BadFiles, OtherFormats) {
  ExpectRefused("{\"base_code\": {\"magic\": \"pir\"}}", parameters_, "PIR");
  ExpectRefused(std::string("\x08\x07\x12\x07pytorch", 11), parameters_, "ONNX");
  ExpectRefused("no program at all", parameters_, "model.pdmodel");
}

TEST_F(BadFiles, ParametersTooShortOrTooLong) {
  ExpectRefused(program_, parameters_.substr(0, parameters_.size() - 5), "cut short");
  ExpectRefused(program_, parameters_ + "12345", "5 bytes");
  ExpectRefused(program_, "", "model.pdiparams");
}

TEST_F(BadFiles, AnArrayFileThatIsNone) {
  WriteFile(temp_ / "text.npy", "1, 2, 3");
  ExpectRefused(program_, parameters_, "text.npy", "text.npy");
  WriteFile(temp_ / "empty.npy", "");
  ExpectRefused(program_, parameters_, "empty.npy", "empty.npy");
  WriteFile(temp_ / "model.npy", program_);
  ExpectRefused(program_, parameters_, "model.npy", "model.npy");
}

}  // namespace
}  // namespace heddle::tools
