// A file that tensors' contents are read from, at once or when they are needed. It stays open, so
// that another file may take its place; contents read after it was written to are kDataLoss.
//
// Ownership: of the descriptor; lazy contents share the file. Threads: any.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <string>

#include "core/contents_origin.h"
#include "heddle/status.h"

namespace heddle::formats {

class DataFile : public SourceFile {
 public:
  // kNotFound, kInvalidArgument.
  static Result<std::shared_ptr<const DataFile>> Open(const std::string& path);
  ~DataFile() override;
  DataFile(const DataFile&) = delete;
  DataFile& operator=(const DataFile&) = delete;

  const std::string& path() const { return path_; }
  size_t size() const { return static_cast<size_t>(opened_.st_size); }
  // `bytes` from byte `from` on.
  Status Fill(void* to, size_t bytes, size_t from) const;
  // OK if nobody has written to the file since it was opened. Call it after a read.
  Status CheckUnchanged() const;

  Stamp stamp() const override;
  Result<uint64_t> Hash() const override;

 private:
  explicit DataFile(std::string path) : path_(std::move(path)) {}

  const std::string path_;
  int fd_ = -1;
  struct stat opened_ {};
};

}  // namespace heddle::formats
