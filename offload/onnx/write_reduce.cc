// Operators that reduce along axes, running sums, and what is greatest.
#include <algorithm>
#include <numeric>

#include "core/shapes.h"
#include "offload/onnx/handlers.h"

namespace heddle::offload::to_onnx {
namespace {

constexpr char kReduceL1[] = "ReduceL1";
constexpr char kReduceL2[] = "ReduceL2";
constexpr char kReduceLogSumExp[] = "ReduceLogSumExp";
constexpr char kReduceMax[] = "ReduceMax";
constexpr char kReduceMean[] = "ReduceMean";
constexpr char kReduceMin[] = "ReduceMin";
constexpr char kReduceProd[] = "ReduceProd";
constexpr char kReduceSum[] = "ReduceSum";
constexpr char kReduceSumSquare[] = "ReduceSumSquare";

// Which axes go; all of them: an empty list.
struct Reduced {
  Ints axes;
  bool keep = false;
};

Reduced AxesOf(NodeWriter& n, const char* axes, const char* keep) {
  Reduced r{n.IntList(axes), n.Bool(keep)};
  const bool operand = n.definition().FindInput("Axes") >= 0 && n.Has("Axes");
  const bool all = !operand && n.Bool("reduce_all");
  if (operand) r.axes = n.RequiredInts("Axes");
  if (all) r.axes.clear();
  const int rank = n.Rank("X");
  if (r.axes.empty() && !all && n.definition().FindAttr("no_axes") >= 0 &&
      n.Text("no_axes") != "all")
    n.Refuse("opset ", kOpset, " reduces all axes where none is named");
  if (rank == 0) r.axes.clear();
  for (int64_t& a : r.axes) a = n.Axis(a, "X");
  std::sort(r.axes.begin(), r.axes.end());
  r.axes.erase(std::unique(r.axes.begin(), r.axes.end()), r.axes.end());
  if (static_cast<int>(r.axes.size()) == rank) r.axes.clear();
  return r;
}

// Until opset 18 only the sum has its axes as an operand.
std::string Reduce(NodeWriter& n, std::string_view type, const std::string& x, const Reduced& r) {
  Attributes attributes = {{"keepdims", int64_t{r.keep ? 1 : 0}}};
  Names inputs = {x};
  if (!n.why().empty()) return {};
  if (type == kReduceSum && !r.axes.empty()) inputs.push_back(n.Vector(r.axes));
  if (type != kReduceSum && !r.axes.empty()) attributes.push_back({"axes", r.axes});
  return n.Make(type, std::move(inputs), std::move(attributes));
}

// The whole of a tensor is one number, of rank 0 or 1 as the operator has it.
void Give(NodeWriter& n, const std::string& made, const Reduced& r) {
  const Shape& out = n.out_shape("Out");
  if (!n.why().empty()) return;
  if (!r.axes.empty() || r.keep) return n.Out("Out", made);
  if (!out.known_rank()) return n.Refuse("the rank of its result is not known");
  n.Out("Out", out.rank() == 0 ? made : n.Reshape(made, Ints(static_cast<size_t>(out.rank()), 1)));
}

bool HasElements(NodeWriter& n) {
  const Shape& x = n.shape("X");
  if (!x.is_static() || x.numel() > 0) return true;
  n.Refuse("X has no elements: ", x.ToString());
  return false;
}

// Integers that stand for unsigned ones.
bool IsUnsigned(NodeWriter& n) {
  if (n.definition().FindAttr("elem_type") < 0 || n.Int("elem_type") == 0) return false;
  n.Refuse("its operands stand for another element type");
  return true;
}

template <const char* kType>
void WriteReduction(NodeWriter& n) {
  if (IsUnsigned(n)) return;
  if (n.definition().FindInput("AxisTensor") >= 0 &&
      n.Count("AxisTensor") + n.Count("AxisTensorList") > 0)
    return n.Refuse("its axes are an operand");
  const bool plain = kType != kReduceMean;
  const bool typed =
      plain ? n.IsOneOf("X", {DType::kI32, DType::kI64, DType::kF32, DType::kF64}) : n.IsFloat("X");
  if (!typed || !HasElements(n)) return;
  const Reduced r = AxesOf(n, "dim", "keep_dim");
  std::string x = n.In("X");
  const DType out = n.out_dtype("Out");
  if (out == DType::kUnknown) return n.Refuse("the element type of its result is not known");
  if (out != n.dtype("X")) x = n.CastTo(x, out);
  Give(n, Reduce(n, kType, x, r), r);
}

// Of truth values: the least and the greatest of 0 and 1.
template <const char* kType>
void WriteOfTruth(NodeWriter& n) {
  if (n.Count("AxisTensor") + n.Count("AxisTensorList") > 0)
    return n.Refuse("its axes are an operand");
  if (!n.IsOneOf("X", {DType::kBool}) || !HasElements(n)) return;
  const Reduced r = AxesOf(n, "dim", "keep_dim");
  const std::string made = Reduce(n, kType, n.CastTo(n.In("X"), DType::kI32), r);
  Give(n, n.CastTo(made, DType::kBool), r);
}

void WriteReduceSum(NodeWriter& n) {
  const std::string of = n.Text("of");
  if (of == "abs") return WriteReduction<kReduceL1>(n);
  if (of == "square") return WriteReduction<kReduceSumSquare>(n);
  WriteReduction<kReduceSum>(n);
}

void WriteMean(NodeWriter& n) {
  if (!n.IsFloat("X") || !HasElements(n)) return;
  const Reduced all;
  Give(n, Reduce(n, kReduceMean, n.In("X"), all), all);
}

void WriteLogSumExp(NodeWriter& n) {
  if (IsUnsigned(n) || !n.IsFloat("X") || !HasElements(n)) return;
  const Reduced r = AxesOf(n, "axis", "keepdim");
  Give(n, Reduce(n, kReduceLogSumExp, n.In("X"), r), r);
}

void WritePNorm(NodeWriter& n) {
  if (n.Real("porder") != 2) return n.Refuse("its order is ", n.Real("porder"), " and not 2");
  if (!n.IsFloat("X") || !HasElements(n)) return;
  Reduced r;
  r.keep = n.Bool("keepdim");
  if (!n.Bool("asvector")) r.axes = {n.Axis(n.Int("axis"), "X")};
  if (n.Bool("asvector") && r.keep) return n.Refuse("it keeps the dimensions of a whole tensor");
  if (static_cast<int>(r.axes.size()) == n.Rank("X")) r.axes.clear();
  Give(n, Reduce(n, kReduceL2, n.In("X"), r), r);
}

void WriteArg(NodeWriter& n, const char* type) {
  if (!n.IsOneOf("X", {DType::kI32, DType::kI64, DType::kF32, DType::kF64}) || !HasElements(n))
    return;
  std::string x = n.In("X");
  int64_t axis = 0;
  if (n.Has("AxisTensor")) return n.Refuse("its axis is an operand");
  if (n.Bool("flatten"))
    x = n.Reshape(x, {-1});
  else
    axis = n.Axis(n.Int("axis"), "X");
  if (n.Rank("X") == 0) return n.Refuse("X is one number");
  const DType out = n.out_dtype("Out");
  const bool keep = n.Bool("keepdims") && !n.Bool("flatten");
  std::string made = n.Make(type, {x},
                            {{"axis", axis},
                             {"keepdims", int64_t{keep ? 1 : 0}},
                             {"select_last_index", int64_t{n.Bool("last") ? 1 : 0}}});
  if (out != DType::kI64) made = n.CastTo(made, out);
  if (keep || (!n.Bool("flatten") && n.Rank("X") > 1)) return n.Out("Out", made);
  n.OutReshaped("Out", made);
}
void WriteArgMax(NodeWriter& n) { WriteArg(n, "ArgMax"); }
void WriteArgMin(NodeWriter& n) { WriteArg(n, "ArgMin"); }

void WriteCumsum(NodeWriter& n) {
  if (!n.IsOneOf("X", {DType::kI32, DType::kI64, DType::kF32, DType::kF64})) return;
  if (n.Rank("X") == 0) return n.Refuse("X is one number");
  // Of one element heddle's operator makes that element, as Paddle's does.
  const Shape& shape = n.shape("X");
  if (n.Bool("exclusive") && n.Bool("copies_single") && (!shape.is_static() || shape.numel() == 1))
    return n.Refuse("it leaves out the only element, or may do so");
  const bool flat = n.Bool("flatten");
  const bool given = !flat && n.Has("AxisTensor");
  const int64_t axis = flat || given ? 0 : n.Axis(n.Int("axis"), "X");
  const std::string x = flat ? n.Reshape(n.In("X"), {-1}) : n.In("X");
  n.Out("Out", n.Make("CumSum", {x, given ? n.AsScalar("AxisTensor") : n.Whole(axis)},
                      {{"exclusive", int64_t{n.Bool("exclusive")}},
                       {"reverse", int64_t{n.Bool("reverse")}}}));
}

void WriteTopK(NodeWriter& n) {
  if (!n.IsOneOf("X", {DType::kI32, DType::kI64, DType::kF32, DType::kF64})) return;
  if (n.Rank("X") == 0) return n.Refuse("X is one number");
  const std::string k = n.Has("K") ? n.AsLongs("K") : n.Vector({n.Int("k")});
  const int64_t axis = n.Axis(n.Int("axis"), "X");
  const Names made =
      n.MakeMany("TopK", {n.In("X"), k}, 2,
                 {{"axis", axis}, {"largest", int64_t{n.Bool("largest")}}, {"sorted", int64_t{1}}});
  if (n.Wants("Out")) n.Out("Out", made[0]);
  if (!n.Wants("Indices")) return;
  const DType index = DTypeFromProto(n.Int("index_type"));
  n.Out("Indices", index == DType::kI64 ? made[1] : n.CastTo(made[1], index));
}

constexpr Handler kReduceTable[] = {
    {"arg_max", &WriteArgMax},
    {"arg_min", &WriteArgMin},
    {"cumsum", &WriteCumsum},
    {"frobenius_norm", &WriteReduction<kReduceL2>},
    {"logsumexp", &WriteLogSumExp},
    {"mean", &WriteMean},
    {"p_norm", &WritePNorm},
    {"reduce_all", &WriteOfTruth<kReduceMin>},
    {"reduce_any", &WriteOfTruth<kReduceMax>},
    {"reduce_max", &WriteReduction<kReduceMax>},
    {"reduce_mean", &WriteReduction<kReduceMean>},
    {"reduce_min", &WriteReduction<kReduceMin>},
    {"reduce_prod", &WriteReduction<kReduceProd>},
    {"reduce_sum", &WriteReduceSum},
    {"top_k_v2", &WriteTopK},
};

}  // namespace

std::span<const Handler> ReduceHandlers() { return kReduceTable; }

}  // namespace heddle::offload::to_onnx
