// PackedWeights: the file that keeps packed weights (CompileOptions::packed_weights).
//
// The file begins with the identity of the parameters and ends with an index of the copies; both
// are checked against their XXH3 at once, each copy when it is requested. A copy's key contains its
// layout and the layout's version (PackOnce, kernels/gemm/pack_once.h), so a build that packs
// otherwise does not find it and adds its own. All parameters are those of one file. They are the
// same if its stamp is (device, inode, size, times of last change), else if its size and contents
// are.
//
// Large copies are mapped, so that processes with the same file share memory; with small pages that
// costs large models 0 to 4 % of a run's time. Other copies are read.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "core/memory/contents_origin.h"
#include "core/services.h"
#include "heddle/executor.h"

namespace heddle {

// Threads: all methods may be called from any thread. Errors: an unusable file becomes a warning in
// the report, and weights are packed as if there were no file.
class PackedWeights : public PackStore {
 public:
  explicit PackedWeights(std::string path);
  ~PackedWeights() override;

  // kInvalidArgument: the file at `path` is of another kind and must not be overwritten.
  static Status CheckPlace(const std::string& path);

  BufferRef Find(const ContentsOrigin& origin, const std::string& key, MakeRoom room) override;
  void Keep(const ContentsOrigin& origin, const std::string& key, BufferRef packed) override;
  // Rewrites the file if there are copies that it lacks: with its own copies, if they are valid,
  // and the new ones. Does not wait for the disk.
  void Save();
  PackedWeightsReport report() const;

 private:
  class File;
  struct Copy {
    uint64_t at = 0, bytes = 0, hash = 0;  // position, size and checksum in the file
    BufferRef memory;                      // the copy, if it is not in the file yet
  };
  // Whether the file can hold copies of `origin`; opens it at the first request.
  bool Serves(const ContentsOrigin& origin);
  Status Open();
  Status ReadIndex();
  static Result<BufferRef> Read(const File& file, const Copy& copy, MakeRoom room);
  Status Write();
  void Warn(const char* what, const Status& status);

  const std::string path_;
  mutable std::mutex mutex_;
  std::shared_ptr<const SourceFile> source_;  // the file of the parameters
  std::shared_ptr<const File> file_;          // nullptr: there is no valid file
  std::map<std::string, Copy> copies_;        // by part of the source, and key
  bool unsaved_ = false;
  PackedWeightsReport report_;
};

}  // namespace heddle
