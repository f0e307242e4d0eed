// How good the choices of --tune are: each is measured again, all ways in turns, right after it was
// made.
//
//   heddle_bench_tuning THREADS MODEL.pdmodel PARAMS INPUT=1,3,224,224 [MODEL.pdmodel …]
//
// Prints for each choice its time over that of the fastest way, and at the end how many are
// within 1.05.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "executor/compiled.h"
#include "executor/tune/tuning_file.h"
#include "heddle/heddle.h"

namespace heddle {
namespace {

constexpr int kRuns = 40;
constexpr double kWithin = 1.05;

// Medians of runs in turns.
std::vector<double> Time(size_t ways, FunctionRef<void(int)> run) {
  std::vector<std::vector<double>> ns(ways);
  for (int k = 0; k < kRuns; ++k)
    for (size_t i = 0; i < ways; ++i) {
      const auto start = std::chrono::steady_clock::now();
      run(static_cast<int>(i));
      ns[i].push_back(
          std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start)
              .count());
    }
  std::vector<double> medians;
  for (auto& times : ns) {
    std::nth_element(times.begin(), times.begin() + kRuns / 2, times.end());
    medians.push_back(times[kRuns / 2]);
  }
  return medians;
}

class Remeasuring : public TuningCache {
 public:
  explicit Remeasuring(int threads) : TuningCache("", true, TuningEnvironment(threads)) {}

  int Measure(const std::string& key, const std::vector<std::string>& names,
              FunctionRef<void(int, Services&)> run, std::vector<double>* told) override {
    Services* services = nullptr;
    const auto once = [&](int i, Services& s) {
      services = &s;
      run(i, s);
    };
    const int choice = TuningCache::Measure(key, names, once, told);
    const auto ns = Time(names.size(), [&](int i) { run(i, *services); });
    const auto best = std::min_element(ns.begin(), ns.end());
    const auto at = static_cast<size_t>(choice);
    ratios.push_back(ns[at] / *best);
    std::printf("%.3f %-9s best %-9s %9.1f us  %s\n", ratios.back(), names[at].c_str(),
                names[static_cast<size_t>(best - ns.begin())].c_str(), *best * 1e-3, key.c_str());
    return choice;
  }
  std::vector<double> ratios;
};

// NAME=1,3,224,224
Feed MakeFeed(const std::string& text) {
  const size_t at = text.find('=');
  Shape shape;
  for (const char* p = text.c_str() + at; *p != '\0';) {
    char* end = nullptr;
    shape.push_back(std::strtoll(p + 1, &end, 10));
    p = end;
  }
  Tensor t = Tensor::Zeros(DType::kF32, shape);
  for (int64_t i = 0; i < t.numel(); ++i)
    t.mutable_data<float>()[i] = static_cast<float>(i % 13) / 13;
  return {text.substr(0, at), t};
}

int Main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  std::vector<double> ratios;
  for (int a = 2; a + 2 < argc; a += 3) {
    const auto model = LoadModel(argv[a], argv[a + 1]);
    if (!model.ok()) return std::fprintf(stderr, "%s\n", model.status().ToString().c_str()), 1;
    Executor executor({.threads = threads});
    auto compiled = executor.Compile(*model, {.schedule = Schedule::kSerial, .tune = true});
    if (!compiled.ok())
      return std::fprintf(stderr, "%s\n", compiled.status().ToString().c_str()), 1;
    const auto tuning = std::make_shared<Remeasuring>(threads);
    compiled->impl()->tuning = tuning;
    const auto stats = executor.Prepare(*compiled, {MakeFeed(argv[a + 2])});
    if (!stats.ok()) return std::fprintf(stderr, "%s\n", stats.status().ToString().c_str()), 1;
    ratios.insert(ratios.end(), tuning->ratios.begin(), tuning->ratios.end());
  }
  if (ratios.empty()) return std::fprintf(stderr, "nothing was measured\n"), 1;
  const auto within =
      std::count_if(ratios.begin(), ratios.end(), [](double r) { return r <= kWithin; });
  std::printf("%zu choices, %.1f %% within %.2f of the best, the worst %.3f\n", ratios.size(),
              100. * static_cast<double>(within) / static_cast<double>(ratios.size()), kWithin,
              *std::max_element(ratios.begin(), ratios.end()));
  return 0;
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) { return heddle::Main(argc, argv); }
