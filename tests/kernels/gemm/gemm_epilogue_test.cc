// What follows a product inside its kernel, beside the definitions in double precision.
#include "kernels/gemm/gemm_epilogue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace heddle {
namespace {

double Wanted(const Epilogue& e, double x) {
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  const auto gate = [&] { return std::clamp(e.alpha * x + e.beta, 0.0, 1.0); };
  switch (e.activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
    case Activation::kReluKeepsNan:
      return std::max(x, 0.0);
    case Activation::kLeakyRelu:
      return x < 0 ? e.alpha * x : x;
    case Activation::kClip:
      return std::clamp<double>(x, e.alpha, e.beta);
    case Activation::kHardSwish:
      return x * gate();
    case Activation::kHardSigmoid:
      return gate();
    case Activation::kSwish:
      return x * sigmoid(e.alpha * x);
    case Activation::kSigmoid:
      return sigmoid(x);
    case Activation::kGeluErf:
      return 0.5 * x * std::erfc(-x * std::sqrt(0.5));
    case Activation::kGeluTanh:
      return x * sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x));
    case Activation::kTanh:
      return std::tanh(x);
    case Activation::kMish:
      return x * std::tanh(x > 20 ? x : std::log1p(std::exp(x)));
  }
  return 0;
}

Epilogue Of(Activation a) {
  Epilogue e;
  e.activation = a;
  if (a == Activation::kLeakyRelu) e.alpha = 0.1f;
  if (a == Activation::kClip) e.alpha = -0.5f, e.beta = 6;
  if (a == Activation::kHardSwish || a == Activation::kHardSigmoid)
    e.alpha = 1.f / 6, e.beta = 0.5f;
  if (a == Activation::kSwish) e.alpha = 1.5f;
  return e;
}

constexpr int kActivations = static_cast<int>(Activation::kReluKeepsNan) + 1;

TEST(ApplyEpilogue, EveryActivationIsNearItsDefinition) {
  std::vector<float> x{0.f,   -0.f,   1e-30f, -1e-30f, 88.f, -88.f,
                       104.f, -104.f, 1e4f,   -1e4f,   3e8f, -3e8f};
  for (int i = -4000; i <= 4000; ++i) x.push_back(static_cast<float>(i) * 0.01f);
  for (int a = 0; a < kActivations; ++a) {
    const Epilogue e = Of(static_cast<Activation>(a));
    std::vector<float> y = x;
    const auto n = static_cast<int64_t>(x.size());
    ApplyEpilogue(e, 1, n, n, nullptr, false, y.data());
    for (size_t i = 0; i < x.size(); ++i) {
      const double want = Wanted(e, x[i]);
      // A product in single precision is off by a part of itself, exp of it by that. erf reaches
      // one a little early.
      double argument = std::fabs(x[i]);
      if (e.activation == Activation::kGeluTanh)
        argument = 1.6 * (argument + 0.045 * std::pow(argument, 3));
      const double part = 5e-7 + 1.5e-7 * argument;
      const double slack =
          e.activation == Activation::kGeluErf ? 1.5e-7 * std::fabs(x[i]) + 1e-7 : 1e-37;
      ASSERT_NEAR(y[i], want, part * std::fabs(want) + slack)
          << "activation " << a << " of " << x[i];
    }
  }
}

TEST(ApplyEpilogue, WhatIsNoNumberStays) {
  for (int a = 0; a < kActivations; ++a) {
    const Epilogue e = Of(static_cast<Activation>(a));
    std::vector<float> y(21, std::numeric_limits<float>::quiet_NaN());
    ApplyEpilogue(e, 1, 21, 21, nullptr, false, y.data());
    // relu is max(0, x) and gives 0, as the operator by itself does.
    for (float v : y) {
      if (e.activation == Activation::kRelu)
        EXPECT_EQ(v, 0) << "activation " << a;
      else
        EXPECT_TRUE(std::isnan(v)) << "activation " << a;
    }
  }
}

// Bias, then activation, then factor and shift; nothing beside the rows is touched.
TEST(ApplyEpilogue, RowsOfAnyWidthAndDistance) {
  for (int a = 0; a < kActivations; ++a)
    for (const int64_t width : {1, 7, 16, 33, 64})
      for (const int64_t gap : {0, 3})
        for (const bool per_row : {false, true}) {
          Epilogue e = Of(static_cast<Activation>(a));
          e.bias = true;
          e.scale = 2, e.shift = -1;
          const int64_t rows = 3, step = width + gap;
          std::vector<float> bias(64), x(static_cast<size_t>(rows * step));
          for (size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<float>(i % 5) - 2;
          for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 17) * 0.25f - 2;
          std::vector<float> y = x;
          ApplyEpilogue(e, rows, width, step, bias.data(), per_row, y.data());
          for (int64_t i = 0; i < rows * step; ++i) {
            const int64_t r = i / step, c = i % step;
            const auto at = static_cast<size_t>(i);
            if (c >= width) {
              ASSERT_EQ(y[at], x[at]);
              continue;
            }
            const double in = double{x[at]} + bias[static_cast<size_t>(per_row ? r : c)];
            ASSERT_NEAR(y[at], 2 * Wanted(e, in) - 1, 1e-5)
                << "activation " << a << ", " << width << " wide, row " << r << " column " << c;
          }
        }
}

}  // namespace
}  // namespace heddle
