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

}  // namespace
}  // namespace heddle::tools
