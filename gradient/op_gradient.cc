#include "gradient/op_gradient.h"

#include <algorithm>

#include "core/op_registry.h"
#include "core/shapes.h"
#include "gradient/block_gradient.h"

namespace heddle::gradient {

using ir::kNoVar;
using ir::Op;
using ir::Var;
using ir::VarId;

OpGradient::OpGradient(BlockGradient& pass, size_t at) : pass_(pass), at_(at) {}

const Op& OpGradient::op() const { return pass_.OpAt(at_); }
Op& OpGradient::Forward() { return pass_.OpAt(at_); }
Var& OpGradient::Made(VarId v) { return pass_.program().vars[v]; }
const Var& OpGradient::Info(VarId v) const { return pass_.program().vars[v]; }
bool OpGradient::HasAttr(std::string_view name) const { return op().def->FindAttr(name) >= 0; }

size_t OpGradient::Ins(std::string_view slot) const {
  const int s = op().def->FindInput(slot);
  return s < 0 ? 0 : op().inputs[static_cast<size_t>(s)].size();
}
size_t OpGradient::Outs(std::string_view slot) const {
  const int s = op().def->FindOutput(slot);
  return s < 0 ? 0 : op().outputs[static_cast<size_t>(s)].size();
}

VarId OpGradient::In(std::string_view slot, size_t i) {
  const int s = op().def->FindInput(slot);
  if (s < 0 || op().inputs[static_cast<size_t>(s)].size() <= i) return kNoVar;
  return pass_.Held(pass_.InValue(at_, static_cast<size_t>(s), i));
}
std::vector<VarId> OpGradient::AllIn(std::string_view slot) {
  std::vector<VarId> all;
  for (size_t i = 0; i < Ins(slot); ++i) all.push_back(In(slot, i));
  return all;
}
VarId OpGradient::Out(std::string_view slot, size_t i) {
  const auto s = static_cast<size_t>(op().def->FindOutput(slot));
  if (op().outputs[s].size() <= i || op().outputs[s][i] == kNoVar) pass_.AddOutput(at_, s, i);
  return pass_.Held(pass_.OutValue(at_, s, i));
}
VarId OpGradient::InVar(std::string_view slot, size_t i) const {
  const int s = op().def->FindInput(slot);
  if (s < 0 || op().inputs[static_cast<size_t>(s)].size() <= i) return kNoVar;
  return op().inputs[static_cast<size_t>(s)][i];
}
VarId OpGradient::OutVar(std::string_view slot, size_t i) const {
  const int s = op().def->FindOutput(slot);
  if (s < 0 || op().outputs[static_cast<size_t>(s)].size() <= i) return kNoVar;
  return op().outputs[static_cast<size_t>(s)][i];
}
VarId OpGradient::OutGrad(std::string_view slot, size_t i) const {
  const int s = op().def->FindOutput(slot);
  if (s < 0 || op().outputs[static_cast<size_t>(s)].size() <= i) return kNoVar;
  return pass_.FlowsOut(pass_.OutValue(at_, static_cast<size_t>(s), i));
}
VarId OpGradient::OutGradOrZeros(std::string_view slot, size_t i) {
  const VarId g = OutGrad(slot, i);
  return g != kNoVar ? g : ZerosLike(Out(slot, i));
}
bool OpGradient::Wants(std::string_view slot, size_t i) const {
  const int s = op().def->FindInput(slot);
  if (s < 0 || op().inputs[static_cast<size_t>(s)].size() <= i) return false;
  return pass_.Wants(pass_.InValue(at_, static_cast<size_t>(s), i));
}
void OpGradient::SetInGrad(std::string_view slot, size_t i, VarId gradient) {
  const auto s = static_cast<size_t>(op().def->FindInput(slot));
  const VarId of = op().inputs[s][i];
  // To some operators a scalar and a vector of one element are the same.
  if (gradient != kNoVar && of != kNoVar && Info(gradient).kind == ir::VarKind::kTensor) {
    const Shape is = Info(gradient).shape, wanted = Info(of).shape;
    if (is.is_static() && wanted.is_static() && is != wanted && is.numel() == wanted.numel())
      gradient = ReshapeLike(gradient, of);
  }
  pass_.AddPart(pass_.InValue(at_, s, i), gradient);
}

Op OpGradient::Make(std::string_view type, const Givens& in, const Settings& settings) const {
  Op made = ir::MakeOp(*FindOp(type));
  for (const Given& given : in)
    if (!given.vars.empty() && given.vars[0] != kNoVar)
      made.inputs[static_cast<size_t>(made.def->FindInput(given.slot))] = given.vars;
  for (const Setting& s : settings) {
    AttrValue& value = made.attrs[static_cast<size_t>(made.def->FindAttr(s.name))];
    // A whole number serves where the operator has a real one.
    if (std::holds_alternative<double>(value) && std::holds_alternative<int64_t>(s.value))
      value = static_cast<double>(std::get<int64_t>(s.value));
    else
      value = s.value;
  }
  return made;
}

VarId OpGradient::Emit(std::string_view type, const Givens& in, const Settings& settings,
                       std::string_view out) {
  return EmitMany(type, in, settings, out, 1)[0];
}

std::vector<VarId> OpGradient::EmitMany(std::string_view type, const Givens& in,
                                        const Settings& settings, std::string_view out,
                                        size_t count) {
  Op made = Make(type, in, settings);
  const size_t slot = out.empty() ? 0 : static_cast<size_t>(made.def->FindOutput(out));
  for (size_t s = 0; s < made.outputs.size(); ++s) {
    const unsigned flags = made.def->outputs()[s].flags;
    if (s == slot)
      for (size_t i = 0; i < count; ++i) made.outputs[s].push_back(NewOf(type, DType::kUnknown));
    else if ((flags & (kOptional | kList)) == 0)
      made.outputs[s] = {NewOf(type, DType::kUnknown)};
  }
  std::vector<VarId> written = made.outputs[slot];
  Add(std::move(made));
  return written;
}

void OpGradient::Add(Op op) { pass_.Emit(std::move(op)); }

VarId OpGradient::New(VarId like, std::string_view stem) {
  const Var copy = Info(like);
  return pass_.shared().AddVar(StrCat(stem, "@GRADIENT"), pass_.into(), copy);
}
VarId OpGradient::NewOf(std::string_view stem, DType dtype, Shape shape) {
  Var like;
  like.dtype = dtype;
  like.shape = shape;
  return pass_.shared().AddVar(StrCat(stem, "@GRADIENT"), pass_.into(), like);
}

VarId OpGradient::Binary(std::string_view type, VarId x, VarId y, int axis) {
  if (FindOp(type)->FindAttr("axis") < 0) return Emit(type, {{"X", x}, {"Y", y}});
  return Emit(type, {{"X", x}, {"Y", y}}, {{"axis", axis}});
}
VarId OpGradient::Scale(VarId x, double scale, double bias) {
  return Emit("scale", {{"X", x}}, {{"scale", scale}, {"bias", bias}});
}

VarId OpGradient::Cast(VarId x, DType dtype) {
  return Emit("cast", {{"X", x}},
              {{"in_dtype", DTypeToProto(Info(x).dtype)}, {"out_dtype", DTypeToProto(dtype)}});
}
VarId OpGradient::Filled(VarId like, double value) {
  const VarId filled = Emit("fill_any_like", {{"X", like}}, {{"value", value}, {"dtype", -1}});
  Var& var = pass_.program().vars[filled];
  if (!var.shape.known_rank()) var.shape = Info(like).shape;
  if (var.dtype == DType::kUnknown) var.dtype = Info(like).dtype;
  return filled;
}
VarId OpGradient::Where(VarId condition, VarId x, VarId y) {
  return Emit("where", {{"Condition", condition}, {"X", x}, {"Y", y}});
}

VarId OpGradient::Reduce(std::string_view type, VarId x, Ints axes, bool keep) {
  const bool all = axes.empty();
  return Emit(type, {{"X", x}},
              {{"dim", std::move(axes)}, {"keep_dim", keep}, {"reduce_all", all}});
}

VarId OpGradient::Constant(DType dtype, Ints shape, double value) {
  // As text, which keeps all bits of a number in float64.
  return Emit("fill_constant", {},
              {{"shape", std::move(shape)}, {"dtype", DTypeToProto(dtype)}, {"value", value}});
}

size_t OpGradient::BeginMeaning() { return pass_.emitted().size(); }

Status OpGradient::EndMeaning(size_t begin, const Status& status, const Outputs& outputs) {
  if (!status.ok()) return status;
  auto& emitted = pass_.emitted();
  std::vector<Op> meaning(std::make_move_iterator(emitted.begin() + static_cast<long>(begin)),
                          std::make_move_iterator(emitted.end()));
  emitted.resize(begin);
  std::vector<Op> seeds;
  BlockGradient inner(pass_.shared(), &meaning, pass_.into(), pass_.into(),
                      /*stops=*/false);
  std::vector<std::pair<std::pair<size_t, size_t>, BlockGradient::ValueId>> wanted;
  for (size_t s = 0; s < op().def->inputs().size(); ++s) {
    const std::string& name = op().def->inputs()[s].name;
    for (size_t i = 0; i < Ins(name); ++i)
      if (Wants(name, i)) {
        wanted.push_back({{s, i}, inner.First(In(name, i))});
        inner.Want(wanted.back().second);
      }
  }
  for (const auto& [slot, v] : outputs)
    if (OutGrad(slot.first, slot.second) != kNoVar) inner.Expect(inner.Last(v));
  inner.Trace();
  for (const auto& [slot, v] : outputs)
    if (const VarId g = OutGrad(slot.first, slot.second); g != kNoVar) inner.Seed(inner.Last(v), g);
  HEDDLE_RETURN_IF_ERROR(inner.Run());
  inner.InsertCopies();
  for (Op& each : meaning) emitted.push_back(std::move(each));
  for (Op& each : inner.emitted()) emitted.push_back(std::move(each));
  // One value may be several operands, whose gradients are then one.
  std::vector<BlockGradient::ValueId> given;
  for (const auto& [slot, v] : wanted) {
    if (std::find(given.begin(), given.end(), v) != given.end()) continue;
    given.push_back(v);
    const VarId g = inner.GradientOf(v);
    if (g != kNoVar) pass_.AddPart(pass_.InValue(at_, slot.first, slot.second), g);
  }
  return Status::Ok();
}

VarId OpGradient::SumLike(VarId g, VarId like) {
  if (Info(g).shape.is_static() && Info(like).shape.is_static() &&
      Info(g).shape == Info(like).shape)
    return g;
  const VarId sum = New(like, "sum");
  Op made = Make("elementwise_add_grad", {{"X", like}, {"Y", g}, {"Out@GRAD", g}}, {{"axis", -1}});
  made.outputs[static_cast<size_t>(made.def->FindOutput("X@GRAD"))] = {sum};
  Add(std::move(made));
  return sum;
}

VarId OpGradient::ReshapeLike(VarId g, VarId like) {
  const Shape shape = Info(like).shape;
  VarId out = kNoVar;
  // To the operator that reshapes, a size 0 means that of its operand.
  if (shape.is_static() && shape.rank() > 0 && shape.numel() > 0) {
    out = Emit("reshape2", {{"X", g}}, {{"shape", Ints(shape.begin(), shape.end())}});
  } else {
    out = Emit("reshape_grad", {{"X", like}, {"Out@GRAD", g}});
  }
  Var& var = pass_.program().vars[out];
  var.shape = shape;
  return out;
}

Result<int64_t> OpGradient::RankOf(VarId v) const {
  const Var& var = Info(v);
  if (var.shape.known_rank()) return int64_t{var.shape.rank()};
  return Unimplemented("its gradient needs the rank of '", var.name, "', which is not known");
}

Status EmitNamed(OpGradient& g, const Rule& rule) {
  const OpDef& def = *rule.gradient;
  const OpDef& fwd = *g.op().def;
  Op made = ir::MakeOp(def);
  for (size_t s = 0; s < def.inputs().size(); ++s) {
    const SlotDef& slot = def.inputs()[s];
    const Meant meant = MeaningOfInput(fwd, rule, slot.name);
    const bool optional = (slot.flags & kOptional) != 0;
    auto& vars = made.inputs[s];
    if (meant.what == Meant::What::kInput) {
      const std::string& name = fwd.inputs()[static_cast<size_t>(meant.slot)].name;
      // Contents are not read: a later version of the variable has the same shape.
      const bool shape_only = (slot.flags & kNoBuffer) != 0;
      for (size_t i = 0; i < g.Ins(name); ++i)
        vars.push_back(shape_only ? g.InVar(name, i) : g.In(name, i));
    } else if (meant.what == Meant::What::kOutput) {
      const SlotDef& out = fwd.outputs()[static_cast<size_t>(meant.slot)];
      const bool absent = g.Outs(out.name) == 0 || g.OutVar(out.name) == kNoVar;
      const bool tests = g.HasAttr("is_test") && g.Attr<bool>("is_test");
      if (absent && optional && tests) continue;
      for (size_t i = 0; i < std::max<size_t>(g.Outs(out.name), 1); ++i)
        vars.push_back(g.Out(out.name, i));
    } else if (meant.what == Meant::What::kOutputGradient) {
      const std::string& name = fwd.outputs()[static_cast<size_t>(meant.slot)].name;
      bool any = false;
      for (size_t i = 0; i < g.Outs(name); ++i) any = any || g.OutGrad(name, i) != kNoVar;
      if (!any && optional) continue;
      for (size_t i = 0; i < std::max<size_t>(g.Outs(name), 1); ++i)
        vars.push_back(g.OutGradOrZeros(name, i));
    }
    while (!vars.empty() && vars.back() == kNoVar && vars.size() == 1) vars.pop_back();
  }
  // Attributes that variables give.
  for (size_t k = 0; k < g.op().var_attrs.size(); ++k) {
    const std::string& name = fwd.attrs()[static_cast<size_t>(g.op().var_attrs[k])].name;
    const int a = def.FindAttr(name);
    if (a < 0) continue;
    made.var_attrs.push_back(a);
    made.inputs.emplace_back();
    const size_t from = fwd.inputs().size() + k;
    for (size_t i = 0; i < g.op().inputs[from].size(); ++i)
      made.inputs.back().push_back(g.pass().Held(g.pass().InValue(g.at(), from, i)));
  }
  for (size_t a = 0; a < def.attrs().size(); ++a) {
    const int from = fwd.FindAttr(def.attrs()[a].name);
    if (from < 0) continue;
    const AttrValue& value = g.op().attrs[static_cast<size_t>(from)];
    if (value.index() == made.attrs[a].index()) made.attrs[a] = value;
  }
  std::vector<std::pair<std::pair<std::string, size_t>, VarId>> given;
  bool any = false;
  for (size_t s = 0; s < def.outputs().size(); ++s) {
    const SlotDef& slot = def.outputs()[s];
    const Meant meant = MeaningOfOutput(fwd, rule, slot.name);
    const bool optional = (slot.flags & kOptional) != 0;
    auto& vars = made.outputs[s];
    if (meant.what == Meant::What::kInputGradient) {
      const std::string& name = fwd.inputs()[static_cast<size_t>(meant.slot)].name;
      bool wanted = false;
      for (size_t i = 0; i < g.Ins(name); ++i) wanted = wanted || g.Wants(name, i);
      any = any || wanted;
      if (!wanted && optional) continue;
      for (size_t i = 0; i < g.Ins(name); ++i) {
        const bool wants = g.Wants(name, i);
        if (g.InVar(name, i) == kNoVar || (!wants && (optional || g.Ins(name) > 1))) {
          vars.push_back(kNoVar);
          continue;
        }
        vars.push_back(g.New(g.InVar(name, i), g.Info(g.InVar(name, i)).name));
        if (wants) given.push_back({{name, i}, vars.back()});
      }
      if (vars.empty() && !optional) vars.push_back(g.NewOf(slot.name, DType::kUnknown));
    } else if (!optional) {
      vars.push_back(g.NewOf(slot.name, DType::kUnknown));
    }
  }
  if (!any) return Status::Ok();
  // The gradient of a parameter alone may be sparse.
  const int sparse = def.FindAttr("is_sparse");
  if (sparse >= 0 && std::holds_alternative<bool>(made.attrs[static_cast<size_t>(sparse)]) &&
      std::get<bool>(made.attrs[static_cast<size_t>(sparse)])) {
    for (const auto& [where, v] : given) {
      const Var& table = g.Info(g.InVar(where.first, where.second));
      if (table.persistable && !g.pass().shared().dense)
        g.pass().program().vars[v].kind = ir::VarKind::kRows;
      else
        made.attrs[static_cast<size_t>(sparse)] = false;
    }
  }
  g.Add(std::move(made));
  for (const auto& [where, v] : given) g.SetInGrad(where.first, where.second, v);
  return Status::Ok();
}

Status EmitOperator(OpGradient& g, std::string_view gradient, std::string_view slots) {
  Rule rule;
  rule.kind = Rule::Kind::kNamed;
  rule.gradient = FindOp(gradient);
  rule.slots = slots;
  return EmitNamed(g, rule);
}

}  // namespace heddle::gradient
