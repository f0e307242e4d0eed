// Sparse gradients on the grid device, which holds them as two tensors, against the host's selected
// rows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "device/cuda/grid/sorted_rows.h"
#include "tests/grid/grid_device.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

// Rows of every count around the lengths of runs, with repeats, as they come and all equal.
TEST(GridSortedRows, AreStablySorted) {
  std::mt19937 rng(11);
  for (const int64_t n : {0, 1, 2, 63, 64, 65, 127, 128, 129, 200, 1000, 5000})
    for (const uint32_t kinds : {1u, 7u, 100000u}) {
      std::vector<int64_t> ids;
      for (int64_t i = 0; i < n; ++i) ids.push_back(static_cast<int64_t>(rng() % kinds) - 3);
      std::vector<int64_t> order(ids.size());
      std::iota(order.begin(), order.end(), int64_t{0});
      const auto id = [&](int64_t i) { return ids[static_cast<size_t>(i)]; };
      std::stable_sort(order.begin(), order.end(),
                       [&](int64_t a, int64_t b) { return id(a) < id(b); });
      grid_on_host::Queue queue;
      grid_on_host::Scratch scratch(queue);
      auto sorted = grid_on_host::SortRows(queue, grid_on_host::Ids(I64({n}, ids)), n, scratch);
      ASSERT_TRUE(sorted.ok());
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_EQ(sorted->from[i], order[static_cast<size_t>(i)]) << n << " [" << i << "]";
        ASSERT_EQ(sorted->row[i], id(order[static_cast<size_t>(i)]));
      }
      for (int64_t wanted = -5; wanted < 8; ++wanted) {
        const auto first = std::lower_bound(sorted->row, sorted->row + n, wanted) - sorted->row;
        EXPECT_EQ(sorted->Find(wanted), first);
      }
    }
}

constexpr int64_t kHeight = 9, kWidth = 5;

// An optimizer and what it takes besides Param, Grad and LearningRate.
struct Rule {
  std::string op;
  std::vector<std::string> full = {};    // as the parameter
  std::vector<std::string> powers = {};  // of one number
  Attrs attrs = {};
};

std::string RuleName(const ::testing::TestParamInfo<Rule>& info) {
  std::string name = info.param.op + std::to_string(info.index);
  return name;
}

// `lookups` of one table, of 7 ids each in different shapes; one gradient, or their sum.
Program Training(const Rule& rule, int lookups, bool narrow, bool fetched) {
  ProgramBuilder b;
  b.Param("table", DType::kF32, {kHeight, kWidth});
  std::vector<std::string> grads;
  const DType ids = narrow ? DType::kI32 : DType::kI64;
  for (int i = 0; i < lookups; ++i) {
    const std::string n = std::to_string(i);
    b.Feed("ids" + n, ids, i == 0 ? Shape{7} : Shape{7, 1});
    b.Feed("x" + n, DType::kF32, i == 0 ? Shape{7, kWidth} : Shape{7, 1, kWidth});
    // The gradient that arrives at the lookup comes from an operator of the device.
    b.Var("d" + n, DType::kF32, i == 0 ? Shape{7, kWidth} : Shape{7, 1, kWidth});
    b.Unary("tanh", "x" + n, "d" + n);
    grads.push_back("g" + n);
    b.Op("lookup_table_v2_grad", {{"W", {"table"}}, {"Ids", {"ids" + n}}, {"Out@GRAD", {"d" + n}}},
         {{"W@GRAD", {grads.back()}}}, {{"is_sparse", true}, {"padding_idx", int64_t{-1}}});
  }
  std::string grad = grads[0];
  if (lookups > 1) b.Op("sum", {{"X", grads}}, {{"Out", {grad = "g"}}});
  if (fetched) b.Fetch(grad);
  b.Param("rate", DType::kF32, {1});
  Slots in{{"Param", {"table"}}, {"Grad", {grad}}, {"LearningRate", {"rate"}}};
  Slots out{{"ParamOut", {"table"}}};
  for (const auto* list : {&rule.full, &rule.powers})
    for (const std::string& name : *list) {
      b.Param(name, DType::kF32, list == &rule.full ? Shape{kHeight, kWidth} : Shape{1});
      in.push_back({name, {name}});
      out.push_back({name + "Out", {name}});
    }
  b.Op(rule.op, in, out, rule.attrs);
  return b.Build();
}

std::shared_ptr<Scope> NewScope(const Rule& rule) {
  auto scope = std::make_shared<Scope>();
  scope->Set("table", Value(RandomF32({kHeight, kWidth}, 1)));
  scope->Set("rate", Value(F32({1}, {0.1f})));
  for (const std::string& name : rule.full) {
    Tensor t = RandomF32({kHeight, kWidth}, 2);
    for (int64_t i = 0; i < t.numel(); ++i)
      t.mutable_data<float>()[i] = std::fabs(t.data<float>()[i]) + 0.1f;
    scope->Set(name, Value(t));
  }
  for (const std::string& name : rule.powers)
    scope->Set(name, Value(F32({1}, {name == "Beta1Pow" ? 0.9f : 0.99f})));
  return scope;
}

class GridSparse : public ::testing::TestWithParam<Rule> {};

void Compare(const Rule& rule, int lookups, bool narrow) {
  const Program program = Training(rule, lookups, narrow, false);
  auto device = std::make_shared<GridDevice>(2);
  Executor host({.threads = 1}), grid({.threads = 1, .device = device});
  const auto host_scope = NewScope(rule), grid_scope = NewScope(rule);
  const CompiledProgram there = MustCompile(host, program, host_scope);
  const CompiledProgram here = MustCompile(grid, program, grid_scope);
  std::mt19937 rng(5);
  for (int run = 0; run < 3; ++run) {
    std::vector<Feed> feeds;
    for (int i = 0; i < lookups; ++i) {
      const Shape shape = i == 0 ? Shape{7} : Shape{7, 1};
      Tensor ids = Tensor::Empty(narrow ? DType::kI32 : DType::kI64, shape);
      for (int64_t k = 0; k < 7; ++k) {
        const auto id = static_cast<int32_t>(rng() % 4 * 2);  // repeats; odd rows stay absent
        narrow ? ids.mutable_data<int32_t>()[k] = id : ids.mutable_data<int64_t>()[k] = id;
      }
      feeds.push_back({"ids" + std::to_string(i), ids});
      const Shape rows = i == 0 ? Shape{7, kWidth} : Shape{7, 1, kWidth};
      feeds.push_back({"x" + std::to_string(i), RandomF32(rows, rng())});
    }
    MustRun(host, there, feeds);
    MustRun(grid, here, feeds);
  }
  std::vector<std::string> names = {"table"};
  names.insert(names.end(), rule.full.begin(), rule.full.end());
  names.insert(names.end(), rule.powers.begin(), rule.powers.end());
  for (const std::string& name : names) {
    const auto got = Floats(grid_scope->Find(name)->tensor());
    const auto want = Floats(host_scope->Find(name)->tensor());
    const auto before = Floats(NewScope(rule)->Find(name)->tensor());
    ASSERT_EQ(got.size(), want.size());
    EXPECT_NE(want, before) << name << " does not move";
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(got[i], want[i], 2e-6f * std::max(1.0f, std::fabs(want[i])))
          << name << " [" << i << "]";
  }
  EXPECT_GT(device->covered()[rule.op], 0);
  EXPECT_EQ(device->refused().count(rule.op), 0u);
  EXPECT_EQ(device->refused().count("lookup_table_v2_grad"), 0u);
}

TEST_P(GridSparse, IsAsOnTheHost) {
  for (const bool narrow : {false, true}) {
    SCOPED_TRACE(narrow ? "int32" : "int64");
    Compare(GetParam(), 1, narrow);
    Compare(GetParam(), 3, narrow);
  }
}

// Who asks for the selected rows gets them, from the host.
TEST_P(GridSparse, StaysOnTheHostWhereItIsFetched) {
  const Rule& rule = GetParam();
  auto device = std::make_shared<GridDevice>();
  Executor grid({.threads = 1, .device = device});
  const CompiledProgram here = MustCompile(grid, Training(rule, 1, false, true), NewScope(rule));
  const auto got = grid.RunValues(
      here, {{"ids0", I64({7}, {1, 1, 2, 0, 8, 8, 8})}, {"x0", RandomF32({7, kWidth}, 3)}});
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  EXPECT_TRUE((*got)[0].is_rows());
}

INSTANTIATE_TEST_SUITE_P(
    Rules, GridSparse,
    ::testing::Values(
        Rule{"sgd"}, Rule{"adagrad", {"Moment"}}, Rule{"momentum", {"Velocity"}, {}, {{"mu", 0.9}}},
        Rule{"momentum",
             {"Velocity"},
             {},
             {{"mu", 0.8},
              {"use_nesterov", true},
              {"rescale_grad", 0.25},
              {"regularization_method", std::string("l2_decay")},
              {"regularization_coeff", 0.1}}},
        Rule{"adam", {"Moment1", "Moment2"}, {"Beta1Pow", "Beta2Pow"}},
        Rule{"adam", {"Moment1", "Moment2"}, {"Beta1Pow", "Beta2Pow"}, {{"lazy_mode", true}}},
        Rule{"adamw",
             {"Moment1", "Moment2"},
             {"Beta1Pow", "Beta2Pow"},
             {{"with_decay", true}, {"coeff", 0.1}}}),
    RuleName);

}  // namespace
}  // namespace heddle::testing
