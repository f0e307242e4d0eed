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
  std::string index = n.In("Index");
  if (n.Rank("Index") == 2) index = n.Squeeze(index, {1});
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
  n.Out("Out", n.Make("GatherND", {n.In("X"), index}));
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
  if (IsIndex(n, "X")) WriteOneHot(n, n.In("X"));
}

void WriteTakeAlongAxis(NodeWriter& n) {
  if (!IsIndex(n, "Index")) return;
  const Shape &x = n.shape("Input"), &index = n.shape("Index");
  if (!x.known_rank() || x.rank() != index.rank() || x.rank() == 0)
    return n.Refuse("Input and Index have different ranks");
  const int64_t axis = n.Axis(n.Int("Axis"), "Input");
  for (int i = 0; i < x.rank(); ++i)
    if (i != axis && (x[i] < 0 || x[i] != index[i]))
      return n.Refuse("Index has another shape than Input: ", index.ToString());
  n.Out("Result", n.Make("GatherElements", {n.In("Input"), n.In("Index")}, {{"axis", axis}}));
}

void WriteWhereIndex(NodeWriter& n) {
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
    {"take_along_axis", &WriteTakeAlongAxis},
    {"where_index", &WriteWhereIndex},
};

}  // namespace

std::span<const Handler> IndexHandlers() { return kIndexTable; }

}  // namespace heddle::offload::to_onnx
