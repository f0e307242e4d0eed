// heddle profile: where a run's time goes, operator by operator, beside what the machine can do.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "heddle/heddle.h"
#include "tools/commands.h"
#include "tools/machine_peak.h"
#include "tools/options.h"
#include "tools/progress.h"

namespace heddle::tools {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

struct Options {
  ModelOptions model;
  FeedOptions feeds;
  double seconds = 1;
  int top = 20;
  bool json = false;
};

double Numel(const TraceEvent::Operand& o) {
  return o.shape.is_static() ? static_cast<double>(o.shape.numel()) : 0;
}

const TraceEvent::Operand* Find(const std::vector<TraceEvent::Operand>& list, const char* slot) {
  for (const auto& o : list)
    if (o.slot == slot) return &o;
  return nullptr;
}

double Batch(const Shape& s) {
  return s.rank() > 2 ? static_cast<double>(s.Product(0, s.rank() - 2)) : 1;
}

// Multiplications and additions of convolutions and matrix products; 0 for whatever else.
double Flops(const TraceEvent& e) {
  if (e.outputs.empty()) return 0;
  const TraceEvent::Operand& out = e.outputs[0];
  if (const auto* filter = Find(e.inputs, "Filter")) {
    if (Numel(*filter) == 0 || e.op.ends_with("_grad")) return 0;
    const bool transposed = e.op.find("transpose") != std::string::npos;
    const double per_pixel = Numel(*filter) / static_cast<double>(filter->shape[0]);
    return 2 * per_pixel * Numel(transposed ? e.inputs[0] : out);
  }
  const bool product = e.op == "mul" || e.op == "fc" || e.op == "fused_fc" || e.op == "bmm" ||
                       e.op.starts_with("matmul") || e.op == "fused_matmul";
  const auto* x = e.inputs.empty() ? nullptr : &e.inputs[0];
  const auto* y = Find(e.inputs, e.op.ends_with("fc") ? "W" : "Y");
  if (!product || y == nullptr || Numel(out) == 0 || Numel(*x) == 0 || Numel(*y) == 0) return 0;
  // [b, m, k] x [b, k, n]: the product of both sizes over that of the result is b k k.
  const double batch = std::min(Batch(x->shape), Batch(y->shape));
  return 2 * Numel(out) * std::round(std::sqrt(Numel(*x) * Numel(*y) / Numel(out) / batch));
}

double Bytes(const TraceEvent& e) {
  double bytes = 0;
  for (const auto* list : {&e.inputs, &e.outputs})
    for (const auto& o : *list)
      if (o.shape.is_static()) bytes += Numel(o) * static_cast<double>(SizeOf(o.dtype));
  return bytes;
}

std::string Shapes(const std::vector<TraceEvent::Operand>& list) {
  std::string text;
  for (const auto& o : list) text += (text.empty() ? "" : " ") + o.shape.ToString();
  return text;
}

double Median(std::vector<double> v) {
  if (v.empty()) return 0;
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

// One instruction over all runs.
struct Line {
  TraceEvent event;  // of the first run
  std::vector<double> each_us;
  double us = 0, flops = 0, bytes = 0;
  double gflops() const { return us > 0 ? flops / us * 1e-3 : 0; }
  double gbs() const { return us > 0 ? bytes / us * 1e-3 : 0; }
};

struct Profile {
  int threads = 0, lanes = 1, runs = 0;
  std::string dispatch;
  double run_us = 0;      // median, with the clock read around each instruction
  double kernels_us = 0;  // all instructions together
  double outside = 0;     // share of the lanes' time in no kernel
  MachinePeak peak;
  std::vector<Line> lines;  // longest first
};

Status Trace(Executor& executor, const CompiledProgram& compiled, const std::vector<Feed>& feeds,
             double seconds, Profile* p) {
  constexpr int kMostRuns = 10000;
  // By place in the program; operators that passes made have none of their own.
  std::map<std::tuple<int, int, std::string>, Line> lines;
  std::vector<double> run_us, outside;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  do {
    RunReport report;
    HEDDLE_RETURN_IF_ERROR(
        executor.RunValues(compiled, feeds, {.report = &report, .trace = true}).status());
    double busy = 0;
    for (TraceEvent& e : report.events) {
      const double us = e.end_us - e.begin_us;
      busy += us;
      Line& line = lines[{e.block, e.index, e.output}];
      line.each_us.push_back(us);
      if (line.each_us.size() == 1) line.event = std::move(e);
    }
    run_us.push_back(report.run_us);
    outside.push_back(std::max(0.0, 1 - busy / (report.run_us * report.lanes)));
    p->dispatch = report.dispatch;
    p->lanes = report.lanes;
    ++p->runs;
  } while (p->runs < 3 || (p->runs < kMostRuns && Clock::now() < end));
  p->run_us = Median(run_us);
  p->outside = Median(outside);
  for (auto& [place, line] : lines) {
    line.us = Median(line.each_us);
    line.flops = Flops(line.event);
    line.bytes = Bytes(line.event);
    p->kernels_us += line.us;
    p->lines.push_back(std::move(line));
  }
  std::stable_sort(p->lines.begin(), p->lines.end(),
                   [](const Line& a, const Line& b) { return a.us > b.us; });
  return Status::Ok();
}

Result<Profile> Measure(const Options& options) {
  HEDDLE_ASSIGN_OR_RETURN(const Model model, LoadModel(options.model.model, options.model.params));
  Executor executor(options.model.executor());
  HEDDLE_ASSIGN_OR_RETURN(const CompiledProgram compiled,
                          executor.Compile(model, options.model.compile()));
  HEDDLE_ASSIGN_OR_RETURN(const auto feeds, MakeFeeds(compiled.inputs(), options.feeds));
  Profile p;
  p.threads = executor.threads();
  p.peak = MeasurePeak(p.threads);
  RunReport report;
  const auto end = Clock::now() + std::chrono::seconds(20);
  for (int r = 0; r < 5 || (!report.settled && r < 200 && Clock::now() < end); ++r)
    HEDDLE_RETURN_IF_ERROR(executor.RunValues(compiled, feeds, {.report = &report}).status());
  HEDDLE_RETURN_IF_ERROR(Trace(executor, compiled, feeds, options.seconds, &p));
  return p;
}

// Lines added up by operator, longest first.
struct Sum {
  std::string op;
  int count = 0;
  double us = 0, flops = 0, bytes = 0;
};
std::vector<Sum> ByOperator(const Profile& p) {
  std::map<std::string, Sum> sums;
  for (const Line& line : p.lines) {
    Sum& s = sums[line.event.op];
    s.op = line.event.op;
    ++s.count;
    s.us += line.us;
    s.flops += line.flops;
    s.bytes += line.bytes;
  }
  std::vector<Sum> list;
  for (auto& [op, sum] : sums) list.push_back(std::move(sum));
  std::stable_sort(list.begin(), list.end(),
                   [](const Sum& a, const Sum& b) { return a.us > b.us; });
  return list;
}

double Share(const Profile& p, double us) { return p.kernels_us > 0 ? us / p.kernels_us : 0; }

void PrintJson(const Options& options, const Profile& p) {
  Json json;
  json["program"] = options.model.model;
  json["threads"] = p.threads;
  json["dispatch"] = p.dispatch;
  json["lanes"] = p.lanes;
  json["runs"] = p.runs;
  json["run_us"] = p.run_us;
  json["kernels_us"] = p.kernels_us;
  json["outside_share"] = p.outside;
  json["peak_gflops"] = p.peak.gflops;
  json["peak_copy_gbs"] = p.peak.copy_gbs;
  json["operators"] = Json::array();
  for (const Sum& s : ByOperator(p))
    json["operators"].push_back({{"op", s.op},
                                 {"count", s.count},
                                 {"us", s.us},
                                 {"share", Share(p, s.us)},
                                 {"flops", s.flops},
                                 {"bytes", s.bytes}});
  json["instructions"] = Json::array();
  for (const Line& line : p.lines)
    json["instructions"].push_back({{"op", line.event.op},
                                    {"output", line.event.output},
                                    {"block", line.event.block},
                                    {"index", line.event.index},
                                    {"us", line.us},
                                    {"share", Share(p, line.us)},
                                    {"flops", line.flops},
                                    {"bytes", line.bytes},
                                    {"gflops", line.gflops()},
                                    {"gbs", line.gbs()},
                                    {"inputs", Shapes(line.event.inputs)},
                                    {"outputs", Shapes(line.event.outputs)}});
  std::cout << json.dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
}

// "231.4 GFLOP/s  87%" or, of what computes little, "12.5 GB/s    40%".
std::string Rate(const Profile& p, double us, double flops, double bytes) {
  if (us <= 0) return "";
  const bool computes = flops > 0;
  const double rate = (computes ? flops : bytes) / us * 1e-3;
  const double peak = computes ? p.peak.gflops : p.peak.copy_gbs;
  char text[64];
  std::snprintf(text, sizeof(text), "%8.1f %-7s %4.0f%%", rate, computes ? "GFLOP/s" : "GB/s",
                peak > 0 ? 100 * rate / peak : 0);
  return text;
}

void PrintText(const Options& options, const Profile& p) {
  std::printf("%s: %d threads, %s, median of %d runs\n", options.model.model.c_str(), p.threads,
              p.dispatch.c_str(), p.runs);
  std::printf("  run        %10.1f us, of which outside kernels %.1f%%\n", p.run_us,
              100 * p.outside);
  std::printf("  machine    %10.1f GFLOP/s float32, copies %.1f GB/s\n\n", p.peak.gflops,
              p.peak.copy_gbs);
  std::printf("%12s %7s  %22s  %5s  %s\n", "us", "share", "rate, of peak", "count", "operator");
  for (const Sum& s : ByOperator(p))
    std::printf("%12.1f %6.1f%%  %22s  %5d  %s\n", s.us, 100 * Share(p, s.us),
                Rate(p, s.us, s.flops, s.bytes).c_str(), s.count, s.op.c_str());
  std::printf("\n%12s %7s  %22s  %s\n", "us", "share", "rate, of peak", "instruction");
  for (int i = 0; i < options.top && i < static_cast<int>(p.lines.size()); ++i) {
    const Line& line = p.lines[static_cast<size_t>(i)];
    std::printf("%12.1f %6.1f%%  %22s  %s %s: %s -> %s\n", line.us, 100 * Share(p, line.us),
                Rate(p, line.us, line.flops, line.bytes).c_str(), line.event.op.c_str(),
                line.event.output.c_str(), Shapes(line.event.inputs).c_str(),
                Shapes(line.event.outputs).c_str());
  }
  std::fflush(stdout);
}

Status Run(const Options& options) {
  Result<Profile> profile = [&] {
    Progress progress("profiling " + options.model.model);
    return Measure(options);
  }();
  if (!profile.ok()) return profile.status();
  (options.json ? PrintJson : PrintText)(options, *profile);
  return Status::Ok();
}

}  // namespace

void AddProfile(CLI::App& root, Action& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* app = root.add_subcommand("profile", "show where a run's time goes");
  AddModelOptions(*app, &options->model);
  AddFeedOptions(*app, &options->feeds);
  AddExecutionOptions(*app, &options->model);
  app->add_option("--seconds", options->seconds, "measure for this long, at least three runs")
      ->type_name("S")
      ->check(CLI::Range(0.0, 86400.0).description(""))
      ->capture_default_str();
  app->add_option("--top", options->top, "how many instructions are listed")
      ->type_name("N")
      ->check(CLI::Range(0, 1000000).description(""))
      ->capture_default_str();
  app->add_flag("--json", options->json, "one JSON object with every instruction");
  app->footer(
      "Times are medians over runs of one instruction each, as the clock around it says; the "
      "share\n"
      "outside kernels is that of the lanes' time, waiting included. Convolutions and matrix\n"
      "products are set beside the multiply-adds that the threads can do in registers (sums of "
      "the\n"
      "definition: a faster algorithm may exceed the peak), everything else beside copies between\n"
      "arrays larger than the caches (what stays in a cache may exceed it, too).\n"
      "Example:\n  heddle profile resnet50/ --random-feed --shape x=1,3,224,224 --threads 1");
  app->callback([options, &chosen] { chosen = [options] { return Run(*options); }; });
}

}  // namespace heddle::tools
