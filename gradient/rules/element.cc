// Functions of single elements, and sums.
#include <cmath>
#include <numbers>

#include "gradient/op_gradient.h"

namespace heddle::gradient {
namespace {

using ir::kNoVar;
using ir::VarId;

Status PassOn(OpGradient& g, std::string_view in, std::string_view out) {
  for (size_t i = 0; i < g.Ins(in); ++i)
    if (g.Wants(in, i)) g.SetInGrad(in, i, g.OutGrad(out, g.Outs(out) > 1 ? i : 0));
  return Status::Ok();
}
Status PassOnX(OpGradient& g) { return PassOn(g, "X", "Out"); }
Status PassOnIn(OpGradient& g) { return PassOn(g, "In", "Out"); }

Status ScaleGradient(OpGradient& g) {
  if (g.HasIn("ScaleTensor"))
    g.SetInGrad("X", g.Emit("scale", {{"X", g.OutGrad()}, {"ScaleTensor", g.In("ScaleTensor")}}));
  else
    g.SetInGrad("X", g.Scale(g.OutGrad(), g.Attr<double>("scale")));
  return Status::Ok();
}

Status ZeroGradient(OpGradient& g) {
  g.SetInGrad("X", g.Scale(g.OutGrad(), 0));
  return Status::Ok();
}

Status CastGradient(OpGradient& g) {
  g.SetInGrad("X", g.Cast(g.OutGrad(), g.Info(g.InVar("X")).dtype));
  return Status::Ok();
}

Status ConjGradient(OpGradient& g) {
  g.SetInGrad("X", g.Unary("conj", g.OutGrad()));
  return Status::Ok();
}
Status AsRealGradient(OpGradient& g) {
  g.SetInGrad("X", g.Unary("as_complex", g.OutGrad()));
  return Status::Ok();
}
Status AsComplexGradient(OpGradient& g) {
  g.SetInGrad("X", g.Unary("as_real", g.OutGrad()));
  return Status::Ok();
}

// Gives X and Y what belongs to them, summed where they were broadcast.
Status GiveXY(OpGradient& g, VarId x, VarId y) {
  if (g.Wants("X")) g.SetInGrad("X", g.SumLike(x, g.InVar("X")));
  if (g.Wants("Y")) g.SetInGrad("Y", g.SumLike(y, g.InVar("Y")));
  return Status::Ok();
}

Status MinusGradient(OpGradient& g) {
  return GiveXY(g, g.OutGrad(), g.Wants("Y") ? g.Scale(g.OutGrad(), -1) : kNoVar);
}

// 1 where `x` is not zero, in its dtype.
VarId NotZero(OpGradient& g, VarId x) {
  const VarId zeros = g.Scale(x, 0);
  return g.Cast(g.Compare("not_equal", x, zeros), g.Info(x).dtype);
}

// q = x / y, 0 where y is 0: dx = g / y, dy = -g q / y, both 0 there.
Status DivNoNanGradient(OpGradient& g) {
  const VarId y = g.In("Y");
  const VarId dx = g.Binary("div_no_nan", g.OutGrad(), y);
  const VarId dy = g.Wants("Y") ? g.Scale(g.Mul(dx, g.Out("Out")), -1) : kNoVar;
  return GiveXY(g, dx, dy);
}

// x y, 0 where y is 0 whatever x is: dx = g y, dy = x g, in which an x that is no number counts
// where g is not 0, as TensorFlow's gradient has it.
Status MulNoNanGradient(OpGradient& g) {
  const VarId dx = g.Wants("X") ? g.Binary("mul_no_nan", g.OutGrad(), g.In("Y")) : kNoVar;
  const VarId dy = g.Wants("Y") ? g.Binary("mul_no_nan", g.In("X"), g.OutGrad()) : kNoVar;
  return GiveXY(g, dx, dy);
}

// x log(y): dx = g log(y), 0 where x is 0; dy = g x / y.
Status XLogYGradient(OpGradient& g) {
  const VarId x = g.In("X"), y = g.In("Y");
  const VarId dx = g.Wants("X") ? g.Mul(g.OutGrad(), g.Binary("xlogy", NotZero(g, x), y)) : kNoVar;
  const VarId dy = g.Wants("Y") ? g.Mul(g.OutGrad(), g.Binary("xdivy", x, y)) : kNoVar;
  return GiveXY(g, dx, dy);
}
Status XLog1pYGradient(OpGradient& g) {
  const VarId x = g.In("X"), y = g.In("Y");
  const VarId dx =
      g.Wants("X") ? g.Mul(g.OutGrad(), g.Binary("xlog1py", NotZero(g, x), y)) : kNoVar;
  const VarId dy =
      g.Wants("Y") ? g.Mul(g.OutGrad(), g.Binary("xdivy", x, g.Scale(y, 1, 1))) : kNoVar;
  return GiveXY(g, dx, dy);
}
Status XDivYGradient(OpGradient& g) {
  const VarId x = g.In("X"), y = g.In("Y");
  const VarId dx = g.Wants("X") ? g.Mul(g.OutGrad(), g.Binary("xdivy", NotZero(g, x), y)) : kNoVar;
  const VarId dy = g.Wants("Y") ? g.Scale(g.Mul(g.OutGrad(), g.Div(g.Out("Out"), y)), -1) : kNoVar;
  return GiveXY(g, dx, dy);
}

// The derivative of erfc is -2/sqrt(pi) exp(-x^2).
Status ErfcGradient(OpGradient& g) {
  const VarId e = g.Unary("exp", g.Scale(g.Unary("square", g.In("X")), -1));
  g.SetInGrad("X", g.Scale(g.Mul(g.OutGrad(), e), -2 * std::numbers::inv_sqrtpi));
  return Status::Ok();
}

// x mod y = x - y floor(x / y), or trunc; the whole number is constant.
Status ModGradient(OpGradient& g) {
  const VarId x = g.In("X"), y = g.In("Y");
  const int axis = g.HasAttr("axis") ? static_cast<int>(g.Attr<int64_t>("axis")) : -1;
  VarId dx = g.OutGrad();
  VarId dy = kNoVar;
  if (g.Wants("Y")) {
    const VarId turns = g.Unary("round", g.Div(g.Sub(x, g.Out("Out")), y, axis));
    dy = g.Scale(g.Mul(dx, turns), -1);
  }
  return GiveXY(g, dx, dy);
}

Status SwigluGradient(OpGradient& g) {
  return g.Through([&](OpGradient::Outputs* out) {
    const VarId a = g.In("A");
    const double alpha = g.Attr<double>("alpha");
    const VarId s = g.Unary("sigmoid", alpha == 1 ? a : g.Scale(a, alpha));
    out->push_back({{"Y", 0}, g.Mul(g.Mul(a, s), g.In("B"))});
    return Status::Ok();
  });
}

// prelu with slopes that broadcast: x where it is positive, else slope x.
Status PreluGradient(OpGradient& g) {
  if (g.Attr<std::string>("mode") != "broadcast") return EmitOperator(g, "prelu_grad");
  const VarId x = g.In("X"), alpha = g.In("Alpha");
  const DType dtype = g.Info(x).dtype;
  const VarId positive = g.Cast(g.Compare("greater_than", x, g.Scale(x, 0)), dtype);
  const VarId rest = g.Scale(positive, -1, 1);
  const VarId slopes = g.Plus(positive, g.Mul(rest, alpha));
  if (g.Wants("X")) g.SetInGrad("X", g.SumLike(g.Mul(g.OutGrad(), slopes), g.InVar("X")));
  if (g.Wants("Alpha"))
    g.SetInGrad("Alpha", g.SumLike(g.Mul(g.Mul(g.OutGrad(), rest), x), g.InVar("Alpha")));
  return Status::Ok();
}

}  // namespace

RuleTable ElementRules() {
  return {
      Composed("assign", PassOnX),
      Composed("share_data", PassOnX),
      Composed("memcpy", PassOnX),
      Composed("memcpy_h2d", PassOnX),
      Composed("memcpy_d2h", PassOnX),
      Composed("transfer_dtype", CastGradient, "X"),
      Composed("print", PassOnIn),
      Composed("increment", PassOnX),
      Composed("sum", PassOnX),
      Composed("scale", ScaleGradient, "X"),
      Composed("sign", ZeroGradient),
      Composed("cast", CastGradient),
      Composed("conj", ConjGradient),
      Composed("as_real", AsRealGradient),
      Composed("as_complex", AsComplexGradient),
      Composed("minus", MinusGradient),
      Composed("div_no_nan", DivNoNanGradient),
      Composed("mul_no_nan", MulNoNanGradient),
      Composed("xlogy", XLogYGradient),
      Composed("xlog1py", XLog1pYGradient),
      Composed("xdivy", XDivYGradient),
      Composed("erfc", ErfcGradient),
      Composed("elementwise_mod", ModGradient),
      Composed("swiglu", SwigluGradient),
      Composed("prelu", PreluGradient),
      Named("cross_entropy2", "cross_entropy_grad2", ""),
      Named("fake_quantize_dequantize_abs_max", "stright_throuth_estimator_grad", ""),
      Named("fake_channel_wise_quantize_dequantize_abs_max", "stright_throuth_estimator_grad", ""),
      Named("fake_quantize_dequantize_moving_average_abs_max", "stright_throuth_estimator_grad",
            ""),
  };
}

}  // namespace heddle::gradient
