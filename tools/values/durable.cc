#include "tools/values/durable.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

namespace heddle::tools {

Status Flush(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool ok = fd >= 0 && (::fsync(fd) == 0 || errno == EINVAL);  // EINVAL: it has no disk
  const int error = errno;
  if (fd >= 0) ::close(fd);
  if (ok) return Status::Ok();
  return Status(error == ENOSPC ? StatusCode::kResourceExhausted : StatusCode::kDataLoss,
                path + ": cannot be flushed: " + std::strerror(error));
}

Status WriteDurable(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file)
    return Status(StatusCode::kResourceExhausted,
                  path + ": cannot be written: " + std::strerror(errno));
  return Flush(path);
}

DirectoryLock::~DirectoryLock() {
  if (fd_ >= 0) ::close(fd_);
}

Status DirectoryLock::Lock(const std::string& directory) {
  fd_ = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd_ < 0)
    return Status(StatusCode::kNotFound, directory + ": cannot be opened: " + std::strerror(errno));
  if (::flock(fd_, LOCK_EX | LOCK_NB) == 0) return Status::Ok();
  return Status(StatusCode::kInvalidArgument, directory + ": another process works there");
}

}  // namespace heddle::tools
