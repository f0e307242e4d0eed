// Variables that are kept from run to run: operators that make, read and assign them. Operators
// that compute new values (optimizers, scatters) are in files of their own.
#include <algorithm>

#include "core/shapes.h"
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
  n.Result(0, n.Handle(Kind::kResource, v));
  return true;
}

// The variable's present value. If no operator of the graph writes it, that is the variable itself.
bool LowerRead(NodeLowering& n) {
  const int v = n.Variable(0);
  n.Result(0, n.lowering().IsWritten(v) ? n.Snapshot(v) : v);
  return true;
}

bool LowerAssign(NodeLowering& n) {
  const int v = n.Variable(0);
  if (n.op() == "AssignVariableOp" || n.Bool("validate_shape", true))
    n.ExpectAlike(v, "the variable", n.In(1), "its new value");
  n.Write(v, n.In(1));
  n.ResultVariable(v);
  return true;
}

template <bool kAdds>
bool LowerAssignAdd(NodeLowering& n) {
  const int v = n.Variable(0);
  n.ExpectAlike(v, "the variable", n.In(1), "what is added");
  n.Write(v, n.Binary(kAdds ? "elementwise_add" : "elementwise_sub", v, n.In(1)));
  n.ResultVariable(v);
  return true;
}

bool LowerIsInitialized(NodeLowering& n) {
  const int made = n.Make("is_initialized", {{"X", {n.Variable(0)}}});
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

// A random operator keeps its position in its sequence from run to run.
bool LowerRandom(NodeLowering& n) {
  struct Form {
    std::string_view op, type, distribution;
    std::vector<std::string_view> operands;
    std::string_view dtype;  // name of the attribute
    int otherwise;
  };
  static const std::vector<Form> forms = {
      {"RandomUniform", "philox_sequence", "uniform", {"Shape"}, "dtype", kFloat},
      {"RandomStandardNormal", "philox_sequence", "normal", {"Shape"}, "dtype", kFloat},
      {"TruncatedNormal", "philox_sequence", "truncated_normal", {"Shape"}, "dtype", kFloat},
      {"RandomUniformInt", "philox_sequence", "integers", {"Shape", "Min", "Max"}, "Tout", kInt32},
      {"Multinomial", "tf_multinomial", "", {"logits", "num_samples"}, "output_dtype", kInt64},
      {"RandomShuffle", "tf_random_shuffle", "", {"value"}, "T", kFloat}};
  const Form& form =
      *std::find_if(forms.begin(), forms.end(), [&](const Form& f) { return f.op == n.op(); });
  Ins ins;
  for (size_t i = 0; i < form.operands.size(); ++i)
    ins.emplace_back(form.operands[i], std::vector<int>{n.In(i)});
  const int first = ins[0].second[0], like = ins.size() == 3 ? ins[1].second[0] : first;
  DType dtype = form.dtype == "T" || form.dtype == "Tout"
                    ? n.dtype(like)
                    : n.TypeAttr(form.dtype, StorageOf(form.otherwise));
  // Numbers of 16 bits are float32 numbers rounded, except uniform float16.
  const DType wanted = dtype;
  if (dtype == DType::kBF16 || (dtype == DType::kF16 && form.op != "RandomUniform"))
    dtype = DType::kF32;
  if (form.op == "Multinomial" && n.dtype(first) != DType::kF64)
    ins[0].second[0] = n.Cast(first, DType::kF32);
  Attrs attrs = {{"seed", n.Int("seed", 0)}, {"seed2", n.Int("seed2", 0)}};
  if (form.dtype == "dtype" || form.dtype == "output_dtype")
    attrs.emplace_back(form.dtype, int64_t{DTypeToProto(dtype)});
  if (!form.distribution.empty())
    attrs.emplace_back("distribution", std::string(form.distribution));
  const int state = n.HoldState(Tensor::Of(DType::kI64, Shape{1}, std::vector<int64_t>{0}));
  ins.emplace_back("State", std::vector<int>{state});
  const int made = n.NewVar(dtype);
  n.Emit(form.type, std::move(ins), std::move(attrs),
         {{form.distribution.empty() ? "output" : "Out", {made}}, {"StateOut", {state}}});
  if (form.op == "RandomShuffle") {
    n.SetShape(made, n.shape(first));
  } else if (form.op == "Multinomial") {
    n.SetShape(made, Shape{n.rank(first) == 2 ? n.shape(first)[0] : -1, -1});
  } else if (const auto dims = n.ConstantInts(first)) {
    n.SetShape(made, Shape(*dims));
  } else if (n.rank(first) == 1 && n.shape(first)[0] >= 0 && n.shape(first)[0] <= Shape::kMaxRank) {
    n.SetShape(made, Shape(Ints(static_cast<size_t>(n.shape(first)[0]), -1)));
  }
  n.Result(0, n.Cast(made, wanted));
  return true;
}

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
    {"RandomUniform", &LowerRandom},
    {"RandomStandardNormal", &LowerRandom},
    {"TruncatedNormal", &LowerRandom},
    {"RandomUniformInt", &LowerRandom},
    {"Multinomial", &LowerRandom},
    {"RandomShuffle", &LowerRandom},
};

}  // namespace

std::span<const HandlerEntry> VariableHandlers() { return kVariableEntries; }

}  // namespace heddle::tensorflow
