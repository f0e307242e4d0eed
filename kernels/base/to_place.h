// Floats as places and sizes. What no integer holds - a number beyond, NaN - has no cast: the
// language leaves open what comes of it, and processors give the least integer, also for the
// largest number.
#pragma once

#include <cstdint>

namespace heddle {

// `v` cut towards zero. Numbers beyond it become ±kFarPlace, and NaN -kFarPlace: beyond every axis,
// and far enough from the ends of the type that a sum or the double of two is exact.
constexpr int64_t kFarPlace = int64_t{1} << 60;
template <typename Float>
int64_t ToPlace(Float v) {
  constexpr auto kFar = static_cast<Float>(kFarPlace);
  if (v >= kFar) return kFarPlace;
  return v > -kFar ? static_cast<int64_t>(v) : -kFarPlace;
}

}  // namespace heddle
