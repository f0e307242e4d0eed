#include "executor/device/body_runner.h"

namespace heddle {

using Phase = DevicePlan::Phase;

Status DispatchSection(DeviceSession& session, Dispatcher& dispatcher, StepLauncher& launcher,
                       int block, bool again) {
  Replayer replayer(session, launcher, block);
  session.kept().captured[static_cast<size_t>(block)].replayed = false;
  if (!replayer.CanReplay(again)) return dispatcher.AllOf(block, std::nullopt);
  HEDDLE_RETURN_IF_ERROR(dispatcher.AllOf(block, Phase::kBefore));
  bool replayed = false;
  HEDDLE_RETURN_IF_ERROR(replayer.ReplayKernels(&replayed));
  if (!replayed) HEDDLE_RETURN_IF_ERROR(dispatcher.AllOf(block, Phase::kCaptured));
  return dispatcher.AllOf(block, Phase::kAfter);
}

Status BodyRunner::Run(int block) {
  // The most runs on the streams that the host may be ahead of: a condition that the host computes
  // itself would not hold it up.
  constexpr int64_t kMostAhead = 64;
  Body& body = bodies_[static_cast<size_t>(block)];
  const size_t turn = static_cast<size_t>(body.runs % 2);
  Event& end = *session_.kept().turns[static_cast<size_t>(block)][turn];
  std::vector<Tensor>& held = body.held[turn];
  if ((!held.empty() || body.runs % kMostAhead == kMostAhead - 1) && !end.Reached())
    if (Status s = end.Wait(); !s.ok()) {
      launcher_.set_failed_on_device();
      return session_.Explain(s, 1);
    }
  held.clear();
  launcher_.SwapHeld(&held);
  Status status = DispatchSection(session_, dispatcher_, launcher_, block,
                                  body.runs > 0 || session_.kept().ran);
  launcher_.SwapHeld(&held);
  ++body.runs;
  if (!status.ok()) return status;
  status = session_.stream(0).Record(end);
  return status.ok() ? status : session_.Explain(status, 1);
}

}  // namespace heddle
