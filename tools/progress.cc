#include "tools/progress.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>

namespace heddle::tools {

Progress::Progress(std::string what) {
  if (!isatty(STDERR_FILENO)) return;
  thread_ = std::thread([this, what = std::move(what)] { Loop(what); });
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    done_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Progress::Loop(const std::string& what) {
  using std::chrono::seconds;
  std::unique_lock lock(mutex_);
  for (int passed = 1; !wake_.wait_for(lock, seconds(1), [this] { return done_; }); ++passed) {
    std::fprintf(stderr, "\rheddle: %s … %d s ", what.c_str(), passed);
    std::fflush(stderr);
  }
  std::fputs("\r\033[K", stderr);
}

}  // namespace heddle::tools
