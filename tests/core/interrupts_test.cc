// Looks for interrupts: who looks, how often, and how work ends.
#include "core/interrupts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "core/guard.h"
#include "core/lock_or_leave.h"
#include "scheduler/host_pool.h"

namespace heddle {
namespace {

// Counts looks, and says at one of them that the work is to end.
class Counting final : public Interrupts {
 public:
  explicit Counting(int64_t end_at) : end_at_(end_at) { Raise(kAsk); }
  int64_t looks() const { return looks_.load(); }

 private:
  Status Ask() const override {
    return looks_.fetch_add(1) + 1 >= end_at_ ? Status(StatusCode::kCancelled, "enough")
                                              : Status::Ok();
  }
  const int64_t end_at_;
  mutable std::atomic<int64_t> looks_{0};
};

template <typename Fn>
StatusCode CodeOf(Fn&& fn) {
  return Guard([&] {
           fn();
           return Status::Ok();
         })
      .code();
}

TEST(Interrupts, RangesCoverAllAndEndWhereTheyAreTold) {
  std::mt19937_64 random(47);
  for (int i = 0; i < 300; ++i) {
    const auto n = static_cast<int64_t>(random() % 50),
               end = 1 + static_cast<int64_t>(random() % 60);
    Counting counting(end);
    const Interrupts::Scope scope(&counting);
    std::vector<int64_t> seen;
    const StatusCode code = CodeOf([&] {
      for (const int64_t k : Watched(n)) seen.push_back(k);
    });
    // A look after each step, the last one as well.
    EXPECT_EQ(code, end <= n ? StatusCode::kCancelled : StatusCode::kOk);
    EXPECT_EQ(std::ssize(seen), std::min(n, end));
    for (size_t k = 0; k < seen.size(); ++k) EXPECT_EQ(seen[k], static_cast<int64_t>(k));
  }
  for (int i = 0; i < 300; ++i) {
    const auto n = static_cast<int64_t>(random() % 1000),
               length = 1 + static_cast<int64_t>(random() % 99);
    int64_t next = 0;
    for (const auto part : Stretches(n, length)) {
      EXPECT_EQ(part.begin, next);
      EXPECT_LE(part.end - part.begin, length);
      next = part.end;
    }
    EXPECT_EQ(next, n);
  }
}

TEST(Interrupts, ThreadsThatHelpLookAtTheCallers) {
  std::mt19937_64 random(48);
  for (int i = 0; i < 60; ++i) {
    HostPool pool(1 + static_cast<int>(random() % 4));
    const auto n = static_cast<int64_t>(random() % 5000),
               grain = 1 + static_cast<int64_t>(random() % 40);
    const auto end = 1 + static_cast<int64_t>(random() % 200);
    Counting counting(end);
    std::atomic<int64_t> done{0};
    StatusCode code{};
    {
      const Interrupts::Scope scope(&counting);
      code =
          CodeOf([&] { pool.ParallelFor(n, grain, [&](int64_t b, int64_t e) { done += e - b; }); });
    }
    if (code == StatusCode::kOk) {
      EXPECT_EQ(done, n);
      EXPECT_LT(counting.looks(), end);
    } else {
      EXPECT_EQ(code, StatusCode::kCancelled);
      EXPECT_LT(done, n);
      // Each thread looks once more at most for each of its pieces.
      EXPECT_LE(counting.looks(), end + pool.threads());
    }
    // Without limits there is one call for each piece, and nobody looks.
    const int64_t looks = counting.looks();
    std::atomic<int> calls{0};
    pool.ParallelFor(n, grain, [&](int64_t, int64_t) { ++calls; });
    EXPECT_LE(calls, pool.threads());
    EXPECT_EQ(counting.looks(), looks);
  }
}

TEST(Interrupts, TheStepsOfOneThreadAreThoseOfSeveral) {
  const auto steps = [](IntraOp& intra, int64_t n, int64_t grain) {
    Counting counting(1 << 30);
    const Interrupts::Scope scope(&counting);
    std::mutex mutex;
    std::vector<std::pair<int64_t, int64_t>> all;
    intra.ParallelFor(n, grain, [&](int64_t b, int64_t e) {
      std::lock_guard lock(mutex);
      all.emplace_back(b, e);
    });
    std::sort(all.begin(), all.end());
    return all;
  };
  std::mt19937_64 random(49);
  HostPool pool(3);
  InlineIntraOp alone(3);
  for (int i = 0; i < 200; ++i) {
    const auto n = 1 + static_cast<int64_t>(random() % 3000),
               grain = 1 + static_cast<int64_t>(random() % 50);
    EXPECT_EQ(steps(pool, n, grain), steps(alone, n, grain));
  }
}

TEST(Interrupts, AWaitForAMutexLooks) {
  std::mutex mutex;
  mutex.lock();
  Counting counting(3);
  const Interrupts::Scope scope(&counting);
  EXPECT_EQ(CodeOf([&] { LockOrLeave(mutex); }), StatusCode::kCancelled);
  EXPECT_EQ(counting.looks(), 3);
  mutex.unlock();
  const auto held = HoldOrLeave(mutex);  // nobody has it: no look
  EXPECT_TRUE(held.owns_lock());
  EXPECT_EQ(counting.looks(), 3);
}

TEST(Interrupts, ASortLooks) {
  std::vector<int> numbers(200000);
  std::mt19937_64 random(50);
  for (int& n : numbers) n = static_cast<int>(random());
  Counting counting(4);
  const Interrupts::Scope scope(&counting);
  LookCount looks;
  EXPECT_EQ(CodeOf([&] { std::sort(numbers.begin(), numbers.end(), looks.In(std::less<>())); }),
            StatusCode::kCancelled);
  EXPECT_EQ(counting.looks(), 4);
}

TEST(LimitScope, CoversWhatItsThreadDoes) {
  int calls = 0;
  HostCalls host([&] {
    ++calls;
    return calls == 2 ? Status(StatusCode::kCancelled, "the host ends it") : Status::Ok();
  });
  {
    const LimitScope limits({.host = &host});
    EXPECT_EQ(CodeOf([] { LookForInterrupt(); }), StatusCode::kOk);
    EXPECT_EQ(calls, 0);  // nobody has asked
    host.Request();
    EXPECT_EQ(CodeOf([] { LookForInterrupt(); }), StatusCode::kOk);
    host.Request();
    EXPECT_EQ(CodeOf([] { LookForInterrupt(); }), StatusCode::kCancelled);
    EXPECT_EQ(CodeOf([] { LookForInterrupt(); }), StatusCode::kCancelled);  // it stays ended
    EXPECT_EQ(calls, 2);
  }
  EXPECT_EQ(CodeOf([] { LookForInterrupt(); }), StatusCode::kOk);
  const LimitScope past({.deadline = std::chrono::steady_clock::now()});
  EXPECT_EQ(CodeOf([] { LookForInterrupt(); }), StatusCode::kDeadlineExceeded);
  // Other threads have none.
  StatusCode other{};
  std::thread([&] { other = CodeOf([] { LookForInterrupt(); }); }).join();
  EXPECT_EQ(other, StatusCode::kOk);
}

}  // namespace
}  // namespace heddle
