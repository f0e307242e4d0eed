// heddle_bench_engines: one model on heddle alone and with groups on an engine, in turns, for
// benchmarks/engines.py.
//
//   heddle_bench_engines MODEL PARAMETERS|- ENGINE KEY=VALUE,… THREADS ROUNDS MS FEEDS FETCHES|-
//
// FEEDS: NAME=FILE.npy,…; FETCHES: NAME,…
//
// Prints one line of JSON: per round and side the least time of a run in milliseconds, what was
// decided, and how far the results lie apart.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "heddle/engine.h"
#include "heddle/heddle.h"
#include "heddle/model_files.h"
#include "tools/values/npy.h"

namespace heddle {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;

double MsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

std::vector<std::string> Parts(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; text != "-" && begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::pair<std::string, std::string> Halves(const std::string& text) {
  const size_t at = text.find('=');
  return {text.substr(0, at), at == std::string::npos ? "" : text.substr(at + 1)};
}

struct Work {
  Model model;
  std::vector<Feed> feeds;
  CompileOptions compile;
  ExecutorOptions executor;
  int rounds = 0;
  double ms = 0;
};

// A way to run the model.
struct Side {
  std::string name;
  std::unique_ptr<Executor> executor;
  CompiledProgram compiled;
  std::vector<double> best = {};  // of each round
};

Result<Side> MakeSide(const std::string& name, const Work& work, const Model& model) {
  auto executor = std::make_unique<Executor>(work.executor);
  HEDDLE_ASSIGN_OR_RETURN(auto compiled, executor->Compile(model, work.compile));
  return Side{name, std::move(executor), std::move(compiled)};
}

Status RunRound(const Work& work, Side* side) {
  double best = -1;
  const auto begin = Clock::now();
  for (int runs = 0; runs < 3 || MsSince(begin) < work.ms; ++runs) {
    const auto start = Clock::now();
    HEDDLE_RETURN_IF_ERROR(side->executor->RunValues(side->compiled, work.feeds).status());
    const double ms = MsSince(start);
    if (best < 0 || ms < best) best = ms;
  }
  side->best.push_back(best);
  return Status::Ok();
}

// The largest difference of float elements, in relation to the largest element; -1: other shapes.
double Apart(const std::vector<Value>& got, const std::vector<Value>& want) {
  double apart = 0;
  for (size_t k = 0; k < want.size(); ++k) {
    if (!want[k].is_tensor() || want[k].tensor().dtype() != DType::kF32) continue;
    const Tensor a = got[k].tensor().Contiguous(), b = want[k].tensor().Contiguous();
    if (a.shape() != b.shape() || a.dtype() != b.dtype()) return -1;
    double most = 1e-6, difference = 0;
    for (int64_t i = 0; i < b.numel(); ++i) {
      most = std::max(most, std::abs(double{b.data<float>()[i]}));
      difference = std::max(difference, std::abs(double{a.data<float>()[i]} - b.data<float>()[i]));
    }
    apart = std::max(apart, difference / most);
  }
  return apart;
}

Result<Json> Measure(const Work& work, const Engine& engine) {
  HEDDLE_ASSIGN_OR_RETURN(const HardwareTarget target, engine.target());
  OffloadOptions options{.feeds = work.feeds, .executor = work.executor, .compile = work.compile};
  auto begin = Clock::now();
  HEDDLE_ASSIGN_OR_RETURN(const auto always, Offload(work.model, {{target, engine}}, options));
  const double always_ms = MsSince(begin);
  options.policy = OffloadOptions::Policy::kMeasured;
  begin = Clock::now();
  HEDDLE_ASSIGN_OR_RETURN(const auto measured, Offload(work.model, {{target, engine}}, options));
  std::vector<Side> sides;
  for (const auto& [name, model] : {std::pair<const char*, const Model&>{"alone", work.model},
                                    {"always", always.model},
                                    {"measured", measured.model}}) {
    HEDDLE_ASSIGN_OR_RETURN(Side side, MakeSide(name, work, model));
    sides.push_back(std::move(side));
  }
  std::vector<std::vector<Value>> outputs;
  for (Side& side : sides) {
    HEDDLE_ASSIGN_OR_RETURN(auto values, side.executor->RunValues(side.compiled, work.feeds));
    for (Value& v : values)
      if (v.is_tensor() && v.initialized()) v = Value(v.tensor().Clone());
    outputs.push_back(std::move(values));
  }
  for (int round = -1; round < work.rounds; ++round)
    for (size_t k = 0; k < sides.size(); ++k) {
      Side& side = sides[(k + static_cast<size_t>(round + 1)) % sides.size()];
      HEDDLE_RETURN_IF_ERROR(RunRound(work, &side));
      if (round < 0) side.best.clear();  // warm
    }
  Json json;
  for (const Side& side : sides) json["ms"][side.name] = side.best;
  json["apart"] = {{"always", Apart(outputs[1], outputs[0])},
                   {"measured", Apart(outputs[2], outputs[0])}};
  json["offload_ms"] = {{"always", always_ms}, {"measured", MsSince(begin)}};
  const auto count = [](const OffloadReport& report) {
    size_t groups = 0, operators = 0;
    for (const OffloadedGroup& g : report.groups)
      if (g.taken) groups += 1, operators += g.operators.size();
    return Json{{"groups", groups}, {"operators", operators}, {"of", report.operators}};
  };
  json["always"] = count(always.report);
  json["measured"] = count(measured.report);
  json["decision"] = measured.report.decision;
  return json;
}

Result<Json> Run(char** argv) {
  EngineOptions options{.threads = std::atoi(argv[5])};
  for (const std::string& part : Parts(argv[4])) options.options.push_back(Halves(part));
  HEDDLE_ASSIGN_OR_RETURN(const Engine engine, Engine::Load(argv[3], options));
  Work work;
  work.executor.threads = options.threads;
  work.rounds = std::atoi(argv[6]);
  work.ms = std::atof(argv[7]);
  const std::string parameters = argv[2];
  ProgramPart part;
  for (const std::string& text : Parts(argv[8])) {
    const auto [name, file] = Halves(text);
    HEDDLE_ASSIGN_OR_RETURN(Tensor tensor, tools::ReadNpy(file));
    work.feeds.push_back({name, std::move(tensor)});
    part.feeds.push_back(name);
  }
  part.fetches = Parts(argv[9]);
  HEDDLE_ASSIGN_OR_RETURN(work.model,
                          LoadModel(argv[1], parameters == "-" ? "" : parameters, part));
  return Measure(work, engine);
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  if (argc != 10) {
    std::fprintf(stderr,
                 "usage: %s MODEL PARAMETERS|- ENGINE KEY=VALUE,… THREADS ROUNDS MS "
                 "FEEDS FETCHES|-\n",
                 argv[0]);
    return 2;
  }
  const auto json = heddle::Run(argv);
  if (!json.ok()) {
    std::fprintf(stderr, "%s\n", json.status().ToString().c_str());
    return 1;
  }
  std::printf("%s\n", json->dump().c_str());
  return 0;
}
