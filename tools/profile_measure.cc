// Timing every instruction of a run; what instructions compute and move, from their shapes.
#include "tools/profile_measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <tuple>

#include "tools/engines/engine_choice.h"

namespace heddle::tools {
namespace {

using Clock = std::chrono::steady_clock;

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

double Pixels(const Shape& channels_last) {
  return static_cast<double>(channels_last.Product(0, 3));
}

// A chain's pointwise convolution ahead of the depthwise one sees the pixels of the input, what
// comes later gives those of the output.
double ChainFlops(const TraceEvent& e) {
  const Shape &in = e.inputs[0].shape, &out = e.outputs[0].shape;
  if (!in.is_static() || !out.is_static() || in.rank() != 4 || out.rank() != 4) return 0;
  double flops = 0;
  bool ahead = true;
  for (const auto& o : e.inputs) {
    if (o.slot != "Filters" || Numel(o) == 0) continue;
    ahead = ahead && o.shape[2] == 1;
    flops += 2 * Numel(o) * Pixels(ahead ? in : out);
  }
  return flops;
}

// Multiplications and additions of convolutions and matrix products; 0 for whatever else.
double Flops(const TraceEvent& e) {
  if (e.outputs.empty()) return 0;
  if (e.op == "fused_conv_chain") return ChainFlops(e);
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
  double all = 0;  // elements of X, which may lie in pieces
  for (const auto& o : e.inputs) all += o.slot == x->slot ? Numel(o) : 0;
  return 2 * Numel(out) * std::round(std::sqrt(all * Numel(*y) / Numel(out) / batch));
}

double Bytes(const TraceEvent& e) {
  double bytes = 0;
  for (const auto* list : {&e.inputs, &e.outputs})
    for (const auto& o : *list)
      if (o.shape.is_static()) bytes += Numel(o) * static_cast<double>(SizeOf(o.dtype));
  return bytes;
}

double Median(std::vector<double> v) {
  if (v.empty()) return 0;
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

RunOptions Traced(const ModelOptions& options, RunReport* report) {
  RunOptions run = options.run();
  run.report = report;
  run.trace = true;
  return run;
}

Status TraceRuns(Executor& executor, const CompiledProgram& compiled, const ModelOptions& options,
                 const std::vector<Feed>& feeds, double seconds, Profile* p) {
  constexpr int kMostRuns = 10000;
  // By place in the program; operators that passes made have none of their own.
  std::map<std::tuple<int, int, std::string, std::string>, ProfileLine> lines;
  std::map<std::string, std::vector<double>> streams;
  std::vector<double> run_us, outside;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  do {
    RunReport report;
    HEDDLE_RETURN_IF_ERROR(executor.RunValues(compiled, feeds, Traced(options, &report)).status());
    double busy = 0;
    std::map<std::string, double> stream_busy;
    struct Spent {
      double us = 0;
      int64_t times = 0;
    };
    std::map<ProfileLine*, Spent> spent;  // in this run
    for (const TraceEvent& e : report.events) {
      busy += e.self_us;
      if (!e.stream.empty()) stream_busy[e.stream] += e.self_us;
      ProfileLine& line = lines[{e.block, e.index, e.output, e.op}];
      Spent& sum = spent[&line];
      sum.us += e.self_us;
      sum.times += e.times;
      if (line.each_us.empty() && sum.times == e.times) line.event = e;
    }
    for (const auto& [line, sum] : spent) {
      line->each_us.push_back(sum.us);
      line->times = sum.times;
    }
    run_us.push_back(report.run_us);
    for (const auto& [stream, us] : stream_busy) streams[stream].push_back(us);
    const double rows = report.lanes + static_cast<double>(stream_busy.size());
    outside.push_back(std::max(0.0, 1 - busy / (report.run_us * rows)));
    p->dispatch = report.dispatch;
    p->lanes = report.lanes;
    ++p->runs;
  } while (p->runs < 3 || (p->runs < kMostRuns && Clock::now() < end));
  p->run_us = Median(run_us);
  p->outside = Median(outside);
  for (auto& [stream, us] : streams) p->streams[stream] = Median(std::move(us));
  for (auto& [place, line] : lines) {
    line.us = Median(line.each_us);
    line.flops = Flops(line.event) * static_cast<double>(line.times);
    line.bytes = Bytes(line.event) * static_cast<double>(line.times);
    p->kernels_us += line.us;
    p->lines.push_back(std::move(line));
  }
  std::stable_sort(p->lines.begin(), p->lines.end(),
                   [](const ProfileLine& a, const ProfileLine& b) { return a.us > b.us; });
  return Status::Ok();
}

// One of a few more runs, the one whose length is nearest to the median: what a picture shows
// should be a run as most are.
Status KeepSample(Executor& executor, const CompiledProgram& compiled, const ModelOptions& options,
                  const std::vector<Feed>& feeds, Profile* p) {
  constexpr int kTries = 7;
  for (int r = 0; r < kTries; ++r) {
    RunReport report;
    HEDDLE_RETURN_IF_ERROR(executor.RunValues(compiled, feeds, Traced(options, &report)).status());
    const auto distance = [&](const RunReport& one) { return std::abs(one.run_us - p->run_us); };
    if (r == 0 || distance(report) < distance(p->sample)) p->sample = std::move(report);
  }
  return Status::Ok();
}

// The plan as it is now, and which of its instructions each line is about.
Status KeepPlan(Executor& executor, const CompiledProgram& compiled, const std::vector<Feed>& feeds,
                Profile* p) {
  HEDDLE_ASSIGN_OR_RETURN(p->stats, executor.Prepare(compiled, feeds));
  HEDDLE_ASSIGN_OR_RETURN(p->plan, executor.DescribePlan(compiled, feeds));
  HEDDLE_ASSIGN_OR_RETURN(p->memory, executor.PlanMemory(compiled, feeds));
  // An event tells the operator's place in the file, a step its place in what passes made of that:
  // they have block, operator and first output in common, and, where that is not one of its kind,
  // the order.
  using Kind = std::tuple<int, std::string, std::string>;
  std::map<Kind, std::vector<int>> steps;
  for (size_t s = p->plan.instructions.size(); s-- > 0;) {
    const auto& in = p->plan.instructions[s];
    std::string output;
    for (int slot : in.outputs)
      if (slot >= 0 && output.empty()) output = p->plan.slots[static_cast<size_t>(slot)].variable;
    steps[{in.block, in.op, output}].push_back(static_cast<int>(s));
  }
  std::vector<ProfileLine*> ordered;
  for (ProfileLine& line : p->lines) ordered.push_back(&line);
  std::sort(ordered.begin(), ordered.end(), [](const ProfileLine* a, const ProfileLine* b) {
    return std::pair(a->event.block, a->event.index) < std::pair(b->event.block, b->event.index);
  });
  for (ProfileLine* line : ordered) {
    auto& left = steps[{line->event.block, line->event.op, line->event.output}];
    if (left.empty()) continue;
    line->step = left.back();
    left.pop_back();
  }
  return Status::Ok();
}

}  // namespace

std::string ShapesText(const std::vector<TraceEvent::Operand>& list) {
  std::string text;
  for (const auto& o : list) text += (text.empty() ? "" : " ") + o.shape.ToString();
  return text;
}

double Profile::PeakShare(double us, double flops, double bytes) const {
  const double rate = us > 0 ? (flops > 0 ? flops : bytes) / us * 1e-3 : 0;
  const double most = flops > 0 ? peak.gflops : peak.copy_gbs;
  return most > 0 ? rate / most : 0;
}

std::vector<OperatorSum> ByOperator(const Profile& p) {
  std::map<std::string, OperatorSum> sums;
  for (const ProfileLine& line : p.lines) {
    OperatorSum& s = sums[line.event.op];
    s.op = line.event.op;
    ++s.count;
    s.times += line.times;
    s.us += line.us;
    s.flops += line.flops;
    s.bytes += line.bytes;
  }
  std::vector<OperatorSum> list;
  for (auto& [op, sum] : sums) list.push_back(std::move(sum));
  std::stable_sort(list.begin(), list.end(),
                   [](const OperatorSum& a, const OperatorSum& b) { return a.us > b.us; });
  return list;
}

Result<Profile> MeasureProfile(const ModelOptions& options, const FeedOptions& feed_options,
                               const EngineChoice& engines, double seconds) {
  HEDDLE_ASSIGN_OR_RETURN(const Model alone, options.Load(feed_options));
  Executor executor(options.executor());
  HEDDLE_ASSIGN_OR_RETURN(const auto feeds, MakeFeeds(TypedInputsOf(alone.program), feed_options));
  const CompileOptions compile = options.compile(alone.program);
  HEDDLE_ASSIGN_OR_RETURN(const OffloadedModel offloaded,
                          ApplyEngines(engines, options, compile, alone, feeds));
  HEDDLE_ASSIGN_OR_RETURN(const CompiledProgram compiled,
                          executor.Compile(offloaded.model, compile));
  Profile p;
  p.engines = offloaded.report;
  p.threads = executor.threads();
  p.peak = MeasureHostPeak(p.threads);
  RunReport report;
  const auto end = Clock::now() + std::chrono::seconds(20);
  for (int r = 0; r < 5 || (!report.settled && r < 200 && Clock::now() < end); ++r) {
    RunOptions run = options.run();
    run.report = &report;
    HEDDLE_RETURN_IF_ERROR(executor.RunValues(compiled, feeds, run).status());
  }
  HEDDLE_RETURN_IF_ERROR(TraceRuns(executor, compiled, options, feeds, seconds, &p));
  HEDDLE_RETURN_IF_ERROR(KeepSample(executor, compiled, options, feeds, &p));
  p.memory_use = executor.MemoryUse();
  HEDDLE_RETURN_IF_ERROR(KeepPlan(executor, compiled, feeds, &p));
  return p;
}

}  // namespace heddle::tools
