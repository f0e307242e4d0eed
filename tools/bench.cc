// heddle bench: how long a model takes to load, to run for the first time, and to run again.
#include <glog/logging.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <mutex>
#include <optional>
#include <thread>

#include "heddle/bound_run.h"
#include "heddle/heddle.h"
#include "tools/alloc_count.h"
#include "tools/commands.h"
#include "tools/engines/engine_choice.h"
#include "tools/json_output.h"
#include "tools/model_path.h"
#include "tools/options.h"
#include "tools/plans/plan_json.h"
#include "tools/progress.h"
#include "tools/round_trip.h"

namespace heddle::tools {
namespace {

using Clock = std::chrono::steady_clock;

struct BenchOptions {
  ModelOptions model;
  FeedOptions feeds;
  EngineChoice engines;
  int clients = 1;
  double seconds = 3;
  int warmup = 5;
  std::string trace;
  bool json = false, on_request = false, bound = false;
};

double MsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// Times of runs. When there are too many to keep, every second one is dropped, and from then on
// only every second one is taken, and so on: evenly spread, in bounded memory.
class Samples {
 public:
  void Add(double ms) {
    if (seen_++ % stride_ != 0) return;
    if (ms_.size() == kMost) {
      for (size_t i = 0; i < kMost / 2; ++i) ms_[i] = ms_[2 * i];
      ms_.resize(kMost / 2);
      stride_ *= 2;
    }
    ms_.push_back(static_cast<float>(ms));
  }
  int64_t seen() const { return seen_; }
  const std::vector<float>& kept() const { return ms_; }

 private:
  static constexpr size_t kMost = 1 << 16;
  int64_t seen_ = 0;
  int64_t stride_ = 1;
  std::vector<float> ms_;
};

struct Measured {
  std::vector<PlaceMemory> memory;  // after the measured runs
  PlanStats plan;
  int threads = 0;
  double load_ms = 0, first_ms = 0;
  double median_ms = 0, p90_ms = 0, p99_ms = 0;
  int64_t runs = 0;
  double runs_per_s = 0;
  double rss_first_mb = 0, rss_peak_mb = 0;
  double heap_allocs_per_run = 0, library_allocs_per_run = 0;  // NaN: not known
  // With a lower precision: the largest distance of the float outputs from those in float32, and of
  // the latter the largest element.
  double largest_difference = 0, largest_output = 0;
  RunReport report;  // of one more run
  OffloadReport engines;
  std::string caches;  // what files gave and got, in words; empty: nothing was to be
};

double Quantile(const std::vector<float>& sorted, double q) {
  if (sorted.empty()) return 0;
  const double at = q * static_cast<double>(sorted.size() - 1);
  const size_t low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (at - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

// The largest resident size the process has had, in MB of 2^20 bytes.
double PeakRssMb() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("VmHWM:")) return std::strtod(line.c_str() + 6, nullptr) / 1024;
  return 0;
}

struct Job {
  Executor& executor;
  const CompiledProgram& compiled;
  const std::vector<Feed>& feeds;
  const ModelOptions& options;
  bool bound = false;
  bool traced = false;  // events, spans and memory of each measured run are written down
};

// One caller's way to run: by name and value each time, or with feeds and outputs bound once.
class Caller {
 public:
  explicit Caller(const Job& job) : job_(job) {
    if (job.bound) bound_.emplace(job.compiled, job.feeds);
  }
  Status Run(const RunOptions& options) {
    if (bound_) return bound_->Run(options);
    return job_.executor.RunValues(job_.compiled, job_.feeds, options).status();
  }

 private:
  const Job& job_;
  std::optional<BoundRun> bound_;
};

// Runs until `end`, at least once.
Status Client(const Job& job, Clock::time_point end, const std::atomic<bool>& stop,
              Samples* samples) {
  Caller caller(job);
  RunReport report;
  do {
    const auto start = Clock::now();
    RunOptions options = job.options.run();
    if (job.traced) options.report = &report;
    options.trace = job.traced;
    const Status status = caller.Run(options);
    const double ms = MsSince(start);
    if (!status.ok()) return status;
    samples->Add(ms);
  } while (!stop.load(std::memory_order_relaxed) && Clock::now() < end);
  return Status::Ok();
}

// All clients at once; the calling thread is one of them.
Status RunClients(const Job& job, int clients, double seconds, Measured* result) {
  const auto start = Clock::now();
  const auto end =
      start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  std::vector<Samples> samples(static_cast<size_t>(clients));
  std::atomic<bool> stop{false};
  std::mutex mutex;
  Status error;
  auto work = [&](int c) {
    Status status = Client(job, end, stop, &samples[static_cast<size_t>(c)]);
    if (status.ok()) return;
    stop = true;
    std::lock_guard lock(mutex);
    if (error.ok()) error = std::move(status);
  };
  std::vector<std::thread> threads;
  for (int c = 1; c < clients; ++c) threads.emplace_back(work, c);
  work(0);
  for (std::thread& t : threads) t.join();
  if (!error.ok()) return error;
  const double wall_ms = MsSince(start);
  std::vector<float> all;
  result->runs = 0;
  for (const Samples& s : samples) {
    all.insert(all.end(), s.kept().begin(), s.kept().end());
    result->runs += s.seen();
  }
  std::sort(all.begin(), all.end());
  result->median_ms = Quantile(all, 0.5);
  result->p90_ms = Quantile(all, 0.9);
  result->p99_ms = Quantile(all, 0.99);
  result->runs_per_s = static_cast<double>(result->runs) * 1000 / wall_ms;
  return Status::Ok();
}

// Over runs of their own, so that counting disturbs no measured time.
Status CountAllocations(const Job& job, Measured* result) {
  result->heap_allocs_per_run = result->library_allocs_per_run = std::nan("");
  if (!CanCountAllocations()) return Status::Ok();
  const int runs = static_cast<int>(std::clamp(200 / (result->median_ms + 1e-3), 3.0, 100.0));
  Caller caller(job);
  Status status = caller.Run({});  // what a caller takes once is not counted
  StartCountingAllocations();
  for (int r = 0; r < runs && status.ok(); ++r) status = caller.Run({});
  const int64_t calls = StopCountingAllocations();
  result->heap_allocs_per_run = static_cast<double>(calls) / runs;
  result->library_allocs_per_run = static_cast<double>(AllocationsPutAside()) / runs;
  return status;
}

// At least `runs` runs, and until one goes the way that the executor has found fastest. `report`:
// of the last one.
Status WarmUp(const Job& job, int runs, RunReport* report) {
  constexpr int kMostRuns = 200;
  constexpr double kMostMs = 20000;
  const auto start = Clock::now();
  report->settled = false;
  for (int r = 0; r < runs || (!report->settled && r < kMostRuns && MsSince(start) < kMostMs);
       ++r) {
    RunOptions run = job.options.run();
    run.report = report;
    HEDDLE_RETURN_IF_ERROR(job.executor.RunValues(job.compiled, job.feeds, run).status());
  }
  return Status::Ok();
}

// The distance of the outputs from those of a run in float32.
Status ComparePrecision(const Model& model, const BenchOptions& options, const Job& job,
                        Measured* result) {
  CompileOptions full = options.model.compile(model.program);
  full.passes.precision = Precision::kFloat32;
  HEDDLE_ASSIGN_OR_RETURN(const CompiledProgram compiled, job.executor.Compile(model, full));
  HEDDLE_ASSIGN_OR_RETURN(const auto wanted, job.executor.RunValues(compiled, job.feeds));
  HEDDLE_ASSIGN_OR_RETURN(const auto got, job.executor.RunValues(job.compiled, job.feeds));
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i].is_tensor() || !got[i].is_tensor()) continue;
    const Tensor &a = wanted[i].tensor(), &b = got[i].tensor();
    if (a.dtype() != DType::kF32 || b.dtype() != DType::kF32 || a.numel() != b.numel()) continue;
    const float *x = a.data<float>(), *y = b.data<float>();
    for (int64_t k = 0; k < a.numel(); ++k) {
      result->largest_output = std::max(result->largest_output, std::abs(double{x[k]}));
      result->largest_difference =
          std::max(result->largest_difference, std::abs(double{x[k]} - y[k]));
    }
  }
  return Status::Ok();
}

void PrintLine(const Json& json) { std::cout << json.dump() << std::endl; }

// Answers requests, one a line of standard input: {"slice": S, "clients": C, "trace": bool}
// measures for S seconds, {"round_trip": true} the distance of the processors. An empty object, or
// the end, ends it.
Status AnswerRequests(Job job, Measured m) {
  Json facts = NewJson("bench-answer");
  facts["load_ms"] = m.load_ms;
  facts["first_ms"] = m.first_ms;
  facts["peak_mb"] = m.rss_first_mb;
  PrintLine(facts);
  for (std::string line; std::getline(std::cin, line);) {
    const Json request = Json::parse(line, nullptr, false);
    if (!request.is_object()) return Status(StatusCode::kInvalidArgument, "not a request: " + line);
    if (request.empty()) break;
    Json answer = NewJson("bench-answer");
    if (request.contains("round_trip")) {
      answer["round_trip_ns"] = MeasureRoundTripNs();
    } else {
      const double seconds = request.value("slice", 1.0);
      const int clients = request.value("clients", 1);
      if (!(seconds >= 0) || clients < 1 || clients > 1024)
        return Status(StatusCode::kInvalidArgument, "not a request: " + line);
      job.traced = request.value("trace", false);
      HEDDLE_RETURN_IF_ERROR(WarmUp(job, 3, &m.report));  // wakes threads, warms caches
      HEDDLE_RETURN_IF_ERROR(RunClients(job, clients, seconds, &m));
      answer["median_ms"] = m.median_ms;
      answer["p90_ms"] = m.p90_ms;
      answer["p99_ms"] = m.p99_ms;
      answer["runs"] = m.runs;
      answer["runs_per_s"] = m.runs_per_s;
    }
    PrintLine(answer);
  }
  return Status::Ok();
}

Result<Measured> Measure(const BenchOptions& options) {
  Measured m;
  auto start = Clock::now();
  Executor executor(options.model.executor());  // before the model: its threads start meanwhile
  HEDDLE_ASSIGN_OR_RETURN(const Model alone, options.model.Load(options.feeds));
  m.load_ms = MsSince(start);
  HEDDLE_ASSIGN_OR_RETURN(const auto feeds, MakeFeeds(TypedInputsOf(alone.program), options.feeds));
  start = Clock::now();
  const CompileOptions compile = options.model.compile(alone.program);
  HEDDLE_ASSIGN_OR_RETURN(const OffloadedModel offloaded,
                          ApplyEngines(options.engines, options.model, compile, alone, feeds));
  const Model& model = offloaded.model;
  m.engines = offloaded.report;
  HEDDLE_ASSIGN_OR_RETURN(const CompiledProgram compiled, executor.Compile(model, compile));
  HEDDLE_ASSIGN_OR_RETURN(m.plan, executor.Prepare(compiled, feeds));
  m.load_ms += MsSince(start);
  LOG(INFO) << "ready: " << m.load_ms << " ms";

  const Job job{executor, compiled, feeds, options.model, options.bound};
  start = Clock::now();
  HEDDLE_RETURN_IF_ERROR(executor.RunValues(compiled, feeds, options.model.run()).status());
  m.first_ms = MsSince(start);
  m.rss_first_mb = PeakRssMb();
  LOG(INFO) << "first run: " << m.first_ms << " ms";
  if (options.on_request) {
    HEDDLE_RETURN_IF_ERROR(AnswerRequests(job, m));
    return m;
  }
  HEDDLE_RETURN_IF_ERROR(WarmUp(job, options.warmup, &m.report));
  HEDDLE_RETURN_IF_ERROR(RunClients(job, options.clients, options.seconds, &m));
  m.rss_peak_mb = PeakRssMb();
  m.memory = executor.MemoryUse();
  HEDDLE_RETURN_IF_ERROR(CountAllocations(job, &m));
  if (!options.trace.empty()) {
    RunReport traced;
    HEDDLE_RETURN_IF_ERROR(
        executor.RunValues(compiled, feeds, {.report = &traced, .trace = true}).status());
    HEDDLE_RETURN_IF_ERROR(WriteTrace(options.trace, traced));
  }
  HEDDLE_RETURN_IF_ERROR(WarmUp(job, 1, &m.report));  // how it went lately
  // The first runs may have improved the plan.
  HEDDLE_ASSIGN_OR_RETURN(m.plan, executor.Prepare(compiled, feeds));
  m.threads = executor.threads();
  if (options.model.passes.precision != Precision::kFloat32)
    HEDDLE_RETURN_IF_ERROR(ComparePrecision(model, options, job, &m));
  m.caches = CachesText(options.model, compiled);
  return m;
}

double NsPerInstruction(const Measured& m) {
  return m.plan.instructions == 0 ? 0 : m.median_ms * 1e6 / m.plan.instructions;
}

void PrintBenchJson(const BenchOptions& options, const Measured& m) {
  Json json = NewJson("bench");
  json["program"] = options.model.model;
  json["threads"] = m.threads;
  json["clients"] = options.clients;
  json["bound"] = options.bound;
  json["instructions"] = m.plan.instructions;
  json["tasks"] = m.plan.tasks;
  json["load_ms"] = m.load_ms;
  json["build_ms"] = m.plan.build_ms;
  for (const auto& stage : m.plan.stages) json["stages"][stage.name] = stage.ms;
  json["first_ms"] = m.first_ms;
  json["median_ms"] = m.median_ms;
  json["p90_ms"] = m.p90_ms;
  json["p99_ms"] = m.p99_ms;
  json["runs"] = m.runs;
  json["runs_per_s"] = m.runs_per_s;
  json["ns_per_instruction"] = NsPerInstruction(m);
  json["rss_first_mb"] = m.rss_first_mb;
  json["rss_peak_mb"] = m.rss_peak_mb;
  json["arena_bytes"] = m.plan.arena_bytes;
  json["arena_bound_bytes"] = m.plan.arena_bound_bytes;
  json["dispatch"] = m.report.dispatch;
  json["lanes"] = m.report.lanes;
  json["waits"] = m.report.waits;
  json["parks"] = m.report.parks;
  json["work_us"] = m.report.work_us;
  json["critical_path_us"] = m.report.critical_path_us;
  json["memory_use"] = PlacesJson(m.memory);
  json["heap_allocs_per_run"] = m.heap_allocs_per_run;  // null where not known
  json["library_allocs_per_run"] = m.library_allocs_per_run;
  if (options.model.passes.precision != Precision::kFloat32) {
    json["largest_difference"] = m.largest_difference;  // from float32
    json["largest_output"] = m.largest_output;
  }
  if (options.engines.any()) json["engines"] = EnginesJson(m.engines);
  WriteJson(json);
}

void PrintBenchText(const BenchOptions& options, const Measured& m) {
  const PlanStats& p = m.plan;
  std::printf("%s: %d threads, %d client%s\n", options.model.model.c_str(), m.threads,
              options.clients, options.clients == 1 ? "" : "s");
  std::printf("  plan         %d instructions in %d tasks, %s, shapes %s\n", p.instructions,
              p.tasks, m.report.dispatch.c_str(),
              p.static_shapes ? "known" : "found while running");
  std::printf("  load         %10.2f ms\n", m.load_ms);
  std::printf("  first run    %10.3f ms\n", m.first_ms);
  std::printf("  median       %10.3f ms   p90 %.3f   p99 %.3f   (%lld runs)\n", m.median_ms,
              m.p90_ms, m.p99_ms, static_cast<long long>(m.runs));
  std::printf("  throughput   %10.1f runs/s, %.0f ns per instruction\n", m.runs_per_s,
              NsPerInstruction(m));
  std::printf("  memory       %10.1f MB peak RSS; arena %s, at least %s are needed\n",
              m.rss_peak_mb, BytesText(static_cast<double>(p.arena_bytes)).c_str(),
              BytesText(static_cast<double>(p.arena_bound_bytes)).c_str());
  for (const PlaceMemory& place : m.memory)
    std::printf("  at %-10s %9s allocated by runs, %s reserved, %s at most\n", place.place.c_str(),
                BytesText(static_cast<double>(place.allocated_bytes)).c_str(),
                BytesText(static_cast<double>(place.reserved_bytes)).c_str(),
                BytesText(static_cast<double>(place.peak_bytes)).c_str());
  if (!m.caches.empty()) std::printf("  %s\n", m.caches.c_str());
  if (!std::isnan(m.heap_allocs_per_run))
    std::printf("  heap         %10.1f allocations per run, and %.1f inside oneDNN\n",
                m.heap_allocs_per_run, m.library_allocs_per_run);
  if (options.model.passes.precision != Precision::kFloat32)
    std::printf("  precision    outputs differ from float32 by %.3g at most; the largest is %.3g\n",
                m.largest_difference, m.largest_output);
  if (options.engines.any()) std::printf("%s", m.engines.ToString().c_str());
  std::fflush(stdout);
}

Status RunBench(const BenchOptions& given) {
  BenchOptions options = given;
  HEDDLE_RETURN_IF_ERROR(FollowPlan(&options.model));
  options.engines.OpenCache();
  Result<Measured> measured = [&] {
    Progress progress("measuring " + options.model.model);
    return Measure(options);
  }();
  if (!measured.ok()) return measured.status();
  if (options.on_request) return Status::Ok();  // all has been said
  if (options.json)
    PrintBenchJson(options, *measured);
  else
    PrintBenchText(options, *measured);
  return Status::Ok();
}

}  // namespace

void AddBench(Command root, Action& chosen) {
  auto options = std::make_shared<BenchOptions>();
  Command app = root.add_command("bench", "measure a model");
  AddModelOptions(app, &options->model);
  AddFeedOptions(app, &options->feeds);
  AddExecutionOptions(app, &options->model);
  AddFollowOption(app, &options->model);
  AddEngineOptions(app, &options->engines);
  AddLimitOptions(app, &options->model);
  app.add_option("--clients", options->clients, "threads that call Run at the same time")
      .type_name("C")
      .in_range(1, 1024)
      .show_default();
  app.add_flag("--bound", options->bound,
               "each client binds feeds and outputs once (BoundRun) instead of calling Run");
  app.add_option("--seconds", options->seconds, "measure for this long, at least one run")
      .type_name("S")
      .in_range(0.0, 86400.0)
      .show_default();
  app.add_option("--warmup", options->warmup, "runs before the measurement, besides the first")
      .type_name("W")
      .in_range(0, 1000000)
      .show_default();
  app.add_option("--trace", options->trace,
                 "write when each instruction of one more run began and ended, for "
                 "chrome://tracing or ui.perfetto.dev")
      .type_name("FILE");
  app.add_flag("--json", options->json, "one JSON object instead of a table");
  app.add_flag("--on-request", options->on_request,
               "measure when told to: for each line {\"slice\": seconds, \"clients\": C, "
               "\"trace\": true|false} on "
               "standard input one "
               "JSON line, after a first one about the start");
  app.footer(
      "Times are of the run call itself with feeds in memory. load_ms: from opening the files to "
      "a\n"
      "ready plan. heap_allocs_per_run counts the calls of malloc, calloc, realloc and the "
      "aligned\n"
      "variants (so also of new) by all threads and libraries, over runs after the measured ones;\n"
      "it includes the returned outputs, of which --bound has none, and not what oneTBB's own\n"
      "allocator hands out. library_allocs_per_run: those inside oneDNN's functions.\n"
      "rss_first_mb is the process's VmHWM after the first run, rss_peak_mb after the measured "
      "ones.\n"
      "--on-request, for measuring several programs in turns: {\"round_trip\": true} is answered "
      "with the\n"
      "time between a signal of one processor and the answer of another, an empty object ends it.\n"
      "Examples:\n"
      "  heddle bench examples/digits --feed x=examples/digits/input.npy --threads 1\n"
      "  heddle bench resnet50/ --random-feed --shape x=8,3,224,224 --seconds 10 --json");
  app.on_chosen([options, &chosen] { chosen = [options] { return RunBench(*options); }; });
}

}  // namespace heddle::tools
