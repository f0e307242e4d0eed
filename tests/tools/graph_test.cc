// The tool with TensorFlow graphs: parts of them, cases, training.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/formats/tensorflow/graph_bytes.h"
#include "tests/tools/cli.h"
#include "tools/values/npy.h"

namespace heddle::tools {
namespace {

namespace tf = heddle::testing::tf;
using heddle::testing::F32;
using heddle::testing::Floats;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tf::FloatsNode;
using tf::Graph;
using tf::PlaceholderNode;
using tf::ShapeValue;
using tf::TypeValue;

// A variable w of two numbers that begins as 0; a step adds x to it, whose sum with it is `seen`.
Graph Job() {
  Graph g;
  g.Add("VariableV2", "w", {}, {{"dtype", TypeValue(tf::kF)}, {"shape", ShapeValue({2})}});
  g.Add(FloatsNode("zero", {2}, {0, 0})).Add(PlaceholderNode("x"));
  g.Add("Assign", "set", {"w", "zero"}).Add("NoOp", "init", {"^set"});
  g.Add("AddV2", "seen", {"w", "x"}).Add("AssignAdd", "more", {"w", "x", "^seen"});
  return g.Add("NoOp", "train", {"^more"});
}

void ExpectError(const Outcome& o, int status, const std::vector<std::string>& parts) {
  EXPECT_EQ(o.status, status) << o.err;
  for (const std::string& part : parts) EXPECT_THAT(o.err, HasSubstr(part));
}

class GraphTool : public ::testing::Test {
 protected:
  void SetUp() override { WriteFile(temp_ / "graph.pb", Job().bytes()); }
  void Write(const std::string& name, const Tensor& t) {
    ASSERT_TRUE(WriteNpy(temp_ / name, t).ok());
  }
  std::vector<float> Read(const std::string& name) {
    const auto t = ReadNpy(temp_ / name);
    EXPECT_TRUE(t.ok()) << t.status().ToString();
    return t.ok() ? Floats(*t) : std::vector<float>();
  }
  TempDirectory temp_;
};

TEST_F(GraphTool, TrainsWithTheGraphsOwnOperators) {
  Write("x.npy", F32({2, 2}, {1, 2, 10, 20}));
  const Outcome o = Heddle(
      "train --quiet --main " + (temp_ / "graph.pb") +
      " --init-op init --train-op train --steps 3 --fetch seen --feed x=" + (temp_ / "x.npy") +
      " --out " + (temp_ / "o") + " --save " + (temp_ / "w.npz"));
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_THAT(Read("o/out_0.npy"), ElementsAre(1, 2, 11, 22, 12, 24));
  const auto saved = ReadNpz(temp_ / "w.npz");
  ASSERT_TRUE(saved.ok()) << saved.status().ToString();
  ASSERT_EQ(saved->size(), 1u);  // constants are no variables
  EXPECT_EQ((*saved)[0].first, "w");
  EXPECT_THAT(Floats((*saved)[0].second), ElementsAre(12, 24));
}

// What an init operator draws goes by --seed, and is no variable beside those of the graph.
TEST_F(GraphTool, InitOperatorsMayDrawNumbers) {
  Graph g;
  g.Add("VariableV2", "w", {}, {{"dtype", TypeValue(tf::kF)}, {"shape", ShapeValue({2})}});
  g.Add(tf::IntsNode("shape", {1}, {2}));
  g.Add("RandomUniform", "draw", {"shape"}, {{"dtype", TypeValue(tf::kF)}});
  g.Add("Assign", "set", {"w", "draw"}).Add("NoOp", "init", {"^set"});
  g.Add("RandomUniform", "noise", {"shape"}, {{"dtype", TypeValue(tf::kF)}});
  g.Add("AssignAdd", "more", {"w", "noise"}).Add("NoOp", "train", {"^more"});
  WriteFile(temp_ / "random.pb", g.bytes());
  const auto train = [&](const std::string& seed) {
    const Outcome o = Heddle("train --quiet --main " + (temp_ / "random.pb") +
                             " --init-op init --train-op train --steps 2 --seed " + seed +
                             " --save " + (temp_ / "w.npz"));
    EXPECT_EQ(o.status, 0) << o.err;
    const auto saved = ReadNpz(temp_ / "w.npz");
    EXPECT_TRUE(saved.ok() && saved->size() == 1 && (*saved)[0].first == "w");
    return saved.ok() && !saved->empty() ? Floats((*saved)[0].second) : std::vector<float>();
  };
  const std::vector<float> first = train("1");
  EXPECT_EQ(train("1"), first);
  EXPECT_NE(train("2"), first);
}

TEST_F(GraphTool, TrainingGoesOnFromACheckpoint) {
  Write("x.npy", F32({1, 2}, {1, 2}));
  const std::string job = "train --quiet --main " + (temp_ / "graph.pb") +
                          " --init-op init --train-op train --feed x=" + (temp_ / "x.npy") +
                          " --checkpoint " + (temp_ / "c") + " --save " + (temp_ / "w.npz") +
                          " --resume --steps ";
  ASSERT_EQ(Heddle(job + "2").status, 0);
  const Outcome o = Heddle(job + "5");
  ASSERT_EQ(o.status, 0) << o.err;
  const auto saved = ReadNpz(temp_ / "w.npz");
  ASSERT_TRUE(saved.ok()) << saved.status().ToString();
  EXPECT_THAT(Floats((*saved)[0].second), ElementsAre(5, 10));
}

TEST_F(GraphTool, TrainingNeedsABeginning) {
  ExpectError(Heddle("train --main m.pb --steps 1"), 2, {"--startup", "--init-op"});
  ExpectError(Heddle("train --main " + (temp_ / "graph.pb") +
                     " --init-op nobody --train-op train --steps 1"),
              1, {"no operator 'nobody'"});
}

TEST_F(GraphTool, RunsFromAnyTensorToAnyOther) {
  Write("w.npy", F32({2}, {5, 6}));
  Write("x.npy", F32({2}, {1, 2}));
  const Outcome o =
      Heddle("run " + (temp_ / "graph.pb") + " --feed w:0=" + (temp_ / "w.npy") +
             " --feed x=" + (temp_ / "x.npy") + " --fetch seen:0 --out " + (temp_ / "o"));
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_THAT(Read("o/out_0.npy"), ElementsAre(6, 8));
  ExpectError(Heddle("run " + (temp_ / "graph.pb") + " --signature other --random-feed"), 1,
              {"no signature 'other'"});
}

TEST_F(GraphTool, CasesHaveInputsAndOutputsInTheirText) {
  std::filesystem::create_directories(temp_ / "case");
  std::filesystem::create_directories(temp_ / "out");
  Graph g;
  const int uint16 = 17;
  g.Add(PlaceholderNode("n", uint16)).Add("Identity", "m", {"n:0"});
  WriteFile(temp_ / "case/graph.pb", g.bytes());
  WriteFile(
      temp_ / "case/io.txt",
      "in\tn:0\tin_0.npy\tuint16\t2\texact\t-\t-\nout\tm:0\tout_0.npy\tuint16\t2\texact\t0\t0\n");
  ASSERT_TRUE(WriteNpy(temp_ / "case/in_0.npy",
                       Tensor::Of(DType::kI32, Shape{2}, std::vector<int32_t>{7, 65535}), "uint16")
                  .ok());
  WriteFile(temp_ / "list.txt", (temp_ / "case") + "\t" + (temp_ / "out") + "\n");
  const Outcome o = Heddle("run-cases --list " + (temp_ / "list.txt"));
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_EQ(o.err, "");
  EXPECT_EQ(ReadFile(temp_ / "out/out_0.npy"), ReadFile(temp_ / "case/in_0.npy"));
}

TEST_F(GraphTool, UnsignedArraysKeepTheirValues) {
  Graph g;
  const int uint32 = 22;
  g.Add(PlaceholderNode("n", uint32)).Add("Identity", "m", {"n:0"});
  g.Add(PlaceholderNode("i", tf::kI)).Add("Identity", "j", {"i:0"});
  WriteFile(temp_ / "wide.pb", g.bytes());
  const auto values = [](int64_t last) {
    return Tensor::Of(DType::kI64, Shape{2}, std::vector<int64_t>{7, last});
  };
  ASSERT_TRUE(WriteNpy(temp_ / "large.npy", values(3000000000), "uint32").ok());
  ASSERT_TRUE(WriteNpy(temp_ / "small.npy", values(9), "uint32").ok());
  const auto run = [&](const std::string& feed, const std::string& fetch) {
    return Heddle("run " + (temp_ / "wide.pb") + " --feed " + feed + ".npy --fetch " + fetch +
                  " --out " + (temp_ / "o"));
  };
  const Outcome kept = run("n=" + (temp_ / "large"), "m");
  ASSERT_EQ(kept.status, 0) << kept.err;
  EXPECT_EQ(ReadFile(temp_ / "o/out_0.npy"), ReadFile(temp_ / "large.npy"));
  EXPECT_EQ(run("i=" + (temp_ / "small"), "j").status, 0);
  ExpectError(run("i=" + (temp_ / "large"), "j"), 1, {"holds 3000000000 as uint32", "input 'i'"});
}

TEST_F(GraphTool, IsConvertedAsItIsFetched) {
  Graph g;
  g.Add(FloatsNode("c", {2}, {10, 20})).Add(PlaceholderNode("any"));
  g.Add("Placeholder", "x", {}, {{"dtype", TypeValue(tf::kF)}, {"shape", ShapeValue({-1})}});
  g.Add("AddV2", "sum", {"x", "c"}).Add("Neg", "y", {"any"});
  WriteFile(temp_ / "frozen.pb", g.bytes());
  Write("x.npy", F32({2}, {1, 2}));
  for (const std::string to : {"paddle", "pir"}) {
    const Outcome o = Heddle("convert " + (temp_ / "frozen.pb") + " --fetch sum --to " + to +
                             " -o " + (temp_ / to));
    ASSERT_EQ(o.status, 0) << o.err;
    const Outcome run = Heddle("run " + (temp_ / to) + " --feed x=" + (temp_ / "x.npy") +
                               " --out " + (temp_ / "o"));
    ASSERT_EQ(run.status, 0) << run.err;
    EXPECT_THAT(Read("o/out_0.npy"), ElementsAre(11, 22)) << to;
    const std::string none = (temp_ / "frozen.pb") + " --to " + to + " -o " + (temp_ / "none");
    ExpectError(Heddle("convert " + none + " --signature other"), 1, {"no signature 'other'"});
    ExpectError(Heddle("convert " + none + " --fetch y"), 1, {"input 'any' may have any rank"});
  }
}

}  // namespace
}  // namespace heddle::tools
