// Operators that move elements, and those that select some of them.
#include "gradient/op_gradient.h"

namespace heddle::gradient {
namespace {

using ir::kNoVar;
using ir::VarId;

Status SplitGradient(OpGradient& g) {
  std::vector<VarId> parts;
  for (size_t i = 0; i < g.Outs("Out"); ++i) parts.push_back(g.OutGradOrZeros("Out", i));
  const int64_t axis = g.Attr<int64_t>("axis");
  g.SetInGrad(
      "X", g.Emit("concat", {{"X", parts}, {"AxisTensor", g.In("AxisTensor")}}, {{"axis", axis}}));
  return Status::Ok();
}

Status UnbindGradient(OpGradient& g) {
  std::vector<VarId> parts;
  for (size_t i = 0; i < g.Outs("Out"); ++i) parts.push_back(g.OutGradOrZeros("Out", i));
  g.SetInGrad("X",
              g.EmitMany("stack", {{"X", parts}}, {{"axis", g.Attr<int64_t>("axis")}}, "Y", 1)[0]);
  return Status::Ok();
}

// The operator itself, with the gradient in place of `in`, undoes what it did.
Status Again(OpGradient& g, std::string_view in, std::string_view out) {
  ir::Op made = g.op();
  made.index = -1;
  for (size_t s = 0; s < made.def->inputs().size(); ++s)
    for (size_t i = 0; i < made.inputs[s].size(); ++i)
      made.inputs[s][i] = g.In(made.def->inputs()[s].name, i);
  made.inputs[static_cast<size_t>(made.def->FindInput(in))] = {g.OutGrad(out)};
  const VarId given = g.New(g.InVar(in), in);
  for (auto& slot : made.outputs) slot.clear();
  made.outputs[static_cast<size_t>(made.def->FindOutput(out))] = {given};
  g.Add(std::move(made));
  g.SetInGrad(in, given);
  return Status::Ok();
}
Status AgainX(OpGradient& g) { return Again(g, "X", "Out"); }
Status AgainXY(OpGradient& g) { return Again(g, "X", "Y"); }
Status AgainBand(OpGradient& g) { return Again(g, "input", "band"); }

Status DiagGradient(OpGradient& g) {
  g.SetInGrad("diagonal", g.Emit("tensor_diag_part", {{"input", g.OutGrad("output")}}));
  return Status::Ok();
}
Status DiagPartGradient(OpGradient& g) {
  g.SetInGrad("input", g.Emit("tensor_diag", {{"diagonal", g.OutGrad("diagonal")}}));
  return Status::Ok();
}

// Cropping and padding around the middle undo each other.
Status CenterCropPadGradient(OpGradient& g) {
  const VarId input = g.InVar("input_data");
  VarId sizes = g.Emit("shape", {{"Input", input}});
  const Ints axes = g.Attr<Ints>("axes");
  if (!axes.empty()) {
    Ints positive = axes;
    for (int64_t& a : positive)
      if (a < 0) {
        HEDDLE_ASSIGN_OR_RETURN(const int64_t rank, g.RankOf(input));
        a += rank;
      }
    std::vector<VarId> parts;
    for (const int64_t a : positive) parts.push_back(g.Slice(sizes, {0}, {a}, {a + 1}));
    sizes = g.Concat(parts, 0);
  }
  g.SetInGrad("input_data", g.Emit("center_crop_pad",
                                   {{"input_data", g.OutGrad("output_data")},
                                    {"shape", g.Cast(sizes, g.Info(g.InVar("shape")).dtype)}},
                                   {{"axes", axes}}));
  return Status::Ok();
}

Status SpaceToBatchGradient(OpGradient& g) {
  g.SetInGrad("input", g.Emit("batch_to_space_nd", {{"input", g.OutGrad("output")},
                                                    {"block_shape", g.In("block_shape")},
                                                    {"crops", g.In("paddings")}}));
  return Status::Ok();
}
Status BatchToSpaceGradient(OpGradient& g) {
  g.SetInGrad("input", g.Emit("space_to_batch_nd", {{"input", g.OutGrad("output")},
                                                    {"block_shape", g.In("block_shape")},
                                                    {"paddings", g.In("crops")}}));
  return Status::Ok();
}

// What was selected gets its gradient, the rest nothing.
Status CompressGradient(OpGradient& g) {
  const VarId input = g.In("input");
  const bool flat = !g.Attr<bool>("has_axis");
  const VarId places = g.Reshape(g.Emit("where_index", {{"Condition", g.In("condition")}}), {-1});
  const VarId whole = flat ? g.Reshape(input, {-1}) : input;
  int64_t axis = flat ? 0 : g.Attr<int64_t>("axis");
  if (axis < 0) {
    HEDDLE_ASSIGN_OR_RETURN(const int64_t rank, g.RankOf(input));
    axis += rank;
  }
  ir::Op made =
      g.Make("index_select_grad",
             {{"X", whole}, {"Index", places}, {"Out@GRAD", g.OutGrad("output")}}, {{"dim", axis}});
  VarId given = g.New(whole, "compress");
  made.outputs[0] = {given};
  g.Add(std::move(made));
  if (flat) given = g.ReshapeLike(given, input);
  g.SetInGrad("input", given);
  return Status::Ok();
}

Status ScatterNdGradient(OpGradient& g) {
  const std::string reduce = g.Attr<std::string>("reduce");
  const VarId seed = g.OutGrad(), index = g.In("Index");
  const auto gathered = [&](VarId from) {
    if (g.Attr<bool>("rows")) return g.Emit("gather", {{"X", from}, {"Index", index}});
    return g.Emit("gather_nd", {{"X", from}, {"Index", index}}, {{"wrap", g.Attr<bool>("wrap")}});
  };
  const auto scattered = [&](VarId x, VarId updates, const char* how) {
    return g.Emit(
        "scatter_nd", {{"X", x}, {"Index", index}, {"Updates", updates}},
        {{"reduce", how}, {"rows", g.Attr<bool>("rows")}, {"wrap", g.Attr<bool>("wrap")}});
  };
  if (reduce == "assign" || reduce == "add" || reduce == "sub") {
    if (g.Wants("Updates")) {
      const VarId given = gathered(seed);
      g.SetInGrad("Updates", reduce == "sub" ? g.Scale(given, -1) : given);
    }
    if (g.Wants("X"))
      g.SetInGrad(
          "X", reduce == "assign" ? scattered(seed, g.ZerosLike(g.In("Updates")), "assign") : seed);
    return Status::Ok();
  }
  if (reduce == "mul") {
    if (g.Wants("X")) g.SetInGrad("X", scattered(seed, g.In("Updates"), "mul"));
    if (g.Wants("Updates"))
      g.SetInGrad("Updates", g.Div(gathered(g.Mul(seed, g.Out("Out"))), g.In("Updates")));
    return Status::Ok();
  }
  if (reduce == "max" || reduce == "min") {
    // Where the operand has the result, it gets the gradient; several equal ones share it.
    const VarId out = g.Out("Out");
    const DType dtype = g.Info(g.InVar("Updates")).dtype;
    const VarId u = g.Cast(g.Compare("equal", gathered(out), g.In("Updates")), dtype);
    VarId count = kNoVar, x = kNoVar;
    if (g.HasIn("X")) {
      x = g.Cast(g.Compare("equal", out, g.In("X")), dtype);
      count = scattered(x, u, "add");
    } else {
      count = scattered(g.ZerosLike(out), u, "add");
    }
    const VarId share = g.Binary("div_no_nan", seed, count);
    if (g.Wants("X")) g.SetInGrad("X", g.Mul(share, x));
    if (g.Wants("Updates")) g.SetInGrad("Updates", g.Mul(gathered(share), u));
    return Status::Ok();
  }
  return Unimplemented("the gradient of a reduction by '", reduce, "'");
}

// put_along_axis: the reductions that its gradient operator lacks share among equal elements.
Status PutAlongAxisGradient(OpGradient& g) {
  const std::string reduce = g.Attr<std::string>("Reduce");
  const Shape &places = g.Info(g.InVar("Index")).shape, &values = g.Info(g.InVar("Value")).shape;
  if (places.is_static() && values.is_static() && places != values && values.numel() != 1)
    return Unimplemented("the gradient of '", reduce, "' with Value of another shape than Index");
  if (reduce != "amax" && reduce != "amin") return EmitOperator(g, "put_along_axis_grad");
  const VarId input = g.In("Input"), index = g.In("Index"), out = g.Out("Result");
  const Settings along = {{"Axis", g.Attr<int64_t>("Axis")}};
  const auto taken = [&](VarId from) {
    return g.Emit("take_along_axis", {{"Input", from}, {"Index", index}}, along, "Result");
  };
  const DType dtype = g.Info(input).dtype;
  const VarId x = g.Cast(g.Compare("equal", out, input), dtype);
  const VarId u = g.Cast(g.Compare("equal", taken(out), g.In("Value")), dtype);
  Settings add = along;
  add.emplace_back("Reduce", "add");
  const VarId count =
      g.Emit("put_along_axis", {{"Input", x}, {"Index", index}, {"Value", u}}, add, "Result");
  const VarId share = g.Binary("div_no_nan", g.OutGrad("Result"), count);
  if (g.Wants("Input")) g.SetInGrad("Input", g.Mul(share, x));
  if (g.Wants("Value")) g.SetInGrad("Value", g.SumLike(g.Mul(taken(share), u), g.InVar("Value")));
  return Status::Ok();
}

// Rows of the sum of a segment have its gradient; an id below zero belongs to none.
Status UnsortedSegmentGradient(OpGradient& g) {
  const std::string how = g.Attr<std::string>("pooltype");
  const VarId ids = g.In("SegmentIds"), x = g.In("X");
  const auto rows = [&](VarId from) {
    // One more row, of zeros, for ids that name no segment.
    const VarId inside = g.Compare("greater_equal", ids, g.Scale(ids, 0));
    const VarId clipped = g.Binary("elementwise_max", ids, g.Scale(ids, 0));
    const VarId taken =
        g.ReshapeLike(g.Emit("gather", {{"X", from}, {"Index", g.Reshape(clipped, {-1})}}), x);
    const VarId mask = g.Cast(inside, g.Info(x).dtype);
    const Shape& s = g.Info(ids).shape;
    const Shape& all = g.Info(x).shape;
    if (s.known_rank() && all.known_rank() && s.rank() < all.rank()) return g.Mul(taken, mask, 0);
    return g.Mul(taken, mask);
  };
  const VarId seed = g.OutGrad();
  if (how == "SUM") {
    g.SetInGrad("X", rows(seed));
    return Status::Ok();
  }
  const auto pooled = [&](VarId from, const char* type) {
    return g.Emit("unsorted_segment_pool",
                  {{"X", from}, {"SegmentIds", ids}, {"NumSegments", g.In("NumSegments")}},
                  {{"pooltype", type}});
  };
  if (how == "MEAN") {
    const VarId count = pooled(g.Filled(x, 1), "SUM");
    g.SetInGrad("X", rows(g.Binary("div_no_nan", seed, count)));
    return Status::Ok();
  }
  if (how == "MAX" || how == "MIN") {
    const VarId mine = g.Cast(g.Compare("equal", x, rows(g.Out("Out"))), g.Info(x).dtype);
    const VarId share = g.Binary("div_no_nan", seed, pooled(mine, "SUM"));
    g.SetInGrad("X", g.Mul(rows(share), mine));
    return Status::Ok();
  }
  if (how == "PROD") {
    g.SetInGrad("X", g.Div(rows(g.Mul(seed, g.Out("Out"))), x));
    return Status::Ok();
  }
  return Unimplemented("the gradient of a pool by '", how, "'");
}

Status DynamicStitchGradient(OpGradient& g) {
  for (size_t i = 0; i < g.Ins("data"); ++i)
    if (g.Wants("data", i)) {
      const VarId flat = g.Reshape(g.In("indices", i), {-1});
      g.SetInGrad("data", i,
                  g.ReshapeLike(g.Emit("gather", {{"X", g.OutGrad("merged")}, {"Index", flat}}),
                                g.InVar("data", i)));
    }
  return Status::Ok();
}

// A rotation the other way.
Status RotaryGradient(OpGradient& g) {
  Settings same;
  for (const char* name : {"interleaved", "num_heads", "rotary_embedding_dim"})
    same.emplace_back(name, g.Attr<int64_t>(name));
  g.SetInGrad("X", g.Emit("rotary_embedding",
                          {{"X", g.OutGrad("Y")},
                           {"cos_cache", g.In("cos_cache")},
                           {"sin_cache", g.Scale(g.In("sin_cache"), -1)},
                           {"position_ids", g.In("position_ids")}},
                          same));
  return Status::Ok();
}

VarId DiagonalsOf(OpGradient& g, VarId matrix) {
  return g.Emit("matrix_diag_part", {{"input", matrix}, {"k", g.In("k")}},
                {{"align", g.Attr<std::string>("align")}});
}
VarId WithDiagonals(OpGradient& g, VarId matrix, VarId diagonal) {
  return g.Emit("matrix_set_diag", {{"input", matrix}, {"diagonal", diagonal}, {"k", g.In("k")}},
                {{"align", g.Attr<std::string>("align")}});
}
Status MatrixDiagGradient(OpGradient& g) {
  g.SetInGrad("diagonal", DiagonalsOf(g, g.OutGrad("output")));
  return Status::Ok();
}
Status MatrixDiagPartGradient(OpGradient& g) {
  g.SetInGrad("input", WithDiagonals(g, g.ZerosLike(g.In("input")), g.OutGrad("diagonal")));
  return Status::Ok();
}
Status MatrixSetDiagGradient(OpGradient& g) {
  const VarId seed = g.OutGrad("output");
  if (g.Wants("input")) g.SetInGrad("input", WithDiagonals(g, seed, g.ZerosLike(g.In("diagonal"))));
  if (g.Wants("diagonal")) g.SetInGrad("diagonal", DiagonalsOf(g, seed));
  return Status::Ok();
}

// The numbers of the rows go the same way, and lead back.
Status DynamicPartitionGradient(OpGradient& g) {
  const VarId partitions = g.In("partitions");
  const VarId count = g.Emit("size", {{"Input", partitions}});
  const VarId end = g.Reshape(count, {1});
  const VarId zero = g.Constant(DType::kI64, {1}, 0), one = g.Constant(DType::kI64, {1}, 1);
  const VarId rows =
      g.Cast(g.Emit("range", {{"Start", zero}, {"End", end}, {"Step", one}}), DType::kI32);
  const std::vector<VarId> places = g.EmitMany(
      "dynamic_partition", {{"data", g.ReshapeLike(rows, partitions)}, {"partitions", partitions}},
      {}, "outputs", g.Outs("outputs"));
  std::vector<VarId> gradients;
  for (size_t i = 0; i < g.Outs("outputs"); ++i)
    gradients.push_back(g.OutGradOrZeros("outputs", i));
  g.SetInGrad("data",
              g.ReshapeLike(g.Emit("dynamic_stitch", {{"indices", places}, {"data", gradients}}),
                            g.InVar("data")));
  return Status::Ok();
}

}  // namespace

RuleTable ShapeRules() {
  return {
      Composed("split", SplitGradient, "X"),
      Composed("unbind", UnbindGradient),
      Composed("flip", AgainX, "X"),
      Composed("reverse", AgainX, "X"),
      Composed("sequence_reverse", AgainXY),
      Composed("reverse_sequence", AgainX, "X"),
      Composed("matrix_band_part", AgainBand, "input"),
      Composed("tensor_diag", DiagGradient),
      Composed("tensor_diag_part", DiagPartGradient),
      Composed("center_crop_pad", CenterCropPadGradient, "input_data"),
      Composed("space_to_batch_nd", SpaceToBatchGradient, "input"),
      Composed("batch_to_space_nd", BatchToSpaceGradient, "input"),
      Composed("compress", CompressGradient, "input"),
      Composed("scatter_nd", ScatterNdGradient, "X Updates"),
      Composed("put_along_axis", PutAlongAxisGradient, "Input Value"),
      Composed("unsorted_segment_pool", UnsortedSegmentGradient, "X"),
      Composed("rotary_embedding", RotaryGradient, "X"),
      Composed("matrix_diag", MatrixDiagGradient, "diagonal"),
      Composed("matrix_diag_part", MatrixDiagPartGradient, "input"),
      Composed("matrix_set_diag", MatrixSetDiagGradient, "input diagonal"),
      Composed("dynamic_partition", DynamicPartitionGradient, "data"),
      Composed("dynamic_stitch", DynamicStitchGradient, "data"),
      Named("meshgrid", "meshgrid_grad", "outputs@GRAD=grad(Out)"),
  };
}

}  // namespace heddle::gradient
