#include "offload/group_op.h"

#include <chrono>
#include <cstring>

#include "core/error.h"
#include "core/interrupts.h"
#include "core/kernel_context.h"
#include "core/shape_context.h"
#include "core/threads/run_deadline.h"
#include "offload/group_shapes.h"

namespace heddle::offload {
namespace {

using Metas = std::vector<ShapeContext::OutMeta>;

std::vector<Value*> InputsOf(const OpContext& ctx) {
  std::vector<Value*> inputs;
  for (int i = 0; i < ctx.InCount("X"); ++i) inputs.push_back(ctx.InVar("X", i));
  return inputs;
}

// A file may declare what its program does not keep.
bool IsAsDeclared(const ir::Var& var, const Tensor& t) {
  if (var.dtype != DType::kUnknown && var.dtype != t.dtype()) return false;
  if (!var.shape.known_rank()) return true;
  if (var.shape.rank() != t.rank()) return false;
  for (int i = 0; i < t.rank(); ++i)
    if (var.shape[i] >= 0 && var.shape[i] != t.shape()[i]) return false;
  return true;
}

// Outputs in memory that the run has planned, or takes now.
class RunSink : public OutputSink {
 public:
  RunSink(KernelContext& ctx, const std::optional<Metas>* expected, const Group& group)
      : ctx_(ctx),
        expected_(expected != nullptr && expected->has_value() ? &**expected : nullptr),
        group_(group),
        unread_(size()) {}

  size_t size() const override { return group_.outputs.size(); }
  Status Take(size_t index, DType dtype, const Shape& shape, void** memory) override {
    HEDDLE_RETURN_IF_ERROR(Check(group_, expected_, index, dtype, shape));
    const auto k = static_cast<int>(index);
    if (!ctx_.HasOut("Out", k)) {  // a pass found that nobody reads it
      unread_[index] = ctx_.Scratch(dtype, shape);
      *memory = unread_[index].mutable_raw();
    } else if (expected_ != nullptr) {
      *memory = ctx_.Out("Out", k).mutable_raw();
    } else {
      *memory = ctx_.Alloc("Out", dtype, shape, k).mutable_raw();
    }
    return Status::Ok();
  }

  static Status Check(const Group& group, const Metas* expected, size_t index, DType dtype,
                      const Shape& shape) {
    const ir::Var& var = group.program->vars[group.program->fetches[index].var];
    if (expected != nullptr) {
      const auto& want = (*expected)[index];
      if (want.dtype == dtype && want.shape == shape) return Status::Ok();
      return InvalidArgument("writes ", Name(dtype), " ", shape.ToString(), " to output ", index,
                             " (", var.name, "), which is ", Name(want.dtype), " ",
                             want.shape.ToString());
    }
    if (var.dtype != DType::kUnknown && var.dtype != dtype)
      return InvalidArgument("writes ", Name(dtype), " to output ", index, " (", var.name,
                             "), which is ", Name(var.dtype));
    return Status::Ok();
  }

 private:
  KernelContext& ctx_;
  const Metas* const expected_;
  const Group& group_;
  std::vector<Tensor> unread_;
};

// Outputs in memory of their own, for calls that may be left to themselves.
class OwnSink : public OutputSink {
 public:
  OwnSink(std::shared_ptr<const Group> group, std::optional<Metas> expected)
      : group_(std::move(group)), expected_(std::move(expected)), made_(group_->outputs.size()) {}

  size_t size() const override { return made_.size(); }
  Status Take(size_t index, DType dtype, const Shape& shape, void** memory) override {
    HEDDLE_RETURN_IF_ERROR(
        RunSink::Check(*group_, expected_ ? &*expected_ : nullptr, index, dtype, shape));
    made_[index] = Tensor::Empty(dtype, shape);
    if (!made_[index].initialized()) return ResourceExhausted("has no memory for output ", index);
    *memory = made_[index].mutable_raw();
    return Status::Ok();
  }
  const std::vector<Tensor>& made() const { return made_; }

 private:
  const std::shared_ptr<const Group> group_;
  const std::optional<Metas> expected_;
  std::vector<Tensor> made_;
};

// Gives an output of the operator what `from` holds.
void Give(KernelContext& ctx, int k, const Tensor& from) {
  if (!ctx.HasOut("Out", k)) return;
  Tensor& to = ctx.Out("Out", k);
  const bool placed =
      to.raw() != nullptr && to.dtype() == from.dtype() && to.shape() == from.shape();
  Tensor& out = placed ? to : ctx.Alloc("Out", from.dtype(), from.shape(), k);
  if (from.bytes() > 0) std::memcpy(out.mutable_raw(), from.raw(), from.bytes());
  out.set_lod(from.lod());
}

}  // namespace

void Recorder::Note(const std::vector<Tensor>& inputs, double ms) {
  std::lock_guard lock(mutex_);
  if (best_ms_ < 0)
    for (const Tensor& input : inputs) inputs_.emplace_back(input.Clone());
  if (best_ms_ < 0 || ms < best_ms_) best_ms_ = ms;
}
bool Recorder::called() const {
  std::lock_guard lock(mutex_);
  return best_ms_ >= 0;
}
std::vector<Value> Recorder::inputs() const {
  std::lock_guard lock(mutex_);
  return inputs_;
}
double Recorder::best_ms() const {
  std::lock_guard lock(mutex_);
  return best_ms_;
}

void RunCount::Note(const Status& status) {
  std::lock_guard lock(mutex_);
  ++runs_.runs;
  if (status.code() != StatusCode::kUnimplemented) return;
  if (++runs_.refused == 1) runs_.reason = status.message();
}
GroupRuns RunCount::runs() const {
  std::lock_guard lock(mutex_);
  return runs_;
}

namespace {

// Whether the run that the calling thread works for has one.
bool HasDeadline() {
  const auto* const known = dynamic_cast<const MayHaveDeadline*>(Interrupts::Current());
  return known != nullptr && known->has_deadline();
}

std::shared_ptr<HostGroup> HostOf(const Group& group, int level) {
  return std::make_shared<HostGroup>(group, HostGroup::Inputs::kAny, ExecutorOptions{.threads = 1},
                                     CompileOptions{.opt_level = level});
}

}  // namespace

struct GroupOp::State : KernelState {
  std::optional<Metas> outs;
};

GroupOp::GroupOp(std::shared_ptr<const Group> group, std::shared_ptr<Module> module,
                 Options options)
    : OpDef(kName),
      group_(std::move(group)),
      module_(std::move(module)),
      host_(HostOf(*group_, options.host_level)),
      plain_(group_->plain != nullptr ? HostOf(*group_->plain, options.host_level) : host_),
      options_(std::move(options)) {
  Input("X", kList | kOptional).Output("Out", kList);
  Attr("symbol", group_->symbol.c_str());
  AnyKernel(Compute).InferShape(Infer).Prepare(PrepareCall);
  if (options_.cost_ns > 0) Cost(CostNs);
}

const GroupOp& GroupOp::Of(const OpContext& ctx) { return static_cast<const GroupOp&>(ctx.def()); }

double GroupOp::CostNs(const ShapeContext& ctx) { return Of(ctx).options_.cost_ns; }

Status GroupOp::Infer(ShapeContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const auto metas, ShapesOf(Of(ctx).declared(), InputsOf(ctx)));
  if (!metas) return ctx.Defer();
  for (size_t k = 0; k < metas->size(); ++k) {
    ctx.SetOutAt(k, (*metas)[k].shape, (*metas)[k].dtype);
    if ((*metas)[k].has_lod) ctx.SetOutLoDAt(k, (*metas)[k].lod);
  }
  return Status::Ok();
}

Result<std::unique_ptr<KernelState>> GroupOp::PrepareCall(PrepareContext& ctx) {
  auto state = std::make_unique<State>();
  HEDDLE_ASSIGN_OR_RETURN(state->outs, ShapesOf(Of(ctx).declared(), InputsOf(ctx)));
  state->facts().implementation = Of(ctx).options_.told;
  return std::unique_ptr<KernelState>(std::move(state));
}

Status GroupOp::ComputeOnHost(KernelContext& ctx, HostGroup& host) const {
  std::vector<Value> inputs;
  for (const Value* input : InputsOf(ctx)) inputs.push_back(*input);
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<Value> values,
                          host.Run(inputs, [&] { return ctx.Interrupted(); }));
  for (size_t k = 0; k < values.size(); ++k) {
    if (!values[k].is_tensor() || !values[k].tensor().initialized())
      return Internal("output ", k, " of group ", group_->symbol, " holds no tensor");
    Give(ctx, static_cast<int>(k), values[k].tensor().Contiguous());
  }
  return Status::Ok();
}

Status GroupOp::Compute(KernelContext& ctx) {
  const GroupOp& op = Of(ctx);
  std::vector<Tensor> inputs;
  bool declared = true;  // what engines take, and what passes have gone by
  for (int i = 0; i < ctx.InCount("X"); ++i) {
    const Value* value = ctx.InVar("X", i);
    const ir::Program& group = *op.group().program;
    const ir::Var& var = group.vars[group.feeds[static_cast<size_t>(i)].var];
    if (value == nullptr || !value->is_tensor() || !value->tensor().initialized())
      return InvalidArgument("input '", var.name, "' of ", op.group().symbol, " holds no tensor");
    // Engines know nothing of sequences, nor whether an open dimension may be 0.
    declared = declared && !value->tensor().has_lod() && IsAsDeclared(var, value->tensor()) &&
               (value->tensor().numel() > 0 || var.shape.is_static());
    inputs.push_back(value->tensor());
  }
  if (!declared) return op.ComputeOnHost(ctx, *op.plain_);
  if (op.module_ == nullptr) return op.ComputeOnHost(ctx, *op.host_);
  if (op.options_.recorder == nullptr) {
    const Status status = op.ComputeOnEngine(ctx, std::move(inputs));
    const bool refused = status.code() == StatusCode::kUnimplemented;
    if (op.options_.count != nullptr) op.options_.count->Note(status);
    return refused ? op.ComputeOnHost(ctx, *op.host_) : status;
  }
  const auto begin = std::chrono::steady_clock::now();
  HEDDLE_RETURN_IF_ERROR(op.ComputeOnEngine(ctx, inputs));
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  op.options_.recorder->Note(inputs, took.count());
  return Status::Ok();
}

Status GroupOp::ComputeOnEngine(KernelContext& ctx, std::vector<Tensor> inputs) const {
  const auto* outs = ctx.has_state() ? &ctx.State<State>().outs : nullptr;
  const auto stopped = [&] { return ctx.Interrupted(); };
  const bool may_leave = module_->has_limit() || options_.may_leave || HasDeadline();
  if (!may_leave)
    return module_->Run(std::move(inputs), std::make_shared<RunSink>(ctx, outs, *group_), stopped,
                        may_leave);
  for (Tensor& input : inputs) {
    input = input.Clone();
    if (!input.initialized()) return ResourceExhausted("no memory for a copy of an input");
  }
  auto sink = std::make_shared<OwnSink>(group_, outs != nullptr ? *outs : std::nullopt);
  const Status status = module_->Run(std::move(inputs), sink, stopped, may_leave);
  // Errors of this code are otherwise those of the whole run, and tell no implementation.
  if (status.code() == StatusCode::kDeadlineExceeded && !options_.told.empty() && stopped().ok())
    return Status(status.code(),
                  StrCat(status.message(), " (implementation: ", options_.told, ")"));
  HEDDLE_RETURN_IF_ERROR(status);
  for (size_t k = 0; k < sink->made().size(); ++k) Give(ctx, static_cast<int>(k), sink->made()[k]);
  return Status::Ok();
}

}  // namespace heddle::offload
