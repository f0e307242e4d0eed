#include "executor/device/dispatcher.h"

#include "executor/run/interpreter.h"

namespace heddle {

using Kind = DeviceStep::Kind;

Status Dispatcher::Step(size_t i) {
  const DeviceStep& step = session_.StepAt(i);
  if (step.kind == Kind::kTask) {
    tasks_->HandOver(step.task);
    return Status::Ok();
  }
  if (step.stream == 0) return HostStep(i);
  if (session_.run.control().attention()) HEDDLE_RETURN_IF_ERROR(session_.run.control().Look());
  HEDDLE_RETURN_IF_ERROR(WaitOnStream(i));
  if (step.kind == Kind::kBlocks) return RunBlocks(i);
  const bool timed = session_.run.control().trace() != nullptr && step.kind != Kind::kShare &&
                     step.kind != Kind::kMark;
  const auto mark = [&] {
    return timed ? times_.Mark(i, session_.device_plan.DeviceOf(step.stream),
                               session_.RuntimeOf(step).device(), session_.StreamOf(step))
                 : Status::Ok();
  };
  if (Status s = mark(); !s.ok()) return session_.Refused(s, i);
  if (Status s = launcher_.Put(i); !s.ok()) return session_.Refused(s, i);
  if (Status s = mark(); !s.ok()) return session_.Refused(s, i);
  if (session_.run.control().waits_after_each())
    if (Status s = session_.StreamOf(step).Synchronize(); !s.ok()) {
      launcher_.set_failed_on_device();
      return session_.Refused(s, i);
    }
  if (step.kind == Kind::kLaunch && session_.run.control().Checks(session_.At(i)))
    HEDDLE_RETURN_IF_ERROR(launcher_.CheckValues(i));
  if (step.record != DeviceStep::kNone)
    if (Status s = session_.StreamOf(step).Record(*session_.kept().events[step.record]); !s.ok())
      return session_.Refused(s, i);
  if (RunTrace* trace = session_.run.control().trace(); trace != nullptr && step.block == 0)
    trace->EndSpan(participant_, RunTrace::Part::kDispatch, Ticks(), &session_.At(i));
  return Release(session_.At(i));
}

Status Dispatcher::RunBlocks(size_t i) {
  const DeviceStep& step = session_.StepAt(i);
  HEDDLE_RETURN_IF_ERROR(Interpreter::RunOne(session_.At(i), session_.run, participant_));
  if (step.record == DeviceStep::kNone) return Status::Ok();
  const Status s = session_.StreamOf(step).Record(*session_.kept().events[step.record]);
  return s.ok() ? s : session_.Refused(s, i);
}

// Makes the stream wait for events. For an event of another device the host waits, since devices do
// not know each other's events.
Status Dispatcher::WaitOnStream(size_t i) {
  const DeviceStep& step = session_.StepAt(i);
  const DevicePlan& plan = session_.device_plan;
  for (uint32_t w = step.wait_begin; w < step.wait_end; ++w) {
    const uint32_t event = plan.waits[w];
    const uint32_t recorder = session_.StepAt(plan.recorder[event]).stream;
    if (plan.DeviceOf(recorder) == plan.DeviceOf(step.stream)) {
      if (Status s = session_.StreamOf(step).WaitFor(session_.EventOf(event)); !s.ok())
        return session_.Refused(s, i);
    } else if (Status s = AwaitEvent(event, i, participant_); !s.ok()) {
      launcher_.set_failed_on_device();
      return s;
    }
  }
  return Status::Ok();
}

Status Dispatcher::HostStep(size_t i) {
  if (Status s = AwaitEvents(i, participant_); !s.ok()) {
    launcher_.set_failed_on_device();
    return s;
  }
  const Instruction& in = session_.At(i);
  if (session_.StepAt(i).kind == Kind::kAwait) return Release(in);
  Status status;
  session_.host.Execute([&] { status = Interpreter::RunOne(in, session_.run, participant_); });
  return status;
}

Status Dispatcher::AwaitEvents(size_t i, int participant) {
  const DeviceStep& step = session_.StepAt(i);
  for (uint32_t w = step.wait_begin; w < step.wait_end; ++w)
    HEDDLE_RETURN_IF_ERROR(AwaitEvent(session_.device_plan.waits[w], i, participant));
  return Status::Ok();
}

Status Dispatcher::AwaitEvent(uint32_t event, size_t i, int participant) {
  RunTrace* const trace = session_.run.control().trace();
  const uint64_t begin = trace != nullptr ? Ticks() : 0;
  const size_t recorder = session_.device_plan.recorder[event];
  if (Status s = session_.EventOf(event).Wait(); !s.ok())
    return session_.Explain(s, session_.StepAt(recorder).stream)
        .At(session_.plan.Locate(session_.At(i)));
  if (trace != nullptr && session_.StepAt(i).block == 0)
    trace->EndSpan(participant, RunTrace::Part::kWaitEvent, begin, &session_.At(recorder));
  return Status::Ok();
}

Status Dispatcher::Release(const Instruction& in) {
  for (uint32_t slot : in.release) session_.run.Release(slot);
  for (uint32_t slot : in.reads) session_.run.CountRead(slot);
  return Status::Ok();
}

Status Dispatcher::AllOf(int block, std::optional<DevicePlan::Phase> phase) {
  const DevicePlan::Section& section = session_.device_plan.sections[static_cast<size_t>(block)];
  for (size_t i = section.begin; i < section.end; ++i) {
    if (phase && session_.device_plan.phases[i] != *phase) continue;
    Status s = Step(i);
    if (!s.ok()) [[unlikely]]
      return s;
  }
  return Status::Ok();
}

}  // namespace heddle
