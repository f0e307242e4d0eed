// heddle grad, and heddle train --forward: training the model of a file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "heddle/params.h"
#include "tests/support/program_builder.h"
#include "tests/tools/cli.h"
#include "tests/tools/npz_maker.h"
#include "tools/values/npy.h"

namespace heddle::tools {
namespace {

using heddle::testing::ProgramBuilder;
using ::testing::HasSubstr;

// y = w x, loss = y^2: one parameter, whose steps can be computed by hand.
class FineTuneTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ProgramBuilder net;
    net.Param("w", DType::kF32, {1}).Feed("x", DType::kF32, {1});
    net.Binary("elementwise_mul", "w", "x", "y").Unary("square", "y", "loss");
    net.Op("floor", {{"X", {"y"}}}, {{"Out", {"whole"}}});
    net.Binary("greater_than", "y", "x", "above");
    net.Op("cast", {{"X", {"above"}}}, {{"Out", {"count"}}},
           {{"in_dtype", int64_t{0}}, {"out_dtype", int64_t{5}}});
    net.Fetch("y");
    WriteFile(temp_ / "model.pdmodel", net.Bytes());
    Scope scope;
    scope.Set("w", heddle::testing::F32({1}, {3}));
    ASSERT_TRUE(SaveParameters(net.Build(), scope, temp_ / "model.pdiparams").ok());
    WriteFile(temp_ / "x.npy", FloatNpy("(2, 1)", {1, 2}));
  }
  std::string Model() const { return temp_ / "model.pdmodel"; }
  float Number(const std::string& file, int64_t i = 0) {
    const auto t = ReadNpy(temp_ / file);
    EXPECT_TRUE(t.ok()) << t.status().ToString();
    return t.ok() ? t->data<float>()[i] : 0;
  }
  TempDirectory temp_;
};

TEST_F(FineTuneTest, GradWritesAModelWithGradients) {
  const Outcome made = Heddle("grad " + Model() + " --loss loss --json -o " + (temp_ / "g"));
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_EQ(nlohmann::json::parse(made.out)["gradients"]["w"], "w@GRAD");
  WriteFile(temp_ / "one.npy", FloatNpy("(1,)", {2}));
  const Outcome run = Heddle("run " + (temp_ / "g") + " --feed x=" + (temp_ / "one.npy") +
                             " --fetch w@GRAD --out " + (temp_ / "o"));
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_FLOAT_EQ(Number("o/out_0.npy"), 2 * 3 * 2 * 2);
}

TEST_F(FineTuneTest, GradNamesWhatIsInTheWay) {
  const Outcome o = Heddle("grad " + Model() + " --loss count --wrt w -o " + (temp_ / "g"));
  EXPECT_EQ(o.status, 1);
  EXPECT_THAT(o.err, HasSubstr("greater_than (block 0, operator"));
  EXPECT_THAT(o.err, HasSubstr("'count' <- cast <- 'above' <- greater_than"));
  const Outcome nothing = Heddle("grad " + Model() + " --loss y --wrt nowhere -o " + (temp_ / "g"));
  EXPECT_EQ(nothing.status, 1);
  EXPECT_THAT(nothing.err, HasSubstr("'nowhere'"));
}

TEST_F(FineTuneTest, StepsFollowTheRuleAndTheModelComesBack) {
  const Outcome o = Heddle(
      "train --forward " + Model() + " --loss loss --optimizer sgd --lr 0.1 --steps 2 " +
      "--feed x=" + (temp_ / "x.npy") + " --fetch loss --fetch w@GRAD --fetch w --quiet --out " +
      (temp_ / "o") + " --save " + (temp_ / "all.npz") + " --export " + (temp_ / "e"));
  ASSERT_EQ(o.status, 0) << o.err;
  // w: 3 -> 3 - 0.1 * 2*3 = 2.4 -> 2.4 - 0.1 * 2*2.4*4 = 0.48
  EXPECT_FLOAT_EQ(Number("o/out_0.npy", 0), 9);
  EXPECT_FLOAT_EQ(Number("o/out_0.npy", 1), 2.4f * 2.4f * 4);
  EXPECT_FLOAT_EQ(Number("o/out_1.npy", 1), 2 * 2.4f * 4);
  EXPECT_FLOAT_EQ(Number("o/out_2.npy", 0), 3);  // before the update
  EXPECT_FLOAT_EQ(Number("o/out_2.npy", 1), 2.4f);
  WriteFile(temp_ / "one.npy", FloatNpy("(1,)", {1}));
  const Outcome run = Heddle("run " + (temp_ / "e") + " --feed x=" + (temp_ / "one.npy") +
                             " --out " + (temp_ / "r"));
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_NEAR(Number("r/out_0.npy"), 0.48, 1e-6);
  EXPECT_EQ(ReadFile(temp_ / "e/model.pdmodel"), ReadFile(Model()));
}

TEST_F(FineTuneTest, AFrozenParameterStays) {
  const Outcome o =
      Heddle("train --forward " + Model() +
             " --loss loss --optimizer adam --lr 0.1 --steps 1 --freeze 'w*' --feed x=" +
             (temp_ / "x.npy") + " --quiet");
  EXPECT_EQ(o.status, 1);
  EXPECT_THAT(o.err, HasSubstr("no loss depends on a trainable parameter"));
}

TEST_F(FineTuneTest, GlobsMatchWholeNames) {
  const auto train = [&](const std::string& glob) {
    return Heddle("train --forward " + Model() +
                  " --loss loss --optimizer sgd --lr 0.1 --steps 1 --freeze '" + glob +
                  "' --feed x=" + (temp_ / "x.npy") + " --quiet")
        .status;
  };
  std::string stars;
  for (int k = 0; k < 30; ++k) stars += "*w";
  for (const char* const all : {"w", "?", "*", "w*", "*w", "**w**"})
    EXPECT_EQ(train(all), 1) << all;
  for (const std::string& none : {std::string("v"), std::string("w?"), std::string("??"),
                                  std::string("*v"), std::string("w*v"), stars + "*v"})
    EXPECT_EQ(train(none), 0) << none;
}

// (w x - t)^2 for a label t: w goes from 3 to 3 - 0.1 * 2 * (3 - 1) = 2.6.
TEST_F(FineTuneTest, ALossIsAddedAndSaid) {
  WriteFile(temp_ / "t.npy", FloatNpy("(2, 1)", {1, 1}));
  const std::string job = "train --forward " + Model() + " --labels t --loss-op mse" +
                          " --optimizer sgd --lr 0.1 --steps 1 --feed x=" + (temp_ / "x.npy");
  const Outcome o = Heddle(job + " --feed t=" + (temp_ / "t.npy") + " --fetch w --fetch loss@2" +
                           " --json --save " + (temp_ / "all.npz") + " --out " + (temp_ / "o"));
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_THAT(o.err, HasSubstr("loss 'loss@2': the mean squared distance of output 'y' from 't'"));
  EXPECT_EQ(nlohmann::json::parse(o.out)["loss"][0], "loss@2");
  EXPECT_FLOAT_EQ(Number("o/out_1.npy"), 4);
  const auto saved = ReadNpz(temp_ / "all.npz");
  ASSERT_TRUE(saved.ok());
  for (const auto& [name, tensor] : *saved) {
    if (name == "w") {
      EXPECT_FLOAT_EQ(tensor.data<float>()[0], 2.6f);
    }
  }
}

TEST_F(FineTuneTest, AResumedJobHasTheSameBits) {
  const std::string job = "train --forward " + Model() + " --loss loss --optimizer adam --lr 0.1" +
                          " --quiet --feed x=" + (temp_ / "x.npy");
  const auto run = [&](const std::string& more) {
    const Outcome o = Heddle(job + more);
    EXPECT_EQ(o.status, 0) << o.err;
    return o;
  };
  run(" --steps 7 --save " + (temp_ / "whole.npz") + " --out " + (temp_ / "whole"));
  const std::string kept = " --every 2 --checkpoint " + (temp_ / "run") + " --out ";
  run(" --steps 5" + kept + (temp_ / "part"));
  const Outcome again = Heddle(job + " --steps 7" + kept + (temp_ / "part"));
  EXPECT_EQ(again.status, 1);
  EXPECT_THAT(again.err, HasSubstr("holds checkpoints (the newest after step 5)"));
  const Outcome rest =
      run(" --steps 7 --resume --json --save " + (temp_ / "rest.npz") + kept + (temp_ / "rest"));
  EXPECT_EQ(nlohmann::json::parse(rest.out)["resumed_from"], 5);
  EXPECT_EQ(ReadFile(temp_ / "whole.npz"), ReadFile(temp_ / "rest.npz"));
  EXPECT_EQ(ReadFile(temp_ / "whole/out_0.npy"), ReadFile(temp_ / "rest/out_0.npy"));
  const Outcome other = Heddle(job + " --steps 9 --resume --beta1 0.5" + kept + (temp_ / "rest"));
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(other.err, HasSubstr("belongs to another main program"));
}

TEST_F(FineTuneTest, ValidationTellsTheLossOfOtherData) {
  WriteFile(temp_ / "other.npz", NpzBytes({{"x", FloatNpy("(3, 1)", {1, 2, 3})}}));
  const Outcome o = Heddle("train --forward " + Model() + " --loss loss --optimizer sgd --lr 0.1" +
                           " --steps 2 --json --feed x=" + (temp_ / "x.npy") + " --validate " +
                           (temp_ / "other.npz") + " --validate-every 1");
  ASSERT_EQ(o.status, 0) << o.err;
  // w is 2.4, then 0.48; the mean of x² is 14 / 3.
  const auto told = nlohmann::json::parse(o.out)["validation"];
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[1]["step"], 2);
  EXPECT_NEAR(told[0]["loss"].get<double>(), 2.4 * 2.4 * 14 / 3, 1e-4);
  EXPECT_NEAR(told[1]["loss"].get<double>(), 0.48 * 0.48 * 14 / 3, 1e-4);
  EXPECT_THAT(o.err, HasSubstr("validation after step 1: loss 26.88"));
}

TEST_F(FineTuneTest, WhatDoesNotFitIsNamed) {
  WriteFile(temp_ / "t.npy", FloatNpy("(2, 1)", {1, 1}));
  const auto says = [&](const std::string& options, const std::string& text) {
    const Outcome o = Heddle("train --forward " + Model() + " --optimizer sgd --lr 0.1 --steps 1" +
                             " --feed x=" + (temp_ / "x.npy") + " " + options);
    EXPECT_EQ(o.status, 1) << options;
    EXPECT_THAT(o.err, HasSubstr(text)) << options;
  };
  const std::string labels = "--feed t=" + (temp_ / "t.npy");
  says("--labels t --loss-op mse", "labels 't': the data have no such array");
  says("--labels y --loss-op mse --feed y=" + (temp_ / "t.npy"),
       "the labels 'y' are a new input, and the model has a variable of that name");
  says("--labels t --loss-op mse --output nowhere " + labels, "no such variable");
  says("--loss loss --head 3", "no product with weights leads to the output");
  says("--loss loss --lora 2", "no weights of products are to be adapted; the model has none");
  WriteFile(temp_ / "bad.npz", ReadFile(temp_ / "t.npy"));
  says("--loss loss --adapter " + (temp_ / "bad.npz"), "bad.npz");
}

TEST_F(FineTuneTest, OptionsBelongTogether) {
  const std::string job = "train --forward " + Model() + " --steps 1 --feed x=" + (temp_ / "x.npy");
  EXPECT_EQ(Heddle(job + " --loss loss --optimizer sgd").status, 2);
  EXPECT_EQ(Heddle(job + " --loss loss --optimizer magic --lr 1").status, 2);
  EXPECT_EQ(Heddle(job + " --optimizer sgd --lr 1").status, 2);
  EXPECT_EQ(Heddle(job + " --loss loss --optimizer sgd --lr 1 --main " + Model()).status, 2);
  const std::string more = job + " --optimizer sgd --lr 1";
  const auto says = [&](const std::string& options, const std::string& text) {
    const Outcome o = Heddle(more + options);
    EXPECT_EQ(o.status, 2) << options;
    EXPECT_THAT(o.err, HasSubstr(text)) << options;
  };
  says("", "--forward requires --loss, or --labels with --loss-op");
  says(" --loss loss --labels t --loss-op mse", "--loss excludes --loss-op");
  says(" --labels t", "--loss-op");
  says(" --labels t --loss-op hinge", "hinge");
  says(" --loss loss --lora 0", "no RANK or RANK,ALPHA");
  says(" --loss loss --lora 2,", "no RANK or RANK,ALPHA");
  says(" --loss loss --save-adapter a.npz", "--save-adapter requires --lora or --adapter");
  says(" --loss loss --output y", "--output requires --loss-op or --head");
  says(" --loss loss --norms sometimes", "sometimes");
}

}  // namespace
}  // namespace heddle::tools
