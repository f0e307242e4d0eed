// Engines: libraries from outside that compute parts of a program. Operators that a target takes
// are grouped, each group becomes one operator that calls the target's engine, and everything else
// stays heddle's. docs/engines.md is a guide.
//
//   HEDDLE_ASSIGN_OR_RETURN(auto target, heddle::HardwareTarget::Load("npu.json"));
//   HEDDLE_ASSIGN_OR_RETURN(auto engine, heddle::Engine::Load("/opt/npu/libnpu_engine.so"));
//   HEDDLE_ASSIGN_OR_RETURN(auto offloaded, heddle::Offload(model, {{target, engine}}));
//   auto compiled = executor.Compile(offloaded.model);
//
// Part of the library heddle_offload. Ownership: an Engine is shared by its copies and by the
// models that were offloaded to it. Threads: any. Errors: never throws; messages name the engine.
// A run that an engine fails ends with its error, and the executor stays usable.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heddle/executor.h"
#include "heddle/heddle_engine.h"
#include "heddle/target.h"

namespace heddle {

namespace offload {
class EngineLibrary;
class ModuleCache;
}  // namespace offload

struct EngineOptions {
  int threads = 1;  // that each of its calls may use
  // The longest that a call may take; zero: any time. An engine that has not answered a run by then
  // is not called again for its group, and the call is left to itself; so it is with a run's own
  // deadline. With either, groups are given copies of their inputs, which stay there for as long as
  // the call goes on. Other calls end where the engine asks whether they are to
  // (heddle_engine_settings::stopped), as the process engine does, and with them the use of the
  // engine.
  std::chrono::milliseconds limit{0};
  std::vector<std::pair<std::string, std::string>> options = {};  // for the engine
};

class Engine {
 public:
  // Opens the library at `path`, which must name a folder: it is looked for nowhere else. A library
  // that was loaded stays in the process.
  static Result<Engine> Load(const std::string& path, const EngineOptions& options = {});
  // An engine that is part of the program.
  static Result<Engine> FromTable(const heddle_engine_table* table,
                                  const EngineOptions& options = {});

  const std::string& name() const;
  // What the engine says it takes; kNotFound: it does not say.
  Result<HardwareTarget> target() const;
  const std::shared_ptr<offload::EngineLibrary>& impl() const { return impl_; }

 private:
  explicit Engine(std::shared_ptr<offload::EngineLibrary> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<offload::EngineLibrary> impl_;
};

// A target, and the engine that computes its groups. Without one they are computed by heddle's own
// kernels, each group by itself: hardware that is not there yet.
struct Offloader {
  HardwareTarget target;
  std::optional<Engine> engine = std::nullopt;
};

// ---- what was compiled -------------------------------------------------------------------------

struct EngineCacheStats {
  int64_t hits = 0;      // groups whose module was in use, or that another thread was compiling
  int64_t misses = 0;    // all others
  int64_t restored = 0;  // misses that were on disk
  int64_t compiled = 0;  // misses that went to an engine's compiler, refused ones among them
  int64_t rejected = 0;  // files that were damaged, or that the engine did not restore
  int64_t stored = 0;    // files written
};

// What engines have compiled, for programs and processes to come: a group that equals one that is
// in use shares its module, and on disk lies what engines can save. A file that is damaged, or was
// made by another version, engine, option or processor, is compiled anew. docs/engines.md tells
// what makes two groups equal.
//
//   options.cache = heddle::EngineCache::OnDisk("/home/me/.cache/engines");
//
// Ownership: shared by those that hold it; it keeps no module alive, programs do. Threads: any;
// what several ask for at once is compiled once. Any number of processes may share a folder.
// Errors: a folder that cannot be used is no error but a line in the report
// (OffloadReport::cache_warning).
class EngineCache {
 public:
  static constexpr int64_t kMaxBytes = int64_t{2} << 30;

  static std::shared_ptr<EngineCache> InMemory();
  // In `directory`, too, which is made where there is none, for this user alone. Files there have
  // at most `max_bytes` together; least recently used ones go first. What is being written comes on
  // top.
  static std::shared_ptr<EngineCache> OnDisk(std::string directory, int64_t max_bytes = kMaxBytes);

  EngineCacheStats stats() const;
  offload::ModuleCache& impl() const { return *impl_; }

 private:
  explicit EngineCache(std::shared_ptr<offload::ModuleCache> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<offload::ModuleCache> impl_;
};

// A file of a cache.
struct EngineCacheEntry {
  std::string file;  // its name in the folder
  int64_t bytes = 0;
  int64_t age_s = 0;     // since it was used last, by the files' clock; 0 where that lies ahead
  bool answers = false;  // no module: what the engine said it takes
  bool damaged = false;
  // Of what is not damaged.
  std::string engine, target, fingerprint;
  int64_t operators = 0;
};

struct EngineCacheContents {
  std::vector<EngineCacheEntry> entries;  // most recently used ones first
  int64_t bytes = 0;                      // of the entries
  int64_t unfinished = 0;                 // files that are being written, or were left behind
  int64_t others = 0;  // what lies there and is none of the cache's; it is left alone
};

struct EngineCacheCleaned {
  int64_t files = 0, bytes = 0;  // that were removed
};

// kNotFound, kInvalidArgument: no folder, or one that others may write to.
Result<EngineCacheContents> ListEngineCache(const std::string& directory);
// Removes damaged files and those that killed processes left behind, then least recently used ones
// until the others have at most `max_bytes`. kResourceExhausted: others hold the folder's lock.
Result<EngineCacheCleaned> CleanEngineCache(const std::string& directory, int64_t max_bytes);

// ---- programs with engines ---------------------------------------------------------------------

struct OffloadOptions {
  enum class Policy {
    kAlways,  // each group that the engine compiles goes to it
    // ... if that is faster, for `feeds`: each group by itself, and the whole. Groups without an
    // engine are not compared.
    kMeasured,
  };
  Policy policy = Policy::kAlways;
  // For kMeasured: with what, and in which way, the program will run.
  std::vector<Feed> feeds = {};
  ExecutorOptions executor = {};
  // For kAlways, too, `fetches` are what is fetched, `opt_level` is that of groups without an
  // engine, and `passes` of POST_PARTITIONING that take partitions run on groups and on what stays,
  // before engines see any group. An error of theirs ends Offload.
  CompileOptions compile = {};
  // Groups that equal what is in the cache are not compiled again, and engines are not asked again
  // what they take of them; what is compiled is given names by position instead of the program's.
  // Null: each group is compiled.
  std::shared_ptr<EngineCache> cache = nullptr;
};

namespace offload {
class RunCount;
}

// Runs that came to a group on an engine.
struct GroupRuns {
  int64_t runs = 0, refused = 0;  // refused: heddle computed it
  std::string reason;             // of the first that was
};

// What became of a group.
struct OffloadedGroup {
  std::string symbol, target, engine;  // no engine: empty
  int block = 0;
  std::vector<std::string> operators;  // types, in their order
  size_t inputs = 0, outputs = 0;
  bool taken = false;
  std::string reason;                 // why it was not
  std::string cache;                  // "hit in memory", "hit on disk", "compiled"; no cache: empty
  double engine_ms = 0, host_ms = 0;  // measured; 0: not
  std::shared_ptr<const offload::RunCount> count = nullptr;

  // Of the offloaded program, up to now. Trial runs do not count.
  GroupRuns runs() const;
};

// Operators that a target takes and its engine does not, or about which it could not be asked.
struct OffloadRefusal {
  std::string target, engine, reason;
  std::vector<std::string> operators;  // types
};

struct OffloadReport {
  std::vector<OffloadedGroup> groups;
  std::vector<OffloadRefusal> refusals;   // one for each reason
  int operators = 0;                      // of the program
  double alone_ms = 0, offloaded_ms = 0;  // the whole, measured; 0: not
  std::string decision;                   // by the whole; empty: nothing was measured
  std::string cache_warning;              // why the cache's folder is not used; empty: it is
  // Of POST_PARTITIONING, on groups and what stays (heddle/passes/partitions.h).
  PassReport passes;

  // A line for each group and each refusal.
  std::string ToString() const;
};

struct OffloadedModel {
  // Its scope is that of the model that was given, or a child of that with parameters that passes
  // made.
  Model model;
  OffloadReport report;
};

// Groups what the targets take; the first one claims first. Parameters that the program does not
// write are handed to the engines as they are now. Groups that cannot be handed over stay, and the
// report says why. kInvalidArgument: no target, or two of one name; kUnimplemented: the program
// cannot be written as a ProgramDesc, by which it is partitioned.
Result<OffloadedModel> Offload(const Model& model, const std::vector<Offloader>& offloaders,
                               const OffloadOptions& options = {});

}  // namespace heddle
