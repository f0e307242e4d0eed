#include "core/threads/at_fork.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

namespace heddle {
namespace {

// Two numbers that are equal whenever nobody has the lock, and a thread.
class Pair {
 public:
  void Grow() {
    MutexLock lock(mutex_);
    first_ = first_ + 1;
    second_ = second_ + 1;
  }
  bool IsWhole() {
    MutexLock lock(mutex_);
    return first_ == second_;
  }
  bool has_thread() const { return thread_.joinable(); }
  void Start() {
    thread_ = std::thread([this] {
      while (!stop_) Grow();
    });
  }
  ~Pair() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }

 private:
  Mutex mutex_;
  volatile int first_ HEDDLE_GUARDED_BY(mutex_) = 0;
  volatile int second_ HEDDLE_GUARDED_BY(mutex_) = 0;
  std::atomic<bool> stop_{false};
  std::thread thread_;
  const AtFork at_fork_{mutex_, [this] { LeaveBehind(thread_); }};
};

TEST(AtFork, AChildFindsLocksFreeAndWhatTheyGuardWhole) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer ends processes that fork while they have threads";
#endif
  for (int turn = 0; turn < 20; ++turn) {
    std::vector<Pair> pairs(3);
    for (Pair& pair : pairs) pair.Start();
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);  // ends the process
      bool well = true;
      for (Pair& pair : pairs) well = well && pair.IsWhole() && !pair.has_thread();
      pairs.clear();  // waits for no thread
      ::_exit(well ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

}  // namespace
}  // namespace heddle
