// Operators that pick elements by position.
#include "core/shapes.h"
#include "offload/onnx/handlers.h"

namespace heddle::offload::to_onnx {
namespace {

bool IsIndex(NodeWriter& n, std::string_view slot) {
  return n.IsOneOf(slot, {DType::kI32, DType::kI64});
}

void WriteGather(NodeWriter& n) {
  if (!IsIndex(n, "Index")) return;
  int64_t axis = n.Int("axis");
  if (n.Has("Axis")) {
    const Ints given = n.RequiredInts("Axis");
    if (given.size() != 1) return n.Refuse("its axis is not one number");
    axis = given[0];
  }
  axis = n.Axis(axis, "X");
  if (n.Int("batch_dims") != 0) return n.Refuse("it has batch_dims");
  std::string index = n.In("Index");
  if (!n.Bool("index_shape") && n.Rank("Index") == 2) index = n.Squeeze(index, {1});
  n.Out("Out", n.Make("Gather", {n.In("X"), index}, {{"axis", axis}}));
}

void WriteIndexSelect(NodeWriter& n) {
  if (!IsIndex(n, "Index")) return;
  if (n.Rank("Index") != 1) return n.Refuse("Index is no vector");
  n.Out("Out", n.Make("Gather", {n.In("X"), n.In("Index")}, {{"axis", n.Axis(n.Int("dim"), "X")}}));
}

void WriteIndexSample(NodeWriter& n) {
  if (!IsIndex(n, "Index")) return;
  if (n.Rank("X") != 2 || n.Rank("Index") != 2) return n.Refuse("X is no matrix");
  n.Out("Out", n.Make("GatherElements", {n.In("X"), n.In("Index")}, {{"axis", int64_t{1}}}));
}

void WriteGatherNd(NodeWriter& n) {
  if (!IsIndex(n, "Index")) return;
  const std::string index =
      n.dtype("Index") == DType::kI64 ? n.In("Index") : n.CastTo(n.In("Index"), DType::kI64);
  if (n.Rank("Index") == 0 || n.Rank("X") == 0) return n.Refuse("it picks from one number");
  n.Out("Out", n.Make("GatherND", {n.In("X"), index}, {{"batch_dims", n.Int("batch_dims")}}));
}

void LookUp(NodeWriter& n, const std::string& ids) {
  const int64_t padding = n.Int("padding_idx");
  const std::string rows = n.Make("Gather", {n.In("W"), ids}, {{"axis", int64_t{0}}});
  if (padding == -1) return n.Out("Out", rows);
  const Shape& w = n.shape("W");
  if (padding < 0 || w.rank() < 1 || padding >= w[0])
    return n.Refuse("its padding_idx ", padding, " is no row of W, ", w.ToString());
  const std::string is_padding =
      n.Make("Equal", {ids, n.Scalar(static_cast<double>(padding), n.dtype("Ids"))});
  const std::string column = n.Unsqueeze(is_padding, {-1});
  n.Out("Out", n.Make("Where", {column, n.Scalar(0, n.dtype("W")), rows}));
}

void WriteLookupTable2(NodeWriter& n) {
  if (IsIndex(n, "Ids")) LookUp(n, n.In("Ids"));
}
void WriteLookupTable(NodeWriter& n) {
  if (!IsIndex(n, "Ids")) return;
  if (n.Rank("Ids") == 0) return n.Refuse("Ids is one number");
  LookUp(n, n.Squeeze(n.In("Ids"), {-1}));
}

void WriteOneHot(NodeWriter& n, const std::string& x) {
  if (n.Bool("allow_out_of_range")) return n.Refuse("it takes numbers out of its range");
  if (n.Rank("X") == 0) return n.Refuse("X is one number");
  const DType dtype = DTypeFromProto(n.Int("dtype"));
  std::string depth;
  if (n.Has("depth_tensor"))
    depth = n.AsLongs("depth_tensor");
  else
    depth = n.Vector({n.Int("depth")});
  Tensor values;
  if (dtype == DType::kF32) values = Tensor::Of(dtype, {2}, std::vector<float>{0, 1});
  if (dtype == DType::kF64) values = Tensor::Of(dtype, {2}, std::vector<double>{0, 1});
  if (dtype == DType::kI32) values = Tensor::Of(dtype, {2}, std::vector<int32_t>{0, 1});
  if (dtype == DType::kI64) values = Tensor::Of(dtype, {2}, std::vector<int64_t>{0, 1});
  if (!values.initialized()) return n.Refuse("it makes ", Name(dtype));
  n.Out("Out", n.Make("OneHot", {x, depth, n.Hold(values)}));
}
void WriteOneHot2(NodeWriter& n) {
  if (n.Has("Values")) {
    if (!n.Bool("wrap") || n.Text("out_of_range") != "off")
      return n.Refuse("it takes indices out of its range otherwise");
    const std::string made = n.Make("OneHot", {n.In("X"), n.In("depth_tensor"), n.In("Values")},
                                    {{"axis", n.Int("axis")}});
    return n.Out("Out", made);
  }
  if (n.Int("axis") != -1) return n.Refuse("its rows lie along an axis of their own");
  if (IsIndex(n, "X")) WriteOneHot(n, n.In("X"));
}

void WriteTakeAlongAxis(NodeWriter& n) {
  if (!IsIndex(n, "Index")) return;
  const Shape &x = n.shape("Input"), &index = n.shape("Index");
  if (!x.known_rank() || x.rank() != index.rank() || x.rank() == 0)
    return n.Refuse("Input and Index have different ranks");
  const int64_t axis = n.Axis(n.Int("Axis"), "Input");
  n.Out("Result", n.Make("GatherElements", {n.In("Input"), n.In("Index")}, {{"axis", axis}}));
}

// What ONNX calls a way to combine; empty: it has no such way.
std::string ReductionOf(NodeWriter& n, std::string_view how) {
  if (how == "assign") return "none";
  if (how == "add" || how == "mul" || how == "multiply") return std::string(how.substr(0, 3));
  if (n.Text("undecided") != "new") return {};
  if (how == "amax" || how == "max") return "max";
  return how == "amin" || how == "min" ? "min" : std::string();
}

void WriteScatterNd(NodeWriter& n) {
  const std::string reduction = ReductionOf(n, n.Text("reduce"));
  if (reduction.empty() || !n.Has("X") || n.Bool("rows"))
    return n.Refuse("ONNX has no such updates");
  if (n.Rank("Updates") == 0 || !IsIndex(n, "Index")) return n.Refuse("it has one update for all");
  const std::string index =
      n.dtype("Index") == DType::kI64 ? n.In("Index") : n.CastTo(n.In("Index"), DType::kI64);
  n.Out("Out",
        n.Make("ScatterND", {n.In("X"), index, n.In("Updates")}, {{"reduction", reduction}}));
}

void WritePutAlongAxis(NodeWriter& n) {
  const std::string reduction = ReductionOf(n, n.Text("Reduce"));
  if (reduction.empty() || (reduction != "none" && !n.Bool("Include_self")) || !IsIndex(n, "Index"))
    return n.Refuse("ONNX has no such updates");
  if (!(n.shape("Value") == n.shape("Index"))) return n.Refuse("Value may be larger than Index");
  n.Out("Result", n.Make("ScatterElements", {n.In("Input"), n.In("Index"), n.In("Value")},
                         {{"axis", n.Axis(n.Int("Axis"), "Input")}, {"reduction", reduction}}));
}

void WriteWhereIndex(NodeWriter& n) {
  if (n.Bool("by_axis")) return n.Out("Out", n.Make("NonZero", {n.In("Condition")}));
  if (n.IsOneOf("Condition", {DType::kBool, DType::kI32, DType::kI64, DType::kF32}) &&
      n.Rank("Condition") > 0)
    n.Out("Out", n.Transpose(n.Make("NonZero", {n.In("Condition")}), {1, 0}));
}

constexpr Handler kIndexTable[] = {
    {"gather", &WriteGather},
    {"gather_nd", &WriteGatherNd},
    {"index_sample", &WriteIndexSample},
    {"index_select", &WriteIndexSelect},
    {"lookup_table", &WriteLookupTable},
    {"lookup_table_v2", &WriteLookupTable2},
    {"one_hot_v2", &WriteOneHot2},
    {"put_along_axis", &WritePutAlongAxis},
    {"scatter_nd", &WriteScatterNd},
    {"take_along_axis", &WriteTakeAlongAxis},
    {"where_index", &WriteWhereIndex},
};

}  // namespace

std::span<const Handler> IndexHandlers() { return kIndexTable; }

}  // namespace heddle::offload::to_onnx
