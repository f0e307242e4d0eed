// Random operands with NaN, infinities, zeros of both signs, subnormal and the greatest numbers
// among them, and what activations make of such numbers by their definitions.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/support/program_builder.h"

namespace heddle::testing {

// Each element is one of the special values with probability `share`.
inline Tensor WithEdges(const Shape& shape, double share, uint32_t seed) {
  constexpr float kInf = std::numeric_limits<float>::infinity(),
                  kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kMost = std::numeric_limits<float>::max();
  constexpr float kSpecial[] = {kNan, -kNan, kInf, -kInf, 0.f, -0.f, kMost, -kMost, 1e-41f, -1e20f};
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> chance(0, 1);
  std::uniform_int_distribution<int> step(-8, 8), which(0, 9);
  std::vector<float> values(static_cast<size_t>(shape.numel()));
  for (float& v : values)
    v = chance(random) < share ? kSpecial[which(random)] : static_cast<float>(step(random)) / 4;
  return F32(shape, values);
}

// A sum by definition.
class EdgeSum {
 public:
  void Add(double term) {
    sum_ += term;
    if (std::isfinite(term)) magnitude_ += std::fabs(term);
  }
  double value() const { return sum_; }
  // The order of the terms decides whether it overflows, or is exact at all.
  bool in_doubt() const {
    return magnitude_ > std::numeric_limits<float>::max() ||
           (magnitude_ > 1e6 && magnitude_ > 10 * (1 + std::fabs(sum_)));
  }

 private:
  double sum_ = 0, magnitude_ = 0;
};

struct EdgeActivation {
  const char* name;  // fuse_activation
  double alpha = 0, beta = 0;
};
inline std::vector<EdgeActivation> EdgeActivations() {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  return {{""},
          {"relu"},
          {"clip", 0, kInf},
          {"clip", 0, 6},
          {"clip", -1, 1},
          {"clip", -kInf, 1},
          {"leaky_relu", 0.1},
          {"leaky_relu", 0},
          {"leaky_relu", -0.5},
          {"hard_swish", 1.0 / 6, 0.5},
          {"hard_swish_divided_last"},
          {"hard_sigmoid", 0.2, 0.5},
          {"swish", 1},
          {"swish", -2},
          {"sigmoid"},
          {"gelu"},
          {"gelu", 1},
          {"tanh"},
          {"mish"}};
}

inline double Activated(const EdgeActivation& a, double x) {
  const std::string name = a.name;
  const auto gate = [&] { return std::min(1.0, std::max(0.0, a.alpha * x + a.beta)); };
  if (name == "relu") return x > 0 ? x : 0;  // of NaN 0
  if (std::isnan(x)) return x;
  if (name == "clip") return std::min(a.beta, std::max(a.alpha, x));
  if (name == "leaky_relu") return x < 0 ? a.alpha * x : x;
  if (name == "hard_swish") return x * gate();
  if (name == "hard_swish_divided_last")  // the product is a float
    return static_cast<float>(x * std::min(6.0, std::max(0.0, x + 3))) / 6;
  if (name == "hard_sigmoid") return gate();
  if (name == "swish") return x / (1 + std::exp(-a.alpha * x));
  if (name == "sigmoid") return 1 / (1 + std::exp(-x));
  if (name == "gelu" && a.alpha == 1)
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  if (name == "gelu")
    return x == std::numeric_limits<double>::infinity()
               ? x
               : 0.5 * x * (1 + std::erf(x * std::sqrt(0.5)));
  if (name == "tanh") return std::tanh(x);
  if (name == "mish") return x * std::tanh(x > 20 ? x : std::log1p(std::exp(x)));
  return x;
}

// NaN, the same infinity, or a number near it.
inline bool SameClass(double got, double want, double tolerance) {
  if (std::isnan(want) || std::isinf(want)) return std::isnan(want) ? std::isnan(got) : got == want;
  return std::fabs(got - want) <= tolerance * (1 + std::fabs(want));
}

}  // namespace heddle::testing
