// heddle train: what is fed, what is saved, how it goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "heddle/params.h"
#include "tests/support/program_builder.h"
#include "tests/tools/cli.h"
#include "tests/tools/npz_maker.h"
#include "tools/values/npy.h"

namespace heddle::tools {
namespace {

namespace fs = std::filesystem;
using heddle::testing::ProgramBuilder;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kDigits = HEDDLE_SOURCE_DIR "/examples/digits";

std::vector<float> Column(const std::string& path) {
  const auto t = ReadNpy(path);
  EXPECT_TRUE(t.ok()) << t.status().ToString();
  if (!t.ok()) return {};
  return {t->data<float>(), t->data<float>() + t->numel()};
}

// A job in which nothing is learnt but all can be seen: `seen` is what was fed, `drawn` a random
// number, `n` counts steps, `rate` is left alone.
class TrainTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Attrs random = {{"shape", Ints{1}},
                          {"min", 0.0},
                          {"max", 1.0},
                          {"seed", int64_t{0}},
                          {"dtype", int64_t{5}}};
    ProgramBuilder startup;
    for (const char* name : {"n", "rate", "w"}) startup.Param(name, DType::kF32, {1});
    startup.Fill("n", {1}, 0).Fill("rate", {1}, 0.5);
    startup.Op("uniform_random", {}, {{"Out", {"w"}}}, random);
    WriteFile(temp_ / "startup.pdmodel", startup.Bytes());
    ProgramBuilder main;
    for (const char* name : {"n", "rate", "w"}) main.Param(name, DType::kF32, {1});
    main.Feed("x", DType::kF32, {-1});
    main.Scale("x", "seen", 1).Increment("n");
    main.Op("uniform_random", {}, {{"Out", {"drawn"}}}, random);
    main.Binary("elementwise_add", "w", "drawn", "sum").Scale("rate", "used", 1);
    main.Op("assign", {{"X", {"sum"}}}, {{"Out", {"w"}}});
    WriteFile(temp_ / "main.pdmodel", main.Bytes());
    WriteFile(temp_ / "x.npy", FloatNpy("(3, 2)", {1, 2, 3, 4, 5, 6}));
    job_ = "train --startup " + (temp_ / "startup.pdmodel") + " --main " +
           (temp_ / "main.pdmodel") + " --quiet ";
    fed_ = job_ + "--feed x=" + (temp_ / "x.npy") + " ";
  }
  using Attrs = heddle::testing::Attrs;

  // A shard with samples first, first + 1, …
  std::string Shard(const std::string& name, float first, int samples) {
    std::vector<float> values;
    for (int i = 0; i < samples; ++i) values.push_back(first + static_cast<float>(i));
    WriteFile(temp_ / name,
              NpzBytes({{"x", FloatNpy("(" + std::to_string(samples) + ",)", values)}}));
    return temp_ / name;
  }
  // What is fed in each of the job's steps, one after another.
  std::vector<float> Seen(const std::string& options) {
    const Outcome o = Heddle(job_ + options + " --fetch seen --out " + (temp_ / "seen"));
    EXPECT_EQ(o.status, 0) << o.err;
    return Column(temp_ / "seen/out_0.npy");
  }
  static void ExpectError(const Outcome& o, int status, const std::vector<std::string>& parts) {
    EXPECT_EQ(o.status, status) << o.err;
    for (const std::string& part : parts) EXPECT_THAT(o.err, HasSubstr(part));
    EXPECT_EQ(std::count(o.err.begin(), o.err.end(), '\n'), 1) << o.err;
  }
  // Checkpoints are called by their steps.
  std::vector<std::string> Checkpoints(const std::string& directory) const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(temp_ / directory))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
  TempDirectory temp_;
  std::string job_, fed_;
};

TEST_F(TrainTest, WrongUsageIsStatus2) {
  ExpectError(Heddle("train --startup s --steps 1"), 2, {"--main"});
  ExpectError(Heddle(job_), 2, {"--steps"});
  ExpectError(Heddle(job_ + "--steps 1 --epochs 1"), 2, {"--epochs"});
  ExpectError(Heddle(job_ + "--steps 0"), 2, {"--steps"});
  ExpectError(Heddle(job_ + "--steps 1 --resume"), 2, {"--checkpoint"});
  ExpectError(Heddle(job_ + "--steps 1 --feed x"), 2, {"NAME=VALUE"});
  ExpectError(Heddle(job_ + "--steps 1 --metrics m.txt"), 2, {".jsonl"});
  ExpectError(Heddle(job_ + "--steps 1 --export d"), 2, {"--infer"});
}

TEST_F(TrainTest, FeedsTakeTurnsAndFetchesAreStacked) {
  const Outcome o = Heddle(fed_ + "--steps 4 --fetch seen --fetch n --out " + (temp_ / "o"));
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_EQ(o.err, "");
  EXPECT_THAT(Column(temp_ / "o/out_0.npy"), ElementsAre(1, 2, 3, 4, 5, 6, 1, 2));
  const auto n = ReadNpy(temp_ / "o/out_1.npy");
  ASSERT_TRUE(n.ok());
  EXPECT_EQ(n->shape(), (Shape{4, 1}));
  EXPECT_THAT(Column(temp_ / "o/out_1.npy"), ElementsAre(1, 2, 3, 4));
}

TEST_F(TrainTest, EpochsCountStackedBatches) {
  const Outcome o = Heddle(fed_ + "--epochs 2 --fetch n --out " + (temp_ / "o"));
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_EQ(Column(temp_ / "o/out_0.npy").size(), 6u);
}

TEST_F(TrainTest, ValuesAreSetBeforeAStep) {
  WriteFile(temp_ / "rate.npy", FloatNpy("(3,)", {0.25, 0.125, 8}));
  const std::string set = " --set rate=" + (temp_ / "rate.npy");
  const Outcome o = Heddle(fed_ + "--steps 3 --fetch used --out " + (temp_ / "o") + set);
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_THAT(Column(temp_ / "o/out_0.npy"), ElementsAre(0.25, 0.125, 8));
  ExpectError(Heddle(fed_ + "--steps 4" + set), 1, {"3 rows", "4 steps"});
  ExpectError(Heddle(fed_ + "--steps 3 --set seen=" + (temp_ / "rate.npy")), 1,
              {"no persistable variable 'seen'"});
  ExpectError(Heddle(fed_ + "--steps 3 --set rate=" + (temp_ / "x.npy")), 1, {"shape [2]", "[1]"});
}

TEST_F(TrainTest, ShardsGiveBatchesOfSamples) {
  const std::string data = "--data " + Shard("a.npz", 0, 4) + " " + Shard("b.npz", 10, 6) + " ";
  EXPECT_THAT(Seen(data + "--batch-size 2 --epochs 1"),
              ElementsAre(0, 1, 2, 3, 10, 11, 12, 13, 14, 15));
  EXPECT_THAT(Seen(data + "--batch-size 2 --steps 6"),
              ElementsAre(0, 1, 2, 3, 10, 11, 12, 13, 14, 15, 0, 1));
  EXPECT_THAT(Seen(data + "--batch-size 4 --drop-last --epochs 1"),
              ElementsAre(0, 1, 2, 3, 10, 11, 12, 13));
}

TEST_F(TrainTest, ShardsMayBeReadWhenTheirTurnComes) {
  const std::string data = "--data " + Shard("a.npz", 0, 4) + " " + Shard("b.npz", 10, 6) +
                           " --batch-size 2 --epochs 3 --shuffle";
  EXPECT_EQ(Seen(data + " --data-memory 0"), Seen(data));
}

TEST_F(TrainTest, ShardsOfBatchesNeedNoBatchSize) {
  WriteFile(temp_ / "s.npz", NpzBytes({{"x", FloatNpy("(2, 2)", {1, 2, 3, 4})}}));
  EXPECT_THAT(Seen("--epochs 2 --data " + (temp_ / "s.npz")), ElementsAre(1, 2, 3, 4, 1, 2, 3, 4));
}

TEST_F(TrainTest, ShufflingIsAnotherOrderOfTheSameInEveryEpoch) {
  const std::string data = "--data " + Shard("a.npz", 0, 8) + " " + Shard("b.npz", 8, 8) +
                           " --batch-size 4 --shuffle --epochs 2 --seed ";
  const std::vector<float> seen = Seen(data + "1");
  ASSERT_EQ(seen.size(), 32u);
  std::vector<float> one(seen.begin(), seen.begin() + 16), two(seen.begin() + 16, seen.end());
  EXPECT_NE(one, two);
  EXPECT_EQ(Seen(data + "1"), seen);
  EXPECT_NE(Seen(data + "2"), seen);
  for (auto* epoch : {&one, &two}) {
    std::sort(epoch->begin(), epoch->end());
    for (int i = 0; i < 16; ++i) EXPECT_EQ((*epoch)[static_cast<size_t>(i)], i);
  }
}

// Sequences are added up, so that a step shows where they begin and end.
class SequencesTest : public TrainTest {
 protected:
  void SetUp() override {
    TrainTest::SetUp();
    ProgramBuilder main;
    main.Feed("x", DType::kF32, {-1, 1});
    main.Op("sequence_pool", {{"X", {"x"}}}, {{"Out", {"seen"}}}, {{"pooltype", "SUM"}});
    WriteFile(temp_ / "main.pdmodel", main.Bytes());
  }
  // Six rows, 1 to 6, and offsets.
  std::string Archive(const std::string& name, const std::vector<std::vector<int64_t>>& levels) {
    std::vector<std::pair<std::string, std::string>> arrays;
    for (size_t l = levels.size(); l-- > 0;) {
      const std::string bytes(reinterpret_cast<const char*>(levels[l].data()),
                              levels[l].size() * sizeof(int64_t));
      arrays.emplace_back(l == 0 ? "x.lod" : "x.lod." + std::to_string(l),
                          NpyBytes("<i8", "(" + std::to_string(levels[l].size()) + ",)", bytes));
    }
    arrays.emplace_back("x", FloatNpy("(6, 1)", {1, 2, 3, 4, 5, 6}));
    WriteFile(temp_ / name, NpzBytes(arrays));
    return temp_ / name;
  }
};

TEST_F(SequencesTest, SamplesOfAShardMayBeSequences) {
  const std::string data = "--data " + Archive("s.npz", {{0, 1, 3, 4, 6}}) + " --batch-size 2";
  EXPECT_THAT(Seen(data + " --epochs 1"), ElementsAre(1, 5, 4, 11));
  std::vector<float> shuffled = Seen(data + " --epochs 1 --shuffle --seed 3");
  EXPECT_NE(shuffled, Seen(data + " --epochs 1"));
  std::sort(shuffled.begin(), shuffled.end());
  EXPECT_THAT(shuffled, ElementsAre(1, 4, 5, 11));
  EXPECT_THAT(Seen("--data " + Archive("n.npz", {{0, 2, 4}, {0, 1, 3, 4, 6}}) +
                   " --batch-size 1 --epochs 1"),
              ElementsAre(1, 5, 4, 11));
}

TEST_F(SequencesTest, BatchesMayBeSequencesOfSequences) {
  EXPECT_THAT(Seen("--epochs 1 --data " + Archive("s.npz", {{0, 2, 4}, {0, 1, 3, 4, 6}})),
              ElementsAre(1, 5, 4, 11));
}

TEST_F(SequencesTest, BatchesOfAFeedHaveTheOffsetsGiven) {
  WriteFile(temp_ / "x.npy", FloatNpy("(2, 3, 1)", {1, 2, 3, 4, 5, 6}));
  EXPECT_THAT(Seen("--feed x=" + (temp_ / "x.npy") + " --lod x=0,1,3 --epochs 1"),
              ElementsAre(1, 5, 4, 11));
  ExpectError(Heddle(fed_ + "--lod x=0,1,4 --steps 1"), 1, {"'x'", "4", "[3, 1]"});
  ExpectError(Heddle(fed_ + "--lod y=0,1,3 --steps 1"), 1, {"'y'", "--feed"});
  ExpectError(Heddle(fed_ + "--lod x=1,3 --steps 1"), 2, {"--lod"});
}

TEST_F(SequencesTest, WrongOffsetsAreNamed) {
  const auto job = [&](const std::vector<std::vector<int64_t>>& levels) {
    return Heddle(job_ + "--steps 1 --data " + Archive("bad.npz", levels));
  };
  ExpectError(job({{0, 1, 7}}), 1, {"bad.npz", "'x'", "7", "6 rows"});
  ExpectError(job({{1, 6}}), 1, {"'x'", "begin with 0"});
  ExpectError(job({{0, 4, 3, 6}}), 1, {"'x'", "not decrease"});
  ExpectError(job({{0, 3}, {0, 2, 6}}), 1, {"'x'", "3", "2 sequences"});
  ExpectError(job({{0, -1}}), 1, {"'x.lod'", "negative"});
  const std::string offsets = NpyBytes("<i8", "(2,)", LittleEndian(0, 8) + LittleEndian(6, 8));
  WriteFile(temp_ / "own.npz", NpzBytes({{"x", FloatNpy("(6, 1)", {1, 2, 3, 4, 5, 6})},
                                         {"x.lod", offsets},
                                         {"x.lod.lod", offsets}}));
  ExpectError(Heddle(job_ + "--steps 1 --data " + (temp_ / "own.npz")), 1,
              {"'x.lod'", "offsets of their own"});
}

TEST_F(SequencesTest, RunTakesThemFromAnArchiveToo) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1, 1});
  b.Op("sequence_pool", {{"X", {"x"}}}, {{"Out", {"seen"}}}, {{"pooltype", "SUM"}});
  b.Fetch("seen");
  WriteFile(temp_ / "run.pdmodel", b.Bytes());
  const Outcome o = Heddle("run " + (temp_ / "run.pdmodel") + " --feed-npz " +
                           Archive("s.npz", {{0, 1, 3, 4, 6}}) + " --out " + (temp_ / "o"));
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_THAT(Column(temp_ / "o/out_0.npy"), ElementsAre(1, 5, 4, 11));
}

TEST_F(TrainTest, WrongDataIsNamed) {
  const auto data = [&](const std::string& bytes) {
    WriteFile(temp_ / "bad.npz", bytes);
    return Heddle(job_ + "--steps 1 --data " + (temp_ / "bad.npz"));
  };
  ExpectError(data("garbage"), 1, {"bad.npz"});
  ExpectError(data(NpzBytes({})), 1, {"no arrays"});
  ExpectError(data(NpzBytes({{"x", FloatNpy("()", {1})}})), 1, {"'x'", "first axis"});
  ExpectError(data(NpzBytes({{"x", FloatNpy("(2,)", {1, 2})}, {"y", FloatNpy("(1,)", {1})}})), 1,
              {"'y'", "1 items", "2"});
  ExpectError(data(NpzBytes({{"y", FloatNpy("(1, 1)", {1})}})), 1, {"'y'", "step 0"});
  ExpectError(Heddle(job_ + "--steps 1 --data /no/such.npz"), 1, {"/no/such.npz"});
  ExpectError(Heddle(job_ + "--epochs 1"), 1, {"--epochs"});
  ExpectError(Heddle(fed_ + "--steps 1 --data " + Shard("a.npz", 0, 2)), 1, {"'x'", "--feed"});
  // The batches of this shard differ in size, so they cannot be stacked.
  ExpectError(Heddle(job_ + "--steps 3 --batch-size 2 --fetch seen --out " + (temp_ / "o") +
                     " --data " + Shard("odd.npz", 0, 3)),
              1, {"'seen'", "[1]", "[2]", "step 1"});
}

TEST_F(TrainTest, SavesAllPersistableVariables) {
  ASSERT_EQ(Heddle(fed_ + "--steps 3 --save " + (temp_ / "p")).status, 0);
  auto read = ReadTensors(temp_ / "p");
  ASSERT_TRUE(read.ok());
  ASSERT_EQ(read->size(), 3u);  // n, rate, w
  EXPECT_EQ((*read)[0].data<float>()[0], 3);
  EXPECT_EQ((*read)[1].data<float>()[0], 0.5f);
  const std::string combined = ReadFile(temp_ / "p");
  ASSERT_EQ(Heddle(fed_ + "--steps 3 --save " + (temp_ / "apart/")).status, 0);
  EXPECT_EQ(
      ReadFile(temp_ / "apart/n") + ReadFile(temp_ / "apart/rate") + ReadFile(temp_ / "apart/w"),
      combined);
  // From what was saved, both ways.
  for (const char* from : {"p", "apart"}) {
    const Outcome o =
        Heddle(fed_ + "--steps 1 --fetch n --out " + (temp_ / "o") + " --init " + (temp_ / from));
    ASSERT_EQ(o.status, 0) << o.err;
    EXPECT_THAT(Column(temp_ / "o/out_0.npy"), ElementsAre(4));
  }
}

TEST_F(TrainTest, AFullDiskLeavesTheOldFile) {
  WriteFile(temp_ / "p", "old");
  // The shell's limit on the size of files stands for a full disk; SIGXFSZ would only end the tool.
  const std::string command = "trap '' XFSZ; ulimit -f 0; '" + ToolPath() + "' " + fed_ +
                              "--steps 1 --save " + (temp_ / "p") + " >/dev/null 2>&1";
  const int status = std::system(command.c_str());  // NOLINT(cert-env33-c): a test's own command
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_EQ(ReadFile(temp_ / "p"), "old");
  EXPECT_THAT(Checkpoints(""), Not(::testing::Contains(HasSubstr(".tmp"))));
}

TEST_F(TrainTest, MetricsAreWrittenAsCsvAndAsJsonLines) {
  const std::string fetch = " --fetch n --fetch seen";
  ASSERT_EQ(Heddle(fed_ + "--steps 4 --metrics " + (temp_ / "m.csv") + fetch).status, 0);
  std::ifstream csv(temp_ / "m.csv");
  std::string line;
  std::getline(csv, line);
  EXPECT_EQ(line, "step,epoch,seconds,n,seen");
  for (int i = 0; i < 4; ++i) std::getline(csv, line);
  EXPECT_THAT(line, ::testing::MatchesRegex("4,2,[0-9.]+,4,"));
  ASSERT_EQ(Heddle(fed_ + "--steps 4 --metrics " + (temp_ / "m.jsonl") + fetch).status, 0);
  std::ifstream lines(temp_ / "m.jsonl");
  for (int step = 1; step <= 4; ++step) {
    std::getline(lines, line);
    const auto json = nlohmann::json::parse(line);
    EXPECT_EQ(json["step"], step);
    EXPECT_EQ(json["n"], step);
    EXPECT_TRUE(json["seen"].is_null());  // more than one number
  }
}

TEST_F(TrainTest, SaysHowItGoes) {
  const std::string loud = fed_.substr(0, fed_.find("--quiet")) +
                           fed_.substr(fed_.find("--quiet") + 7) + "--steps 4 --fetch n ";
  const Outcome lines = Heddle(loud + "--log-every 2 --json");
  EXPECT_EQ(lines.status, 0);
  EXPECT_THAT(lines.err, HasSubstr("step 2/4  epoch 1/2  n 2  "));
  EXPECT_THAT(lines.err, HasSubstr("step 4/4"));
  EXPECT_EQ(std::count(lines.err.begin(), lines.err.end(), '\n'), 2) << lines.err;
  const auto json = nlohmann::json::parse(lines.out);
  EXPECT_EQ(json["steps"], 4);
  EXPECT_EQ(json["last"]["n"], 4);
  EXPECT_EQ(json["stopped"], false);
}

TEST_F(TrainTest, ANaNIsNamedWhereItArises) {
  WriteFile(temp_ / "w.npy", FloatNpy("(3, 1)", {1, std::nanf(""), 1}));
  const std::string job = fed_ + "--steps 3 --fetch sum --set w=" + (temp_ / "w.npy");
  EXPECT_EQ(Heddle(job).status, 0);
  ExpectError(Heddle(job + " --check-nan-inf"), 1, {"elementwise_add", "sum", "nan"});
}

class CheckpointTest : public TrainTest {
 protected:
  // Fetched values, parameters and metrics (without times) of a job.
  std::string Results(const std::string& name) const {
    std::string all = ReadFile(temp_ / (name + ".out/out_0.npy")) + ReadFile(temp_ / (name + ".p"));
    std::ifstream metrics(temp_ / (name + ".csv"));
    for (std::string line; std::getline(metrics, line);) {
      const size_t seconds = line.find(',', line.find(',') + 1);
      all += line.substr(0, seconds) + line.substr(line.find(',', seconds + 1)) + "\n";
    }
    return all;
  }
  std::string Job(const std::string& name, int steps) {
    return fed_ + "--seed 4 --fetch drawn --every 2 --out " + (temp_ / (name + ".out")) +
           " --save " + (temp_ / (name + ".p")) + " --metrics " + (temp_ / (name + ".csv")) +
           " --checkpoint " + (temp_ / name) + " --steps " + std::to_string(steps) + " ";
  }
};

TEST_F(CheckpointTest, AResumedJobEndsAsAnUndisturbedOne) {
  ASSERT_EQ(Heddle(Job("whole", 9)).status, 0);
  for (const int first : {1, 4, 5, 9}) {
    const std::string name = "part" + std::to_string(first);
    ASSERT_EQ(Heddle(Job(name, first) + "--resume").status, 0);  // from the beginning
    const Outcome o = Heddle(Job(name, 9) + "--resume --json");
    ASSERT_EQ(o.status, 0) << o.err;
    EXPECT_EQ(nlohmann::json::parse(o.out)["resumed_from"], first);
    EXPECT_EQ(Results(name), Results("whole")) << first;
  }
  EXPECT_NE(Column(temp_ / "whole.out/out_0.npy")[0], Column(temp_ / "whole.out/out_0.npy")[1]);
}

TEST_F(CheckpointTest, KeepsTheNewest) {
  ASSERT_EQ(Heddle(Job("c", 9) + "--keep 2").status, 0);
  EXPECT_THAT(Checkpoints("c"), ElementsAre("step-00000008", "step-00000009"));
}

TEST_F(CheckpointTest, ADamagedOneIsPassedOver) {
  ASSERT_EQ(Heddle(Job("whole", 9)).status, 0);
  ASSERT_EQ(Heddle(Job("c", 6)).status, 0);
  const std::string newest = temp_ / "c/step-00000006/persistables.pdiparams";
  std::string bytes = ReadFile(newest);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  WriteFile(newest, bytes);
  fs::remove(temp_ / "c/step-00000004/train.json");
  const std::string job = Job("c", 9);
  const Outcome o =
      Heddle(job.substr(0, job.find("--quiet")) + job.substr(job.find("--quiet") + 7) + "--resume");
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_THAT(o.err, HasSubstr("step-00000006/persistables.pdiparams: has"));
  EXPECT_THAT(o.err, HasSubstr("step-00000004/train.json: is missing"));
  EXPECT_THAT(o.err, HasSubstr("resumed after step 2\n"));
  EXPECT_EQ(Results("c"), Results("whole"));
}

// Whatever byte of train.json is damaged: the checkpoint before it is taken.
TEST_F(CheckpointTest, EveryByteOfItsStateIsVouchedFor) {
  ASSERT_EQ(Heddle(Job("whole", 6)).status, 0);
  ASSERT_EQ(Heddle(Job("c", 4)).status, 0);
  const std::string path = temp_ / "c/step-00000004/train.json";
  const std::string state = ReadFile(path);
  std::vector<size_t> places;
  for (const char* member : {"\"format\": ", "\"step\": ", "\"program\": \"", "\"seed\": ",
                             "\"data\": \"", "xxh64 ", "\"generator\": \"", "\"checksum\": \""})
    places.push_back(state.find(member) + std::string(member).size());
  places.push_back(state.find("\"checksum\"") + 3);
  places.push_back(state.size() - 2);
  for (const size_t at : places) {
    ASSERT_LT(at, state.size());
    std::string damaged = state;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    WriteFile(path, damaged);
    std::string job = Job("c", 6);
    job.erase(job.find("--quiet"), 7);
    fs::copy(temp_ / "c", temp_ / "again", fs::copy_options::recursive);
    job.replace(job.find(temp_ / "c "), std::string(temp_ / "c").size(), temp_ / "again");
    const Outcome o = Heddle(job + "--resume");
    EXPECT_EQ(o.status, 0) << at << o.err;
    EXPECT_THAT(o.err, HasSubstr("step-00000004/train.json")) << at;
    EXPECT_EQ(Results("c"), Results("whole")) << at;
    fs::remove_all(temp_ / "again");
  }
}

// Those of format 1 have no checksum of their state, which is believed as far as it can be checked.
TEST_F(CheckpointTest, OneOfFormat1IsCheckedAgainstWhatIsKnown) {
  ASSERT_EQ(Heddle(Job("whole", 6)).status, 0);
  ASSERT_EQ(Heddle(Job("c", 4)).status, 0);
  for (const char* step : {"2", "4"}) {
    const std::string path = temp_ / ("c/step-0000000" + std::string(step) + "/train.json");
    nlohmann::ordered_json state = nlohmann::ordered_json::parse(ReadFile(path));
    state["format"] = 1;
    state.erase("checksum");
    WriteFile(path, state.dump(1));
  }
  const std::string path = temp_ / "c/step-00000004/train.json";
  const std::string whole = ReadFile(path);
  const auto resume = [&](const std::string& member, const nlohmann::ordered_json& value) {
    nlohmann::ordered_json state = nlohmann::ordered_json::parse(whole);
    state[member] = value;
    WriteFile(path, state.dump(1));
    fs::copy(temp_ / "c", temp_ / "again", fs::copy_options::recursive);
    std::string job = Job("c", 6);
    job.erase(job.find("--quiet"), 7);
    job.replace(job.find(temp_ / "c "), std::string(temp_ / "c").size(), temp_ / "again");
    const Outcome o = Heddle(job + "--resume");
    EXPECT_EQ(o.status, 0) << o.err;
    EXPECT_EQ(Results("c"), Results("whole")) << member;
    fs::remove_all(temp_ / "again");
    return o.err;
  };
  EXPECT_THAT(resume("format", 1), HasSubstr("resumed after step 4\n"));
  std::string generator = nlohmann::ordered_json::parse(whole)["generator"];
  generator[0] = generator[0] == '1' ? '2' : '1';
  EXPECT_THAT(resume("generator", generator), HasSubstr("resumed after step 2\n"));
  EXPECT_THAT(resume("step", 3), HasSubstr("resumed after step 2\n"));
  EXPECT_THAT(resume("program", "ab"), HasSubstr("resumed after step 2\n"));
  EXPECT_THAT(resume("data", "others"), HasSubstr("resumed after step 2\n"));
  EXPECT_THAT(resume("files", nlohmann::ordered_json::object()),
              HasSubstr("resumed after step 2\n"));
}

TEST_F(CheckpointTest, OneOfAnotherFormatIsRefusedInOneSentence) {
  ASSERT_EQ(Heddle(Job("c", 4)).status, 0);
  const std::string path = temp_ / "c/step-00000004/train.json";
  nlohmann::ordered_json state = nlohmann::ordered_json::parse(ReadFile(path));
  ASSERT_EQ(state["format"], 2);
  state.erase("checksum");
  for (const int format : {0, 3}) {
    state["format"] = format;
    WriteFile(path, state.dump());
    ExpectError(Heddle(Job("c", 6) + "--resume"), 1,
                {path + ": checkpoint format " + std::to_string(format) + "; 1 and 2 can be read"});
    EXPECT_THAT(Checkpoints("c"), Contains("step-00000004")) << "nothing is thrown away";
  }
}

TEST_F(CheckpointTest, WhatAKilledProcessLeftIsNoCheckpoint) {
  fs::create_directories(temp_ / "c/.unfinished-8");
  fs::create_directories(temp_ / "c/.removed-2");
  fs::create_directories(temp_ / "c/step-x");
  WriteFile(temp_ / "c/.unfinished-8/persistables.pdiparams", "half");
  ASSERT_EQ(Heddle(Job("c", 2) + "--resume").status, 0);
  EXPECT_THAT(Checkpoints("c"), ElementsAre("step-00000002", "step-x"));
}

TEST_F(CheckpointTest, AnotherJobIsRefused) {
  ASSERT_EQ(Heddle(Job("c", 4)).status, 0);
  ExpectError(Heddle(Job("c", 6)), 1, {"holds checkpoints", "step 4", "--resume"});
  ExpectError(Heddle(Job("c", 3) + "--resume"), 1, {"4 steps", "3"});
  std::string other = Job("c", 6) + "--resume";
  WriteFile(temp_ / "x.npy", FloatNpy("(2, 2)", {1, 2, 3, 4}));
  ExpectError(Heddle(other), 1, {"other batches", "--feed x 3", "--feed x 2"});
  WriteFile(temp_ / "x.npy", FloatNpy("(3, 2)", {1, 2, 3, 4, 5, 6}));
  other.replace(other.find("--fetch drawn"), 13, "--fetch sum");
  ExpectError(Heddle(other), 1, {"'drawn'", "'sum'"});
  ProgramBuilder main;
  main.Param("n", DType::kF32, {1}).Feed("x", DType::kF32, {-1});
  main.Scale("x", "seen", 1).Increment("n").Unary("relu", "seen", "drawn");
  WriteFile(temp_ / "main.pdmodel", main.Bytes());
  ExpectError(Heddle(Job("c", 6) + "--resume"), 1, {"another main program"});
}

// A job in the background, by the id of its process.
pid_t Start(const std::string& arguments, const std::string& errors) {
  const std::string command = "exec '" + ToolPath() + "' " + arguments + " 2>'" + errors + "'";
  const pid_t child = ::fork();
  if (child == 0) {
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  return child;
}

TEST_F(CheckpointTest, ASignalEndsTheStepAndSaves) {
  ASSERT_EQ(Heddle(Job("whole", 9)).status, 0);
  // Too long to end by itself.
  const std::string job = Job("c", 100000000) + "--resume";
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::string before = fs::exists(temp_ / "c") ? Checkpoints("c").back() : "";
    const pid_t child = Start(job, temp_ / "err");
    ASSERT_GT(child, 0);
    // It listens before it makes a checkpoint.
    int status = 0;
    bool ended = false;
    while (!ended &&
           (!fs::exists(temp_ / "c") || Checkpoints("c").empty() ||
            !Checkpoints("c").back().starts_with("step-") || Checkpoints("c").back() == before)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      ended = ::waitpid(child, &status, WNOHANG) == child;
    }
    ASSERT_FALSE(ended) << ReadFile(temp_ / "err");
    ExpectError(Heddle(job), 1, {"another process"});
    ASSERT_EQ(::kill(child, signal), 0);
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 3) << ReadFile(temp_ / "err");
    EXPECT_THAT(ReadFile(temp_ / "err"), HasSubstr(signal == SIGINT ? "SIGINT" : "SIGTERM"));
    const std::vector<float> drawn = Column(temp_ / "c.out/out_0.npy");
    const auto saved = ReadTensors(temp_ / "c.p");
    ASSERT_TRUE(saved.ok());
    const float steps = (*saved)[0].data<float>()[0];
    EXPECT_EQ(drawn.size(), static_cast<size_t>(steps));
    const std::string newest = Checkpoints("c").back();
    EXPECT_EQ(std::stoi(newest.substr(5)), static_cast<int>(steps));
    EXPECT_EQ(ReadFile(temp_ / ("c/" + newest + "/persistables.pdiparams")),
              ReadFile(temp_ / "c.p"));
    const std::vector<float> whole = Column(temp_ / "whole.out/out_0.npy");
    for (size_t i = 0; i < std::min(whole.size(), drawn.size()); ++i)
      EXPECT_EQ(drawn[i], whole[i]) << i;
  }
}

// The example: trained from nothing, a model for `heddle run` that knows unseen digits.
TEST(TrainDigits, FromScratch) {
  const TempDirectory temp;
  const std::string folder = kDigits + "/train/";
  const Outcome trained = Heddle(
      "train --startup " + folder + "startup.pdmodel --main " + folder + "main.pdmodel --data " +
      folder + "train.npz --batch-size 32 --shuffle --epochs 12 --quiet --infer " + kDigits +
      "/model.pdmodel --export " + (temp / "model"));
  ASSERT_EQ(trained.status, 0) << trained.err;
  const Outcome run = Heddle("run " + (temp / "model") + " --feed-npz " + folder +
                             "test.npz --out " + (temp / "out"));
  ASSERT_EQ(run.status, 0) << run.err;
  const auto labels = ReadNpy(folder + "test_labels.npy");
  const auto out = ReadNpy(temp / "out/out_0.npy");
  ASSERT_TRUE(labels.ok() && out.ok());
  ASSERT_EQ(out->shape(), (Shape{labels->numel(), 10}));
  int64_t right = 0;
  for (int64_t i = 0; i < labels->numel(); ++i) {
    const float* row = out->data<float>() + 10 * i;
    right += std::max_element(row, row + 10) - row == labels->data<int64_t>()[i];
  }
  EXPECT_GE(static_cast<double>(right) / static_cast<double>(labels->numel()), 0.97);
}

// The losses that Paddle 2.6.2 computes for the first batches after paddle.seed(7): the same
// parameters were drawn, and the same dropout masks.
TEST(TrainDigits, BeginsAsPaddleDoes) {
  const TempDirectory temp;
  const std::string folder = kDigits + "/train/";
  const Outcome o = Heddle(
      "train --startup " + folder + "startup.pdmodel --main " + folder + "main.pdmodel --data " +
      folder + "train.npz --batch-size 32 --steps 5 --seed 7 --quiet --out " + (temp / "o"));
  ASSERT_EQ(o.status, 0) << o.err;
  const std::vector<float> losses = Column(temp / "o/out_0.npy"),
                           paddle = {2.4551535f, 2.3885717f, 2.2470899f, 2.2887988f, 2.2286968f};
  ASSERT_EQ(losses.size(), paddle.size());
  for (size_t i = 0; i < paddle.size(); ++i) EXPECT_NEAR(losses[i], paddle[i], 1e-5) << i;
}

}  // namespace
}  // namespace heddle::tools
