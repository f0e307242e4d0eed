// Measures programs of equal layers in two forms, inlined and with functions
// (CompileOptions::outline): the time of planning and of a run, as processor time of the process.
// `heddle_bench_layers THREADS LEVEL`. One line per program and form:
//
//   passes   Compile: the passes, with the search for equal layers
//   plan     Prepare for a second shape: everything that a plan needs but copies of weights in the
//            kernels' order, which the plan of the first shape has made
//   first    Prepare for the first shape, with these copies
//   heap     what a compiled program and one plan keep on the heap, without tensors
//   run      the median of the runs, both forms in turn
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <new>
#include <optional>
#include <vector>

#include "heddle/heddle.h"
#include "tests/support/layered_program.h"

namespace {

std::atomic<int64_t> heap_bytes{0};

void* Take(size_t bytes) {
  void* p = std::malloc(bytes);
  if (p == nullptr) throw std::bad_alloc();
  heap_bytes += static_cast<int64_t>(malloc_usable_size(p));
  return p;
}
void Give(void* p) noexcept {
  if (p == nullptr) return;
  heap_bytes -= static_cast<int64_t>(malloc_usable_size(p));
  std::free(p);
}

}  // namespace

void* operator new(size_t bytes) { return Take(bytes); }
void* operator new[](size_t bytes) { return Take(bytes); }
void operator delete(void* p) noexcept { Give(p); }
void operator delete[](void* p) noexcept { Give(p); }
void operator delete(void* p, size_t) noexcept { Give(p); }
void operator delete[](void* p, size_t) noexcept { Give(p); }

namespace heddle::testing {
namespace {

using Kind = LayeredProgram::Kind;

// Processor time of the process, so that other work on the machine does not count.
double NowMs() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6;
}
double MsSince(double start) { return NowMs() - start; }
double Median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

struct Times {
  double passes_ms, plan_ms, first_ms, heap_kb;
  std::vector<PlanStats::Stage> stages;
};

std::vector<Feed> FeedsOf(const LayeredProgram& net, int64_t rows) {
  const Shape& shape = net.feeds()[0].value.tensor().shape();
  return {{"x", RandomF32({rows, shape[1]}, 5)}};
}

Times Measure(const LayeredProgram& net, const CompileOptions& options, int threads, int64_t rows,
              bool open) {
  Executor executor({.threads = threads});
  const auto scope = net.NewScope();
  const int64_t before = heap_bytes;
  Times t;
  double start = NowMs();
  const CompiledProgram compiled = MustCompile(executor, net.program(), scope, options);
  t.passes_ms = MsSince(start);
  const auto feeds = open ? FeedsOf(net, rows) : net.feeds();
  start = NowMs();
  auto first = executor.Prepare(compiled, feeds);
  t.first_ms = MsSince(start);
  t.heap_kb = static_cast<double>(heap_bytes - before) / 1024;
  if (!first.ok()) std::printf("%s\n", first.status().ToString().c_str());
  t.plan_ms = 0;
  if (open) {
    start = NowMs();
    auto second = executor.Prepare(compiled, FeedsOf(net, rows + 1));
    t.plan_ms = MsSince(start);
    if (second.ok()) t.stages = second->stages;
  } else if (first.ok()) {
    t.stages = first->stages;
  }
  return t;
}

void Compare(const char* name, LayeredProgram::Options program, int threads, int level) {
  const LayeredProgram net(program);
  const bool open = program.open;
  Times forms[2];
  double heap[2];
  for (const bool outline : {false, true}) {
    std::vector<double> passes, plan, first;
    for (int k = 0; k < 7; ++k) {
      Times t = Measure(net, {.opt_level = level, .outline = outline}, threads, program.rows, open);
      passes.push_back(t.passes_ms);
      plan.push_back(t.plan_ms);
      first.push_back(t.first_ms);
      heap[outline] = t.heap_kb;
      forms[outline] = t;
    }
    forms[outline].passes_ms = Median(passes);
    forms[outline].plan_ms = Median(plan);
    forms[outline].first_ms = Median(first);
  }
  // Runs of both forms in turn.
  Executor executor({.threads = threads});
  std::vector<CompiledProgram> compiled;
  for (const bool outline : {false, true})
    compiled.push_back(MustCompile(executor, net.program(), net.NewScope(),
                                   {.opt_level = level, .outline = outline}));
  std::vector<double> runs[2];
  const auto feeds = open ? FeedsOf(net, program.rows) : net.feeds();
  for (int k = 0; k < 60; ++k)
    for (const int form : {0, 1}) {
      const double start = NowMs();
      MustRun(executor, compiled[static_cast<size_t>(form)], feeds);
      if (k >= 20) runs[form].push_back(MsSince(start));
    }
  for (const int form : {0, 1}) {
    std::printf(
        "%-12s %3d layers level %d %s passes %7.2f plan %7.2f first %7.2f heap %7.1f kB run %7.3f",
        name, program.layers, level, form == 0 ? "inlined " : "functions", forms[form].passes_ms,
        forms[form].plan_ms, forms[form].first_ms, heap[form], Median(runs[form]));
    for (const auto& s : forms[form].stages) std::printf(" %s %.2f", s.name.c_str(), s.ms);
    std::printf("\n");
  }
  std::printf("%-12s ratio: time %.3f heap %.3f run %.3f (least %.3f)\n", name,
              (forms[1].passes_ms + forms[1].plan_ms) / (forms[0].passes_ms + forms[0].plan_ms),
              heap[1] / heap[0], Median(runs[1]) / Median(runs[0]),
              *std::min_element(runs[1].begin(), runs[1].end()) /
                  *std::min_element(runs[0].begin(), runs[0].end()));
}

}  // namespace
}  // namespace heddle::testing

int main(int argc, char** argv) {
  using heddle::testing::LayeredProgram;
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  const int level = argc > 2 ? std::atoi(argv[2]) : 2;
  for (const int layers : {12, 24, 48}) {
    const auto compare = [&](const char* name, LayeredProgram::Kind kind, int width, int64_t rows,
                             bool open) {
      LayeredProgram::Options options;
      options.kind = kind;
      options.layers = layers;
      options.width = width;
      options.rows = rows;
      options.open = open;
      heddle::testing::Compare(name, options, threads, level);
    };
    compare("transformer", LayeredProgram::Kind::kTransformer, 192, 32, true);
    compare("mlp", LayeredProgram::Kind::kMlp, 128, 32, true);
    compare("conv", LayeredProgram::Kind::kConv, 32, 14, false);
    compare("training", LayeredProgram::Kind::kTraining, 128, 64, false);
  }
  return 0;
}
