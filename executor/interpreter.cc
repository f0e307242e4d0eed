#include "executor/interpreter.h"

#include "core/error.h"
#include "executor/kernel_selector.h"
#include "memory/pool_allocator.h"

namespace heddle {
namespace {

using Mode = Instruction::Mode;

// What a kernel throws becomes a Status here, at the instruction's boundary.
template <typename Fn>
Status Guard(Fn&& fn) {
  try {
    return fn();
  } catch (const std::bad_alloc& e) {
    return ResourceExhausted(e.what());
  } catch (const std::invalid_argument& e) {
    return InvalidArgument(e.what());
  } catch (const std::exception& e) {
    return Internal("the kernel threw: ", e.what());
  } catch (...) {
    return Internal("the kernel threw something that is no std::exception");
  }
}

bool IsOperand(const std::vector<uint32_t>& list, uint32_t slot) {
  for (uint32_t s : list)
    if (s == slot) return true;
  return false;
}

// Memory for an output: what it has when that suffices and nobody else sees it.
void Provide(Value& v, DType dtype, const Shape& shape, TensorAllocator& allocator) {
  Tensor& t = v.MutableTensor();
  const size_t bytes = BytesFor(dtype, shape);
  const BufferRef& b = t.buffer();
  if (b && b->unique() && b->bytes() >= bytes && t.raw() == b->data()) {
    t.SetMeta(dtype, shape);
    t.ClearLod();
  } else {
    t = Tensor(dtype, shape, allocator.Allocate(bytes));
  }
}

// Before: a rewritten variable's hidden slot holds the variable's own memory where the operator may
// work in place. After: the variable becomes what the hidden slot holds.
void BeginRewrites(const Instruction& in, Value* const* frame) {
  for (const auto& r : in.rewrites) {
    if (r.inplace)
      *frame[r.hidden] = *frame[r.real];
    else
      frame[r.hidden]->Clear();
  }
}
void EndRewrites(const Instruction& in, Value* const* frame) {
  for (const auto& r : in.rewrites) {
    if (!frame[r.hidden]->initialized()) continue;
    *frame[r.real] = std::move(*frame[r.hidden]);
    frame[r.hidden]->Clear();
  }
}

// Where the plan counts on a variable's shape, an operator that rewrites it must keep the shape.
Status CheckRewrites(const Instruction& in, const std::vector<ShapeContext::OutMeta>& outs,
                     const Plan& plan) {
  for (const auto& r : in.rewrites) {
    const Slot& real = plan.slots[r.real];
    for (size_t i = 0; real.is_static && i < outs.size(); ++i)
      if (in.op.out[i] == r.hidden && outs[i].set &&
          !(outs[i].shape == real.shape && outs[i].dtype == real.dtype))
        return InvalidArgument("would turn variable '", plan.program->vars[real.var].name, "' from ",
                               Name(real.dtype), " ", real.shape.ToString(), " into ",
                               Name(outs[i].dtype), " ", outs[i].shape.ToString());
  }
  return Status::Ok();
}

// Gives an output its inferred shape. The output of an in-place rewrite keeps the variable's memory
// when shape and dtype stay; any other one must not write where somebody may still read.
void PlaceOutput(const Instruction& in, uint32_t slot, const ShapeContext::OutMeta& meta,
                 Value* const* frame, TensorAllocator& allocator) {
  Value& v = *frame[slot];
  bool rewrite = false;
  for (const auto& r : in.rewrites) rewrite = rewrite || r.hidden == slot;
  if (rewrite && v.is_tensor() && v.tensor().initialized()) {
    if (v.tensor().dtype() == meta.dtype && v.tensor().shape() == meta.shape) return;
    v.Clear();
  }
  if (!rewrite && IsOperand(in.op.in, slot)) return;  // arrays: the kernel looks after itself
  Provide(v, meta.dtype, meta.shape, allocator);
  if (meta.has_lod) v.tensor().set_lod(meta.lod);
}

}  // namespace

Status Interpreter::ExecuteShaped(const Instruction& in, RunState& run) {
  const Plan& plan = run.plan();
  Value* const* frame = run.frame();
  if (in.mode == Mode::kShare) {
    const auto& t = in.takeovers[0];
    const uint32_t out = in.op.out[t.out];
    *frame[out] = frame[in.op.in[t.in]]->tensor().Reshaped(plan.slots[out].shape);
    return Status::Ok();
  }
  for (uint32_t k = 0; k < in.op.out.size(); ++k) {
    const uint32_t s = in.op.out[k];
    if (s == kNoSlot) continue;
    const Slot& slot = plan.slots[s];
    bool taken = false;
    for (const auto& t : in.takeovers) {
      if (t.out != k || plan.consumers[in.op.in[t.in]] != 1) continue;
      const Tensor& from = frame[in.op.in[t.in]]->tensor();
      if (!from.buffer() || !from.buffer()->unique()) continue;
      *frame[s] = from.Reshaped(slot.shape);
      taken = true;
    }
    if (!taken)
      *frame[s] = Tensor(slot.dtype, slot.shape, run.services().allocator->Allocate(slot.bytes()));
  }
  KernelContext ctx(in.op, frame, run.services(), in.state);
  return in.fn(ctx);
}

Status Interpreter::ExecuteDynamic(const Instruction& in, RunState& run) {
  Value* const* frame = run.frame();
  const OpDef& def = *in.op.def;
  BeginRewrites(in, frame);
  if (def.infer_shape() != nullptr) {
    ShapeContext shapes(in.op, frame);
    HEDDLE_RETURN_IF_ERROR(def.infer_shape()(shapes));
    auto& outs = shapes.outs();
    HEDDLE_RETURN_IF_ERROR(CheckRewrites(in, outs, run.plan()));
    for (size_t i = 0; i < outs.size(); ++i)
      if (outs[i].set && in.op.out[i] != kNoSlot)
        PlaceOutput(in, in.op.out[i], outs[i], frame, *run.services().allocator);
  }
  KernelFn fn = in.fn;
  if (fn == nullptr) HEDDLE_RETURN_IF_ERROR(SelectKernel(in.op, frame, &fn));
  std::shared_ptr<const KernelState> state;
  if (in.states) {
    auto made = in.states->Get(in.op, frame, run.services(), &run.plan().constant);
    if (!made.ok()) return made.status();
    state = *std::move(made);
  }
  KernelContext ctx(in.op, frame, run.services(), state.get());
  HEDDLE_RETURN_IF_ERROR(fn(ctx));
  EndRewrites(in, frame);
  return Status::Ok();
}

Status Interpreter::Execute(const Instruction& in, RunState& run) {
  if (in.mode == Mode::kStatic) [[likely]] {
    KernelContext ctx(in.op, run.frame(), run.services(), in.state);
    return in.fn(ctx);
  }
  return in.mode == Mode::kDynamic ? ExecuteDynamic(in, run) : ExecuteShaped(in, run);
}

Status Interpreter::RunSerial(const std::vector<Instruction>& instructions, RunState& run) {
  const Instruction* at = nullptr;
  Status status = Guard([&] {
    for (const Instruction& in : instructions) {
      at = &in;
      Status s = Execute(in, run);
      if (!s.ok()) [[unlikely]]
        return s;
      for (uint32_t slot : in.release) *run.frame()[slot] = Value();
    }
    return Status::Ok();
  });
  return status.ok() ? status : status.At(run.plan().Locate(*at));
}

namespace {

// Publishes a ready task and wakes a sleeper if there is one.
void Publish(RunState::Parallel& p, int participant, uint32_t task) {
  p.ready.Push(participant, task);
  std::lock_guard lock(p.mutex);
  if (p.sleeping > 0) p.changed.notify_one();
}

void Finish(RunState::Parallel& p, Status error) {
  {
    std::lock_guard lock(p.mutex);
    if (p.error.ok()) p.error = std::move(error);
    p.failed.store(true, std::memory_order_release);
  }
  p.changed.notify_all();
}

// The next task of this participant; false when the run is over.
bool NextTask(RunState::Parallel& p, int participant, uint32_t* task) {
  for (;;) {
    if (p.failed.load(std::memory_order_acquire)) return false;
    if (p.ready.Pop(participant, task)) return true;
    std::unique_lock lock(p.mutex);
    if (p.unfinished.load(std::memory_order_acquire) == 0 || p.failed.load()) return false;
    // A task published between Pop and here was pushed before its publisher takes the mutex, so
    // looking once more under the mutex misses nothing.
    if (p.ready.Pop(participant, task)) return true;
    ++p.sleeping;
    p.changed.wait(lock);
    --p.sleeping;
  }
}

void ReleaseRead(RunState& run, RunState::Parallel& p, const Instruction& in) {
  for (uint32_t s : in.reads)
    if (p.readers[s].fetch_sub(1, std::memory_order_acq_rel) == 1) run.value(s) = Value();
  for (uint32_t s : in.release)
    if (run.plan().consumers[s] == 0) run.value(s) = Value();
}

}  // namespace

void Interpreter::RunTasks(int participant, RunState& run) {
  const TaskGraph& g = run.plan().tasks;
  const auto& instructions = run.plan().blocks[0].instructions;
  RunState::Parallel& p = *run.parallel();
  uint32_t task = 0;
  bool have = false;
  while (have || NextTask(p, participant, &task)) {
    have = false;
    for (uint32_t m = g.member_begin[task]; m < g.member_begin[task + 1]; ++m) {
      const Instruction& in = instructions[g.members[m]];
      Status s = Guard([&] { return Execute(in, run); });
      if (!s.ok()) return Finish(p, s.At(run.plan().Locate(in)));
      ReleaseRead(run, p, in);
    }
    // The most urgent successor that became ready stays here, the others are published.
    uint32_t keep = kNoSlot;
    for (uint32_t e = g.successor_begin[task]; e < g.successor_begin[task + 1]; ++e) {
      uint32_t next = g.successors[e];
      if (p.waiting[next].fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
      if (keep == kNoSlot) {
        keep = next;
      } else {
        if (g.priority[next] > g.priority[keep]) std::swap(next, keep);
        Publish(p, participant, next);
      }
    }
    have = keep != kNoSlot;
    if (have) task = keep;
    if (p.unfinished.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      std::lock_guard lock(p.mutex);
      p.changed.notify_all();
    }
    if (p.failed.load(std::memory_order_acquire)) return;
  }
}

Status Interpreter::RunParallel(RunState& run, HostPool& pool, KernelArena& arena) {
  const TaskGraph& g = run.plan().tasks;
  RunState::Parallel& p = *run.parallel();
  for (int t = 0; t < g.size(); ++t)
    p.waiting[t].store(static_cast<int>(g.in_degree[t]), std::memory_order_relaxed);
  for (uint32_t s : run.plan().run_slots)
    p.readers[s].store(static_cast<int>(run.plan().consumers[s]), std::memory_order_relaxed);
  p.ready.Clear();
  p.failed.store(false, std::memory_order_relaxed);
  p.error = Status::Ok();
  p.unfinished.store(g.size(), std::memory_order_release);
  for (size_t i = g.roots.size(); i-- > 0;) p.ready.Push(0, g.roots[i]);
  pool.Run([&](int participant) { arena.Execute([&] { RunTasks(participant, run); }); });
  return p.error;
}

}  // namespace heddle
