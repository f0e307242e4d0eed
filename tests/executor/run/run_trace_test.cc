// The raw record of a traced run.
#include "executor/run/run_trace.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

// Lanes of a loop's body wait in each iteration, and nobody knows how many there will be.
TEST(RunTrace, KeepsAsManySpansOfLoopsAsEvents) {
  using Part = RunTrace::Part;
  RunTrace trace(2);
  trace.Start();
  for (size_t k = 0; k < 2 * RunTrace::kMostNested; ++k)
    trace.EndNestedSpan(1, Part::kWaitLane, trace.start, {}, 3);
  RunTrace::Thread& thread = trace.threads[1];
  ASSERT_EQ(thread.spans.size(), RunTrace::kMostNested);
  EXPECT_EQ(thread.spans.back().block, 3);
  EXPECT_GE(thread.last, thread.spans.back().end) << "a later event begins behind the waits";
  trace.EndSpan(1, Part::kWaitWork, trace.start, nullptr);
  EXPECT_EQ(thread.spans.size(), RunTrace::kMostNested + 1);
  EXPECT_TRUE(trace.threads[0].spans.empty());
}

}  // namespace
}  // namespace heddle
