// The law that passes live under: on random programs, each pass alone and all of them together
// leave results as they are, find nothing more to do when they run again, and leave no trace when
// one fails. HEDDLE_LAW_PROGRAMS=<n> checks n programs instead of 100, HEDDLE_TEST_SEED=<n> others
// than usual.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>

#include "core/error.h"
#include "passes/ir_text.h"
#include "passes/pass_manager.h"
#include "tests/support/net_program.h"

namespace heddle::testing {
namespace {

// Fetched values, then the parameters that the program updates.
struct Outcome {
  std::vector<Tensor> values;
  Status status;
};

Outcome RunOnce(const NetProgram& net, const Program& program,
                const std::shared_ptr<Scope>& scope) {
  Executor executor({.threads = 1});
  Outcome o;
  auto compiled = executor.Compile(program, scope, {.opt_level = 0});
  o.status = compiled.status();
  if (!compiled.ok()) return o;
  for (int k = 0; k < 2; ++k) {  // parameters move on
    auto out = executor.Run(*compiled, net.feeds());
    o.status = out.status();
    if (!out.ok()) return o;
    o.values.insert(o.values.end(), out->begin(), out->end());
  }
  for (const std::string& name : net.updated()) o.values.push_back(scope->Find(name)->tensor());
  return o;
}

template <typename T>
bool Close(const Tensor& a, const Tensor& b, double tolerance) {
  double largest = 1;
  for (int64_t i = 0; i < a.numel(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(a.data<T>()[i])));
  for (int64_t i = 0; i < a.numel(); ++i) {
    const T x = a.data<T>()[i], y = b.data<T>()[i];
    if (x == y || (std::isnan(static_cast<double>(x)) && std::isnan(static_cast<double>(y))))
      continue;
    if (!(std::abs(static_cast<double>(x) - static_cast<double>(y)) <= tolerance * largest))
      return false;
  }
  return true;
}

bool Same(const Tensor& a, const Tensor& b, double tolerance) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape()) || a.lod() != b.lod()) return false;
  if (a.dtype() == DType::kF32) return Close<float>(a, b, tolerance);
  if (a.dtype() == DType::kF64) return Close<double>(a, b, tolerance);
  return Bits(a) == Bits(b);
}

class Law {
 public:
  // `changed`: how many programs each pass has changed.
  Law(uint32_t seed, std::map<std::string, int>* changed)
      : changed_(*changed),
        net_(seed, 5 + static_cast<int>(seed * 2654435761u >> 16) % (seed % 4 == 0 ? 196 : 56)),
        program_(net_.Build()),
        fingerprint_(ir::Fingerprint(program_.ir())),
        plain_(RunOnce(net_, program_, net_.NewScope())) {}

  void Check() {
    ASSERT_TRUE(plain_.status.ok()) << plain_.status.ToString() << "\n"
                                    << ir::ToText(program_.ir());
    double all = 0;
    for (const passes::PassDef& pass : passes::AllPasses()) {
      SCOPED_TRACE(pass.name);
      all += pass.tolerance;
      PassOptions options;
      options.only = {pass.name};
      options.precision = Precision::kBFloat16;  // the products are too small to be rounded
      CheckOne(options, 2, pass.tolerance, pass.needs != passes::PassNeeds::kDeviceKernels);
      if (::testing::Test::HasFatalFailure()) return;
    }
    for (const bool host_caches : {true, false})
      for (int level : {1, 2}) {
        SCOPED_TRACE("all passes of level " + std::to_string(level) +
                     (host_caches ? "" : ", for a device's kernels"));
        CheckOne({}, level, all, host_caches);
        if (::testing::Test::HasFatalFailure()) return;
      }
    CheckFailure();
    EXPECT_EQ(ir::Fingerprint(program_.ir()), fingerprint_);
  }

 private:
  void CheckOne(PassOptions options, int level, double tolerance, bool host_caches) {
    options.check_unchanged = true;
    passes::Target target;
    target.host_caches = host_caches;
    const auto scope = net_.NewScope();
    auto once = passes::Optimize(program_.impl(), scope, {level, {}, options}, target);
    ASSERT_TRUE(once.ok()) << once.status().ToString() << "\n" << ir::ToText(program_.ir());
    EXPECT_TRUE(once->report.warnings.empty()) << once->report.ToString();
    if (once->program == program_.impl()) return;
    if (options.only.size() == 1) ++changed_[options.only[0]];
    const auto shown = [&] {
      return "before:\n" + ir::ToText(program_.ir()) + "after:\n" + ir::ToText(*once->program);
    };
    auto twice = passes::Optimize(once->program, once->scope, {level, {}, options}, target);
    ASSERT_TRUE(twice.ok()) << twice.status().ToString();
    ASSERT_EQ(ir::ToText(*twice->program), ir::ToText(*once->program))
        << "a second run changes more\n"
        << twice->report.ToString() << shown();
    const Outcome got = RunOnce(net_, Program(once->program), once->scope);
    ASSERT_TRUE(got.status.ok()) << got.status.ToString() << shown();
    ASSERT_EQ(got.values.size(), plain_.values.size());
    for (size_t i = 0; i < got.values.size(); ++i)
      ASSERT_TRUE(Same(plain_.values[i], got.values[i], tolerance)) << "value " << i << "\n"
                                                                    << shown();
  }

  // All passes have changed things when the last one fails.
  void CheckFailure() {
    const auto scope = net_.NewScope();
    const uint64_t version = scope->version();
    OptimizeOptions options{2, {}, {}};
    options.passes.custom.push_back({.name = "fails",
                                     .grouping = PassGrouping::kPostPartitioning,
                                     .run = [](ProgramEditor& editor) -> Result<bool> {
                                       if (editor.num_ops(0) > 0) editor.Erase(0, 0);
                                       return Internal("failed");
                                     }});
    const auto failed = passes::Optimize(program_.impl(), scope, options);
    ASSERT_FALSE(failed.ok());
    EXPECT_EQ(failed.status().message(), "POST_PARTITIONING/fails: failed");
    EXPECT_EQ(scope->version(), version);
  }

  std::map<std::string, int>& changed_;
  const NetProgram net_;
  const Program program_;
  const uint64_t fingerprint_;
  const Outcome plain_;
};

// Runs each pass alone on random programs, and compares with the program as it is.
TEST(Law, NoPassChangesTheResultsOfRandomPrograms) {
  const char* programs = std::getenv("HEDDLE_LAW_PROGRAMS");
  const char* seed = std::getenv("HEDDLE_TEST_SEED");
  const uint32_t first = seed != nullptr ? static_cast<uint32_t>(std::atoi(seed)) * 100000 : 0;
  const uint32_t count = programs != nullptr ? static_cast<uint32_t>(std::atoi(programs)) : 100;
  std::map<std::string, int> changed;
  for (uint32_t k = 1; k <= count; ++k) {
    SCOPED_TRACE("seed " + std::to_string(first + k));
    Law(first + k, &changed).Check();
    if (HasFatalFailure()) return;
  }
  // What never finds anything to do has not been tested.
  for (const PassInfo& pass : Passes()) {
    if (pass.groupings[0] == PassGrouping::kPostPartitioning) continue;  // offload/passes_test.cc
    EXPECT_GT(changed[pass.name], 0) << pass.name;
  }
}

// The program as passes make it, that look only where there is what they seek, or everywhere.
std::string Optimized(const Program& program, const std::shared_ptr<Scope>& scope,
                      const PassOptions& options, bool host_caches, bool seeks) {
  std::vector<passes::PassDef> all = passes::AllPasses();
  if (!seeks)
    for (passes::PassDef& pass : all) pass.seeks = nullptr;
  passes::Target target;
  target.host_caches = host_caches;
  const auto made = passes::OptimizeWith(std::move(all), passes::HeddlePipeline(), program.impl(),
                                         scope, {2, {}, options}, target);
  return made.ok() ? ir::ToText(*made->program) : made.status().ToString();
}

TEST(Law, PassesMissNothingWhereTheyAreNotCalled) {
  int limited = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    const NetProgram net(seed, 5 + static_cast<int>(seed % 50));
    const Program program = net.Build();
    for (const bool host_caches : {true, false}) {
      PassOptions options;
      options.precision = seed % 2 == 0 ? Precision::kFloat32 : Precision::kBFloat16;
      const auto compare = [&] {
        EXPECT_EQ(Optimized(program, net.NewScope(), options, host_caches, true),
                  Optimized(program, net.NewScope(), options, host_caches, false))
            << "seed " << seed;
      };
      compare();
      for (const passes::PassDef& pass : passes::AllPasses()) {
        if (!pass.seeks) continue;
        ++limited;
        options.only = {pass.name};
        compare();
      }
    }
  }
  EXPECT_GT(limited, 1000);
}

}  // namespace
}  // namespace heddle::testing
