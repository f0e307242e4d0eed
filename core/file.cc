#include "core/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace heddle {
namespace {

// Closes on every way out.
struct Fd {
  int fd;
  ~Fd() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

Result<std::string> ReadFile(const std::string& path) {
  Fd f{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (f.fd < 0) return NotFound("cannot open ", path, ": ", std::strerror(errno));
  struct stat st {};
  if (::fstat(f.fd, &st) != 0 || !S_ISREG(st.st_mode))
    return InvalidArgument(path, " is not a regular file");
  std::string bytes(static_cast<size_t>(st.st_size), '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::read(f.fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return DataLoss("cannot read ", path, ": ", std::strerror(errno));
    if (n == 0) return DataLoss(path, " shrank while it was read");
    done += static_cast<size_t>(n);
  }
  return bytes;
}

Status ReplaceFile(const std::string& path, std::string_view bytes) {
  const std::string aside = path + ".tmp." + std::to_string(::getpid());
  {
    Fd f{::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
    if (f.fd < 0) return NotFound("cannot write ", aside, ": ", std::strerror(errno));
    size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t n = ::write(f.fd, bytes.data() + done, bytes.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        const int why = errno;
        ::unlink(aside.c_str());
        return DataLoss("cannot write ", aside, ": ", std::strerror(why));
      }
      done += static_cast<size_t>(n);
    }
    if (::fsync(f.fd) != 0) return DataLoss("cannot flush ", aside, ": ", std::strerror(errno));
  }
  if (::rename(aside.c_str(), path.c_str()) != 0)
    return DataLoss("cannot rename ", aside, " to ", path, ": ", std::strerror(errno));
  return Status::Ok();
}

}  // namespace heddle
