// heddle_bench_training: holds one recorded training program and steps it when asked; heddle's side
// of benchmarks/training.py and tensorflow_training.py, which say the same things to their peers.
// The folder holds Paddle's programs, or a TensorFlow graph whose meta.json names its init op.
//
//   heddle_bench_training FOLDER THREADS
//
// Talks in lines of JSON: says what it loaded and how long the first step took; then, for each line
// it reads: {"slice": seconds} steps for that long, {"steps": N, "folder": F} starts over from the
// recorded initial state, makes N steps and writes the fetched values and the state to F,
// {"trace": FILE} traces one step, {} ends.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "heddle/heddle.h"
#include "heddle/model_files.h"
#include "tools/values/npy.h"

namespace heddle::bench {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

template <typename T>
T Must(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.status().ToString());
  return *std::move(result);
}
void Must(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

double MsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// A field of /proc/self/status that counts kB, in MB.
double StatusMb(const std::string& field) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.rfind(field + ":", 0) == 0) return std::stod(line.substr(field.size() + 1)) / 1024;
  return 0;
}

Tensor Item(const Tensor& t, int64_t i) {
  Shape shape = t.shape();
  shape.erase(0);
  Tensor item = Tensor::Empty(t.dtype(), shape);
  std::memcpy(item.mutable_raw(),
              static_cast<const char*>(t.raw()) + item.bytes() * static_cast<size_t>(i),
              item.bytes());
  return item;
}

class Worker {
 public:
  Worker(const std::string& folder, int threads)
      : dir_(folder + "/"), executor_(ExecutorOptions{.threads = threads}) {
    std::ifstream file(dir_ + "meta.json");
    meta_ = Json::parse(file);
    for (const Json& fetch : meta_["fetches"]) options_.fetches.push_back(fetch["fetch"]);
    if (meta_.contains("init_op")) {
      graph_ = dir_ + std::string(meta_["model"]);
      startup_ = Must(LoadProgram(graph_, {.targets = {meta_["init_op"]}}));
      ProgramPart step{.fetches = options_.fetches, .targets = {meta_["train_op"]}};
      for (const Json& feed : meta_["feeds"]) step.feeds.push_back(feed["name"]);
      program_ = Must(LoadProgram(graph_, step));
    } else {
      program_ = Must(Program::Load(dir_ + "main.pdmodel"));
    }
    ReadBatches();
    Restart();
  }
  void Restart() {
    scope_ = std::make_shared<Scope>();
    if (graph_.empty()) {
      Must(LoadParameters(program_, dir_ + "init.pdiparams", *scope_));
    } else {
      Must(LoadParameters(program_, graph_, *scope_));
      auto scope = std::make_shared<Scope>(scope_);
      Must(LoadParameters(startup_, graph_, *scope));
      Must(executor_.Run(Must(executor_.Compile(startup_, scope)), {}));
    }
    compiled_ =
        std::make_unique<CompiledProgram>(Must(executor_.Compile(program_, scope_, options_)));
    step_ = 0;
  }
  std::vector<Tensor> Step(const RunOptions& options = {}) {
    return Must(executor_.Run(*compiled_, batches_[step_++ % batches_.size()], options));
  }
  Json Slice(double seconds) {
    for (int i = 0; i < 2; ++i) Step();  // wakes threads, warms caches after the pause
    std::vector<double> ms;
    const auto begin = Clock::now();
    do {
      const auto start = Clock::now();
      Step();
      ms.push_back(MsSince(start));
    } while (MsSince(begin) < seconds * 1e3);
    std::sort(ms.begin(), ms.end());
    return {{"median_ms", ms[ms.size() / 2]},
            {"p90_ms", ms[ms.size() * 9 / 10]},
            {"min_ms", ms[0]},
            {"runs", ms.size()},
            {"vmhwm_mb", StatusMb("VmHWM")}};
  }
  Json Record(int64_t steps, const std::string& folder) {
    Restart();
    std::vector<Tensor> stacked;
    for (int64_t s = 0; s < steps; ++s) {
      const std::vector<Tensor> out = Step();
      for (size_t f = 0; f < out.size(); ++f) {
        if (s == 0) stacked.push_back(Tensor::Empty(out[f].dtype(), {steps, out[f].numel()}));
        std::memcpy(
            static_cast<char*>(stacked[f].mutable_raw()) + out[f].bytes() * static_cast<size_t>(s),
            out[f].raw(), out[f].bytes());
      }
    }
    for (size_t f = 0; f < stacked.size(); ++f)
      Must(tools::WriteNpy(folder + "/out_" + std::to_string(f) + ".npy", stacked[f]));
    if (graph_.empty()) Must(SaveParameters(program_, *scope_, folder + "/state.pdiparams"));
    return {{"ok", true}};
  }
  Json Trace(const std::string& file) {
    RunReport report;
    RunOptions options;
    options.report = &report;
    options.trace = true;
    Step(options);
    std::ofstream(file) << report.ToChromeTrace();
    return {{"dispatch", report.dispatch}, {"lanes", report.lanes}, {"run_us", report.run_us}};
  }

 private:
  void ReadBatches() {
    for (const Json& feed : meta_["feeds"]) {
      const std::string name = feed["name"];
      const Tensor all = Must(tools::ReadNpy(dir_ + "in_" + name + ".npy"));
      batches_.resize(static_cast<size_t>(all.dim(0)));
      for (size_t i = 0; i < batches_.size(); ++i)
        batches_[i].push_back({name, Item(all, static_cast<int64_t>(i))});
    }
  }

  std::string dir_, graph_;  // a TensorFlow graph's file
  Json meta_;
  Program program_, startup_;
  CompileOptions options_;
  std::vector<std::vector<Feed>> batches_;
  Executor executor_;
  std::shared_ptr<Scope> scope_;
  std::unique_ptr<CompiledProgram> compiled_;
  size_t step_ = 0;
};

void Serve(const std::string& folder, int threads) {
  const auto start = Clock::now();
  Worker worker(folder, threads);
  const double load_ms = MsSince(start);
  const auto first = Clock::now();
  worker.Step();
  std::cout << Json{{"version", "heddle"},
                    {"load_ms", load_ms},
                    {"first_ms", MsSince(first)},
                    {"vmhwm_mb", StatusMb("VmHWM")}}
            << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    const Json request = Json::parse(line);
    if (request.contains("slice")) {
      std::cout << worker.Slice(request["slice"]) << std::endl;
    } else if (request.contains("steps")) {
      std::cout << worker.Record(request["steps"], request["folder"]) << std::endl;
    } else if (request.contains("trace")) {
      std::cout << worker.Trace(request["trace"]) << std::endl;
    } else {
      break;
    }
  }
}

}  // namespace
}  // namespace heddle::bench

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: heddle_bench_training FOLDER THREADS\n";
    return 2;
  }
  try {
    heddle::bench::Serve(argv[1], std::stoi(argv[2]));
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
