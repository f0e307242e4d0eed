// Groups on OpenVINO, by its C library: a group's ONNX model is compiled for the processor, one
// request for each module. What the functions of an engine have to do is said in heddle_engine.h.
//
// Options: library, the file of OpenVINO's C library, or folder, that of an installed wheel
// (site-packages/openvino); one of them is needed. Threads and precision are heddle's: as many as
// the settings say, and float32.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "engines/openvino/openvino_c.h"
#include "engines/openvino/takes.h"
#include "heddle/heddle_engine.h"

namespace heddle_openvino {
namespace {

constexpr char kDevice[] = "CPU";

int Say(int status, char* message, size_t room, const std::string& text) {
  std::snprintf(message, room, "%s", text.c_str());
  return status;
}

struct Openvino {
  OpenvinoC c;
  Core* core = nullptr;
  std::string threads, target, fingerprint;

  ~Openvino() {
    if (core != nullptr) c.core_free(core);
  }
  std::vector<OvProperty> Properties() const {
    return {{"INFERENCE_NUM_THREADS", threads.c_str()},
            {"NUM_STREAMS", "1"},
            {"INFERENCE_PRECISION_HINT", "f32"},
            {"ENABLE_CPU_PINNING", "NO"}};
  }
};

struct Module {
  const Openvino* engine = nullptr;
  CompiledModel* compiled = nullptr;
  Request* request = nullptr;

  ~Module() {
    if (request != nullptr) engine->c.infer_request_free(request);
    if (compiled != nullptr) engine->c.compiled_model_free(compiled);
  }
};

// OpenVINO's C library below `folder`; empty: there is none, or several.
std::string FindLibrary(const std::string& folder) {
  std::string found;
  std::error_code error;
  for (const char* sub : {"libs", "."})
    for (std::filesystem::directory_iterator it(std::filesystem::path(folder) / sub, error), end;
         !error && it != end; it.increment(error)) {
      if (it->path().filename().string().rfind("libopenvino_c.so", 0) != 0) continue;
      if (!found.empty()) return "";
      found = it->path().string();
    }
  return found;
}

std::string PropertyOf(const Openvino& engine, const char* key) {
  char* text = nullptr;
  if (engine.c.core_get_property(engine.core, kDevice, key, &text) != 0 || text == nullptr)
    return "";
  std::string value = text;
  engine.c.free(text);
  return value;
}

int Open(const heddle_engine_settings* settings, void** to, char* message, size_t room) {
  auto engine = std::make_unique<Openvino>();
  std::string library;
  for (size_t i = 0; i < settings->num_options; ++i) {
    const std::string key = settings->keys[i], text = settings->texts[i];
    if (key == "library") {
      library = text;
    } else if (key == "folder") {
      library = FindLibrary(text);
      if (library.empty())
        return Say(HEDDLE_ENGINE_FAILED, message, room,
                   text + ": has no file libopenvino_c.so.* in it or its folder libs, or several");
    } else {
      return Say(HEDDLE_ENGINE_FAILED, message, room,
                 "there are the options library and folder, and not " + key);
    }
  }
  if (library.find('/') == std::string::npos)
    return Say(
        HEDDLE_ENGINE_FAILED, message, room,
        "needs the option library, OpenVINO's libopenvino_c.so.* with its folder, or folder, "
        "that of the installed package");
  if (const std::string why = OpenLibrary(library, &engine->c); !why.empty())
    return Say(HEDDLE_ENGINE_FAILED, message, room, why);
  engine->threads = std::to_string(settings->threads);
  const OpenvinoC& c = engine->c;
  if (const OvStatus status = c.core_create(&engine->core); status != 0)
    return Say(HEDDLE_ENGINE_FAILED, message, room, ErrorOf(c, status));
  // A restored model has the properties of the core that restores it.
  const auto properties = engine->Properties();
  if (const OvStatus status =
          c.core_set_properties(engine->core, kDevice, properties.size(), properties.data());
      status != 0)
    return Say(HEDDLE_ENGINE_FAILED, message, room, ErrorOf(c, status));
  engine->target = TargetText();
  engine->fingerprint = "openvino " + c.version + ", threads " + engine->threads + ", f32, " +
                        PropertyOf(*engine, "FULL_DEVICE_NAME") + ", " +
                        PropertyOf(*engine, "OPTIMIZATION_CAPABILITIES");
  *to = engine.release();
  return HEDDLE_ENGINE_OK;
}

// Null, and why: OpenVINO does not read it.
Model* Read(const Openvino& engine, const heddle_engine_group& group, std::string* why) {
  if (group.onnx == nullptr) {
    *why = "it is not given as ONNX";
    return nullptr;
  }
  Model* model = nullptr;
  const OvStatus status = engine.c.core_read_model_from_memory_buffer(
      engine.core, static_cast<const char*>(group.onnx), group.onnx_bytes, nullptr, &model);
  if (status == 0) return model;
  *why = ErrorOf(engine.c, status);
  return nullptr;
}

int Takes(void* engine, const heddle_engine_group* group, char* message, size_t room) {
  const auto& self = *static_cast<const Openvino*>(engine);
  std::string why = WhyNot(*group);
  if (!why.empty()) return Say(HEDDLE_ENGINE_REFUSED, message, room, why);
  Model* const model = Read(self, *group, &why);
  if (model == nullptr) return Say(HEDDLE_ENGINE_REFUSED, message, room, why);
  self.c.model_free(model);
  return HEDDLE_ENGINE_OK;
}

// The module's tensors are as the group declares them. Not empty: why not.
std::string Describe(const heddle_engine_group& group, Module* module) {
  const OpenvinoC& c = module->engine->c;
  size_t inputs = 0, outputs = 0;
  if (c.compiled_model_inputs_size(module->compiled, &inputs) != 0 ||
      c.compiled_model_outputs_size(module->compiled, &outputs) != 0 ||
      inputs != group.num_inputs || outputs != group.num_outputs)
    return "has " + std::to_string(inputs) + " inputs and " + std::to_string(outputs) +
           " outputs where the group has " + std::to_string(group.num_inputs) + " and " +
           std::to_string(group.num_outputs);
  for (size_t k = 0; k < group.num_inputs; ++k)
    if (TypeNumber(c, group.values[group.inputs[k]]->dtype) < 0)
      return std::string("input '") + group.values[group.inputs[k]]->name +
             "' is of an element type that is not handed over";
  const OvStatus status = c.compiled_model_create_infer_request(module->compiled, &module->request);
  return status == 0 ? "" : ErrorOf(c, status);
}

std::string SetInput(const Module& module, size_t k, int32_t dtype, int32_t rank,
                     const int64_t* dims, const void* data) {
  const OpenvinoC& c = module.engine->c;
  static const int64_t nothing = 0;  // for tensors without elements, which may have no memory
  OvShape shape = {rank, const_cast<int64_t*>(rank > 0 ? dims : &nothing)};
  OvTensor* tensor = nullptr;
  // OpenVINO does not write to inputs.
  OvStatus status = c.tensor_create_from_host_ptr(
      TypeNumber(c, dtype), shape, const_cast<void*>(data != nullptr ? data : &nothing), &tensor);
  if (status != 0) return ErrorOf(c, status);
  status = c.infer_request_set_input_tensor_by_index(module.request, k, tensor);
  std::string why = status == 0 ? "" : ErrorOf(c, status);
  c.tensor_free(tensor);
  return why;
}

// The first run makes code and packs weights: it is made here, where all shapes are known.
std::string WarmUp(const heddle_engine_group& group, const Module& module) {
  std::vector<std::vector<char>> zeros;
  for (size_t k = 0; k < group.num_inputs; ++k) {
    const heddle_engine_value& v = *group.values[group.inputs[k]];
    if (v.rank < 0) return "";
    size_t elements = 1;
    for (int32_t i = 0; i < v.rank; ++i) {
      if (v.dims[i] < 0) return "";
      elements *= static_cast<size_t>(v.dims[i]);
    }
    zeros.emplace_back(std::max<size_t>(8 * elements, 8), '\0');
    const std::string why = SetInput(module, k, v.dtype, v.rank, v.dims, zeros.back().data());
    if (!why.empty()) return why;
  }
  const OvStatus status = module.engine->c.infer_request_infer(module.request);
  return status == 0 ? "" : ErrorOf(module.engine->c, status);
}

std::string Make(const Openvino& engine, const heddle_engine_group& group, Module* module) {
  module->engine = &engine;
  std::string why;
  if (group.num_inputs == 0) return "it has no inputs, and its results are constants";
  Model* const model = Read(engine, group, &why);
  if (model == nullptr) return why;
  const auto properties = engine.Properties();
  const OvStatus status = engine.c.core_compile_model_props(
      engine.core, model, kDevice, properties.size(), properties.data(), &module->compiled);
  if (status != 0) why = ErrorOf(engine.c, status);
  engine.c.model_free(model);
  if (why.empty()) why = Describe(group, module);
  if (why.empty()) why = WarmUp(group, *module);
  return why;
}

int Compile(void* engine, const heddle_engine_group* const* groups,
            heddle_engine_compiled* const* compiled, size_t count, char*, size_t) {
  for (size_t k = 0; k < count; ++k) {
    auto module = std::make_unique<Module>();
    const std::string why = Make(*static_cast<const Openvino*>(engine), *groups[k], module.get());
    if (!why.empty()) {
      compiled[k]->status =
          Say(HEDDLE_ENGINE_REFUSED, compiled[k]->message, compiled[k]->room, why);
      continue;
    }
    compiled[k]->status = HEDDLE_ENGINE_OK;
    compiled[k]->module = module.release();
  }
  return HEDDLE_ENGINE_OK;
}

// Copies output `k` to where the run wants it.
std::string GiveOutput(const Module& module, const heddle_engine_run& run, size_t k) {
  const OpenvinoC& c = module.engine->c;
  OvTensor* tensor = nullptr;
  if (const OvStatus status =
          c.infer_request_get_output_tensor_by_index(module.request, k, &tensor);
      status != 0)
    return ErrorOf(c, status);
  OvShape shape = {0, nullptr};
  int type = 0;
  size_t bytes = 0;
  void* data = nullptr;
  OvStatus status = c.tensor_get_element_type(tensor, &type);
  if (status == 0) status = c.tensor_get_byte_size(tensor, &bytes);
  // OpenVINO's C library makes no shape of rank 0, and calls the tensor's an argument that is
  // wrong.
  constexpr OvStatus kInvalidArgument = -14;
  if (status == 0) status = c.tensor_get_shape(tensor, &shape);
  if (status == kInvalidArgument && bytes > 0 && bytes <= 8) {
    shape = {0, nullptr};
    status = 0;
  }
  if (status == 0 && bytes > 0) status = c.tensor_data(tensor, &data);
  std::string why = status == 0 ? "" : ErrorOf(c, status);
  if (why.empty()) {
    void* const to =
        run.output(run.host, k, DtypeOf(c, type), static_cast<int32_t>(shape.rank), shape.dims);
    if (to == nullptr)
      why = "there is no such output";
    else if (bytes > 0)
      std::memcpy(to, data, bytes);
  }
  if (shape.dims != nullptr) c.shape_free(&shape);
  c.tensor_free(tensor);
  return why;
}

int Run(void* module, const heddle_engine_run* run, char* message, size_t room) {
  const auto& self = *static_cast<const Module*>(module);
  std::string why;
  for (size_t k = 0; k < run->num_inputs && why.empty(); ++k) {
    const heddle_engine_tensor& t = *run->inputs[k];
    why = SetInput(self, k, t.dtype, t.rank, t.dims, t.data);
  }
  if (why.empty())
    if (const OvStatus status = self.engine->c.infer_request_infer(self.request); status != 0)
      why = ErrorOf(self.engine->c, status);
  for (size_t k = 0; k < run->num_outputs && why.empty(); ++k) why = GiveOutput(self, *run, k);
  return why.empty() ? int{HEDDLE_ENGINE_OK} : Say(HEDDLE_ENGINE_FAILED, message, room, why);
}

// ---- saved modules -----------------------------------------------------------------------------

// Memory with a name in the file system, since OpenVINO writes to files alone.
class MemoryFile {
 public:
  MemoryFile() : fd_(memfd_create("heddle_openvino", MFD_CLOEXEC)) {}
  ~MemoryFile() {
    if (fd_ >= 0) close(fd_);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }
  bool ok() const { return fd_ >= 0; }
  // Gives the contents to `write`; its status.
  int Give(void* host, int (*write)(void*, const void*, size_t)) const {
    std::vector<char> part(1 << 20);
    off_t at = 0;
    for (ssize_t n; (n = pread(fd_, part.data(), part.size(), at)) > 0; at += n)
      if (const int status = write(host, part.data(), static_cast<size_t>(n));
          status != HEDDLE_ENGINE_OK)
        return status;
    return HEDDLE_ENGINE_OK;
  }

 private:
  const int fd_;
};

int Save(void* module, void* host, int (*write)(void*, const void*, size_t), char* message,
         size_t room) {
  const auto& self = *static_cast<const Module*>(module);
  const MemoryFile file;
  if (!file.ok())
    return Say(HEDDLE_ENGINE_FAILED, message, room, "there is no memory for a saved module");
  const OvStatus status =
      self.engine->c.compiled_model_export_model(self.compiled, file.path().c_str());
  if (status != 0) return Say(HEDDLE_ENGINE_FAILED, message, room, ErrorOf(self.engine->c, status));
  return file.Give(host, write);
}

int Restore(void* engine, const heddle_engine_group* group, const void* bytes, size_t count,
            void** to, char* message, size_t room) {
  const auto& self = *static_cast<const Openvino*>(engine);
  auto module = std::make_unique<Module>();
  module->engine = &self;
  const OvStatus status = self.c.core_import_model(self.core, static_cast<const char*>(bytes),
                                                   count, kDevice, &module->compiled);
  std::string why = status == 0 ? Describe(*group, module.get()) : ErrorOf(self.c, status);
  if (why.empty()) why = WarmUp(*group, *module);
  if (!why.empty()) return Say(HEDDLE_ENGINE_FAILED, message, room, why);
  *to = module.release();
  return HEDDLE_ENGINE_OK;
}

const heddle_engine_table kTable = {
    sizeof(heddle_engine_table),
    HEDDLE_ENGINE_VERSION,
    HEDDLE_ENGINE_WANTS_ONNX,
    "openvino",
    Open,
    [](void* engine) { return static_cast<const Openvino*>(engine)->target.c_str(); },
    Takes,
    Compile,
    Run,
    [](void* module) { delete static_cast<Module*>(module); },
    [](void* engine) { delete static_cast<Openvino*>(engine); },
    [](void* engine) { return static_cast<const Openvino*>(engine)->fingerprint.c_str(); },
    Save,
    Restore,
};

}  // namespace
}  // namespace heddle_openvino

extern "C" __attribute__((visibility("default"))) const heddle_engine_table* heddle_engine_get(
    uint32_t) {
  return &heddle_openvino::kTable;
}
