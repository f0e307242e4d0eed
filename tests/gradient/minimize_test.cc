// Every rule against its formula (docs/training.md), written out in float64.
#include "gradient/minimize.h"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/gradient/support.h"

namespace heddle::gradient {
namespace {

using ::testing::HasSubstr;
using Vector = std::vector<double>;

constexpr int kSteps = 5;
constexpr double kRate = 0.0625;
const Vector kStart = {0.5, -1.25, 2.0, 0.125};
const Vector kFactors = {1.0, -0.5, 0.25, 3.0};

// loss = sum((w x)^2), so that the gradient of w is 2 w x^2.
Model SquaresModel() {
  TestProgram p;
  const Variable x = p.Feed("x", {4});
  const Variable w = p.Parameter("w", Doubles({4}, kStart));
  const Variable y = p.Apply("elementwise_mul", {{"X", {w}}, {"Y", {x}}}, {}, "Out", "y");
  const Variable z = p.Apply("square", {{"X", {y}}}, {}, "Out", "z");
  p.Apply("reduce_sum", {{"X", {z}}}, {{"reduce_all", true}}, "Out", "loss");
  return p.Finish();
}

double NormOf(const Vector& v) {
  double sum = 0;
  for (const double a : v) sum += a * a;
  return std::sqrt(sum);
}

double Or(double given, double otherwise) { return given >= 0 ? given : otherwise; }

// One parameter and its state, updated by the formulas.
class Reference {
 public:
  Reference(const OptimizerRule& options, bool decays) : o_(options), decays_(decays) {}

  void Step() {
    ++t_;
    Vector g(p_.size());
    for (size_t i = 0; i < p_.size(); ++i) g[i] = 2 * p_[i] * kFactors[i] * kFactors[i];
    ClipIt(&g);
    const bool own = o_.kind == "adamw" || o_.kind == "lamb";
    const double decay = decays_ ? Or(o_.weight_decay, o_.kind == "adamw" ? 0.01 : 0) : 0;
    if (!own)
      for (size_t i = 0; i < p_.size(); ++i) g[i] += decay * p_[i];
    if (o_.kind == "lamb") return Lamb(g, decay);
    for (size_t i = 0; i < p_.size(); ++i) Element(i, g[i], decay);
  }
  const Vector& values() const { return p_; }

 private:
  void ClipIt(Vector* g) const {
    if (o_.clip_value > 0)
      for (double& a : *g) a = std::min(std::max(a, -o_.clip_value), o_.clip_value);
    const double limit = std::max(o_.clip_norm, o_.clip_global_norm);
    if (limit <= 0) return;
    const double factor = limit / std::max(NormOf(*g), limit);
    for (double& a : *g) a *= factor;
  }
  double Beta1() const { return Or(o_.beta1, 0.9); }
  double Beta2() const { return Or(o_.beta2, 0.999); }

  void Element(size_t i, double g, double decay) {
    constexpr double lr = kRate;
    double& p = p_[i];
    if (o_.kind == "sgd") {
      p -= lr * g;
    } else if (o_.kind == "momentum") {
      const double mu = Or(o_.momentum, 0.9);
      a_[i] = mu * a_[i] + g;
      p -= o_.nesterov ? lr * (g + mu * a_[i]) : lr * a_[i];
    } else if (o_.kind == "adam" || o_.kind == "adamw") {
      if (o_.kind == "adamw") p -= lr * decay * p;
      a_[i] = Beta1() * a_[i] + (1 - Beta1()) * g;
      b_[i] = Beta2() * b_[i] + (1 - Beta2()) * g * g;
      const double m = a_[i] / (1 - std::pow(Beta1(), t_)), u = b_[i] / (1 - std::pow(Beta2(), t_));
      p -= lr * m / (std::sqrt(u) + Or(o_.epsilon, 1e-8));
    } else if (o_.kind == "adagrad") {
      if (t_ == 1) a_[i] = o_.initial_accumulator;
      a_[i] += g * g;
      p -= lr * g / (std::sqrt(a_[i]) + Or(o_.epsilon, 1e-6));
    } else if (o_.kind == "rmsprop") {
      const double rho = Or(o_.rho, 0.95);
      a_[i] = rho * a_[i] + (1 - rho) * g * g;
      if (o_.centered) b_[i] = rho * b_[i] + (1 - rho) * g;
      const double root = std::sqrt(a_[i] - b_[i] * b_[i] + Or(o_.epsilon, 1e-6));
      c_[i] = Or(o_.momentum, 0) * c_[i] + lr * g / root;
      p -= c_[i];
    } else if (o_.kind == "adamax") {
      a_[i] = Beta1() * a_[i] + (1 - Beta1()) * g;
      b_[i] = std::max(Beta2() * b_[i] + Or(o_.epsilon, 1e-8), std::abs(g));
      p -= lr / (1 - std::pow(Beta1(), t_)) * a_[i] / b_[i];
    } else {
      const double rho = Or(o_.rho, 0.95), epsilon = Or(o_.epsilon, 1e-6);
      a_[i] = rho * a_[i] + (1 - rho) * g * g;
      const double d = -std::sqrt((b_[i] + epsilon) / (a_[i] + epsilon)) * g;
      b_[i] = rho * b_[i] + (1 - rho) * d * d;
      p += lr * d;
    }
  }

  void Lamb(const Vector& g, double decay) {
    Vector r(p_.size());
    for (size_t i = 0; i < p_.size(); ++i) {
      a_[i] = Beta1() * a_[i] + (1 - Beta1()) * g[i];
      b_[i] = Beta2() * b_[i] + (1 - Beta2()) * g[i] * g[i];
      const double m = a_[i] / (1 - std::pow(Beta1(), t_)), u = b_[i] / (1 - std::pow(Beta2(), t_));
      r[i] = m / (std::sqrt(u) + Or(o_.epsilon, 1e-6)) + decay * p_[i];
    }
    const double size = NormOf(p_), length = NormOf(r);
    const double factor = size > 0 && length > 0 ? size / length : 1;
    for (size_t i = 0; i < p_.size(); ++i) p_[i] -= kRate * factor * r[i];
  }

  const OptimizerRule& o_;
  const bool decays_;
  int t_ = 0;
  Vector p_ = kStart, a_ = Vector(4), b_ = Vector(4), c_ = Vector(4);
};

// The parameter after each step, as the program makes it.
std::vector<Vector> Trained(const OptimizerRule& rule) {
  const Model model = SquaresModel();
  const auto step = Minimize(model.program, {.losses = {"loss"}, .wrt = {}, .no_grad = {}}, rule);
  EXPECT_TRUE(step.ok()) << step.status().ToString();
  if (!step.ok()) return {};
  for (const auto& [name, value] : step->state) model.scope->Set(name, Value(value.Clone()));
  Tensor rate = Tensor::Zeros(DType::kF32, Shape({1}));
  *rate.mutable_data<float>() = static_cast<float>(kRate);
  model.scope->Set(step->learning_rate, Value(rate));
  std::vector<Vector> seen;
  for (int t = 0; t < kSteps; ++t) {
    const auto fetched =
        RunOnce(step->program, model.scope, {{"x", Doubles({4}, kFactors)}}, {"loss"});
    if (fetched.empty()) return {};
    seen.push_back(ValuesOf(model.scope->Find("w")->tensor()));
  }
  return seen;
}

void ExpectFormula(const OptimizerRule& rule, bool decays = true) {
  const std::vector<Vector> seen = Trained(rule);
  ASSERT_EQ(seen.size(), size_t{kSteps}) << rule.kind;
  Reference reference(rule, decays);
  for (int t = 0; t < kSteps; ++t) {
    reference.Step();
    for (size_t i = 0; i < kStart.size(); ++i)
      EXPECT_NEAR(seen[static_cast<size_t>(t)][i], reference.values()[i],
                  1e-6 * std::max(1.0, std::abs(reference.values()[i])))
          << rule.kind << ", step " << t << ", element " << i;
  }
}

TEST(Minimize, RulesAreTheirFormulas) {
  for (const std::string& kind : OptimizerKinds()) {
    OptimizerRule rule;
    rule.kind = kind;
    ExpectFormula(rule);
  }
}

TEST(Minimize, OptionsChangeTheRules) {
  OptimizerRule rule;
  rule.kind = "momentum";
  rule.momentum = 0.5;
  rule.nesterov = true;
  ExpectFormula(rule);
  rule = {};
  rule.beta1 = 0.5;
  rule.beta2 = 0.75;
  rule.epsilon = 0.25;
  for (const char* kind : {"adam", "adamw", "adamax", "lamb"}) {
    rule.kind = kind;
    ExpectFormula(rule);
  }
  rule = {};
  rule.kind = "adagrad";
  rule.initial_accumulator = 2;
  ExpectFormula(rule);
  rule = {};
  rule.kind = "rmsprop";
  rule.momentum = 0.5;
  rule.epsilon = 0.125;
  rule.rho = 0.75;
  rule.centered = true;
  ExpectFormula(rule);
  rule = {};
  rule.kind = "adadelta";
  rule.epsilon = 0.03125;
  rule.rho = 0.5;
  ExpectFormula(rule);
}

TEST(Minimize, GradientsAreClippedBeforeDecay) {
  for (double OptimizerRule::*const clip :
       {&OptimizerRule::clip_value, &OptimizerRule::clip_norm, &OptimizerRule::clip_global_norm}) {
    for (const double limit : {0.5, 100.0}) {
      OptimizerRule rule;
      rule.kind = "sgd";
      rule.weight_decay = 0.25;
      rule.*clip = limit;
      ExpectFormula(rule);
    }
  }
}

TEST(Minimize, ParametersMayHaveNoDecay) {
  for (const char* kind : {"sgd", "adamw", "lamb"}) {
    OptimizerRule rule;
    rule.kind = kind;
    rule.weight_decay = 0.5;
    ExpectFormula(rule);
    rule.no_decay = [](const std::string& name) { return name == "w"; };
    ExpectFormula(rule, /*decays=*/false);
  }
}

TEST(Minimize, AnUnknownRuleIsAnError) {
  OptimizerRule rule;
  rule.kind = "adamx";
  const auto step =
      Minimize(SquaresModel().program, {.losses = {"loss"}, .wrt = {}, .no_grad = {}}, rule);
  ASSERT_FALSE(step.ok());
  EXPECT_THAT(step.status().ToString(), HasSubstr("there is no optimizer 'adamx'"));
}

}  // namespace
}  // namespace heddle::gradient
