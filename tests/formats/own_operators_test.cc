// Files of every format have operators that the program that uses heddle has added.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/own_ops/own_registry.h"
#include "heddle/model_files.h"
#include "heddle/operators/own_operator.h"
#include "tests/formats/onnx/onnx_bytes.h"
#include "tests/formats/pir/pir_text.h"
#include "tests/formats/tensorflow/graph_bytes.h"

namespace heddle::testing {
namespace {

using ::testing::HasSubstr;

// Out = factor * X, and Negative = -Out.
void AddTimes() {
  if (FindOwnOp("own_times") != nullptr) return;
  OwnOperator op;
  op.name = "own_times";
  op.names_in_files = {"com.acme.Times", "AcmeTimes", "custom_op.acme_times"};
  op.inputs = {{.name = "X", .dtypes = {DType::kF32}}};
  op.outputs = {{.name = "Out"}, {.name = "Negative", .optional = true}};
  op.attributes = {{"factor", 2.0}};
  op.kernel = [](OwnKernelCall& call) {
    const Tensor& x = call.input("X");
    for (int64_t i = 0; i < x.numel(); ++i) {
      const auto v = static_cast<float>(call.attribute<double>("factor")) * x.data<float>()[i];
      call.output("Out").mutable_data<float>()[i] = v;
      if (call.has_output("Negative")) call.output("Negative").mutable_data<float>()[i] = -v;
    }
    return Status::Ok();
  };
  ASSERT_TRUE(AddOperator(std::move(op)).ok());
}

std::vector<float> RunAll(const Model& model) {
  Executor executor({.threads = 1});
  const auto compiled = executor.Compile(model);
  EXPECT_TRUE(compiled.ok()) << compiled.status().ToString();
  std::vector<float> all;
  for (const Tensor& t : MustRun(executor, *compiled, {{"x", F32({2}, {1, -4})}}))
    for (const float v : Floats(t)) all.push_back(v);
  return all;
}

TEST(OwnOperators, OfOnnxFiles) {
  AddTimes();
  const auto model = [](const std::string& domain, const std::string& type) {
    Message node;
    node.Bytes(1, "x").Bytes(2, "y").Bytes(2, "z").Bytes(4, type);
    node.Add(5, FloatAttr("factor", 3)).Bytes(7, domain);
    OnnxGraph g;
    g.Add(node).In("x").Out("y").Out("z");
    return ParseModel(Message()
                          .Int(1, 8)
                          .Add(7, g.message())
                          .Add(8, Message().Int(2, 17))
                          .Add(8, Message().Bytes(1, domain).Int(2, 1))
                          .bytes(),
                      "", "test.onnx");
  };
  const auto known = model("com.acme", "Times");
  ASSERT_TRUE(known.ok()) << known.status().ToString();
  EXPECT_EQ(RunAll(*known), (std::vector<float>{3, -12, -3, 12}));
  EXPECT_THAT(model("com.acme", "Divided").status().ToString(), HasSubstr("com.acme.Divided"));
}

TEST(OwnOperators, OfTensorflowGraphs) {
  AddTimes();
  tf::Graph g;
  g.Add(tf::PlaceholderNode("x"));
  g.Add("AcmeTimes", "t", {"x"}, {{"factor", Message().Float(4, 5)}});
  g.Add("Identity", "y", {"t:1"}, {{"T", tf::TypeValue(tf::kF)}});
  EXPECT_EQ(tf::RunGraph(g, {{"x", F32({2}, {1, -4})}}, "y"), (std::vector<float>{-5, 20}));
}

TEST(OwnOperators, OfPirPrograms) {
  AddTimes();
  for (const std::string name : {"3.acme_times", "3.own_times", "1.own_times"}) {
    PirText p;
    p.Data(1, "x").Op(name, {1}, {2, 3}, PirText::Attr("factor", "0.a_f32", "4.0"));
    p.Fetch(2, "y").Fetch(3, "z");
    const auto program = p.TryBuild();
    ASSERT_TRUE(program.ok()) << program.status().ToString();
    EXPECT_EQ(RunAll({*program, nullptr}), (std::vector<float>{4, -16, -4, 16})) << name;
  }
}

TEST(OwnOperators, OfPaddlePrograms) {
  AddTimes();
  for (const std::string name : {"own_times", "AcmeTimes"}) {
    ProgramBuilder b;
    b.Feed("x", DType::kF32, {-1});
    b.Op(name, {{"X", {"x"}}}, {{"Out", {"y"}}}, {{"factor", 6.0}});
    b.Fetch("y");
    const auto program = b.TryBuild();
    ASSERT_TRUE(program.ok()) << program.status().ToString();
    EXPECT_EQ(RunAll({*program, nullptr}), (std::vector<float>{6, -24})) << name;
    const auto bytes = program->Serialize();
    ASSERT_TRUE(bytes.ok()) << bytes.status().ToString();
    const auto again = Program::Parse(*bytes);
    ASSERT_TRUE(again.ok()) << again.status().ToString();
    EXPECT_EQ(RunAll({*again, nullptr}), (std::vector<float>{6, -24}));
  }
}

}  // namespace
}  // namespace heddle::testing
