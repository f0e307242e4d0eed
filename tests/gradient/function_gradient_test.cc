// Gradients of functions of TensorFlow graphs, drawn from a seed, beside derivatives by the chain
// rule in float64.
#include "gradient/function_gradient.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "heddle/model_files.h"
#include "tests/formats/tensorflow/graph_bytes.h"
#include "tests/gradient/support.h"

namespace heddle::gradient {
namespace {

using heddle::testing::Message;
using ::testing::HasSubstr;
namespace tf = heddle::testing::tf;

constexpr int kArguments = 3;
constexpr int64_t kElements = 4;

// A value of each element, and its derivatives by the same element of each argument.
struct Dual {
  std::vector<double> value = std::vector<double>(kElements);
  std::vector<std::vector<double>> by =
      std::vector<std::vector<double>>(kArguments, std::vector<double>(kElements));
};

class DrawnFunction {
 public:
  explicit DrawnFunction(uint32_t seed) : random_(seed) {
    for (int a = 0; a < kArguments; ++a) {
      Dual x;
      for (double& v : x.value) v = Number();
      for (double& d : x.by[static_cast<size_t>(a)]) d = 1;
      names_.push_back("x" + std::to_string(a));
      values_.push_back(x);
    }
    const int steps = 2 + Below(6);
    for (int k = 0; k < steps; ++k) Step("n" + std::to_string(k));
    const int results = 1 + Below(2);
    for (int r = 0; r < results; ++r) {
      const size_t at = values_.size() - 1 - static_cast<size_t>(r);
      results_.emplace_back("r" + std::to_string(r), names_[at] + of_[at]);
      result_values_.push_back(values_[at]);
    }
  }
  std::string Graph() const {
    tf::Graph graph;
    std::vector<std::string> arguments;
    for (int a = 0; a < kArguments; ++a) {
      arguments.push_back("a" + std::to_string(a));
      graph.Add(tf::PlaceholderNode(arguments.back()));
    }
    graph.Add("PartitionedCall", "call", arguments, {{"f", tf::FunctionValue("f")}});
    std::vector<std::string> inputs(names_.begin(), names_.begin() + kArguments);
    graph.Function(tf::FunctionOf("f", inputs, results_, nodes_));
    return graph.bytes();
  }
  // The gradients as values of a graph: "gradient", "gradient:1", …; g0, g1, … are given.
  std::string GraphWithGradients() const {
    tf::Graph graph;
    std::vector<std::string> operands;
    for (int a = 0; a < kArguments; ++a) operands.push_back("a" + std::to_string(a));
    for (size_t r = 0; r < results_.size(); ++r) operands.push_back("g" + std::to_string(r));
    for (const std::string& name : operands) graph.Add(tf::PlaceholderNode(name));
    graph.Add(GradientNode("gradient", "f", operands, kArguments));
    std::vector<std::string> inputs(names_.begin(), names_.begin() + kArguments);
    graph.Function(tf::FunctionOf("f", inputs, results_, nodes_));
    return graph.bytes();
  }
  static Message GradientNode(const std::string& name, const std::string& function,
                              const std::vector<std::string>& operands, size_t arguments) {
    const auto floats = [](size_t count) {
      Message list;
      for (size_t k = 0; k < count; ++k) list.Int(6, tf::kF);
      return Message().Add(1, list);
    };
    return tf::NodeOf("SymbolicGradient", name, operands,
                      {{"f", tf::FunctionValue(function)},
                       {"Tin", floats(operands.size())},
                       {"Tout", floats(arguments)}});
  }
  const std::vector<Dual>& results() const { return result_values_; }
  const std::vector<double>& argument(int a) const { return values_[static_cast<size_t>(a)].value; }
  double Number() { return std::uniform_real_distribution<double>(-1, 1)(random_); }

 private:
  int Below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  void Step(const std::string& name) {
    const auto a = static_cast<size_t>(Below(static_cast<int>(values_.size())));
    const auto b = static_cast<size_t>(Below(static_cast<int>(values_.size())));
    const char* const kinds[] = {"Mul", "AddV2", "Sub", "Tanh", "Square", "Sin"};
    const int kind = Below(6);
    Dual out;
    for (size_t i = 0; i < kElements; ++i) {
      const double x = values_[a].value[i], y = values_[b].value[i];
      const double value[] = {x * y, x + y, x - y, std::tanh(x), x * x, std::sin(x)};
      const double by_x[] = {y, 1, 1, 1 - std::tanh(x) * std::tanh(x), 2 * x, std::cos(x)};
      const double by_y[] = {x, 1, -1, 0, 0, 0};
      out.value[i] = value[kind];
      for (size_t k = 0; k < kArguments; ++k)
        out.by[k][i] = by_x[kind] * values_[a].by[k][i] + by_y[kind] * values_[b].by[k][i];
    }
    std::vector<std::string> inputs = {names_[a] + of_[a]};
    if (kind < 3) inputs.push_back(names_[b] + of_[b]);
    nodes_.push_back(tf::NodeOf(kinds[kind], name, inputs, {{"T", tf::TypeValue(tf::kF)}}));
    names_.push_back(name);
    of_.push_back(kind < 3 ? ":z:0" : ":y:0");
    values_.push_back(out);
  }

  std::mt19937 random_;
  std::vector<std::string> names_, of_ = std::vector<std::string>(kArguments);
  std::vector<Dual> values_, result_values_;
  std::vector<std::pair<std::string, std::string>> results_;
  std::vector<Message> nodes_;
};

Tensor Floats(const std::vector<double>& values) {
  Tensor made = Tensor::Empty(DType::kF32, Shape{kElements});
  for (size_t i = 0; i < kElements; ++i)
    made.mutable_data<float>()[i] = static_cast<float>(values[i]);
  return made;
}

TEST(GradientOfFunction, IsTheChainRule) {
  int zeros = 0;
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    DrawnFunction drawn(seed);
    const auto program = Program::Parse(drawn.Graph());
    ASSERT_TRUE(program.ok()) << program.status().ToString();
    auto library = FunctionsOf(*program);
    ASSERT_TRUE(library.ok()) << library.status().ToString();
    const auto made = GradientOf(*library, "f");
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    ASSERT_EQ(made->arguments.size(), size_t{kArguments});
    ASSERT_EQ(made->result_gradients.size(), drawn.results().size());
    std::vector<Feed> feeds;
    std::vector<std::vector<double>> given;
    for (int a = 0; a < kArguments; ++a) {
      const std::string& name = made->arguments[static_cast<size_t>(a)];
      // What no result needs is no input of the program.
      if (made->model.program.variable(name)) feeds.push_back({name, Floats(drawn.argument(a))});
    }
    for (const std::string& name : made->result_gradients) {
      given.emplace_back(kElements);
      for (double& g : given.back()) g = drawn.Number();
      feeds.push_back({name, Floats(given.back())});
    }
    for (size_t a = 0; a < kArguments; ++a) {
      std::vector<double> wanted(kElements);
      for (size_t r = 0; r < given.size(); ++r)
        for (size_t i = 0; i < kElements; ++i)
          wanted[i] += given[r][i] * drawn.results()[r].by[a][i];
      if (made->gradients[a].empty()) {
        ++zeros;
        for (const double w : wanted) EXPECT_EQ(w, 0);
        continue;
      }
      const auto got = RunOnce(made->model.program, made->model.scope, feeds, {made->gradients[a]});
      ASSERT_EQ(got.size(), 1u);
      const std::vector<double> numbers = ValuesOf(got[0]);
      for (size_t i = 0; i < kElements; ++i)
        EXPECT_NEAR(numbers[i], wanted[i], 1e-5 * (1 + std::abs(wanted[i])));
    }
  }
  EXPECT_GT(zeros, 10);
}

TEST(SymbolicGradient, IsTheChainRule) {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    DrawnFunction drawn(seed);
    std::vector<std::string> fetches = {"gradient"};
    for (int a = 1; a < kArguments; ++a) fetches.push_back("gradient:" + std::to_string(a));
    std::vector<Feed> feeds;
    ProgramPart part;
    for (int a = 0; a < kArguments; ++a)
      feeds.push_back({"a" + std::to_string(a), Floats(drawn.argument(a))});
    std::vector<std::vector<double>> given;
    for (size_t r = 0; r < drawn.results().size(); ++r) {
      given.emplace_back(kElements);
      for (double& g : given.back()) g = drawn.Number();
      feeds.push_back({"g" + std::to_string(r), Floats(given.back())});
    }
    for (const Feed& feed : feeds) part.feeds.push_back(feed.name);
    part.fetches = fetches;
    const auto model = ParseModel(drawn.GraphWithGradients(), "", "graph", part);
    ASSERT_TRUE(model.ok()) << model.status().ToString();
    for (const int level : {0, 2}) {
      Executor executor({.threads = 1});
      const auto compiled = executor.Compile(*model, {.opt_level = level});
      ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
      const auto got = executor.Run(*compiled, feeds);
      ASSERT_TRUE(got.ok()) << got.status().ToString();
      ASSERT_EQ(got->size(), size_t{kArguments});
      for (size_t a = 0; a < kArguments; ++a) {
        const std::vector<double> numbers = ValuesOf((*got)[a]);
        for (size_t i = 0; i < kElements; ++i) {
          double wanted = 0;
          for (size_t r = 0; r < given.size(); ++r)
            wanted += given[r][i] * drawn.results()[r].by[a][i];
          EXPECT_NEAR(numbers[i], wanted, 1e-5 * (1 + std::abs(wanted)));
        }
      }
    }
  }
}

// x³, whose gradient is 3 x² g, and the gradient of that by x 6 x g h, by g 3 x² h.
TEST(SymbolicGradient, OfAGradientIsTheSecondOne) {
  tf::Graph graph;
  for (const char* name : {"x", "g", "h"}) graph.Add(tf::PlaceholderNode(name));
  graph.Add(DrawnFunction::GradientNode("second", "first", {"x", "g", "h"}, 2));
  graph.Add("Mul", "scaled", {"second", "second:1"}, {{"T", tf::TypeValue(tf::kF)}});
  const Message type = tf::TypeValue(tf::kF);
  graph.Function(tf::FunctionOf("cube", {"x"}, {{"y", "cube:z:0"}},
                                {tf::NodeOf("Mul", "square", {"x", "x"}, {{"T", type}}),
                                 tf::NodeOf("Mul", "cube", {"square:z:0", "x"}, {{"T", type}})}));
  graph.Function(tf::FunctionOf("first", {"x", "g"}, {{"dx", "d:output:0"}},
                                {DrawnFunction::GradientNode("d", "cube", {"x", "g"}, 1)}));
  const auto model =
      ParseModel(graph.bytes(), "", "graph",
                 {.feeds = {"x", "g", "h"}, .fetches = {"second", "second:1", "scaled"}});
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const std::vector<double> x = {1, -2, 0.5, 3}, g = {2, 1, -1, 0.5}, h = {1, 0.5, 2, -1};
  const auto got =
      RunOnce(model->program, model->scope, {{"x", Floats(x)}, {"g", Floats(g)}, {"h", Floats(h)}},
              {"second", "second:1", "scaled"});
  ASSERT_EQ(got.size(), 3u);
  for (size_t i = 0; i < kElements; ++i) {
    const double by_x = 6 * x[i] * g[i] * h[i], by_g = 3 * x[i] * x[i] * h[i];
    EXPECT_NEAR(ValuesOf(got[0])[i], by_x, 1e-5 * (1 + std::abs(by_x)));
    EXPECT_NEAR(ValuesOf(got[1])[i], by_g, 1e-5 * (1 + std::abs(by_g)));
    EXPECT_NEAR(ValuesOf(got[2])[i], by_x * by_g, 1e-4 * (1 + std::abs(by_x * by_g)));
  }
}

TEST(SymbolicGradient, WhatDoesNotFitIsSaid) {
  const auto refusal = [](const Message& node, const Message& function) {
    tf::Graph graph;
    graph.Add(tf::PlaceholderNode("x")).Add(tf::PlaceholderNode("g")).Add(node);
    graph.Function(function);
    const auto program = Program::Parse(graph.bytes());
    return program.ok() ? "" : program.status().message();
  };
  const Message type = tf::TypeValue(tf::kF);
  const Message twice = tf::FunctionOf("f", {"x"}, {{"y", "sum:z:0"}},
                                       {tf::NodeOf("AddV2", "sum", {"x", "x"}, {{"T", type}})});
  EXPECT_THAT(refusal(DrawnFunction::GradientNode("d", "f", {"x"}, 1), twice),
              HasSubstr("has 0 gradients of results, and function 'f' gives 1"));
  EXPECT_THAT(refusal(DrawnFunction::GradientNode("d", "f", {"x", "g"}, 3), twice),
              HasSubstr("gives gradients of 3 arguments, and has 2 inputs"));
  EXPECT_THAT(refusal(DrawnFunction::GradientNode("d", "q", {"x", "g"}, 1), twice),
              HasSubstr("calls 'q'"));
}

TEST(GradientOfFunction, AFunctionThatIsNotThereIsNamed) {
  const auto program = Program::Parse(DrawnFunction(1).Graph());
  ASSERT_TRUE(program.ok());
  auto library = FunctionsOf(*program);
  ASSERT_TRUE(library.ok());
  const auto made = GradientOf(*library, "g");
  EXPECT_EQ(made.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(made.status().message(), HasSubstr("'g'"));
}

}  // namespace
}  // namespace heddle::gradient
