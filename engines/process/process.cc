// The process engine: any other engine, in a process of its own, so that its crash is an error of
// the run. It starts the worker that lies beside it, and starts it anew, with all that was
// compiled, when that has ended.
//
// Options: library, the path of the engine; all others are for that engine.
#include <dlfcn.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "engines/process/channel.h"
#include "engines/process/group_text.h"

extern char** environ;

extern "C" __attribute__((visibility("default")))
const heddle_engine_table* heddle_engine_get(uint32_t);

namespace heddle_process {
namespace {

constexpr int kWorkerFd = 3, kLookMs = 5;
constexpr int kCloseMs = 2000;  // that an engine may take to close

struct Outcome {
  int status = HEDDLE_ENGINE_FAILED;
  std::string text;  // behind the message
  std::vector<Memory> memories;
  std::string message;
};

int Say(const Outcome& outcome, char* message, size_t room) {
  if (outcome.status != HEDDLE_ENGINE_OK)
    std::snprintf(message, room, "%s", outcome.message.c_str());
  return outcome.status;
}

// The current folder may be another one when a worker is started again.
std::string Absolute(const std::string& path) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(path, error);
  return error ? path : whole.string();
}

std::string WorkerPath() {
  Dl_info info = {};
  if (dladdr(reinterpret_cast<void*>(&heddle_engine_get), &info) == 0) return "";
  const std::string mine = info.dli_fname;
  return Absolute(mine.substr(0, mine.rfind('/') + 1) + "heddle_engine_worker");
}

class Process {
 public:
  ~Process() { End(/*kill=*/false); }

  // What kOpen is asked with, and what says whether a call is to end. To be called in the folder
  // that the engine was named in.
  void set_settings(std::string text, std::function<bool()> stopped) {
    settings_ = std::move(text);
    stopped_ = std::move(stopped);
    worker_ = WorkerPath();
  }

  // Asks the worker, which is started first where there is none. `later`: of the group that it is
  // asked about.
  Outcome Ask(int64_t kind, const std::string& text, const std::vector<const Memory*>& memories,
              const Later& later = {}) {
    return Ask(kind, text, memories, stopped_, later);
  }
  // `stopped`: asked while it works; the worker is ended when it says so.
  Outcome Ask(int64_t kind, const std::string& text, const std::vector<const Memory*>& memories,
              const std::function<bool()>& stopped, const Later& later) {
    if (channel_ == nullptr)
      if (Outcome start = Start(stopped); start.status != HEDDLE_ENGINE_OK) return start;
    return AskWorker(kind, text, memories, stopped, later);
  }

  // Compiles `count` groups, whose modules have numbers from `first` on, and remembers them for
  // workers to come.
  Outcome Make(int64_t first, size_t count, std::string text, Memory contents) {
    Compiled batch = {first,        std::move(text), std::move(contents),
                      std::nullopt, false,           std::vector<bool>(count, false)};
    Outcome outcome = Ask(kCompile, batch.text, {&batch.contents});
    if (outcome.status == HEDDLE_ENGINE_OK) compiled_.push_back(std::move(batch));
    return outcome;
  }

  // The same of one group from what was saved. `alone`: the text has no contents, and nothing can
  // be compiled from it.
  Outcome Restore(int64_t number, std::string text, Memory contents, Memory saved, bool alone,
                  const Later& later) {
    Compiled batch = {number,           std::move(text), std::move(contents),
                      std::move(saved), alone,           std::vector<bool>(1, false)};
    Outcome outcome = Ask(kRestore, batch.text, {&batch.contents, &*batch.saved}, later);
    if (outcome.status == HEDDLE_ENGINE_OK) compiled_.push_back(std::move(batch));
    return outcome;
  }

  // Forgets modules. The worker is told, and not waited for.
  void Free(const std::vector<int64_t>& numbers) {
    if (numbers.empty()) return;
    for (const int64_t number : numbers) {
      for (Compiled& batch : compiled_) {
        const int64_t k = number - batch.first;
        if (k >= 0 && k < static_cast<int64_t>(batch.freed.size()))
          batch.freed[static_cast<size_t>(k)] = true;
      }
    }
    std::erase_if(compiled_, [](const Compiled& batch) {
      return std::find(batch.freed.begin(), batch.freed.end(), false) == batch.freed.end();
    });
    if (channel_ != nullptr) TellFreed(numbers);
  }

  // Lets the engine close, if it does so soon; its process ends in any case.
  void Close() {
    if (channel_ == nullptr) return;
    const auto begin = std::chrono::steady_clock::now();
    AskWorker(kClose, "", {}, [&] {
      return std::chrono::steady_clock::now() - begin > std::chrono::milliseconds(kCloseMs);
    });
  }

  // The first answer to kOpen.
  Outcome Open() { return Start(stopped_); }

 private:
  Outcome Start(const std::function<bool()>& stopped) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      return Fail("there is no socket for the engine's process");
    channel_ = std::make_unique<Channel>(ends[0]);
    char* const arguments[] = {worker_.data(), nullptr};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], kWorkerFd);
    const int failed = posix_spawn(&pid_, worker_.c_str(), &actions, nullptr, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    ended_.reset();
    if (failed != 0) {
      pid_ = -1;
      channel_ = nullptr;
      return Fail(worker_ + " cannot be started: " + std::strerror(failed));
    }
    Outcome open = AskWorker(kOpen, settings_, {}, stopped);
    if (open.status != HEDDLE_ENGINE_OK) End(/*kill=*/true);
    for (const Compiled& batch : compiled_) {
      if (open.status != HEDDLE_ENGINE_OK) break;
      Outcome again;
      if (batch.saved)
        again = AskWorker(kRestore, batch.text, {&batch.contents, &*batch.saved}, stopped);
      if (channel_ != nullptr && again.status != HEDDLE_ENGINE_OK && !batch.alone)
        again = AskWorker(kCompile, batch.text, {&batch.contents}, stopped);
      if (again.status != HEDDLE_ENGINE_OK) {
        End(/*kill=*/true);  // it lacks modules that the host has
        return again;
      }
      std::vector<int64_t> freed;
      for (size_t k = 0; k < batch.freed.size(); ++k)
        if (batch.freed[k]) freed.push_back(batch.first + static_cast<int64_t>(k));
      if (!freed.empty()) TellFreed(freed);
    }
    return open;
  }

  // Groups of workers to come may be gone when these restore them: they have no `later`.
  Outcome AskWorker(int64_t kind, const std::string& text,
                    const std::vector<const Memory*>& memories,
                    const std::function<bool()>& stopped, const Later& later = {}) {
    if (!channel_->Send(kind, text, memories)) return Ended();
    Message answer;
    for (;;) {
      if (std::optional<Outcome> end = Wait(stopped)) return *std::move(end);
      if (!channel_->Receive(&answer)) return Ended();
      if (answer.kind == kAnswer) break;
      if (answer.kind != kWantOnnx || !GiveOnnx(later)) return Ended();
    }
    Reader reader(answer.text);
    Outcome outcome;
    outcome.status = static_cast<int>(reader.Number());
    outcome.message = reader.Text();
    outcome.text = reader.Text();
    outcome.memories = std::move(answer.memories);
    return reader.good() ? std::move(outcome) : Ended();
  }

  // False: the worker cannot be told.
  bool GiveOnnx(const Later& later) {
    size_t bytes = 0;
    const void* const onnx = later.give != nullptr ? later.give(later.host, &bytes) : nullptr;
    Memory memory;
    if (onnx == nullptr || !memory.Make(bytes)) return channel_->Send(kOnnx, "");
    std::memcpy(memory.data(), onnx, bytes);
    return channel_->Send(kOnnx, "", {&memory});
  }

  // Until the worker has something to say; or how that ends.
  std::optional<Outcome> Wait(const std::function<bool()>& stopped) {
    pollfd one = {channel_->fd(), POLLIN, 0};
    // A process that the engine started may keep the channel open behind the worker's end.
    while (poll(&one, 1, kLookMs) <= 0) {
      if (HasEnded() && poll(&one, 1, 0) <= 0) return Ended();
      if (!stopped || !stopped()) continue;
      End(/*kill=*/true);
      Outcome outcome = Fail("the call is to end");
      outcome.status = HEDDLE_ENGINE_STOPPED;
      return outcome;
    }
    return std::nullopt;
  }

  // An error shows when the worker is asked the next time.
  void TellFreed(const std::vector<int64_t>& numbers) {
    Writer text;
    text.Number(static_cast<int64_t>(numbers.size()));
    for (const int64_t number : numbers) text.Number(number);
    (void)channel_->Send(kFree, text.Take());
  }

  static Outcome Fail(std::string why) {
    Outcome outcome;
    outcome.message = std::move(why);
    return outcome;
  }

  // The worker does not answer: says what became of it.
  Outcome Ended() {
    End(/*kill=*/false);
    if (!ended_) return Fail("the engine's process has ended");
    const int how = *ended_;
    if (WIFSIGNALED(how))
      return Fail("the engine's process was ended by signal " + std::to_string(WTERMSIG(how)) +
                  " (" + strsignal(WTERMSIG(how)) + ")");
    return Fail("the engine's process has ended with status " + std::to_string(WEXITSTATUS(how)));
  }

  // Whether the worker is gone; how is then known, if anybody knows.
  bool HasEnded() {
    int how = 0;
    const pid_t found = pid_ <= 0 ? 0 : waitpid(pid_, &how, WNOHANG);
    if (found == pid_) ended_ = how;
    if (found == pid_ || (found < 0 && errno == ECHILD)) pid_ = -1;
    return pid_ <= 0;
  }

  void End(bool kill) {
    channel_ = nullptr;  // it ends when it sees that
    if (pid_ <= 0) return;
    if (kill) ::kill(pid_, SIGKILL);
    int how = 0;
    pid_t found = -1;
    while ((found = waitpid(pid_, &how, 0)) < 0 && errno == EINTR) continue;
    if (found == pid_) ended_ = how;  // else the host takes no notice of its children's ends
    pid_ = -1;
  }

  std::string settings_, worker_;
  std::function<bool()> stopped_;
  std::unique_ptr<Channel> channel_;
  pid_t pid_ = -1;
  std::optional<int> ended_;  // how the last worker ended, where that is known
  struct Compiled {
    int64_t first;  // number of its modules
    std::string text;
    Memory contents;
    std::optional<Memory> saved;  // what it was restored from
    bool alone;                   // ... and nothing else is there of it
    std::vector<bool> freed;
  };
  std::vector<Compiled> compiled_;
};

struct ProcessEngine {
  // Modules that are freed while a call is under way, which may take any time.
  std::mutex freed_mutex;
  std::vector<int64_t> freed;

  std::mutex mutex;
  Process process;
  std::string name, target, fingerprint;
  uint32_t flags = 0;
  bool has_target = false, has_takes = false;
  int64_t modules = 0;

  // With `mutex`.
  void FreeThose() {
    std::vector<int64_t> numbers;
    {
      std::lock_guard lock(freed_mutex);
      numbers.swap(freed);
    }
    process.Free(numbers);
  }
};
struct Module {
  ProcessEngine* engine;
  int64_t number;
  Later later;
};

int Open(const heddle_engine_settings* settings, void** engine, char* message, size_t room) {
  auto made = std::make_unique<ProcessEngine>();
  Writer text;
  std::string library;
  int64_t others = 0;
  for (size_t i = 0; i < settings->num_options; ++i) {
    if (std::strcmp(settings->keys[i], "library") == 0)
      library = settings->texts[i];
    else
      ++others;
  }
  if (library.find('/') == std::string::npos) {
    std::snprintf(message, room,
                  "option library: expected the path of an engine, with its folder, and not '%s'",
                  library.c_str());
    return HEDDLE_ENGINE_FAILED;
  }
  text.Text(Absolute(library));
  text.Number(settings->threads);
  text.Number(others);
  for (size_t i = 0; i < settings->num_options; ++i) {
    if (std::strcmp(settings->keys[i], "library") == 0) continue;
    text.Text(settings->keys[i]);
    text.Text(settings->texts[i]);
  }
  std::function<bool()> stopped = [] { return false; };
  if (settings->size >= offsetof(heddle_engine_settings, stopped) + sizeof settings->stopped &&
      settings->stopped != nullptr)
    stopped = [host = settings->host, fn = settings->stopped] { return fn(host) != 0; };
  made->process.set_settings(text.Take(), std::move(stopped));
  Outcome outcome = made->process.Open();
  if (outcome.message.starts_with("the engine's process"))  // else the worker names it
    outcome.message = library + ": " + outcome.message;
  if (outcome.status != HEDDLE_ENGINE_OK) return Say(outcome, message, room);
  Reader reader(outcome.text);
  made->name = reader.Text() + " (process)";
  made->has_target = reader.Number() != 0;
  made->target = reader.Text();
  made->has_takes = reader.Number() != 0;
  // Its other flags are about its runs, which take turns here.
  made->flags = static_cast<uint32_t>(reader.Number()) &
                (HEDDLE_ENGINE_WANTS_ONNX | HEDDLE_ENGINE_SAVES_LATER | HEDDLE_ENGINE_TAKES_MANY |
                 HEDDLE_ENGINE_RESTORES_ALONE);
  *engine = made.release();
  return HEDDLE_ENGINE_OK;
}

const char* Target(void* engine) {
  auto& e = *static_cast<ProcessEngine*>(engine);
  return e.has_target ? e.target.c_str() : nullptr;
}

// The groups as a message. `first`: the number of the first one's module, for those that make it.
bool Pack(const heddle_engine_group* const* groups, size_t count, std::optional<int64_t> first,
          Contents with, std::string* text, Memory* contents) {
  size_t bytes = 0;
  for (size_t k = 0; k < count; ++k) bytes += ContentBytes(*groups[k], with);
  if (!contents->Make(std::max<size_t>(bytes, 1))) return false;
  std::byte* at = contents->data();
  Writer writer;
  if (first) writer.Number(*first);
  writer.Number(static_cast<int64_t>(count));
  for (size_t k = 0; k < count; ++k) Write(*groups[k], with, &writer, &at);
  *text = writer.Take();
  return true;
}

int NoMemory(char* message, size_t room) {
  std::snprintf(message, room, "there is no shared memory");
  return HEDDLE_ENGINE_FAILED;
}

int Takes(void* engine, const heddle_engine_group* group, char* message, size_t room) {
  auto& e = *static_cast<ProcessEngine*>(engine);
  if (!e.has_takes) return HEDDLE_ENGINE_OK;
  std::string text;
  Memory contents;
  if (!Pack(&group, 1, std::nullopt, Contents::kYes, &text, &contents))
    return NoMemory(message, room);
  std::lock_guard lock(e.mutex);
  e.FreeThose();
  return Say(e.process.Ask(kTakes, text, {&contents}), message, room);
}

int Compile(void* engine, const heddle_engine_group* const* groups,
            heddle_engine_compiled* const* compiled, size_t count, char* message, size_t room) {
  auto& e = *static_cast<ProcessEngine*>(engine);
  std::string text;
  Memory contents;
  std::lock_guard lock(e.mutex);
  if (!Pack(groups, count, e.modules, Contents::kYes, &text, &contents))
    return NoMemory(message, room);
  e.FreeThose();
  const Outcome outcome = e.process.Make(e.modules, count, std::move(text), std::move(contents));
  if (outcome.status != HEDDLE_ENGINE_OK) return Say(outcome, message, room);
  Reader reader(outcome.text);
  std::vector<int64_t> none;
  for (size_t k = 0; k < count; ++k) {
    compiled[k]->status = static_cast<int32_t>(reader.Number());
    std::snprintf(compiled[k]->message, compiled[k]->room, "%s", reader.Text().c_str());
    if (compiled[k]->status == HEDDLE_ENGINE_OK)
      compiled[k]->module = new Module{&e, e.modules + static_cast<int64_t>(k), Later()};
    else
      none.push_back(e.modules + static_cast<int64_t>(k));
  }
  e.modules += static_cast<int64_t>(count);
  e.process.Free(none);
  return HEDDLE_ENGINE_OK;
}

// Hands the outputs of the worker over to heddle.
bool Give(const Outcome& outcome, const heddle_engine_run& run, std::string* why) {
  Reader reader(outcome.text);
  const size_t count = reader.Count();
  for (size_t k = 0; k < count; ++k) {
    const int64_t index = reader.Number(), dtype = reader.Number(), rank = reader.Number();
    std::vector<int64_t> dims(HEDDLE_ENGINE_MAX_RANK + 1);
    unsigned __int128 wanted = SizeOf(static_cast<int32_t>(dtype));
    for (int64_t i = 0; i < rank && i < static_cast<int64_t>(dims.size()); ++i) {
      dims[static_cast<size_t>(i)] = reader.Number();
      wanted = std::min<unsigned __int128>(
          wanted * static_cast<uint64_t>(dims[static_cast<size_t>(i)]), uint64_t{1} << 63);
    }
    const auto at = static_cast<size_t>(reader.Number()),
               bytes = static_cast<size_t>(reader.Number());
    if (!reader.good() || outcome.memories.size() != 1 || at > outcome.memories[0].bytes() ||
        bytes > outcome.memories[0].bytes() - at) {
      *why = "the engine's process answers what cannot be read";
      return false;
    }
    void* const to = run.output(run.host, static_cast<size_t>(index), static_cast<int32_t>(dtype),
                                static_cast<int32_t>(rank), dims.data());
    if (to == nullptr) {
      *why = "there is no such output";
      return false;
    }
    if (bytes != wanted) {  // of a worker that is damaged
      *why = "the engine's process answers with as many bytes as no such output has";
      return false;
    }
    if (bytes > 0) std::memcpy(to, outcome.memories[0].data() + at, bytes);
  }
  return true;
}

int Run(void* module, const heddle_engine_run* run, char* message, size_t room) {
  const auto& m = *static_cast<Module*>(module);
  size_t bytes = 1;
  for (size_t k = 0; k < run->num_inputs; ++k) bytes += Aligned(run->inputs[k]->bytes);
  Memory inputs;
  if (!inputs.Make(bytes)) return NoMemory(message, room);
  Writer text;
  text.Number(m.number);
  text.Number(static_cast<int64_t>(run->num_outputs));
  text.Number(static_cast<int64_t>(run->num_inputs));
  std::byte* at = inputs.data();
  for (size_t k = 0; k < run->num_inputs; ++k) {
    const heddle_engine_tensor& t = *run->inputs[k];
    text.Number(t.dtype);
    text.Number(t.rank);
    for (int32_t i = 0; i < t.rank; ++i) text.Number(t.dims[i]);
    text.Number(static_cast<int64_t>(t.bytes));
    if (t.bytes > 0) std::memcpy(at, t.data, t.bytes);
    at += Aligned(t.bytes);
  }
  std::lock_guard lock(m.engine->mutex);
  m.engine->FreeThose();
  const Outcome outcome = m.engine->process.Ask(
      kRun, text.Take(), {&inputs}, [&] { return run->stopped(run->host) != 0; }, m.later);
  if (outcome.status != HEDDLE_ENGINE_OK) return Say(outcome, message, room);
  std::string why;
  if (Give(outcome, *run, &why)) return HEDDLE_ENGINE_OK;
  std::snprintf(message, room, "%s", why.c_str());
  return HEDDLE_ENGINE_FAILED;
}

void FreeModule(void* module) {
  std::unique_ptr<Module> mine(static_cast<Module*>(module));
  ProcessEngine& e = *mine->engine;
  {
    std::lock_guard lock(e.freed_mutex);
    e.freed.push_back(mine->number);
  }
  // Else the call that is under way is followed by one that frees, or by the end.
  if (std::unique_lock lock(e.mutex, std::try_to_lock); lock.owns_lock()) e.FreeThose();
}

void Close(void* engine) {
  std::unique_ptr<ProcessEngine> mine(static_cast<ProcessEngine*>(engine));
  mine->FreeThose();
  mine->process.Close();
}

// ---- saved modules -----------------------------------------------------------------------------

const char* Fingerprint(void* engine) {
  auto& e = *static_cast<ProcessEngine*>(engine);
  std::lock_guard lock(e.mutex);
  const Outcome outcome = e.process.Ask(kFingerprint, "", {});
  if (outcome.status != HEDDLE_ENGINE_OK) return nullptr;  // the engine does not save
  e.fingerprint = Reader(outcome.text).Text();
  return e.fingerprint.c_str();
}

int Save(void* module, void* host, int (*write)(void*, const void*, size_t), char* message,
         size_t room) {
  const auto& m = *static_cast<const Module*>(module);
  Writer text;
  text.Number(m.number);
  std::lock_guard lock(m.engine->mutex);
  m.engine->FreeThose();
  const Outcome outcome = m.engine->process.Ask(kSave, text.Take(), {});
  if (outcome.status != HEDDLE_ENGINE_OK) return Say(outcome, message, room);
  if (outcome.memories.size() != 1) {
    std::snprintf(message, room, "the engine's process answers what cannot be read");
    return HEDDLE_ENGINE_FAILED;
  }
  const Memory& saved = outcome.memories[0];
  return saved.bytes() > 0 ? write(host, saved.data(), saved.bytes()) : int{HEDDLE_ENGINE_OK};
}

int Restore(void* engine, const heddle_engine_group* group, const void* bytes, size_t count,
            void** module, char* message, size_t room) {
  auto& e = *static_cast<ProcessEngine*>(engine);
  std::string text;
  Memory contents, saved;
  std::lock_guard lock(e.mutex);
  const bool alone = (e.flags & HEDDLE_ENGINE_RESTORES_ALONE) != 0;
  if (!saved.Make(count) ||
      !Pack(&group, 1, e.modules, alone ? Contents::kNo : Contents::kYes, &text, &contents))
    return NoMemory(message, room);
  if (count > 0) std::memcpy(saved.data(), bytes, count);
  e.FreeThose();
  const Outcome outcome = e.process.Restore(e.modules, std::move(text), std::move(contents),
                                            std::move(saved), alone, LaterOf(*group));
  if (outcome.status != HEDDLE_ENGINE_OK) return Say(outcome, message, room);
  *module = new Module{&e, e.modules++, LaterOf(*group)};
  return HEDDLE_ENGINE_OK;
}

const char* OpenName(void* engine) {
  return static_cast<const ProcessEngine*>(engine)->name.c_str();
}
uint32_t MoreFlags(void* engine) { return static_cast<const ProcessEngine*>(engine)->flags; }

const heddle_engine_table kTable = {sizeof(heddle_engine_table),
                                    HEDDLE_ENGINE_VERSION,
                                    HEDDLE_ENGINE_ONE_RUN,
                                    "process",
                                    Open,
                                    Target,
                                    Takes,
                                    Compile,
                                    Run,
                                    FreeModule,
                                    Close,
                                    Fingerprint,
                                    Save,
                                    Restore,
                                    MoreFlags,
                                    OpenName};

}  // namespace
}  // namespace heddle_process

const heddle_engine_table* heddle_engine_get(uint32_t) { return &heddle_process::kTable; }
