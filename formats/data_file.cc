#include "formats/data_file.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <vector>

#include "core/error.h"

namespace heddle::formats {
namespace {

constexpr size_t kHashedBytes = 256 << 10;   // read at a time
constexpr size_t kComparedBytes = 64 << 10;  // at each end
// O_NONBLOCK: opening a pipe that has no writer must not block.
constexpr int kOpenFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;

// Opens a path without following symbolic links. Where openat2 is missing (before Linux 5.6, some
// sandboxes), only the last part of the path is checked.
int OpenWithoutLinks(const std::string& path) {
  open_how how{};
  how.flags = kOpenFlags;
  how.resolve = RESOLVE_NO_SYMLINKS;
  const auto fd =
      static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how));
  if (fd >= 0 || (errno != ENOSYS && errno != EPERM)) return fd;
  return ::open(path.c_str(), kOpenFlags | O_NOFOLLOW);
}

}  // namespace

Status DataFile::CheckOpened() {
  if (fd_ < 0) return NotFound("cannot open ", path_, ": ", std::strerror(errno));
  if (::fstat(fd_, &opened_) != 0 || !S_ISREG(opened_.st_mode))
    return InvalidArgument(path_, " is not a regular file");
  return Status::Ok();
}

Result<std::shared_ptr<const DataFile>> DataFile::Open(const std::string& path) {
  HEDDLE_RETURN_IF_ERROR(CheckPath(path));
  std::shared_ptr<DataFile> file(new DataFile(path));
  file->fd_ = ::open(path.c_str(), kOpenFlags);
  HEDDLE_RETURN_IF_ERROR(file->CheckOpened());
  return std::shared_ptr<const DataFile>(std::move(file));
}

Result<std::shared_ptr<const DataFile>> DataFile::OpenItself(const std::string& path) {
  HEDDLE_RETURN_IF_ERROR(CheckPath(path));
  std::shared_ptr<DataFile> file(new DataFile(path));
  file->fd_ = OpenWithoutLinks(path);
  if (file->fd_ < 0 && errno == ELOOP) return InvalidArgument(path, " is a symbolic link");
  HEDDLE_RETURN_IF_ERROR(file->CheckOpened());
  if (file->opened_.st_nlink > 1)
    return InvalidArgument(path, " has ", file->opened_.st_nlink, " names (hard links)");
  return std::shared_ptr<const DataFile>(std::move(file));
}

Result<std::shared_ptr<const DataFile>> DataFile::OpenOrRead(const std::string& path) {
  if (!IsStream(path)) return Open(path);
  HEDDLE_ASSIGN_OR_RETURN(FileBytes bytes, FileBytes::ReadOrReceive(path));
  std::shared_ptr<DataFile> file(new DataFile(path));
  file->read_ = std::make_unique<const FileBytes>(std::move(bytes));
  // An empty pipe gives an empty view with an address, since memory_ without one means a file.
  file->memory_ = file->read_->view().empty() ? std::string_view("") : file->read_->view();
  return std::shared_ptr<const DataFile>(std::move(file));
}

std::shared_ptr<const DataFile> DataFile::OpenIfIs(const std::string& path,
                                                   std::string_view contents) {
  if (IsStream(path)) return nullptr;  // its bytes can be read only once
  auto file = Open(path);
  if (!file.ok() || (*file)->size() != contents.size()) return nullptr;
  std::string part(std::min(contents.size(), kComparedBytes), '\0');
  for (const size_t from : {size_t{0}, contents.size() - part.size()})
    if (!(*file)->Fill(part.data(), part.size(), from).ok() ||
        contents.substr(from, part.size()) != part)
      return nullptr;
  return *std::move(file);
}

std::shared_ptr<const DataFile> DataFile::OfMemory(std::string name, std::string_view contents) {
  return std::shared_ptr<const DataFile>(new DataFile(std::move(name), contents));
}

DataFile::~DataFile() {
  if (fd_ >= 0) ::close(fd_);
}

Status DataFile::Fill(void* to, size_t bytes, size_t from) const {
  char* at = static_cast<char*>(to);
  if (is_memory()) {
    if (from > size() || bytes > size() - from)
      return DataLoss(path_, ": cut short while it was read, at byte ", size());
    std::memcpy(at, memory_.data() + from, bytes);
    return Status::Ok();
  }
  while (bytes > 0) {
    const ssize_t got = ::pread(fd_, at, bytes, static_cast<off_t>(from));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return DataLoss("cannot read ", path_, ": ", std::strerror(errno));
    if (got == 0) return DataLoss(path_, ": cut short while it was read, at byte ", from);
    at += got;
    from += static_cast<size_t>(got);
    bytes -= static_cast<size_t>(got);
  }
  return Status::Ok();
}

SourceFile::Stamp DataFile::stamp() const {
  const auto ns = [](const timespec& t) { return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec; };
  return {.device = opened_.st_dev,
          .inode = opened_.st_ino,
          .bytes = size(),
          .modified_ns = ns(opened_.st_mtim),
          .changed_ns = ns(opened_.st_ctim)};
}

Result<uint64_t> DataFile::Hash() const {
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(),
                                                                        &XXH3_freeState);
  std::vector<char> part(std::min(size(), kHashedBytes));
  if (!state) throw std::bad_alloc();
  XXH3_64bits_reset(state.get());
  for (size_t at = 0; at < size(); at += part.size()) {
    const size_t bytes = std::min(part.size(), size() - at);
    HEDDLE_RETURN_IF_ERROR(Fill(part.data(), bytes, at));
    XXH3_64bits_update(state.get(), part.data(), bytes);
  }
  HEDDLE_RETURN_IF_ERROR(CheckUnchanged());
  return XXH3_64bits_digest(state.get());
}

Status DataFile::Map(void* at, size_t bytes, size_t from) const {
  if (is_memory()) return SourceFile::Map(at, bytes, from);
  if (from > size() || bytes > size() - from)
    return DataLoss(path_, ": cut short while it was read, at byte ", size());
  HEDDLE_RETURN_IF_ERROR(CheckUnchanged());
  if (::mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, fd_,
             static_cast<off_t>(from)) == MAP_FAILED)
    return ResourceExhausted("cannot map ", bytes, " bytes of ", path_, ": ", std::strerror(errno));
  return Status::Ok();
}

Status DataFile::CheckUnchanged() const {
  if (is_memory()) return Status::Ok();
  struct stat now {};
  if (::fstat(fd_, &now) == 0 && now.st_size == opened_.st_size &&
      now.st_mtim.tv_sec == opened_.st_mtim.tv_sec &&
      now.st_mtim.tv_nsec == opened_.st_mtim.tv_nsec)
    return Status::Ok();
  return DataLoss(path_, " was written to while parameters in it were still to be read");
}

bool StaysInFile(DType dtype, size_t bytes, size_t least) {
  if (dtype == DType::kF32 || dtype == DType::kU8 || dtype == DType::kI8) return bytes >= least;
  // Bools are read: their bytes in a file may be other than 0 and 1.
  return dtype != DType::kBool && bytes >= kLeastMapped;
}

BufferRef LeaveInFile(std::shared_ptr<const DataFile> file, size_t bytes, size_t from) {
  const auto fill = [file, from](void* to, size_t begin, size_t end) {
    HEDDLE_RETURN_IF_ERROR(file->Fill(to, end - begin, from + begin));
    return file->CheckUnchanged();
  };
  return LeaveInFile(std::move(file), bytes, from, fill);
}

BufferRef LeaveInFile(std::shared_ptr<const DataFile> file, size_t bytes, size_t from,
                      MakeContents fill) {
  return MakeLazyBuffer(bytes, std::move(fill), {file, StrCat(from, "+", bytes)}, {file, from});
}

}  // namespace heddle::formats
