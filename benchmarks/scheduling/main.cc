// The command: names are <graph>/<tasks>/<body>/<engine>/<workers>. The engines of one graph, size
// and body run in turn, in an order that changes with every repetition; then come those of the
// next.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "benchmarks/scheduling/check.h"
#include "benchmarks/scheduling/engine.h"
#include "benchmarks/scheduling/graph.h"
#include "benchmarks/scheduling/reporter.h"
#include "benchmarks/scheduling/workload.h"

namespace heddle::bench {
namespace {

using Clock = std::chrono::steady_clock;

double Nanoseconds(Clock::duration time) {
  return std::chrono::duration<double, std::nano>(time).count();
}

constexpr const char* kUsage =
    "heddle_bench_scheduling [--all] [--workers=2] [options of Google Benchmark]\n"
    "  --all        peers with one worker too, and 100000 tasks of 10 us\n"
    "  --workers=N  the number of workers to compare at\n"
    "  names: <graph>/<tasks>/<body>/<engine>/<workers>, for --benchmark_filter\n";

struct Options {
  bool all = false;
  bool list = false;
  int workers = 2;
  std::string filter = ".";
  std::string json_path;
  std::vector<std::string> library;  // what is passed on
};

// What this program does itself is taken out; the rest are the library's own options.
Options ParseOptions(int argc, char** argv) {
  Options options;
  options.library = {argv[0], "--benchmark_repetitions=7", "--benchmark_min_time=0.02",
                     "--benchmark_enable_random_interleaving=true"};
  for (const std::string_view argument : std::vector<std::string_view>(argv + 1, argv + argc)) {
    const auto value = [&](std::string_view name) -> std::optional<std::string> {
      if (!argument.starts_with(name)) return std::nullopt;
      return std::string(argument.substr(name.size()));
    };
    if (argument == "--all") {
      options.all = true;
    } else if (const auto workers = value("--workers=")) {
      options.workers = std::atoi(workers->c_str());
    } else if (const auto filter = value("--benchmark_filter=")) {
      options.filter = *filter;
    } else if (const auto path = value("--benchmark_out=")) {
      options.json_path = *path;
    } else if (argument.starts_with("--benchmark_")) {
      options.list |= argument.starts_with("--benchmark_list_tests");
      options.library.emplace_back(argument);
    } else {
      std::fputs(kUsage, stderr);
      std::exit(argument == "--help" ? EXIT_SUCCESS : EXIT_FAILURE);
    }
  }
  if (options.workers < 1) {
    std::fputs(kUsage, stderr);
    std::exit(EXIT_FAILURE);
  }
  return options;
}

// As Google Benchmark reads its filter: a leading '-' turns it round.
class NameFilter {
 public:
  explicit NameFilter(const std::string& text)
      : wanted_(!text.starts_with('-')), regex_(wanted_ ? text : text.substr(1)) {}
  bool operator()(const std::string& name) const {
    return std::regex_search(name, regex_) == wanted_;
  }

 private:
  const bool wanted_;
  const std::regex regex_;
};

struct Contender {
  const EngineInfo* engine;
  int workers;
};

// Engines that keep the order, each with the numbers of workers it is measured with.
std::vector<Contender> FindContenders(const Options& options, bool* all_right) {
  std::vector<Contender> contenders;
  for (const EngineInfo& engine : Engines()) {
    std::vector<int> counts;
    if (engine.max_workers == 1 || engine.kind == EngineKind::kHeddle || options.all) {
      counts.push_back(1);
    }
    if (engine.max_workers > 1 && options.workers > 1) counts.push_back(options.workers);
    for (const int workers : counts) {
      const std::string mistake = options.list ? "" : CheckEngine(engine, workers);
      if (mistake.empty()) {
        contenders.push_back({&engine, workers});
      } else {
        std::fprintf(stderr, "%s with %d workers is left out: %s\n", engine.name.c_str(), workers,
                     mistake.c_str());
        *all_right = false;
      }
    }
  }
  return contenders;
}

// One graph of one size with one body, on which all contenders are measured.
class Cell {
  // An engine that has not settled by then is measured as it is.
  static constexpr int kSettleRuns = 300;

 public:
  Cell(std::string_view graph, uint32_t size, Body body)
      : prefix_(std::string(graph) + "/" + std::to_string(size) + "/" +
                std::string(BodyName(body))),
        graph_(MakeGraph(graph, size)),
        workload_(graph_, body),
        body_ns_(BodyNs(body)),
        critical_path_(graph_.CriticalPath()) {}

  // Returns whether the filter left any.
  bool Register(const std::vector<Contender>& contenders, const NameFilter& filter) {
    bool any = false;
    for (const Contender& contender : contenders) {
      const std::string name =
          prefix_ + "/" + contender.engine->name + "/" + std::to_string(contender.workers);
      if (!filter(name)) continue;
      any = true;
      benchmark::RegisterBenchmark(
          name.c_str(), [this, &contender](benchmark::State& state) { Measure(contender, state); })
          ->UseRealTime()
          ->Unit(benchmark::kMicrosecond);
    }
    return any;
  }

 private:
  // The library calls this several times until it knows how many runs take the minimum time, then
  // once for each repetition. Only one engine lives at a time, so that no other one's threads are
  // about, and it lives until another one's turn comes.
  void Measure(const Contender& contender, benchmark::State& state) {
    if (current_ != &contender) Start(contender);
    workload_.TakeCount();
    const Clock::time_point begin = Clock::now();
    for (auto _ : state) engine_->Run();
    const double run_ns =
        Nanoseconds(Clock::now() - begin) / static_cast<double>(state.iterations());
    if (workload_.TakeCount() != static_cast<int64_t>(state.iterations())) {
      state.SkipWithError("a task did not run exactly once in every run");
      return;
    }
    Count(contender, run_ns, state);
  }

  void Start(const Contender& contender) {
    engine_ = nullptr;
    engine_ = contender.engine->make(contender.workers);
    const Clock::time_point begin = Clock::now();
    engine_->Build(graph_, workload_.tasks(), workload_.cost_ns());
    build_ns_ = Nanoseconds(Clock::now() - begin);
    current_ = &contender;
    // Threads come up, caches fill, and the engine decides what it has to decide.
    const Clock::time_point warm = Clock::now() + std::chrono::milliseconds(2);
    for (int run = 0; Clock::now() < warm || (run < kSettleRuns && !engine_->Settled()); ++run) {
      engine_->Run();
    }
  }

  void Count(const Contender& contender, double run_ns, benchmark::State& state) const {
    const double tasks = graph_.size();
    const uint32_t least_steps = graph_.LeastSteps(static_cast<uint32_t>(contender.workers));
    const double ideal_ns = body_ns_ * least_steps;
    state.counters["ns_per_task"] = run_ns / tasks;
    state.counters["efficiency"] = ideal_ns / run_ns;
    state.counters["ideal_ns"] = ideal_ns;
    state.counters["body_ns"] = body_ns_;
    state.counters["tasks"] = tasks;
    state.counters["edges"] = static_cast<double>(graph_.edges());
    state.counters["critical_path"] = critical_path_;
    state.counters["least_steps"] = least_steps;
    state.counters["build_ns_per_task"] = build_ns_ / tasks;
  }

  const std::string prefix_;
  const Graph graph_;
  Workload workload_;
  const double body_ns_;
  const uint32_t critical_path_;

  const Contender* current_ = nullptr;
  std::unique_ptr<Engine> engine_;
  double build_ns_ = 0;
};

// What the JSON file says besides what the library knows.
void AddContext(const Options& options, const std::vector<Contender>& contenders) {
  benchmark::AddCustomContext("workers", std::to_string(options.workers));
  benchmark::AddCustomContext("compiler", __VERSION__);
  constexpr std::array<const char*, 3> kKinds = {"floor", "heddle", "peer"};
  std::set<const EngineInfo*> seen;
  for (const Contender& contender : contenders) {
    const EngineInfo& engine = *contender.engine;
    if (!seen.insert(&engine).second) continue;
    benchmark::AddCustomContext("kind " + engine.name, kKinds[static_cast<size_t>(engine.kind)]);
    if (!engine.version.empty())
      benchmark::AddCustomContext("version " + engine.name, engine.version);
  }
}

int Main(int argc, char** argv) {
  Options options = ParseOptions(argc, argv);
  std::vector<char*> library;
  for (std::string& argument : options.library) library.push_back(argument.data());
  auto library_argc = static_cast<int>(library.size());
  benchmark::Initialize(&library_argc, library.data());
  if (benchmark::ReportUnrecognizedArguments(library_argc, library.data())) return EXIT_FAILURE;

  if (!CheckFindsMistakes()) {
    std::fputs("the check of the engines does not work\n", stderr);
    return EXIT_FAILURE;
  }
  bool all_right = true;
  const std::vector<Contender> contenders = FindContenders(options, &all_right);
  AddContext(options, contenders);
  const NameFilter filter(options.filter);
  Reporter reporter(options.json_path);
  if (!reporter.ok()) {
    std::fprintf(stderr, "cannot write %s\n", options.json_path.c_str());
    return EXIT_FAILURE;
  }
  for (const std::string_view graph : GraphNames()) {
    for (const uint32_t size : {100u, 1'000u, 10'000u, 100'000u}) {
      for (const Body body : {Body::kEmpty, Body::k100ns, Body::k1us, Body::k10us}) {
        if (size == 100'000 && body == Body::k10us && !options.all) continue;
        Cell cell(graph, size, body);
        if (cell.Register(contenders, filter)) {
          benchmark::RunSpecifiedBenchmarks(&reporter, std::string("."));
        }
        benchmark::ClearRegisteredBenchmarks();
      }
    }
  }
  return all_right ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace heddle::bench

int main(int argc, char** argv) { return heddle::bench::Main(argc, argv); }
