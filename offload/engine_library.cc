#include "offload/engine_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <exception>
#include <filesystem>
#include <optional>
#include <system_error>
#include <thread>

#include "core/error.h"
#include "offload/group_description.h"

namespace heddle::offload {
namespace {

constexpr size_t kRoom = 1024;  // of a message
constexpr auto kLook = std::chrono::milliseconds(5);

// What an engine wrote to a message, on one line, whatever it wrote.
std::string TextOf(const char* message, size_t room) {
  std::string text(message, strnlen(message, room));
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

// A member that the table of this size has, and that is not left out.
#define HEDDLE_HAS(table, member)                                                      \
  ((table)->size >= offsetof(heddle_engine_table, member) + sizeof((table)->member) && \
   (table)->member != nullptr)

Status StatusOf(const std::string& engine, const char* what, int status, const char* message,
                size_t room) {
  if (status == HEDDLE_ENGINE_OK) return Status::Ok();
  std::string text = TextOf(message, room);
  if (text.empty()) text = "the engine does not say why";
  switch (status) {
    case HEDDLE_ENGINE_REFUSED:
      return Unimplemented("engine ", engine, " refuses ", what, ": ", text);
    case HEDDLE_ENGINE_FAILED:
      return Internal("engine ", engine, " failed in ", what, ": ", text);
    case HEDDLE_ENGINE_STOPPED:
      return Status(StatusCode::kCancelled,
                    StrCat("engine ", engine, " stopped in ", what, ": ", text));
    default:
      return Internal("engine ", engine, " answered ", what, " with status ", status,
                      ", which is none: ", text);
  }
}

// Calls fn(message, room) and makes a Status of what it returns or throws.
template <typename Fn>
Status Guarded(const std::string& engine, const char* what, Fn&& fn) {
  std::array<char, kRoom> message{};
  try {
    return StatusOf(engine, what, fn(message.data(), message.size()), message.data(),
                    message.size());
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("engine ", engine, " has no memory left in ", what);
  } catch (const std::exception& e) {
    return Internal("engine ", engine, " threw in ", what, ": ", e.what());
  } catch (...) {
    return Internal("engine ", engine, " threw something that is no std::exception in ", what);
  }
}

}  // namespace

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
  if (table == nullptr)
    return InvalidArgument(where, ": has no engine for version ", HEDDLE_ENGINE_VERSION,
                           " of the interface");
  if (table->size >= offsetof(heddle_engine_table, version) + sizeof(table->version) &&
      table->version != HEDDLE_ENGINE_VERSION)
    return InvalidArgument(where, ": the engine is made for version ", table->version,
                           " of the interface, and this heddle has version ",
                           HEDDLE_ENGINE_VERSION);
  for (const auto& [has, what] :
       {std::pair(HEDDLE_HAS(table, name), "name"), std::pair(HEDDLE_HAS(table, open), "open"),
        std::pair(HEDDLE_HAS(table, compile), "compile"), std::pair(HEDDLE_HAS(table, run), "run"),
        std::pair(HEDDLE_HAS(table, free_module), "free_module"),
        std::pair(HEDDLE_HAS(table, close), "close")})
    if (!has) return InvalidArgument(where, ": the engine's table lacks '", what, "'");
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
  const heddle_engine_settings settings = {sizeof(heddle_engine_settings),
                                           HEDDLE_ENGINE_VERSION,
                                           options_.threads,
                                           keys.size(),
                                           keys.data(),
                                           texts.data()};
  HEDDLE_RETURN_IF_ERROR(Guarded(name_, "open", [&](char* message, size_t room) {
    return table_->open(&settings, &engine_, message, room);
  }));
  open_ = true;
  flags_ = table_->flags;
  if (!HEDDLE_HAS(table_, more_flags)) return Status::Ok();
  return Guarded(name_, "more_flags", [&](char*, size_t) {
    flags_ |= table_->more_flags(engine_);
    return HEDDLE_ENGINE_OK;
  });
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
  return Guarded(name_, "an operator", [&](char* message, size_t room) {
    return table_->takes(engine_, &group.get(), message, room);
  });
}

std::vector<Result<std::shared_ptr<Module>>> EngineLibrary::Compile(
    const std::vector<std::shared_ptr<const GroupDescription>>& groups) {
  std::vector<std::array<char, kRoom>> texts(groups.size());
  std::vector<heddle_engine_compiled> compiled(groups.size());
  std::vector<heddle_engine_compiled*> results;
  std::vector<const heddle_engine_group*> descriptions;
  for (size_t k = 0; k < groups.size(); ++k) {
    texts[k].fill('\0');
    compiled[k] = {sizeof(heddle_engine_compiled), HEDDLE_ENGINE_REFUSED, nullptr, texts[k].data(),
                   kRoom};
    results.push_back(&compiled[k]);
    descriptions.push_back(&groups[k]->get());
  }
  std::lock_guard lock(mutex_);
  const Status all = Guarded(name_, "compile", [&](char* message, size_t room) {
    return table_->compile(engine_, descriptions.data(), results.data(), groups.size(), message,
                           room);
  });
  std::vector<Result<std::shared_ptr<Module>>> modules;
  for (size_t k = 0; k < groups.size(); ++k) {
    Status status = all;
    if (status.ok())
      status = StatusOf(name_, "the group", compiled[k].status, texts[k].data(), kRoom);
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
  if (!HEDDLE_HAS(table_, fingerprint) || !HEDDLE_HAS(table_, save) || !HEDDLE_HAS(table_, restore))
    return Unimplemented("engine ", name_, " does not save what it compiles");
  std::lock_guard lock(mutex_);
  const char* text = nullptr;
  HEDDLE_RETURN_IF_ERROR(Guarded(name_, "fingerprint", [&](char*, size_t) {
    text = table_->fingerprint(engine_);
    return HEDDLE_ENGINE_OK;
  }));
  if (text == nullptr) return Unimplemented("engine ", name_, " has no fingerprint");
  return std::string(text);
}

Status EngineLibrary::Save(const Module& module,
                           const std::function<bool(const void*, size_t)>& write) {
  struct Host {
    const std::function<bool(const void*, size_t)>& write;
    bool refused = false;  // an engine may go on all the same
  } host{write};
  std::lock_guard lock(mutex_);
  HEDDLE_RETURN_IF_ERROR(Guarded(name_, "save", [&](char* message, size_t room) {
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
  HEDDLE_RETURN_IF_ERROR(Guarded(name_, "restore", [&](char* message, size_t room) {
    return table_->restore(engine_, &group->get(), bytes->data(), count, &module, message, room);
  }));
  if (module == nullptr) return Internal("engine ", name_, " restores nothing");
  if ((flags_ & HEDDLE_ENGINE_KEEPS_SAVED) == 0) bytes = {};
  return std::make_shared<Module>(shared_from_this(), std::move(group), module, std::move(bytes));
}

// ---- Module ------------------------------------------------------------------------------------

// A call of `run` that may outlive the function that waits for it.
struct Module::Call {
  std::vector<Tensor> inputs;
  std::shared_ptr<OutputSink> sink;
  std::vector<bool> given;
  Status refused;  // what the sink said of an output
  std::function<bool()> stopped;

  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::condition_variable ended;
  std::optional<Status> result;  // with `mutex`

  void* Output(size_t index, int32_t dtype, int32_t rank, const int64_t* dims);
};

void* Module::Call::Output(size_t index, int32_t dtype, int32_t rank, const int64_t* dims) {
  const auto refuse = [&](Status why) -> void* {
    if (refused.ok()) refused = std::move(why);
    return nullptr;
  };
  if (index >= sink->size())
    return refuse(OutOfRange("writes output ", index, " of ", sink->size()));
  if (given[index]) return refuse(InvalidArgument("writes output ", index, " twice"));
  if (dtype < 0 || dtype >= static_cast<int32_t>(DType::kUnknown))
    return refuse(
        InvalidArgument("writes output ", index, " with element type ", dtype, ", which is none"));
  if (rank < 0 || rank > HEDDLE_ENGINE_MAX_RANK || (rank > 0 && dims == nullptr))
    return refuse(InvalidArgument("writes output ", index, " with ", rank, " dimensions"));
  int64_t elements = 1;
  for (int32_t i = 0; i < rank; ++i) {
    if (dims[i] < 0 || (dims[i] > 0 && elements > (int64_t{1} << 48) / dims[i]))
      return refuse(InvalidArgument("writes output ", index, " with a dimension of ", dims[i]));
    elements *= dims[i];
  }
  static std::byte nothing;  // for tensors without elements, which may have no memory
  try {
    void* memory = nullptr;
    const Shape shape(std::span(dims, static_cast<size_t>(rank)));
    if (Status status = sink->Take(index, static_cast<DType>(dtype), shape, &memory); !status.ok())
      return refuse(std::move(status));
    given[index] = true;
    return memory != nullptr || elements > 0 ? memory : &nothing;
  } catch (const std::exception& e) {
    return refuse(ResourceExhausted("output ", index, ": ", e.what()));
  }
}

Module::~Module() {
  std::lock_guard lock(library_->mutex_);
  (void)Guarded(library_->name_, "free_module", [&](char*, size_t) {
    library_->table_->free_module(module_);
    return HEDDLE_ENGINE_OK;
  });
}

Status Module::CallEngine(const Module& module, Call& call) {
  const EngineLibrary& library = *module.library_;
  std::vector<heddle_engine_tensor> tensors;
  std::vector<const heddle_engine_tensor*> inputs;
  tensors.reserve(call.inputs.size());
  for (const Tensor& t : call.inputs) {
    tensors.push_back({sizeof(heddle_engine_tensor), static_cast<int32_t>(t.dtype()), t.rank(),
                       t.shape().begin(), t.raw(), t.bytes()});
    inputs.push_back(&tensors.back());
  }
  heddle_engine_run run = {};
  run.size = sizeof(run);
  run.num_inputs = inputs.size();
  run.inputs = inputs.data();
  run.num_outputs = call.sink->size();
  run.host = &call;
  run.output = [](void* host, size_t index, int32_t dtype, int32_t rank, const int64_t* dims) {
    return static_cast<Call*>(host)->Output(index, dtype, rank, dims);
  };
  run.stopped = [](void* host) { return static_cast<Call*>(host)->stopped() ? 1 : 0; };
  const Status status = Guarded(library.name_, "run", [&](char* message, size_t room) {
    return library.table_->run(module.module_, &run, message, room);
  });
  if (!call.refused.ok())
    return Status(call.refused.code(),
                  StrCat("engine ", library.name_, " ", call.refused.message()));
  HEDDLE_RETURN_IF_ERROR(status);
  for (size_t k = 0; k < call.given.size(); ++k)
    if (!call.given[k]) return Internal("engine ", library.name_, " does not write output ", k);
  return Status::Ok();
}

Status Module::Hangs() const {
  return Status(StatusCode::kDeadlineExceeded,
                StrCat("engine ", library_->name_, " has not answered within ",
                       library_->limit().count(), " ms; it is not called again for this group"));
}

Status Module::TakeTurn(const std::function<Status()>& stopped) {
  EngineLibrary& library = *library_;
  std::unique_lock lock(library.turn_mutex_);
  while (library.turn_taken_) {
    library.turn_over_.wait_for(lock, kLook);
    // The other call was told to stop when its own limit was over, and has had as long to do so.
    const auto since = std::chrono::steady_clock::now() - library.turn_since_;
    if (library.turn_taken_ && abandons() && since >= 2 * library.limit())
      return Status(StatusCode::kDeadlineExceeded,
                    StrCat("engine ", library.name_,
                           " is still busy with another group, which has "
                           "not answered within ",
                           library.limit().count(), " ms"));
    HEDDLE_RETURN_IF_ERROR(stopped());
  }
  library.turn_taken_ = true;
  library.turn_since_ = std::chrono::steady_clock::now();
  return Status::Ok();
}

Status Module::Enter(const std::function<Status()>& stopped) {
  std::unique_lock lock(mutex_);
  if (hangs_) return Hangs();
  if (library_->reentrant()) return Status::Ok();
  while (busy_) {
    left_.wait_for(lock, kLook);
    // A call that its run has left may go on: its time counts for those who wait for it.
    if (busy_ && !waits_ && abandons() &&
        std::chrono::steady_clock::now() - since_ >= library_->limit())
      hangs_ = true;
    if (hangs_) return Hangs();
    HEDDLE_RETURN_IF_ERROR(stopped());
  }
  busy_ = true;
  since_ = std::chrono::steady_clock::now();
  if (!library_->one_run()) return Status::Ok();
  waits_ = true;
  lock.unlock();
  const Status turn = TakeTurn(stopped);
  lock.lock();
  waits_ = false;
  since_ = std::chrono::steady_clock::now();
  busy_ = turn.ok();
  if (!turn.ok()) left_.notify_one();
  return turn;
}

bool Module::hangs() const {
  std::lock_guard lock(mutex_);
  return hangs_;
}

// While the module is busy: only reentrant engines run meanwhile.
void Module::NoteRun(const Status& status) {
  if (!status.ok()) return;
  std::function<void(const Module&)> fn;
  {
    std::lock_guard lock(mutex_);
    fn.swap(after_first_run_);
  }
  try {
    if (fn) fn(*this);
  } catch (const std::exception&) {  // the run has its outputs whatever becomes of this
  }
}

void Module::Leave() {
  if (library_->one_run()) {
    std::lock_guard lock(library_->turn_mutex_);
    library_->turn_taken_ = false;
    library_->turn_over_.notify_all();
  }
  {
    std::lock_guard lock(mutex_);
    busy_ = false;
  }
  left_.notify_one();
}

Status Module::Run(std::vector<Tensor> inputs, std::shared_ptr<OutputSink> sink,
                   const std::function<Status()>& stopped) {
  HEDDLE_RETURN_IF_ERROR(Enter(stopped));
  auto call = std::make_shared<Call>();
  call->inputs = std::move(inputs);
  call->sink = std::move(sink);
  call->given.assign(call->sink->size(), false);
  if (abandons()) return RunWithLimit(std::move(call), stopped);
  call->stopped = [&] { return !stopped().ok(); };
  Status status = CallEngine(*this, *call);
  NoteRun(status);
  Leave();
  // What the run's own end caused is told as that.
  if (!status.ok())
    if (const Status end = stopped(); !end.ok()) return end;
  return status;
}

Status Module::RunWithLimit(std::shared_ptr<Call> call, const std::function<Status()>& stopped) {
  const auto until = std::chrono::steady_clock::now() + library_->limit();
  call->stopped = [c = call.get()] { return c->stop.load(std::memory_order_relaxed); };
  const auto work = [self = shared_from_this(), call] {
    Status status;
    try {
      status = CallEngine(*self, *call);
    } catch (const std::exception& e) {
      status =
          ResourceExhausted("engine ", self->library_->name_, " could not be called: ", e.what());
    }
    self->NoteRun(status);
    self->Leave();
    std::lock_guard lock(call->mutex);
    call->result = std::move(status);
    call->ended.notify_one();
  };
  try {
    std::thread(work).detach();
  } catch (const std::system_error& e) {
    Leave();
    return ResourceExhausted("no thread to call engine ", library_->name_, ": ", e.what());
  }
  std::unique_lock lock(call->mutex);
  while (!call->result) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= until) {
      call->stop = true;
      std::lock_guard mine(mutex_);
      hangs_ = true;
      return Hangs();
    }
    call->ended.wait_until(lock, std::min(until, now + kLook));
    if (const Status end = stopped(); !call->result && !end.ok()) {
      call->stop = true;  // the call goes on by itself, in memory of its own
      return end;
    }
  }
  return *call->result;
}

}  // namespace heddle::offload
