// A line on the terminal for what takes longer than a second.
#pragma once

#include <string>
#include <thread>

#include "core/thread_annotations.h"

namespace heddle::tools {

// Shows `what` and the seconds passed on stderr while it lives, after the first second; nothing
// when stderr is no terminal. The line is gone with the object.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  void Loop(const std::string& what);

  Mutex mutex_;
  CondVar wake_;
  bool done_ HEDDLE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace heddle::tools
