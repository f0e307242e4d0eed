// Programs drawn from a seed, of differentiable operators, whose gradients are compared with
// central differences in float64. Half of them have a loop or a branch.
#include <gtest/gtest.h>

#include <random>

#include "tests/gradient/differences.h"

namespace heddle::gradient {
namespace {

class DrawnProgram {
 public:
  explicit DrawnProgram(uint32_t seed) : random_(seed) {}

  Model Make() {
    for (const char* name : {"a", "b", "c"}) {
      values_.push_back(Take(b_.Feed(name, DType::kF64, {3, 4})));
      feeds_.emplace(name, Numbers({3, 4}));
    }
    const auto steps = 4 + Below(8);
    for (size_t k = 0; k < steps; ++k) {
      const auto draw = Below(12);
      if (draw == 0 && k > 0)
        Loop();
      else if (draw == 1 && k > 0)
        Branch();
      else
        values_.push_back(Step());
    }
    // All that was made counts.
    Variable sum = values_.back();
    for (size_t k = 3; k + 1 < values_.size(); ++k)
      sum = Op("elementwise_add", {{"X", {sum}}, {"Y", {values_[k]}}});
    const auto loss = b_.Add("reduce_mean", {{"X", {sum}}}, {{"dim", std::vector<int64_t>{1}}},
                             {{"Out", std::vector<std::string>{"loss"}}});
    EXPECT_TRUE(loss.ok()) << loss.status().ToString();
    EXPECT_TRUE(b_.Fetch((*loss)[0].second[0]).ok());
    auto model = std::move(b_).Finish();
    EXPECT_TRUE(model.ok()) << model.status().ToString();
    return *std::move(model);
  }
  const Feeds& feeds() const { return feeds_; }

 private:
  size_t Below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }
  Tensor Numbers(const Shape& shape) {
    std::vector<double> values(static_cast<size_t>(shape.numel()));
    for (double& v : values) v = std::uniform_real_distribution<double>(-1, 1)(random_);
    return Doubles(shape, values);
  }
  Variable Take(Result<Variable> made) {
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    return made.ok() ? *made : Variable();
  }
  Variable Op(const char* type, const Operands& in, const Attributes& attributes = {}) {
    return Take(b_.Apply(type, in, attributes));
  }
  Variable Any() { return values_[Below(values_.size())]; }
  Variable Unary(const char* type, Variable x) { return Op(type, {{"X", {x}}}); }

  // A value of shape [3, 4] made of others.
  Variable Step() {
    const Variable x = Any(), y = Any();
    const std::vector<int64_t> swap{1, 0};
    switch (Below(18)) {
      case 0:
        return Unary("tanh", x);
      case 1:
        return Unary("sigmoid", x);
      case 2:
        return Op("elementwise_mul", {{"X", {Unary("sin", x)}}, {"Y", {y}}});
      case 3:
        return Op(
            "elementwise_div",
            {{"X", {x}}, {"Y", {Op("scale", {{"X", {Unary("square", y)}}}, {{"bias", 1.5}})}}});
      case 4:
        return Op("elementwise_sub", {{"X", {x}}, {"Y", {Unary("cos", y)}}});
      case 5: {
        const Variable product = Op("matmul_v2", {{"X", {x}}, {"Y", {y}}}, {{"trans_y", true}});
        return Op("matmul_v2", {{"X", {Unary("tanh", product)}}, {"Y", {x}}});
      }
      case 6:
        return Op("softmax", {{"X", {x}}}, {{"axis", int64_t{-1}}});
      case 7:
        return Op("log_softmax", {{"X", {x}}}, {{"axis", int64_t{0}}});
      case 8: {
        const Variable turned = Op("transpose2", {{"X", {x}}}, {{"axis", swap}});
        return Op("transpose2", {{"X", {Unary("softplus", turned)}}}, {{"axis", swap}});
      }
      case 9:
        return Op("reshape2",
                  {{"X", {Op("reshape2", {{"X", {x}}}, {{"shape", std::vector<int64_t>{4, 3}}})}}},
                  {{"shape", std::vector<int64_t>{3, 4}}});
      case 10: {
        const Variable mean =
            Op("reduce_mean", {{"X", {x}}}, {{"dim", std::vector<int64_t>{1}}, {"keep_dim", true}});
        return Op("elementwise_sub", {{"X", {y}}, {"Y", {mean}}});
      }
      case 11: {
        const auto parts = b_.Add("split", {{"X", {x}}},
                                  {{"axis", int64_t{1}}, {"num", int64_t{2}}}, {{"Out", 2}});
        EXPECT_TRUE(parts.ok()) << parts.status().ToString();
        const auto& both = (*parts)[0].second;
        return Op("concat", {{"X", {both[1], Unary("sin", both[0])}}}, {{"axis", int64_t{1}}});
      }
      case 12: {
        const Variable row = Op("slice", {{"Input", {x}}},
                                {{"axes", std::vector<int64_t>{0}},
                                 {"starts", std::vector<int64_t>{1}},
                                 {"ends", std::vector<int64_t>{2}}});
        return Op("elementwise_mul", {{"X", {y}}, {"Y", {row}}});
      }
      case 13:
        return Op("layer_norm", {{"X", {Op("elementwise_add", {{"X", {x}}, {"Y", {y}}})}}},
                  {{"begin_norm_axis", int64_t{1}}, {"epsilon", 0.1}});
      case 14:
        return Op("cumsum", {{"X", {x}}}, {{"axis", int64_t{1}}});
      case 15:
        return Op("scale", {{"X", {x}}}, {{"scale", -0.7}, {"bias", 0.2}});
      case 16:
        return Unary("erf", x);
      default:
        return Op("elementwise_pow",
                  {{"X", {Op("scale", {{"X", {Unary("square", x)}}}, {{"bias", 0.5}})}},
                   {"Y", {Op("scale", {{"X", {y}}}, {{"scale", 0.5}})}}});
    }
  }

  Variable Number(int64_t value) {
    return Op("fill_constant", {},
              {{"shape", std::vector<int64_t>{1}},
               {"value", static_cast<double>(value)},
               {"dtype", DType::kI64}});
  }
  Variable CopyOf(Variable x) { return Op("assign", {{"X", {x}}}); }

  // A value that each turn replaces.
  void Loop() {
    const Variable state = CopyOf(Any());
    const Variable i = Number(0), n = Number(static_cast<int64_t>(Below(4)));
    const Variable more = Op("less_than", {{"X", {i}}, {"Y", {n}}});
    ASSERT_TRUE(b_.BeginWhile(more).ok());
    const auto outside = values_;
    values_.push_back(state);
    values_.push_back(Step());
    const Variable next = Op("tanh", {{"X", {Step()}}});
    ASSERT_TRUE(b_.Assign(Op("elementwise_add", {{"X", {next}}, {"Y", {state}}}), state).ok());
    ASSERT_TRUE(b_.Assign(Op("scale", {{"X", {i}}}, {{"bias", 1.0}}), i).ok());
    ASSERT_TRUE(b_.Assign(Op("less_than", {{"X", {i}}, {"Y", {n}}}), more).ok());
    ASSERT_TRUE(b_.EndBlock().ok());
    values_ = outside;
    values_.push_back(state);
  }

  // A value that is replaced if the branch runs.
  void Branch() {
    const Variable state = CopyOf(Any());
    const Variable holds =
        Op("less_than", {{"X", {Number(0)}}, {"Y", {Number(static_cast<int64_t>(Below(2)))}}});
    ASSERT_TRUE(b_.BeginIf(holds).ok());
    const auto outside = values_;
    values_.push_back(state);
    values_.push_back(Step());
    ASSERT_TRUE(b_.Assign(Step(), state).ok());
    ASSERT_TRUE(b_.EndBlock().ok());
    values_ = outside;
    values_.push_back(state);
  }

  std::mt19937 random_;
  ProgramBuilder b_;
  std::vector<Variable> values_;
  Feeds feeds_;
};

TEST(RandomProgramGradients, AgreeWithCentralDifferences) {
  for (uint32_t seed = 0; seed < 25; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    DrawnProgram drawn(seed);
    const Model model = drawn.Make();
    // Only what the loss depends on can be asked for.
    std::vector<std::string> wrt;
    for (const char* name : {"a", "b", "c"}) {
      GradientRequest one;
      one.losses = {"loss"};
      one.wrt = {name};
      const auto made = AppendBackward(model.program, one);
      if (made.ok() || made.status().code() != StatusCode::kInvalidArgument) wrt.push_back(name);
    }
    if (!wrt.empty()) ExpectDifferences(model.program, model.scope, drawn.feeds(), "loss", wrt);
    if (::testing::Test::HasFailure()) break;
  }
}

}  // namespace
}  // namespace heddle::gradient
