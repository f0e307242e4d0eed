#include "tests/ops/looks.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>
#include <stop_token>
#include <thread>

#include "core/error.h"
#include "heddle/limits.h"
#include "tests/ops/compare.h"
#include "tests/ops/crash_note.h"
#include "tests/ops/example_files.h"
#include "tests/ops/grow.h"

namespace heddle::testing {
namespace {

double ThreadMs() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

// A compiled example, for several runs.
struct Compiled {
  ExampleProgram program;
  CompiledProgram compiled;
};

Result<Compiled> CompileExample(Executor& executor, const Example& example) {
  HEDDLE_ASSIGN_OR_RETURN(ExampleProgram program, BuildProgram(example, Operands::kFed));
  CompileOptions options;
  options.fetches = program.fetches;
  options.opt_level = 0;
  options.seed = example.seed;
  HEDDLE_ASSIGN_OR_RETURN(CompiledProgram compiled,
                          executor.Compile(program.program, program.NewScope(), options));
  return Compiled{std::move(program), std::move(compiled)};
}

Looks RunCompiled(Executor& executor, const Compiled& c, int64_t stop_at, double most_ms) {
  Looks looks;
  HostCalls* asks = nullptr;
  double begin = ThreadMs(), last = begin;
  HostCalls host([&] {
    const double now = ThreadMs();
    looks.longest_ms = std::max(looks.longest_ms, now - last);
    last = now;
    asks->Request();  // also at the next look
    if (++looks.count == stop_at || now - begin > most_ms)
      return Status(StatusCode::kCancelled, "at look " + std::to_string(looks.count));
    return Status::Ok();
  });
  asks = &host;
  host.Request();
  RunOptions options;
  options.host = &host;
  looks.status = executor.RunValues(c.compiled, c.program.feeds, options).status();
  const double end = ThreadMs();
  looks.longest_ms = std::max(looks.longest_ms, end - last);
  looks.run_ms = end - begin;
  return looks;
}

}  // namespace

Looks RunWithLooks(Executor& executor, const Example& example, int64_t stop_at, double most_ms) {
  // What is computed while a plan is made may grow without end: no run shows it.
  const LimitScope limit({.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(1)});
  const auto compiled = CompileExample(executor, example);
  if (!compiled.ok()) return {.status = compiled.status()};
  // The first run makes the plan, which is no work of the operator's.
  if (const auto plan = executor.Prepare(compiled->compiled, compiled->program.feeds); !plan.ok())
    return {.status = plan.status()};
  return RunCompiled(executor, *compiled, stop_at, most_ms);
}

Ends MeasureEnds(Executor& executor, const Example& example, double after_ms) {
  using Clock = std::chrono::steady_clock;
  const auto compiled = CompileExample(executor, example);
  if (!compiled.ok() || !executor.Prepare(compiled->compiled, compiled->program.feeds).ok())
    return {};
  const auto after = std::chrono::microseconds(static_cast<int64_t>(1000 * after_ms));
  const auto since = [](Clock::time_point t) {
    return std::chrono::duration<double, std::milli>(Clock::now() - t).count();
  };
  Ends ends;
  {
    RunOptions options;
    options.deadline = Clock::now() + after;
    (void)executor.RunValues(compiled->compiled, compiled->program.feeds, options);
    ends.deadline_ms = since(*options.deadline);
  }
  std::stop_source stop;
  RunOptions options;
  options.stop = stop.get_token();
  const Clock::time_point at = Clock::now() + after;
  std::jthread other([&] {
    std::this_thread::sleep_until(at);
    stop.request_stop();
  });
  (void)executor.RunValues(compiled->compiled, compiled->program.feeds, options);
  ends.stop_ms = since(at);
  return ends;
}

GrownExample GrowUntil(Executor& executor, const Example& example, double ms, int64_t bytes,
                       uint64_t seed) {
  constexpr int kMostSteps = 30;
  std::mt19937_64 random(seed);
  GrownExample now{example, RunWithLooks(executor, example)};
  if (!now.looks.status.ok()) return now;
  for (int step = 0; step < kMostSteps && now.looks.run_ms < ms; ++step) {
    std::vector<Size> sizes = SizesOf(now.example);
    std::shuffle(sizes.begin(), sizes.end(), random);
    const int64_t factor = now.looks.run_ms > ms / 16 ? 2 : 4;
    bool any = false;
    GrownExample best = now;
    for (const Size& size : sizes) {
      if (GrownBytes(now.example, size, factor) > bytes) continue;
      Example grown = Grown(now.example, size, factor);
      Looks looks = RunWithLooks(executor, grown, 0, 20 * ms);
      const bool too_long = !looks.status.ok() && looks.status.code() == StatusCode::kCancelled;
      if (!looks.status.ok() && !too_long) continue;
      if (any && looks.run_ms <= best.looks.run_ms) continue;
      any = true;
      best = {std::move(grown), looks};
    }
    if (!any) break;
    now = std::move(best);
  }
  return now;
}

std::optional<GrownExample> GrowOneWay(Executor& executor, const Example& example, int64_t bytes,
                                       double ms, bool axes, uint64_t seed) {
  constexpr int kMostTries = 24;
  constexpr int64_t kMostTimes = 4;                // of `bytes`
  constexpr int64_t kMostSize = int64_t{1} << 26;  // more is no size, or not this example's
  std::mt19937_64 random(seed);
  const auto sizes_of = [axes](const Example& e) {
    std::vector<Size> all = SizesOf(e);
    std::erase_if(all, [axes](const Size& s) {
      return axes && s.of != Size::Of::kAxes && s.of != Size::Of::kAll;
    });
    return all;
  };
  std::vector<Size> sizes = sizes_of(example);
  if (sizes.empty()) return std::nullopt;
  const bool alone = random() % 2 == 0;
  Size size = sizes[random() % sizes.size()];
  GrownExample now{example, {}};
  bool any = false;
  for (int k = 0; k < kMostTries && OperandBytes(now.example) < bytes && now.looks.run_ms < ms;
       ++k) {
    if (!alone) {
      sizes = sizes_of(now.example);
      size = sizes[random() % sizes.size()];
    }
    const auto factor = static_cast<int64_t>(2 + random() % 7);
    if (size.value > kMostSize / factor) {
      if (alone) break;
      continue;
    }
    if (GrownBytes(now.example, size, factor) > kMostTimes * bytes) continue;
    Example grown = Grown(now.example, size, factor);
    Looks looks = RunWithLooks(executor, grown, 0, 20 * ms);
    if (!looks.status.ok() && looks.status.code() != StatusCode::kCancelled) {
      if (alone) break;
      continue;
    }
    now = {std::move(grown), looks};
    any = true;
    size.value *= factor;
  }
  if (!any) return std::nullopt;
  return now;
}

namespace {

std::string ShapesOf(const Example& example) {
  std::string shapes;
  for (const ExampleInput& in : example.inputs)
    if (in.value.is_tensor() && in.value.initialized())
      shapes += " " + in.slot + in.value.tensor().shape().ToString();
  return shapes;
}

}  // namespace

std::string GrownLooks::Judge(const Example& example, uint64_t seed) {
  constexpr int kRuns = 8;  // page faults, a cold cache, others that use the memory
  CrashNote note(example, "looks when grown");
  Executor& executor = lab_.Small();
  const auto grown = GrowOneWay(executor, example, bytes_, ms_, axes_, seed);
  if (!grown) return {};
  ++grown_;
  Looks best = grown->looks;
  const auto bad = [&] {
    return best.longest_ms > kMostMs ||
           (best.longest_ms > kLeastMs && best.longest_ms > kMostShare * best.run_ms);
  };
  for (int i = 1; i < kRuns && bad(); ++i) {
    const Looks again = RunWithLooks(executor, grown->example, 0, 20 * ms_);
    if (again.longest_ms < best.longest_ms) best = again;
  }
  const std::string what = StrCat(static_cast<int64_t>(10 * best.longest_ms) / 10., " of ",
                                  static_cast<int64_t>(10 * best.run_ms) / 10.,
                                  " ms without a look, with", ShapesOf(grown->example));
  const auto [at, first] = seen_.emplace(example.op, Seen{best.longest_ms, best.run_ms, what});
  if (!first && at->second.longest_ms < best.longest_ms)
    at->second = {best.longest_ms, best.run_ms, what};
  return bad() && GrowsWithWork(grown->example, best) ? what : std::string();
}

bool GrownLooks::GrowsWithWork(const Example& example, const Looks& looks) {
  constexpr int64_t kFactor = 4;
  constexpr int kRuns = 8;
  const double share = looks.longest_ms / looks.run_ms;
  bool any = false;
  for (const Size& size : SizesOf(example)) {
    if (size.of != Size::Of::kAxes && size.of != Size::Of::kAll) continue;
    if (GrownBytes(example, size, kFactor) > 4 * kFactor * bytes_) continue;
    const Example more = Grown(example, size, kFactor);
    double least = 1;
    bool longer = false;
    for (int k = 0; k < kRuns && 2 * least > share; ++k) {
      const Looks again = RunWithLooks(lab_.Small(), more, 0, 100 * ms_);
      if (!again.status.ok() || again.run_ms < 2 * looks.run_ms) break;  // or this size adds little
      longer = true;
      least = std::min(least, again.longest_ms / again.run_ms);
    }
    if (longer && 2 * least > share) return true;
    any = any || longer;
  }
  return !any;
}

void GrownLooks::PrintWorst(size_t count) const {
  std::vector<std::pair<double, std::string>> worst;
  for (const auto& [op, seen] : seen_) worst.emplace_back(seen.longest_ms, op + ": " + seen.what);
  std::sort(worst.rbegin(), worst.rend());
  worst.resize(std::min(worst.size(), count));
  for (const auto& [ms, what] : worst) std::printf("%s\n", what.c_str());
}

void PrintLooks(const std::string& op, double ms, int64_t bytes, uint64_t seed) {
  Lab lab;
  for (const auto& [name, file] : ReadExampleFiles()) {
    const Example* tried = nullptr;
    for (const Example& example : file.examples) {
      if (example.op != op) continue;
      // The first one that grows is enough; others are tried while none does.
      const GrownExample grown = GrowUntil(lab.Plain(), example, ms, bytes, seed);
      tried = &example;
      const std::string operands = ShapesOf(grown.example);
      const Ends ends = MeasureEnds(lab.Plain(), grown.example, std::min(100.0, ms / 3));
      std::printf("%s\t%s\t%.1f\t%.1f\t%lld\t%s\t%s\t%.1f\t%.1f\n", op.c_str(),
                  example.title.c_str(), grown.looks.run_ms, grown.looks.longest_ms,
                  static_cast<long long>(grown.looks.count),
                  grown.looks.status.ok() ? "ok" : grown.looks.status.ToString().c_str(),
                  operands.c_str(), ends.deadline_ms, ends.stop_ms);
      std::fflush(stdout);
      if (grown.looks.run_ms >= ms) return;
    }
    if (tried != nullptr) return;
  }
}

std::string EndsAtALook(Lab& lab, const Example& example, uint64_t seed) {
  constexpr double kMs = 0.3;
  constexpr int64_t kBytes = 1 << 20;
  CrashNote note(example, "ends at a look");
  Executor& executor = lab.Plain();
  const GrownExample grown = GrowUntil(executor, example, kMs, kBytes, seed);
  if (!grown.looks.status.ok()) return {};
  const auto compiled = CompileExample(executor, grown.example);
  if (!compiled.ok()) return {};
  const Looks whole = RunCompiled(executor, *compiled, 0, 1e9);
  if (!whole.status.ok()) return "once more: " + whole.status.ToString();
  const Looks again = RunCompiled(executor, *compiled, 0, 1e9);
  if (!again.status.ok()) return "a third time: " + again.status.ToString();
  if (again.count == 0) return {};  // computed while the plan is made
  int64_t at = 1 + static_cast<int64_t>(seed % static_cast<uint64_t>(again.count));
  Looks ended = RunCompiled(executor, *compiled, at, 1e9);
  // The run before may have waited for others, with looks meanwhile: this one ended before.
  for (int k = 0; k < 5 && ended.status.ok() && ended.count > 0 && ended.count < at; ++k) {
    at = 1 + static_cast<int64_t>(seed % static_cast<uint64_t>(ended.count));
    ended = RunCompiled(executor, *compiled, at, 1e9);
  }
  if (ended.status.code() != StatusCode::kCancelled)
    return "told to end at look " + std::to_string(at) + " of " + std::to_string(again.count) +
           ": " + ended.status.ToString();
  if (ended.count != at)
    return "told to end at look " + std::to_string(at) + ", went on to look " +
           std::to_string(ended.count);
  const Looks after = RunCompiled(executor, *compiled, 0, 1e9);
  if (!after.status.ok()) return "after a run that ended early: " + after.status.ToString();
  return {};
}

}  // namespace heddle::testing
