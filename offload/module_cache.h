// Modules that are compiled once, whoever asks for them: what is behind heddle::EngineCache.
//
// Ownership: knows modules without keeping them alive. Threads: any; what is being compiled is
// waited for. Errors: those of engines; the folder's are warnings.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/thread_annotations.h"
#include "heddle/engine.h"
#include "offload/cache_folder.h"
#include "offload/engine_library.h"
#include "offload/group.h"
#include "offload/refused.h"

namespace heddle::offload {

class ModuleCache : public std::enable_shared_from_this<ModuleCache> {
 public:
  // No directory: in memory alone.
  ModuleCache(std::string directory, int64_t max_bytes)
      : directory_(std::move(directory)), max_bytes_(max_bytes) {}
  ModuleCache(const ModuleCache&) = delete;
  ModuleCache& operator=(const ModuleCache&) = delete;

  struct Made {
    Result<std::shared_ptr<Module>> module;
    const char* from = "";  // "hit in memory", "hit on disk", "compiled"
  };
  // The modules of all groups that a target has, those that have to be compiled in one call.
  // `target_file`: the text of its file. `warning` is set where the folder is not used as it should
  // be.
  std::vector<Made> Get(EngineLibrary& library, const std::string& target,
                        const std::string& target_file,
                        const std::vector<std::shared_ptr<const Group>>& groups,
                        std::string* warning) HEDDLE_EXCLUDES(mutex_);

  // Which operators of the group the engine does not take, as it has said before, or says now. What
  // it says is kept on disk alone.
  Refusals Refused(EngineLibrary& library, const std::string& target,
                   const std::string& target_file, const Group& group) HEDDLE_EXCLUDES(mutex_);

  EngineCacheStats stats() const HEDDLE_EXCLUDES(mutex_);

 private:
  // What one caller makes and others wait for.
  struct Making {
    bool done = false;
    Result<std::shared_ptr<Module>> module = Status(StatusCode::kInternal, "it was given up");
  };
  struct Wanted;
  class Batch;

  bool FindInMemory(Wanted* wanted) HEDDLE_REQUIRES(mutex_);
  void Publish(const Wanted& wanted) HEDDLE_REQUIRES(mutex_);
  void DropUnused() HEDDLE_REQUIRES(mutex_);
  // Writes what the engine did not save before its first run. Errors leave the folder as it is.
  void StoreAfterRun(const Module& module, const ModuleKey& key) HEDDLE_EXCLUDES(mutex_);

  const std::string directory_;
  const int64_t max_bytes_;
  mutable Mutex mutex_;
  CondVar made_;
  std::unordered_map<std::string, std::weak_ptr<Module>> modules_ HEDDLE_GUARDED_BY(mutex_);
  std::unordered_map<std::string, std::shared_ptr<Making>> making_ HEDDLE_GUARDED_BY(mutex_);
  size_t drop_at_ HEDDLE_GUARDED_BY(mutex_) = 64;
  EngineCacheStats stats_ HEDDLE_GUARDED_BY(mutex_);
};

// Which operators of the group the offloader's engine does not take. No `cache`: it is asked.
Refusals RefusedBy(const Offloader& offloader, const Group& group, EngineCache* cache);

}  // namespace heddle::offload
