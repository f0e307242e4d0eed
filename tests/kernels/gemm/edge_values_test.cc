// Every implementation of a matrix product with NaN, infinities and zeros among its operands, and
// every activation behind it: what is NaN or infinite by definition comes out as that.
#include "tests/kernels/edge_values.h"

#include <gtest/gtest.h>

#include "kernels/gemm/select.h"

namespace heddle::testing {
namespace {

struct Product {
  int64_t m, k, n;
  bool constant;
};
constexpr Product kProducts[] = {{1, 70, 50, true},
                                 {5, 33, 17, true},
                                 {64, 128, 96, true},
                                 {200, 64, 48, true},
                                 {12, 20, 30, false}};

class EdgeValuesOfProduct : public ::testing::TestWithParam<Product> {};

TEST_P(EdgeValuesOfProduct, StayWhatTheyAre) {
  const Product d = GetParam();
  const Tensor x = WithEdges({d.m, d.k}, 0.2 / static_cast<double>(d.k), 1),
               w = WithEdges({d.k, d.n}, 0, 2), b = WithEdges({d.n}, 0.05, 3),
               r = WithEdges({d.m, d.n}, 0.03, 4);
  std::vector<EdgeSum> sums;
  for (int64_t i = 0; i < d.m; ++i)
    for (int64_t j = 0; j < d.n; ++j) {
      EdgeSum& sum = sums.emplace_back();
      sum.Add(b.data<float>()[j]);
      sum.Add(r.data<float>()[i * d.n + j]);
      for (int64_t k = 0; k < d.k; ++k)
        sum.Add(double{x.data<float>()[i * d.k + k]} * w.data<float>()[k * d.n + j]);
    }
  int ran = 0;
  for (const GemmImplementation& implementation : GemmImplementations()) {
    const std::string name = implementation.name;
    if (name == "onednn_bf16" || name == "panels_int8") continue;  // round their operands
    for (const EdgeActivation& a : EdgeActivations())
      for (const int threads : {1, 2}) {
        ProgramBuilder p;
        p.Feed("x", DType::kF32, x.shape()).Feed("r", DType::kF32, r.shape());
        p.Param("b", DType::kF32, b.shape());
        std::vector<Feed> feeds{{"x", x}, {"r", r}};
        auto scope = std::make_shared<Scope>();
        scope->Set("b", Value(b));
        if (d.constant) {
          p.Param("w", DType::kF32, w.shape());
          scope->Set("w", Value(w));
        } else {
          p.Feed("w", DType::kF32, w.shape());
          feeds.push_back({"w", w});
        }
        p.Op("fused_matmul", {{"X", {"x"}}, {"Y", {"w"}}, {"Bias", {"b"}}, {"ResidualData", {"r"}}},
             {{"Out", {"y"}}},
             {{"fuse_activation", std::string(a.name)},
              {"fuse_alpha", a.alpha},
              {"fuse_beta", a.beta}});
        p.Fetch("y");
        Executor executor({.threads = threads});
        auto compiled =
            executor.Compile(p.Build(), scope, {.opt_level = 0, .force = "gemm=" + name});
        if (!compiled.ok()) continue;
        auto out = executor.Run(*compiled, feeds);
        if (!out.ok()) continue;  // does not cover it
        ++ran;
        int wrong = 0;
        for (int64_t i = 0; i < (*out)[0].numel(); ++i) {
          const EdgeSum& terms = sums[static_cast<size_t>(i)];
          if (terms.in_doubt()) continue;
          const double sum = terms.value(), want = Activated(a, sum),
                       got = (*out)[0].data<float>()[i];
          if (!SameClass(got, want, 1e-4) && ++wrong < 3)
            ADD_FAILURE() << d.m << "x" << d.k << "x" << d.n << ", " << name << ", " << threads
                          << " threads, '" << a.name << "' " << a.alpha << " " << a.beta << " of "
                          << sum << " gave " << got << ", expected " << want << " at " << i;
        }
      }
  }
  EXPECT_GE(ran, 2 * static_cast<int>(EdgeActivations().size()));
}

INSTANTIATE_TEST_SUITE_P(, EdgeValuesOfProduct, ::testing::ValuesIn(kProducts),
                         [](const auto& info) { return "Product" + std::to_string(info.index); });

}  // namespace
}  // namespace heddle::testing
