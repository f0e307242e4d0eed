// What a step of a device plan puts on its stream: copies and kernels, with their memory.
#include <cstring>
#include <optional>

#include "core/kernel_selector.h"
#include "executor/device/device_runner.h"
#include "executor/plan/bare_value.h"
#include "executor/run/check_finite.h"

namespace heddle {

Status DeviceRunner::CheckValues(size_t i) {
  const Instruction& in = At(i);
  Stream& stream = StreamOf(device_plan_.steps[i]);
  std::vector<Value> copies(in.op.out.size());
  std::vector<Value*> frame(run_.frame(), run_.frame() + plan_.slots.size());
  for (size_t k = 0; k < copies.size(); ++k) {
    const uint32_t slot = in.op.out[k];
    if (slot == kNoSlot || !run_.value(slot).initialized()) continue;
    const Tensor& t = run_.value(slot).tensor();
    Tensor copy(t.dtype(), t.shape(), services().allocator->Allocate(t.bytes()));
    if (Status s = stream.CopyToHost(copy.mutable_raw(), t.raw(), t.bytes(), i + 1); !s.ok())
      return Refused(s, i);
    copies[k] = std::move(copy);
    frame[slot] = &copies[k];
  }
  Status status = stream.Synchronize();
  failed_on_device_ = !status.ok();
  if (status.ok()) status = CheckFinite(plan_, in, frame.data());
  return status.At(plan_.Locate(in));
}

Status DeviceRunner::Put(size_t i) {
  const DeviceStep& step = device_plan_.steps[i];
  const Instruction& in = At(i);
  switch (step.kind) {
    case Kind::kCopyIn:
      return CopyIn(i);
    case Kind::kCopyOut:
      return CopyOut(i);
    case Kind::kShare: {
      const uint32_t out = in.op.out[in.takeovers[1]];
      run_.value(out) =
          run_.value(in.op.in[in.takeovers[0]]).tensor().Reshaped(plan_.slots[out].shape());
      return Status::Ok();
    }
    default:
      return in.mode == Instruction::Mode::kDynamic ? LaunchDynamic(i) : LaunchShaped(i);
  }
}

Status DeviceRunner::Provide(size_t i, uint32_t slot, DType dtype, const Shape& shape) {
  const Slot& planned = plan_.slots[slot];
  if (arena_ && device_plan_.offsets[slot] != DevicePlan::kNoOffset && planned.dtype == dtype &&
      planned.shape() == shape) {
    run_.value(slot) = Tensor(dtype, shape, arena_, device_plan_.offsets[slot]);
    return Status::Ok();
  }
  auto memory = device_.memory().Allocate(BytesFor(dtype, shape), &StreamOf(device_plan_.steps[i]));
  if (!memory.ok())
    return ExplainNoMemory(memory.status(), run_, device_, slot, BytesFor(dtype, shape));
  run_.value(slot) = Tensor(dtype, shape, *std::move(memory));
  return Status::Ok();
}

void DeviceRunner::Use(uint32_t slot, Stream& stream) {
  const Value& v = run_.value(slot);
  if (v.is_tensor() && v.tensor().buffer())
    CachingAllocator::Use(*v.tensor().buffer().get(), stream);
}

Status DeviceRunner::CopyIn(size_t i) {
  const Instruction& in = At(i);
  const uint32_t from = in.op.in[0], to = in.op.out[0];
  Value& source = run_.value(from);
  if (!source.is_tensor() || !source.initialized()) {
    run_.value(to) = Value();
    return Status::Ok();
  }
  const Tensor t = source.tensor().Contiguous();
  const DeviceStep& step = device_plan_.steps[i];
  const Value& old = run_.value(to);
  const bool fits = !plan_.slots[to].versioned && old.initialized() &&
                    old.tensor().dtype() == t.dtype() && old.tensor().shape() == t.shape();
  if (!fits) HEDDLE_RETURN_IF_ERROR(Provide(i, to, t.dtype(), t.shape()));
  Use(to, StreamOf(step));
  run_.value(to).tensor().set_lod(t.lod());
  held_.push_back(Pinned(t, !plan_.slots[from].versioned));  // the stream reads it later
  return StreamOf(step).CopyToDevice(run_.value(to).tensor().mutable_raw(), held_.back().raw(),
                                     t.bytes(), i + 1);
}

Tensor DeviceRunner::Pinned(const Tensor& t, bool changes) {
  PinnedPool& pool = device_.pinned();
  if (t.bytes() == 0 || (!changes && pool.Holds(t.raw(), t.bytes()))) return t;
  BufferRef memory = pool.Allocate(t.bytes());
  if (!memory && !changes) return t;
  if (!memory) memory = services().allocator->Allocate(t.bytes());
  std::memcpy(memory->data(), t.raw(), t.bytes());
  return Tensor(t.dtype(), t.shape(), std::move(memory));
}

Status DeviceRunner::CopyOut(size_t i) {
  const Instruction& in = At(i);
  const uint32_t from = in.op.in[0], to = in.op.out[0];
  const Value& source = run_.value(from);
  Value& target = run_.value(to);
  if (!source.is_tensor() || !source.initialized()) {
    target = Value();
    return Status::Ok();
  }
  const Tensor& t = source.tensor();
  const DeviceStep& step = device_plan_.steps[i];
  // A variable of the scope keeps its memory, as it does when an operator of the host updates it.
  const bool fits = plan_.slots[to].storage == Storage::kScope && target.is_tensor() &&
                    target.initialized() && target.tensor().dtype() == t.dtype() &&
                    target.tensor().shape() == t.shape() && target.tensor().is_contiguous();
  if (!fits) {
    BufferRef memory = device_.pinned().Allocate(t.bytes());
    if (!memory) memory = services().allocator->Allocate(t.bytes());
    target = Tensor(t.dtype(), t.shape(), std::move(memory));
    if (const auto byte = device_.device().scrub(); byte && t.bytes() > 0)
      std::memset(target.tensor().mutable_raw(), *byte, t.bytes());
  }
  target.tensor().set_lod(t.lod());
  Use(from, StreamOf(step));
  return StreamOf(step).CopyToHost(target.tensor().mutable_raw(), t.raw(), t.bytes(), i + 1);
}

Status DeviceRunner::LaunchShaped(size_t i) {
  const Instruction& in = At(i);
  for (uint32_t s : in.op.out) {
    if (s == kNoSlot || IsInput(in, s)) continue;
    HEDDLE_RETURN_IF_ERROR(Provide(i, s, plan_.slots[s].dtype, plan_.slots[s].shape()));
  }
  return Launch(i, in.fn, in.state, nullptr);
}

Status DeviceRunner::FetchOperands(const DeviceStep& step, std::vector<Value>* values) {
  for (uint32_t k : step.call.in) {
    if (k == kNoSlot || (*values)[k].initialized()) continue;
    const Value& v = run_.value(step.operands[k]);
    if (!v.is_tensor() || !v.initialized()) continue;
    const Tensor& t = v.tensor();
    Tensor copy(t.dtype(), t.shape(), services().allocator->Allocate(t.bytes()));
    copy.set_lod(t.lod());
    HEDDLE_RETURN_IF_ERROR(StreamOf(step).CopyToHost(copy.mutable_raw(), t.raw(), t.bytes(), 0));
    (*values)[k] = std::move(copy);
  }
  return StreamOf(step).Synchronize();
}

Status DeviceRunner::LaunchDynamic(size_t i) {
  const Instruction& in = At(i);
  const DeviceStep& step = device_plan_.steps[i];
  const OpDef& def = *step.call.def;
  std::vector<Value> values;
  std::vector<bool> constant;
  for (size_t k = 0; k < step.operands.size(); ++k) {
    const bool host = step.host[k] != kNoSlot;
    values.push_back(host ? run_.value(step.host[k]) : ShapeOf(run_.value(step.operands[k])));
    constant.push_back(host && plan_.constant[step.host[k]]);
  }
  std::vector<Value*> frame;
  for (Value& v : values) frame.push_back(&v);
  std::optional<ShapeContext> shapes(std::in_place, step.call, frame.data());
  HEDDLE_RETURN_IF_ERROR(def.infer_shape()(*shapes));
  if (shapes->deferred()) {  // it looks at values that its definition does not name
    HEDDLE_RETURN_IF_ERROR(FetchOperands(step, &values));
    shapes.emplace(step.call, frame.data());
    HEDDLE_RETURN_IF_ERROR(def.infer_shape()(*shapes));
  }
  const auto& outs = shapes->outs();
  for (size_t k = 0; k < outs.size(); ++k) {
    const uint32_t slot = in.op.out[k];
    if (!outs[k].set || slot == kNoSlot) continue;
    HEDDLE_RETURN_IF_ERROR(Provide(i, slot, outs[k].dtype, outs[k].shape));
    if (outs[k].has_lod) run_.value(slot).tensor().set_lod(outs[k].lod);
    values[step.call.out[k]] = ShapeOf(run_.value(slot));
  }
  KernelFn fn = in.fn;
  if (fn == nullptr) HEDDLE_RETURN_IF_ERROR(SelectKernel(step.call, frame.data(), &fn));
  std::shared_ptr<const KernelState> state;
  if (def.prepare() != nullptr) {
    auto kept = in.states->Get(step.call, frame.data(), services(), &constant);
    if (!kept.ok()) return kept.status();
    state = *std::move(kept);
    states_.push_back(state);
  }
  HEDDLE_RETURN_IF_ERROR(Launch(i, fn, state.get(), [this, &step](size_t k, const LoD& lod) {
    run_.value(step.operands[k]).tensor().set_lod(lod);
  }));
  Event& done = *run_.device_run()->done;
  HEDDLE_RETURN_IF_ERROR(StreamOf(step).Record(done));
  Status status = done.Wait();
  failed_on_device_ = !status.ok();
  return status;
}

Status DeviceRunner::Launch(size_t i, KernelFn fn, const KernelState* state,
                            std::function<void(size_t, const LoD&)> offsets) {
  const DeviceStep& step = device_plan_.steps[i];
  KernelCall call;
  call.op = &step.call;
  call.state = state;
  call.services = &services();
  call.offsets = std::move(offsets);
  for (uint32_t s : step.operands) {
    Use(s, StreamOf(step));
    call.operands.push_back(Detached(run_.value(s)));
  }
  call.host_kernel = [fn, &arena = kernels_](KernelContext& ctx) {
    Status status;
    arena.Execute([&] { status = fn(ctx); });
    return status;
  };
  return StreamOf(step).Launch(std::move(call), i + 1);
}

}  // namespace heddle
