#include "offload/engine_library.h"

#include <dlfcn.h>

#include <array>
#include <filesystem>
#include <system_error>

#include "core/interrupts.h"
#include "offload/engine_call.h"
#include "offload/engine_table.h"
#include "offload/group_description.h"

namespace heddle::offload {

// ---- EngineLibrary -----------------------------------------------------------------------------

Result<std::shared_ptr<EngineLibrary>> EngineLibrary::Load(const std::string& path,
                                                           const EngineOptions& options) {
  // The loader looks for a bare name in folders that the environment names.
  if (path.find('/') == std::string::npos)
    return InvalidArgument("'", path, "': name the engine's library with its folder, as in ./",
                           path);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return NotFound(path, ": there is no such engine");
  // Never closed: threads and tables of an engine may outlive what it made.
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    return InvalidArgument(path, ": cannot be loaded as an engine: ",
                           why != nullptr ? why : "the loader does not say why");
  }
  const auto get = reinterpret_cast<heddle_engine_get_function>(dlsym(library, HEDDLE_ENGINE_GET));
  if (get == nullptr)
    return InvalidArgument(path, ": is no engine: it exports no function " HEDDLE_ENGINE_GET);
  const heddle_engine_table* table = nullptr;
  HEDDLE_RETURN_IF_ERROR(Guarded(path, HEDDLE_ENGINE_GET, [&](char*, size_t) {
    table = get(HEDDLE_ENGINE_VERSION);
    return HEDDLE_ENGINE_OK;
  }));
  return Open(table, path, options);
}

Result<std::shared_ptr<EngineLibrary>> EngineLibrary::Open(const heddle_engine_table* table,
                                                           const std::string& where,
                                                           const EngineOptions& options) {
  if (const std::string why = WhyNoEngine(table); !why.empty())
    return InvalidArgument(where, ": ", why);
  if (options.threads < 1)
    return InvalidArgument(where, ": an engine needs a thread, and is given ", options.threads);
  std::shared_ptr<EngineLibrary> library(new EngineLibrary(table, table->name, options));
  HEDDLE_RETURN_IF_ERROR(library->Start());
  return library;
}

Status EngineLibrary::Start() {
  std::vector<const char*> keys, texts;
  for (const auto& [key, text] : options_.options) {
    keys.push_back(key.c_str());
    texts.push_back(text.c_str());
  }
  heddle_engine_settings settings = {};
  settings.size = sizeof settings;
  settings.version = HEDDLE_ENGINE_VERSION;
  settings.threads = options_.threads;
  settings.num_options = keys.size();
  settings.keys = keys.data();
  settings.texts = texts.data();
  settings.host = this;
  settings.stopped = [](void* host) { return static_cast<EngineLibrary*>(host)->Stops() ? 1 : 0; };
  const Status open = Call("open", "to open", [&](char* message, size_t room) {
    return table_->open(&settings, &engine_, message, room);
  });
  if (open.code() == StatusCode::kUnimplemented)
    return Status(StatusCode::kInvalidArgument, open.message());
  HEDDLE_RETURN_IF_ERROR(open);
  open_ = true;
  flags_ = table_->flags;
  if (HEDDLE_HAS(table_, open_name))
    HEDDLE_RETURN_IF_ERROR(Guarded(name_, "open_name", [&](char*, size_t) {
      if (const char* const name = table_->open_name(engine_); name != nullptr) name_ = name;
      return HEDDLE_ENGINE_OK;
    }));
  if (!HEDDLE_HAS(table_, more_flags)) return Status::Ok();
  HEDDLE_RETURN_IF_ERROR(Guarded(name_, "more_flags", [&](char*, size_t) {
    flags_ |= table_->more_flags(engine_);
    return HEDDLE_ENGINE_OK;
  }));
  const std::string unknown = UnknownFlags(flags_);
  return unknown.empty() ? Status::Ok() : InvalidArgument(name_, ": ", unknown);
}

bool EngineLibrary::Stops() {
  std::lock_guard lock(stop_mutex_);
  if (!calling_) return false;
  if (stop_.ok() && interrupts_ != nullptr) stop_ = interrupts_->Look();
  if (stop_.ok() && limit().count() > 0 &&
      std::chrono::steady_clock::now() - call_since_ >= limit()) {
    stop_ = Status(StatusCode::kDeadlineExceeded,
                   StrCat("engine ", name_, " has not answered ", calling_, " within ",
                          limit().count(), " ms; it is not asked again"));
    given_up_ = stop_;
  }
  return !stop_.ok();
}

// With `mutex_`.
template <typename Fn>
Status EngineLibrary::Call(const char* what, const char* about, Fn&& fn) {
  {
    std::lock_guard lock(stop_mutex_);
    if (!given_up_.ok()) return given_up_;
    interrupts_ = Interrupts::Current();
    if (interrupts_ != nullptr) HEDDLE_RETURN_IF_ERROR(interrupts_->Look());
    calling_ = what;
    call_since_ = std::chrono::steady_clock::now();
    stop_ = Status::Ok();
  }
  const auto end = [&] {
    std::lock_guard lock(stop_mutex_);
    calling_ = nullptr;
    return !stop_.ok();
  };
  Status status = Guarded(name_, what, about, fn, end);
  (void)end();  // of what threw
  return status.ok() || stop_.ok() ? status : stop_;
}

EngineLibrary::~EngineLibrary() {
  if (!open_) return;
  (void)Guarded(name_, "close", [&](char*, size_t) {
    table_->close(engine_);
    return HEDDLE_ENGINE_OK;
  });
}

bool EngineLibrary::one_run() const {
  return !reentrant() && (flags_ & HEDDLE_ENGINE_ONE_RUN) != 0;
}
bool EngineLibrary::reentrant() const { return (flags_ & HEDDLE_ENGINE_REENTRANT) != 0; }
bool EngineLibrary::wants_onnx() const { return (flags_ & HEDDLE_ENGINE_WANTS_ONNX) != 0; }

bool EngineLibrary::takes_many() const { return (flags_ & HEDDLE_ENGINE_TAKES_MANY) != 0; }
bool EngineLibrary::saves_later() const { return (flags_ & HEDDLE_ENGINE_SAVES_LATER) != 0; }
bool EngineLibrary::restores_alone() const { return (flags_ & HEDDLE_ENGINE_RESTORES_ALONE) != 0; }

std::shared_ptr<GroupDescription> EngineLibrary::Describe(const Group& group) const {
  auto description = Outline(group);
  description->WriteOnnx();
  return description;
}

std::shared_ptr<GroupDescription> EngineLibrary::Outline(const Group& group) const {
  using Onnx = GroupDescription::Onnx;
  return std::make_shared<GroupDescription>(group, wants_onnx() ? Onnx::kOutlined : Onnx::kNone);
}

Result<std::string> EngineLibrary::TargetText() {
  if (!HEDDLE_HAS(table_, target)) return std::string();
  std::lock_guard lock(mutex_);
  const char* text = nullptr;
  HEDDLE_RETURN_IF_ERROR(Guarded(name_, "target", [&](char*, size_t) {
    text = table_->target(engine_);
    return HEDDLE_ENGINE_OK;
  }));
  return std::string(text != nullptr ? text : "");
}

bool EngineLibrary::asks() const { return HEDDLE_HAS(table_, takes); }

Status EngineLibrary::Takes(const GroupDescription& group) {
  std::lock_guard lock(mutex_);
  return Call("takes", "an operator", [&](char* message, size_t room) {
    return table_->takes(engine_, &group.get(), message, room);
  });
}

std::vector<Result<std::shared_ptr<Module>>> EngineLibrary::Compile(
    const std::vector<std::shared_ptr<const GroupDescription>>& groups) {
  std::vector<std::array<char, kMessageRoom>> texts(groups.size());
  std::vector<heddle_engine_compiled> compiled(groups.size());
  std::vector<heddle_engine_compiled*> results;
  std::vector<const heddle_engine_group*> descriptions;
  for (size_t k = 0; k < groups.size(); ++k) {
    texts[k].fill('\0');
    compiled[k] = {sizeof(heddle_engine_compiled), HEDDLE_ENGINE_REFUSED, nullptr, texts[k].data(),
                   kMessageRoom};
    results.push_back(&compiled[k]);
    descriptions.push_back(&groups[k]->get());
  }
  std::lock_guard lock(mutex_);
  const Status all = Call("compile", "the groups", [&](char* message, size_t room) {
    return table_->compile(engine_, descriptions.data(), results.data(), groups.size(), message,
                           room);
  });
  std::vector<Result<std::shared_ptr<Module>>> modules;
  for (size_t k = 0; k < groups.size(); ++k) {
    Status status = all;
    if (status.ok())
      status = StatusOf(name_, "compile", "the group", compiled[k].status, texts[k].data(),
                        kMessageRoom);
    if (status.ok())
      modules.emplace_back(
          std::make_shared<Module>(shared_from_this(), groups[k], compiled[k].module));
    else if (const Status& onnx = groups[k]->onnx_status(); !onnx.ok())
      modules.emplace_back(Status(status.code(), StrCat(status.message(), ": ", onnx.message())));
    else
      modules.emplace_back(std::move(status));
  }
  return modules;
}

Result<std::string> EngineLibrary::Fingerprint() {
  if (!HEDDLE_HAS(table_, fingerprint))
    return Unimplemented("engine ", name_, " does not save what it compiles");
  std::lock_guard lock(mutex_);
  const char* text = nullptr;
  HEDDLE_RETURN_IF_ERROR(Call("fingerprint", "to give a fingerprint", [&](char*, size_t) -> int {
    text = table_->fingerprint(engine_);
    return text != nullptr ? HEDDLE_ENGINE_OK : HEDDLE_ENGINE_REFUSED;
  }));
  return std::string(text);
}

Status EngineLibrary::Save(const Module& module,
                           const std::function<bool(const void*, size_t)>& write) {
  struct Host {
    const std::function<bool(const void*, size_t)>& write;
    bool refused = false;  // an engine may go on all the same
  } host{write};
  std::lock_guard lock(mutex_);
  HEDDLE_RETURN_IF_ERROR(Call("save", "to save", [&](char* message, size_t room) {
    return table_->save(
        module.module_, &host,
        [](void* to, const void* bytes, size_t count) -> int {
          auto& h = *static_cast<Host*>(to);
          h.refused = h.refused || (bytes == nullptr && count > 0) || !h.write(bytes, count);
          return h.refused ? HEDDLE_ENGINE_FAILED : HEDDLE_ENGINE_OK;
        },
        message, room);
  }));
  return host.refused ? Internal("engine ", name_, " goes on saving what is refused")
                      : Status::Ok();
}

Result<std::shared_ptr<Module>> EngineLibrary::Restore(
    std::shared_ptr<const GroupDescription> group, BufferRef bytes, size_t count) {
  std::lock_guard lock(mutex_);
  void* module = nullptr;
  HEDDLE_RETURN_IF_ERROR(Call("restore", "to restore", [&](char* message, size_t room) {
    return table_->restore(engine_, &group->get(), bytes->data(), count, &module, message, room);
  }));
  if (module == nullptr) return Internal("engine ", name_, " restores nothing");
  if ((flags_ & HEDDLE_ENGINE_KEEPS_SAVED) == 0) bytes = {};
  return std::make_shared<Module>(shared_from_this(), std::move(group), module, std::move(bytes));
}

}  // namespace heddle::offload
