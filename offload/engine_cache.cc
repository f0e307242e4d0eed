// The public functions of heddle/engine.h.
#include "heddle/engine.h"
#include "offload/cache_folder.h"
#include "offload/module_cache.h"

namespace heddle {

std::shared_ptr<EngineCache> EngineCache::InMemory() { return OnDisk("", 0); }

std::shared_ptr<EngineCache> EngineCache::OnDisk(std::string directory, int64_t max_bytes) {
  return std::shared_ptr<EngineCache>(
      new EngineCache(std::make_shared<offload::ModuleCache>(std::move(directory), max_bytes)));
}

EngineCacheStats EngineCache::stats() const { return impl_->stats(); }

Result<EngineCacheContents> ListEngineCache(const std::string& directory) {
  HEDDLE_ASSIGN_OR_RETURN(auto folder,
                          offload::CacheFolder::Open(directory, offload::CacheFolder::Make::kNo));
  return folder.List();
}

Result<EngineCacheCleaned> CleanEngineCache(const std::string& directory, int64_t max_bytes) {
  HEDDLE_ASSIGN_OR_RETURN(auto folder,
                          offload::CacheFolder::Open(directory, offload::CacheFolder::Make::kNo));
  return folder.Clean(max_bytes);
}

}  // namespace heddle
