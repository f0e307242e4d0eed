// An engine that is open, and what it has compiled. The only place that calls functions of engines:
// whatever they return, throw or leave undone comes out as a Status that names the engine.
//
// Calls that engines may wait in are ended by the limit and by the calling thread's Interrupts
// where the engine asks for it (heddle_engine_settings::stopped); runs also where it does not.
//
// Ownership: a Module keeps its library open. Threads: any; calls are made one at a time where the
// engine wants it so (heddle/heddle_engine.h).
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "heddle/engine.h"
#include "heddle/tensor.h"

namespace heddle {
class Interrupts;
}

namespace heddle::offload {

class GroupDescription;
struct Group;
class Module;

class EngineLibrary : public std::enable_shared_from_this<EngineLibrary> {
 public:
  static Result<std::shared_ptr<EngineLibrary>> Load(const std::string& path,
                                                     const EngineOptions& options);
  // `where`: for messages.
  static Result<std::shared_ptr<EngineLibrary>> Open(const heddle_engine_table* table,
                                                     const std::string& where,
                                                     const EngineOptions& options);
  ~EngineLibrary();
  EngineLibrary(const EngineLibrary&) = delete;
  EngineLibrary& operator=(const EngineLibrary&) = delete;

  const std::string& name() const { return name_; }
  std::chrono::milliseconds limit() const {  // at most a day, which can be added to a time
    return std::min<std::chrono::milliseconds>(options_.limit, std::chrono::hours(24));
  }
  bool reentrant() const;
  bool wants_onnx() const;
  bool saves_later() const;
  bool takes_many() const;
  // It restores groups without their ONNX model.
  bool restores_alone() const;
  // What the engine is told of a group: as ONNX, too, where it wants that.
  std::shared_ptr<GroupDescription> Describe(const Group& group) const;
  // The same without the ONNX model, which GroupDescription::WriteOnnx adds.
  std::shared_ptr<GroupDescription> Outline(const Group& group) const;
  // Runs of all its modules take turns.
  bool one_run() const;
  // The text of the engine's target file; empty: it has none.
  Result<std::string> TargetText();
  // Whether the engine is to be asked for operators.
  bool asks() const;
  // Not OK: why the engine does not take the one operator of the group, or, with takes_many(), some
  // of its operators.
  Status Takes(const GroupDescription& group);
  // A module for each group, or why there is none.
  std::vector<Result<std::shared_ptr<Module>>> Compile(
      const std::vector<std::shared_ptr<const GroupDescription>>& groups);

  // What a saved module's engine has to have in common with this one. kUnimplemented: the engine
  // does not save.
  Result<std::string> Fingerprint();
  // Hands the module's bytes to `write`, until that says no. kUnimplemented: the engine does not
  // save this one. Before the module runs.
  Status Save(const Module& module, const std::function<bool(const void*, size_t)>& write);
  // A module from what Save wrote for an equal group. The module keeps `bytes`, aligned to 64,
  // where the engine does.
  Result<std::shared_ptr<Module>> Restore(std::shared_ptr<const GroupDescription> group,
                                          BufferRef bytes, size_t count);
  const EngineOptions& options() const { return options_; }

 private:
  friend class Module;
  EngineLibrary(const heddle_engine_table* table, std::string name, EngineOptions options)
      : table_(table), name_(std::move(name)), options_(std::move(options)) {}

  Status Start();
  // Calls fn(message, room), which calls function `what` of the engine, unless that is to end
  // already. `about`: see StatusOf.
  template <typename Fn>
  Status Call(const char* what, const char* about, Fn&& fn);
  // Whether the call that is under way is to end.
  bool Stops();

  const heddle_engine_table* const table_;
  std::string name_;  // does not change once it is open
  const EngineOptions options_;
  std::mutex mutex_;  // one call at a time, but for runs
  void* engine_ = nullptr;
  uint32_t flags_ = 0;  // of the table and of the open engine
  bool open_ = false;

  std::mutex stop_mutex_;
  const char* calling_ = nullptr;  // what is under way; null: nothing
  Interrupts* interrupts_ = nullptr;
  std::chrono::steady_clock::time_point call_since_{};
  Status stop_;      // why the call is to end
  Status given_up_;  // the engine has not answered a call: nothing but runs is called any more

  // Of one_run(): whose run has the turn, and since when.
  std::mutex turn_mutex_;
  std::condition_variable turn_over_;
  bool turn_taken_ = false, turn_left_ = false;  // left: its run has ended meanwhile
  std::chrono::steady_clock::time_point turn_since_{};
};

// One run's outputs, as the engine asks for their memory. Called on one thread at a time.
class OutputSink {
 public:
  virtual ~OutputSink() = default;
  virtual size_t size() const = 0;
  // Not OK: output `index` cannot be such a tensor. May throw std::bad_alloc.
  virtual Status Take(size_t index, DType dtype, const Shape& shape, void** memory) = 0;
};

class Module : public std::enable_shared_from_this<Module> {
 public:
  Module(std::shared_ptr<EngineLibrary> library, std::shared_ptr<const GroupDescription> group,
         void* module, BufferRef saved = {})
      : library_(std::move(library)),
        group_(std::move(group)),
        saved_(std::move(saved)),
        module_(module) {}
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  EngineLibrary& library() const { return *library_; }
  const GroupDescription& group() const { return *group_; }
  // A call was given up: it is not called again.
  bool hangs() const;
  // Calls are given up at the engine's limit.
  bool has_limit() const { return library_->limit().count() > 0; }
  // To be called once, behind the first run that succeeds and before the next one. To be set before
  // any run.
  void set_after_first_run(std::function<void(const Module&)> fn) {
    after_first_run_ = std::move(fn);
  }
  // Calls the engine, which writes all outputs where the status is OK. kUnimplemented: it refuses
  // inputs of these shapes. `stopped`: whether the run that this is part of is to end, and why.
  // `may_leave`, which a limit needs: the call is made on a thread of its own, and may go on behind
  // this function's return. `inputs` and `sink` are kept until it ends; they must not be memory
  // that somebody else may take back meanwhile.
  Status Run(std::vector<Tensor> inputs, std::shared_ptr<OutputSink> sink,
             const std::function<Status()>& stopped, bool may_leave);

 private:
  friend class EngineLibrary;
  struct Call;
  Status Enter(const std::function<Status()>& stopped);
  // Waits for the engine's other modules, which is no time of this one's call.
  Status TakeTurn(const std::function<Status()>& stopped);
  void Leave();
  void NoteRun(const Status& status);
  static Status CallEngine(const Module& module, Call& call);
  Status RunAside(std::shared_ptr<Call> call, const std::function<Status()>& stopped);
  // The call goes on by itself.
  void LeaveBehind();
  Status Hangs() const;

  const std::shared_ptr<EngineLibrary> library_;
  const std::shared_ptr<const GroupDescription> group_;  // what the engine may point to
  const BufferRef saved_;                                // ... and what it was restored from
  void* const module_;
  mutable std::mutex mutex_;
  std::condition_variable left_;
  bool busy_ = false, hangs_ = false;
  bool left_behind_ = false;  // the run of the call that makes it busy has ended
  std::function<void(const Module&)> after_first_run_;
  bool waits_ = false;                             // what makes it busy waits for its turn
  std::chrono::steady_clock::time_point since_{};  // of the call that makes it busy
};

}  // namespace heddle::offload
