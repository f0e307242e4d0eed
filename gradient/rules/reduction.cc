// Sums and their kind, normalisations.
#include <string>

#include "gradient/op_gradient.h"

namespace heddle::gradient {
namespace {

using ir::kNoVar;
using ir::VarId;

// Whether the operator has no axes and then leaves its operand as it is.
bool KeepsAll(OpGradient& g) {
  return g.HasAttr("no_axes") && g.Attr<std::string>("no_axes") == "none" &&
         g.Attr<Ints>("dim").empty() && !g.Attr<bool>("reduce_all") && !g.HasIn("Axes");
}

Status ReduceGradient(OpGradient& g) {
  const std::string type = g.op().type();
  const std::string of = g.HasAttr("of") ? g.Attr<std::string>("of") : "x";
  if (KeepsAll(g) && (type == "reduce_sum" || type == "reduce_mean" || type == "reduce_max" ||
                      type == "reduce_min" || type == "reduce_prod")) {
    VarId dx = g.OutGrad();
    if (of == "abs") dx = g.Mul(dx, g.Unary("sign", g.In("X")));
    if (of == "square") dx = g.Scale(g.Mul(dx, g.In("X")), 2);
    g.SetInGrad("X", dx);
    return Status::Ok();
  }
  if (of == "x") return EmitOperator(g, type + "_grad");
  // The sum of a function of the elements: the gradient of the sum times its derivative.
  ir::Op made = g.Make("reduce_sum_grad", {{"X", g.In("X")}, {"Out@GRAD", g.OutGrad()}},
                       {{"dim", g.Attr<Ints>("dim")},
                        {"keep_dim", g.Attr<bool>("keep_dim")},
                        {"reduce_all", g.Attr<bool>("reduce_all")}});
  if (const int axes = made.def->FindInput("Axes"); axes >= 0 && g.HasIn("Axes"))
    made.inputs[static_cast<size_t>(axes)] = {g.In("Axes")};
  const VarId spread = g.New(g.InVar("X"), "reduce");
  made.outputs[static_cast<size_t>(made.def->FindOutput("X@GRAD"))] = {spread};
  g.Add(std::move(made));
  if (of == "abs")
    g.SetInGrad("X", g.Mul(spread, g.Unary("sign", g.In("X"))));
  else if (of == "square")
    g.SetInGrad("X", g.Scale(g.Mul(spread, g.In("X")), 2));
  else
    return Unimplemented("the gradient of a sum of '", of, "'");
  return Status::Ok();
}

// In a network for inference the operator leaves out the norm, which the gradient reads.
Status NormGradient(OpGradient& g) {
  ir::Op& op = g.Forward();
  op.attrs[static_cast<size_t>(op.def->FindAttr("is_test"))] = false;
  return EmitOperator(g, "norm_grad");
}

// Mean and Variance have gradients, too, and may have another form.
Status LayerNormGradient(OpGradient& g) {
  const bool statistics = g.OutGrad("Mean") != kNoVar || g.OutGrad("Variance") != kNoVar;
  const bool inverse = g.Attr<bool>("inverse_deviation");
  if (!statistics && !inverse) return EmitOperator(g, "layer_norm_grad");
  return g.Through([&](OpGradient::Outputs* out) {
    const VarId x = g.In("X");
    if (g.OutGrad("Y") != kNoVar)
      out->push_back(
          {{"Y", 0},
           g.Emit("layer_norm", {{"X", x}, {"Scale", g.In("Scale")}, {"Bias", g.In("Bias")}},
                  {{"epsilon", g.Attr<double>("epsilon")},
                   {"begin_norm_axis", g.Attr<int64_t>("begin_norm_axis")}},
                  "Y")});
    if (!statistics) return Status::Ok();
    HEDDLE_ASSIGN_OR_RETURN(const int64_t rank, g.RankOf(x));
    int64_t first = g.Attr<int64_t>("begin_norm_axis");
    if (first < 0) first += rank;
    Ints axes;
    for (int64_t a = first; a < rank; ++a) axes.push_back(a);
    const VarId mean = g.Reduce("reduce_mean", x, axes, true);
    const VarId variance = g.Reduce("reduce_mean", g.Unary("square", g.Sub(x, mean)), axes, true);
    const auto shaped = [&](VarId v, std::string_view slot) {
      return inverse ? v : g.ReshapeLike(v, g.OutVar(slot));
    };
    if (g.OutGrad("Mean") != kNoVar) out->push_back({{"Mean", 0}, shaped(mean, "Mean")});
    if (g.OutGrad("Variance") != kNoVar) {
      const VarId said =
          inverse ? g.Unary("rsqrt", g.Scale(variance, 1, g.Attr<double>("epsilon"))) : variance;
      out->push_back({{"Variance", 0}, shaped(said, "Variance")});
    }
    return Status::Ok();
  });
}

Status GroupNormGradient(OpGradient& g) {
  if (!g.Attr<bool>("per_group")) return EmitOperator(g, "group_norm_grad");
  return g.Through([&](OpGradient::Outputs* out) {
    const VarId x = g.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const int64_t rank, g.RankOf(x));
    if (g.Attr<std::string>("data_layout") != "NCHW")
      return Unimplemented("scales per group with channels last");
    // [batch, groups, the rest]
    const VarId grouped = g.Reshape(x, {0, g.Attr<int64_t>("groups"), -1});
    const VarId mean = g.Reduce("reduce_mean", grouped, {2}, true);
    const VarId centred = g.Sub(grouped, mean);
    const VarId variance = g.Reduce("reduce_mean", g.Unary("square", centred), {2}, true);
    VarId y = g.Mul(centred, g.Unary("rsqrt", g.Scale(variance, 1, g.Attr<double>("epsilon"))));
    if (g.HasIn("Scale")) y = g.Mul(y, g.In("Scale"), 1);
    if (g.HasIn("Bias")) y = g.Plus(y, g.In("Bias"), 1);
    out->push_back({{"Y", 0}, g.ReshapeLike(y, x)});
    (void)rank;
    return Status::Ok();
  });
}

// x over the root of its mean square, times Scale.
Status RmsGradient(OpGradient& g) {
  return g.Through([&](OpGradient::Outputs* out) {
    const VarId x = g.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const int64_t rank, g.RankOf(x));
    int64_t first = g.Attr<int64_t>("axis");
    if (first < 0) first += rank;
    Ints axes;
    for (int64_t a = first; a < rank; ++a) axes.push_back(a);
    const VarId square = g.Reduce("reduce_mean", g.Unary("square", x), axes, true);
    const VarId root = g.Unary("rsqrt", g.Scale(square, 1, g.Attr<double>("epsilon")));
    out->push_back({{"Y", 0}, g.Mul(g.Mul(x, root), g.In("Scale"))});
    return Status::Ok();
  });
}

// ONNX's MeanVarianceNormalization: (x - mean) / (deviation + 1e-9). Axes beyond the rank are
// passed over, as the operator does.
Status MeanVarianceGradient(OpGradient& g) {
  return g.Through([&](OpGradient::Outputs* out) {
    const VarId x = g.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const int64_t rank, g.RankOf(x));
    Ints axes = g.Attr<Ints>("axes");
    std::erase_if(axes, [&](int64_t axis) { return axis >= rank; });
    if (axes.empty()) {  // each element is its own mean
      out->push_back({{"Out", 0}, g.Scale(x, 0)});
      return Status::Ok();
    }
    const VarId centred = g.Sub(x, g.Reduce("reduce_mean", x, axes, true));
    const VarId variance = g.Reduce("reduce_mean", g.Unary("square", centred), axes, true);
    // Of equal elements: a root of 0 has no slope.
    const VarId positive = g.Emit("clip", {{"X", variance}}, {{"min", 1e-30}, {"max", 1e38}});
    out->push_back({{"Out", 0}, g.Div(centred, g.Scale(g.Unary("sqrt", positive), 1, 1e-9))});
    return Status::Ok();
  });
}

}  // namespace

RuleTable ReductionRules() {
  return {
      Composed("reduce_sum", ReduceGradient, "X"),
      Composed("reduce_mean", ReduceGradient, "X"),
      Composed("reduce_max", ReduceGradient, "X"),
      Composed("reduce_min", ReduceGradient, "X"),
      Composed("reduce_prod", ReduceGradient, "X"),
      Composed("norm", NormGradient, "X", "Out"),
      Composed("layer_norm", LayerNormGradient),
      Composed("group_norm", GroupNormGradient, "X Scale Bias", "Y"),
      Composed("rms_normalization", RmsGradient),
      Composed("mean_variance_norm", MeanVarianceGradient),
  };
}

}  // namespace heddle::gradient
