// Comparison of results with recorded ones.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/program_builder.h"

namespace heddle::testing {

// Equal dtype and shape; floats within atol + rtol * |want|, all else equal.
inline ::testing::AssertionResult Close(const Tensor& got, const Tensor& want, double rtol,
                                        double atol) {
  if (got.dtype() != want.dtype() || !(got.shape() == want.shape()))
    return ::testing::AssertionFailure()
           << Name(got.dtype()) << " " << got.shape().ToString() << " instead of "
           << Name(want.dtype()) << " " << want.shape().ToString();
  if (got.dtype() != DType::kF32) {
    if (Bits(got) == Bits(want)) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << "other integers";
  }
  int64_t bad = 0;
  double worst = 0;
  for (int64_t i = 0; i < got.numel(); ++i) {
    const double g = got.data<float>()[i], w = want.data<float>()[i];
    if (g == w || (std::isnan(g) && std::isnan(w))) continue;
    worst = std::max(worst, std::fabs(g - w));
    bad += !(std::fabs(g - w) <= atol + rtol * std::fabs(w));
  }
  if (bad == 0) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << bad << " of " << got.numel() << " differ, by up to " << worst;
}

}  // namespace heddle::testing
