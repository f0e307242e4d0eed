#include "tests/support/test_ops.h"

#include <cstring>
#include <utility>

#include "core/kernel_context.h"
#include "core/op_registry.h"
#include "core/shape_context.h"

namespace heddle::testing {
namespace {

std::function<Status(int64_t)>& Hook() {
  static std::function<Status(int64_t)> hook;
  return hook;
}

Status CallShape(ShapeContext& ctx) {
  for (int i = 0; i < ctx.OutCount("Out") && i < ctx.InCount("X"); ++i)
    ctx.SetOut("Out", ctx.InShape("X", i), ctx.InDType("X", i), i);
  return Status::Ok();
}

Status Call(KernelContext& ctx) {
  if (Hook()) HEDDLE_RETURN_IF_ERROR(Hook()(ctx.Int("id")));
  for (int i = 0; i < ctx.OutCount("Out") && i < ctx.InCount("X"); ++i)
    std::memcpy(ctx.Out("Out", i).mutable_raw(), ctx.In("X", i).raw(), ctx.In("X", i).bytes());
  return Status::Ok();
}

void DefineCall(OpDef& op) {
  op.Doc("Calls the test's hook.").Input("X", kList | kOptional).Output("Out", kList | kOptional);
  op.Attr("id", 0).InferShape(CallShape).AnyKernel(Call);
}

void DefineEffect(OpDef& op) {
  DefineCall(op);
  op.Traits(kSideEffect);
}

Status JumpShape(ShapeContext& ctx) {
  ctx.SetOut("Out", Shape{ctx.InShape("X").numel() == 7 ? 2 : 1}, ctx.InDType("X"));
  return Status::Ok();
}

Status Jump(KernelContext& ctx) {
  Tensor& out = ctx.Out("Out");
  std::memcpy(out.mutable_raw(), ctx.In("X").raw(), out.bytes());
  return Status::Ok();
}

void DefineJump(OpDef& op) {
  op.Doc("Some of the first elements.").Input("X").Output("Out");
  op.InferShape(JumpShape).AnyKernel(Jump);
}

}  // namespace

bool InstallTestOps() {
  static const bool installed = [] {
    RegisterOp("test_call", DefineCall);
    RegisterOp("test_effect", DefineEffect);
    RegisterOp("test_jump", DefineJump);
    return true;
  }();
  return installed;
}

void SetHook(std::function<Status(int64_t id)> hook) { Hook() = std::move(hook); }

}  // namespace heddle::testing
