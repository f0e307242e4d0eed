// The order of passes is for speed alone: in any order within their groupings, on random programs,
// results are the same bits where passes keep bits, and within the passes' tolerances otherwise.
// HEDDLE_ORDER_PROGRAMS=<n> checks n programs instead of 60, HEDDLE_TEST_SEED=<n> others than
// usual.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>

#include "core/op_registry.h"
#include "passes/ir_text.h"
#include "passes/pass_manager.h"
#include "tests/support/net_program.h"

namespace heddle::testing {
namespace {

// Fetched values of two runs, then the parameters that the program updates.
Result<std::vector<Tensor>> Outcome(const NetProgram& net, const Program& program,
                                    const std::shared_ptr<Scope>& scope) {
  Executor executor({.threads = 1});
  HEDDLE_ASSIGN_OR_RETURN(const CompiledProgram compiled,
                          executor.Compile(program, scope, {.opt_level = 0}));
  std::vector<Tensor> values;
  for (int k = 0; k < 2; ++k) {
    HEDDLE_ASSIGN_OR_RETURN(const auto out, executor.Run(compiled, net.feeds()));
    values.insert(values.end(), out.begin(), out.end());
  }
  for (const std::string& name : net.updated()) values.push_back(scope->Find(name)->tensor());
  return values;
}

template <typename T>
bool Near(const Tensor& a, const Tensor& b, double tolerance) {
  double largest = 1;
  for (int64_t i = 0; i < a.numel(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(a.data<T>()[i])));
  for (int64_t i = 0; i < a.numel(); ++i) {
    const auto x = static_cast<double>(a.data<T>()[i]), y = static_cast<double>(b.data<T>()[i]);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    if (!(std::abs(x - y) <= tolerance * largest)) return false;
  }
  return true;
}

// Zeros of different sign are equal.
bool Same(const Tensor& a, const Tensor& b, double tolerance) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape()) || a.lod() != b.lod()) return false;
  if (a.dtype() == DType::kF32) return Near<float>(a, b, tolerance);
  if (a.dtype() == DType::kF64) return Near<double>(a, b, tolerance);
  return Bits(a) == Bits(b);
}

std::string TextOf(const passes::Pipeline& order) {
  std::string text;
  for (int g = 0; g < passes::kGroupings; ++g) {
    text += std::string(Name(static_cast<PassGrouping>(g))) + ":";
    for (const std::string& name : order[g]) text += " " + name;
    text += "\n";
  }
  return text;
}

class Orders {
 public:
  // `more`: passes of PRE_PLACEMENT besides heddle's own.
  explicit Orders(uint32_t seed, const std::vector<passes::PassDef>& more = {})
      : random_(seed),
        net_(seed, 5 + static_cast<int>(seed * 2654435761u >> 16) % (seed % 4 == 0 ? 196 : 56)),
        program_(net_.Build()),
        all_(passes::AllPasses()),
        order_(passes::HeddlePipeline()) {
    for (const passes::PassDef& pass : more) {
      all_.push_back(pass);
      order_[0].push_back(pass.name);
    }
  }

  ::testing::AssertionResult AreEqual() {
    const auto plain = Outcome(net_, program_, net_.NewScope());
    if (!plain.ok()) return ::testing::AssertionFailure() << plain.status().ToString();
    double sum = 0;
    PassOptions exact;
    for (const passes::PassDef& pass : all_) {
      sum += pass.tolerance;
      if (pass.tolerance == 0) exact.only.push_back(pass.name);
    }
    for (int k = 0; k < 3; ++k) {
      passes::Pipeline order = order_;
      for (auto& names : order) std::shuffle(names.begin(), names.end(), random_);
      if (auto equal = IsEqual(order, exact, 0, *plain); !equal) return equal << TextOf(order);
      if (auto equal = IsEqual(order, {}, sum, *plain); !equal) return equal << TextOf(order);
    }
    return ::testing::AssertionSuccess();
  }

 private:
  ::testing::AssertionResult IsEqual(const passes::Pipeline& order, PassOptions options,
                                     double tolerance, const std::vector<Tensor>& plain) {
    options.check_unchanged = true;
    passes::Target target;
    target.host_caches = random_() % 4 != 0;
    const auto optimized = passes::OptimizeWith(all_, order, program_.impl(), net_.NewScope(),
                                                {2, {}, options}, target);
    if (!optimized.ok()) return ::testing::AssertionFailure() << optimized.status().ToString();
    const auto got = Outcome(net_, Program(optimized->program), optimized->scope);
    const auto wrong = [&](const std::string& what) {
      return ::testing::AssertionFailure() << what << "\n"
                                           << optimized->report.ToString() << "before:\n"
                                           << ir::ToText(program_.ir()) << "after:\n"
                                           << ir::ToText(*optimized->program);
    };
    if (!got.ok()) return wrong(got.status().ToString());
    if (got->size() != plain.size()) return wrong("another number of values");
    for (size_t i = 0; i < plain.size(); ++i)
      if (!Same(plain[i], (*got)[i], tolerance)) return wrong("value " + std::to_string(i));
    return ::testing::AssertionSuccess();
  }

  std::mt19937 random_;
  const NetProgram net_;
  const Program program_;
  std::vector<passes::PassDef> all_;
  passes::Pipeline order_;
};

TEST(PassOrder, IsForSpeedAlone) {
  const char* programs = std::getenv("HEDDLE_ORDER_PROGRAMS");
  const char* seed = std::getenv("HEDDLE_TEST_SEED");
  const uint32_t first = seed != nullptr ? static_cast<uint32_t>(std::atoi(seed)) * 100000 : 0;
  const uint32_t count = programs != nullptr ? static_cast<uint32_t>(std::atoi(programs)) : 60;
  for (uint32_t k = 1; k <= count; ++k) {
    ASSERT_TRUE(Orders(first + k).AreEqual()) << "seed " << first + k;
  }
}

// A pass that makes every `from` a `to`.
passes::PassDef Exchange(const std::string& name, const std::string& from, const std::string& to) {
  passes::PassDef pass;
  pass.name = name;
  pass.once = true;
  pass.run = [from, to](ir::Program& program, passes::PassContext&) -> Result<bool> {
    bool changed = false;
    for (ir::Block& block : program.blocks)
      for (ir::Op& op : block.ops) {
        if (op.type() != from) continue;
        ir::Op made = ir::MakeOp(*FindOp(to));
        made.inputs[0] = op.inputs[0];
        made.outputs[0] = op.outputs[0];
        op = std::move(made);
        changed = true;
      }
    return changed;
  };
  return pass;
}

// The second pass makes good what the first one does, if it stands behind it.
TEST(PassOrder, ThatMattersIsFound) {
  const std::vector<passes::PassDef> pair = {Exchange("breaks", "tanh", "sin"),
                                             Exchange("mends", "sin", "tanh")};
  int found = 0;
  for (uint32_t seed = 1; seed <= 20; ++seed) found += Orders(seed, pair).AreEqual() ? 0 : 1;
  EXPECT_GT(found, 5);
}

}  // namespace
}  // namespace heddle::testing
