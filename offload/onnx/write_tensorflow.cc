// heddle's operators of TensorFlow's names for which ONNX has words.
#include <algorithm>
#include <limits>

#include "core/shapes.h"
#include "offload/onnx/handlers.h"

namespace heddle::offload::to_onnx {
namespace {

void WriteGatherV2(NodeWriter& n) {
  if (n.Int("batch_dims") != 0) return n.Refuse("it has batch_dims");
  if (!n.IsOneOf("indices", {DType::kI32, DType::kI64})) return;
  int64_t axis = 0;
  if (n.Has("axis")) {
    const Ints given = n.RequiredInts("axis");
    if (given.size() != 1) return n.Refuse("its axis is not one number");
    axis = n.Axis(given[0], "params");
  }
  n.Out("output", n.Make("Gather", {n.In("params"), n.In("indices")}, {{"axis", axis}}));
}

void WriteTfGatherNd(NodeWriter& n) {
  if (!n.IsOneOf("indices", {DType::kI32, DType::kI64})) return;
  if (n.Rank("indices") == 0 || n.Rank("params") == 0) return n.Refuse("it picks from one number");
  const bool wide = n.dtype("indices") == DType::kI64;
  const std::string indices = wide ? n.In("indices") : n.CastTo(n.In("indices"), DType::kI64);
  n.Out("output", n.Make("GatherND", {n.In("params"), indices}));
}

void WritePadV2(NodeWriter& n) {
  const Ints pairs = n.RequiredInts("paddings");
  const auto rank = static_cast<size_t>(n.Rank("input"));
  if (pairs.size() != 2 * rank || rank == 0) return n.Refuse("it has ", pairs.size(), " paddings");
  Ints pads(2 * rank);
  for (size_t i = 0; i < rank; ++i) {
    pads[i] = pairs[2 * i];
    pads[rank + i] = pairs[2 * i + 1];
  }
  Names inputs = {n.In("input"), n.Vector(pads)};
  if (n.Has("constant_values")) inputs.push_back(n.AsScalar("constant_values"));
  n.Out("output", n.Make("Pad", std::move(inputs), {{"mode", std::string("constant")}}));
}

void WriteTfTranspose(NodeWriter& n) {
  Ints perm = n.RequiredInts("perm");
  for (int64_t& a : perm) a = n.Axis(a, "x");
  if (static_cast<int>(perm.size()) != n.Rank("x"))
    return n.Refuse("it orders ", perm.size(), " axes");
  n.Out("y", perm.empty() ? n.In("x") : n.Transpose(n.In("x"), perm));
}

void WriteTfSlice(NodeWriter& n) {
  const Ints begins = n.RequiredInts("begin"), sizes = n.RequiredInts("size");
  const auto rank = static_cast<size_t>(n.Rank("input"));
  if (begins.size() != rank || sizes.size() != rank || rank == 0)
    return n.Refuse("it cuts ", begins.size(), " axes");
  Ints ends(rank), axes(rank);
  for (size_t i = 0; i < rank; ++i) {
    axes[i] = static_cast<int64_t>(i);
    ends[i] = sizes[i] < 0 ? std::numeric_limits<int64_t>::max() : begins[i] + sizes[i];
  }
  n.Out("output",
        n.Make("Slice", {n.In("input"), n.Vector(begins), n.Vector(ends), n.Vector(axes)}));
}

void WriteTfStridedSlice(NodeWriter& n) {
  const Ints begins = n.RequiredInts("begin"), ends = n.RequiredInts("end"),
             strides = n.RequiredInts("strides");
  if (n.Int("ellipsis_mask") != 0 || n.Int("new_axis_mask") != 0)
    return n.Refuse("it leaves axes out or adds some");
  const size_t count = begins.size();
  if (ends.size() != count || strides.size() != count || count > 31 ||
      static_cast<int>(count) > n.Rank("input"))
    return n.Refuse("it cuts ", count, " axes");
  Ints from, to, axes, steps, dropped;
  for (size_t i = 0; i < count; ++i) {
    const auto has = [&](const char* mask) { return (n.Int(mask) >> i & 1) != 0; };
    const auto axis = static_cast<int64_t>(i);
    if (strides[i] < 1) return n.Refuse("it goes backwards");
    axes.push_back(axis);
    if (has("shrink_axis_mask")) {
      if (strides[i] != 1) return n.Refuse("it drops an axis of which it takes a part");
      from.push_back(begins[i]);
      to.push_back(begins[i] == -1 ? std::numeric_limits<int64_t>::max() : begins[i] + 1);
      steps.push_back(1);
      dropped.push_back(axis);
      continue;
    }
    from.push_back(has("begin_mask") ? 0 : begins[i]);
    to.push_back(has("end_mask") ? std::numeric_limits<int64_t>::max() : ends[i]);
    steps.push_back(strides[i]);
  }
  if (axes.empty()) return n.Out("output", n.In("input"));
  const std::string part = n.Make(
      "Slice", {n.In("input"), n.Vector(from), n.Vector(to), n.Vector(axes), n.Vector(steps)});
  n.Out("output", n.Squeeze(part, dropped));
}

void WriteSelect(NodeWriter& n) {
  if (n.dtype("condition") != DType::kBool) return n.Refuse("its condition is no bool");
  if (n.Rank("condition") != n.Rank("t") || n.Rank("t") != n.Rank("e") ||
      n.dtype("t") != n.dtype("e"))
    return n.Refuse("its operands have several ranks");
  n.Out("output", n.Make("Where", {n.In("condition"), n.In("t"), n.In("e")}));
}

void WriteFill(NodeWriter& n) {
  n.Out("output", n.Make("Expand", {n.AsScalar("value"), n.AsLongs("dims")}));
}

void WriteTfRange(NodeWriter& n) {
  if (!n.IsOneOf("start", {DType::kI32, DType::kI64, DType::kF32, DType::kF64})) return;
  for (const char* slot : {"limit", "delta"})
    if (n.dtype(slot) != n.dtype("start")) return n.Refuse(slot, " is of another element type");
  n.Out("output", n.Make("Range", {n.AsScalar("start"), n.AsScalar("limit"), n.AsScalar("delta")}));
}

void WriteTfPow(NodeWriter& n) {
  if (n.dtype("x") != n.dtype("y")) return n.Refuse("x and y are of several element types");
  if (n.IsFloat("x")) n.Out("z", n.Make("Pow", {n.In("x"), n.In("y")}));
}

void WriteFloorMod(NodeWriter& n) {
  if (n.dtype("x") != n.dtype("y")) return n.Refuse("x and y are of several element types");
  if (n.IsOneOf("x", {DType::kI32, DType::kI64})) n.Out("z", n.Make("Mod", {n.In("x"), n.In("y")}));
}

void WriteTfCumsum(NodeWriter& n) {
  if (!n.IsOneOf("x", {DType::kI32, DType::kI64, DType::kF32, DType::kF64})) return;
  const Ints axis = n.RequiredInts("axis");
  if (axis.size() != 1 || n.Rank("x") == 0) return n.Refuse("its axis is not one number");
  n.Out("out", n.Make("CumSum", {n.In("x"), n.Whole(n.Axis(axis[0], "x"))},
                      {{"exclusive", int64_t{n.Bool("exclusive")}},
                       {"reverse", int64_t{n.Bool("reverse")}}}));
}

void WriteTfTopK(NodeWriter& n) {
  if (!n.IsOneOf("input", {DType::kI32, DType::kI64, DType::kF32, DType::kF64})) return;
  if (n.Rank("input") == 0) return n.Refuse("its input is one number");
  const Names made = n.MakeMany("TopK", {n.In("input"), n.AsLongs("k")}, 2,
                                {{"axis", int64_t{-1}}, {"sorted", int64_t{1}}});
  n.Out("values", made[0]);
  const DType index = n.out_dtype("indices") == DType::kUnknown
                          ? DTypeFromProto(n.Int("index_type"))
                          : n.out_dtype("indices");
  n.Out("indices", index == DType::kI64 ? made[1] : n.CastTo(made[1], index));
}

void WriteTfArg(NodeWriter& n, const char* type) {
  if (!n.IsOneOf("input", {DType::kI32, DType::kI64, DType::kF32, DType::kF64})) return;
  const Ints axis = n.RequiredInts("dimension");
  if (axis.size() != 1 || n.Rank("input") == 0) return n.Refuse("its axis is not one number");
  if (n.shape("input").is_static() && n.shape("input").numel() == 0)
    return n.Refuse("its input has no elements");
  const std::string made =
      n.Make(type, {n.In("input")}, {{"axis", n.Axis(axis[0], "input")}, {"keepdims", int64_t{0}}});
  const DType wanted = DTypeFromProto(n.Int("output_type"));
  n.Out("output", wanted == DType::kI64 ? made : n.CastTo(made, wanted));
}
void WriteTfArgMax(NodeWriter& n) { WriteTfArg(n, "ArgMax"); }
void WriteTfArgMin(NodeWriter& n) { WriteTfArg(n, "ArgMin"); }

// Images of [N, H, W, C] to a constant size.
void WriteTfResize(NodeWriter& n, bool nearest) {
  if (!n.IsOneOf("images", {DType::kF32})) return;
  const Ints size = n.RequiredInts("size");
  const Shape& x = n.shape("images");
  if (n.Rank("images") != 4 || size.size() != 2) return n.Refuse("its images have no two sizes");
  const bool corners = n.Bool("align_corners"), half = n.Bool("half_pixel_centers");
  if (nearest && (corners || half)) return n.Refuse("it rounds to a pixel in a way of its own");
  if (corners && half) return n.Refuse("it aligns corners and centres");
  for (int i = 0; i < 2; ++i) {
    const auto wanted = size[static_cast<size_t>(i)];
    if (x[i + 1] < 1 || wanted < 1) return n.Refuse("the sizes that it resizes are not known");
    if (wanted == 1 && x[i + 1] != 1) return n.Refuse("it makes one pixel of several");
    if (nearest && wanted % x[i + 1] != 0) return n.Refuse("its scale is no whole number");
  }
  if (x[3] < 0) return n.Refuse("the number of channels is not known");
  const std::string image = n.Transpose(n.In("images"), {0, 3, 1, 2});
  const std::string sizes =
      n.Make("Concat", {n.DimsOf(image, 0, 2), n.Vector(size)}, {{"axis", int64_t{0}}});
  const char* place = corners ? "align_corners" : half ? "half_pixel" : "asymmetric";
  Attributes attributes = {{"mode", std::string(nearest ? "nearest" : "linear")},
                           {"coordinate_transformation_mode", std::string(place)}};
  if (nearest) attributes.push_back({"nearest_mode", std::string("floor")});
  const std::string made = n.Make("Resize", {image, "", "", sizes}, std::move(attributes));
  n.Out("resized_images", n.Transpose(made, {0, 2, 3, 1}));
}
void WriteTfBilinear(NodeWriter& n) { WriteTfResize(n, false); }
void WriteTfNearest(NodeWriter& n) { WriteTfResize(n, true); }

constexpr Handler kTensorFlowTable[] = {
    {"tf_arg_max", &WriteTfArgMax},
    {"tf_arg_min", &WriteTfArgMin},
    {"tf_cumsum", &WriteTfCumsum},
    {"tf_fill", &WriteFill},
    {"tf_floor_mod", &WriteFloorMod},
    {"tf_gather_nd", &WriteTfGatherNd},
    {"tf_gather_v2", &WriteGatherV2},
    {"tf_pad_v2", &WritePadV2},
    {"tf_pow", &WriteTfPow},
    {"tf_range", &WriteTfRange},
    {"tf_resize_bilinear", &WriteTfBilinear},
    {"tf_resize_nearest_neighbor", &WriteTfNearest},
    {"tf_select", &WriteSelect},
    {"tf_slice", &WriteTfSlice},
    {"tf_strided_slice", &WriteTfStridedSlice},
    {"tf_top_k_v2", &WriteTfTopK},
    {"tf_transpose", &WriteTfTranspose},
};

}  // namespace

std::span<const Handler> TensorFlowHandlers() { return kTensorFlowTable; }

}  // namespace heddle::offload::to_onnx
