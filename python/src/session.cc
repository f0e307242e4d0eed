#include "python/src/session.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <unordered_map>

#include "heddle/bounds.h"
#include "heddle/device.h"
#include "heddle/model_files.h"
#include "python/src/arrays.h"
#include "python/src/errors.h"
#include "python/src/exchange.h"
#include "python/src/gil.h"
#include "python/src/infos.h"
#include "python/src/interrupt.h"
#include "python/src/loans.h"

namespace heddle::python {
namespace {

template <typename F>
auto WithoutGil(F f) {
  const ReleasedGil released;
  return f();
}

// A compiled program that keeps its executor alive. Any number of threads may run it at once.
class Session {
 public:
  Session(std::shared_ptr<Executor> executor, CompiledProgram compiled, Program program)
      : executor_(std::move(executor)),
        compiled_(std::move(compiled)),
        program_(std::move(program)),
        input_types_(InputTypes(program_, compiled_.inputs())),
        output_types_(OutputTypes(program_, compiled_.outputs())) {
    const auto& inputs = compiled_.inputs();
    for (size_t i = 0; i < inputs.size(); ++i) places_.emplace(inputs[i].name, i);
  }

  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  nb::list Run(nb::dict feeds, std::optional<double> timeout, bool check_nan_inf,
               Generator* generator);
  nb::list RunInOrder(nb::args arrays);
  nb::list RunValues(nb::dict feeds, std::optional<double> timeout, bool check_nan_inf,
                     Generator* generator);
  nb::tuple RunKept(nb::dict feeds, Generator* generator, bool wait_after_each, bool check_nan_inf,
                    std::optional<double> timeout);
  nb::tuple Trace(nb::dict feeds);
  std::string Plan(nb::dict feeds) {
    const std::vector<Feed> values = ToFeeds(feeds);
    return Check(WithoutGil([&] { return executor_->PlanText(compiled_, values); }));
  }
  nb::dict Describe(nb::dict feeds);
  nb::dict Prepare(nb::dict feeds);
  const std::vector<TensorInfo>& inputs() const { return compiled_.inputs(); }
  const std::vector<TensorInfo>& outputs() const { return compiled_.outputs(); }
  std::vector<DeclaredInfo> declared_inputs() const {
    return Declared(compiled_.inputs(), input_types_);
  }
  std::vector<DeclaredInfo> declared_outputs() const {
    return Declared(compiled_.outputs(), output_types_);
  }

 private:
  DType Wanted(std::string_view name) const;
  const std::string& TypeOf(std::string_view name) const;
  std::vector<Feed> ToFeeds(nb::dict feeds) const;
  std::vector<Value> Execute(const std::vector<Feed>& feeds, RunOptions options) const;
  nb::list ToList(std::vector<Value> values) const;

  std::shared_ptr<Executor> executor_;
  CompiledProgram compiled_;
  Program program_;
  // The names that the file gives to elements that heddle holds in another dtype.
  const std::vector<std::string> input_types_, output_types_;
  std::unordered_map<std::string_view, size_t> places_;  // of inputs
};

// The type that an input is declared with; of a program without feed operators, its variable's.
DType Session::Wanted(std::string_view name) const {
  if (const auto at = places_.find(name); at != places_.end())
    return compiled_.inputs()[at->second].dtype;
  if (!compiled_.inputs().empty()) return DType::kUnknown;
  const auto info = program_.variable(name);
  return info ? info->dtype : DType::kUnknown;
}

const std::string& Session::TypeOf(std::string_view name) const {
  static const std::string* const none = new std::string;
  const auto at = places_.find(name);
  return at == places_.end() ? *none : input_types_[at->second];
}

std::string NameOf(PyObject* key) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_Check(key) ? PyUnicode_AsUTF8AndSize(key, &size) : nullptr;
  if (text == nullptr) {
    PyErr_Clear();
    throw nb::type_error("the names of feeds are texts");
  }
  return std::string(text, static_cast<size_t>(size));
}

std::vector<Feed> Session::ToFeeds(nb::dict feeds) const {
  std::vector<Feed> out;
  out.reserve(feeds.size());
  PyObject *key = nullptr, *value = nullptr;
  Py_ssize_t at = 0;
  const size_t count = feeds.size();
  while (PyDict_Next(feeds.ptr(), &at, &key, &value)) {
    // A conversion may call methods of the value, and these may change the dict.
    const nb::object kept = nb::borrow(value);
    Feed feed;
    feed.name = NameOf(key);
    feed.value = ToValue(kept, Wanted(feed.name), feed.name, TypeOf(feed.name));
    out.push_back(std::move(feed));
    if (feeds.size() != count) throw nb::value_error("the feeds were changed while they were read");
  }
  return out;
}

std::vector<Value> Session::Execute(const std::vector<Feed>& feeds, RunOptions options) const {
  const InterruptScope scope;
  options.stop = scope.token();
  options.host = scope.host();
  auto values = WithoutGil([&] { return executor_->RunValues(compiled_, feeds, options); });
  scope.ThrowIfInterrupted();
  return Check(std::move(values));
}

nb::list Session::ToList(std::vector<Value> values) const {
  // Conversions may run any code, which must not see a list with holes.
  nb::list list;
  for (size_t i = 0; i < values.size(); ++i)
    list.append(ToPython(std::move(values[i]), output_types_[i]));
  return list;
}

RunOptions OptionsOf(std::optional<double> timeout, bool check_nan_inf, Generator* generator) {
  RunOptions options;
  if (timeout && std::isnan(*timeout)) throw nb::value_error("timeout is not a number");
  if (timeout)
    options.deadline = std::chrono::steady_clock::now() +
                       std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                           std::chrono::duration<double>(std::clamp(*timeout, 0.0, 1e8)));
  options.check_nan_inf = check_nan_inf;
  options.generator = generator;
  return options;
}

nb::list Session::Run(nb::dict feeds, std::optional<double> timeout, bool check_nan_inf,
                      Generator* generator) {
  auto values = Execute(ToFeeds(feeds), OptionsOf(timeout, check_nan_inf, generator));
  SettleLoans();  // the feeds'
  return ToList(std::move(values));
}

nb::list Session::RunInOrder(nb::args arrays) {
  const auto& inputs = compiled_.inputs();
  if (arrays.size() != inputs.size()) {
    std::string names;
    for (const TensorInfo& i : inputs) names += (names.empty() ? "" : ", ") + i.name;
    throw nb::type_error(("the model takes " + std::to_string(inputs.size()) + " inputs (" + names +
                          "), not " + std::to_string(arrays.size()))
                             .c_str());
  }
  std::vector<Feed> feeds;
  feeds.reserve(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    feeds.push_back(
        {inputs[i].name, ToValue(arrays[i], inputs[i].dtype, inputs[i].name, input_types_[i])});
  auto values = Execute(feeds, {});
  feeds.clear();
  SettleLoans();
  return ToList(std::move(values));
}

// Tensors instead of arrays, for those who want their sequence offsets.
nb::list Session::RunValues(nb::dict feeds, std::optional<double> timeout, bool check_nan_inf,
                            Generator* generator) {
  auto values = Execute(ToFeeds(feeds), OptionsOf(timeout, check_nan_inf, generator));
  SettleLoans();
  nb::list list;
  for (Value& value : values) {
    if (value.is_tensor())
      list.append(nb::cast(std::move(value.tensor())));
    else
      list.append(ToPython(std::move(value)));
  }
  return list;
}

// The outputs as run_tensors has them, and the kept variables by name; None where nothing was
// written.
nb::tuple Session::RunKept(nb::dict feeds, Generator* generator, bool wait_after_each,
                           bool check_nan_inf, std::optional<double> timeout) {
  std::vector<std::pair<std::string, Value>> kept;
  RunOptions options = OptionsOf(timeout, check_nan_inf, generator);
  options.kept = &kept;
  options.wait_after_each = wait_after_each;
  auto values = Execute(ToFeeds(feeds), options);
  SettleLoans();
  const auto told = [](Value& value) -> nb::object {
    if (!value.initialized()) return nb::none();
    if (value.is_tensor()) return nb::cast(std::move(value.tensor()));
    return ToPython(std::move(value));
  };
  nb::list list;
  for (Value& value : values) list.append(told(value));
  nb::dict rest;
  for (auto& [name, value] : kept) rest[name.c_str()] = told(value);
  return nb::make_tuple(list, rest);
}

// The outputs, what happened, and when each instruction ran.
nb::tuple Session::Trace(nb::dict feeds) {
  RunReport report;
  RunOptions options;
  options.report = &report;
  options.trace = true;
  nb::list outputs = ToList(Execute(ToFeeds(feeds), options));
  nb::list events;
  for (const TraceEvent& e : report.events)
    events.append(nb::make_tuple(e.op, e.output, e.block, e.index, e.lane, e.begin_us, e.end_us,
                                 e.self_us, e.times, e.thread, e.stream));
  nb::list spans, memory;
  for (const TraceSpan& s : report.spans)
    spans.append(nb::make_tuple(s.kind, s.of, s.thread, s.stream, s.begin_us, s.end_us));
  for (const MemorySample& m : report.memory) memory.append(nb::make_tuple(m.us, m.place, m.bytes));
  nb::dict told;
  told["dispatch"] = report.dispatch;
  told["lanes"] = report.lanes;
  told["threads"] = report.threads;
  told["settled"] = report.settled;
  told["run_us"] = report.run_us;
  told["work_us"] = report.work_us;
  told["critical_path_us"] = report.critical_path_us;
  return nb::make_tuple(outputs, told, events, report.ToChromeTrace(), spans, memory);
}

// The plan in parts: slots as (variable, storage, base), steps as dicts, edges as pairs.
nb::dict Session::Describe(nb::dict feeds) {
  const std::vector<Feed> values = ToFeeds(feeds);
  const PlanDescription plan =
      Check(WithoutGil([&] { return executor_->DescribePlan(compiled_, values); }));
  nb::list slots, steps;
  for (const auto& s : plan.slots) slots.append(nb::make_tuple(s.variable, s.storage, s.base));
  for (const auto& in : plan.instructions) {
    nb::dict step;
    step["op"] = in.op;
    step["mode"] = in.mode;
    step["implementation"] = in.implementation;
    step["why"] = in.why;
    step["place"] = in.place;
    step["stream"] = in.stream;
    step["block"] = in.block;
    step["inputs"] = in.inputs;
    step["outputs"] = in.outputs;
    step["cost_ns"] = in.cost_ns;
    step["lane"] = in.lane;
    step["task"] = in.task;
    steps.append(std::move(step));
  }
  nb::dict told;
  told["dispatch"] = plan.dispatch;
  told["lanes"] = plan.lanes;
  told["slots"] = std::move(slots);
  told["steps"] = std::move(steps);
  told["edges"] = plan.dependencies;
  return told;
}

nb::dict Session::Prepare(nb::dict feeds) {
  const std::vector<Feed> values = ToFeeds(feeds);
  const PlanStats stats = Check(WithoutGil([&] { return executor_->Prepare(compiled_, values); }));
  nb::dict told;
  told["instructions"] = stats.instructions;
  told["static_shapes"] = stats.static_shapes;
  told["parallel"] = stats.parallel;
  told["lanes"] = stats.lanes;
  told["arena_bytes"] = stats.arena_bytes;
  told["arena_bound_bytes"] = stats.arena_bound_bytes;
  told["build_ms"] = stats.build_ms;
  return told;
}

// By place, the figures of PlaceMemory.
nb::dict MemoryUse(const Executor& executor) {
  nb::dict told;
  for (const PlaceMemory& p : executor.MemoryUse()) {
    nb::dict figures;
    figures["allocated"] = p.allocated_bytes;
    figures["reserved"] = p.reserved_bytes;
    figures["peak"] = p.peak_bytes;
    told[p.place.c_str()] = std::move(figures);
  }
  return told;
}

Schedule ScheduleNamed(const std::string& name) {
  if (name == "auto") return Schedule::kAuto;
  if (name == "serial") return Schedule::kSerial;
  if (name == "parallel") return Schedule::kParallel;
  if (name == "lanes") return Schedule::kLanes;
  throw nb::value_error(
      ("schedule '" + name + "' is not known; it is auto, serial, parallel or lanes").c_str());
}

Precision PrecisionNamed(const std::string& name) {
  if (name == "f32") return Precision::kFloat32;
  if (name == "bf16") return Precision::kBFloat16;
  if (name == "int8") return Precision::kInt8Weights;
  if (name == "int8-products") return Precision::kInt8Products;
  throw nb::value_error(
      ("precision '" + name + "' is not known; it is f32, bf16, int8 or int8-products").c_str());
}

Reuse ReuseNamed(const std::string& name) {
  if (name == "ordered") return Reuse::kOrdered;
  if (name == "edges") return Reuse::kEdges;
  if (name == "none") return Reuse::kNone;
  throw nb::value_error(
      ("reuse '" + name + "' is not known; it is ordered, edges or none").c_str());
}

std::shared_ptr<Session> Compile(std::shared_ptr<Executor> executor, const Program& program,
                                 std::shared_ptr<Scope> scope,
                                 const std::vector<std::string>& fetches, int opt_level,
                                 const std::string& schedule, uint64_t seed,
                                 const std::string& precision, bool lean, const std::string& reuse,
                                 const std::map<std::string, std::vector<int64_t>>& max_shapes,
                                 const std::string& packed_weights, const std::string& force,
                                 const std::vector<std::string>& disable_passes,
                                 const std::vector<std::string>& keep, bool in_place,
                                 bool outline) {
  CompileOptions options;
  options.fetches = fetches;
  options.opt_level = opt_level;
  options.schedule = ScheduleNamed(schedule);
  options.seed = seed;
  options.passes.precision = PrecisionNamed(precision);
  options.passes.disable = disable_passes;
  options.keep = keep;
  options.lean = lean;
  options.outline = outline;
  options.reuse = ReuseNamed(reuse);
  options.in_place = in_place;
  options.packed_weights = packed_weights;
  options.force = force;
  for (const auto& [name, dims] : max_shapes) {
    if (dims.size() > Shape::kMaxRank)
      throw nb::value_error(("the largest shape of '" + name + "' has rank " +
                             std::to_string(dims.size()) + ", at most " +
                             std::to_string(Shape::kMaxRank) + " are possible")
                                .c_str());
    options.max_shapes.emplace_back(name, Shape(dims));
  }
  Result<CompiledProgram> compiled = Status(StatusCode::kInternal, "not compiled");
  {
    const InterruptScope scope_of_signals;
    {
      const ReleasedGil released;
      const LimitScope limits(scope_of_signals.limits());
      compiled = executor->Compile(program, std::move(scope), options);
    }
    scope_of_signals.ThrowIfInterrupted();
  }
  return std::make_shared<Session>(std::move(executor), Check(std::move(compiled)), program);
}

}  // namespace

void BindSession(nb::module_& module) {
  module.def(
      "passes",
      [] {
        std::vector<std::string> names;
        for (const PassInfo& pass : Passes()) names.push_back(pass.name);
        return names;
      },
      "The names of heddle's passes.");
  nb::class_<Executor>(module, "Executor", "Threads and plans; compile() makes a Session.")
      .def(
          "__init__",
          [](Executor* self, int threads, int plan_cache_capacity, size_t memory_limit,
             int runs_at_once, const Rank* rank, const std::string& place) {
            if (plan_cache_capacity < 0)
              Check(Status(StatusCode::kInvalidArgument, "plan_cache is " +
                                                             std::to_string(plan_cache_capacity) +
                                                             "; it must not be negative"));
            ExecutorOptions options{.threads = threads,
                                    .runs_at_once = runs_at_once,
                                    .plan_cache_capacity = plan_cache_capacity,
                                    .memory_limit = memory_limit,
                                    .communicator = rank != nullptr ? rank->communicator : nullptr};
            Check(CheckOptions(options));
            options.SetDevices(Check(OpenDevices(place)));
            try {
              new (self) Executor(options);
            } catch (const std::system_error& e) {  // no more threads
              Check(Status(StatusCode::kResourceExhausted, e.what()));
            }
          },
          nb::arg("threads") = 0, nb::arg("plan_cache_capacity") = 32, nb::arg("memory_limit") = 0,
          nb::arg("runs_at_once") = 0, nb::arg("rank").none() = nb::none(),
          nb::arg("place") = "cpu")
      .def_prop_ro("threads", &Executor::threads)
      .def_prop_ro("plans_built", &Executor::plans_built)
      .def("trim", &Executor::Trim, nb::call_guard<ReleasedGil>())
      .def("memory_use", &MemoryUse)
      .def("reset_memory_peaks", &Executor::ResetMemoryPeaks)
      .def("compile", &Compile, nb::arg("program"), nb::arg("scope"),
           nb::arg("fetches") = std::vector<std::string>(), nb::arg("opt_level") = 2,
           nb::arg("schedule") = "auto", nb::arg("seed") = 0, nb::arg("precision") = "f32",
           nb::arg("lean") = false, nb::arg("reuse") = "ordered",
           nb::arg("max_shapes") = std::map<std::string, std::vector<int64_t>>(),
           nb::arg("packed_weights") = "", nb::arg("force") = "",
           nb::arg("disable_passes") = std::vector<std::string>(),
           nb::arg("keep") = std::vector<std::string>(), nb::arg("in_place") = true,
           nb::arg("outline") = false);

  nb::class_<Session>(module, "Session",
                      "A compiled program. Any number of threads may run it at once.")
      .def("run", &Session::Run, nb::arg("feeds"), nb::arg("timeout") = nb::none(),
           nb::arg("check_nan_inf") = false, nb::arg("generator").none() = nb::none())
      .def("run_in_order", &Session::RunInOrder)
      .def("run_tensors", &Session::RunValues, nb::arg("feeds"), nb::arg("timeout") = nb::none(),
           nb::arg("check_nan_inf") = false, nb::arg("generator").none() = nb::none())
      .def("run_kept", &Session::RunKept, nb::arg("feeds"),
           nb::arg("generator").none() = nb::none(), nb::arg("wait_after_each") = false,
           nb::arg("check_nan_inf") = false, nb::arg("timeout") = nb::none())
      .def("trace", &Session::Trace, nb::arg("feeds"))
      .def("plan", &Session::Plan, nb::arg("feeds"))
      .def("describe", &Session::Describe, nb::arg("feeds"))
      .def("prepare", &Session::Prepare, nb::arg("feeds"))
      .def_prop_ro("inputs", &Session::inputs)
      .def_prop_ro("outputs", &Session::outputs)
      // With the dtypes that are fed and given back.
      .def_prop_ro("declared_inputs", &Session::declared_inputs)
      .def_prop_ro("declared_outputs", &Session::declared_outputs);
}

}  // namespace heddle::python
