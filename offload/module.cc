// Modules: what an engine has compiled, and its runs.
#include <atomic>
#include <optional>
#include <system_error>
#include <thread>

#include "offload/engine_call.h"
#include "offload/engine_library.h"
#include "offload/group_description.h"

namespace heddle::offload {
namespace {

constexpr auto kLook = std::chrono::milliseconds(5);
// That a call is waited for when its run ends early, and that a later run waits for it then.
constexpr std::chrono::milliseconds kEnds(20), kLeft(1000);

}  // namespace

// A call of `run` that may outlive the function that waits for it.
struct Module::Call {
  std::vector<Tensor> inputs;
  std::shared_ptr<OutputSink> sink;
  std::vector<bool> given;
  Status refused;  // what the sink said of an output
  std::function<bool()> stopped;

  std::atomic<bool> stop{false};
  std::atomic<bool> told{false};  // the engine knows that it is to stop
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
  run.stopped = [](void* host) {
    auto& c = *static_cast<Call*>(host);
    if (!c.stopped()) return 0;
    c.told = true;
    return 1;
  };
  const Status status = Guarded(
      library.name_, "run", "the run",
      [&](char* message, size_t room) {
        return library.table_->run(module.module_, &run, message, room);
      },
      [&] { return call.told.load(); });
  if (!call.refused.ok())
    return Status(call.refused.code(),
                  StrCat("engine ", library.name_, " ", call.refused.message()));
  HEDDLE_RETURN_IF_ERROR(status);
  for (size_t k = 0; k < call.given.size(); ++k)
    if (!call.given[k]) return Internal("engine ", library.name_, " does not write output ", k);
  return Status::Ok();
}

Status Module::Hangs() const {
  if (!has_limit())
    return Status(StatusCode::kDeadlineExceeded,
                  StrCat("engine ", library_->name_,
                         " has not ended a run that was to end; it is not called again for this "
                         "group"));
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
    if (library.turn_taken_ && has_limit() && since >= 2 * library.limit())
      return Status(StatusCode::kDeadlineExceeded,
                    StrCat("engine ", library.name_,
                           " is still busy with another group, which has "
                           "not answered within ",
                           library.limit().count(), " ms"));
    if (library.turn_taken_ && library.turn_left_ && !has_limit() && since >= kLeft)
      return Status(StatusCode::kDeadlineExceeded,
                    StrCat("engine ", library.name_,
                           " is still busy with a run of another group that was to end"));
    HEDDLE_RETURN_IF_ERROR(stopped());
  }
  library.turn_taken_ = true;
  library.turn_left_ = false;
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
    const auto since = std::chrono::steady_clock::now() - since_;
    if (busy_ && !waits_ &&
        (has_limit() ? since >= library_->limit() : left_behind_ && since >= kLeft))
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
    busy_ = left_behind_ = false;
  }
  left_.notify_one();
}

Status Module::Run(std::vector<Tensor> inputs, std::shared_ptr<OutputSink> sink,
                   const std::function<Status()>& stopped, bool may_leave) {
  HEDDLE_RETURN_IF_ERROR(Enter(stopped));
  auto call = std::make_shared<Call>();
  call->inputs = std::move(inputs);
  call->sink = std::move(sink);
  call->given.assign(call->sink->size(), false);
  if (may_leave || has_limit()) return RunAside(std::move(call), stopped);
  call->stopped = [&] { return !stopped().ok(); };
  Status status = CallEngine(*this, *call);
  NoteRun(status);
  Leave();
  // What the run's own end caused is told as that.
  if (!status.ok())
    if (const Status end = stopped(); !end.ok()) return end;
  return status;
}

// While the call has no result. Its time counts from here for those who wait for the module or for
// a turn.
void Module::LeaveBehind() {
  const auto now = std::chrono::steady_clock::now();
  const bool restart = !has_limit();
  {
    std::lock_guard lock(mutex_);
    left_behind_ = busy_;
    if (restart) since_ = now;
  }
  if (!library_->one_run() || !restart) return;
  std::lock_guard lock(library_->turn_mutex_);
  library_->turn_left_ = library_->turn_taken_;
  library_->turn_since_ = now;
}

Status Module::RunAside(std::shared_ptr<Call> call, const std::function<Status()>& stopped) {
  const auto begin = std::chrono::steady_clock::now();
  const auto until = has_limit() ? begin + library_->limit() : begin + std::chrono::hours(24 * 365);
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
    std::lock_guard lock(call->mutex);  // until it has left, for LeaveBehind
    call->result = std::move(status);
    self->Leave();
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
      call->stop = true;
      // Engines that ask end now; else the call goes on by itself, in memory of its own.
      call->ended.wait_for(lock, kEnds, [&] { return call->result.has_value(); });
      if (!call->result) LeaveBehind();
      return end;
    }
  }
  return *call->result;
}

}  // namespace heddle::offload
