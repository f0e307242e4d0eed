#include "engines/openvino/openvino_c.h"

#include <dlfcn.h>
#include <link.h>

#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

#include "heddle/heddle_engine.h"

namespace heddle_openvino {
namespace {

// Where libopenvino.so of the process was loaded from; empty: there is none.
std::string LoadedFolder() {
  std::string folder;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* to) {
        const std::string path = info->dlpi_name != nullptr ? info->dlpi_name : "";
        const size_t slash = path.rfind('/');
        if (slash != std::string::npos && path.compare(slash + 1, 15, "libopenvino.so.") == 0)
          *static_cast<std::string*>(to) = path.substr(0, slash);
        return 0;
      },
      &folder);
  return folder;
}

template <typename Fn>
bool Find(void* library, const char* name, Fn** to, std::string* missing) {
  const std::string symbol = std::string("ov_") + name;
  *to = reinterpret_cast<Fn*>(dlsym(library, symbol.c_str()));
  if (*to == nullptr && missing->empty()) *missing = symbol;
  return *to != nullptr;
}

bool HasSize(const OpenvinoC& c, int type, size_t bytes) {
  int64_t one = 1;
  OvShape shape = {1, &one};
  OvTensor* tensor = nullptr;
  if (c.tensor_create(type, shape, &tensor) != 0) return false;
  size_t size = 0;
  const bool same = c.tensor_get_byte_size(tensor, &size) == 0 && size == bytes;
  c.tensor_free(tensor);
  return same;
}

// The numbers of element types moved between versions, their order did not: bool, bf16, f16, f32,
// f64, i4, i8, i16, i32, i64.
int FindBoolType(const OpenvinoC& c) {
  constexpr std::pair<int, size_t> kSizes[] = {{0, 1}, {3, 4}, {4, 8}, {6, 1},
                                               {7, 2}, {8, 4}, {9, 8}};
  for (int first = 0; first < 4; ++first) {
    bool all = true;
    for (const auto& [at, bytes] : kSizes) all = all && HasSize(c, first + at, bytes);
    if (all) return first;
  }
  return -1;
}

constexpr std::pair<int32_t, int> kPlaces[] = {
    {HEDDLE_ENGINE_BOOL, 0}, {HEDDLE_ENGINE_F32, 3}, {HEDDLE_ENGINE_F64, 4}, {HEDDLE_ENGINE_I8, 6},
    {HEDDLE_ENGINE_I16, 7},  {HEDDLE_ENGINE_I32, 8}, {HEDDLE_ENGINE_I64, 9},
};

}  // namespace

std::string OpenLibrary(const std::string& path, OpenvinoC* c) {
  std::error_code error;
  const std::filesystem::path file = std::filesystem::canonical(path, error);
  if (error) return path + ": there is no such file";
  const std::string other = LoadedFolder();
  if (!other.empty() && !std::filesystem::equivalent(other, file.parent_path(), error))
    return path + ": the process has another OpenVINO, of " + other;
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    return path + ": cannot be loaded: " + (why != nullptr ? why : "the loader does not say why");
  }
  std::string missing;
#define HEDDLE_FIND(name) Find(library, #name, &c->name, &missing)
  HEDDLE_FIND(get_openvino_version);
  HEDDLE_FIND(version_free);
  HEDDLE_FIND(get_error_info);
  HEDDLE_FIND(get_last_err_msg);
  HEDDLE_FIND(free);
  HEDDLE_FIND(core_create);
  HEDDLE_FIND(core_free);
  HEDDLE_FIND(core_get_property);
  HEDDLE_FIND(core_set_properties);
  HEDDLE_FIND(core_read_model_from_memory_buffer);
  HEDDLE_FIND(model_reshape_by_port_indexes);
  HEDDLE_FIND(model_free);
  HEDDLE_FIND(core_compile_model_props);
  HEDDLE_FIND(core_import_model);
  HEDDLE_FIND(compiled_model_export_model);
  HEDDLE_FIND(compiled_model_inputs_size);
  HEDDLE_FIND(compiled_model_outputs_size);
  HEDDLE_FIND(compiled_model_create_infer_request);
  HEDDLE_FIND(compiled_model_free);
  HEDDLE_FIND(infer_request_set_input_tensor_by_index);
  HEDDLE_FIND(infer_request_get_output_tensor_by_index);
  HEDDLE_FIND(infer_request_infer);
  HEDDLE_FIND(infer_request_free);
  HEDDLE_FIND(tensor_create);
  HEDDLE_FIND(tensor_create_from_host_ptr);
  HEDDLE_FIND(tensor_get_shape);
  HEDDLE_FIND(tensor_get_element_type);
  HEDDLE_FIND(tensor_get_byte_size);
  HEDDLE_FIND(tensor_data);
  HEDDLE_FIND(tensor_free);
  HEDDLE_FIND(shape_create);
  HEDDLE_FIND(shape_free);
#undef HEDDLE_FIND
  if (!missing.empty())
    return path + ": is no C library of OpenVINO that the engine knows: it has no " + missing;
  OvVersion version = {nullptr, nullptr};
  if (c->get_openvino_version(&version) != 0 || version.build == nullptr)
    return path + ": does not tell its version";
  c->version = version.build;
  c->version_free(&version);
  c->bool_type = FindBoolType(*c);
  if (c->bool_type < 0) return path + ": numbers its element types in a way of its own";
  return "";
}

int TypeNumber(const OpenvinoC& c, int32_t dtype) {
  for (const auto& [ours, place] : kPlaces)
    if (ours == dtype) return c.bool_type + place;
  return -1;
}

int32_t DtypeOf(const OpenvinoC& c, int number) {
  for (const auto& [ours, place] : kPlaces)
    if (c.bool_type + place == number) return ours;
  return -1;
}

std::string ErrorOf(const OpenvinoC& c, OvStatus status) {
  const char* text = c.get_last_err_msg();
  std::string said = text != nullptr ? text : "";
  const char* word = c.get_error_info(status);
  // The first lines are places in sources; what an operator lacks has a line of its own.
  constexpr const char* kNoRule = "No conversion rule found for operations: ";
  if (const size_t at = said.find(kNoRule); at != std::string::npos) {
    const size_t begin = at + std::strlen(kNoRule);
    return "has no rule for " + said.substr(begin, said.find('\n', begin) - begin);
  }
  std::string best;
  for (size_t begin = 0; begin < said.size();) {
    const size_t end = std::min(said.find('\n', begin), said.size());
    const std::string line = said.substr(begin, end - begin);
    const bool place = line.find(".cpp:") != std::string::npos || line.find("Exception from") == 0;
    if (!place && !line.empty()) best += (best.empty() ? "" : " ") + line;
    begin = end + 1;
  }
  if (best.empty()) best = said;
  return std::string(word != nullptr ? word : "an error") + ": " + best.substr(0, 400);
}

}  // namespace heddle_openvino
