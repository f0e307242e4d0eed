#include "executor/report/match_plan.h"

#include <algorithm>

#include "core/error.h"

namespace heddle {
namespace {

constexpr char kRefused[] = "the plan that is to be followed cannot be: ";

std::string Told(const std::string& text) { return text.empty() ? "nothing" : text; }
std::string Told(const Shape& shape) { return shape.ToString(); }
std::string Told(DType dtype) { return std::string(Name(dtype)); }
template <typename T>
std::string Told(const T& number) {
  return std::to_string(number);
}
template <typename T>
std::string Told(const std::vector<T>& list) {
  std::string text;
  for (const T& item : list) text += (text.empty() ? "" : ", ") + Told(item);
  return "[" + text + "]";
}

// Keeps the first difference.
class Comparison {
 public:
  template <typename T>
  void Same(const T& wanted, const T& made, const std::string& where, const char* what) {
    if (!status_.ok() || wanted == made) return;
    status_ = InvalidArgument(kRefused, where, " has ", what, " ", Told(wanted), " there, and ",
                              Told(made), " here");
  }
  Status Take() { return std::move(status_); }

 private:
  Status status_;
};

std::string StepName(const PlanDescription& plan, size_t i) {
  const auto& in = plan.instructions[i];
  std::string output;
  for (int s : in.outputs)
    if (output.empty() && s >= 0 && static_cast<size_t>(s) < plan.slots.size())
      output = plan.slots[static_cast<size_t>(s)].variable;
  return StrCat("step ", i, " (", in.op, output.empty() ? "" : " -> ", output, ")");
}

}  // namespace

Status CheckOrigin(const PlanDescription& wanted, const PlanDescription& here) {
  if (wanted.version != here.version)
    return InvalidArgument(kRefused, "heddle ", Told(wanted.version), " made it, and this is ",
                           here.version);
  if (wanted.program_hash != here.program_hash)
    return InvalidArgument(kRefused, "it is of another program ('", wanted.program, "', hash ",
                           Told(wanted.program_hash), "; this is '", here.program, "', hash ",
                           here.program_hash, ")");
  if (wanted.machine != here.machine)
    return InvalidArgument(kRefused, "it was made for another machine (", Told(wanted.machine),
                           "; this is ", here.machine, ")");
  return Status::Ok();
}

Status CheckSamePlan(const PlanDescription& wanted, const PlanDescription& made) {
  Comparison c;
  c.Same(wanted.dispatch, made.dispatch, "it", "dispatch");
  c.Same(wanted.lanes, made.lanes, "it", "lanes");
  c.Same(wanted.instructions.size(), made.instructions.size(), "it", "steps");
  c.Same(wanted.slots.size(), made.slots.size(), "it", "slots");
  const size_t slots = std::min(wanted.slots.size(), made.slots.size());
  for (size_t s = 0; s < slots; ++s) {
    const auto &w = wanted.slots[s], &m = made.slots[s];
    const std::string where = StrCat("slot ", s, " ('", w.variable, "')");
    c.Same(w.variable, m.variable, where, "variable");
    c.Same(w.dtype, m.dtype, where, "dtype");
    if (w.is_static && m.is_static) c.Same(w.shape, m.shape, where, "shape");
    c.Same(w.is_static, m.is_static, where, "a known shape:");
    c.Same(w.storage, m.storage, where, "storage");
    c.Same(w.place, m.place, where, "place");
    c.Same(w.block, m.block, where, "block");
    c.Same(w.base, m.base, where, "base");
    c.Same(w.offset, m.offset, where, "offset");
    c.Same(w.storage_id, m.storage_id, where, "storage id");
  }
  const size_t steps = std::min(wanted.instructions.size(), made.instructions.size());
  for (size_t i = 0; i < steps; ++i) {
    const auto &w = wanted.instructions[i], &m = made.instructions[i];
    const std::string where = StepName(wanted, i);
    c.Same(w.op, m.op, where, "operator");
    c.Same(w.block, m.block, where, "block");
    c.Same(w.position, m.position, where, "position");
    c.Same(w.inputs, m.inputs, where, "inputs");
    c.Same(w.outputs, m.outputs, where, "outputs");
    c.Same(w.mode, m.mode, where, "mode");
    c.Same(w.once, m.once, where, "once");
    c.Same(w.implementation, m.implementation, where, "implementation");
    c.Same(w.lane, m.lane, where, "lane");
    c.Same(w.task, m.task, where, "task");
    c.Same(w.place, m.place, where, "place");
    c.Same(w.stream, m.stream, where, "stream");
    c.Same(w.waits, m.waits, where, "waits");
    c.Same(w.event, m.event, where, "event");
  }
  c.Same(wanted.order, made.order, "it", "order");
  c.Same(wanted.arena_bytes, made.arena_bytes, "it", "arena bytes");
  if (Status s = c.Take(); !s.ok()) return s;
  if (wanted.dependencies != made.dependencies)
    return InvalidArgument(kRefused, "its edges are others than those of this program here");
  return Status::Ok();
}

}  // namespace heddle
