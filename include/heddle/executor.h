// Executor: compiles programs and runs them, many times, on any number of threads.
//
//   heddle::Executor executor({.threads = 2});
//   auto model = heddle::LoadModel("resnet/inference.pdmodel");
//   auto compiled = executor.Compile(*model);
//   auto outputs = executor.Run(*compiled, {{"x", tensor}});
//
// Ownership: an Executor owns its threads and plans; a CompiledProgram keeps its program and scope
// alive and must not outlive its Executor. Threads: all methods may be called from any thread at
// the same time, but not from inside a kernel of one of its own runs; runs that write persistable
// variables of one scope are serialised. With more than one thread, runs that overlap use one
// thread each, and at most as many execute as there are threads; others wait their turn. Errors: no
// method throws (the constructor does, see heddle/bounds.h); a failed run leaves the executor
// usable and parameters at their last complete value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "heddle/memory_report.h"
#include "heddle/operators/own_operator.h"
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
  kAuto,      // times the first runs, and keeps the fastest way
  kSerial,    // one instruction after another; kernels may still use all threads
  kParallel,  // independent instructions at the same time: threads take those that are ready
  kLanes,     // at the same time: each thread's share is planned ahead from estimated costs
};

// The place of operators that the executor's device could execute. An operator whose attribute
// op_device names a place runs there.
enum class Placement {
  kDevice,  // on the device
  kHost,
  kRandom,  // for tests: each at a random place, drawn from CompileOptions::placement_seed
};

// Which temporaries may share memory.
enum class Reuse {
  kOrdered,  // those whose users are ordered in any case
  // With lanes also others: their users are made to wait for each other if that saves memory, and
  // makes the longest path through the program at most 5 % longer.
  kEdges,
  // None: each has its own memory until the run ends, so that all can be inspected.
  kNone,
};

class Communicator;
class Device;

struct ExecutorOptions {
  int threads = 0;  // 0 = as many as the process may use
  // The most runs at a time; others wait, first come first served. 1 = each has all threads. 0 = as
  // many as there are threads, each with one of them; with one thread, any number, since each run
  // executes on its caller's thread.
  int runs_at_once = 0;
  int plan_cache_capacity = 32;
  size_t memory_limit = 0;  // bytes of temporaries and outputs at a time; 0 = no limit
  // See heddle/device.h. With a device, ways of running are not tried, and CompileOptions::schedule
  // is ignored.
  std::shared_ptr<Device> device = nullptr;
  // More devices of the same kind, at most 30: operators whose op_device says "gpu:1" run on the
  // first of them.
  std::vector<std::shared_ptr<Device>> more_devices = {};
  int device_streams = 2;  // for the kernels of one run; copies have their own
  // The second run of a plan captures its work on the device's streams; later runs launch the
  // captured graph. If that is not possible, PlanStats::no_capture says why.
  bool device_capture = true;
  // With several devices: one more thread for each puts its work on its streams. Of runs that
  // overlap, the first has these threads, and the others do without.
  bool device_threads = true;
  // With a device and several threads: operators of the host with at least this estimated time on
  // one thread, in ns, may execute on any of the threads, while the caller's puts work on streams.
  float host_task_ns = 20000;
  // For tests: fills memory with NaN before its first use and when it is freed.
  bool poison = false;
  std::shared_ptr<Communicator> communicator = nullptr;  // the executor's rank: heddle/ranks.h
  KernelCreator kernel_creator = nullptr;                // of operators from outside

  // Sets `device` and `more_devices`, for example to those of OpenDevices.
  void SetDevices(std::vector<std::shared_ptr<Device>> all);
};

struct CompileOptions {
  // Variable names; empty = the program's fetch operators.
  std::vector<std::string> fetches = {};
  // More variables whose values a run keeps, for RunOptions::kept. Passes do not change them, and
  // their memory is not reused within the run.
  std::vector<std::string> keep = {};
  int opt_level = 2;  // 0 = the program as it is; 1 = clean-ups; 2 = also fusion and layouts
  Schedule schedule = Schedule::kAuto;
  Reuse reuse = Reuse::kOrdered;
  // Operators may write an output over an input that is not needed any more. (What the program
  // itself computes in place is computed so in any case.)
  bool in_place = true;
  // The largest shapes of inputs, by name, with the inputs' ranks. All runs whose feeds are no
  // larger have their temporaries in blocks of one size, that of the plan for these shapes, and
  // share the blocks: after the first run a new shape takes no more memory for them. Runs with
  // larger feeds, or with a schedule that plans no memory ahead, have their own.
  std::vector<std::pair<std::string, Shape>> max_shapes = {};
  // Prefers little memory and a quick start to speed: kernels keep no copy of a parameter that is
  // larger than the parameter, and heddle's own loops are used instead of code that the primitives
  // library generates, if there are any. Tuning has no effect. Results may differ by rounding. For
  // programs that run once or a few times. The program's file stays open while the compiled program
  // exists: it may be removed or replaced, but not written in place.
  bool lean = false;
  bool dynamic_bodies = false;  // for tests: infers shapes in sub-blocks during the run
  uint64_t seed = 0;            // of the generator that operators with seed 0 draw from
  Placement placement = Placement::kDevice;
  uint64_t placement_seed = 0;
  // For tests: with kParallel, the seed for the order of ready instructions; 0 = off.
  uint64_t shuffle_seed = 0;
  PassOptions passes = {};  // which passes run, and how they are checked
  // If kernels can compute the same in several ways (convolutions), they take the one that was the
  // fastest on this processor with these threads and this build, according to `tuning_file`; empty:
  // no file. With `tune`, choices that the file lacks are measured when a plan is made, and written
  // to it. A damaged file is replaced. Results may differ by rounding. With a device, the file also
  // has the times of its kernels, which choose their streams.
  bool tune = false;
  std::string tuning_file = {};
  // A file with the copies of parameters that kernels make in their own order. It is mapped: the
  // copies need not be made again, the parameters need not be read, and processes share the memory.
  // Copies that it lacks are added when a plan is made; it is as large as the copies. For
  // parameters from one combined file. It is replaced if these, or the orders of this build, have
  // changed. While a process uses it, it may be replaced or removed, but not truncated in place,
  // which would end the process. Empty: no file.
  std::string packed_weights = {};
  // Implementations that kernels must use, by family (conv, conv_chain, gemm):
  // "conv=direct,gemm=panels". Names are the first words of those in a PlanDescription. Several for
  // one family, as in "conv=winograd:direct", are tried in this order, without tuning. It is an
  // error if none can compute an operator; it names those that can.
  std::string force = {};
  // Makes plans as this one was made, which DescribePlan returned for the same program and feeds of
  // the same shapes: with its schedule and implementations, without tuning. An error says what
  // differs if it is for another program, version or machine. nullptr: none.
  std::shared_ptr<const PlanDescription> follow = nullptr;
  // Equal stretches of operators, such as layers that an exporter wrote out one behind another, are
  // planned once and called, where shapes are known and the work is worth a call. Same bits; less
  // time and memory of planning. Not with devices.
  bool outline = false;
  // The description of a machine, as JSON (see tests/machines): plans are made for that machine,
  // and can be described, but not run. Empty: this machine.
  std::string machine = {};
};

// The effect of CompileOptions::tune and tuning_file on a program so far.
struct TuningReport {
  int measured = 0;  // choices that were measured
  int changed = 0;   // of these, choices other than the usual one
  int kept = 0;      // choices that were known already
  std::vector<std::string> warnings;
};

// The effect of CompileOptions::packed_weights on a program so far.
struct PackedWeightsReport {
  int found = 0;                      // copies that were in the file
  int made = 0;                       // copies that were not
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
  // The changes that passes made when the program was last compiled.
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

  // Optimises the program for the given fetches. Parameters are taken from `scope`, and must be
  // there at the first Run.
  Result<CompiledProgram> Compile(const Program& program, std::shared_ptr<Scope> scope,
                                  const CompileOptions& options = {});
  Result<CompiledProgram> Compile(const Model& model, const CompileOptions& options = {}) {
    return Compile(model.program, model.scope, options);
  }
  // Runs once, and waits. kCancelled or kDeadlineExceeded if the options say so. Feeds may be in
  // any order; all inputs must be fed. A contiguous feed is used without a copy; its memory must
  // not change during the run. Returns the fetches in order, in their own memory.
  Result<std::vector<Value>> RunValues(const CompiledProgram& compiled,
                                       const std::vector<Feed>& feeds,
                                       const RunOptions& options = {});
  // The same for programs whose outputs are plain tensors.
  Result<std::vector<Tensor>> Run(const CompiledProgram& compiled, const std::vector<Feed>& feeds,
                                  const RunOptions& options = {});

  // Makes (or finds) the plan for feeds of these shapes.
  Result<PlanStats> Prepare(const CompiledProgram& compiled, const std::vector<Feed>& feeds);
  // Describes that plan as text, one line per instruction.
  Result<std::string> PlanText(const CompiledProgram& compiled, const std::vector<Feed>& feeds);
  // Describes it as a value.
  Result<PlanDescription> DescribePlan(const CompiledProgram& compiled,
                                       const std::vector<Feed>& feeds);
  // Computes how that plan uses memory.
  Result<MemoryReport> PlanMemory(const CompiledProgram& compiled, const std::vector<Feed>& feeds);

  int threads() const;
  // The number of plans made so far, without those that were found in the cache.
  int64_t plans_built() const;
  // Frees pooled memory that no run uses.
  void Trim();
  // The memory that runs have taken, by place: the host, then the device if there is one.
  std::vector<PlaceMemory> MemoryUse() const;
  void ResetMemoryPeaks();  // starts a new measurement of PlaceMemory::peak_bytes

 private:
  std::unique_ptr<internal::ExecutorImpl> impl_;
};

}  // namespace heddle
