// The public functions of heddle/engine.h.
#include "heddle/engine.h"
#include "offload/cache_folder.h"

namespace heddle {

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
