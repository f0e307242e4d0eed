#include "executor/device/step_launcher.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "core/kernel_context.h"
#include "core/kernel_selector.h"
#include "core/shape_context.h"
#include "executor/run/bare_value.h"
#include "executor/run/check_finite.h"

namespace heddle {
namespace {

using Kind = DeviceStep::Kind;

bool IsInput(const Instruction& in, uint32_t slot) {
  return std::find(in.op.in.begin(), in.op.in.end(), slot) != in.op.in.end();
}

}  // namespace

Status StepLauncher::Put(size_t i) {
  const DeviceStep& step = session_.StepAt(i);
  const Instruction& in = session_.At(i);
  switch (step.kind) {
    case Kind::kCopyIn:
      return CopyIn(i);
    case Kind::kCopyOut:
      return CopyOut(i);
    case Kind::kCopyPeer:
      return CopyPeer(i);
    case Kind::kMark:
      return Status::Ok();
    case Kind::kShare: {
      const uint32_t out = in.op.out[in.takeovers[1]];
      session_.run.value(out) = session_.run.value(in.op.in[in.takeovers[0]])
                                    .tensor()
                                    .Reshaped(session_.plan.slots[out].shape());
      return Status::Ok();
    }
    default:
      return in.mode == Instruction::Mode::kDynamic ? LaunchDynamic(i) : LaunchShaped(i);
  }
}

Status StepLauncher::CheckValues(size_t i) {
  const Instruction& in = session_.At(i);
  Stream& stream = session_.StreamOf(session_.StepAt(i));
  std::vector<Value> copies(in.op.out.size());
  std::vector<Value*> frame(session_.run.frame(),
                            session_.run.frame() + session_.plan.slots.size());
  for (size_t k = 0; k < copies.size(); ++k) {
    const uint32_t slot = in.op.out[k];
    if (slot == kNoSlot || !session_.run.value(slot).initialized()) continue;
    const Tensor& t = session_.run.value(slot).tensor();
    Tensor copy(t.dtype(), t.shape(), session_.services().allocator->Allocate(t.bytes()));
    if (Status s = stream.CopyToHost(copy.mutable_raw(), t.raw(), t.bytes(), i + 1); !s.ok())
      return session_.Refused(s, i);
    copies[k] = std::move(copy);
    frame[slot] = &copies[k];
  }
  Status status = stream.Synchronize();
  failed_on_device_ = !status.ok();
  if (status.ok()) status = CheckFinite(session_.plan, in, frame.data());
  return status.At(session_.plan.Locate(in));
}

Status StepLauncher::Provide(size_t i, uint32_t slot, DType dtype, const Shape& shape) {
  const Slot& planned = session_.plan.slots[slot];
  const DeviceStep& step = session_.StepAt(i);
  DeviceRuntime& device = session_.RuntimeOf(step);
  const BufferRef& arena = session_.arenas[session_.device_plan.DeviceOf(step.stream)];
  if (arena && session_.device_plan.offsets[slot] != DevicePlan::kNoOffset &&
      planned.dtype == dtype && planned.shape() == shape) {
    session_.run.value(slot) = Tensor(dtype, shape, arena, session_.device_plan.offsets[slot]);
    return Status::Ok();
  }
  auto memory =
      session_.TokensOf(step).Take(slot, dtype, BytesFor(dtype, shape), session_.StreamOf(step));
  if (!memory.ok())
    return ExplainNoMemory(memory.status(), session_.run, device, slot, BytesFor(dtype, shape));
  session_.run.value(slot) = Tensor(dtype, shape, *std::move(memory));
  return Status::Ok();
}

Status StepLauncher::ProvideCopy(size_t i, uint32_t slot, const Tensor& t) {
  Value& copy = session_.run.value(slot);
  const bool fits = !session_.plan.slots[slot].versioned && copy.initialized() &&
                    copy.tensor().dtype() == t.dtype() && copy.tensor().shape() == t.shape();
  if (!fits) HEDDLE_RETURN_IF_ERROR(Provide(i, slot, t.dtype(), t.shape()));
  Use(slot, session_.StreamOf(session_.StepAt(i)));
  copy.tensor().set_lod(t.lod());
  return Status::Ok();
}

void StepLauncher::Use(uint32_t slot, Stream& stream) {
  const Value& v = session_.run.value(slot);
  if (v.is_tensor() && v.tensor().buffer())
    CachingAllocator::Use(*v.tensor().buffer().get(), stream);
}

Status StepLauncher::CopyIn(size_t i) {
  const Instruction& in = session_.At(i);
  const uint32_t from = in.op.in[0], to = in.op.out[0];
  Value& source = session_.run.value(from);
  if (!source.is_tensor() || !source.initialized()) {
    session_.run.value(to) = Value();
    return Status::Ok();
  }
  const Tensor t = source.tensor().Contiguous();
  const DeviceStep& step = session_.StepAt(i);
  HEDDLE_RETURN_IF_ERROR(ProvideCopy(i, to, t));
  held_.push_back(
      Pinned(step, t, !session_.plan.slots[from].versioned));  // the stream reads it later
  return session_.StreamOf(step).CopyToDevice(session_.run.value(to).tensor().mutable_raw(),
                                              held_.back().raw(), t.bytes(), i + 1);
}

Tensor StepLauncher::Pinned(const DeviceStep& step, const Tensor& t, bool changes) {
  PinnedPool& pool = session_.RuntimeOf(step).pinned();
  if (t.bytes() == 0 || (!changes && pool.Holds(t.raw(), t.bytes()))) return t;
  BufferRef memory = pool.Allocate(t.bytes());
  if (!memory && !changes) return t;
  if (!memory) memory = session_.services().allocator->Allocate(t.bytes());
  std::memcpy(memory->data(), t.raw(), t.bytes());
  return Tensor(t.dtype(), t.shape(), std::move(memory));
}

Status StepLauncher::CopyOut(size_t i) {
  const Instruction& in = session_.At(i);
  const uint32_t from = in.op.in[0], to = in.op.out[0];
  const Value& source = session_.run.value(from);
  Value& target = session_.run.value(to);
  if (!source.is_tensor() || !source.initialized()) {
    target = Value();
    return Status::Ok();
  }
  const Tensor& t = source.tensor();
  const DeviceStep& step = session_.StepAt(i);
  // A variable of the scope keeps its memory, as when an operator of the host updates it.
  const bool fits = session_.plan.slots[to].storage == Storage::kScope && target.is_tensor() &&
                    target.initialized() && target.tensor().dtype() == t.dtype() &&
                    target.tensor().shape() == t.shape() && target.tensor().is_contiguous();
  if (!fits) {
    BufferRef memory = session_.RuntimeOf(step).pinned().Allocate(t.bytes());
    if (!memory) memory = session_.services().allocator->Allocate(t.bytes());
    target = Tensor(t.dtype(), t.shape(), std::move(memory));
    if (const auto byte = session_.RuntimeOf(step).device().scrub(); byte && t.bytes() > 0)
      std::memset(target.tensor().mutable_raw(), *byte, t.bytes());
  }
  target.tensor().set_lod(t.lod());
  Use(from, session_.StreamOf(step));
  return session_.StreamOf(step).CopyToHost(target.tensor().mutable_raw(), t.raw(), t.bytes(),
                                            i + 1);
}

// The source is held until all streams are finished: the allocator of its device does not know of
// this copy, which is on another device's stream.
Status StepLauncher::CopyPeer(size_t i) {
  const Instruction& in = session_.At(i);
  const uint32_t from = in.op.in[0], to = in.op.out[0];
  const Value& source = session_.run.value(from);
  Value& target = session_.run.value(to);
  if (!source.is_tensor() || !source.initialized()) {
    target = Value();
    return Status::Ok();
  }
  const Tensor& t = source.tensor();
  HEDDLE_RETURN_IF_ERROR(ProvideCopy(i, to, t));
  held_.push_back(t);
  Device& peer = session_.devices[session_.plan.slots[from].place - 1u]->device();
  Stream& stream = session_.StreamOf(session_.StepAt(i));
  return stream.CopyFromPeer(target.tensor().mutable_raw(), peer, t.raw(), t.bytes(), i + 1);
}

void StepLauncher::Drop() { held_.clear(); }

Status StepLauncher::LaunchShaped(size_t i) {
  const Instruction& in = session_.At(i);
  for (uint32_t s : in.op.out) {
    if (s == kNoSlot || IsInput(in, s)) continue;
    HEDDLE_RETURN_IF_ERROR(
        Provide(i, s, session_.plan.slots[s].dtype, session_.plan.slots[s].shape()));
  }
  return Launch(i, in.fn, in.state, nullptr);
}

Status StepLauncher::FetchOperands(const DeviceStep& step, std::vector<Value>* values) {
  for (uint32_t k : step.call.in) {
    if (k == kNoSlot || (*values)[k].initialized()) continue;
    const Value& v = session_.run.value(step.operands[k]);
    if (!v.is_tensor() || !v.initialized()) continue;
    const Tensor& t = v.tensor();
    Tensor copy(t.dtype(), t.shape(), session_.services().allocator->Allocate(t.bytes()));
    copy.set_lod(t.lod());
    HEDDLE_RETURN_IF_ERROR(
        session_.StreamOf(step).CopyToHost(copy.mutable_raw(), t.raw(), t.bytes(), 0));
    (*values)[k] = std::move(copy);
  }
  return session_.StreamOf(step).Synchronize();
}

Status StepLauncher::LaunchDynamic(size_t i) {
  const Instruction& in = session_.At(i);
  const DeviceStep& step = session_.StepAt(i);
  const OpDef& def = *step.call.def;
  std::vector<Value> values;
  std::vector<bool> constant;
  for (size_t k = 0; k < step.operands.size(); ++k) {
    const bool host = step.host[k] != kNoSlot;
    values.push_back(host ? session_.run.value(step.host[k])
                          : ShapeOf(session_.run.value(step.operands[k])));
    constant.push_back(host && session_.plan.constant[step.host[k]]);
  }
  std::vector<Value*> frame;
  for (Value& v : values) frame.push_back(&v);
  std::optional<ShapeContext> shapes(std::in_place, step.call, frame.data());
  HEDDLE_RETURN_IF_ERROR(def.infer_shape()(*shapes));
  if (shapes->deferred()) {  // the shape function reads values that its definition does not name
    HEDDLE_RETURN_IF_ERROR(FetchOperands(step, &values));
    shapes.emplace(step.call, frame.data());
    HEDDLE_RETURN_IF_ERROR(def.infer_shape()(*shapes));
  }
  const auto& outs = shapes->outs();
  for (size_t k = 0; k < outs.size(); ++k) {
    const uint32_t slot = in.op.out[k];
    if (!outs[k].set || slot == kNoSlot) continue;
    HEDDLE_RETURN_IF_ERROR(Provide(i, slot, outs[k].dtype, outs[k].shape));
    if (outs[k].has_lod) session_.run.value(slot).tensor().set_lod(outs[k].lod);
    values[step.call.out[k]] = ShapeOf(session_.run.value(slot));
  }
  KernelFn fn = in.fn;
  if (fn == nullptr) HEDDLE_RETURN_IF_ERROR(SelectKernel(step.call, frame.data(), &fn));
  std::shared_ptr<const KernelState> state;
  if (def.prepare() != nullptr) {
    HEDDLE_ASSIGN_OR_RETURN(
        const std::shared_ptr<const ShapedCall> call,
        in.calls->FindOrPrepare(step.call, frame.data(), session_.services(), &constant));
    state = call->state;
    states_.push_back(state);
  }
  HEDDLE_RETURN_IF_ERROR(Launch(i, fn, state.get(), [this, &step](size_t k, const LoD& lod) {
    session_.run.value(step.operands[k]).tensor().set_lod(lod);
  }));
  Event& done = *session_.kept().done[session_.device_plan.DeviceOf(step.stream)];
  HEDDLE_RETURN_IF_ERROR(session_.StreamOf(step).Record(done));
  Status status = done.Wait();
  failed_on_device_ = !status.ok();
  return status;
}

Status StepLauncher::Launch(size_t i, KernelFn fn, const KernelState* state,
                            std::function<void(size_t, const LoD&)> offsets) {
  const DeviceStep& step = session_.StepAt(i);
  KernelCall call;
  call.op = &step.call;
  call.state = state;
  call.services = &session_.services();
  call.offsets = std::move(offsets);
  for (uint32_t s : step.operands) {
    Use(s, session_.StreamOf(step));
    call.operands.push_back(Detached(session_.run.value(s)));
  }
  call.host_kernel = [fn, &arena = session_.kernels](KernelContext& ctx) {
    Status status;
    arena.Execute([&] { status = fn(ctx); });
    return status;
  };
  return session_.StreamOf(step).Launch(std::move(call), i + 1);
}

}  // namespace heddle
