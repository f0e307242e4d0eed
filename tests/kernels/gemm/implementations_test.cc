// Every implementation of a product computes every case that it covers as a plain loop does: with
// random operands, so that rows, columns or terms which are mixed up show.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/machine.h"
#include "kernels/gemm/select.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Product {
  const char* title;
  int64_t m, n, k;
  int64_t batch = 0;  // of X; 0: X is a matrix
  bool y_in_batches = false, constant = true, trans_x = false, trans_y = false;
  double alpha = 1;
  bool residual = false, int8 = false, bf16 = false;

  static Shape Matrices(int64_t batch, bool transposed, int64_t rows, int64_t columns) {
    Shape shape;
    if (batch > 0) shape.push_back(batch);
    shape.push_back(transposed ? columns : rows);
    shape.push_back(transposed ? rows : columns);
    return shape;
  }
  Shape X() const { return Matrices(batch, trans_x, m, k); }
  Shape Y() const { return Matrices(y_in_batches ? batch : 0, trans_y, k, n); }
  Shape Out() const { return Matrices(batch, false, m, n); }
};

class AllOf {
 public:
  explicit AllOf(const Product& p)
      : p_(p),
        x_(RandomF32(p.X(), 1)),
        y_(RandomF32(p.Y(), 2)),
        bias_(RandomF32({p.n}, 3)),
        residual_(RandomF32(p.Out(), 4)) {
    feeds_ = {{"x", x_}};
    b_.Feed("x", DType::kF32, x_.shape()).Param("bias", DType::kF32, bias_.shape());
    scope_->Set("bias", Value(bias_));
    Slots inputs{{"X", {"x"}}, {"Y", {"y"}}, {"Bias", {"bias"}}};
    if (p.constant) {
      b_.Param("y", DType::kF32, y_.shape());
      scope_->Set("y", Value(y_));
    } else {
      b_.Feed("y", DType::kF32, y_.shape());
      feeds_.push_back({"y", y_});
    }
    if (p.residual) {
      b_.Feed("r", DType::kF32, residual_.shape());
      feeds_.push_back({"r", residual_});
      inputs.push_back({"ResidualData", {"r"}});
    }
    b_.Op("fused_matmul", inputs, {{"Out", {"out"}}},
          {{"trans_x", p.trans_x},
           {"trans_y", p.trans_y},
           {"alpha", p.alpha},
           {"fuse_bf16", p.bf16},
           {"fuse_int8", p.int8}});
    b_.Fetch("out");
  }

  // Adds the names of those that compute the product to *seen.
  void Check(std::set<std::string>* seen) {
    for (const auto& i : GemmImplementations()) {
      SCOPED_TRACE(std::string(p_.title) + ", " + i.name);
      const auto compiled = executor_.Compile(
          b_.Build(), scope_, {.opt_level = 0, .force = std::string("gemm=") + i.name});
      ASSERT_TRUE(compiled.ok()) << compiled.status().message();
      const auto plan = executor_.DescribePlan(*compiled, feeds_);
      if (!plan.ok()) {
        EXPECT_THAT(plan.status().message(), HasSubstr("does not cover"));
        continue;
      }
      EXPECT_THAT(plan->instructions[0].implementation, StartsWith(i.name));
      seen->insert(i.name);
      const auto got = executor_.Run(*compiled, feeds_);
      ASSERT_TRUE(got.ok()) << got.status().message();
      Compare((*got)[0], i.name);
    }
  }

 private:
  void Compare(const Tensor& got, const std::string& name) const {
    ASSERT_EQ(got.shape(), p_.Out());
    // Of a sum's deviation, of which one that is mixed up is off by about as much.
    const double rounding = name == "onednn_bf16" || name == "panels_int8" ? 1e-2 : 1e-5;
    const double near = rounding * std::sqrt(static_cast<double>(p_.k)) * std::abs(p_.alpha) + 1e-5;
    const float *x = x_.data<float>(), *y = y_.data<float>();
    int64_t at = 0;
    for (int64_t b = 0; b < std::max<int64_t>(p_.batch, 1); ++b)
      for (int64_t i = 0; i < p_.m; ++i)
        for (int64_t j = 0; j < p_.n; ++j, ++at) {
          double sum = 0;
          for (int64_t t = 0; t < p_.k; ++t)
            sum += static_cast<double>(
                       x[b * p_.m * p_.k + (p_.trans_x ? t * p_.m + i : i * p_.k + t)]) *
                   y[(p_.y_in_batches ? b * p_.k * p_.n : 0) +
                     (p_.trans_y ? j * p_.k + t : t * p_.n + j)];
          sum = p_.alpha * sum + bias_.data<float>()[j];
          if (p_.residual) sum += residual_.data<float>()[at];
          ASSERT_NEAR(got.data<float>()[at], sum, near) << b << ' ' << i << ' ' << j;
        }
  }

  const Product p_;
  const Tensor x_, y_, bias_, residual_;
  ProgramBuilder b_;
  std::shared_ptr<Scope> scope_ = std::make_shared<Scope>();
  std::vector<Feed> feeds_;
  Executor executor_{{.threads = 2}};
};

const Product kProducts[] = {
    {.title = "a constant", .m = 17, .n = 43, .k = 65},
    {.title = "a constant, transposed", .m = 19, .n = 37, .k = 51, .trans_y = true},
    {.title = "one row", .m = 1, .n = 77, .k = 130},
    {.title = "one column", .m = 67, .n = 1, .k = 129},
    {.title = "one term", .m = 70, .n = 90, .k = 1},
    {.title = "one element", .m = 1, .n = 1, .k = 3},
    {.title = "batches and a constant", .m = 9, .n = 33, .k = 40, .batch = 3},
    {.title = "a residual", .m = 21, .n = 35, .k = 64, .residual = true},
    {.title = "X transposed", .m = 23, .n = 18, .k = 31, .trans_x = true},
    {.title = "times alpha", .m = 20, .n = 30, .k = 40, .alpha = -0.5},
    {.title = "no constant", .m = 150, .n = 130, .k = 170, .constant = false},
    {.title = "no constant, transposed",
     .m = 140,
     .n = 150,
     .k = 160,
     .constant = false,
     .trans_y = true},
    {.title = "batches",
     .m = 130,
     .n = 140,
     .k = 150,
     .batch = 2,
     .y_in_batches = true,
     .constant = false,
     .trans_y = true,
     .alpha = 0.25},
    {.title = "small batches, both transposed",
     .m = 7,
     .n = 5,
     .k = 6,
     .batch = 4,
     .y_in_batches = true,
     .constant = false,
     .trans_x = true,
     .trans_y = true},
    {.title = "rounded to 8 bits", .m = 13, .n = 50, .k = 140, .int8 = true},
    {.title = "rounded to bf16", .m = 33, .n = 40, .k = 128, .bf16 = true},
};

TEST(GemmImplementations, ComputeWhatAPlainLoopDoes) {
  std::set<std::string> seen;
  for (const Product& p : kProducts) AllOf(p).Check(&seen);
  const bool with_onednn = seen.count("onednn") != 0;  // in this build
  for (const auto& i : GemmImplementations()) {
    const std::string name = i.name;
    const bool here = (with_onednn || !name.starts_with("onednn")) &&
                      (ThisMachine().has(kAvx512Bf16) || name != "onednn_bf16");
    EXPECT_EQ(seen.count(name) != 0, here) << name;
  }
}

}  // namespace
}  // namespace heddle::testing
