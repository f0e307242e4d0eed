// Models, parameters and feeds that come through pipes, by each command that takes a model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/formats/tensorflow/graph_bytes.h"
#include "tests/tools/cli.h"

namespace heddle::tools {
namespace {

using ::testing::HasSubstr;

const std::string kDigits = HEDDLE_SOURCE_DIR "/examples/digits";

class Pipes : public ::testing::Test {
 protected:
  // Runs a command of bash, in which $H is the tool and $T the folder of this test.
  Outcome Bash(const std::string& command) {
    WriteFile(temp_ / "command", "H='" + ToolPath() + "' T='" + (temp_ / "") + "'\n" + command);
    return RunCommand("timeout 60 bash '" + (temp_ / "command") + "'");
  }
  void SetUp() override {
    for (const char* name : {"model.pdmodel", "model.pdiparams", "input.npy"})
      WriteFile(temp_ / name, ReadFile(kDigits + "/" + name));
    testing::OnnxGraph onnx;
    onnx.In("x", 1, {-1, 1, 8, 8});
    onnx.Weight(testing::Tensor32("w", {8}, std::vector<float>(8, 3)));
    onnx.Add(testing::Node("Mul", {"x", "w"}, {"y"})).Out("y", 1, {-1, 1, 8, 8});
    WriteFile(temp_ / "m.onnx", onnx.Model());
    testing::tf::Graph graph;
    graph.Add(
        "Placeholder", "x", {},
        {{"dtype", testing::tf::TypeValue(1)}, {"shape", testing::tf::ShapeValue({-1, 1, 8, 8})}});
    graph.Add(testing::tf::FloatsNode("w", {8}, std::vector<float>(8, 3)));
    graph.Add("Mul", "y", {"x", "w"}, {{"T", testing::tf::TypeValue(1)}});
    WriteFile(temp_ / "g.pb", graph.bytes());
  }
  TempDirectory temp_;
};

// What a command does with a file and what it does with a pipe.
TEST_F(Pipes, EveryCommandTakesAModelFromOne) {
  struct Way {
    std::string model, params;
  };
  const Way files[] = {
      {"$T/model.pdmodel", "--params $T/model.pdiparams"}, {"$T/m.onnx", ""}, {"$T/g.pb", ""}};
  const std::string commands[] = {
      "run MODEL PARAMS --feed x=$T/input.npy --out $T/OUT",
      "inspect MODEL",
      "plan MODEL PARAMS --feed x=$T/input.npy",
      "bench MODEL PARAMS --feed x=$T/input.npy --seconds 0.05 --warmup 1",
      "profile MODEL PARAMS --feed x=$T/input.npy --seconds 0.05",
      "opt MODEL PARAMS --output $T/OUT.pdmodel",
      "convert MODEL PARAMS --to pir --output $T/OUT",
  };
  for (const Way& file : files) {
    for (const std::string& command : commands) {
      const bool inspects = command.starts_with("inspect");
      const auto with = [&](std::string model, std::string params, const std::string& out) {
        std::string made = "$H " + command;
        for (const auto& [word, by] : {std::pair{std::string("MODEL"), model},
                                       std::pair{std::string("PARAMS"), inspects ? "" : params},
                                       std::pair{std::string("OUT"), out}})
          if (const size_t at = made.find(word); at != std::string::npos)
            made.replace(at, word.size(), by);
        return made;
      };
      SCOPED_TRACE(command + ", " + file.model);
      const Outcome expected = Bash(with(file.model, file.params, "file"));
      ASSERT_EQ(expected.status, 0) << expected.err;
      const std::string params = file.params.empty() ? "" : "--params <(cat $T/model.pdiparams)";
      const std::string ways[] = {
          with("<(cat " + file.model + ")", params, "pipe"),
          "cat " + file.model + " | " + with("/dev/stdin", params, "pipe"),
          with("/dev/fd/7", params, "pipe") + " 7< " + file.model,
          "rm -f $T/fifo; mkfifo $T/fifo; cat " + file.model + " > $T/fifo & " +
              with("$T/fifo", params, "pipe"),
      };
      for (const std::string& way : ways) {
        const Outcome o = Bash(way);
        EXPECT_EQ(o.status, 0) << way << "\n" << o.err;
      }
    }
    EXPECT_EQ(ReadFile(temp_ / "pipe/out_0.npy"), ReadFile(temp_ / "file/out_0.npy"));
    EXPECT_FALSE(ReadFile(temp_ / "file/out_0.npy").empty());
  }
}

TEST_F(Pipes, FeedsComeThroughThem) {
  Outcome o = Bash("$H run $T/m.onnx --feed x=<(cat $T/input.npy) --out $T/a");
  EXPECT_EQ(o.status, 0) << o.err;
  o = Bash("$H run $T/m.onnx --feed x=$T/input.npy --out $T/b");
  EXPECT_EQ(ReadFile(temp_ / "a/out_0.npy"), ReadFile(temp_ / "b/out_0.npy"));
  o = Bash("cp $T/input.npy $T/a=b.npy; $H run <(cat $T/m.onnx) --feed x=$T/a=b.npy --out $T/c");
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_EQ(ReadFile(temp_ / "c/out_0.npy"), ReadFile(temp_ / "b/out_0.npy"));
  o = Bash("$H run $T/m.onnx --feed x=<(head -c 100 $T/input.npy) --out $T/a");
  EXPECT_EQ(o.status, 1);
  EXPECT_THAT(o.err, HasSubstr("cut short"));
}

TEST_F(Pipes, WhatDoesNotComeThroughThemIsSaid) {
  Outcome o = Bash("$H run <(cat $T/model.pdmodel) --feed x=$T/input.npy");
  EXPECT_EQ(o.status, 1);
  EXPECT_THAT(o.err, HasSubstr("name their file, too"));
  o = Bash("$H run <(head -c 70 $T/m.onnx) --feed x=$T/input.npy");
  EXPECT_EQ(o.status, 1);
  o = Bash("$H run <(true) --feed x=$T/input.npy");
  EXPECT_EQ(o.status, 1);
  EXPECT_THAT(o.err, HasSubstr("empty"));
  o = Bash("$H inspect /dev/null");
  EXPECT_EQ(o.status, 1);
  EXPECT_THAT(o.err, HasSubstr("a device"));
  o = Bash("$H inspect <(echo hello)");
  EXPECT_EQ(o.status, 1);
  EXPECT_THAT(o.err, HasSubstr("this is text"));
}

}  // namespace
}  // namespace heddle::tools
