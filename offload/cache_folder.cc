#include "offload/cache_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "offload/module_file.h"

namespace heddle::offload {
namespace {

constexpr const char* kLockName = "lock";
constexpr std::string_view kAsidePrefix = "writing-";
constexpr size_t kAsideDigits = 16;
constexpr auto kMostWait = std::chrono::seconds(5);
constexpr mode_t kMine = S_IRUSR | S_IWUSR;

bool IsHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}
bool IsAside(std::string_view name) {
  return name.size() == kAsidePrefix.size() + kAsideDigits && name.starts_with(kAsidePrefix) &&
         IsHex(name.substr(kAsidePrefix.size()));
}

// A regular file of this user, known by one name only.
bool IsOurs(const struct stat& st) {
  return S_ISREG(st.st_mode) && st.st_nlink == 1 && st.st_uid == ::geteuid();
}

}  // namespace

// Held until it goes, or the process does.
class CacheFolder::Lock {
 public:
  ~Lock() {
    if (fd_ >= 0) ::close(fd_);
  }
  Status Take(const CacheFolder& folder) {
    fd_ = ::openat(folder.fd_, kLockName, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK,
                   kMine);
    struct stat st {};
    if (fd_ < 0) return folder.Fail("be locked", errno);
    if (::fstat(fd_, &st) != 0 || !IsOurs(st)) return folder.Fail("be locked", EPERM);
    const auto until = std::chrono::steady_clock::now() + kMostWait;
    // Not waited for without end: a process that was stopped keeps what it holds.
    while (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) return folder.Fail("be locked", errno);
      if (std::chrono::steady_clock::now() >= until)
        return ResourceExhausted(folder.path_, ": another process keeps it locked");
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return Status::Ok();
  }

 private:
  int fd_ = -1;
};

// A file that is being written, and is removed unless it gets its name.
class CacheFolder::Aside {
 public:
  explicit Aside(const CacheFolder& folder) : folder_(folder) {}
  ~Aside() {
    if (!name_.empty()) ::unlinkat(folder_.fd_, name_.c_str(), 0);
    if (fd_ >= 0) ::close(fd_);
  }
  // With the folder's lock, so that nobody finds the file before it is locked.
  Status Open() {
    uint8_t random[kAsideDigits / 2];
    if (::getrandom(random, sizeof random, 0) != sizeof random)
      return folder_.Fail("be written to", errno);
    std::string name(kAsidePrefix);
    for (const uint8_t byte : random) {
      name += "0123456789abcdef"[byte >> 4];
      name += "0123456789abcdef"[byte & 15];
    }
    fd_ = ::openat(folder_.fd_, name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                   kMine);
    if (fd_ < 0) return folder_.Fail("be written to", errno);
    name_ = std::move(name);
    if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) return folder_.Fail("be written to", errno);
    return Status::Ok();
  }
  int fd() const { return fd_; }
  // With the folder's lock.
  Status Rename(const std::string& to) {
    struct stat st {};
    if (::fstatat(folder_.fd_, to.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 && !IsOurs(st))
      return InvalidArgument(folder_.path_, "/", to,
                             ": is in the way and none of the cache's files");
    if (::renameat(folder_.fd_, name_.c_str(), folder_.fd_, to.c_str()) != 0)
      return folder_.Fail("be written to", errno);
    name_.clear();
    return Status::Ok();
  }

 private:
  const CacheFolder& folder_;
  std::string name_;
  int fd_ = -1;
};

// ---- the folder ---------------------------------------------------------------------------------

Result<CacheFolder> CacheFolder::Open(const std::string& path, Make make) {
  HEDDLE_RETURN_IF_ERROR(CheckPath(path));
  if (make == Make::kYes && ::mkdir(path.c_str(), S_IRWXU) != 0 && errno == ENOENT) {
    std::error_code error;  // the last one is made with fewer rights than those above it
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
    (void)::mkdir(path.c_str(), S_IRWXU);
  }
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return Status(errno == ENOTDIR ? StatusCode::kInvalidArgument : StatusCode::kNotFound,
                  StrCat(path, ": cannot be opened as a folder: ", std::strerror(errno)));
  CacheFolder folder(path, fd);
  struct stat st {};
  if (::fstat(fd, &st) != 0) return folder.Fail("be looked at", errno);
  if (st.st_uid != ::geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return InvalidArgument(path, ": others may write to this folder, and what lies there is run");
  return folder;
}

CacheFolder::CacheFolder(CacheFolder&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

CacheFolder::~CacheFolder() {
  if (fd_ >= 0) ::close(fd_);
}

Status CacheFolder::Fail(const char* what, int error) const {
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  return Status(full ? StatusCode::kResourceExhausted : StatusCode::kDataLoss,
                StrCat(path_, ": cannot ", what, ": ", std::strerror(error)));
}

// kNotFound: there is no such file; kInvalidArgument: it is none of the cache's.
Result<int> CacheFolder::OpenFile(const std::string& name, int64_t* bytes) const {
  const int fd =
      ::openat(fd_, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return NotFound(name, ": ", std::strerror(errno));
  struct stat st {};
  if (::fstat(fd, &st) != 0 || !IsOurs(st)) {
    ::close(fd);
    return InvalidArgument(name, ": is none of the cache's files");
  }
  *bytes = st.st_size;
  return fd;
}

std::vector<CacheFolder::File> CacheFolder::Files(bool (*is_one)(std::string_view name),
                                                  int64_t* others) const {
  std::vector<File> files;
  const int fd = ::openat(fd_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const dir = fd < 0 ? nullptr : ::fdopendir(fd);
  if (dir == nullptr) {
    if (fd >= 0) ::close(fd);
    return files;
  }
  while (const dirent* entry = ::readdir(dir)) {  // NOLINT(concurrency-mt-unsafe): its own DIR
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    struct stat st {};
    const bool there = ::fstatat(fd_, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (there && IsOurs(st) && is_one(name))
      files.push_back({name, st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec, st.st_ino});
    else if (others != nullptr && there &&
             !(IsOurs(st) && (IsModuleFile(name) || IsAside(name) || name == kLockName)))
      ++*others;
  }
  ::closedir(dir);
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) {
    return std::pair(a.used_s, a.used_ns) < std::pair(b.used_s, b.used_ns);
  });
  return files;
}

// With the folder's lock.
EngineCacheCleaned CacheFolder::RemoveLeftBehind() {
  EngineCacheCleaned removed;
  for (const File& file : Files(IsAside)) {
    int64_t bytes = 0;
    const auto fd = OpenFile(file.name, &bytes);
    if (!fd.ok()) continue;
    if (::flock(*fd, LOCK_EX | LOCK_NB) == 0 && ::unlinkat(fd_, file.name.c_str(), 0) == 0) {
      ++removed.files;
      removed.bytes += bytes;
    }
    ::close(*fd);
  }
  return removed;
}

// With the folder's lock.
EngineCacheCleaned CacheFolder::MakeRoom(int64_t max_bytes, const std::string& but) {
  std::vector<File> files = Files(IsModuleFile);
  std::erase_if(files, [&](const File& file) { return file.name == but; });
  int64_t sum = 0;
  for (const File& file : files) sum += file.bytes;
  EngineCacheCleaned removed;
  for (const File& file : files) {
    if (sum <= max_bytes) break;
    if (::unlinkat(fd_, file.name.c_str(), 0) != 0) continue;
    sum -= file.bytes;
    ++removed.files;
    removed.bytes += file.bytes;
  }
  return removed;
}

// ---- modules ------------------------------------------------------------------------------------

CacheFolder::Found CacheFolder::Read(const ModuleKey& key) {
  Found found;
  int64_t bytes = 0;
  const auto fd = OpenFile(ModuleFileName(key.digest, key.kind), &bytes);
  if (!fd.ok()) return found;
  ModuleFileReader reader(*fd, bytes);
  if (reader.Begin() && reader.digest() == key.digest && reader.about() == key.about) {
    found.bytes = BufferRef::Allocate(std::max<size_t>(reader.payload_bytes(), 1));
    found.count = reader.payload_bytes();
    if (found.bytes && !reader.Payload(found.bytes->data())) found.bytes.reset();
    found.damaged = !found.bytes;
  } else {
    found.damaged = true;
  }
  if (found.bytes) (void)::futimens(*fd, nullptr);  // used now; where that may be written
  ::close(*fd);
  return found;
}

Status CacheFolder::Write(const ModuleKey& key, int64_t operators, int64_t max_bytes,
                          const std::function<Status(const Sink&)>& save) {
  Aside aside(*this);
  {
    Lock lock;
    HEDDLE_RETURN_IF_ERROR(lock.Take(*this));
    RemoveLeftBehind();
    HEDDLE_RETURN_IF_ERROR(aside.Open());
  }
  ModuleFileWriter writer(aside.fd(), key.digest, key.about, operators);
  Status refused;
  const auto sink = [&](const void* bytes, size_t count) {
    if (!refused.ok()) return false;
    if (static_cast<int64_t>(count) > max_bytes - writer.bytes())
      refused = OutOfRange(path_, ": a module is larger than all files may be together");
    else if (const int error = writer.Append(bytes, count); error != 0)
      refused = Fail("be written to", error);
    return refused.ok();
  };
  Status saved = save(sink);
  HEDDLE_RETURN_IF_ERROR(refused);
  HEDDLE_RETURN_IF_ERROR(saved);
  if (const int error = writer.End(); error != 0) return Fail("be written to", error);
  {
    Lock lock;
    HEDDLE_RETURN_IF_ERROR(lock.Take(*this));
    const std::string name = ModuleFileName(key.digest, key.kind);
    MakeRoom(max_bytes - writer.bytes(), name);
    HEDDLE_RETURN_IF_ERROR(aside.Rename(name));
  }
  (void)::fsync(fd_);  // without it the name may be lost, and nothing else
  return Status::Ok();
}

EngineCacheContents CacheFolder::List() {
  EngineCacheContents contents;
  const int64_t now = std::chrono::duration_cast<std::chrono::seconds>(
                          std::chrono::system_clock::now().time_since_epoch())
                          .count();
  std::vector<File> files = Files(IsModuleFile, &contents.others);
  contents.unfinished = static_cast<int64_t>(Files(IsAside).size());
  std::reverse(files.begin(), files.end());
  for (const File& file : files) {
    int64_t bytes = 0;
    const auto fd = OpenFile(file.name, &bytes);
    if (!fd.ok()) continue;  // removed meanwhile
    EngineCacheEntry& entry = contents.entries.emplace_back();
    entry.file = file.name;
    entry.bytes = bytes;
    entry.age_s = std::max<int64_t>(now - file.used_s, 0);
    contents.bytes += bytes;
    ModuleFileReader reader(*fd, bytes);
    const FileKind kind = KindOf(file.name);
    entry.answers = kind == FileKind::kAnswers;
    entry.damaged = !reader.Begin() || ModuleFileName(reader.digest(), kind) != file.name ||
                    !reader.Payload(nullptr);
    ::close(*fd);
    if (entry.damaged) continue;
    entry.operators = reader.operators();
    entry.engine = LineOf(reader.about(), "engine");
    entry.target = LineOf(reader.about(), "target");
    entry.fingerprint = LineOf(reader.about(), "fingerprint");
  }
  return contents;
}

Result<EngineCacheCleaned> CacheFolder::Clean(int64_t max_bytes) {
  // Looked at before the lock is taken, which others wait for.
  const EngineCacheContents contents = List();
  const std::vector<File> files = Files(IsModuleFile);
  Lock lock;
  HEDDLE_RETURN_IF_ERROR(lock.Take(*this));
  EngineCacheCleaned removed = RemoveLeftBehind();
  for (const EngineCacheEntry& entry : contents.entries) {
    if (!entry.damaged) continue;
    const auto seen = std::find_if(files.begin(), files.end(),
                                   [&](const File& file) { return file.name == entry.file; });
    struct stat st {};
    if (seen == files.end() || ::fstatat(fd_, entry.file.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0 ||
        !IsOurs(st) || st.st_ino != seen->inode || ::unlinkat(fd_, entry.file.c_str(), 0) != 0)
      continue;
    ++removed.files;
    removed.bytes += entry.bytes;
  }
  const EngineCacheCleaned more = MakeRoom(max_bytes, "");
  removed.files += more.files;
  removed.bytes += more.bytes;
  return removed;
}

}  // namespace heddle::offload
