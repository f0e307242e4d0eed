// Groups of executors in a test, each with its program.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "heddle/ranks.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {

using V = std::vector<float>;
using Outputs = std::vector<Result<std::vector<Tensor>>>;

// Executors of one group, each with its program.
class Group {
 public:
  explicit Group(int size, int threads = 1, const std::vector<RankRing>& rings = {}) {
    auto ranks = NewRanks(size, rings);
    EXPECT_TRUE(ranks.ok()) << ranks.status().ToString();
    for (const auto& rank : *ranks)
      executors_.push_back(
          std::make_unique<Executor>(ExecutorOptions{.threads = threads, .communicator = rank}));
  }
  int size() const { return static_cast<int>(executors_.size()); }
  Executor& operator[](int rank) { return *executors_[static_cast<size_t>(rank)]; }

  void Compile(const std::function<Program(int rank)>& program,
               const CompileOptions& options = {}) {
    compiled_.clear();
    for (int r = 0; r < size(); ++r)
      compiled_.push_back(MustCompile((*this)[r], program(r), std::make_shared<Scope>(), options));
  }
  const CompiledProgram& compiled(int rank) const { return compiled_[static_cast<size_t>(rank)]; }

  // All ranks at the same time.
  Outputs Run(const std::function<std::vector<Feed>(int rank)>& feeds,
              const std::function<RunOptions(int rank)>& options = nullptr) {
    Outputs outputs(executors_.size(), std::vector<Tensor>());
    std::vector<std::thread> threads;
    for (int r = 0; r < size(); ++r)
      threads.emplace_back([&, r] {
        outputs[static_cast<size_t>(r)] =
            (*this)[r].Run(compiled(r), feeds(r), options ? options(r) : RunOptions());
      });
    for (std::thread& t : threads) t.join();
    return outputs;
  }

 private:
  std::vector<std::unique_ptr<Executor>> executors_;
  std::vector<CompiledProgram> compiled_;
};

inline const char* Out(const std::string& type) {
  for (const char* name : {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce",
                           "all_to_all", "dist_concat"})
    if (type == name) return "out";
  return "Out";
}

inline Program One(const std::string& type, const Shape& shape, DType dtype, const Attrs& attrs) {
  ProgramBuilder b;
  const bool fresh = std::string(Out(type)) == "out";
  b.Feed("x", dtype, shape);
  b.Op(type, {{fresh ? "x" : "X", {"x"}}}, {{Out(type), {"y"}}}, attrs);
  b.Fetch("y");
  return b.Build();
}

inline std::vector<Feed> Two(int) { return {{"x", F32({2}, {1, 2})}}; }

}  // namespace heddle::testing
