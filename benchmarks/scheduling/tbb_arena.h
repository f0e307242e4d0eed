// oneTBB with a given number of threads, the calling one among them.
#pragma once

#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/version.h>

#include <cstddef>
#include <string>

namespace heddle::bench {

inline std::string TbbVersion() { return TBB_runtime_version(); }

class TbbArena {
 public:
  explicit TbbArena(int workers)
      : limit_(tbb::global_control::max_allowed_parallelism, static_cast<size_t>(workers)),
        arena_(workers) {
    arena_.initialize();
  }

  template <typename Work>
  void Execute(Work work) {
    arena_.execute(work);
  }

 private:
  const tbb::global_control limit_;
  tbb::task_arena arena_;
};

}  // namespace heddle::bench
