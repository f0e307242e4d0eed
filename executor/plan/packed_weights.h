// PackedWeights: the file that keeps packed weights (CompileOptions::packed_weights).
//
// A first part says for which parameters the rest holds, an index at the end where each copy is;
// both, and each copy when it is asked for, are checked against their XXH3. A copy's key names its
// layout and the version of that (PackOnce, kernels/gemm/pack_once.h): builds that pack otherwise
// do not find it, and add their own. The parameters are those of one file. They are the same when
// its stamp is (device, inode, size, times of last change), else when its size and contents are.
//
// Large copies are mapped, so that processes with the same file share their pages; these are small
// ones, which costs large models 0 to 4 % of a run's time. Others are read.
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

// Threads: all methods may be called from any thread. Errors: a file that cannot be used is a
// warning in the report, and weights are packed as if there were none.
class PackedWeights : public PackStore {
 public:
  explicit PackedWeights(std::string path);
  ~PackedWeights() override;

  // kInvalidArgument: there is a file at `path` that holds something else, which is not to be lost.
  static Status CheckPlace(const std::string& path);

  BufferRef Find(const ContentsOrigin& origin, const std::string& key, MakeRoom room) override;
  void Keep(const ContentsOrigin& origin, const std::string& key, BufferRef packed) override;
  // Replaces the file, where something was kept that it does not hold: what it held so far, if that
  // is of use, and what is new. Does not wait for the disk.
  void Save();
  PackedWeightsReport report() const;

 private:
  class File;
  struct Copy {
    uint64_t at = 0, bytes = 0, hash = 0;  // in the file
    BufferRef memory;                      // where it was not in the file so far
  };
  // Whether copies from `origin` can be here; opens the file for the first that is asked for.
  bool Serves(const ContentsOrigin& origin);
  Status Open();
  Status ReadIndex();
  static Result<BufferRef> Read(const File& file, const Copy& copy, MakeRoom room);
  Status Write();
  void Warn(const char* what, const Status& status);

  const std::string path_;
  mutable std::mutex mutex_;
  std::shared_ptr<const SourceFile> source_;  // whose contents are packed here
  std::shared_ptr<const File> file_;          // nullptr: there is none that is of use
  std::map<std::string, Copy> copies_;        // by part of the source and key
  bool unsaved_ = false;
  PackedWeightsReport report_;
};

}  // namespace heddle
