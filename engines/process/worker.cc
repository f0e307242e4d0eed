// The worker of the process engine: holds the real engine and answers what the host asks over file
// descriptor 3. It ends when the host does.
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engines/process/channel.h"
#include "engines/process/group_text.h"
#include "offload/engine_table.h"

namespace heddle_process {
namespace {

constexpr int kFd = 3;

// Outputs as the engine asks for them.
struct Outputs {
  struct One {
    int64_t index, dtype;
    std::vector<int64_t> dims;
    Memory memory;
  };
  std::vector<std::unique_ptr<One>> all;
};

// What heddle itself would refuse is told to it as it is, without memory.
void* TakeOutput(void* host, size_t index, int32_t dtype, int32_t rank, const int64_t* dims) {
  auto one = std::make_unique<Outputs::One>();
  one->index = static_cast<int64_t>(index);
  one->dtype = dtype;
  size_t bytes = SizeOf(dtype);
  const bool fits = rank >= 0 && rank <= HEDDLE_ENGINE_MAX_RANK;
  for (int32_t i = 0; fits && i < rank; ++i) {
    one->dims.push_back(dims[i]);
    if (dims[i] < 0 || (dims[i] > 0 && bytes > (size_t{1} << 48) / static_cast<size_t>(dims[i])))
      bytes = 0;
    else
      bytes *= static_cast<size_t>(dims[i]);
  }
  if (!fits) one->dims.assign(HEDDLE_ENGINE_MAX_RANK + 1, 0);
  void* memory = one->memory.Make(bytes + 1) ? one->memory.data() : nullptr;
  static_cast<Outputs*>(host)->all.push_back(std::move(one));
  return memory;
}

class Worker {
  // What the modules of one call may point to.
  struct Kept {
    Worker* worker = nullptr;
    Memory contents, saved, onnx;
    std::vector<std::unique_ptr<GroupCopy>> groups;
  };
  struct Module {
    void* module = nullptr;
    std::shared_ptr<const Kept> kept;
  };

  // The ONNX model of a group that is restored, while the host waits for an answer about it.
  static const void* Later(void* host, size_t* bytes) {
    auto& kept = *static_cast<Kept*>(host);
    Channel& channel = kept.worker->channel_;
    Message answer;
    if (kept.onnx.data() == nullptr && channel.Send(kWantOnnx, "") && channel.Receive(&answer) &&
        answer.kind == kOnnx && answer.memories.size() == 1)
      kept.onnx = std::move(answer.memories[0]);
    *bytes = kept.onnx.bytes();
    return kept.onnx.data();
  }

 public:
  int Serve() {
    fcntl(kFd, F_SETFD, FD_CLOEXEC);  // what the engine starts does not keep it open
    std::thread([] {
      for (;;) {
        pollfd one = {kFd, POLLRDHUP, 0};
        if (poll(&one, 1, -1) > 0) _exit(0);  // the host has gone, whatever the engine does
      }
    }).detach();
    Message message;
    while (channel_.Receive(&message)) {
      if (message.kind == kFree) {  // has no answer
        Free(message);
        continue;
      }
      message_.fill('\0');
      Writer body;
      std::vector<const Memory*> memories;
      Memory out;
      Outputs outputs;
      int status = HEDDLE_ENGINE_FAILED;
      try {
        status = Answer(&message, &body, &outputs, &out);
      } catch (const std::exception& e) {
        Say(std::string("it threw ") + e.what());
      } catch (...) {
        Say("it threw something that is no std::exception");
      }
      if (message.kind == kSave && status == HEDDLE_ENGINE_OK) memories.push_back(&out);
      if (message.kind == kRun && status == HEDDLE_ENGINE_OK) {
        if (Collect(outputs, &body, &out))
          memories.push_back(&out);
        else
          status = Say("there is no shared memory");
      }
      Writer answer;
      answer.Number(status);
      message_.back() = '\0';  // whatever the engine wrote
      answer.Text(message_.data());
      answer.Text(body.Take());
      if (!channel_.Send(kAnswer, answer.Take(), memories)) break;
    }
    return 0;
  }

 private:
  int Say(const std::string& text) {
    std::snprintf(message_.data(), message_.size(), "%s", text.c_str());
    return HEDDLE_ENGINE_FAILED;
  }

  int Answer(Message* message, Writer* body, Outputs* outputs, Memory* out) {
    Reader reader(message->text);
    switch (message->kind) {
      case kOpen:
        return Open(&reader, body);
      case kTakes:
      case kCompile:
      case kRestore:
        return ForGroups(message, &reader, body);
      case kFingerprint:
        return Fingerprint(body);
      case kSave:
        return Save(&reader, out);
      case kRun:
        return Run(*message, &reader, outputs);
      case kClose:
        return Close();
      default:
        return Say("the worker is asked what it does not know");
    }
  }

  // The library is not one to use.
  int Refuse(const std::string& text) {
    Say(text);
    return HEDDLE_ENGINE_REFUSED;
  }

  // Says of a library what heddle says of one that it opens itself.
  int Open(Reader* reader, Writer* body) {
    const std::string library = reader->Text();
    if (access(library.c_str(), F_OK) != 0) return Refuse(library + ": there is no such engine");
    void* const opened = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) return Refuse(library + ": cannot be loaded as an engine: " + dlerror());
    const auto get = reinterpret_cast<heddle_engine_get_function>(dlsym(opened, HEDDLE_ENGINE_GET));
    if (get == nullptr)
      return Refuse(library + ": is no engine: it exports no function " HEDDLE_ENGINE_GET);
    table_ = get(HEDDLE_ENGINE_VERSION);
    if (const std::string why = heddle::offload::WhyNoEngine(table_); !why.empty())
      return Refuse(library + ": " + why);
    const auto threads = static_cast<int32_t>(reader->Number());
    std::vector<std::string> options(2 * reader->Count());
    std::vector<const char*> keys, texts;
    for (std::string& text : options) text = reader->Text();
    for (size_t i = 0; i < options.size(); i += 2) {
      keys.push_back(options[i].c_str());
      texts.push_back(options[i + 1].c_str());
    }
    heddle_engine_settings settings = {};
    settings.size = sizeof settings;
    settings.version = HEDDLE_ENGINE_VERSION;
    settings.threads = threads;
    settings.num_options = keys.size();
    settings.keys = keys.data();
    settings.texts = texts.data();
    settings.stopped = [](void*) { return 0; };  // the host ends the process
    const std::string name = table_->name;
    int status = HEDDLE_ENGINE_FAILED;
    try {
      status = table_->open(&settings, &engine_, message_.data(), message_.size());
    } catch (const std::exception& e) {
      return Say(name + ": it threw " + e.what());
    } catch (...) {
      return Say(name + ": it threw something that is no std::exception");
    }
    if (status != HEDDLE_ENGINE_OK) {
      message_.back() = '\0';
      const std::string why = message_.data();
      Say(name + ": " + (why.empty() ? "the engine does not say why" : why));
      return status;
    }
    const uint32_t flags =
        table_->flags | (HEDDLE_HAS(table_, more_flags) ? table_->more_flags(engine_) : 0);
    if (const std::string unknown = heddle::offload::UnknownFlags(flags); !unknown.empty())
      return Refuse(name + ": " + unknown);
    const char* const given = HEDDLE_HAS(table_, open_name) ? table_->open_name(engine_) : nullptr;
    body->Text(given != nullptr ? given : name);
    const char* target = HEDDLE_HAS(table_, target) ? table_->target(engine_) : nullptr;
    body->Number(target != nullptr ? 1 : 0);
    body->Text(target != nullptr ? target : "");
    body->Number(HEDDLE_HAS(table_, takes) ? 1 : 0);
    body->Number(flags);
    return status;
  }

  int ForGroups(Message* message, Reader* reader, Writer* body) {
    if (message->memories.size() != (message->kind == kRestore ? 2 : 1))
      return Say("the parameters are missing");
    auto kept = std::make_shared<Kept>();
    kept->worker = this;
    kept->contents = std::move(message->memories[0]);
    const std::byte* at = kept->contents.data();
    const std::byte* const end = at + kept->contents.bytes();
    const int64_t first = message->kind != kTakes ? reader->Number() : 0;
    const size_t count = reader->Count();
    std::vector<const heddle_engine_group*> groups;
    for (size_t k = 0; k < count; ++k) {
      kept->groups.push_back(std::make_unique<GroupCopy>(reader, &at, end));
      groups.push_back(&kept->groups.back()->get());
    }
    if (!reader->good()) return Say("the groups cannot be read");
    if (message->kind == kTakes)
      return table_->takes(engine_, groups[0], message_.data(), message_.size());
    if (message->kind == kRestore) {
      kept->saved = std::move(message->memories[1]);
      for (const auto& group : kept->groups)
        if (group->has_more()) group->set_later(kept.get(), Later);
      return Restore(first, std::move(kept));
    }
    std::vector<std::array<char, 1024>> texts(count);
    std::vector<heddle_engine_compiled> compiled(count);
    std::vector<heddle_engine_compiled*> results;
    for (size_t k = 0; k < count; ++k) {
      texts[k].fill('\0');
      compiled[k] = {sizeof compiled[k], HEDDLE_ENGINE_REFUSED, nullptr, texts[k].data(),
                     texts[k].size()};
      results.push_back(&compiled[k]);
    }
    const int status = table_->compile(engine_, groups.data(), results.data(), count,
                                       message_.data(), message_.size());
    if (status != HEDDLE_ENGINE_OK) return status;
    for (size_t k = 0; k < count; ++k) {
      body->Number(compiled[k].status);
      body->Text(std::string(texts[k].data(), strnlen(texts[k].data(), texts[k].size())));
      if (compiled[k].status == HEDDLE_ENGINE_OK)
        modules_[first + static_cast<int64_t>(k)] = {compiled[k].module, kept};
    }
    return status;
  }

  int Fingerprint(Writer* body) {
    const char* const text =
        HEDDLE_HAS(table_, fingerprint) ? table_->fingerprint(engine_) : nullptr;
    if (text == nullptr) return HEDDLE_ENGINE_REFUSED;
    body->Text(std::string(table_->name) + ": " + text);
    return HEDDLE_ENGINE_OK;
  }

  int Save(Reader* reader, Memory* to) {
    const auto found = modules_.find(reader->Number());
    if (found == modules_.end()) return Say("there is no such group");
    struct Saved {
      std::string bytes;
      bool refused = false;  // an engine may go on all the same
    } saved;
    const int status = table_->save(
        found->second.module, &saved,
        [](void* host, const void* bytes, size_t count) -> int {
          auto& s = *static_cast<Saved*>(host);
          s.refused = s.refused || (bytes == nullptr && count > 0);
          if (s.refused) return HEDDLE_ENGINE_FAILED;
          if (count > 0) s.bytes.append(static_cast<const char*>(bytes), count);
          return HEDDLE_ENGINE_OK;
        },
        message_.data(), message_.size());
    if (saved.refused) return Say("it saves bytes that are nowhere");
    if (status != HEDDLE_ENGINE_OK) return status;
    if (!to->Make(saved.bytes.size())) return Say("there is no shared memory");
    if (!saved.bytes.empty()) std::memcpy(to->data(), saved.bytes.data(), saved.bytes.size());
    return HEDDLE_ENGINE_OK;
  }

  int Restore(int64_t number, std::shared_ptr<const Kept> kept) {
    if (!HEDDLE_HAS(table_, restore) || kept->groups.empty()) return HEDDLE_ENGINE_REFUSED;
    alignas(64) static const std::byte nothing{};
    const Memory& saved = kept->saved;
    void* module = nullptr;
    const int status = table_->restore(engine_, &kept->groups[0]->get(),
                                       saved.bytes() > 0 ? saved.data() : &nothing, saved.bytes(),
                                       &module, message_.data(), message_.size());
    if (status == HEDDLE_ENGINE_OK && module == nullptr) return Say("it restores nothing");
    if (status == HEDDLE_ENGINE_OK) modules_[number] = {module, std::move(kept)};
    return status;
  }

  // What the engine throws is nobody's run: the module is forgotten all the same.
  void Free(const Message& message) {
    Reader reader(message.text);
    const size_t count = reader.Count();
    for (size_t k = 0; k < count; ++k) {
      const auto found = modules_.find(reader.Number());
      if (found == modules_.end()) continue;
      const Module gone = std::move(found->second);  // what it may point to goes behind it
      modules_.erase(found);
      FreeOne(gone);
    }
  }

  void FreeOne(const Module& module) {
    try {
      table_->free_module(module.module);
    } catch (...) {
    }
  }

  int Close() {
    for (const auto& [number, module] : modules_) FreeOne(module);
    modules_.clear();
    table_->close(engine_);
    return HEDDLE_ENGINE_OK;
  }

  int Run(const Message& message, Reader* reader, Outputs* outputs) {
    const auto found = modules_.find(reader->Number());
    const auto num_outputs = static_cast<size_t>(reader->Number());
    const size_t count = reader->Count();
    if (message.memories.size() != 1 || found == modules_.end())
      return Say("there is no such group");
    const std::byte* at = message.memories[0].data();
    std::vector<std::vector<int64_t>> dims(count);
    std::vector<heddle_engine_tensor> tensors(count);
    std::vector<const heddle_engine_tensor*> inputs;
    for (size_t k = 0; k < count; ++k) {
      heddle_engine_tensor& t = tensors[k];
      t.size = sizeof t;
      t.dtype = static_cast<int32_t>(reader->Number());
      t.rank = static_cast<int32_t>(reader->Number());
      for (int32_t i = 0; i < t.rank; ++i) dims[k].push_back(reader->Number());
      t.dims = dims[k].data();
      t.bytes = static_cast<size_t>(reader->Number());
      t.data = at;
      at += Aligned(t.bytes);
      inputs.push_back(&t);
    }
    if (!reader->good()) return Say("the inputs cannot be read");
    heddle_engine_run run = {};
    run.size = sizeof run;
    run.num_inputs = count;
    run.inputs = inputs.data();
    run.num_outputs = num_outputs;
    run.host = outputs;
    run.output = TakeOutput;
    run.stopped = [](void*) { return 0; };  // the host ends the process
    return table_->run(found->second.module, &run, message_.data(), message_.size());
  }

  // Copies what the engine wrote to one memory.
  static bool Collect(const Outputs& outputs, Writer* body, Memory* to) {
    size_t bytes = 1;
    for (const auto& one : outputs.all) bytes += Aligned(one->memory.bytes());
    if (!to->Make(bytes)) return false;
    size_t at = 0;
    body->Number(static_cast<int64_t>(outputs.all.size()));
    for (const auto& one : outputs.all) {
      const size_t size = one->memory.bytes() > 0 ? one->memory.bytes() - 1 : 0;
      body->Number(one->index);
      body->Number(one->dtype);
      body->Number(static_cast<int64_t>(one->dims.size()));
      for (const int64_t dim : one->dims) body->Number(dim);
      body->Number(static_cast<int64_t>(at));
      body->Number(static_cast<int64_t>(size));
      if (size > 0) std::memcpy(to->data() + at, one->memory.data(), size);
      at += Aligned(size);
    }
    return true;
  }

  Channel channel_{kFd};
  const heddle_engine_table* table_ = nullptr;
  void* engine_ = nullptr;
  std::map<int64_t, Module> modules_;
  std::array<char, 1024> message_ = {};
};

}  // namespace
}  // namespace heddle_process

int main() { return heddle_process::Worker().Serve(); }
