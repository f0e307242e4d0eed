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

// Instructions of a loop's body have lines of their own, and nothing is counted twice.
TEST(Profile, CountsIterations) {
  heddle::testing::ProgramBuilder b;
  b.Feed("x", DType::kF32, {8, 8}).Fill("n", {1}, 5).Scale("x", "h", 1);
  b.Fill("i", {1}, 0).Binary("less_than", "i", "n", "go");
  const int body = b.Block(0);
  b.In(body).Op("matmul_v2", {{"X", {"h"}}, {"Y", {"x"}}}, {{"Out", {"t"}}});
  b.Unary("softmax", "t", "h").Increment("i").Binary("less_than", "i", "n", "go").In(0);
  b.Op("while", {{"X", {"h", "x", "i", "n"}}, {"Condition", {"go"}}},
       {{"Out", {"h", "i", "go"}}, {"StepScopes", {}}}, {{"sub_block", BlockRef{body}}});
  b.Scale("h", "y", 1).Fetch("y");
  const TempDirectory directory;
  WriteFile(directory / "m.pdmodel", b.Bytes());
  const Outcome outcome = Heddle("profile '" + (directory / "m.pdmodel") +
                                 "' --random-feed --threads 1 --opt 0 --seconds 0.02 --json");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  double us = 0;
  bool seen = false;
  for (const Json& i : json["instructions"]) {
    us += i["us"].get<double>();
    EXPECT_EQ(i["times"], i["block"] == 1 ? 5 : 1) << i;
    if (i["op"] != "matmul_v2") continue;
    seen = true;
    EXPECT_EQ(i["flops"], 5 * 2.0 * 8 * 8 * 8);
    EXPECT_GE(i["step"], 0);
  }
  EXPECT_TRUE(seen);
  EXPECT_LE(us, 1.5 * json["run_us"].get<double>());
  EXPECT_GE(json["outside_share"], 0);
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

TEST(Profile, PageHoldsTheJson) {
  const TempDirectory directory;
  WriteFile(directory / "m.pdmodel", Model());
  const std::string profile =
      "profile '" + (directory / "m.pdmodel") + "' --random-feed --seconds 0 --json";
  const std::string command = profile + " --html " + (directory / "p.html");
  const Outcome first = Heddle(command);
  ASSERT_EQ(first.status, 0) << first.err;
  const Json json = Json::parse(first.out);
  const std::string page = ReadFile(directory / "p.html");
  const auto inside = [&](const std::string& page, const std::string& id) {
    const std::string open = "<script type=\"application/json\" id=\"" + id + "\">";
    const size_t begin = page.find(open);
    const size_t end = page.find("</script>", begin);
    if (begin == std::string::npos || end == std::string::npos) return Json("not there");
    return Json::parse(page.substr(begin + open.size(), end - begin - open.size()));
  };
  EXPECT_EQ(inside(page, "profile"), json);
  EXPECT_TRUE(inside(page, "before").is_null());
  // Each instruction once, and every event and step belongs to one.
  ASSERT_EQ(json["timeline"]["events"].size(), json["instructions"].size());
  for (const Json& event : json["timeline"]["events"]) {
    const Json& in = json["instructions"].at(event[0].get<size_t>());
    EXPECT_EQ(json["plan"]["steps"].at(in["step"].get<size_t>())["op"], in["op"]);
    EXPECT_LE(event[2], event[3]);
  }
  // Beside that run another one.
  WriteFile(directory / "before.json", first.out);
  const Outcome second = Heddle(command + " --compare " + (directory / "before.json"));
  ASSERT_EQ(second.status, 0) << second.err;
  const Json before = inside(ReadFile(directory / "p.html"), "before");
  EXPECT_EQ(before["operators"], json["operators"]);
  EXPECT_EQ(before["run_us"], json["run_us"]);
  EXPECT_EQ(Heddle(command + " --compare " + (directory / "m.pdmodel")).status, 1);
  EXPECT_EQ(Heddle(profile + " --html /dev/full").status, 1);
}

TEST(Profile, NamesFromTheModelCannotBreakThePage) {
  heddle::testing::ProgramBuilder b;
  b.Feed("x", DType::kF32, {4});
  b.Unary("tanh", "x", "</script><b>\xff").Fetch("</script><b>\xff");
  const TempDirectory directory;
  WriteFile(directory / "m.pdmodel", b.Bytes());
  const Outcome outcome =
      Heddle("profile '" + (directory / "m.pdmodel") +
             "' --random-feed --seconds 0 --json --html " + (directory / "p.html"));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(Json::accept(outcome.out));
  const std::string page = ReadFile(directory / "p.html");
  EXPECT_EQ(page.find("</script><b>"), std::string::npos);
  EXPECT_NE(page.find("\\u003c/script>\\u003cb>"), std::string::npos);
}

TEST(Profile, WrongUsage) {
  EXPECT_EQ(Heddle("profile m --top -1").status, 2);
  EXPECT_EQ(Heddle("profile /no/such/model --random-feed").status, 1);
}

}  // namespace
}  // namespace heddle::tools
