// The file of one compiled module, or of what an engine said of a group: a header that says what it
// is the result of, and the bytes that the engine saved, or its answers. Checksums cover all of it.
//
// Ownership: descriptors stay the caller's. Threads: one at a time. Errors: false, or the system's
// number of one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "offload/digest.h"

namespace heddle::offload {

enum class FileKind { kModule, kAnswers };

// The file of a key has this name.
std::string ModuleFileName(const DigestBytes& digest, FileKind kind = FileKind::kModule);
// Of any kind; which one is told by the name alone.
bool IsModuleFile(std::string_view name);
FileKind KindOf(std::string_view name);

// What a line "key text" of `about` says.
std::string LineOf(std::string_view about, std::string_view key);
// `text` without line breaks, so that different ones stay different.
std::string OneLine(std::string_view text);

class ModuleFileWriter {
 public:
  ModuleFileWriter(int fd, const DigestBytes& digest, std::string_view about, int64_t operators);
  ~ModuleFileWriter();
  ModuleFileWriter(const ModuleFileWriter&) = delete;
  ModuleFileWriter& operator=(const ModuleFileWriter&) = delete;

  int Append(const void* bytes, size_t count);
  // Writes the header, and waits for the disk.
  int End();
  int64_t bytes() const;  // of the whole file

 private:
  struct State;
  int Put(const void* bytes, size_t count);
  int Flush();
  const std::unique_ptr<State> state_;
};

class ModuleFileReader {
 public:
  ModuleFileReader(int fd, int64_t bytes) : fd_(fd), bytes_(bytes) {}

  // Reads the header. False: it is damaged, of another version, or does not fit the file's size.
  bool Begin();
  const DigestBytes& digest() const { return digest_; }
  const std::string& about() const { return about_; }
  int64_t operators() const { return operators_; }
  size_t payload_bytes() const { return payload_bytes_; }
  // Reads what the engine saved to `to`, or only looks at it where that is null. False: it is
  // damaged.
  bool Payload(void* to) const;

 private:
  const int fd_;
  const int64_t bytes_;
  DigestBytes digest_ = {};
  std::string about_;
  int64_t operators_ = 0;
  size_t payload_bytes_ = 0;
  uint64_t payload_hash_[2] = {};
};

}  // namespace heddle::offload
