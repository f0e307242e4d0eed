// Steady state: runs of the recorded inference programs do not call the heap.
//
// What oneDNN does inside its own calls is counted apart: it builds a table of the arguments at
// each execution of a primitive, which no setting of it avoids.
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "heddle/bound_run.h"
#include "tests/models/recorded_model.h"
#include "tools/alloc_count.cc"  // NOLINT(bugprone-suspicious-include): the tool is no library

namespace heddle::testing {
namespace {

class AllocationTest : public ModelTest {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(AllocationTest);
INSTANTIATE_TEST_SUITE_P(Shared, AllocationTest, ::testing::ValuesIn(InferenceModels()),
                         [](const auto& info) { return info.param; });

constexpr int kRuns = 3;
// A thread that takes part for the first time has something to set up, and may come to it late;
// what a run takes is taken in every batch.
constexpr int kBatches = 30;

// Of `run`, as few as it comes to in a batch of runs.
int64_t FewestCalls(BoundRun& run, Status* status) {
  int64_t fewest = INT64_MAX;
  for (int batch = 0; batch < kBatches && fewest > 0 && status->ok(); ++batch) {
    tools::StartCountingAllocations();
    for (int k = 0; k < kRuns && status->ok(); ++k) *status = run.Run();
    fewest = std::min(fewest, tools::StopCountingAllocations());
  }
  return fewest;
}

TEST_P(AllocationTest, SteadyRunsDoNotCallTheHeap) {
  if (!tools::CanCountAllocations()) GTEST_SKIP() << "the heap cannot be watched in this build";
  Open(GetParam());
  if (IsSkipped() || HasFatalFailure()) return;
  for (int threads : {1, 2}) {
    for (Schedule schedule : {Schedule::kSerial, Schedule::kLanes}) {
      SCOPED_TRACE("threads " + std::to_string(threads) + ", " + ScheduleName(schedule));
      Executor executor({.threads = threads});
      auto compiled = executor.Compile(model_, {.schedule = schedule});
      ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
      for (const Case& c : cases_) {
        BoundRun run(*compiled, c.feeds);
        Status status = run.Run();
        const int64_t calls = status.ok() ? FewestCalls(run, &status) : 0;
        ASSERT_TRUE(status.ok()) << status.ToString();
        EXPECT_EQ(calls, 0) << "in " << kRuns << " runs of case " << c.name;
        std::vector<Tensor> out;
        for (const Value& v : run.outputs()) out.push_back(v.tensor());
        Expect(out, c);
        RecordProperty(c.name + " " + ScheduleName(schedule) + std::to_string(threads),
                       std::to_string(tools::AllocationsPutAside() / kRuns));
      }
    }
  }
}

// The count itself: it sees what goes through malloc and through new, on any thread.
TEST(AllocationCount, SeesTheHeap) {
  if (!tools::CanCountAllocations()) GTEST_SKIP() << "the heap cannot be watched in this build";
  tools::StartCountingAllocations();
  void* volatile p = std::malloc(10);
  std::free(p);
  std::thread([] { delete new std::string(100, 'x'); }).join();
  EXPECT_GE(tools::StopCountingAllocations(), 3);
}

}  // namespace
}  // namespace heddle::testing
