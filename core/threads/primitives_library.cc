#include "core/threads/primitives_library.h"

#ifdef HEDDLE_WITH_ONEDNN

#include <dlfcn.h>
#include <oneapi/dnnl/dnnl_types.h>
#include <oneapi/dnnl/dnnl_version.h>

#include "core/error.h"

namespace heddle {
namespace {

// The name in heddle's Python package, since Paddle may have brought another libdnnl.so.3, and the
// usual one. Both are looked for where the file that holds this code looks for its libraries.
constexpr const char* kFiles[] = {"libheddle_dnnl.so", "libdnnl.so.3"};

const dnnl_version_t* VersionOf(void* library) {
  auto* const version =
      reinterpret_cast<const dnnl_version_t* (*)()>(dlsym(library, "dnnl_version"));
  return version == nullptr ? nullptr : version();
}

// A later version of the same major one has all that heddle was compiled with.
void* Open() {
  for (const char* file : kFiles) {
    void* const library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    const dnnl_version_t* const version = VersionOf(library);
    if (version != nullptr && version->major == DNNL_VERSION_MAJOR &&
        version->minor >= DNNL_VERSION_MINOR)
      return library;
    dlclose(library);
  }
  return nullptr;
}

void* Library() {
  static void* const library = Open();
  return library;
}

}  // namespace

void* FindPrimitive(const char* name) {
  return Library() == nullptr ? nullptr : dlsym(Library(), name);
}

std::string PrimitivesVersion() {
  if (Library() == nullptr) return "";
  const dnnl_version_t* const v = VersionOf(Library());
  return StrCat(v->major, ".", v->minor, ".", v->patch);
}

}  // namespace heddle

#else

namespace heddle {
void* FindPrimitive(const char*) { return nullptr; }
std::string PrimitivesVersion() { return ""; }
}  // namespace heddle

#endif
