#include "executor/report/plan_text.h"

#include "core/error.h"
#include "executor/plan/device_plan.h"
#include "executor/report/describe_plan.h"

namespace heddle {
namespace {

std::string SlotText(const Plan& plan, uint32_t s) {
  if (s == kNoSlot) return "-";
  const Slot& slot = plan.slots[s];
  std::string t = StrCat(SlotName(plan, s), "#", s, ":", StorageName(slot.storage));
  if (slot.place != 0) t += "@device";
  if (slot.place != 0 && plan.device && plan.device->devices > 1) t += StrCat(" ", slot.place - 1);
  if (slot.storage == Storage::kArena) t += StrCat("+", slot.offset);
  if (slot.storage == Storage::kView && slot.shift != 0) t += StrCat("+", slot.shift);
  if (slot.is_static) t += StrCat(" ", Name(slot.dtype), slot.shape().ToString());
  if (slot.is_static && !slot.is_dense()) {
    const auto& strides = slot.meta->tensor().strides();
    t += StrCat(" strides ", Shape(std::span(strides)).ToString());
  }
  return t;
}

std::string InstructionText(const Plan& plan, const Instruction& in) {
  std::string text = StrCat(in.op.def->name(), " [", ModeName(plan, in), "] (");
  for (size_t k = 0; k < in.op.in.size(); ++k)
    text += (k ? ", " : "") + SlotText(plan, in.op.in[k]);
  text += ") -> (";
  for (size_t k = 0; k < in.op.out.size(); ++k)
    text += (k ? ", " : "") + SlotText(plan, in.op.out[k]);
  text += StrCat(in.measured ? ")  " : ")  ~", static_cast<int64_t>(in.cost_ns), " ns");
  if (in.once) text += ", first iteration only";
  const std::string& implementation = ImplementationOf(in);
  return implementation.empty() ? text : StrCat(text, ", ", implementation);
}

// The waits, instructions and signals of each lane, lane after lane.
std::string LanesText(const Plan& plan, size_t block) {
  const LaneSchedule& s = *plan.LanesOf(static_cast<int>(block));
  const auto& ins = plan.blocks[block].instructions;
  std::string text = StrCat("expected: ", static_cast<int64_t>(s.predicted_ns), " ns of ",
                            static_cast<int64_t>(s.serial_ns), " ns of work, longest path ",
                            static_cast<int64_t>(s.path_ns), " ns\n");
  for (int lane = 0; lane < s.lanes; ++lane) {
    text +=
        StrCat("lane ", lane, ", ", s.lane_begin[lane + 1] - s.lane_begin[lane], " instructions\n");
    for (uint32_t k = s.segment_begin[lane]; k < s.segment_begin[lane + 1]; ++k) {
      const LaneSegment& segment = s.segments[k];
      for (uint32_t w = segment.wait_begin; w < segment.wait_end; ++w)
        text += StrCat("  wait for lane ", s.waits[w].lane, ", signal ", s.waits[w].signal, "\n");
      for (uint32_t i = segment.begin; i < segment.end; ++i)
        text += StrCat("  ", i, "  ", InstructionText(plan, ins[i]), "\n");
      if (segment.signal != 0) text += StrCat("  signal ", segment.signal, "\n");
    }
  }
  return text;
}

// The steps and their streams, in the order in which the host dispatches them.
std::string DeviceText(const Plan& plan, size_t block) {
  const DevicePlan& d = *plan.device;
  const DevicePlan::Section& section = d.sections[block];
  std::string text;
  for (size_t i = section.begin; i < section.end; ++i) {
    const DeviceStep& step = d.steps[i];
    text += StrCat("  ", step.at,
                   step.stream == 0           ? "  host    "
                   : step.stream >= d.streams ? StrCat("  task    ")
                                              : StrCat("  stream ", step.stream));
    for (uint32_t w = step.task_begin; w < step.task_end; ++w)
      text += StrCat(w == step.task_begin ? "  after task " : ", ", d.tasks[d.task_waits[w]].step);
    for (uint32_t w = step.wait_begin; w < step.wait_end; ++w)
      text += StrCat(w == step.wait_begin ? "  after event " : ", ", d.waits[w]);
    text += "  " + InstructionText(plan, plan.blocks[block].instructions[step.at]);
    text += step.record == DeviceStep::kNone ? "\n" : StrCat("  event ", step.record, "\n");
  }
  return text;
}

std::string DispatchText(const Plan& plan) {
  if (plan.dispatch == Dispatch::kDevice)
    return StrCat(
        plan.stats.device_instructions, " of them on the device, ", plan.stats.copies, " copies, ",
        plan.stats.peer_copies > 0
            ? StrCat(plan.stats.peer_copies, " of these from device to device, ")
            : "",
        plan.device->streams - 1, " streams, ",
        plan.stats.host_tasks > 0 ? StrCat(plan.stats.host_tasks, " tasks of the host, ") : "",
        plan.stats.events, " events, ", plan.stats.event_waits, " waits, ",
        plan.stats.device_arena_bytes, " bytes of temporaries, ",
        plan.stats.no_capture.empty() ? "kernels are captured"
                                      : "not captured: " + plan.stats.no_capture);
  if (plan.dispatch == Dispatch::kQueue) return StrCat("parallel, ", plan.stats.tasks, " tasks");
  if (plan.dispatch == Dispatch::kSerial)
    return plan.body_lanes > 0 ? StrCat("serial, ", plan.body_lanes, " lanes in blocks") : "serial";
  return StrCat("parallel, ", plan.lanes->lanes, " lanes, ", plan.lanes->waits.size(), " waits");
}

}  // namespace

std::string PlanText(const Plan& plan) {
  std::string text = StrCat("plan of ", plan.program->name, ": ", plan.stats.instructions,
                            " instructions, ", DispatchText(plan), ", arena ", plan.arena_bytes,
                            " bytes (bound ", plan.arena_bound, ")\n");
  for (const PlanFeed& f : plan.feeds) text += StrCat("feed  ", SlotText(plan, f.slot), "\n");
  for (size_t b = 0; b < plan.blocks.size(); ++b) {
    const bool on_device = plan.device && plan.device->Runs(static_cast<int>(b));
    if (b > 0)
      text += StrCat("block ", b,
                     !on_device                          ? ""
                     : plan.device->sections[b].captured ? ", on the device, captured"
                                                         : ", on the device",
                     "\n");
    if (plan.LanesOf(static_cast<int>(b)) != nullptr) {
      text += LanesText(plan, b);
      continue;
    }
    if (on_device) {
      text += DeviceText(plan, b);
      continue;
    }
    for (size_t i = 0; i < plan.blocks[b].instructions.size(); ++i)
      text += StrCat("  ", i, "  ", InstructionText(plan, plan.blocks[b].instructions[i]), "\n");
  }
  for (const PlanFetch& f : plan.fetches) text += StrCat("fetch ", SlotText(plan, f.slot), "\n");
  return text;
}

}  // namespace heddle
