// Boxes of detectors, as corners (x1, y1, x2, y2), and polygons, as x1, y1, x2, y2, …
#pragma once

#include <algorithm>
#include <cstdint>

namespace heddle {

// 0 where the corners are the wrong way round. Boxes that are not normalized count pixels.
template <typename T>
T BoxArea(const T* box, bool normalized) {
  if (box[2] < box[0] || box[3] < box[1]) return T(0);
  const T extra = normalized ? T(0) : T(1);
  return (box[2] - box[0] + extra) * (box[3] - box[1] + extra);
}

// Intersection over union.
template <typename T>
T BoxOverlap(const T* a, const T* b, bool normalized) {
  if (b[0] > a[2] || b[2] < a[0] || b[1] > a[3] || b[3] < a[1]) return T(0);
  const T extra = normalized ? T(0) : T(1);
  const T w = std::min(a[2], b[2]) - std::max(a[0], b[0]) + extra;
  const T h = std::min(a[3], b[3]) - std::max(a[1], b[1]) + extra;
  return w * h / (BoxArea(a, normalized) + BoxArea(b, normalized) - w * h);
}

// Intersection over union of two polygons of `size` / 2 corners (even-odd rule); 0 where an area
// is.
double PolygonOverlap(const double* a, const double* b, int64_t size);

// Intersection over union of boxes (size 4) or polygons.
template <typename T>
T Overlap(const T* a, const T* b, int64_t size, bool normalized) {
  if (size == 4) return BoxOverlap(a, b, normalized);
  constexpr int64_t kMaxSize = 32;
  if (size > kMaxSize) return T(0);
  double corners[2][kMaxSize];
  std::copy(a, a + size, corners[0]);
  std::copy(b, b + size, corners[1]);
  return static_cast<T>(PolygonOverlap(corners[0], corners[1], size));
}

}  // namespace heddle
