// heddle doctor and heddle completion.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "heddle/host.h"
#include "tests/tools/cli.h"

namespace heddle::tools {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Doctor, SaysWhatIsThere) {
  const Outcome json = Heddle("doctor --json");
  ASSERT_EQ(json.status, 0) << json.err;
  const auto report = nlohmann::json::parse(json.out);
  EXPECT_GE(report["threads"].get<int>(), 1);
  EXPECT_LE(report["threads"].get<int>(), report["processors"].get<int>());
  EXPECT_GE(report["memory_bytes"].get<int64_t>(), report["available_memory_bytes"].get<int64_t>());
  EXPECT_EQ(report["missing"].size(), 0u) << "these tests would not run";
  const Outcome text = Heddle("doctor");
  EXPECT_EQ(text.status, 0);
  EXPECT_THAT(text.out, HasSubstr(report["version"].get<std::string>()));
  for (const auto& a : report["advice"]) EXPECT_THAT(text.out, HasSubstr(a.get<std::string>()));
}

// A process with fewer processors uses fewer, and is told so.
TEST(Doctor, FollowsTheAffinityMask) {
  if (InspectHost().allowed_processors < 2) GTEST_SKIP() << "there is one processor only";
  const Outcome outcome = RunCommand("taskset -c 0 " + ToolPath() + " doctor --json");
  if (outcome.status != 0) GTEST_SKIP() << outcome.err;  // processor 0 is not ours
  const auto report = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(report["threads"], 1);
  EXPECT_THAT(report["advice"].dump(), HasSubstr("taskset"));
}

TEST(Completion, KnowsEveryCommandAndOption) {
  const Outcome bash = Heddle("completion bash");
  ASSERT_EQ(bash.status, 0) << bash.err;
  TempDirectory temp;
  WriteFile((temp / "words.sh"), bash.out);
  const auto complete = [&](const std::string& words, int at) {
    return RunCommand("bash -c 'source " + (temp / "words.sh") + "; COMP_WORDS=(" + words +
                      "); COMP_CWORD=" + std::to_string(at) +
                      "; _heddle; echo \" ${COMPREPLY[*]} \"'")
        .out;
  };
  EXPECT_THAT(complete("heddle tr", 1), testing::StrEq(" train \n"));
  EXPECT_THAT(complete("heddle bench --cl", 2), testing::StrEq(" --clients \n"));
  EXPECT_THAT(complete("heddle train --ch", 2), HasSubstr(" --check-nan-inf "));
  EXPECT_THAT(complete("heddle ops --cl", 2), Not(HasSubstr("--clients")));
  const Outcome fish = Heddle("completion fish");
  EXPECT_THAT(fish.out, HasSubstr("complete -c heddle -n __fish_use_subcommand -a run"));
  EXPECT_THAT(fish.out, HasSubstr("'__fish_seen_subcommand_from bench' -l clients"));
  EXPECT_EQ(Heddle("completion csh").status, 2);
}

}  // namespace
}  // namespace heddle::tools
