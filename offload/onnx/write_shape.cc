// Operators that move elements: shapes, orders, parts and joins; and tensors of equal elements.
#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "core/shapes.h"
#include "offload/onnx/handlers.h"

namespace heddle::offload::to_onnx {
namespace {

// Numbers that an attribute holds, or one operand, or several of one number each.
struct Numbers {
  std::string name;
  std::optional<Ints> known;
};

Numbers NumbersOf(NodeWriter& n, const char* list, const char* tensor, const char* attribute) {
  if (n.Count(list) > 0) {
    Names parts;
    for (size_t k = 0; k < n.Count(list); ++k) parts.push_back(n.AsLongs(list, k));
    return {n.Make("Concat", std::move(parts), {{"axis", int64_t{0}}}), std::nullopt};
  }
  if (n.Has(tensor)) {
    if (auto known = n.ConstantInts(tensor)) return {n.Vector(*known), known};
    return {n.AsLongs(tensor), std::nullopt};
  }
  return {n.Vector(n.IntList(attribute)), n.IntList(attribute)};
}

void WriteReshape(NodeWriter& n) {
  const Shape& out = n.out_shape("Out");
  if (out.is_static()) return n.OutReshaped("Out", n.In("X"));
  const Numbers shape = NumbersOf(n, "ShapeTensor", "Shape", "shape");
  if (n.type() == "reshape2" && n.Bool("literal_zero"))
    return n.Out("Out", n.Make("Reshape", {n.In("X"), shape.name}, {{"allowzero", int64_t{1}}}));
  n.Out("Out", n.Make("Reshape", {n.In("X"), shape.name}));
}

void WriteTranspose(NodeWriter& n) {
  Ints axes = n.IntList("axis");
  if (n.type() == "transpose2" && n.Bool("reversed"))
    return n.Out("Out", n.Make("Transpose", {n.In("X")}));
  if (n.type() == "transpose2" && n.Has("Perm")) {
    axes = n.RequiredInts("Perm");
    if (static_cast<int>(axes.size()) != n.Rank("X"))
      return n.Refuse("it orders ", axes.size(), " axes");
  }
  if (axes.empty()) return n.Out("Out", n.In("X"));
  for (int64_t& a : axes) a = n.Axis(a, "X");
  n.Out("Out", n.Transpose(n.In("X"), axes));
}

void WriteSqueeze(NodeWriter& n) {
  const Shape& x = n.shape("X");
  Ints axes = n.IntList("axes");
  if (n.Has("AxesTensor")) {
    if (!n.Bool("ones_only")) return n.Refuse("its axes are an operand");
    return n.Out("Out", n.Make("Squeeze", {n.In("X"), n.AsLongs("AxesTensor")}));
  }
  if (axes.empty()) {
    axes.resize(static_cast<size_t>(n.Rank("X")));
    std::iota(axes.begin(), axes.end(), 0);
  }
  Ints gone;
  for (int64_t a : axes) {
    if (n.Rank("X") == 0) break;
    a = n.Axis(a, "X");
    const int64_t dim = x.known_rank() ? x[static_cast<int>(a)] : -1;
    if (dim < 0) return n.Refuse("whether dimension ", a, " of X is 1 is not known");
    if (dim == 1 && std::find(gone.begin(), gone.end(), a) == gone.end()) gone.push_back(a);
  }
  n.Out("Out", n.Squeeze(n.In("X"), gone));
}

void WriteUnsqueeze(NodeWriter& n) {
  if (n.Has("AxesTensor") && n.Bool("in_result"))
    return n.Out("Out", n.Make("Unsqueeze", {n.In("X"), n.AsLongs("AxesTensor")}));
  if (n.Count("AxesTensor") + n.Count("AxesTensorList") > 0)
    return n.Refuse("its axes are an operand");
  if (n.Bool("in_result")) return n.Out("Out", n.Unsqueeze(n.In("X"), n.IntList("axes")));
  // Each axis counts in what the ones before it made.
  std::string x = n.In("X");
  int more = 0;
  for (int64_t a : n.IntList("axes")) x = n.Unsqueeze(x, {n.Axis(a, "X", ++more)});
  n.Out("Out", x);
}

// Dimensions begin .. end - 1 become one.
void JoinDims(NodeWriter& n, const std::string& x, int begin, int end) {
  const Shape& out = n.out_shape("Out");
  if (out.is_static() || (out.known_rank() && std::count(out.begin(), out.end(), -1) == 1 &&
                          std::count(out.begin(), out.end(), 0) == 0))
    return n.OutReshaped("Out", x);
  const int rank = n.Rank("X");
  Names parts;
  if (begin > 0) parts.push_back(n.DimsOf(x, 0, begin));
  parts.push_back(n.Vector({-1}));
  if (end < rank) parts.push_back(n.DimsOf(x, end, rank));
  n.Out("Out", n.Make("Reshape", {x, n.Make("Concat", parts, {{"axis", int64_t{0}}})}));
}

void WriteFlatten(NodeWriter& n) {
  const int rank = n.Rank("X");
  const int64_t axis = n.Int("axis");
  const bool scalar = rank == 0 && n.type() == "flatten2" && n.Bool("scalar_to_matrix");
  if ((rank == 0 && !scalar) || axis < -rank || axis > rank)
    return n.Refuse("axis ", axis, " of rank ", rank);
  n.Out("Out", n.Make("Flatten", {n.In("X")}, {{"axis", axis}}));
}

void WriteFlattenRange(NodeWriter& n) {
  if (n.Rank("X") == 0) return n.OutReshaped("Out", n.In("X"));
  const int64_t begin = n.Axis(n.Int("start_axis"), "X"), end = n.Axis(n.Int("stop_axis"), "X");
  JoinDims(n, n.In("X"), static_cast<int>(begin), static_cast<int>(end) + 1);
}

// The axis of an operator that may be given it as an operand, which must be constant.
int64_t GivenAxis(NodeWriter& n, const char* tensor, std::string_view of, int more = 0) {
  int64_t axis = n.Int("axis");
  if (n.Has(tensor)) {
    const Ints given = n.RequiredInts(tensor);
    axis = given.size() == 1 ? given[0] : std::numeric_limits<int32_t>::max();
  }
  return n.Axis(axis, of, more);
}

bool AreAllAlike(NodeWriter& n) {
  for (size_t k = 0; k < n.Count("X"); ++k)
    if (n.dtype("X", k) != n.dtype("X") || n.shape("X", k).rank() != n.shape("X").rank()) {
      n.Refuse("operand ", k, " has another element type or rank than the first one");
      return false;
    }
  return n.Count("X") > 0;
}

void WriteConcat(NodeWriter& n) {
  if (!AreAllAlike(n)) return;
  const int64_t axis = GivenAxis(n, "AxisTensor", "X");
  Names parts;
  for (size_t k = 0; k < n.Count("X"); ++k) parts.push_back(n.In("X", k));
  n.Out("Out", n.Make("Concat", std::move(parts), {{"axis", axis}}));
}

void WriteStack(NodeWriter& n) {
  if (!AreAllAlike(n)) return;
  const int64_t axis = n.Axis(n.Int("axis"), "X", 1);
  Names parts;
  for (size_t k = 0; k < n.Count("X"); ++k) parts.push_back(n.Unsqueeze(n.In("X", k), {axis}));
  n.Out("Y", n.Make("Concat", std::move(parts), {{"axis", axis}}));
}

Names Cut(NodeWriter& n, const Ints& sections, int64_t axis) {
  return n.MakeMany("Split", {n.In("X"), n.Vector(sections)}, sections.size(), {{"axis", axis}});
}

void WriteSplit(NodeWriter& n) {
  if (n.Count("SectionsTensorList") > 0) return n.Refuse("its sections are operands");
  const int64_t axis = GivenAxis(n, "AxisTensor", "X");
  const size_t count = n.Outputs("Out");
  if (n.Has("SectionsTensor")) {
    const Names parts =
        n.MakeMany("Split", {n.In("X"), n.AsLongs("SectionsTensor")}, count, {{"axis", axis}});
    for (size_t k = 0; k < count; ++k) n.Out("Out", parts[k], k);
    return;
  }
  Ints sections = n.IntList("sections");
  const Shape& x = n.shape("X");
  const int64_t dim = x.rank() > 0 ? x[static_cast<int>(axis)] : -1;
  if (n.Bool("uneven") && (dim < 0 || dim % static_cast<int64_t>(count) != 0))
    return n.Refuse("its parts may not be equal");
  if (sections.empty() && dim >= 0 && n.Int("num") > 0) sections.assign(count, dim / n.Int("num"));
  const auto open = std::find(sections.begin(), sections.end(), -1);
  if (open != sections.end()) {
    if (dim < 0) return n.Refuse("one of its sections is open, and so is what it cuts");
    *open = dim - (std::accumulate(sections.begin(), sections.end(), int64_t{0}) + 1);
  }
  if (sections.size() != count && !sections.empty())
    return n.Refuse("it has ", sections.size(), " sections and ", count, " outputs");
  const Names made = sections.empty() ? n.MakeMany("Split", {n.In("X")}, count, {{"axis", axis}})
                                      : Cut(n, sections, axis);
  for (size_t k = 0; k < count; ++k) n.Out("Out", made[k], k);
}

void WriteItems(NodeWriter& n, const char* slot) {
  const int64_t axis = n.Axis(n.Int("axis"), "X");
  const size_t count = n.Outputs(slot);
  if (count == 0) return n.Refuse("it has no outputs");
  const Names made = Cut(n, Ints(count, 1), axis);
  for (size_t k = 0; k < count; ++k)
    if (n.Wants(slot, k)) n.Out(slot, n.Squeeze(made[k], {axis}), k);
}
void WriteUnstack(NodeWriter& n) { WriteItems(n, "Y"); }
void WriteUnbind(NodeWriter& n) { WriteItems(n, "Out"); }

void WriteSliced(NodeWriter& n, const Ints& steps) {
  const Numbers starts = NumbersOf(n, "StartsTensorList", "StartsTensor", "starts");
  const Numbers ends = NumbersOf(n, "EndsTensorList", "EndsTensor", "ends");
  Ints axes = n.IntList("axes"), dropped = n.IntList("decrease_axis");
  for (int64_t& a : axes) a = n.Axis(a, "Input");
  for (int64_t& a : dropped) a = n.Axis(a, "Input");
  for (const Numbers* list : {&starts, &ends})
    if (list->known && list->known->size() != axes.size())
      return n.Refuse("it has ", axes.size(), " axes, and not as many bounds");
  std::string x = n.In("Input");
  if (!axes.empty()) {
    Names inputs = {x, starts.name, ends.name, n.Vector(axes)};
    if (!steps.empty()) inputs.push_back(n.Vector(steps));
    x = n.Make("Slice", std::move(inputs));
  }
  if (dropped.empty()) return n.Out("Out", x);
  // Of a vector without its only dimension a number is left, of rank 0 or 1.
  if (static_cast<int>(dropped.size()) == n.Rank("Input")) return n.OutReshaped("Out", x);
  n.Out("Out", n.Squeeze(x, dropped));
}
void WriteSlice(NodeWriter& n) { WriteSliced(n, {}); }

void WriteStridedSlice(NodeWriter& n) {
  if (n.Text("bounds") == "from_end") {
    const Ints& dropped = n.IntList("decrease_axis");
    if (!dropped.empty() ||
        n.Count("StartsTensorList") + n.Count("EndsTensorList") + n.Count("StridesTensorList") > 0)
      return n.Refuse("its bounds are lists of operands");
    const auto given = [&](const char* tensor, const char* attribute) {
      if (n.Has(tensor)) return n.AsLongs(tensor);
      const Ints& list = n.IntList(attribute);
      return list.empty() ? std::string() : n.Vector(list);
    };
    Names inputs = {n.In("Input"), given("StartsTensor", "starts"), given("EndsTensor", "ends"),
                    given("AxesTensor", "axes"), given("StridesTensor", "strides")};
    while (inputs.back().empty()) inputs.pop_back();
    return n.Out("Out", n.Make("Slice", std::move(inputs)));
  }
  if (n.Count("StridesTensorList") + n.Count("StridesTensor") > 0)
    return n.Refuse("its strides are operands");
  const Ints& steps = n.IntList("strides");
  if (std::any_of(steps.begin(), steps.end(), [](int64_t s) { return s < 1; }))
    return n.Refuse("it goes backwards");
  if (steps.size() != n.IntList("axes").size()) return n.Refuse("it has no stride for each axis");
  WriteSliced(n, steps);
}

void WriteExpandV2(NodeWriter& n) {
  if (n.Bool("mutual") && n.Has("Shape"))
    return n.Out("Out", n.Make("Expand", {n.In("X"), n.AsLongs("Shape")}));
  if (n.Count("expand_shapes_tensor") > 0 || n.Has("Shape")) {
    const auto known = n.ConstantInts("Shape");
    if (!known) return n.Refuse("its shape is an operand");
  }
  Ints shape = n.Has("Shape") ? *n.ConstantInts("Shape") : n.IntList("shape");
  for (int64_t& d : shape) d = d < 0 ? 1 : d;  // which keeps what is there
  n.Out("Out", n.Make("Expand", {n.In("X"), n.Vector(shape)}));
}

void WriteExpandAs(NodeWriter& n) {
  if (n.Has("Y")) {
    n.Out("Out", n.Make("Expand", {n.In("X"), n.Make("Shape", {n.In("Y")})}));
    return;
  }
  n.Out("Out", n.Make("Expand", {n.In("X"), n.Vector(n.IntList("target_shape"))}));
}

void WriteRepeated(NodeWriter& n, const char* list, const char* tensor, const char* attribute) {
  const Numbers times = NumbersOf(n, list, tensor, attribute);
  if (!times.known) return n.Refuse("how often it repeats X is an operand");
  const auto rank = static_cast<size_t>(n.Rank("X"));
  Ints counts = *times.known;
  std::string x = n.In("X");
  if (counts.size() < rank) counts.insert(counts.begin(), rank - counts.size(), 1);
  if (counts.size() > rank) {
    Ints front(counts.size() - rank);
    std::iota(front.begin(), front.end(), 0);
    x = n.Unsqueeze(x, front);
  }
  n.Out("Out", counts.empty() ? x : n.Make("Tile", {x, n.Vector(counts)}));
}
void WriteTile(NodeWriter& n) {
  if (n.Bool("same_rank") && n.Has("RepeatTimes"))
    return n.Out("Out", n.Make("Tile", {n.In("X"), n.AsLongs("RepeatTimes")}));
  WriteRepeated(n, "repeat_times_tensor", "RepeatTimes", "repeat_times");
}
void WriteExpand(NodeWriter& n) {
  WriteRepeated(n, "expand_times_tensor", "ExpandTimes", "expand_times");
}

// `before`, `after`: of each dimension.
void WritePadded(NodeWriter& n, const Ints& before, const Ints& after, const std::string& mode,
                 double value) {
  static constexpr std::pair<std::string_view, std::string_view> kModes[] = {
      {"constant", "constant"}, {"reflect", "reflect"}, {"edge", "edge"}, {"replicate", "edge"}};
  std::string_view known;
  for (const auto& [theirs, ours] : kModes)
    if (theirs == mode) known = ours;
  if (known.empty()) return n.Refuse("its mode is '", mode, "'");
  Ints pads = before;
  pads.insert(pads.end(), after.begin(), after.end());
  if (std::any_of(pads.begin(), pads.end(), [](int64_t p) { return p < 0; }))
    return n.Refuse("it has negative paddings");
  Names inputs = {n.In("X"), n.Vector(pads)};
  if (known == "constant") inputs.push_back(n.Scalar(value, n.dtype("X")));
  n.Out("Out", n.Make("Pad", std::move(inputs), {{"mode", std::string(known)}}));
}

void WritePad(NodeWriter& n) {
  const auto rank = static_cast<size_t>(n.Rank("X"));
  const std::string& mode = n.Text("mode");
  if (mode == "symmetric" || mode == "wrap")
    return n.Refuse("opset ", kOpset, " has no padding '", mode, "'");
  Ints axes = n.IntList("axes");
  if (n.Has("Axes")) axes = n.RequiredInts("Axes");
  std::string amounts;
  if (n.Has("Paddings") && !n.ConstantInts("Paddings")) {
    if (!n.Bool("before_first") || !axes.empty() || n.Has("Axes"))
      return n.Refuse("its paddings are an operand");
    amounts = n.AsLongs("Paddings");
  } else {
    const Ints given = n.Has("Paddings") ? *n.ConstantInts("Paddings") : n.IntList("paddings");
    const bool some = n.Has("Axes") || !axes.empty();
    const size_t count = some ? axes.size() : rank;
    if (given.size() != 2 * count || rank == 0)
      return n.Refuse("it has ", given.size(), " paddings");
    Ints pads(2 * rank);
    for (size_t k = 0; k < count; ++k) {
      const auto i = some ? static_cast<size_t>(n.Axis(axes[k], "X")) : k;
      pads[i] = given[n.Bool("before_first") ? k : 2 * k];
      pads[rank + i] = given[n.Bool("before_first") ? count + k : 2 * k + 1];
    }
    amounts = n.Vector(pads);
  }
  Names inputs = {n.In("X"), amounts};
  if (n.Has("Value"))
    inputs.push_back(n.AsScalar("Value"));
  else if (mode == "constant")
    inputs.push_back(n.Scalar(n.Real("pad_value"), n.dtype("X")));
  n.Out("Out", n.Make("Pad", std::move(inputs), {{"mode", mode}}));
}

// `first`: the dimension of the first pair; from there on, or backwards.
void WritePadOfPlanes(NodeWriter& n, int rank, const char* value, int first, int step) {
  if (n.Has("Paddings")) return n.Refuse("its paddings are an operand");
  const Ints& pads = n.IntList("paddings");
  if (n.Rank("X") != rank || pads.size() != 2 * static_cast<size_t>(rank - 2))
    return n.Refuse("it has ", pads.size(), " paddings for rank ", n.Rank("X"));
  Ints before(static_cast<size_t>(rank)), after(static_cast<size_t>(rank));
  for (size_t k = 0; 2 * k < pads.size(); ++k) {
    const auto at = static_cast<size_t>(first + step * static_cast<int>(k));
    before[at] = pads[2 * k];
    after[at] = pads[2 * k + 1];
  }
  WritePadded(n, before, after, n.Text("mode"), n.Real(value));
}
void WritePad2d(NodeWriter& n) {
  WritePadOfPlanes(n, 4, "pad_value", n.Text("data_format") == "NHWC" ? 1 : 2, 1);
}
void WritePad3d(NodeWriter& n) {
  WritePadOfPlanes(n, 5, "value", n.Text("data_format") == "NDHWC" ? 3 : 4, -1);
}

void WriteShapeOf(NodeWriter& n) {
  n.Out("Out", n.CastTo(n.Make("Shape", {n.In("Input")}), DType::kI32));
}
void WriteSize(NodeWriter& n) { n.OutReshaped("Out", n.Make("Size", {n.In("Input")})); }

// A tensor of one element, of which ONNX's operator makes more.
Attributes OneElement(NodeWriter& n, double value, DType dtype) {
  Tensor t = Tensor::Zeros(dtype, {1});
  switch (dtype) {
    case DType::kF32:
      *t.mutable_data<float>() = static_cast<float>(value);
      break;
    case DType::kF64:
      *t.mutable_data<double>() = value;
      break;
    case DType::kBool:
      *t.mutable_data<bool>() = value != 0;
      break;
    case DType::kI32:
      *t.mutable_data<int32_t>() = static_cast<int32_t>(value);
      break;
    case DType::kI64:
      *t.mutable_data<int64_t>() = static_cast<int64_t>(value);
      break;
    default:
      n.Refuse("makes ", Name(dtype), ", which is not written");
  }
  const bool whole = dtype == DType::kI32 || dtype == DType::kI64;
  if (whole && (value != std::floor(value) || std::abs(value) > 2147483647))
    n.Refuse("the number ", value, " is none of ", Name(dtype));
  return {{"value", std::make_shared<const Tensor>(std::move(t))}};
}

void WriteFillConstant(NodeWriter& n) {
  double value = n.Real("value");
  if (const std::string& text = n.Text("str_value"); !text.empty())
    value = std::strtod(text.c_str(), nullptr);
  const DType dtype =
      n.Int("dtype") == -1 ? n.dtype("ValueTensor") : DTypeFromProto(n.Int("dtype"));
  const Numbers shape = NumbersOf(n, "ShapeTensorList", "ShapeTensor", "shape");
  if (n.Has("ValueTensor")) {
    if (n.dtype("ValueTensor") != dtype) return n.Refuse("ValueTensor is of another element type");
    return n.Out("Out", n.Make("Expand", {n.AsScalar("ValueTensor"), shape.name}));
  }
  n.Out("Out", n.Make("ConstantOfShape", {shape.name}, OneElement(n, value, dtype)));
}

void WriteFilledLike(NodeWriter& n, double value) {
  DType dtype = n.out_dtype("Out");
  if (dtype == DType::kUnknown) return n.Refuse("the element type of its result is not known");
  const std::string dims = n.Make("Shape", {n.In("X")});
  n.Out("Out", n.Make("ConstantOfShape", {dims}, OneElement(n, value, dtype)));
}
void WriteFillAnyLike(NodeWriter& n) { WriteFilledLike(n, n.Real("value")); }
void WriteZerosLike(NodeWriter& n) { WriteFilledLike(n, 0); }

void WriteRange(NodeWriter& n) {
  if (!n.IsOneOf("Start", {DType::kI32, DType::kI64, DType::kF32, DType::kF64})) return;
  for (const char* slot : {"End", "Step"})
    if (n.dtype(slot) != n.dtype("Start")) return n.Refuse(slot, " is of another element type");
  n.Out("Out", n.Make("Range", {n.AsScalar("Start"), n.AsScalar("End"), n.AsScalar("Step")}));
}

void WriteFlip(NodeWriter& n) {
  if (n.Has("AxisTensor")) return n.Refuse("its axes are an operand");
  Ints axes = n.IntList("axis").empty() ? n.IntList("dims") : n.IntList("axis");
  if (axes.empty()) return n.Refuse("it names no axes");
  for (int64_t& a : axes) a = n.Axis(a, "X");
  const Ints starts(axes.size(), -1), steps(axes.size(), -1);
  const Ints ends(axes.size(), std::numeric_limits<int64_t>::min());
  n.Out("Out", n.Make("Slice", {n.In("X"), n.Vector(starts), n.Vector(ends), n.Vector(axes),
                                n.Vector(steps)}));
}

void WriteTriangle(NodeWriter& n) {
  if (n.Rank("X") < 2) return n.Refuse("X is no matrix");
  const std::string diagonal =
      n.Has("Diagonal") ? n.AsScalar("Diagonal") : n.Whole(n.Int("diagonal"));
  n.Out("Out",
        n.Make("Trilu", {n.In("X"), diagonal}, {{"upper", int64_t{n.Bool("lower") ? 0 : 1}}}));
}

// Channels that are seen as groups in turn.
void ShuffleChannels(NodeWriter& n, int64_t groups) {
  const Shape& x = n.shape("X");
  if (n.Rank("X") != 4 || x[1] < 0 || groups < 1 || x[1] % groups != 0)
    return n.Refuse("the channels of X, ", x.ToString(), ", are no ", groups, " groups");
  const int64_t open = (x[2] < 0) + (x[3] < 0);
  if (open > 1) return n.Refuse("the shape of X is not known: ", x.ToString());
  const std::string apart = n.Reshape(n.In("X"), {0, groups, x[1] / groups, x[2], x[3]});
  n.Out("Out", n.Reshape(n.Transpose(apart, {0, 2, 1, 3, 4}), {0, x[1], x[2], x[3]}));
}
void WriteShuffleChannel(NodeWriter& n) { ShuffleChannels(n, n.Int("group")); }
void WriteChannelShuffle(NodeWriter& n) {
  if (n.Text("data_format") != "NCHW") return n.Refuse("its channels come last");
  ShuffleChannels(n, n.Int("groups"));
}
// A box of X: sizes from offsets on.
void WriteCrop(NodeWriter& n) {
  const Ints begins = n.Has("Offsets") ? n.RequiredInts("Offsets") : n.IntList("offsets");
  const Ints sizes = n.Has("Shape") ? n.RequiredInts("Shape") : n.IntList("shape");
  const auto rank = static_cast<size_t>(n.Rank("X"));
  if (n.Count("ShapeTensor") + n.Count("OffsetsTensor") > 0)
    return n.Refuse("its box is made of operands");
  if (begins.size() != rank || sizes.size() != rank || rank == 0)
    return n.Refuse("it cuts ", begins.size(), " axes");
  Ints ends(rank), axes(rank);
  for (size_t i = 0; i < rank; ++i) {
    axes[i] = static_cast<int64_t>(i);
    ends[i] = sizes[i] < 0 ? std::numeric_limits<int64_t>::max() : begins[i] + sizes[i];
  }
  n.Out("Out", n.Make("Slice", {n.In("X"), n.Vector(begins), n.Vector(ends), n.Vector(axes)}));
}

// Blocks of pixels that become channels, or the other way round.
void WriteBlocks(NodeWriter& n) {
  const bool to_space = n.type() == "pixel_shuffle";
  if (n.Text("data_format") != "NCHW") return n.Refuse("its channels come last");
  if (!to_space && n.Text("mode") != "DCR")
    return n.Refuse("opset ", kOpset, " has no attribute mode of such a value");
  Attributes attributes = {{"blocksize", n.Int(to_space ? "upscale_factor" : "downscale_factor")}};
  if (to_space) attributes.push_back({"mode", n.Text("mode")});
  n.Out("Out",
        n.Make(to_space ? "DepthToSpace" : "SpaceToDepth", {n.In("X")}, std::move(attributes)));
}

void WriteReverseSequence(NodeWriter& n) {
  const int64_t seq = n.Axis(n.Int("seq_axis"), "X"), batch = n.Axis(n.Int("batch_axis"), "X");
  if (seq + batch != 1) return n.Refuse("its sequences do not lie along the first two axes");
  n.Out("Out", n.Make("ReverseSequence", {n.In("X"), n.AsLongs("Lengths")},
                      {{"time_axis", seq}, {"batch_axis", batch}}));
}

constexpr Handler kShapeTable[] = {
    {"channel_shuffle", &WriteChannelShuffle},
    {"concat", &WriteConcat},
    {"crop_tensor", &WriteCrop},
    {"expand", &WriteExpand},
    {"expand_as_v2", &WriteExpandAs},
    {"expand_v2", &WriteExpandV2},
    {"fill_any_like", &WriteFillAnyLike},
    {"fill_constant", &WriteFillConstant},
    {"fill_zeros_like", &WriteZerosLike},
    {"flatten", &WriteFlatten},
    {"flatten2", &WriteFlatten},
    {"flatten_contiguous_range", &WriteFlattenRange},
    {"flip", &WriteFlip},
    {"pad", &WritePad},
    {"pad2d", &WritePad2d},
    {"pad3d", &WritePad3d},
    {"pixel_shuffle", &WriteBlocks},
    {"pixel_unshuffle", &WriteBlocks},
    {"range", &WriteRange},
    {"reshape", &WriteReshape},
    {"reshape2", &WriteReshape},
    {"reverse_sequence", &WriteReverseSequence},
    {"shape", &WriteShapeOf},
    {"shuffle_channel", &WriteShuffleChannel},
    {"size", &WriteSize},
    {"slice", &WriteSlice},
    {"split", &WriteSplit},
    {"squeeze", &WriteSqueeze},
    {"squeeze2", &WriteSqueeze},
    {"stack", &WriteStack},
    {"strided_slice", &WriteStridedSlice},
    {"tile", &WriteTile},
    {"transpose", &WriteTranspose},
    {"transpose2", &WriteTranspose},
    {"tril_triu", &WriteTriangle},
    {"unbind", &WriteUnbind},
    {"unsqueeze", &WriteUnsqueeze},
    {"unsqueeze2", &WriteUnsqueeze},
    {"unstack", &WriteUnstack},
};

}  // namespace

std::span<const Handler> ShapeHandlers() { return kShapeTable; }

}  // namespace heddle::offload::to_onnx
