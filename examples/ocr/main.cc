// Reads the text in pictures, as ocr.py does (which explains each step), in C++:
//   ocr MODELS picture.png… [--threads N] [--repeat N] [--bf16 | --int8]
// Several pictures are read side by side, each by one thread; of one picture the lines are.
#include <heddle/heddle.h>
#include <png.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <numeric>
#include <string>
#include <thread>
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
  std::vector<uint8_t> pixels;
  const uint8_t* at(int x, int y) const {
    return pixels.data() + (static_cast<size_t>(y) * width + x) * 3;
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

// Calls f(0), …, f(count - 1) on so many threads.
void Share(int threads, size_t count, const std::function<void(size_t)>& f) {
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t k; (k = next++) < count;) f(k);
  };
  std::vector<std::jthread> others;
  for (size_t t = 1; t < std::min(count, static_cast<size_t>(threads)); ++t)
    others.emplace_back(work);
  work();
}

Image ReadPng(const std::string& path) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  if (!png_image_begin_read_from_file(&png, path.c_str())) Fail(path + ": " + png.message);
  png.format = PNG_FORMAT_BGR;
  Image image{static_cast<int>(png.width), static_cast<int>(png.height), {}};
  image.pixels.resize(PNG_IMAGE_SIZE(png));
  if (!png_image_finish_read(&png, nullptr, image.pixels.data(), 0, nullptr))
    Fail(path + ": " + png.message);
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
        weights[i].push_back(
            static_cast<float>(std::max(0.0, 1 - std::abs((k + 0.5 - centre) / reach))));
      const float sum = std::accumulate(weights[i].begin(), weights[i].end(), 0.0f);
      for (float& w : weights[i]) w /= sum;
    }
  }
  std::vector<int> begin;
  std::vector<std::vector<float>> weights;
};

// The picture scaled to width × height as a network's input: three planes of `height` lines, each
// `stride` numbers after the one before.
void Scale(const Image& from, int width, int height, int stride, float* planes) {
  const Tent across(from.width, width), down(from.height, height);
  const size_t row = static_cast<size_t>(width) * 3;
  std::vector<float> rows(row * from.height), sum(row);
  for (int y = 0; y < from.height; ++y) {
    float* to = rows.data() + y * row;
    for (int x = 0; x < width; ++x, to += 3) {
      const uint8_t* pixel = from.at(across.begin[x], y);
      float b = 0, g = 0, r = 0;
      for (float w : across.weights[x]) {
        b += w * pixel[0], g += w * pixel[1], r += w * pixel[2];
        pixel += 3;
      }
      to[0] = b, to[1] = g, to[2] = r;
    }
  }
  for (int y = 0; y < height; ++y) {
    std::fill(sum.begin(), sum.end(), 0.5f);
    const float* line = rows.data() + down.begin[y] * row;
    for (float w : down.weights[y]) {
      for (size_t i = 0; i < row; ++i) sum[i] += w * line[i];
      line += row;
    }
    for (size_t c = 0; c < 3; ++c) {
      float* to = planes + (c * height + y) * stride;
      for (int x = 0; x < width; ++x)
        to[x] = static_cast<float>(static_cast<int>(sum[x * 3 + c])) / 127.5f - 1;
    }
  }
}

class Network {
 public:
  // `models`/`part`.onnx, else the folder `models`/`part` of a Paddle model.
  Network(heddle::Executor& executor, const std::string& models, const std::string& part,
          heddle::Precision precision)
      : executor_(executor),
        compiled_(Must(executor.Compile(Must(Load(models + "/" + part)),
                                        {.passes = {.precision = precision}}))) {}
  heddle::Tensor operator()(heddle::Tensor input) {
    return Must(executor_.Run(compiled_, {{compiled_.inputs()[0].name, std::move(input)}}))[0];
  }

 private:
  static heddle::Result<heddle::Model> Load(const std::string& path) {
    return heddle::LoadModel(std::filesystem::exists(path + ".onnx") ? path + ".onnx" : path);
  }

  heddle::Executor& executor_;
  heddle::CompiledProgram compiled_;
};

// ---- where text is ----------------------------------------------------------------------------

// Pixels begin … end - 1 of line y.
struct Run {
  int y, begin, end, region;
};

struct Region {
  std::vector<Point> ends;  // of its runs
  double sum = 0, count = 0;
};

// The connected regions of more than `threshold`, touching corners included.
std::vector<Region> Regions(const float* map, int width, int height, float threshold) {
  std::vector<Run> runs;
  std::vector<int> parent;
  const auto root = [&](int k) {
    while (parent[k] != k) k = parent[k] = parent[parent[k]];
    return k;
  };
  size_t above = 0, above_end = 0;
  for (int y = 0; y < height; ++y) {
    const float* row = map + static_cast<size_t>(y) * width;
    const size_t here = runs.size();
    for (int x = 0; x < width; ++x) {
      if (row[x] <= threshold) continue;
      const int begin = x;
      while (x < width && row[x] > threshold) ++x;
      const int k = static_cast<int>(runs.size());
      runs.push_back({y, begin, x, k});
      parent.push_back(k);
      while (above < above_end && runs[above].end < begin) ++above;
      for (size_t j = above; j < above_end && runs[j].begin <= x; ++j)
        parent[root(k)] = root(static_cast<int>(j));
    }
    above = here, above_end = runs.size();
  }
  std::vector<Region> regions;
  std::vector<int> number(runs.size(), -1);
  for (const Run& run : runs) {
    int& n = number[root(run.region)];
    if (n < 0) {
      n = static_cast<int>(regions.size());
      regions.emplace_back();
    }
    Region& region = regions[n];
    const double y = run.y;
    region.ends.push_back({static_cast<double>(run.begin), y});
    region.ends.push_back({static_cast<double>(run.end - 1), y});
    const float* row = map + static_cast<size_t>(run.y) * width;
    region.sum += std::accumulate(row + run.begin, row + run.end, 0.0);
    region.count += run.end - run.begin;
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
  auto input = heddle::Tensor::Zeros(heddle::DType::kF32, {1, 3, rows, columns});
  Scale(image, columns, rows, columns, input.mutable_data<float>());
  const heddle::Tensor output = network(std::move(input));
  std::vector<Quad> boxes;
  for (const Region& region : Regions(output.data<float>(), columns, rows, kThreshold)) {
    const Rectangle r = SmallestRectangle(region.ends);
    if (std::min(r.length, r.breadth) < 3 || region.sum < kSure * region.count) continue;
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
  Image to{from.height, from.width, std::vector<uint8_t>(from.pixels.size())};
  for (int y = 0; y < to.height; ++y)
    for (int x = 0; x < to.width; ++x)
      std::copy_n(from.at(from.width - 1 - y, x), 3,
                  to.pixels.data() + (static_cast<size_t>(y) * to.width + x) * 3);
  return to;
}

Image CutOut(const Image& image, const Quad& q) {
  const auto side = [](Point a, Point b) { return Length(a - b); };
  const int width =
      std::max(1, static_cast<int>(std::nearbyint(std::max(side(q[1], q[0]), side(q[2], q[3])))));
  const int height =
      std::max(1, static_cast<int>(std::nearbyint(std::max(side(q[3], q[0]), side(q[2], q[1])))));
  Image part{width, height, std::vector<uint8_t>(static_cast<size_t>(width) * height * 3)};
  uint8_t* to = part.pixels.data();
  for (int y = 0; y < height; ++y) {
    const double v = (y + 0.5) / height;
    const Point left = q[0] * (1 - v) + q[3] * v, right = q[1] * (1 - v) + q[2] * v;
    for (int x = 0; x < width; ++x, to += 3) {
      const double u = (x + 0.5) / width;
      const Point at = left * (1 - u) + right * u;
      const double px = std::clamp(at.x - 0.5, 0.0, image.width - 1.0);
      const double py = std::clamp(at.y - 0.5, 0.0, image.height - 1.0);
      const int x0 = static_cast<int>(px), y0 = static_cast<int>(py);
      const int x1 = std::min(x0 + 1, image.width - 1), y1 = std::min(y0 + 1, image.height - 1);
      const auto fx = static_cast<float>(px - x0), fy = static_cast<float>(py - y0);
      const uint8_t *a = image.at(x0, y0), *b = image.at(x1, y0);
      const uint8_t *c = image.at(x0, y1), *d = image.at(x1, y1);
      for (int k = 0; k < 3; ++k) {
        const float upper = a[k] * (1 - fx) + b[k] * fx, lower = c[k] * (1 - fx) + d[k] * fx;
        to[k] = static_cast<uint8_t>(upper * (1 - fy) + lower * fy + 0.5f);
      }
    }
  }
  return height >= 1.5 * width ? Turn(part) : part;
}

struct Line {
  Quad corners;
  Image part;
  std::string text;
  double certainty = 0;
  double ratio() const { return static_cast<double>(part.width) / part.height; }
};

// The lines of one batch, each 48 pixels tall, zeros to its right up to `width`.
heddle::Tensor Batch(const std::vector<Line*>& lines, int width) {
  constexpr int kHeight = 48;
  const auto count = static_cast<int64_t>(lines.size());
  auto tensor = heddle::Tensor::Zeros(heddle::DType::kF32, {count, 3, kHeight, width});
  float* out = tensor.mutable_data<float>();
  for (size_t i = 0; i < lines.size(); ++i) {
    const int wide = static_cast<int>(std::ceil(kHeight * lines[i]->ratio()));
    Scale(lines[i]->part, std::clamp(wide, 1, width), kHeight, width,
          out + i * 3 * kHeight * width);
  }
  return tensor;
}

void Upright(Network& network, const std::vector<Line*>& lines) {
  const heddle::Tensor way = network(Batch(lines, 192));
  for (size_t i = 0; i < lines.size(); ++i)
    if (way.data<float>()[i * 2 + 1] > 0.9f) lines[i]->part = Turn(Turn(lines[i]->part));
}

// The scores are probabilities: nothing after one above a half is likelier.
int64_t Likeliest(const float* scores, int64_t count) {
  constexpr int64_t kStretch = 256;
  // Side by side, which the compiler makes one instruction of.
  constexpr int64_t kSide = 16;
  float best = scores[0];
  int64_t where = 0;  // the stretch that it is in
  for (int64_t begin = 0; begin < count && best <= 0.5f; begin += kStretch) {
    const int64_t end = std::min(count, begin + kStretch);
    float most[kSide];
    std::fill_n(most, kSide, best);
    int64_t i = begin;
    for (; i + kSide <= end; i += kSide)
      for (int64_t k = 0; k < kSide; ++k) most[k] = std::max(most[k], scores[i + k]);
    for (; i < end; ++i) most[0] = std::max(most[0], scores[i]);
    const float here = *std::max_element(most, most + kSide);
    if (here > best) best = here, where = begin;
  }
  return std::find(scores + where, scores + count, best) - scores;
}

void Read(Network& network, const std::vector<std::string>& characters,
          const std::vector<Line*>& lines) {
  double widest = 0;
  for (const Line* line : lines) widest = std::max(widest, line->ratio());
  // Few different widths: each has a plan of its own.
  const int width = std::max(320, static_cast<int>(std::ceil(48 * widest / 32)) * 32);
  const heddle::Tensor scores = network(Batch(lines, width));
  const int64_t steps = scores.dim(1), kinds = scores.dim(2);
  for (size_t i = 0; i < lines.size(); ++i) {
    Line& line = *lines[i];
    double sum = 0;
    int kept = 0;
    int64_t before = 0;
    for (int64_t t = 0; t < steps; ++t) {
      const float* row = scores.data<float>() + (static_cast<int64_t>(i) * steps + t) * kinds;
      const int64_t best = Likeliest(row, kinds);
      if (best != 0 && best != before && best < static_cast<int64_t>(characters.size())) {
        line.text += characters[static_cast<size_t>(best)];
        sum += row[best];
        ++kept;
      }
      before = best;
    }
    line.certainty = kept == 0 ? 0 : sum / kept;
  }
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

class Reader {
 public:
  Reader(const std::string& models, int threads, heddle::Precision precision)
      : executor_({.threads = threads, .plan_cache_capacity = 128}),
        where_(executor_, models, "det", precision),
        way_(executor_, models, "cls", precision),
        what_(executor_, models, "rec", precision),
        characters_(ReadCharacters(models + "/characters.txt")) {}
  int threads() const { return executor_.threads(); }

  std::vector<Line> operator()(const Image& image, int threads) {
    constexpr size_t kTogether = 6;
    std::vector<Line> lines;
    for (const Quad& corners : Detect(where_, image)) lines.push_back({corners, {}, {}});
    Share(threads, lines.size(),
          [&](size_t i) { lines[i].part = CutOut(image, lines[i].corners); });
    // Widest first: lines of about one width are read together.
    std::vector<Line*> order;
    for (Line& line : lines) order.push_back(&line);
    std::stable_sort(order.begin(), order.end(),
                     [](const Line* a, const Line* b) { return a->ratio() > b->ratio(); });
    const size_t batches = (lines.size() + kTogether - 1) / kTogether;
    Share(threads, batches, [&](size_t b) {
      const auto begin = order.begin() + static_cast<std::ptrdiff_t>(b * kTogether);
      const size_t count = std::min(kTogether, lines.size() - b * kTogether);
      const std::vector<Line*> batch(begin, begin + static_cast<std::ptrdiff_t>(count));
      Upright(way_, batch);
      Read(what_, characters_, batch);
    });
    std::erase_if(lines, [](const Line& line) { return line.certainty < 0.5; });
    return lines;
  }

 private:
  heddle::Executor executor_;
  Network where_, way_, what_;
  const std::vector<std::string> characters_;
};

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> names;
  int threads = 0, repeat = 0;
  auto precision = heddle::Precision::kFloat32;
  for (int i = 1; i < argc; ++i) {
    const bool is_threads = std::strcmp(argv[i], "--threads") == 0;
    if ((is_threads || std::strcmp(argv[i], "--repeat") == 0) && i + 1 < argc)
      (is_threads ? threads : repeat) = std::atoi(argv[++i]);
    else if (std::strcmp(argv[i], "--bf16") == 0)
      precision = heddle::Precision::kBFloat16;
    else if (std::strcmp(argv[i], "--int8") == 0)
      precision = heddle::Precision::kInt8Products;
    else
      names.push_back(argv[i]);
  }
  if (names.size() < 2)
    Fail("usage: ocr MODELS picture.png... [--threads N] [--repeat N] [--bf16 | --int8]");
  Reader reader(names[0], threads, precision);
  std::vector<Image> pages(names.size() - 1);
  std::vector<std::vector<Line>> texts(pages.size());
  for (size_t p = 0; p < pages.size(); ++p) pages[p] = ReadPng(names[p + 1]);
  const bool apart = pages.size() > 1;
  const auto read = [&] {
    Share(apart ? reader.threads() : 1, pages.size(),
          [&](size_t p) { texts[p] = reader(pages[p], apart ? 1 : reader.threads()); });
  };
  read();
  for (size_t p = 0; p < pages.size(); ++p) {
    if (apart) std::printf("%s%s:\n", p == 0 ? "" : "\n", names[p + 1].c_str());
    for (const Line& line : texts[p]) {
      std::printf("%.2f  %s    (", line.certainty, line.text.c_str());
      for (size_t i = 0; i < 4; ++i)
        std::printf("%s%.0f,%.0f", i == 0 ? "" : " ", line.corners[i].x, line.corners[i].y);
      std::printf(")\n");
    }
  }
  std::vector<double> seconds;
  for (int i = 0; i < repeat; ++i) {
    const auto start = std::chrono::steady_clock::now();
    read();
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  if (seconds.empty()) return 0;
  std::sort(seconds.begin(), seconds.end());
  std::fprintf(stderr, "%.2f pages a second\n",
               static_cast<double>(pages.size()) / seconds[seconds.size() / 2]);
}
