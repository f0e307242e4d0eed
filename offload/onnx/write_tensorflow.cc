// heddle's operators of TensorFlow's names for which ONNX has words.
#include <algorithm>
#include <limits>

#include "core/shapes.h"
#include "offload/onnx/handlers.h"

namespace heddle::offload::to_onnx {
namespace {

void WriteMaskedSlice(NodeWriter& n) {
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

// Images of [N, H, W, C] to a constant size.
void WriteResizeImages(NodeWriter& n) {
  const std::string& method = n.Text("method");
  const bool nearest = method == "nearest";
  if (!nearest && method != "bilinear") return n.Refuse("it resizes by ", method);
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

constexpr Handler kTensorFlowTable[] = {
    {"resize_images", &WriteResizeImages},
    {"masked_slice", &WriteMaskedSlice},
};

}  // namespace

std::span<const Handler> TensorFlowHandlers() { return kTensorFlowTable; }

}  // namespace heddle::offload::to_onnx
