// Gradients of functions of TensorFlow graphs, drawn from a seed, beside derivatives by the chain
// rule in float64.
#include "gradient/function_gradient.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

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
