#include "tests/support/test_ops.h"

#include <cstring>
#include <utility>

#include "core/op_context.h"
#include "core/op_registry.h"

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

}  // namespace

bool InstallTestOps() {
  static const bool installed = [] {
    RegisterOp("test_call", DefineCall);
    RegisterOp("test_effect", DefineEffect);
    return true;
  }();
  return installed;
}

void SetHook(std::function<Status(int64_t id)> hook) { Hook() = std::move(hook); }

}  // namespace heddle::testing
