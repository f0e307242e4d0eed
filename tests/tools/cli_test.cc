// The command line: exit codes, messages, and what each command prints for the digits model.
#include "tests/tools/cli.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/tools/cases/case_maker.h"

namespace heddle::tools {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const std::string kDigits = HEDDLE_SOURCE_DIR "/examples/digits";
const std::string kFeed = " --feed x=" + kDigits + "/input.npy";

class CliTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(std::filesystem::exists(ToolPath())) << ToolPath() << " is not built";
  }
  // One line, so that a program that calls the tool can show it.
  static void ExpectError(const Outcome& outcome, int status, const std::string& what) {
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_THAT(outcome.err, StartsWith("heddle: "));
    EXPECT_THAT(outcome.err, HasSubstr(what));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
  TempDirectory temp_;
};

TEST_F(CliTest, WrongUsageIsStatus2) {
  const Outcome nothing = Heddle("");
  EXPECT_EQ(nothing.status, 2);
  EXPECT_THAT(nothing.err, HasSubstr("Examples:"));
  ExpectError(Heddle("fly"), 2, "fly");
  ExpectError(Heddle("run"), 2, "MODEL");
  ExpectError(Heddle("run m --no-such-option"), 2, "--no-such-option");
  ExpectError(Heddle("run m --feed x"), 2, "NAME=VALUE");
  ExpectError(Heddle("run m --feed =a.npy"), 2, "NAME=VALUE");
  ExpectError(Heddle("run m --shape x=1,-2"), 2, "--shape");
  ExpectError(Heddle("run m --shape x=1,,2"), 2, "--shape");
  ExpectError(Heddle("run m --lod x=1,2"), 2, "sequence offsets");
  ExpectError(Heddle("run m --lod x=0,2,1"), 2, "sequence offsets");
  ExpectError(Heddle("run m --opt 3"), 2, "--opt");
  ExpectError(Heddle("run m --threads -1"), 2, "--threads");
  ExpectError(Heddle("run m --threads two"), 2, "--threads");
  ExpectError(Heddle("run m --repeat 0"), 2, "--repeat");
  ExpectError(Heddle("run m --serial --parallel"), 2, "--serial");
  ExpectError(Heddle("run m --random-places -2"), 2, "--random-places");
  ExpectError(Heddle("run m --place mars"), 2, "no device 'mars'");
  ExpectError(Heddle("run-case d"), 2, "--out");
  ExpectError(Heddle("run-cases"), 2, "--list");
  ExpectError(Heddle("bench m --clients 0"), 2, "--clients");
}

TEST_F(CliTest, HelpIsStatus0) {
  EXPECT_EQ(Heddle("--help").status, 0);
  for (const char* c :
       {"run", "bench", "inspect", "ops", "plan", "profile", "run-case", "run-cases"}) {
    const Outcome help = Heddle(std::string(c) + " --help");
    EXPECT_EQ(help.status, 0) << c;
    EXPECT_THAT(help.out, HasSubstr("Example")) << c;
    EXPECT_EQ(help.err, "") << c;
  }
}

TEST_F(CliTest, AFailedRunIsStatus1) {
  ExpectError(Heddle("run /no/such/model"), 1, "/no/such/model");
  ExpectError(Heddle("inspect /no/such/model"), 1, "/no/such/model");
  ExpectError(Heddle("bench /no/such/model --random-feed"), 1, "/no/such/model");
  WriteFile(temp_ / "garbage.pdmodel", "this is no program");
  ExpectError(Heddle("run " + (temp_ / "garbage.pdmodel")), 1, "garbage.pdmodel");
  ExpectError(Heddle("run " + kDigits), 1, "--feed x=FILE.npy");
  ExpectError(Heddle("run " + kDigits + " --random-feed --shape y=1"), 1, "inputs are: x");
  ExpectError(Heddle("run " + kDigits + " --feed y=z.npy"), 1, "inputs are: x");
  ExpectError(Heddle("run " + kDigits + kFeed + kFeed), 1, "twice");
  ExpectError(Heddle("run " + kDigits + " --feed x=/no/such.npy"), 1, "/no/such.npy");
  ExpectError(Heddle("run " + kDigits + kFeed + " --labels /no/such"), 1, "/no/such");
  ExpectError(Heddle("run " + kDigits + kFeed + " --fetch no_such_variable"), 1,
              "no_such_variable");
  ExpectError(Heddle("run " + kDigits + kFeed + " --out /proc/nowhere"), 1, "/proc/nowhere");
  const std::string npy = ReadFile(kDigits + "/input.npy");
  WriteFile(temp_ / "cut.npy", npy.substr(0, npy.size() - 1));
  ExpectError(Heddle("run " + kDigits + " --feed x=" + (temp_ / "cut.npy")), 1, "cut.npy");
  WriteFile(temp_ / "cut.npz", npy);
  ExpectError(Heddle("run " + kDigits + " --feed-npz " + (temp_ / "cut.npz")), 1, "cut.npz");
  WriteFile(temp_ / "int.npy", NpyBytes("<i8", "(1, 1, 8, 8)", std::string(512, '\0')));
  ExpectError(Heddle("run " + kDigits + " --feed x=" + (temp_ / "int.npy")), 1, "x");
}

TEST_F(CliTest, RunShowsAPrediction) {
  const Outcome outcome = Heddle("run " + kDigits + kFeed + " --labels " + kDigits + "/labels.txt");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_THAT(outcome.out, HasSubstr("float32 [4, 10]"));
  EXPECT_THAT(outcome.out, HasSubstr("largest at 8"));
  EXPECT_THAT(outcome.out, HasSubstr("eight"));
}

TEST_F(CliTest, RunAnswersInJson) {
  const Outcome outcome = Heddle("run " + kDigits + kFeed + " --json");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  std::string packed = outcome.out;
  packed.erase(std::remove_if(packed.begin(), packed.end(), isspace), packed.end());
  EXPECT_THAT(packed, HasSubstr("\"argmax\":[8,5,5,1]"));
}

TEST_F(CliTest, EveryWayOfRunningWritesTheSame) {
  const std::string ways[] = {"--threads 1 --serial --opt 0", "--threads 2 --parallel --opt 0",
                              "--threads 2 --repeat 3 --opt 0"};
  std::string first;
  for (const std::string& way : ways) {
    const Outcome outcome =
        Heddle("run " + kDigits + kFeed + " " + way + " --out " + (temp_ / "o"));
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const std::string written = ReadFile(temp_ / "o/out_0.npy");
    EXPECT_EQ(written.size(), 128u + 4 * 10 * 4) << way;
    if (first.empty()) first = written;
    EXPECT_EQ(written, first) << way;
  }
  EXPECT_THAT(Heddle("run " + kDigits + kFeed + " --repeat 3").out, HasSubstr("3 runs"));
}

TEST_F(CliTest, RunFetchesByName) {
  const Outcome outcome = Heddle("run " + kDigits + kFeed + " --fetch conv2d_0.tmp_2");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("conv2d_0.tmp_2"));
  EXPECT_THAT(outcome.out, HasSubstr("[4, 8, 8, 8]"));
}

TEST_F(CliTest, RandomFeedsAreTheSameEveryTime) {
  const std::string run = "run " + kDigits + " --random-feed --shape x=2,1,8,8 --out ";
  ASSERT_EQ(Heddle(run + (temp_ / "a")).status, 0);
  ASSERT_EQ(Heddle(run + (temp_ / "b")).status, 0);
  EXPECT_EQ(ReadFile(temp_ / "a/out_0.npy"), ReadFile(temp_ / "b/out_0.npy"));
  EXPECT_THAT(ReadFile(temp_ / "a/out_0.npy"), HasSubstr("(2, 10)"));
}

// A program that counts its runs in a persistable variable.
TEST_F(CliTest, RepeatNoticesARunThatDiffers) {
  ProgramMaker program;
  program.AddHolder("feed", proto::VarType::FEED_MINIBATCH);
  program.AddHolder("fetch", proto::VarType::FETCH_LIST);
  program.AddVar("n", proto::VarType::FP32, {1}, /*persistable=*/true);
  auto* step = program.AddOp("increment", "n", "n")->add_attrs();
  step->set_name("step");
  step->set_type(proto::FLOAT);
  step->set_f(1);
  program.AddFeedOrFetch("fetch", "n", "fetch");
  WriteFile(temp_ / "model.pdmodel", program.bytes());
  // LoD version, no levels, tensor version, TensorDesc{FP32, [1]}, 0.0f
  WriteFile(temp_ / "model.pdiparams", std::string(4 + 8 + 4, '\0') + std::string("\4\0\0\0", 4) +
                                           "\x08\x05\x10\x01" + std::string(4, '\0'));
  const std::string run = "run " + (temp_ / "model.pdmodel");
  EXPECT_EQ(Heddle(run).status, 0) << Heddle(run).err;
  ExpectError(Heddle(run + " --repeat 2"), 1, "differs from the first in output 0 (n)");
}

TEST_F(CliTest, InspectListsAModel) {
  const Outcome outcome = Heddle("inspect " + kDigits);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  for (const char* part :
       {"x  float32 [?, 1, 8, 8]", "softmax", "3  conv2d", "2.6.2", "parameters"})
    EXPECT_THAT(outcome.out, HasSubstr(part));
  EXPECT_THAT(outcome.out, Not(HasSubstr("not supported")));
  const Outcome json = Heddle("inspect " + kDigits + " --json");
  EXPECT_EQ(json.status, 0);
  EXPECT_THAT(json.out, HasSubstr("\"parameter_bytes\": 50"));
}

TEST_F(CliTest, InspectNamesUnknownOperators) {
  ProgramMaker program;
  program.AddVar("x", proto::VarType::FP32, {1});
  program.AddVar("y", proto::VarType::FP32, {1});
  program.AddOp("frobnicate", "x", "y");
  WriteFile(temp_ / "unknown.pdmodel", program.bytes());
  const Outcome outcome = Heddle("inspect " + (temp_ / "unknown.pdmodel"));
  EXPECT_THAT(outcome.out + outcome.err, HasSubstr("frobnicate"));
  const Outcome run = Heddle("run " + (temp_ / "unknown.pdmodel"));
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("frobnicate"));
}

TEST_F(CliTest, OpsListsAndDescribes) {
  const Outcome list = Heddle("ops");
  EXPECT_EQ(list.status, 0);
  EXPECT_THAT(list.out, HasSubstr("\nrelu\n"));
  const Outcome relu = Heddle("ops relu");
  EXPECT_EQ(relu.status, 0);
  EXPECT_THAT(relu.out, HasSubstr("Out"));
  ExpectError(Heddle("ops frobnicate"), 1, "frobnicate");
}

TEST_F(CliTest, PlanPrintsInstructions) {
  const Outcome text = Heddle("plan " + kDigits);
  ASSERT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("conv2d"));
  const Outcome json = Heddle("plan " + kDigits + " --json");
  EXPECT_THAT(json.out, HasSubstr("\"instructions\""));
}

TEST_F(CliTest, PlanTellsOfMemory) {
  const Outcome text = Heddle("plan " + kDigits + " --serial --memory");
  ASSERT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("1.000 times the bound"));
  EXPECT_THAT(text.out, HasSubstr("conv2d_0.tmp"));
  const Outcome json = Heddle("plan " + kDigits + " --threads 2 --parallel --memory --json");
  ASSERT_EQ(json.status, 0) << json.err;
  for (const char* key : {"schedule", "decided", "buffers", "naive_bytes", "bound_bytes",
                          "planned_bytes", "ratio", "values", "offset", "first", "last"})
    EXPECT_THAT(json.out, HasSubstr("\"" + std::string(key) + "\": ")) << key;
}

TEST_F(CliTest, BenchMeasures) {
  const std::string bench = "bench " + kDigits + " --random-feed --seconds 0.05 --clients 2";
  const Outcome json = Heddle(bench + " --json");
  ASSERT_EQ(json.status, 0) << json.err;
  for (const char* key :
       {"program", "threads", "clients", "instructions", "tasks", "load_ms", "first_ms",
        "median_ms", "p90_ms", "p99_ms", "runs", "runs_per_s", "ns_per_instruction", "rss_first_mb",
        "rss_peak_mb", "arena_bytes", "arena_bound_bytes", "heap_allocs_per_run"})
    EXPECT_THAT(json.out, HasSubstr("\"" + std::string(key) + "\": ")) << key;
  const Outcome text = Heddle(bench);
  EXPECT_EQ(text.status, 0);
  EXPECT_THAT(text.out, HasSubstr("median"));
}

TEST_F(CliTest, BenchMeasuresOnRequest) {
  const auto ask = [](const std::string& lines) {
    return RunCommand("( printf '" + lines + "' | '" + ToolPath() + "' bench " + kDigits +
                      " --random-feed --on-request )");
  };
  const Outcome answers =
      ask(R"({"round_trip": true}\n{"slice": 0.01, "clients": 3}\n{}\n{"slice": 9}\n)");
  ASSERT_EQ(answers.status, 0) << answers.err;
  EXPECT_EQ(std::count(answers.out.begin(), answers.out.end(), '\n'), 3) << answers.out;
  for (const char* key : {"first_ms", "round_trip_ns", "median_ms", "p99_ms", "runs_per_s"})
    EXPECT_THAT(answers.out, HasSubstr("\"" + std::string(key) + "\":")) << key;
  for (const char* wrong : {"slice", R"({"slice": -1})", R"({"slice": 0.01, "clients": 0})", "7"})
    ExpectError(ask(wrong), 1, "not a request: ");
  EXPECT_EQ(ask("").status, 0);
}

}  // namespace
}  // namespace heddle::tools
