#include "core/file.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/memory/large_memory.h"

namespace heddle {
namespace {

// A descriptor that is closed by the destructor.
struct Fd {
  int fd;
  ~Fd() {
    if (fd >= 0) ::close(fd);
  }
};

// The kind of a file that is not a regular file, for messages.
const char* KindOf(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "a pipe";
}

// Opens a regular file as `open` and returns its size in bytes.
Result<size_t> OpenFile(const std::string& path, Fd* open) {
  HEDDLE_RETURN_IF_ERROR(CheckPath(path));
  // O_NONBLOCK: opening a pipe that has no writer must not block.
  open->fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (open->fd < 0) return NotFound("cannot open ", path, ": ", std::strerror(errno));
  struct stat st {};
  if (::fstat(open->fd, &st) != 0 || !S_ISREG(st.st_mode))
    return InvalidArgument(path, " is not a regular file, but ", KindOf(st.st_mode));
  return static_cast<size_t>(st.st_size);
}

Status ReadAll(int fd, const std::string& path, char* data, size_t size) {
  size_t done = 0;
  while (done < size) {
    const ssize_t n = ::pread(fd, data + done, size - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return DataLoss("cannot read ", path, ": ", std::strerror(errno));
    if (n == 0) return DataLoss(path, " shrank while it was read");
    done += static_cast<size_t>(n);
  }
  return Status::Ok();
}

}  // namespace

Status CheckPath(const std::string& path) {
  const size_t nul = path.find('\0');
  if (nul == std::string::npos) return Status::Ok();
  return InvalidArgument("the path '", path.substr(0, nul),
                         "' has a NUL behind these letters, which no path has");
}

Result<std::string> ReadFile(const std::string& path) {
  Fd f{-1};
  HEDDLE_ASSIGN_OR_RETURN(const size_t size, OpenFile(path, &f));
  std::string bytes(size, '\0');
  HEDDLE_RETURN_IF_ERROR(ReadAll(f.fd, path, bytes.data(), size));
  return bytes;
}

bool IsRegularFile(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

Result<std::vector<std::string>> NamesIn(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(directory, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
    names.push_back(entry->path().filename().string());
  if (error) return NotFound("cannot read the directory ", directory, ": ", error.message());
  return names;
}

namespace {

// The memory is used for a moment only, so a huge page that it does not fill does no harm.
constexpr size_t kHugePage = 2 << 20, kLeastHuge = 512 << 10;
size_t Room(size_t size) { return size < kLeastHuge ? size : std::max(size, kHugePage); }

// Opens a pipe or a socket: a descriptor, negative if there is none. Sockets cannot be opened by
// name; those of this process are found by the number in the name.
int OpenStream(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd >= 0) return fd;
  const int error = errno;
  int number = path == "/dev/stdin" ? 0 : -1;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    const char* const end = path.data() + path.size();
    if (std::from_chars(path.data() + folder.size(), end, number).ptr != end) number = -1;
  }
  errno = error;
  return number < 0 ? -1 : ::fcntl(number, F_DUPFD_CLOEXEC, 0);
}

}  // namespace

bool IsStream(const std::string& path) {
  struct stat st {};
  return ::stat(path.c_str(), &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
}

Result<FileBytes> FileBytes::Read(const std::string& path) {
  HEDDLE_ASSIGN_OR_RETURN(const FileHandle file, FileHandle::Open(path));
  return file.ReadAll();
}

Result<FileBytes> FileBytes::ReadOrReceive(const std::string& path) {
  return IsStream(path) ? Receive(path) : Read(path);
}

Result<FileBytes> FileBytes::Receive(const std::string& path) {
  HEDDLE_RETURN_IF_ERROR(CheckPath(path));
  const Fd f{OpenStream(path)};
  if (f.fd < 0) return NotFound("cannot open ", path, ": ", std::strerror(errno));
  const size_t most = static_cast<size_t>(::sysconf(_SC_PHYS_PAGES)) *
                      static_cast<size_t>(::sysconf(_SC_PAGESIZE)) / 2;
  constexpr size_t kFirst = 256 << 10;
  FileBytes bytes(nullptr, 0, 0, false);
  for (;;) {
    if (bytes.size_ == bytes.room_) {
      const size_t room = bytes.room_ == 0 ? kFirst : Room(bytes.room_ * 2);
      void* const memory = bytes.size_ < most ? TakeMemory(room) : nullptr;
      if (memory == nullptr)
        return ResourceExhausted("no memory for the more than ", bytes.size_,
                                 " bytes that come through ", path);
      FileBytes larger(static_cast<char*>(memory), bytes.size_, room, false);
      if (bytes.size_ > 0) std::memcpy(larger.data_, bytes.data_, bytes.size_);
      std::swap(bytes.data_, larger.data_);
      std::swap(bytes.room_, larger.room_);
    }
    const ssize_t n = ::read(f.fd, bytes.data_ + bytes.size_, bytes.room_ - bytes.size_);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return DataLoss("cannot read ", path, ": ", std::strerror(errno));
    if (n == 0) return bytes;
    bytes.size_ += static_cast<size_t>(n);
  }
}

FileBytes::~FileBytes() {
  if (data_ == nullptr) return;
  if (mapped_)
    ::munmap(data_, room_);
  else
    ReturnMemory(data_, room_);
}

Result<FileHandle> FileHandle::Open(const std::string& path) {
  Fd f{-1};
  FileHandle file;
  HEDDLE_ASSIGN_OR_RETURN(file.size_, OpenFile(path, &f));
  file.path_ = path;
  file.fd_ = std::exchange(f.fd, -1);
  return file;
}

FileHandle& FileHandle::operator=(FileHandle&& other) noexcept {
  path_.swap(other.path_);
  std::swap(fd_, other.fd_);
  std::swap(size_, other.size_);
  return *this;
}

FileHandle::~FileHandle() {
  if (fd_ >= 0) ::close(fd_);
}

Result<FileBytes> FileHandle::ReadAll() const {
  if (size_ >= FileBytes::kLeastMapped) {
    void* const map = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd_, 0);
    struct stat now {};
    if (map != MAP_FAILED) {
      FileBytes bytes(static_cast<char*>(map), size_, size_, true);
      if (::fstat(fd_, &now) != 0 || static_cast<size_t>(now.st_size) < size_)
        return DataLoss(path_, " shrank while it was read");
      return bytes;
    }
  }
  const size_t room = size_ > 0 ? Room(size_) : 0;
  void* memory = size_ > 0 ? TakeMemory(room) : nullptr;
  if (size_ > 0 && memory == nullptr) return ResourceExhausted("no memory to read ", path_);
  FileBytes bytes(static_cast<char*>(memory), size_, room, false);
  HEDDLE_RETURN_IF_ERROR(heddle::ReadAll(fd_, path_, bytes.data_, size_));
  return bytes;
}

namespace {

// While it exists, a write to a pipe whose reader has gone fails, and no SIGPIPE ends the process.
// A SIGPIPE that was pending before stays pending: the signal is blocked then.
class NoPipeSignal {
 public:
  NoPipeSignal() {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    sigset_t waiting;
    blocks_ = ::sigpending(&waiting) == 0 && ::sigismember(&waiting, SIGPIPE) == 0 &&
              ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_) == 0;
  }
  ~NoPipeSignal() {
    if (!blocks_) return;
    const int error = errno;  // of the write
    constexpr timespec kAtOnce{};
    while (::sigtimedwait(&pipe_, nullptr, &kAtOnce) < 0 && errno == EINTR) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  NoPipeSignal(const NoPipeSignal&) = delete;
  NoPipeSignal& operator=(const NoPipeSignal&) = delete;

 private:
  sigset_t pipe_, before_;
  bool blocks_;
};

// Whether the error means that the file cannot be flushed, as pipes and most devices, which need no
// flush.
bool CannotFlush(int error) { return error == EINVAL || error == EROFS || error == ENOTSUP; }

}  // namespace

FileReplacement::~FileReplacement() {
  if (fd_ >= 0) ::close(fd_);
  if (!aside_.empty()) ::unlink(aside_.c_str());
}

Status FileReplacement::Fail(const std::string& what, int error) {
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  return Status(full ? StatusCode::kResourceExhausted : StatusCode::kDataLoss,
                StrCat("cannot ", what, ": ", std::strerror(error),
                       aside_.empty() ? "" : "; " + path_ + " is unchanged"));
}

Status FileReplacement::Open() {
  HEDDLE_RETURN_IF_ERROR(CheckPath(path_));
  // A device or a pipe is written to directly, and not replaced.
  struct stat info;
  if (::stat(path_.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))
    return OpenInPlace(S_ISFIFO(info.st_mode));
  static std::atomic<uint64_t> made{0};  // distinguishes the files of one process
  const std::string aside = StrCat(path_, ".tmp.", ::getpid(), ".", made.fetch_add(1));
  // Without O_EXCL: a killed process may have left a file of this name.
  fd_ = ::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd_ < 0) return NotFound("cannot write ", aside, ": ", std::strerror(errno));
  aside_ = aside;
  return Status::Ok();
}

Status FileReplacement::OpenInPlace(bool pipe) {
  // O_NONBLOCK: opening a pipe that has no reader must not block. Later writes do wait for the
  // reader.
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd_ < 0)
    return NotFound("cannot write ", path_, ": ",
                    pipe && errno == ENXIO ? "nobody reads from the pipe" : std::strerror(errno));
  const int flags = ::fcntl(fd_, F_GETFL);
  if (flags >= 0 && ::fcntl(fd_, F_SETFL, flags & ~O_NONBLOCK) == 0) return Status::Ok();
  return Fail("write " + path_, errno);
}

Status FileReplacement::Append(std::string_view bytes) {
  std::optional<NoPipeSignal> no_signal;
  if (aside_.empty()) no_signal.emplace();
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Fail("write " + (aside_.empty() ? path_ : aside_), n < 0 ? errno : ENOSPC);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return Status::Ok();
}

Status FileReplacement::Commit(Durable durable) {
  if (aside_.empty()) {
    if (durable == kNow && ::fsync(fd_) != 0 && !CannotFlush(errno))
      return Fail("flush " + path_, errno);
    const int written = ::close(std::exchange(fd_, -1));
    return written == 0 ? Status::Ok() : Fail("close " + path_, errno);
  }
  if (durable == kNow && ::fsync(fd_) != 0) return Fail("flush " + aside_, errno);
  const int closed = ::close(std::exchange(fd_, -1));
  if (closed != 0) return Fail("close " + aside_, errno);
  if (::rename(aside_.c_str(), path_.c_str()) != 0)
    return Fail("rename " + aside_ + " to " + path_, errno);
  aside_.clear();
  if (durable == kSoon) return Status::Ok();
  // The new name is durable only when its directory is flushed. Some file systems cannot do that:
  // EINVAL.
  const std::string parent = std::filesystem::path(path_).parent_path().string();
  const Fd dir{::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (dir.fd < 0 || (::fsync(dir.fd) != 0 && errno != EINVAL))
    return DataLoss(path_,
                    " is replaced, but its directory cannot be flushed: ", std::strerror(errno));
  return Status::Ok();
}

Status ReplaceFile(const std::string& path, std::string_view bytes) {
  FileReplacement file(path);
  HEDDLE_RETURN_IF_ERROR(file.Open());
  HEDDLE_RETURN_IF_ERROR(file.Append(bytes));
  return file.Commit();
}

}  // namespace heddle
