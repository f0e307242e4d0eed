#include "core/own_ops/own_op_def.h"

#include <algorithm>
#include <utility>

#include "core/contracts/contract.h"
#include "core/guard.h"
#include "core/kernel_context.h"
#include "core/shape_context.h"

namespace heddle {
namespace {

// The tensor of operand `at`; nullptr: there is none, or it is of another kind.
const Tensor* OperandAt(const OpContext& ctx, uint32_t at) {
  const uint32_t slot = ctx.op().in[at];
  if (slot == kNoSlot || !ctx.frame()[slot]->is_tensor()) return nullptr;
  return &ctx.frame()[slot]->tensor();
}

// The slot of output `at`, and its place in that.
std::string OutputName(const OpContext& ctx, size_t at) {
  const BoundOp& op = ctx.op();
  size_t s = 0;
  while (op.out_begin[s + 1] <= at) ++s;
  const SlotDef& slot = ctx.def().outputs()[s];
  if ((slot.flags & kList) == 0) return StrCat("output '", slot.name, "'");
  return StrCat("output '", slot.name, "'[", at - op.out_begin[s], "]");
}

bool Fits(const Shape& said, const Shape& made) {
  if (!said.known_rank()) return true;
  if (said.rank() != made.rank()) return false;
  for (int d = 0; d < said.rank(); ++d)
    if (said[d] >= 0 && said[d] != made[d]) return false;
  return true;
}

// `fn` calls what came from outside. What it throws is said to be its own.
template <typename Fn>
Status Outside(const char* what, Fn&& fn) {
  try {
    return fn();
  } catch (const Interrupted&) {
    throw;
  } catch (const std::bad_alloc&) {
    return ResourceExhausted(what, " has no memory");
  } catch (const std::invalid_argument& e) {
    return InvalidArgument(what, ": ", e.what());
  } catch (const std::exception& e) {
    return Internal(what, " threw: ", e.what());
  } catch (...) {
    return Internal(what, " threw something that is no std::exception");
  }
}

}  // namespace

OwnOpDef::OwnOpDef(std::shared_ptr<const OwnOperator> op)
    : OpDef(op->name), own_(std::move(op)), own_kernel_(own_->kernel) {
  Doc(own_->doc);
  for (const OwnInput& in : own_->inputs)
    Input(in.name, (in.optional ? kOptional : 0u) | (in.list ? kList : 0u) |
                       (in.decides_shape ? kShapeValue : 0u));
  for (const OwnOutput& out : own_->outputs)
    Output(out.name, (out.optional ? kOptional : 0u) | (out.list ? kList : 0u));
  for (const OwnAttribute& a : own_->attributes) {
    const std::string& name = a.name;
    if (const auto* text = std::get_if<std::string>(&a.value))
      Attr(name, text->c_str());
    else
      std::visit(
          [&](const auto& v) {
            if constexpr (!std::is_same_v<std::decay_t<decltype(v)>, std::string>) Attr(name, v);
          },
          a.value);
  }
  std::vector<contracts::Contract::InputDTypes> dtypes;
  for (const OwnInput& in : own_->inputs)
    dtypes.push_back({in.name, in.dtypes, in.same_as.empty() ? -1 : FindInput(in.same_as)});
  dtypes_ = contracts::Contract::OfDTypes(dtypes);
  if (own_->side_effect) Traits(kSideEffect);
  if (own_->shapes || own_->like_first_input) InferShape(Infer);
  AnyKernel(Compute);
}

OwnOpDef::OwnOpDef(const OwnOpDef& from, OwnKernel kernel)
    : OpDef(from), own_(from.own_), own_kernel_(std::move(kernel)), dtypes_(from.dtypes_) {}

const OwnOpDef* OwnOpDef::From(const OpDef& def) {
  return def.kernel(DType::kF32) == Compute ? static_cast<const OwnOpDef*>(&def) : nullptr;
}

// All outputs are like the first input.
Status OwnOpDef::LikeFirst(ShapeContext& ctx) const {
  const BoundOp& op = ctx.op();
  const Tensor* first = op.in_begin[1] > 0 ? OperandAt(ctx, 0) : nullptr;
  if (first == nullptr)
    return InvalidArgument("input '", own_->inputs[0].name, "', which the outputs are like, ",
                           "is no tensor");
  for (size_t k = 0; k < op.out.size(); ++k) {
    if (op.out[k] == kNoSlot) continue;
    ctx.SetOutAt(k, first->shape(), first->dtype());
    if (first->has_lod()) ctx.SetOutLoDAt(k, first->lod());
  }
  return Status::Ok();
}

Status OwnOpDef::CallShapes(ShapeContext& ctx) const {
  if (!own_->shapes) return own_->like_first_input ? LikeFirst(ctx) : ctx.Defer();
  OwnShapeCall call(ctx);
  HEDDLE_RETURN_IF_ERROR(Outside("the shape function", [&] { return own_->shapes(call); }));
  ctx.outs().resize(ctx.op().out.size());
  for (size_t k = 0; k < ctx.outs().size(); ++k) {
    if (ctx.op().out[k] == kNoSlot) continue;
    if (!ctx.outs()[k].set)
      return InvalidArgument("the shape function says nothing of ", OutputName(ctx, k));
    if (!ctx.outs()[k].shape.is_static()) leaves_open_.store(true, std::memory_order_relaxed);
  }
  return Status::Ok();
}

Status OwnOpDef::Infer(ShapeContext& ctx) {
  const auto& def = static_cast<const OwnOpDef&>(ctx.def());
  HEDDLE_RETURN_IF_ERROR(def.dtypes_->Check(ctx));
  return def.CallShapes(ctx);
}

Status OwnOpDef::FindOpen(KernelContext& ctx, OwnKernelCall* call, ShapeContext* said) const {
  call->open_.assign(ctx.op().out.size(), false);
  if (infer_shape() != nullptr && !leaves_open_.load(std::memory_order_relaxed))
    return Status::Ok();
  HEDDLE_RETURN_IF_ERROR(CallShapes(*said));
  said->outs().resize(ctx.op().out.size());
  for (size_t k = 0; k < call->open_.size(); ++k)
    call->open_[k] = !said->outs()[k].set || !said->outs()[k].shape.is_static();
  return Status::Ok();
}

// The kernel must have allocated what was open, and left the memory of what was not.
Status OwnOpDef::CheckOutputs(const KernelContext& ctx, const OwnKernelCall& call,
                              ShapeContext& said) const {
  for (size_t k = 0; k < call.open_.size(); ++k) {
    if (ctx.op().out[k] == kNoSlot) continue;
    const auto made =
        std::ranges::find(call.outputs_, k, [](const OwnKernelCall::Output& o) { return o.at; });
    const bool asked = made != call.outputs_.end();
    if (call.open_[k] && !(asked && made->allocated))
      return InvalidArgument("the kernel did not allocate ", OutputName(ctx, k),
                             ", whose shape was open");
    if (!asked) continue;
    const Tensor& is = ctx.frame()[ctx.op().out[k]]->tensor();
    const Tensor& left = made->tensor;
    if (left.dtype() != is.dtype() || !(left.shape() == is.shape()) || left.raw() != is.raw())
      return InvalidArgument("the kernel exchanged ", OutputName(ctx, k), ", ", Name(is.dtype()),
                             " ", is.shape().ToString(), ", for another tensor, ",
                             Name(left.dtype()), " ", left.shape().ToString(),
                             ", instead of writing it");
    if (!call.open_[k] || !said.outs()[k].set) continue;
    const auto& wanted = said.outs()[k];
    if ((wanted.dtype != DType::kUnknown && wanted.dtype != is.dtype()) ||
        !Fits(wanted.shape, is.shape()))
      return InvalidArgument("the kernel allocated ", OutputName(ctx, k), " as ", Name(is.dtype()),
                             " ", is.shape().ToString(), "; the shape function said ",
                             Name(wanted.dtype), " ", wanted.shape.ToString());
  }
  return Status::Ok();
}

Status OwnOpDef::CallKernel(KernelContext& ctx) const {
  if (!own_kernel_)
    return Unimplemented("has no kernel: it was added without one, and no creator made one");
  // With the operands of this run, also where there is no shape function.
  ShapeContext said(ctx.op(), ctx.frame());
  HEDDLE_RETURN_IF_ERROR(dtypes_->Check(said));
  OwnKernelCall call(ctx);
  HEDDLE_RETURN_IF_ERROR(FindOpen(ctx, &call, &said));
  HEDDLE_RETURN_IF_ERROR(Outside("the kernel", [&] { return own_kernel_(call); }));
  return CheckOutputs(ctx, call, said);
}

Status OwnOpDef::Compute(KernelContext& ctx) {
  return static_cast<const OwnOpDef&>(ctx.def()).CallKernel(ctx);
}

}  // namespace heddle
