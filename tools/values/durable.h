// Files and directories that outlast a crash.
#pragma once

#include <string>

#include "heddle/status.h"

namespace heddle::tools {

// Returns once the contents of a file, or the names in a directory, are on the disk.
Status Flush(const std::string& path);

// Writes `text` and flushes it.
Status WriteDurable(const std::string& path, const std::string& text);

// A directory that one process at a time works in. The system lets go of it with the process.
class DirectoryLock {
 public:
  DirectoryLock() = default;
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;
  // Fails when another process has it.
  Status Lock(const std::string& directory);

 private:
  int fd_ = -1;
};

}  // namespace heddle::tools
