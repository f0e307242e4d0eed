// An engine that misbehaves as its option "mode" says: "run fails", or, of any of its calls, "CALL:
// MISBEHAVIOUR" as Misbehave knows it. Where it does not, it copies its first input to each output.
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

#include "heddle/heddle_engine.h"

namespace {

struct Faulty {
  std::string mode;
  std::string marker;  // a file: every other compile of all processes fails
  std::string diary;   // a file that is told what is restored, freed and closed; empty: none
  int calls = 0;
  const void* (*later)(void* host, size_t* bytes) = nullptr;  // of the group restored last
  void* host = nullptr;

  void Note(const char* text) const {
    if (diary.empty()) return;
    if (std::FILE* file = std::fopen(diary.c_str(), "a"); file != nullptr) {
      std::fputs(text, file);
      std::fclose(file);
    }
  }
};

int Fail(const char* text, int code, char* message, size_t room) {
  std::snprintf(message, room, "%s", text);
  return code;
}

// Of the call that the mode names; -1: it behaves.
int Misbehave(const std::string& mode, const std::string& call, char* message, size_t room) {
  if (!mode.starts_with(call + ": ")) return -1;
  const std::string how = mode.substr(call.size() + 2);
  if (how == "refuses") return Fail("not today", HEDDLE_ENGINE_REFUSED, message, room);
  if (how == "fails") return Fail("the card is\nhot\n", HEDDLE_ENGINE_FAILED, message, room);
  if (how == "fails silently") return HEDDLE_ENGINE_FAILED;
  if (how == "fills the message") {
    std::memset(message, 'x', room);
    return HEDDLE_ENGINE_FAILED;
  }
  if (how == "answers 17") return 17;
  if (how == "stops") return HEDDLE_ENGINE_STOPPED;
  if (how == "throws") throw std::runtime_error("a bolt");
  if (how == "throws a number") throw 7;
  if (how == "has no memory") throw std::bad_alloc();
  if (how == "crashes") std::abort();
  if (how == "exits") _exit(5);
  if (how == "hangs")
    for (;;) sleep(60);
  return -1;
}

int Open(const heddle_engine_settings* settings, void** engine, char* message, size_t room) {
  auto made = std::make_unique<Faulty>();
  for (size_t i = 0; i < settings->num_options; ++i)
    if (std::strcmp(settings->keys[i], "mode") == 0)
      made->mode = settings->texts[i];
    else if (std::strcmp(settings->keys[i], "diary") == 0)
      made->diary = settings->texts[i];
    else if (std::strcmp(settings->keys[i], "marker") == 0)
      made->marker = settings->texts[i];
  if (const int status = Misbehave(made->mode, "open", message, room); status >= 0) return status;
  if (made->mode == "open fails")
    return Fail("there is no such card", HEDDLE_ENGINE_FAILED, message, room);
  *engine = made.release();
  return HEDDLE_ENGINE_OK;
}

const char* Target(void* engine) {
  const std::string& mode = static_cast<Faulty*>(engine)->mode;
  if (mode == "says nothing") return nullptr;
  if (mode == "says nonsense") return "{\"name\": \"own\"";
  return R"({"name": "own", "units": [{"name": "u", "ops": [{"type": "relu"}]}],
             "links": [["u", "u"]], "start": ["u"]})";
}

int Takes(void* engine, const heddle_engine_group* group, char* message, size_t room) {
  const std::string& mode = static_cast<Faulty*>(engine)->mode;
  if (const int status = Misbehave(mode, "takes", message, room); status >= 0) return status;
  if (mode != "takes no tanh" || std::strcmp(group->operators[0]->type, "tanh") != 0)
    return HEDDLE_ENGINE_OK;
  return Fail("there is no table for tanh", HEDDLE_ENGINE_REFUSED, message, room);
}

int Compile(void* engine, const heddle_engine_group* const*,
            heddle_engine_compiled* const* compiled, size_t count, char* message, size_t room) {
  const std::string& mode = static_cast<Faulty*>(engine)->mode;
  if (const std::string& marker = static_cast<Faulty*>(engine)->marker;
      !marker.empty() && !mode.starts_with("restores once")) {
    if (std::remove(marker.c_str()) == 0)
      return Fail("the compiler is busy", HEDDLE_ENGINE_FAILED, message, room);
    std::fclose(std::fopen(marker.c_str(), "w"));
  }
  if (const int status = Misbehave(mode, "compile", message, room); status >= 0) return status;
  if (mode == "compile fails")
    return Fail("the compiler is\nout of order\n", HEDDLE_ENGINE_FAILED, message, room);
  if (mode == "compile throws") throw std::runtime_error("lost");
  if (mode == "compile forgets") return HEDDLE_ENGINE_OK;
  if (mode == "compiles slowly") usleep(300000);
  for (size_t k = 0; k < count; ++k) {
    compiled[k]->status = HEDDLE_ENGINE_OK;
    compiled[k]->module = engine;
    if (mode == "refuses")
      compiled[k]->status = Fail("too many operators", HEDDLE_ENGINE_REFUSED, compiled[k]->message,
                                 compiled[k]->room);
    if (const int status = Misbehave(mode, "a group", compiled[k]->message, compiled[k]->room);
        status >= 0)
      compiled[k]->status = status;
  }
  return HEDDLE_ENGINE_OK;
}

int Run(void* module, const heddle_engine_run* run, char* message, size_t room) {
  const std::string& mode = static_cast<Faulty*>(module)->mode;
  if (const int status = Misbehave(mode, "run", message, room); status >= 0) return status;
  if (mode == "run fails") return Fail("the card is hot", HEDDLE_ENGINE_FAILED, message, room);
  if (mode.starts_with("saves later")) ++static_cast<Faulty*>(module)->calls;
  if (auto& self = *static_cast<Faulty*>(module); self.later != nullptr) {
    size_t bytes = 0;
    const void* const model = self.later(self.host, &bytes);
    self.Note(model != nullptr && bytes > 0 ? "a model\n" : "no model\n");
  }
  if (mode == "refuses three" && *static_cast<const float*>(run->inputs[0]->data) == 3)
    return Fail("three is too many", HEDDLE_ENGINE_REFUSED, message, room);
  if (mode == "says nothing of it") return HEDDLE_ENGINE_FAILED;
  if (mode == "unknown status") return 17;
  if (mode == "fills the message") {
    std::memset(message, 'x', room);
    return HEDDLE_ENGINE_FAILED;
  }
  if (mode == "throws") throw std::runtime_error("a bolt");
  if (mode == "throws a number") throw 7;
  if (mode == "has no memory") throw std::bad_alloc();
  if (mode == "hangs") sleep(2);
  if (mode == "sleeps") usleep(200000);
  // Trial runs of one thing are at most 200.
  if (mode == "fails late" && ++static_cast<Faulty*>(module)->calls > 200)
    return Fail("the card is old", HEDDLE_ENGINE_FAILED, message, room);
  if (mode == "waits to be stopped") {
    while (run->stopped(run->host) == 0) usleep(1000);
    return HEDDLE_ENGINE_STOPPED;
  }
  if (mode == "writes nothing") return HEDDLE_ENGINE_OK;
  const heddle_engine_tensor& in = *run->inputs[0];
  if (mode == "leaves a child" && fork() == 0) {
    sleep(6);
    _exit(0);
  }
  if (mode == "leaves a child") std::abort();
  if (mode.find("crashes at three") != std::string::npos &&
      *static_cast<const float*>(in.data) == 3)
    std::abort();
  for (size_t k = 0; k < run->num_outputs; ++k) {
    int64_t dims[HEDDLE_ENGINE_MAX_RANK] = {};
    for (int32_t i = 0; i < in.rank; ++i) dims[i] = in.dims[i];
    int32_t dtype = in.dtype, rank = in.rank;
    size_t index = k;
    if (mode == "another shape") dims[0] += 1;
    if (mode == "a negative shape") dims[0] = -4;
    if (mode == "a huge shape") dims[0] = INT64_MAX / 2;
    if (mode == "another rank") rank = 11;
    if (mode == "another dtype") dtype = HEDDLE_ENGINE_I64;
    if (mode == "no dtype") dtype = 99;
    if (mode == "another output") index = 1000;
    void* to = run->output(run->host, index, dtype, rank, dims);
    if (mode == "twice") to = run->output(run->host, index, dtype, rank, dims);
    if (to == nullptr) {
      if (mode == "goes on without memory") return HEDDLE_ENGINE_OK;
      return Fail("no memory was given", HEDDLE_ENGINE_FAILED, message, room);
    }
    std::memcpy(to, in.data, in.bytes);
  }
  return HEDDLE_ENGINE_OK;
}

const char* Fingerprint(void* engine) {
  const std::string& mode = static_cast<Faulty*>(engine)->mode;
  if (mode == "fingerprint throws") throw std::runtime_error("a smudge");
  return mode == "no fingerprint" ? nullptr : "faulty 1\nof two lines";
}

int Save(void* module, void* host, int (*write)(void* host, const void* bytes, size_t count),
         char* message, size_t room) {
  const std::string& mode = static_cast<Faulty*>(module)->mode;
  if (const int status = Misbehave(mode, "save", message, room); status >= 0) return status;
  if (mode == "save refuses") return Fail("nothing to save", HEDDLE_ENGINE_REFUSED, message, room);
  if (mode.starts_with("saves later") && static_cast<Faulty*>(module)->calls == 0)
    return Fail("it has not run", HEDDLE_ENGINE_REFUSED, message, room);
  if (mode == "save fails half-way") {
    write(host, "half", 4);
    return Fail("the pen is empty", HEDDLE_ENGINE_FAILED, message, room);
  }
  if (mode == "save throws") throw std::runtime_error("a pen");
  if (mode == "saves nowhere") return write(host, nullptr, 5) == HEDDLE_ENGINE_OK ? 17 : 0;
  if (mode == "saves nothing") return HEDDLE_ENGINE_OK;
  if (mode == "saves much") {
    const std::string much(5 << 20, 'm');
    return write(host, much.data(), much.size());
  }
  for (const char c : {'s', 'a', 'v', 'e', 'd'})
    if (const int status = write(host, &c, 1); status != HEDDLE_ENGINE_OK) return status;
  return HEDDLE_ENGINE_OK;
}

int Restore(void* engine, const heddle_engine_group* group, const void* bytes, size_t count,
            void** module, char* message, size_t room) {
  const std::string& mode = static_cast<Faulty*>(engine)->mode;
  // Once for all processes.
  if (const std::string& marker = static_cast<Faulty*>(engine)->marker;
      mode.starts_with("restores once")) {
    std::FILE* const first = std::fopen(marker.c_str(), "wx");
    if (first == nullptr) return Fail("faded", HEDDLE_ENGINE_FAILED, message, room);
    std::fclose(first);
  }
  if (const int status = Misbehave(mode, "restore", message, room); status >= 0) return status;
  if (mode == "restore fails") return Fail("faded", HEDDLE_ENGINE_FAILED, message, room);
  if (mode == "restore refuses") return HEDDLE_ENGINE_REFUSED;
  if (mode == "restore throws") throw std::runtime_error("a page");
  if (mode == "restore throws a number") throw 7;
  if (mode == "restores nothing") return HEDDLE_ENGINE_OK;
  if (mode == "restore answers 17") return 17;
  const std::string saved = mode == "saves nothing" ? ""
                            : mode == "saves much"  ? std::string(5 << 20, 'm')
                                                    : "saved";
  if (std::string(static_cast<const char*>(bytes), count) != saved)
    return Fail("these are not the bytes", HEDDLE_ENGINE_FAILED, message, room);
  size_t parameters = 0;
  for (size_t i = 0; i < group->num_values; ++i) parameters += group->values[i]->data != nullptr;
  static_cast<Faulty*>(engine)->Note(
      ("restored with " + std::to_string(parameters) + "\n").c_str());
  if (mode.find("asks for models") != std::string::npos) {
    static_cast<Faulty*>(engine)->later = group->later;
    static_cast<Faulty*>(engine)->host = group->host;
  }
  *module = engine;
  return HEDDLE_ENGINE_OK;
}

const heddle_engine_table kTable = {
    sizeof(heddle_engine_table),
    HEDDLE_ENGINE_VERSION,
    0,
    "faulty",
    Open,
    Target,
    Takes,
    Compile,
    Run,
    [](void* module) { static_cast<Faulty*>(module)->Note("free\n"); },
    [](void* engine) {
      static_cast<Faulty*>(engine)->Note("close\n");
      delete static_cast<Faulty*>(engine);
    },
    Fingerprint,
    Save,
    Restore,
    [](void* engine) -> uint32_t {
      const std::string& mode = static_cast<Faulty*>(engine)->mode;
      if (mode.starts_with("restores alone"))
        return HEDDLE_ENGINE_RESTORES_ALONE | HEDDLE_ENGINE_WANTS_ONNX;
      if (mode == "unknown flag") return 1u << 20;
      return mode == "saves later" ? HEDDLE_ENGINE_SAVES_LATER : 0;
    },
    nullptr,
};

}  // namespace

// The table is as HEDDLE_FAULTY_TABLE says.
extern "C" __attribute__((visibility("default"))) const heddle_engine_table* heddle_engine_get(
    uint32_t) {
  const char* const said = std::getenv("HEDDLE_FAULTY_TABLE");
  if (said == nullptr) return &kTable;
  const std::string how = said;
  if (how == "null") return nullptr;
  if (how == "throws") throw std::runtime_error("no table");
  static heddle_engine_table table;
  table = kTable;
  if (how == "version") table.version = 2;
  if (how == "short") table.size = offsetof(heddle_engine_table, run);
  if (how == "no run") table.run = nullptr;
  if (how == "flags") table.flags = 256;
  if (how == "fingerprint") table.save = nullptr;
  return &table;
}
