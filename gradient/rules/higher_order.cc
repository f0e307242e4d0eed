// Gradients of gradients.
//
// Gradients of linear operators are linear: the gradient of F_grad towards Out@GRAD is F itself.
// Those of products are products again. For functions of one element the gradient operator is
// said in terms of others, so that every further order follows.
#include <string>

#include "core/op_registry.h"
#include "gradient/op_gradient.h"

namespace heddle::gradient {
namespace {

using ir::kNoVar;
using ir::VarId;

std::string ForwardOf(OpGradient& g) {
  const std::string& type = g.op().type();
  return type.substr(0, type.size() - std::string_view("_grad").size());
}

// F_grad's slot for the gradient of F's result.
std::string SeedSlot(OpGradient& g, const OpDef& forward) {
  for (const SlotDef& out : forward.outputs())
    if (g.op().def->FindInput(out.name + "@GRAD") >= 0 && g.HasIn(out.name + "@GRAD"))
      return out.name;
  return "";
}

// Emits F with the operands of F_grad, except those given; returns its results.
std::vector<VarId> EmitAgain(OpGradient& g, const OpDef& forward,
                             const std::vector<std::pair<std::string, std::vector<VarId>>>& given,
                             const std::string& out, size_t count) {
  ir::Op made = ir::MakeOp(forward);
  for (size_t s = 0; s < forward.inputs().size(); ++s) {
    const SlotDef& slot = forward.inputs()[s];
    for (const auto& [name, vars] : given)
      if (name == slot.name) made.inputs[s] = vars;
    if (made.inputs[s].empty())
      for (size_t i = 0; i < g.Ins(slot.name); ++i)
        if (const VarId v = g.In(slot.name, i); v != kNoVar) made.inputs[s].push_back(v);
  }
  for (size_t a = 0; a < forward.attrs().size(); ++a)
    if (const int from = g.op().def->FindAttr(forward.attrs()[a].name); from >= 0)
      if (g.op().attrs[static_cast<size_t>(from)].index() == made.attrs[a].index())
        made.attrs[a] = g.op().attrs[static_cast<size_t>(from)];
  std::vector<VarId> written;
  for (size_t s = 0; s < forward.outputs().size(); ++s) {
    const SlotDef& slot = forward.outputs()[s];
    if (slot.name == out) {
      for (size_t i = 0; i < count; ++i) made.outputs[s].push_back(g.NewOf(out, DType::kUnknown));
      written = made.outputs[s];
    } else if ((slot.flags & (kOptional | kList)) == 0) {
      made.outputs[s] = {g.NewOf(slot.name, DType::kUnknown)};
    }
  }
  for (size_t k = 0; k < g.op().var_attrs.size(); ++k) {
    const int a =
        forward.FindAttr(g.op().def->attrs()[static_cast<size_t>(g.op().var_attrs[k])].name);
    if (a < 0) continue;
    made.var_attrs.push_back(a);
    made.inputs.push_back(g.op().inputs[g.op().def->inputs().size() + k]);
  }
  g.Add(std::move(made));
  return written;
}

// For F_grad that is linear in Out@GRAD: F of the gradients of X@GRAD.
Status LinearGradient(OpGradient& g) {
  const OpDef& forward = *FindOp(ForwardOf(g));
  const std::string out = SeedSlot(g, forward);
  std::vector<std::pair<std::string, std::vector<VarId>>> given;
  for (const SlotDef& slot : forward.inputs()) {
    const std::string gradient = slot.name + "@GRAD";
    if (g.op().def->FindOutput(gradient) < 0) continue;
    auto& vars = given.emplace_back(slot.name, std::vector<VarId>()).second;
    for (size_t i = 0; i < g.Outs(gradient); ++i) {
      VarId dd = g.OutGrad(gradient, i);
      if (dd == kNoVar && g.OutVar(gradient, i) != kNoVar) dd = g.ZerosLike(g.Out(gradient, i));
      if (dd == kNoVar && g.Ins(slot.name) > i) dd = g.ZerosLike(g.In(slot.name, i));
      if (dd != kNoVar) vars.push_back(dd);
    }
    if (vars.empty() && g.HasIn(slot.name)) vars.push_back(g.ZerosLike(g.In(slot.name)));
  }
  const size_t count = g.Ins(out + "@GRAD");
  const std::vector<VarId> dd = EmitAgain(g, forward, given, out, count);
  for (size_t i = 0; i < count; ++i)
    if (g.Wants(out + "@GRAD", i)) g.SetInGrad(out + "@GRAD", i, dd[i]);
  return Status::Ok();
}

// X@GRAD is the sum of what X was copied to: its gradient is copied there, too.
Status ExpandGradGradient(OpGradient& g) {
  g.SetInGrad("Out@GRAD",
              g.Emit("expand_as_v2", {{"X", g.OutGrad("X@GRAD")}, {"Y", g.In("Out@GRAD")}}));
  return Status::Ok();
}

// The same of copies side by side, as many as the shapes say.
Status RepeatGradGradient(OpGradient& g) {
  const VarId x = g.InVar("X"), out = g.InVar("Out@GRAD");
  const Shape from = g.Info(x).shape, to = g.Info(out).shape;
  VarId copies = kNoVar;
  if (from.is_static() && to.is_static() && from.rank() == to.rank()) {
    Ints times;
    for (int i = 0; i < to.rank(); ++i) times.push_back(from[i] == 0 ? 1 : to[i] / from[i]);
    copies = g.Emit("expand", {{"X", g.OutGrad("X@GRAD")}}, {{"expand_times", times}});
  } else {
    const VarId times = g.Binary("elementwise_floordiv", g.Emit("shape", {{"Input", out}}),
                                 g.Emit("shape", {{"Input", x}}));
    copies = g.Emit("expand", {{"X", g.OutGrad("X@GRAD")}, {"ExpandTimes", times}});
  }
  g.SetInGrad("Out@GRAD", copies);
  return Status::Ok();
}

// X@GRAD is Out@GRAD in another shape.
Status ReshapingGradient(OpGradient& g) {
  g.SetInGrad("Out@GRAD", g.ReshapeLike(g.OutGrad("X@GRAD"), g.InVar("Out@GRAD")));
  return Status::Ok();
}

// X@GRAD is Out@GRAD times what does not depend on it: so is the gradient.
Status SelfAdjointGradient(OpGradient& g) {
  ir::Op made = g.op();
  made.index = -1;
  for (size_t s = 0; s < made.def->inputs().size(); ++s)
    for (size_t i = 0; i < made.inputs[s].size(); ++i)
      made.inputs[s][i] = g.In(made.def->inputs()[s].name, i);
  made.inputs[static_cast<size_t>(made.def->FindInput("Out@GRAD"))] = {g.OutGrad("X@GRAD")};
  const VarId given = g.New(g.InVar("Out@GRAD"), "Out@GRAD");
  made.outputs[static_cast<size_t>(made.def->FindOutput("X@GRAD"))] = {given};
  g.Add(std::move(made));
  g.SetInGrad("Out@GRAD", given);
  return Status::Ok();
}

// A mean over windows is linear; of a maximum, only the first order is known.
Status PoolGradGradient(OpGradient& g) {
  if (g.Attr<std::string>("pooling_type") != "avg")
    return Unimplemented("the gradient of the gradient of a pool of maxima");
  return LinearGradient(g);
}

VarId SoftmaxOf(OpGradient& g, VarId s) {
  const VarId out = g.In("Out");
  const Ints axis{g.Attr<int64_t>("axis")};
  return g.Mul(out, g.Sub(s, g.Reduce("reduce_sum", g.Mul(s, out), axis, true)));
}
VarId LogSoftmaxOf(OpGradient& g, VarId s) {
  const Ints axis{g.Attr<int64_t>("axis")};
  const VarId sum = g.Reduce("reduce_sum", s, axis, true);
  return g.Sub(s, g.Mul(g.Unary("exp", g.In("Out")), sum));
}

// For F_grad of an F that is linear in both operands A and B.
Status ProductGradient(OpGradient& g, std::string_view a, std::string_view b) {
  const OpDef& forward = *FindOp(ForwardOf(g));
  const std::string out = SeedSlot(g, forward), seed = out + "@GRAD";
  const std::string a_grad = std::string(a) + "@GRAD", b_grad = std::string(b) + "@GRAD";
  const VarId dda = g.OutGrad(a_grad), ddb = g.OutGrad(b_grad);
  if (g.Wants(seed)) {
    if (dda != kNoVar)
      g.SetInGrad(seed, EmitAgain(g, forward, {{std::string(a), {dda}}}, out, 1)[0]);
    if (ddb != kNoVar)
      g.SetInGrad(seed, EmitAgain(g, forward, {{std::string(b), {ddb}}}, out, 1)[0]);
  }
  const auto again = [&](std::string_view slot, VarId dd, std::string_view wanted) {
    ir::Op made = g.op();
    for (auto& outputs : made.outputs) outputs.clear();
    made.index = -1;
    for (size_t s = 0; s < made.def->inputs().size(); ++s) {
      const std::string& name = made.def->inputs()[s].name;
      for (size_t i = 0; i < made.inputs[s].size(); ++i) made.inputs[s][i] = g.In(name, i);
      if (name == slot) made.inputs[s] = {dd};
    }
    const std::string gradient = std::string(wanted) + "@GRAD";
    const VarId given = g.New(g.InVar(wanted), gradient);
    made.outputs[static_cast<size_t>(made.def->FindOutput(gradient))] = {given};
    g.Add(std::move(made));
    g.SetInGrad(wanted, given);
  };
  if (g.Wants(a) && ddb != kNoVar) again(b, ddb, a);
  if (g.Wants(b) && dda != kNoVar) again(a, dda, b);
  return Status::Ok();
}
Status ProductXY(OpGradient& g) { return ProductGradient(g, "X", "Y"); }
Status ProductConv(OpGradient& g) { return ProductGradient(g, "Input", "Filter"); }
Status ProductXVec(OpGradient& g) { return ProductGradient(g, "X", "Vec"); }

// X@GRAD = f(operands, Out@GRAD), said in terms of other operators.
using ElementFn = VarId (*)(OpGradient& g, VarId seed);
template <ElementFn fn>
Status Element(OpGradient& g) {
  return g.Through([&](OpGradient::Outputs* out) {
    out->push_back({{"X@GRAD", 0}, fn(g, g.In("Out@GRAD"))});
    return Status::Ok();
  });
}
// A factor that does not depend on the operands, where it is differentiable.
VarId Step(OpGradient& g, std::string_view compare, VarId x, double bound) {
  const VarId b = g.Filled(x, bound);
  return g.Cast(g.Compare(compare, x, b), g.Info(x).dtype);
}

VarId AbsOf(OpGradient& g, VarId s) { return g.Mul(s, g.Unary("sign", g.In("X"))); }
VarId ReluOf(OpGradient& g, VarId s) { return g.Mul(s, Step(g, "greater_than", g.In("Out"), 0)); }
VarId LeakyReluOf(OpGradient& g, VarId s) {
  const double alpha = g.Attr<double>("alpha");
  const VarId positive = Step(g, "greater_than", g.In("X"), 0);
  return g.Mul(s, g.Scale(positive, 1 - alpha, alpha));
}
VarId EluOf(OpGradient& g, VarId s) {
  // 1, or alpha exp(x)
  const VarId x = g.In("X"), positive = Step(g, "greater_than", x, 0);
  const VarId below =
      g.Mul(g.Scale(positive, -1, 1), g.Unary("exp", g.Mul(x, g.Scale(positive, -1, 1))));
  return g.Mul(s, g.Plus(positive, g.Scale(below, g.Attr<double>("alpha"))));
}
VarId CeluOf(OpGradient& g, VarId s) {
  // 1, or exp(x / alpha)
  const VarId x = g.In("X"), positive = Step(g, "greater_than", x, 0);
  const VarId rest = g.Scale(positive, -1, 1);
  const VarId e = g.Unary("exp", g.Scale(g.Mul(x, rest), 1 / g.Attr<double>("alpha")));
  return g.Mul(s, g.Plus(positive, g.Mul(rest, e)));
}
VarId SquareOf(OpGradient& g, VarId s) { return g.Scale(g.Mul(s, g.In("X")), 2); }
VarId SqrtOf(OpGradient& g, VarId s) { return g.Scale(g.Div(s, g.In("Out")), 0.5); }
VarId RsqrtOf(OpGradient& g, VarId s) {
  const VarId out = g.In("Out");
  return g.Scale(g.Mul(s, g.Mul(out, g.Mul(out, out))), -0.5);
}
VarId ExpOf(OpGradient& g, VarId s) { return g.Mul(s, g.In("Out")); }
VarId LogOf(OpGradient& g, VarId s) { return g.Div(s, g.In("X")); }
VarId ReciprocalOf(OpGradient& g, VarId s) {
  const VarId out = g.In("Out");
  return g.Scale(g.Mul(s, g.Mul(out, out)), -1);
}
VarId SinOf(OpGradient& g, VarId s) { return g.Mul(s, g.Unary("cos", g.In("X"))); }
VarId CosOf(OpGradient& g, VarId s) { return g.Scale(g.Mul(s, g.Unary("sin", g.In("X"))), -1); }
VarId TanhOf(OpGradient& g, VarId s) {
  const VarId out = g.In("Out");
  return g.Mul(s, g.Scale(g.Mul(out, out), -1, 1));
}
VarId SigmoidOf(OpGradient& g, VarId s) {
  const VarId out = g.In("Out");
  return g.Mul(s, g.Mul(out, g.Scale(out, -1, 1)));
}
// The derivative of log(1 + exp(beta x)) / beta is the sigmoid of beta x, and 1 beyond the
// threshold.
VarId SoftplusOf(OpGradient& g, VarId s) {
  const VarId bx = g.Scale(g.In("X"), g.Attr<double>("beta"));
  const VarId beyond = Step(g, "greater_than", bx, g.Attr<double>("threshold"));
  const VarId curve = g.Mul(g.Scale(beyond, -1, 1), g.Unary("sigmoid", bx));
  return g.Mul(s, g.Plus(beyond, curve));
}
Status PowGradient(OpGradient& g) {
  if (g.HasIn("FactorTensor") || !g.op().var_attrs.empty())
    return EmitOperator(g, "pow_double_grad",
                        "grad_out=Out@GRAD grad_x@GRAD=grad(X@GRAD) X@GRAD=grad(X) "
                        "grad_out@GRAD=grad(Out@GRAD)");
  return g.Through([&](OpGradient::Outputs* out) {
    const double factor = g.Attr<double>("factor");
    VarId power = g.Emit("pow", {{"X", g.In("X")}}, {{"factor", factor - 1}});
    out->push_back({{"X@GRAD", 0}, g.Scale(g.Mul(g.In("Out@GRAD"), power), factor)});
    return Status::Ok();
  });
}

// The gradient operators that only sum what was broadcast: towards X as it is, towards Y times
// `sign`.
Status SumsGradient(OpGradient& g, std::string_view forward) {
  if (!g.Wants("Out@GRAD")) return Status::Ok();
  const VarId ddx = g.OutGrad("X@GRAD"), ddy = g.OutGrad("Y@GRAD");
  const VarId x = ddx != kNoVar ? ddx : g.ZerosLike(g.In("X"));
  const VarId y = ddy != kNoVar ? ddy : g.ZerosLike(g.In("Y"));
  g.SetInGrad("Out@GRAD", g.Binary(forward, x, y, static_cast<int>(g.Attr<int64_t>("axis"))));
  return Status::Ok();
}
Status AddGradGradient(OpGradient& g) { return SumsGradient(g, "elementwise_add"); }
Status SubGradGradient(OpGradient& g) { return SumsGradient(g, "elementwise_sub"); }

// x / y: towards X g / y, towards Y -g out / y, both summed.
Status DivGradGradient(OpGradient& g) {
  return g.Through([&](OpGradient::Outputs* outputs) {
    const int axis = static_cast<int>(g.Attr<int64_t>("axis"));
    const VarId x = g.In("X"), y = g.In("Y"), seed = g.In("Out@GRAD");
    const VarId quotient = g.Div(seed, y, axis);
    const auto summed = [&](VarId value, std::string_view slot) {
      const VarId sum = g.New(g.InVar(slot), slot);
      const std::string gradient = std::string(slot) + "@GRAD";
      ir::Op made = g.Make("elementwise_add_grad", {{"X", x}, {"Y", y}, {"Out@GRAD", value}},
                           {{"axis", axis}});
      made.outputs[static_cast<size_t>(made.def->FindOutput(gradient))] = {sum};
      g.Add(std::move(made));
      return sum;
    };
    if (g.OutGrad("X@GRAD") != kNoVar) outputs->push_back({{"X@GRAD", 0}, summed(quotient, "X")});
    if (g.OutGrad("Y@GRAD") != kNoVar) {
      const VarId out = g.Div(x, y, axis);
      outputs->push_back({{"Y@GRAD", 0}, summed(g.Scale(g.Mul(quotient, out), -1), "Y")});
    }
    return Status::Ok();
  });
}

}  // namespace

RuleTable HigherRules() {
  RuleTable table = {
      Composed("elementwise_add_grad", AddGradGradient, "Out@GRAD"),
      Composed("elementwise_sub_grad", SubGradGradient, "Out@GRAD"),
      Composed("elementwise_div_grad", DivGradGradient, "X Y Out@GRAD"),
      Composed("elementwise_mul_grad", ProductXY),
      Composed("matmul_grad", ProductXY),
      Composed("matmul_v2_grad", ProductXY),
      Composed("mul_grad", ProductXY),
      Composed("bmm_grad", ProductXY),
      Composed("dot_grad", ProductXY),
      Composed("kron_grad", ProductXY),
      Composed("cross_grad", ProductXY),
      Composed("mv_grad", ProductXVec),
      Composed("conv2d_grad", ProductConv, "Input Filter Output@GRAD"),
      Composed("conv3d_grad", ProductConv, "Input Filter Output@GRAD"),
      Composed("depthwise_conv2d_grad", ProductConv, "Input Filter Output@GRAD"),
      Composed("conv2d_transpose_grad", ProductConv, "Input Filter Output@GRAD"),
      Composed("conv3d_transpose_grad", ProductConv, "Input Filter Output@GRAD"),
      Composed("abs_grad", Element<AbsOf>),
      Composed("relu_grad", Element<ReluOf>),
      Composed("leaky_relu_grad", Element<LeakyReluOf>),
      Composed("elu_grad", Element<EluOf>, "X Out@GRAD"),
      Composed("celu_grad", Element<CeluOf>),
      Composed("square_grad", Element<SquareOf>),
      Composed("sqrt_grad", Element<SqrtOf>),
      Composed("rsqrt_grad", Element<RsqrtOf>),
      Composed("exp_grad", Element<ExpOf>),
      Composed("log_grad", Element<LogOf>),
      Composed("reciprocal_grad", Element<ReciprocalOf>),
      Composed("sin_grad", Element<SinOf>),
      Composed("cos_grad", Element<CosOf>),
      Composed("tanh_grad", Element<TanhOf>),
      Composed("sigmoid_grad", Element<SigmoidOf>),
      Composed("softplus_grad", Element<SoftplusOf>),
      Composed("pow_grad", PowGradient, "X Out@GRAD"),
      Composed("softmax_grad", Element<SoftmaxOf>),
      Composed("log_softmax_grad", Element<LogSoftmaxOf>),
      Composed("pool2d_grad", PoolGradGradient, "Out@GRAD"),
      Composed("pool3d_grad", PoolGradGradient, "Out@GRAD"),
      Named("clip_grad", "clip_double_grad",
            "grad_x@GRAD=grad(X@GRAD) grad_out@GRAD=grad(Out@GRAD)"),
      Named("batch_norm_grad", "batch_norm_grad_grad",
            "DY=Y@GRAD DDX=grad(X@GRAD) DDScale=grad(Scale@GRAD) DDBias=grad(Bias@GRAD) "
            "DX=grad(X) DScale=grad(Scale) DDY=grad(Y@GRAD)"),
      Named("instance_norm_grad", "instance_norm_double_grad",
            "x=X fwd_scale=Scale saved_mean=SavedMean saved_variance=SavedVariance "
            "grad_y=Y@GRAD grad_x@GRAD=grad(X@GRAD) grad_scale@GRAD=grad(Scale@GRAD) "
            "grad_bias@GRAD=grad(Bias@GRAD) x@GRAD=grad(X) fwd_scale@GRAD=grad(Scale) "
            "grad_y@GRAD=grad(Y@GRAD)"),
  };
  for (const char* reshaping :
       {"reshape2_grad", "reshape_grad", "squeeze2_grad", "squeeze_grad", "unsqueeze2_grad",
        "unsqueeze_grad", "flatten_grad", "flatten2_grad", "flatten_contiguous_range_grad"})
    table.push_back(Composed(reshaping, ReshapingGradient, "Out@GRAD"));
  for (const char* expanding : {"expand_v2_grad", "expand_as_v2_grad"})
    table.push_back(Composed(expanding, ExpandGradGradient, "Out@GRAD"));
  for (const char* masking : {"dropout_grad"})
    table.push_back(Composed(masking, SelfAdjointGradient, "Out@GRAD"));
  table.push_back(Composed("expand_grad", RepeatGradGradient, "Out@GRAD"));
  for (const char* linear : {"concat_grad",
                             "tile_grad",
                             "reduce_sum_grad",
                             "reduce_mean_grad",
                             "mean_grad",
                             "slice_grad",
                             "strided_slice_grad",
                             "transpose2_grad",
                             "transpose_grad",
                             "lookup_table_grad",
                             "lookup_table_v2_grad",
                             "pad_grad",
                             "pad2d_grad",
                             "pad3d_grad",
                             "stack_grad",
                             "unstack_grad",
                             "gather_grad",
                             "gather_nd_grad",
                             "index_select_grad",
                             "index_sample_grad",
                             "roll_grad",
                             "tril_triu_grad",
                             "pixel_shuffle_grad",
                             "pixel_unshuffle_grad",
                             "cumsum_grad",
                             "diagonal_grad",
                             "unfold_grad",
                             "fold_grad",
                             "real_grad",
                             "imag_grad",
                             "trace_grad",
                             "bilinear_interp_v2_grad",
                             "nearest_interp_v2_grad",
                             "bicubic_interp_v2_grad",
                             "linear_interp_v2_grad",
                             "trilinear_interp_v2_grad",
                             "space_to_depth_grad",
                             "channel_shuffle_grad",
                             "temporal_shift_grad",
                             "take_along_axis_grad"})
    table.push_back(Composed(linear, LinearGradient));
  return table;
}

}  // namespace heddle::gradient
