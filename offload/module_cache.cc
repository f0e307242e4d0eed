#include "offload/module_cache.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/error.h"
#include "heddle/host.h"
#include "offload/group_description.h"
#include "offload/group_key.h"
#include "offload/module_file.h"

namespace heddle::offload {
namespace {

constexpr const char *kInMemory = "hit in memory", *kOnDisk = "hit on disk", *kNew = "compiled";

// Who compiles and how, a thing a line.
std::string AboutOf(const EngineLibrary& library, const std::string& fingerprint,
                    const std::string& target, const std::string& target_file) {
  // Engines say what their modules depend on; heddle's version and the processor count in any case.
  const HostReport host = InspectHost();
  std::string sets;
  for (const std::string& set : host.instruction_sets) sets += " " + set;
  Digest file;
  file.AddText(target_file);
  std::string about =
      StrCat("heddle ", host.version, "\ninterface ", HEDDLE_ENGINE_VERSION, "\nprocessor ",
             OneLine(host.cpu + sets), "\nengine ", OneLine(library.name()), "\nfingerprint ",
             OneLine(fingerprint), "\ntarget ", OneLine(target), "\ntarget_file ",
             HexOf(std::move(file).Finish()), "\nthreads ", library.options().threads, "\n");
  for (const auto& [key, text] : library.options().options)
    about += StrCat("option ", OneLine(key), "=", OneLine(text), "\n");
  return about;
}

}  // namespace

// A group that is asked for.
struct ModuleCache::Wanted {
  std::shared_ptr<GroupDescription> group;
  ModuleKey key;
  std::string name;               // of its module in memory
  std::optional<size_t> same_as;  // an earlier one of the batch is equal
  std::shared_ptr<Making> made;   // by this batch, or by another one
  bool mine = false;
  std::optional<Made> result;
};

// The groups of one call. What it has begun to make is given up with it, whatever ends it.
class ModuleCache::Batch {
 public:
  Batch(ModuleCache& cache, EngineLibrary& library, std::string* warning)
      : cache_(cache), library_(library), warning_(warning) {}
  ~Batch() {
    MutexLock lock(cache_.mutex_);
    for (const Wanted& w : wanted_)
      if (w.mine && !w.made->done) cache_.Publish(w);
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  std::vector<Made> Run(const std::string& target, const std::string& target_file,
                        const std::vector<std::shared_ptr<const Group>>& groups) {
    const auto fingerprint = library_.Fingerprint();
    Describe(target, target_file, fingerprint, groups);
    Claim();
    std::optional<CacheFolder> folder = Folder(fingerprint.status());
    if (folder) Restore(*folder);
    Compile(folder ? &*folder : nullptr);
    PublishAll();
    return Collect();
  }

 private:
  void Warn(const Status& status) {
    if (warning_->empty()) *warning_ = status.message();
  }

  void Describe(const std::string& target, const std::string& target_file,
                const Result<std::string>& fingerprint,
                const std::vector<std::shared_ptr<const Group>>& groups) {
    // Without a fingerprint nobody knows whether another one of that name is the same engine.
    const std::string about =
        AboutOf(library_, fingerprint.ok() ? *fingerprint : StrCat("none ", &library_), target,
                target_file);
    for (const auto& group : groups) {
      Wanted& w = wanted_.emplace_back();
      auto nameless = WithoutNames(*group);
      if (!nameless.ok()) {
        w.result = Made{nameless.status()};
        continue;
      }
      w.group = library_.Outline(**nameless);
      w.key = {KeyOf(*w.group, about), about};
      w.group->set_symbol(HexOf(w.key.digest));
      // A module has the limit of the engine that it was compiled by.
      w.name = StrCat(HexOf(w.key.digest), " ", library_.limit().count());
    }
  }

  // Finds what is in memory, and says of the rest that it is being made.
  void Claim() {
    std::unordered_map<std::string, size_t> seen;
    MutexLock lock(cache_.mutex_);
    for (size_t k = 0; k < wanted_.size(); ++k) {
      Wanted& w = wanted_[k];
      if (w.result) continue;
      const auto [first, is_new] = seen.emplace(w.name, k);
      if (!is_new) {
        w.same_as = first->second;
      } else if (cache_.FindInMemory(&w)) {
        ++cache_.stats_.hits;
      } else if (const auto other = cache_.making_.find(w.name); other != cache_.making_.end()) {
        w.made = other->second;
      } else {
        w.made = std::make_shared<Making>();
        cache_.making_[w.name] = w.made;
        w.mine = true;
        ++cache_.stats_.misses;
      }
    }
  }

  bool IsOpen(const Wanted& w) const { return w.mine && !w.result; }

  std::optional<CacheFolder> Folder(const Status& saves) {
    if (cache_.directory_.empty() ||
        std::none_of(wanted_.begin(), wanted_.end(), [&](const Wanted& w) { return IsOpen(w); }))
      return std::nullopt;
    if (!saves.ok()) {
      if (saves.code() != StatusCode::kUnimplemented) Warn(saves);
      return std::nullopt;
    }
    auto folder = CacheFolder::Open(cache_.directory_, CacheFolder::Make::kYes);
    if (folder.ok()) return *std::move(folder);
    Warn(folder.status());
    return std::nullopt;
  }

  void Restore(CacheFolder& folder) {
    for (Wanted& w : wanted_) {
      if (!IsOpen(w)) continue;
      const CacheFolder::Found found = folder.Read(w.key);
      if (found.bytes) {
        if (library_.restores_alone())
          w.group->WriteOnnxLater([group = w.group.get(), key = w.key] {
            return KeyOf(*group, key.about) == key.digest;
          });
        else
          w.group->WriteOnnx();
        auto module = library_.Restore(w.group, found.bytes, found.count);
        if (module.ok()) {
          ++restored_;
          w.result = Made{std::move(module), kOnDisk};
          continue;
        }
        // It is compiled instead.
        if (module.status().code() != StatusCode::kUnimplemented) Warn(module.status());
      }
      rejected_ += found.bytes || found.damaged ? 1 : 0;
    }
  }

  void Compile(CacheFolder* folder) {
    std::vector<Wanted*> open;
    std::vector<std::shared_ptr<const GroupDescription>> groups;
    for (Wanted& w : wanted_) {
      if (!IsOpen(w)) continue;
      open.push_back(&w);
      w.group->WriteOnnx();
      groups.push_back(w.group);
    }
    if (open.empty()) return;
    auto modules = library_.Compile(groups);
    compiled_ = static_cast<int64_t>(open.size());
    for (size_t k = 0; k < open.size(); ++k) {
      open[k]->result = Made{std::move(modules[k]), kNew};
      if (folder != nullptr && open[k]->result->module.ok() && !Store(folder, *open[k]))
        folder = nullptr;
    }
  }

  // Before anybody runs the module. False: the folder takes nothing more.
  bool Store(CacheFolder* folder, const Wanted& w) {
    const Module& module = **w.result->module;
    const Status status =
        folder->Write(w.key, static_cast<int64_t>(w.group->get().num_operators), cache_.max_bytes_,
                      [&](const CacheFolder::Sink& sink) { return library_.Save(module, sink); });
    if (status.ok()) {
      ++stored_;
    } else if (status.code() != StatusCode::kUnimplemented) {
      Warn(status);
      return status.code() == StatusCode::kOutOfRange;  // this one alone is too large
    } else if (library_.saves_later()) {                // else the engine cannot save it
      (*w.result->module)
          ->set_after_first_run([cache = cache_.weak_from_this(), key = w.key](const Module& ran) {
            if (const auto c = cache.lock()) c->StoreAfterRun(ran, key);
          });
    }
    return true;
  }

  void PublishAll() {
    MutexLock lock(cache_.mutex_);
    for (const Wanted& w : wanted_)
      if (w.mine) cache_.Publish(w);
    cache_.stats_.restored += restored_;
    cache_.stats_.compiled += compiled_;
    cache_.stats_.rejected += rejected_;
    cache_.stats_.stored += stored_;
    cache_.DropUnused();
  }

  // Nothing of this batch is open any more when it waits for others, so they do not wait for it.
  std::vector<Made> Collect() {
    std::vector<Made> all;
    MutexLock lock(cache_.mutex_);
    for (Wanted& w : wanted_) {
      if (w.same_as) {
        w.result = Made{all[*w.same_as].module, kInMemory};
        ++cache_.stats_.hits;
      } else if (!w.result) {
        while (!w.made->done) cache_.made_.Wait(cache_.mutex_);
        w.result = Made{w.made->module, kInMemory};
        ++cache_.stats_.hits;
      }
      all.push_back(*w.result);
    }
    return all;
  }

  ModuleCache& cache_;
  EngineLibrary& library_;
  std::string* const warning_;
  std::vector<Wanted> wanted_;
  int64_t restored_ = 0, compiled_ = 0, rejected_ = 0, stored_ = 0;
};

// Equal when it was compiled, that is: parameters may have been written to since.
bool ModuleCache::FindInMemory(Wanted* wanted) {
  const auto found = modules_.find(wanted->name);
  if (found == modules_.end()) return false;
  std::shared_ptr<Module> module = found->second.lock();
  if (module == nullptr || module->hangs() ||
      !HaveEqualParameters(module->group().get(), wanted->group->get()))
    return false;
  wanted->result = Made{std::move(module), kInMemory};
  return true;
}

void ModuleCache::Publish(const Wanted& wanted) {
  if (wanted.result) wanted.made->module = wanted.result->module;
  wanted.made->done = true;
  if (wanted.made->module.ok()) modules_[wanted.name] = *wanted.made->module;
  making_.erase(wanted.name);
  made_.NotifyAll();
}

void ModuleCache::StoreAfterRun(const Module& module, const ModuleKey& key) {
  auto folder = CacheFolder::Open(directory_, CacheFolder::Make::kYes);
  if (!folder.ok()) return;
  const Status status = folder->Write(
      key, static_cast<int64_t>(module.group().get().num_operators), max_bytes_,
      [&](const CacheFolder::Sink& sink) { return module.library().Save(module, sink); });
  if (!status.ok()) return;
  MutexLock lock(mutex_);
  ++stats_.stored;
}

void ModuleCache::DropUnused() {
  if (modules_.size() < drop_at_) return;
  std::erase_if(modules_, [](const auto& entry) { return entry.second.expired(); });
  drop_at_ = std::max<size_t>(64, 2 * modules_.size());
}

std::vector<ModuleCache::Made> ModuleCache::Get(
    EngineLibrary& library, const std::string& target, const std::string& target_file,
    const std::vector<std::shared_ptr<const Group>>& groups, std::string* warning) {
  return Batch(*this, library, warning).Run(target, target_file, groups);
}

Refusals ModuleCache::Refused(EngineLibrary& library, const std::string& target,
                              const std::string& target_file, const Group& group) {
  OnnxWriter onnx(*group.program, group.parameters);
  bool certain = true;
  Result<std::string> fingerprint = Unimplemented("there is no folder");
  if (!directory_.empty()) fingerprint = library.Fingerprint();
  if (!fingerprint.ok()) return RefusedBy(library, group, &onnx, &certain);
  ModuleKey key{{}, AboutOf(library, *fingerprint, target, target_file), FileKind::kAnswers};
  key.digest = AnswersKeyOf(group, library.wants_onnx() ? &onnx : nullptr, key.about);
  const size_t operators = group.program->blocks[0].ops.size();
  // What is wrong with the folder is said of its modules.
  auto folder = CacheFolder::Open(directory_, CacheFolder::Make::kYes);
  if (!folder.ok()) return RefusedBy(library, group, &onnx, &certain);
  if (const CacheFolder::Found found = folder->Read(key); found.bytes)
    if (auto refusals =
            RefusalsOf({static_cast<const char*>(found.bytes->data()), found.count}, operators))
      return *std::move(refusals);
  Refusals refusals = RefusedBy(library, group, &onnx, &certain);
  if (certain)
    (void)folder->Write(key, static_cast<int64_t>(operators), max_bytes_,
                        [bytes = BytesOf(refusals)](const CacheFolder::Sink& sink) {
                          return sink(bytes.data(), bytes.size())
                                     ? Status::Ok()
                                     : ResourceExhausted("the folder takes no more");
                        });
  return refusals;
}

Refusals RefusedBy(const Offloader& offloader, const Group& group, EngineCache* cache) {
  EngineLibrary& library = *offloader.engine->impl();
  if (cache == nullptr) return RefusedBy(library, group);
  const HardwareTarget& target = offloader.target;
  return cache->impl().Refused(library, target.name(), target.text(), group);
}

EngineCacheStats ModuleCache::stats() const {
  MutexLock lock(mutex_);
  return stats_;
}

}  // namespace heddle::offload
