// Groups on OpenVINO, by its C library: a group's ONNX model is compiled for the processor.
// heddle_engine.h says what the functions of an engine have to do.
//
// Options: library, the file of OpenVINO's C library, or folder, that of an installed wheel
// (site-packages/openvino); one of them is needed. Threads and precision are heddle's: as many as
// the settings say, and float32.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "engines/openvino/module.h"
#include "engines/openvino/takes.h"
#include "heddle/heddle_engine.h"

namespace heddle_openvino {
namespace {

int Say(int status, char* message, size_t room, const std::string& text) {
  std::snprintf(message, room, "%s", text.c_str());
  return status;
}

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

int Takes(void* engine, const heddle_engine_group* group, char* message, size_t room) {
  const auto& self = *static_cast<const Openvino*>(engine);
  std::string why = WhyNot(*group);
  if (!why.empty()) return Say(HEDDLE_ENGINE_REFUSED, message, room, why);
  if (Read(self, group->onnx, group->onnx_bytes, &why) == nullptr)
    return Say(HEDDLE_ENGINE_REFUSED, message, room, why);
  return HEDDLE_ENGINE_OK;
}

int Compile(void* engine, const heddle_engine_group* const* groups,
            heddle_engine_compiled* const* compiled, size_t count, char*, size_t) {
  for (size_t k = 0; k < count; ++k) {
    std::string why;
    auto module = Module::Compile(*static_cast<const Openvino*>(engine), *groups[k], &why);
    if (module == nullptr) {
      compiled[k]->status =
          Say(HEDDLE_ENGINE_REFUSED, compiled[k]->message, compiled[k]->room, why);
      continue;
    }
    compiled[k]->status = HEDDLE_ENGINE_OK;
    compiled[k]->module = module.release();
  }
  return HEDDLE_ENGINE_OK;
}

int Run(void* module, const heddle_engine_run* run, char* message, size_t room) {
  std::string why;
  const int status = static_cast<Module*>(module)->Run(*run, &why);
  return status == HEDDLE_ENGINE_OK ? status : Say(status, message, room, why);
}

int Save(void* module, void* host, int (*write)(void*, const void*, size_t), char* message,
         size_t room) {
  std::string why;
  const int status = static_cast<const Module*>(module)->Save(host, write, &why);
  return status == HEDDLE_ENGINE_OK ? status : Say(status, message, room, why);
}

int Restore(void* engine, const heddle_engine_group* group, const void* bytes, size_t count,
            void** to, char* message, size_t room) {
  std::string why;
  auto module = Module::Restore(*static_cast<const Openvino*>(engine), *group, bytes, count, &why);
  if (module == nullptr) return Say(HEDDLE_ENGINE_FAILED, message, room, why);
  *to = module.release();
  return HEDDLE_ENGINE_OK;
}

const heddle_engine_table kTable = {
    sizeof(heddle_engine_table),
    HEDDLE_ENGINE_VERSION,
    HEDDLE_ENGINE_WANTS_ONNX | HEDDLE_ENGINE_SAVES_LATER | HEDDLE_ENGINE_TAKES_MANY |
        HEDDLE_ENGINE_RESTORES_ALONE | HEDDLE_ENGINE_KEEPS_SAVED,
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
    /*more_flags=*/nullptr,
    /*open_name=*/nullptr,
};

}  // namespace
}  // namespace heddle_openvino

extern "C" __attribute__((visibility("default"))) const heddle_engine_table* heddle_engine_get(
    uint32_t) {
  return &heddle_openvino::kTable;
}
