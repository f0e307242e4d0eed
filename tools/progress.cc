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
    MutexLock lock(mutex_);
    done_ = true;
  }
  wake_.NotifyOne();
  thread_.join();
}

void Progress::Loop(const std::string& what) {
  constexpr auto kSecond = std::chrono::seconds(1);
  MutexLock lock(mutex_);
  auto next = std::chrono::steady_clock::now() + kSecond;
  for (int passed = 1; !done_;) {
    if (wake_.WaitUntil(mutex_, next)) continue;
    std::fprintf(stderr, "\rheddle: %s … %d s ", what.c_str(), passed++);
    std::fflush(stderr);
    next += kSecond;
  }
  std::fputs("\r\033[K", stderr);
}

}  // namespace heddle::tools
