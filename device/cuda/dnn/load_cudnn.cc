#include <dlfcn.h>

#include "device/cuda/dnn/cudnn.h"

namespace heddle::HEDDLE_GRID {

// Loaded instead of linked: a program built with cuDNN's headers also starts where it is not
// installed, and one that opens no card does not load its hundreds of megabytes.
Result<CudnnApi> LoadCudnn() {
  void* const library = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return NotFound("cuDNN: ", dlerror());
  CudnnApi api;
  const char* missing = nullptr;
  const auto find = [&](const char* name, auto* function) {
    *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(dlsym(library, name));
    if (*function == nullptr) missing = name;
  };
  find("cudnnGetVersion", &api.version);
  find("cudnnGetErrorString", &api.error);
  find("cudnnCreate", &api.create);
  find("cudnnDestroy", &api.destroy);
  find("cudnnSetStream", &api.set_stream);
  find("cudnnBackendCreateDescriptor", &api.create_descriptor);
  find("cudnnBackendDestroyDescriptor", &api.destroy_descriptor);
  find("cudnnBackendSetAttribute", &api.set);
  find("cudnnBackendGetAttribute", &api.get);
  find("cudnnBackendFinalize", &api.finalize);
  find("cudnnBackendExecute", &api.execute);
  if (missing != nullptr) return NotFound("cuDNN: libcudnn.so.9 has no ", missing);
  return api;
}

}  // namespace heddle::HEDDLE_GRID
