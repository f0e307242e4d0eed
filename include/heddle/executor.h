// Executor: compiles programs and runs them, many times, from any number of threads.
//
//   heddle::Executor executor({.threads = 2});
//   auto model = heddle::LoadModel("resnet/inference.pdmodel");
//   auto compiled = executor.Compile(*model);
//   auto outputs = executor.Run(*compiled, {{"x", tensor}});
//
// Ownership: an Executor owns its threads and plans; a CompiledProgram keeps its program and scope
// alive and must not outlive its Executor. Threads: every method may be called from any thread at
// the same time, but not from inside a kernel of one of its own runs; runs that write to
// persistable variables of one scope are serialised. With more than one thread, runs that meet use
// one thread each and at most as many are under way as there are threads; others wait their turn.
// Errors: never throws; a failed run leaves the executor usable and parameters at their last
// complete value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "heddle/memory_report.h"
#include "heddle/pass.h"
#include "heddle/place_memory.h"
#include "heddle/plan_description.h"
#include "heddle/plan_stats.h"
#include "heddle/program.h"
#include "heddle/run_options.h"
#include "heddle/status.h"
#include "heddle/value.h"

namespace heddle {

enum class Schedule {
  kAuto,      // the first runs are timed, and what turns out fastest is kept
  kSerial,    // one instruction after another; kernels may still use all threads inside
  kParallel,  // independent instructions side by side, given out to threads as they become ready
  kLanes,     // side by side, each thread's share decided ahead of time from estimated costs
};

// The place of operators that the executor's device could run. An operator whose attribute
// op_device names a place runs there.
enum class Placement {
  kDevice,  // on the device
  kHost,
  kRandom,  // for tests: each at a place drawn from CompileOptions::placement_seed
};

// Which temporaries share memory.
enum class Reuse {
  kOrdered,  // those whose users wait for each other anyway
  // In lanes also others, whose users are made to wait for each other as long as the longest path
  // through the program grows by 5 % at most; where that saves memory.
  kEdges,
  // None: each has memory of its own until the run ends, for a look at all of them.
  kNone,
};

class Communicator;
class Device;

struct ExecutorOptions {
  int threads = 0;  // 0 = as many as the process may use
  // The number of runs under way; others wait, first come first served. 1 = each has all threads.
  // 0 = as many as there are threads, each with one of them; with one thread, which leaves every
  // run to its caller's, any number.
  int runs_at_once = 0;
  int plan_cache_capacity = 32;
  size_t memory_limit = 0;  // bytes of temporaries and outputs alive at once; 0 = no limit
  // See heddle/device.h. With one, ways of running are not tried out, and CompileOptions::schedule
  // has no say.
  std::shared_ptr<Device> device = nullptr;
  // Further ones, at most 30, of the same kind: operators whose op_device says "gpu:1" run on the
  // first of them.
  std::vector<std::shared_ptr<Device>> more_devices = {};
  int device_streams = 2;  // that kernels of one run are spread over; copies have their own
  // The second run of a plan captures its work on the device's streams; later runs launch the
  // captured graph. Where the device or the plan cannot, PlanStats::no_capture says why.
  bool device_capture = true;
  // With several devices: a thread for each, beside `threads`, puts its work on its streams. Runs
  // that meet share them: the first has them, others go without.
  bool device_threads = true;
  // With a device and several threads: operators of the host that are estimated to take at least
  // this long on one thread are executed by any of the threads, while the caller's puts work on
  // streams.
  float host_task_ns = 20000;
  // For tests: memory that nobody has written to yet, or that was given back, holds NaN.
  bool poison = false;
  std::shared_ptr<Communicator> communicator = nullptr;  // the executor's rank: heddle/ranks.h

  // Sets `device` and `more_devices`, as to those of OpenDevices.
  void SetDevices(std::vector<std::shared_ptr<Device>> all);
};

struct CompileOptions {
  // Variable names; empty = the program's fetch operators.
  std::vector<std::string> fetches = {};
  // Further variables whose values a run keeps, for RunOptions::kept. Passes leave them alone, and
  // their memory is not reused within the run.
  std::vector<std::string> keep = {};
  int opt_level = 2;  // 0 = the program as it is; 1 = clean-ups; 2 = also fusion and layouts
  Schedule schedule = Schedule::kAuto;
  Reuse reuse = Reuse::kOrdered;
  // Operators may compute an output in the memory of an input that nobody needs any more. (What the
  // program itself says to compute in place is so in any case.)
  bool in_place = true;
  // The largest shapes of inputs, by name, of the inputs' ranks. Temporaries of all runs whose
  // feeds are no larger lie in blocks of one size, that of the plan for these shapes, which runs of
  // other shapes use again: after the first run, a new shape takes no further memory for them. Runs
  // with larger feeds, or with a schedule that places nothing ahead of time, have memory of their
  // own.
  std::vector<std::pair<std::string, Shape>> max_shapes = {};
  // Prefer little memory and a quick start to speed: kernels hold no copy of a parameter that is
  // larger than the parameter, and heddle's own loops compute what the primitives library would
  // generate code for, wherever there are such loops. Tuning has no say then. Results differ by
  // rounding from those of the usual way. Meant for programs that are run once or a few times. The
  // program's file stays open while the compiled program lives: it may be removed or replaced, but
  // not written to in place.
  bool lean = false;
  bool dynamic_bodies = false;  // for tests: shapes in sub-blocks are found while they run
  uint64_t seed = 0;            // of the generator that operators with seed 0 draw from
  Placement placement = Placement::kDevice;
  uint64_t placement_seed = 0;
  // For tests: with kParallel, the order of ready instructions comes from this seed; 0 = off.
  uint64_t shuffle_seed = 0;
  PassOptions passes = {};  // which passes run, and how they are watched
  // Kernels that can compute the same in several ways (convolutions) take the one that was the
  // fastest on this processor, with these threads and this build, as `tuning_file` says; empty: no
  // file. With `tune`, what it does not say is measured when a plan is built, and written to it. A
  // damaged file is replaced. Results differ by rounding from those of the usual way. With a
  // device, the times of its kernels are kept there, too, and choose their streams.
  bool tune = false;
  std::string tuning_file = {};
  // A file that keeps the copies of parameters which kernels make in an order of their own: mapped
  // from it they need not be made again, nor the parameters be read, and processes share their
  // memory. What it lacks is added when a plan is built; it takes as much disk as the copies take
  // memory. For parameters that are read from one combined file. It is not used but replaced when
  // those have changed, or the ways in which this build orders them have. While a process uses it,
  // it may be replaced or removed, not be cut short in place: that would end the process. Empty:
  // none.
  std::string packed_weights = {};
  // Implementations that kernels must have, by family: "conv=direct,gemm=panels"; families are
  // conv, conv_chain and gemm, implementations those that PlanDescription names (its first word).
  // Several for a family, as in "conv=winograd:direct", are tried in this order; tuning has no say
  // there. Making a plan fails where none covers an operator, and says which would.
  std::string force = {};
  // Plans are made as this one was, which DescribePlan told of the same program, for feeds of the
  // same shapes: its schedule, and the implementations of its kernels; nothing is tuned. An error
  // says what differs, if it is of another program, version or machine. nullptr: none.
  std::shared_ptr<const PlanDescription> follow = nullptr;
  // The description of a machine, as JSON (see tests/machines): plans are made as if for it, and
  // can be described, but not run. Empty: this machine.
  std::string machine = {};
};

// The effect of CompileOptions::tune and tuning_file on a program so far.
struct TuningReport {
  int measured = 0;  // choices that were measured
  int changed = 0;   // of them, other than the usual one
  int kept = 0;      // choices that were known already
  std::vector<std::string> warnings;
};

// The effect of CompileOptions::packed_weights on a program so far.
struct PackedWeightsReport {
  int found = 0;                      // copies that were in the file
  int made = 0;                       // that were not
  std::vector<std::string> warnings;  // why the file was not used, or not written
};

struct Feed {
  std::string name;
  Value value;
};

namespace internal {
class CompiledImpl;
class ExecutorImpl;
}  // namespace internal

class CompiledProgram {
 public:
  const std::vector<TensorInfo>& inputs() const;
  const std::vector<TensorInfo>& outputs() const;
  const std::shared_ptr<Scope>& scope() const;
  // The changes that passes made the last time the program was compiled.
  PassReport pass_report() const;
  TuningReport tuning_report() const;
  PackedWeightsReport packed_weights_report() const;
  const std::shared_ptr<internal::CompiledImpl>& impl() const { return impl_; }
  explicit CompiledProgram(std::shared_ptr<internal::CompiledImpl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<internal::CompiledImpl> impl_;
};

class Executor {
 public:
  explicit Executor(const ExecutorOptions& options = {});
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Optimises the program for the given fetches. Parameters are taken from `scope` (and must be
  // there by the first Run).
  Result<CompiledProgram> Compile(const Program& program, std::shared_ptr<Scope> scope,
                                  const CompileOptions& options = {});
  Result<CompiledProgram> Compile(const Model& model, const CompileOptions& options = {}) {
    return Compile(model.program, model.scope, options);
  }

  // Runs once; blocking. Fails with kCancelled or kDeadlineExceeded when the options say so. A feed
  // is used where it lies when it is contiguous; its memory must not change during the run. Feeds
  // may be in any order; all inputs must be fed. Returns the fetches in order, in their own memory.
  Result<std::vector<Value>> RunValues(const CompiledProgram& compiled,
                                       const std::vector<Feed>& feeds,
                                       const RunOptions& options = {});
  // The same for programs whose outputs are plain tensors.
  Result<std::vector<Tensor>> Run(const CompiledProgram& compiled, const std::vector<Feed>& feeds,
                                  const RunOptions& options = {});

  // Builds (or finds) the plan for feeds of these shapes without running it.
  Result<PlanStats> Prepare(const CompiledProgram& compiled, const std::vector<Feed>& feeds);
  // The same plan as text: one line per instruction.
  Result<std::string> PlanText(const CompiledProgram& compiled, const std::vector<Feed>& feeds);
  // ... and as a value.
  Result<PlanDescription> DescribePlan(const CompiledProgram& compiled,
                                       const std::vector<Feed>& feeds);
  // The memory plan of that plan. Computed by the call.
  Result<MemoryReport> PlanMemory(const CompiledProgram& compiled, const std::vector<Feed>& feeds);

  int threads() const;
  // Plans built so far (a cache hit builds none).
  int64_t plans_built() const;
  // Frees pooled memory that no run uses.
  void Trim();
  // The memory that runs have taken, place by place: the host, then the device if there is one.
  std::vector<PlaceMemory> MemoryUse() const;
  // From here on PlaceMemory::peak_bytes is the most since now.
  void ResetMemoryPeaks();

 private:
  std::unique_ptr<internal::ExecutorImpl> impl_;
};

}  // namespace heddle
