// Training steps of networks drawn from a seed, within limits of memory: the same bits, and no more
// memory than the limit.
#include "training/memory_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <string>

#include "gradient/minimize.h"
#include "gradient/tuning/tuning.h"
#include "heddle/generator.h"
#include "heddle/program_builder.h"

namespace heddle::training {
namespace {

using ::testing::HasSubstr;

constexpr size_t kNoLimit = std::numeric_limits<size_t>::max();

// A chain of layers with connections past some of them, of images or of rows.
class DrawnNet {
 public:
  explicit DrawnNet(uint32_t seed) : random_(seed), images_(Below(2) == 0) {
    shape_ = images_ ? Shape({4, 3, 12, 12}) : Shape({32, 24});
    values_.push_back(Must(builder_.Feed("x", DType::kF32, shape_)));
    const int layers = 8 + Below(10);
    for (int k = 0; k < layers; ++k) Layer();
    const Variable square = Apply("square", {{"X", {values_.back()}}});
    Apply("reduce_mean", {{"X", {square}}}, {{"reduce_all", true}}, "loss");
  }

  Model Finish() {
    auto model = std::move(builder_).Finish();
    EXPECT_TRUE(model.ok()) << model.status().ToString();
    if (!norms_) return *std::move(model);
    auto trained = gradient::TrainNorms(model->program);
    EXPECT_TRUE(trained.ok()) << trained.status().ToString();
    return {trained->program, model->scope};
  }
  Tensor Input() { return Numbers(shape_, 1); }

 private:
  int Below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  static Variable Must(Result<Variable> made) {
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    return made.ok() ? *made : Variable();
  }
  Tensor Numbers(const Shape& shape, double scale) {
    Tensor made = Tensor::Empty(DType::kF32, shape);
    std::normal_distribution<float> normal(0, static_cast<float>(scale));
    for (int64_t i = 0; i < made.numel(); ++i) made.mutable_data<float>()[i] = normal(random_);
    return made;
  }
  Variable Parameter(const Shape& shape, double scale, double shift = 0) {
    Tensor value = Numbers(shape, scale);
    for (int64_t i = 0; i < value.numel(); ++i)
      value.mutable_data<float>()[i] =
          shift == 0 ? value.data<float>()[i]
                     : std::abs(value.data<float>()[i]) + static_cast<float>(shift);
    return Must(builder_.Parameter("p" + std::to_string(parameters_++), std::move(value)));
  }
  Variable Apply(const std::string& type, const Operands& inputs, const Attributes& attributes = {},
                 const std::string& name = "") {
    Targets targets;
    if (!name.empty()) targets = {{"Out", std::vector<std::string>{name}}};
    return Must(builder_.Apply(type, inputs, attributes, targets));
  }

  void Layer() {
    const Variable x = values_.back();
    const int kind = Below(images_ ? 6 : 5);
    Variable y;
    if (kind == 0 || (kind == 1 && values_.size() < 3)) {
      y = images_ ? Apply("conv2d", {{"Input", {x}}, {"Filter", {Parameter({3, 3, 3, 3}, 0.3)}}},
                          {{"paddings", std::vector<int64_t>{1, 1}}})
                  : Apply("matmul_v2", {{"X", {x}}, {"Y", {Parameter({24, 24}, 0.2)}}});
    } else if (kind == 1) {
      y = Apply("elementwise_add",
                {{"X", {x}},
                 {"Y", {values_[static_cast<size_t>(Below(static_cast<int>(values_.size())))]}}});
    } else if (kind == 2) {
      const char* const types[] = {"tanh", "relu", "sigmoid", "gelu", "softplus"};
      y = Apply(types[Below(5)], {{"X", {x}}});
    } else if (kind == 3) {
      y = Apply("elementwise_mul", {{"X", {x}}, {"Y", {Parameter({images_ ? 12 : 24}, 0.8)}}});
    } else if (kind == 4) {
      y = Apply("dropout", {{"X", {x}}},
                {{"dropout_prob", 0.25},
                 {"is_test", false},
                 {"dropout_implementation", "upscale_in_train"}});
    } else {
      norms_ = true;
      y = Apply("batch_norm",
                {{"X", {x}},
                 {"Scale", {Parameter({3}, 0.5)}},
                 {"Bias", {Parameter({3}, 0.5)}},
                 {"Mean", {Parameter({3}, 0.2)}},
                 {"Variance", {Parameter({3}, 0.2, 0.5)}}},
                {{"is_test", true}});
    }
    values_.push_back(y);
  }

  std::mt19937 random_;
  const bool images_;
  bool norms_ = false;
  Shape shape_;
  int parameters_ = 0;
  ProgramBuilder builder_;
  std::vector<Variable> values_;
};

// A step and what it begins with.
struct Job {
  Program step;
  std::map<std::string, Tensor> start;
  std::vector<Feed> feeds;
  std::shared_ptr<Scope> Begin() const {
    auto scope = std::make_shared<Scope>();
    for (const auto& [name, value] : start) scope->Set(name, Value(value.Clone()));
    return scope;
  }
};

Job MakeJob(uint32_t seed) {
  DrawnNet net(seed);
  const Model model = net.Finish();
  gradient::OptimizerRule rule;
  rule.kind = seed % 3 == 0 ? "adam" : "momentum";
  const auto step =
      gradient::Minimize(model.program, {.losses = {"loss"}, .wrt = {}, .no_grad = {}}, rule);
  EXPECT_TRUE(step.ok()) << step.status().ToString();
  Job job;
  if (!step.ok()) return job;
  job.step = step->program;
  for (const std::string& name : model.scope->Names())
    job.start[name] = model.scope->Find(name)->tensor();
  for (const auto& [name, value] : step->state) job.start[name] = value;
  job.start[step->learning_rate] = Tensor::Zeros(DType::kF32, Shape({1}));
  job.start[step->learning_rate].mutable_data<float>()[0] = 0.05f;
  job.feeds = {{"x", Value(net.Input())}};
  return job;
}

struct Trained {
  std::map<std::string, std::string> bytes;  // of the variables afterwards, and of all losses
  size_t peak = 0;
};

Trained Train(const Job& job, const Program& program, CompileOptions compile, int threads) {
  Executor executor({.threads = threads});
  const auto scope = job.Begin();
  compile.fetches = {"loss"};
  const auto compiled = executor.Compile(program, scope, compile);
  EXPECT_TRUE(compiled.ok()) << compiled.status().ToString();
  Trained trained;
  if (!compiled.ok()) return trained;
  Generator generator(7);
  executor.ResetMemoryPeaks();
  for (int k = 0; k < 3; ++k) {
    const auto got = executor.Run(*compiled, job.feeds, {.generator = &generator});
    EXPECT_TRUE(got.ok()) << got.status().ToString();
    if (!got.ok()) return trained;
    const Tensor loss = (*got)[0].Contiguous();
    trained.bytes["@losses"].append(static_cast<const char*>(loss.raw()), loss.bytes());
  }
  trained.peak = executor.MemoryUse()[0].peak_bytes;
  for (const auto& [name, value] : job.start) {
    const Tensor now = scope->Find(name)->tensor().Contiguous();
    trained.bytes[name].assign(static_cast<const char*>(now.raw()), now.bytes());
  }
  return trained;
}

size_t LeastOf(const std::string& message) {
  const std::string before = "at least ";
  const size_t at = message.find(before);
  return at == std::string::npos ? 0 : std::stoull(message.substr(at + before.size()));
}

TEST(MemoryLimit, StepsWithinItHaveTheSameBits) {
  int smaller = 0;
  for (uint32_t seed = 1; seed <= 24; ++seed) {
    SCOPED_TRACE(seed);
    const Job job = MakeJob(seed);
    const int threads = 1 + static_cast<int>(seed % 2);
    Executor executor({.threads = threads});
    CompileOptions compile;
    compile.fetches = {"loss"};
    compile.opt_level = seed % 4 == 0 ? 0 : 2;
    const auto fit = [&](size_t limit) {
      return FitStep(executor, {job.step, job.Begin()}, compile, job.feeds, limit);
    };
    const auto free = fit(kNoLimit);
    ASSERT_TRUE(free.ok()) << free.status().ToString();
    const size_t most = free->variables + free->temporaries;
    const auto none = fit(1);
    ASSERT_EQ(none.status().code(), StatusCode::kResourceExhausted) << none.status().ToString();
    const size_t least = LeastOf(none.status().message());
    ASSERT_GT(least, free->variables);
    ASSERT_LE(least, most);
    if (least - free->variables < free->temporaries * 3 / 4) ++smaller;
    EXPECT_FALSE(fit(least - 1).ok());
    const Trained wanted = Train(job, job.step, WithinLimit(compile), threads);
    size_t before = 0;
    for (int k = 0; k <= 4; ++k) {
      const size_t limit = least + (most - least) * static_cast<size_t>(k) / 4;
      const auto fitting = fit(limit);
      ASSERT_TRUE(fitting.ok()) << fitting.status().ToString();
      EXPECT_LE(fitting->variables + fitting->temporaries, limit);
      EXPECT_GE(fitting->temporaries, before);
      before = fitting->temporaries;
      const Trained got = Train(job, fitting->program, WithinLimit(compile), threads);
      EXPECT_LE(fitting->variables + got.peak, limit);
      for (const auto& [name, bytes] : wanted.bytes)
        EXPECT_TRUE(got.bytes.at(name) == bytes) << name << " within " << limit;
    }
  }
  EXPECT_GE(smaller, 8);
}

TEST(MemoryLimit, TheErrorHasTheLeastThatWouldDo) {
  const Job job = MakeJob(3);
  Executor executor({.threads = 1});
  CompileOptions compile;
  compile.fetches = {"loss"};
  const auto none = FitStep(executor, {job.step, job.Begin()}, compile, job.feeds, 1000);
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.status().message(), HasSubstr("a memory limit of 1000 bytes"));
  const size_t least = LeastOf(none.status().message());
  EXPECT_TRUE(FitStep(executor, {job.step, job.Begin()}, compile, job.feeds, least).ok());
}

}  // namespace
}  // namespace heddle::training
