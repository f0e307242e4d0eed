// The greatest or smallest element of a line, and where it is.
#pragma once

#include <cstdint>

#include "device/cuda/grid/grid_body.h"

namespace heddle::HEDDLE_GRID {

struct Found {
  float value;
  int64_t at;
};

// The greater value, or the smaller for sign -1; of equal ones the first. NaN is no extreme.
struct BetterFound {
  float sign;
  HEDDLE_BODY bool Before(const Found& a, const Found& b) const {
    if (a.at < 0 || b.at < 0) return b.at < 0;
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    if (a_nan || b_nan) return a_nan != b_nan ? b_nan : a.at < b.at;
    if (a.value != b.value) return sign * a.value > sign * b.value;
    return a.at < b.at;
  }
  HEDDLE_BODY Found operator()(const Found& a, const Found& b) const {
    return Before(a, b) ? a : b;
  }
};

}  // namespace heddle::HEDDLE_GRID
