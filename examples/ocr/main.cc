// Reads the text in a picture, as ocr.py does (which explains each step), in C++:
//   ocr MODELS picture.png
#include <heddle/heddle.h>
#include <png.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace {

struct Point {
  double x = 0, y = 0;
};
Point operator+(Point a, Point b) { return {a.x + b.x, a.y + b.y}; }
Point operator-(Point a, Point b) { return {a.x - b.x, a.y - b.y}; }
Point operator*(Point a, double s) { return {a.x * s, a.y * s}; }
double Dot(Point a, Point b) { return a.x * b.x + a.y * b.y; }
double Cross(Point a, Point b) { return a.x * b.y - a.y * b.x; }
double Length(Point a) { return std::hypot(a.x, a.y); }

using Quad = std::array<Point, 4>;  // upper left first, clockwise

// Blue, green, red.
struct Image {
  int width = 0, height = 0;
  std::vector<float> pixels;
  float at(int x, int y, int c) const {
    return pixels[(static_cast<size_t>(y) * width + x) * 3 + c];
  }
};

[[noreturn]] void Fail(const std::string& what) {
  std::cerr << "ocr: " << what << "\n";
  std::exit(1);
}

template <typename T>
T Must(heddle::Result<T> result) {
  if (!result.ok()) Fail(result.status().ToString());
  return *std::move(result);
}

Image ReadPng(const char* path) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  if (!png_image_begin_read_from_file(&png, path)) Fail(std::string(path) + ": " + png.message);
  png.format = PNG_FORMAT_BGR;
  std::vector<png_byte> bytes(PNG_IMAGE_SIZE(png));
  if (!png_image_finish_read(&png, nullptr, bytes.data(), 0, nullptr))
    Fail(std::string(path) + ": " + png.message);
  Image image{static_cast<int>(png.width), static_cast<int>(png.height), {}};
  image.pixels.assign(bytes.begin(), bytes.end());
  return image;
}

// One line of pixels in another length. Each new pixel is a weighted mean of the old ones under a
// tent, as wide as one of the larger pixels.
struct Tent {
  Tent(int from, int to) : begin(to), weights(to) {
    const double scale = static_cast<double>(from) / to, reach = std::max(1.0, scale);
    for (int i = 0; i < to; ++i) {
      const double centre = (i + 0.5) * scale;
      const int lo = std::max(0, static_cast<int>(centre - reach + 0.5));
      const int hi = std::min(from, static_cast<int>(centre + reach + 0.5));
      begin[i] = lo;
      for (int k = lo; k < hi; ++k)
        weights[i].push_back(std::max(0.0, 1 - std::abs((k + 0.5 - centre) / reach)));
      const double sum = std::accumulate(weights[i].begin(), weights[i].end(), 0.0);
      for (double& w : weights[i]) w /= sum;
    }
  }
  std::vector<int> begin;
  std::vector<std::vector<double>> weights;
};

Image Resize(const Image& from, int width, int height) {
  const Tent across(from.width, width), down(from.height, height);
  Image rows{width, from.height, std::vector<float>(static_cast<size_t>(width) * from.height * 3)};
  for (int y = 0; y < from.height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < 3; ++c) {
        double sum = 0;
        for (size_t k = 0; k < across.weights[x].size(); ++k)
          sum += across.weights[x][k] * from.at(across.begin[x] + static_cast<int>(k), y, c);
        rows.pixels[(static_cast<size_t>(y) * width + x) * 3 + c] = static_cast<float>(sum);
      }
  Image out{width, height, std::vector<float>(static_cast<size_t>(width) * height * 3)};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < 3; ++c) {
        double sum = 0;
        for (size_t k = 0; k < down.weights[y].size(); ++k)
          sum += down.weights[y][k] * rows.at(x, down.begin[y] + static_cast<int>(k), c);
        out.pixels[(static_cast<size_t>(y) * width + x) * 3 + c] =
            static_cast<float>(std::round(sum));
      }
  return out;
}

// The picture scaled to width × height as a network's input, zeros to its right up to `padded`.
heddle::Tensor ToTensor(const Image& image, int width, int height, int padded) {
  const Image scaled = Resize(image, width, height);
  auto tensor = heddle::Tensor::Zeros(heddle::DType::kF32, {1, 3, height, padded});
  auto* out = tensor.mutable_data<float>();
  for (int c = 0; c < 3; ++c)
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x)
        out[(static_cast<size_t>(c) * height + y) * padded + x] = scaled.at(x, y, c) / 127.5f - 1;
  return tensor;
}

class Network {
 public:
  Network(heddle::Executor& executor, const std::string& folder)
      : executor_(executor), compiled_(Must(executor.Compile(Must(heddle::LoadModel(folder))))) {}
  heddle::Tensor operator()(heddle::Tensor input) {
    return Must(executor_.Run(compiled_, {{compiled_.inputs()[0].name, std::move(input)}}))[0];
  }

 private:
  heddle::Executor& executor_;
  heddle::CompiledProgram compiled_;
};

// ---- where text is ----------------------------------------------------------------------------

// The points of each connected region of more than `threshold`, touching corners included.
std::vector<std::vector<Point>> Regions(const float* map, int width, int height, float threshold) {
  std::vector<char> open(static_cast<size_t>(width) * height);
  for (size_t i = 0; i < open.size(); ++i) open[i] = map[i] > threshold;
  std::vector<std::vector<Point>> regions;
  std::vector<int> stack;
  for (int first = 0; first < width * height; ++first) {
    if (!open[first]) continue;
    open[first] = 0;
    stack.assign(1, first);
    regions.emplace_back();
    while (!stack.empty()) {
      const int at = stack.back(), x = at % width, y = at / width;
      stack.pop_back();
      regions.back().push_back({static_cast<double>(x), static_cast<double>(y)});
      for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx) {
          const int nx = x + dx, ny = y + dy, n = ny * width + nx;
          if (nx < 0 || ny < 0 || nx >= width || ny >= height || !open[n]) continue;
          open[n] = 0;
          stack.push_back(n);
        }
    }
  }
  return regions;
}

// Convex hull by Andrew's monotone chain.
std::vector<Point> Hull(std::vector<Point> points) {
  std::sort(points.begin(), points.end(),
            [](Point a, Point b) { return a.x != b.x ? a.x < b.x : a.y < b.y; });
  if (points.size() < 3) return points;
  std::vector<Point> hull;
  for (int pass = 0; pass < 2; ++pass) {
    const size_t begin = hull.size();
    for (Point p : points) {
      while (hull.size() > begin + 1 &&
             Cross(hull.back() - hull[hull.size() - 2], p - hull[hull.size() - 2]) <= 0)
        hull.pop_back();
      hull.push_back(p);
    }
    hull.pop_back();
    std::reverse(points.begin(), points.end());
  }
  return hull;
}

struct Rectangle {
  Point centre, along, across;
  double length = 0, breadth = 0;
};

Rectangle SmallestRectangle(const std::vector<Point>& points) {
  const std::vector<Point> hull = Hull(points);
  Rectangle best;
  double least = HUGE_VAL;
  for (size_t i = 0; i < hull.size(); ++i) {
    const Point side = hull[(i + 1) % hull.size()] - hull[i];
    if (Length(side) == 0) continue;
    const Point along = side * (1 / Length(side)), across{-along.y, along.x};
    double u0 = HUGE_VAL, u1 = -HUGE_VAL, v0 = HUGE_VAL, v1 = -HUGE_VAL;
    for (Point p : hull) {
      u0 = std::min(u0, Dot(p, along)), u1 = std::max(u1, Dot(p, along));
      v0 = std::min(v0, Dot(p, across)), v1 = std::max(v1, Dot(p, across));
    }
    if ((u1 - u0) * (v1 - v0) >= least) continue;
    least = (u1 - u0) * (v1 - v0);
    best = {along * ((u0 + u1) / 2) + across * ((v0 + v1) / 2), along, across, u1 - u0, v1 - v0};
  }
  return best;
}

Quad Clockwise(Quad corners) {
  std::stable_sort(corners.begin(), corners.end(), [](Point a, Point b) { return a.x < b.x; });
  if (corners[0].y > corners[1].y) std::swap(corners[0], corners[1]);
  if (corners[2].y > corners[3].y) std::swap(corners[2], corners[3]);
  return {corners[0], corners[2], corners[3], corners[1]};
}

// Line by line.
void SortForReading(std::vector<Quad>* boxes) {
  std::stable_sort(boxes->begin(), boxes->end(),
                   [](const Quad& a, const Quad& b) { return a[0].y < b[0].y; });
  for (size_t begin = 0, end; begin < boxes->size(); begin = end) {
    for (end = begin + 1; end < boxes->size(); ++end) {
      const Quad& box = (*boxes)[end];
      if (std::abs((*boxes)[begin][0].y - box[0].y) >= Length(box[3] - box[0]) / 2) break;
    }
    std::stable_sort(boxes->begin() + static_cast<long>(begin),
                     boxes->begin() + static_cast<long>(end),
                     [](const Quad& a, const Quad& b) { return a[0].x < b[0].x; });
  }
}

std::vector<Quad> Detect(Network& network, const Image& image) {
  constexpr double kShortestSide = 736, kGrow = 1.6;
  constexpr float kThreshold = 0.3f, kSure = 0.5f;
  const double ratio = std::max(1.0, kShortestSide / std::min(image.width, image.height));
  const int columns = std::max(32, static_cast<int>(std::nearbyint(image.width * ratio / 32)) * 32);
  const int rows = std::max(32, static_cast<int>(std::nearbyint(image.height * ratio / 32)) * 32);
  const heddle::Tensor output = network(ToTensor(image, columns, rows, columns));
  const float* map = output.data<float>();
  std::vector<Quad> boxes;
  for (const auto& region : Regions(map, columns, rows, kThreshold)) {
    const Rectangle r = SmallestRectangle(region);
    double sum = 0;
    for (Point p : region)
      sum += map[static_cast<size_t>(p.y) * columns + static_cast<size_t>(p.x)];
    if (std::min(r.length, r.breadth) < 3 || sum < kSure * static_cast<double>(region.size()))
      continue;
    const double out = r.length * r.breadth * kGrow / (2 * (r.length + r.breadth));
    const Point a = r.along * (r.length / 2 + out), b = r.across * (r.breadth / 2 + out);
    Quad corners{r.centre - a - b, r.centre + a - b, r.centre + a + b, r.centre - a + b};
    for (Point& p : corners) {
      p.x = std::clamp((p.x + 0.5) * image.width / columns, 0.0, static_cast<double>(image.width));
      p.y = std::clamp((p.y + 0.5) * image.height / rows, 0.0, static_cast<double>(image.height));
    }
    boxes.push_back(Clockwise(corners));
  }
  SortForReading(&boxes);
  return boxes;
}

// ---- which way up, and what it says -------------------------------------------------------------

Image Turn(const Image& from) {  // a quarter, against the clock
  Image to{from.height, from.width, std::vector<float>(from.pixels.size())};
  for (int y = 0; y < to.height; ++y)
    for (int x = 0; x < to.width; ++x)
      for (int c = 0; c < 3; ++c)
        to.pixels[(static_cast<size_t>(y) * to.width + x) * 3 + c] =
            from.at(from.width - 1 - y, x, c);
  return to;
}

Image CutOut(const Image& image, const Quad& q) {
  const auto side = [](Point a, Point b) { return Length(a - b); };
  const int width =
      std::max(1, static_cast<int>(std::nearbyint(std::max(side(q[1], q[0]), side(q[2], q[3])))));
  const int height =
      std::max(1, static_cast<int>(std::nearbyint(std::max(side(q[3], q[0]), side(q[2], q[1])))));
  Image part{width, height, {}};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const double u = (x + 0.5) / width, v = (y + 0.5) / height;
      const Point at = (q[0] * (1 - u) + q[1] * u) * (1 - v) + (q[3] * (1 - u) + q[2] * u) * v;
      const double px = std::clamp(at.x - 0.5, 0.0, image.width - 1.0);
      const double py = std::clamp(at.y - 0.5, 0.0, image.height - 1.0);
      const int x0 = static_cast<int>(px), y0 = static_cast<int>(py);
      const int x1 = std::min(x0 + 1, image.width - 1), y1 = std::min(y0 + 1, image.height - 1);
      const double fx = px - x0, fy = py - y0;
      for (int c = 0; c < 3; ++c) {
        const double upper = image.at(x0, y0, c) * (1 - fx) + image.at(x1, y0, c) * fx;
        const double lower = image.at(x0, y1, c) * (1 - fx) + image.at(x1, y1, c) * fx;
        part.pixels.push_back(static_cast<float>(std::floor(upper * (1 - fy) + lower * fy + 0.5)));
      }
    }
  return height >= 1.5 * width ? Turn(part) : part;
}

heddle::Tensor Padded(const Image& part, int height, int width) {
  const int wide =
      static_cast<int>(std::ceil(static_cast<double>(height) * part.width / part.height));
  return ToTensor(part, std::clamp(wide, 1, width), height, width);
}

Image Upright(Network& network, Image part) {
  const heddle::Tensor way = network(Padded(part, 48, 192));
  if (way.data<float>()[1] <= 0.9f) return part;
  return Turn(Turn(part));
}

std::pair<std::string, double> Read(Network& network, const Image& part,
                                    const std::vector<std::string>& characters) {
  const int wide = static_cast<int>(std::ceil(48.0 * part.width / part.height));
  const heddle::Tensor scores = network(Padded(part, 48, std::max(320, wide)));
  const int64_t steps = scores.dim(1), kinds = scores.dim(2);
  std::string text;
  double sum = 0;
  int kept = 0;
  int64_t before = 0;
  for (int64_t t = 0; t < steps; ++t) {
    const float* row = scores.data<float>() + t * kinds;
    const int64_t best = std::max_element(row, row + kinds) - row;
    if (best != 0 && best != before && best < static_cast<int64_t>(characters.size())) {
      text += characters[static_cast<size_t>(best)];
      sum += row[best];
      ++kept;
    }
    before = best;
  }
  return {text, kept == 0 ? 0 : sum / kept};
}

std::vector<std::string> ReadCharacters(const std::string& path) {
  std::ifstream file(path);
  if (!file) Fail(path + ": cannot be read");
  std::vector<std::string> characters{""};  // 0 stands for none
  for (std::string line; std::getline(file, line);)
    if (!line.empty()) characters.push_back(line);
  characters.push_back(" ");
  return characters;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) Fail("usage: ocr MODELS picture.png");
  const std::string models = argv[1];
  heddle::Executor executor;
  Network where(executor, models + "/det"), way(executor, models + "/cls"),
      what(executor, models + "/rec");
  const auto characters = ReadCharacters(models + "/characters.txt");
  const Image image = ReadPng(argv[2]);
  for (const Quad& corners : Detect(where, image)) {
    const Image part = Upright(way, CutOut(image, corners));
    const auto [text, certainty] = Read(what, part, characters);
    if (certainty < 0.5) continue;
    std::printf("%.2f  %s    (", certainty, text.c_str());
    for (size_t i = 0; i < 4; ++i)
      std::printf("%s%.0f,%.0f", i == 0 ? "" : " ", corners[i].x, corners[i].y);
    std::printf(")\n");
  }
}
