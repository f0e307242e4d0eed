// Compiled modules as files of one folder, which many processes use at once.
//
// A module is a file that is named after its key. It is written aside, flushed and renamed, so that
// a name always stands for a whole file, and it is believed only where its key, its sizes and its
// checksums are right. A lock (flock on a file of the folder, which the system lets go of with its
// process) is held while files get or lose their names, never while modules are read, compiled or
// written. A file that is being written is locked by its writer: one that nobody locks was left
// behind by a process that was killed.
//
// Only regular files of this user, with one name and the names that are given here, are read or
// removed; links are not followed. The folder has to be this user's alone to write to, since
// modules may be code. What engines said they take lies there likewise, as answers.
//
// Ownership: of descriptors. Threads: one at a time for an object; any number of objects and
// processes for a folder. Errors: as values; none of them leaves a file that would be believed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/engine.h"
#include "heddle/status.h"
#include "heddle/tensor.h"
#include "offload/digest.h"
#include "offload/module_file.h"

namespace heddle::offload {

// What a module is the result of.
struct ModuleKey {
  DigestBytes digest = {};  // of `about` and of the group
  std::string about;        // who compiled it and how, one thing a line: "engine reference"
  FileKind kind = FileKind::kModule;
};

class CacheFolder {
 public:
  enum class Make { kNo, kYes };
  // kNotFound, kInvalidArgument: the folder cannot be used, and why.
  static Result<CacheFolder> Open(const std::string& path, Make make);
  CacheFolder(CacheFolder&& other) noexcept;
  CacheFolder& operator=(CacheFolder&&) = delete;
  ~CacheFolder();

  // The module's bytes, aligned to 64; empty: there is no such file, or none to be believed.
  struct Found {
    BufferRef bytes;
    size_t count = 0;
    bool damaged = false;
  };
  Found Read(const ModuleKey& key);

  // Writes a module's file: `save` is given a function that takes its bytes, and that says false
  // where no more can be written. Removes others, least recently used ones first, so that all
  // together have at most `max_bytes`. kOutOfRange: this one alone has more; kResourceExhausted,
  // kDataLoss: the folder takes nothing; whatever `save` returns.
  using Sink = std::function<bool(const void*, size_t)>;
  Status Write(const ModuleKey& key, int64_t operators, int64_t max_bytes,
               const std::function<Status(const Sink&)>& save);

  // Most recently used ones first; reads all of each.
  EngineCacheContents List();
  // Removes what is damaged or was left behind, then least recently used files until the others
  // have at most `max_bytes`.
  Result<EngineCacheCleaned> Clean(int64_t max_bytes);

 private:
  struct File {
    std::string name;
    int64_t bytes = 0, used_s = 0, used_ns = 0;
    uint64_t inode = 0;
  };
  class Lock;
  class Aside;

  CacheFolder(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  Status Fail(const char* what, int error) const;
  Result<int> OpenFile(const std::string& name, int64_t* bytes) const;
  // The files whose name `is_one` knows, least recently used ones first.
  std::vector<File> Files(bool (*is_one)(std::string_view name), int64_t* others = nullptr) const;
  EngineCacheCleaned RemoveLeftBehind();
  // Removes files until the others have at most `max_bytes`. Returns how many and their bytes.
  EngineCacheCleaned MakeRoom(int64_t max_bytes, const std::string& but);

  std::string path_;
  int fd_;
};

}  // namespace heddle::offload
