#include "kernels/detection/boxes.h"

#include <cmath>
#include <utility>
#include <vector>

#include "kernels/base/axis_lines.h"

namespace heddle {
namespace {

struct Edge {
  double x0, y0, x1, y1;  // y0 < y1
  double At(double y) const { return x0 + (x1 - x0) * (y - y0) / (y1 - y0); }
};

double ContourArea(const double* p, int64_t size) {
  double twice = 0;
  for (int64_t i = 0; i < size; i += 2) {
    const int64_t j = (i + 2) % size;
    twice += p[i] * p[j + 1] - p[i + 1] * p[j];
  }
  return std::abs(twice) / 2;
}

std::vector<Edge> EdgesOf(const double* p, int64_t size) {
  std::vector<Edge> edges;
  for (int64_t i = 0; i < size; i += 2) {
    const int64_t j = (i + 2) % size;
    if (p[i + 1] < p[j + 1]) edges.push_back({p[i], p[i + 1], p[j], p[j + 1]});
    if (p[i + 1] > p[j + 1]) edges.push_back({p[j], p[j + 1], p[i], p[i + 1]});
  }
  return edges;
}

void AddCrossing(const Edge& a, const Edge& b, std::vector<double>* ys) {
  const double top = std::max(a.y0, b.y0), bottom = std::min(a.y1, b.y1);
  if (top >= bottom) return;
  const double before = a.At(top) - b.At(top), after = a.At(bottom) - b.At(bottom);
  if ((before < 0 && after > 0) || (before > 0 && after < 0))
    ys->push_back(top + (bottom - top) * before / (before - after));
}

// Abscissas at which a horizontal line enters and leaves a polygon, in order.
void Spans(const std::vector<Edge>& edges, double y, std::vector<double>* xs) {
  xs->clear();
  for (const Edge& e : edges)
    if (e.y0 < y && y < e.y1) xs->push_back(e.At(y));
  std::sort(xs->begin(), xs->end(), &Less<double>);
}

double SharedLength(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i + 1 < a.size(); i += 2)
    for (size_t j = 0; j + 1 < b.size(); j += 2)
      sum += std::max(0.0, std::min(a[i + 1], b[j + 1]) - std::max(a[i], b[j]));
  return sum;
}

// Between two neighbouring ys no edges cross, so the shared length is linear there.
double SharedArea(const std::vector<Edge>& a, const std::vector<Edge>& b) {
  std::vector<double> ys, xs_a, xs_b;
  std::vector<Edge> all = a;
  all.insert(all.end(), b.begin(), b.end());
  for (size_t i = 0; i < all.size(); ++i) {
    ys.push_back(all[i].y0);
    ys.push_back(all[i].y1);
    for (size_t j = 0; j < i; ++j) AddCrossing(all[i], all[j], &ys);
  }
  std::sort(ys.begin(), ys.end(), &Less<double>);
  double area = 0;
  for (size_t i = 0; i + 1 < ys.size(); ++i) {
    const double height = ys[i + 1] - ys[i];
    if (!(height > 0)) continue;
    const double middle = ys[i] + height / 2;
    Spans(a, middle, &xs_a);
    Spans(b, middle, &xs_b);
    area += SharedLength(xs_a, xs_b) * height;
  }
  return area;
}

}  // namespace

double PolygonOverlap(const double* a, const double* b, int64_t size) {
  const double area_a = ContourArea(a, size), area_b = ContourArea(b, size);
  const double shared = SharedArea(EdgesOf(a, size), EdgesOf(b, size));
  if (area_a == 0 || area_b == 0 || shared == 0) return 0;
  return shared / (area_a + area_b - shared);
}

}  // namespace heddle
