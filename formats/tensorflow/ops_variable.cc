// Variables that are kept from run to run: what makes, reads and assigns them. Operators that
// compute new values (optimizers, scatters) stand with their families.
#include "formats/tensorflow/handlers.h"

namespace heddle::tensorflow {
namespace {

bool LowerReference(NodeLowering& n) {
  const int v =
      n.lowering().VariableNamed(KeptName(n.node()), n.Type("dtype", kFloat), n.ShapeAttr("shape"));
  n.Result(0, v);
  return true;
}

bool LowerHandle(NodeLowering& n) {
  const int v =
      n.lowering().VariableNamed(KeptName(n.node()), n.Type("dtype", kFloat), n.ShapeAttr("shape"));
  const int handle = n.NewVar(DType::kUnknown);
  n.facts(handle).kind = Kind::kResource;
  n.facts(handle).type = kResource;
  n.facts(handle).target = v;
  n.Result(0, handle);
  return true;
}

// What the variable holds now. Where no operator of the graph writes it, that is the variable.
bool LowerRead(NodeLowering& n) {
  const int v = n.Variable(0);
  n.Result(0, n.lowering().IsWritten(v) ? n.Snapshot(v) : v);
  return true;
}

bool LowerAssign(NodeLowering& n) {
  const int v = n.Variable(0);
  n.Write(v, n.In(1));
  n.ResultVariable(v);
  return true;
}

template <bool kAdds>
bool LowerAssignAdd(NodeLowering& n) {
  const int v = n.Variable(0);
  n.Write(v, n.Binary(kAdds ? "elementwise_add" : "elementwise_sub", v, n.In(1)));
  n.ResultVariable(v);
  return true;
}

bool LowerIsInitialized(NodeLowering& n) {
  const int made = n.Make("tf_is_initialized", {{"X", {n.Variable(0)}}});
  n.draft_var(made).dtype = DType::kBool;
  n.SetShape(made, Shape());
  n.Result(0, made);
  return true;
}

bool LowerVariableShape(NodeLowering& n) {
  const int made =
      n.Cast(n.Make("shape", {{"Input", {n.Variable(0)}}}), n.TypeAttr("out_type", DType::kI32));
  n.Result(0, made);
  return true;
}

bool LowerDestroy(NodeLowering&) { return true; }

constexpr HandlerEntry kVariableEntries[] = {
    {"Variable", &LowerReference},
    {"VariableV2", &LowerReference},
    {"VarHandleOp", &LowerHandle},
    {"ReadVariableOp", &LowerRead},
    {"Assign", &LowerAssign},
    {"AssignVariableOp", &LowerAssign},
    {"AssignAdd", &LowerAssignAdd<true>},
    {"AssignAddVariableOp", &LowerAssignAdd<true>},
    {"AssignSub", &LowerAssignAdd<false>},
    {"AssignSubVariableOp", &LowerAssignAdd<false>},
    {"VariableShape", &LowerVariableShape},
    {"VarIsInitializedOp", &LowerIsInitialized},
    {"IsVariableInitialized", &LowerIsInitialized},
    {"DestroyResourceOp", &LowerDestroy},
};

}  // namespace

std::span<const HandlerEntry> VariableHandlers() { return kVariableEntries; }

}  // namespace heddle::tensorflow
