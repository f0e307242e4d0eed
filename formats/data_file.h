// A file that tensors' contents are read from, at once or when they are needed. It stays open, so
// that another file may take its place; contents read after it was written to are kDataLoss.
//
// Ownership: of the descriptor; lazy contents share the file. Threads: any.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/memory/contents_origin.h"
#include "heddle/status.h"

namespace heddle::formats {

class DataFile : public SourceFile {
 public:
  // kNotFound, kInvalidArgument.
  static Result<std::shared_ptr<const DataFile>> Open(const std::string& path);
  // The file, where it still is the one that `contents` were read from, by its size, beginning and
  // end; null.
  static std::shared_ptr<const DataFile> OpenIfIs(const std::string& path,
                                                  std::string_view contents);
  // Contents in memory, which must outlive the file; `name` stands before messages.
  static std::shared_ptr<const DataFile> OfMemory(std::string name, std::string_view contents);
  ~DataFile() override;
  DataFile(const DataFile&) = delete;
  DataFile& operator=(const DataFile&) = delete;

  const std::string& path() const { return path_; }
  size_t size() const {
    return is_memory() ? memory_.size() : static_cast<size_t>(opened_.st_size);
  }
  // `bytes` from byte `from` on.
  Status Fill(void* to, size_t bytes, size_t from) const;
  // OK if nobody has written to the file since it was opened. Call it after a read.
  Status CheckUnchanged() const;

  Stamp stamp() const override;
  Result<uint64_t> Hash() const override;

 private:
  explicit DataFile(std::string path, std::string_view memory = {})
      : path_(std::move(path)), memory_(memory) {}
  bool is_memory() const { return memory_.data() != nullptr; }

  const std::string path_;
  const std::string_view memory_;  // the contents, where there is no file
  int fd_ = -1;
  struct stat opened_ {};
};

}  // namespace heddle::formats
