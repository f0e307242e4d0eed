// Convolutions, pooling, products of matrices, resizing.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "offload/onnx/handlers.h"

namespace heddle::offload::to_onnx {
namespace {

bool IsLast(const std::string& format) { return !format.empty() && format.back() == 'C'; }

// [N, spatial..., C] as [N, C, spatial...], and back.
std::string ChannelsFirst(NodeWriter& n, const std::string& x, int rank) {
  Ints perm = {0, rank - 1};
  for (int i = 1; i < rank - 1; ++i) perm.push_back(i);
  return n.Transpose(x, perm);
}
std::string ChannelsLast(NodeWriter& n, const std::string& x, int rank) {
  Ints perm = {0};
  for (int i = 2; i < rank; ++i) perm.push_back(i);
  perm.push_back(1);
  return n.Transpose(x, perm);
}

// Attributes of sliding windows over `spatial` dimensions.
struct Windows {
  size_t spatial = 0;
  bool last = false;  // channels
  Ints sizes;         // of the operand; -1: open
  Ints strides, begins, ends;
  bool same = false;  // paddings follow from sizes that are not known

  Ints pads() const {
    Ints all = begins;
    all.insert(all.end(), ends.begin(), ends.end());
    return all;
  }
};

bool ReadWindows(NodeWriter& n, std::string_view slot, const Ints& kernel, Windows* w) {
  const int rank = n.Rank(slot);
  if (rank < 3) {
    n.Refuse(slot, " has rank ", rank);
    return false;
  }
  w->spatial = static_cast<size_t>(rank - 2);
  w->last = IsLast(n.Text("data_format"));
  for (size_t i = 0; i < w->spatial; ++i)
    w->sizes.push_back(n.shape(slot)[static_cast<int>(i) + (w->last ? 1 : 2)]);
  w->strides = n.IntList("strides");
  const Ints& pads = n.IntList("paddings");
  const std::string& algorithm = n.Text("padding_algorithm");
  w->begins.assign(w->spatial, 0);
  w->ends = w->begins;
  if (w->strides.size() != w->spatial || kernel.size() != w->spatial ||
      (pads.size() != w->spatial && pads.size() != 2 * w->spatial)) {
    n.Refuse("its windows are not of ", w->spatial, " dimensions");
    return false;
  }
  for (size_t i = 0; i < w->spatial; ++i) {
    if (algorithm == "VALID") continue;
    if (algorithm == "SAME") {
      if (w->sizes[i] < 0) {
        if (w->strides[i] > kernel[i]) {
          n.Refuse("its windows leave gaps, and their padding depends on a size that is not known");
          return false;
        }
        w->same = true;
        continue;
      }
      const int64_t steps = (w->sizes[i] + w->strides[i] - 1) / w->strides[i];
      const int64_t sum =
          std::max<int64_t>(0, (steps - 1) * w->strides[i] + kernel[i] - w->sizes[i]);
      w->begins[i] = sum / 2;
      w->ends[i] = sum - sum / 2;
      continue;
    }
    w->begins[i] = pads.size() == w->spatial ? pads[i] : pads[2 * i];
    w->ends[i] = pads.size() == w->spatial ? pads[i] : pads[2 * i + 1];
    if (w->begins[i] < 0 || w->ends[i] < 0) {
      n.Refuse("it has negative paddings");
      return false;
    }
  }
  return true;
}

void AddPads(const Windows& w, Attributes* attributes) {
  if (w.same)
    attributes->push_back({"auto_pad", std::string("SAME_UPPER")});
  else
    attributes->push_back({"pads", w.pads()});
}

bool KernelOf(NodeWriter& n, Ints* kernel) {
  const Shape& filter = n.shape("Filter");
  if (!filter.is_static() || filter.rank() < 3) {
    n.Refuse("the shape of Filter is not known");
    return false;
  }
  kernel->assign(filter.begin() + 2, filter.end());
  return true;
}

void WriteConv(NodeWriter& n) {
  Ints kernel;
  Windows w;
  if (!n.IsFloat("Input") || !KernelOf(n, &kernel) || !ReadWindows(n, "Input", kernel, &w)) return;
  const int rank = n.Rank("Input");
  Ints dilations = n.IntList("dilations");
  if (n.Text("padding_algorithm") == "SAME") dilations.assign(w.spatial, 1);
  if (n.Text("padding_algorithm") == "SAME_DILATED" || n.Int("groups") == 0)
    return n.Refuse("its paddings or groups follow from sizes");
  Attributes attributes = {{"kernel_shape", kernel},
                           {"strides", w.strides},
                           {"dilations", dilations},
                           {"group", n.Int("groups")}};
  AddPads(w, &attributes);
  std::string x = n.In("Input");
  if (w.last) x = ChannelsFirst(n, x, rank);
  const std::string y = n.Make("Conv", {x, n.In("Filter")}, std::move(attributes));
  n.Out("Output", w.last ? ChannelsLast(n, y, rank) : y);
}

void WriteConvTranspose(NodeWriter& n) {
  Ints kernel;
  Windows w;
  if (!n.IsFloat("Input") || !KernelOf(n, &kernel) || !ReadWindows(n, "Input", kernel, &w)) return;
  if (n.Text("padding_algorithm") == "SAME")
    return n.Refuse("its paddings are those of the result, which is not known");
  const int rank = n.Rank("Input");
  const Ints& dilations = n.IntList("dilations");
  Ints extra = n.IntList("output_padding");
  if (const Ints& wanted = n.IntList("output_size"); !wanted.empty()) {
    extra.assign(w.spatial, 0);
    if (wanted.size() != w.spatial) return n.Refuse("its output_size has ", wanted.size());
    for (size_t i = 0; i < w.spatial; ++i) {
      if (w.sizes[i] < 0) return n.Refuse("its output_size depends on a size that is not known");
      const int64_t least = (w.sizes[i] - 1) * w.strides[i] - w.begins[i] - w.ends[i] +
                            dilations[i] * (kernel[i] - 1) + 1;
      extra[i] = wanted[i] - least;
      if (extra[i] < 0) return n.Refuse("its output_size is less than it makes");
    }
  }
  for (size_t i = 0; i < extra.size(); ++i)
    if (extra[i] >= w.strides[i]) return n.Refuse("its output_padding is not below its stride");
  Attributes attributes = {{"kernel_shape", kernel},
                           {"strides", w.strides},
                           {"dilations", dilations},
                           {"pads", w.pads()},
                           {"group", n.Int("groups")}};
  if (!extra.empty()) attributes.push_back({"output_padding", extra});
  std::string x = n.In("Input");
  if (w.last) x = ChannelsFirst(n, x, rank);
  const std::string y = n.Make("ConvTranspose", {x, n.In("Filter")}, std::move(attributes));
  n.Out("Output", w.last ? ChannelsLast(n, y, rank) : y);
}

// Windows that begin behind the operand, at its end: ONNX's readers do not agree about them.
bool EndsInside(const Windows& w, const Ints& kernel) {
  for (size_t i = 0; i < w.spatial; ++i) {
    if (w.sizes[i] < 0) {
      if (w.begins[i] != 0 || w.ends[i] != 0 || w.strides[i] > kernel[i]) return false;
      continue;
    }
    const int64_t room = w.sizes[i] - kernel[i] + w.begins[i] + w.ends[i];
    const int64_t last = (room + w.strides[i] - 1) / w.strides[i] * w.strides[i];
    if (last >= w.sizes[i] + w.begins[i]) return false;
  }
  return true;
}

// Parts of a given number, where they are windows of one size.
bool AdaptiveWindows(NodeWriter& n, Windows* w, Ints* kernel) {
  for (size_t i = 0; i < w->spatial; ++i) {
    const int64_t parts = (*kernel)[i];
    if (parts < 1 || w->sizes[i] < 1 || w->sizes[i] % parts != 0) {
      n.Refuse("its parts are not windows of one size");
      return false;
    }
    w->strides[i] = (*kernel)[i] = w->sizes[i] / parts;
  }
  w->begins.assign(w->spatial, 0);
  w->ends = w->begins;
  w->same = false;
  return true;
}

void WritePool(NodeWriter& n) {
  if (!n.IsFloat("X")) return;
  const int rank = n.Rank("X");
  if (rank < 3) return n.Refuse("X has rank ", rank);
  const bool max = n.Text("pooling_type") == "max", last = IsLast(n.Text("data_format"));
  if (n.shape("X").is_static() && n.shape("X").numel() == 0) return n.Refuse("X has no elements");
  std::string x = n.In("X");
  if (last) x = ChannelsFirst(n, x, rank);
  const auto give = [&](const std::string& y) {
    n.Out("Out", last ? ChannelsLast(n, y, rank) : y);
  };
  Ints kernel = n.IntList("ksize");
  const bool adaptive = n.Bool("adaptive");
  if (adaptive && max && !n.Bool("global_pooling"))
    return n.Refuse("its parts do not depend on the size of X");
  const bool ones = std::all_of(kernel.begin(), kernel.end(), [](int64_t k) { return k == 1; });
  if (n.Bool("global_pooling") || (adaptive && ones))
    return give(n.Make(max ? "GlobalMaxPool" : "GlobalAveragePool", {x}));
  Windows w;
  if (!ReadWindows(n, "X", kernel, &w) || (adaptive && !AdaptiveWindows(n, &w, &kernel))) return;
  const bool ceil = n.Bool("ceil_mode") && !adaptive, exclusive = n.Bool("exclusive") || adaptive;
  for (size_t i = 0; i < w.spatial; ++i) {
    if (w.begins[i] >= kernel[i] || w.ends[i] >= kernel[i])
      return n.Refuse("its paddings are as large as its windows");
    if (!max && !exclusive && (w.begins[i] != w.ends[i] || w.same))
      return n.Refuse("it counts paddings that differ at both ends");
  }
  if (ceil && (w.same || !EndsInside(w, kernel)))
    return n.Refuse("its last windows may begin behind the end of X");
  if (ceil && !max && !exclusive) return n.Refuse("it counts what windows reach behind the end");
  Attributes attributes = {{"kernel_shape", kernel}, {"strides", w.strides}};
  AddPads(w, &attributes);
  if (ceil) attributes.push_back({"ceil_mode", int64_t{1}});
  if (!max) attributes.push_back({"count_include_pad", int64_t{exclusive ? 0 : 1}});
  give(n.Make(max ? "MaxPool" : "AveragePool", {x}, std::move(attributes)));
}

bool AreFactors(NodeWriter& n) {
  if (n.dtype("X") != n.dtype("Y")) {
    n.Refuse("X is ", Name(n.dtype("X")), " and Y ", Name(n.dtype("Y")));
    return false;
  }
  return n.IsOneOf("X", {DType::kF32, DType::kF64});
}

std::string Transposed(NodeWriter& n, std::string_view slot, bool transpose) {
  const int rank = n.Rank(slot);
  if (!transpose || rank < 2) return n.In(slot);
  Ints perm(static_cast<size_t>(rank));
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return n.Transpose(n.In(slot), perm);
}

// Empty matrices have no product, or zeros: not all say the same.
bool HaveElements(NodeWriter& n) {
  for (const char* slot : {"X", "Y"}) {
    const Shape& s = n.shape(slot);
    if (!s.is_static() || s.numel() > 0) continue;
    n.Refuse(slot, " has no elements: ", s.ToString());
    return false;
  }
  return true;
}

void WriteMatmul2(NodeWriter& n) {
  if (!AreFactors(n) || !HaveElements(n)) return;
  const std::string made = n.Make(
      "MatMul", {Transposed(n, "X", n.Bool("trans_x")), Transposed(n, "Y", n.Bool("trans_y"))});
  if (n.Rank("X") == 0 || n.Rank("Y") == 0) return n.Refuse("it multiplies by one number");
  // Of two vectors: one number, of rank 0 or 1.
  if (n.Rank("X") == 1 && n.Rank("Y") == 1) return n.OutReshaped("Out", made);
  n.Out("Out", made);
}

void WriteMatmul(NodeWriter& n) {
  if (!AreFactors(n) || !HaveElements(n)) return;
  if (n.Int("head_number") != 1) return n.Refuse("it has several heads");
  if (n.Rank("X") < 2 || n.Rank("Y") < 2) return n.Refuse("it multiplies vectors");
  std::string made = n.Make("MatMul", {Transposed(n, "X", n.Bool("transpose_X")),
                                       Transposed(n, "Y", n.Bool("transpose_Y"))});
  if (n.Real("alpha") != 1) made = n.Make("Mul", {made, n.Scalar(n.Real("alpha"), n.dtype("X"))});
  n.Out("Out", made);
}

// X and Y seen as matrices that are cut at `xs` and `ys`.
std::string FlatProduct(NodeWriter& n, std::string_view x, int64_t xs, std::string_view y,
                        int64_t ys, const char* out) {
  const int x_rank = n.Rank(x), y_rank = n.Rank(y);
  if (xs < 1 || xs >= x_rank || ys < 1 || ys >= y_rank) {
    n.Refuse("it cuts its operands at ", xs, " and ", ys);
    return {};
  }
  if (xs == x_rank - 1 && ys == 1 && y_rank == 2) return n.Make("MatMul", {n.In(x), n.In(y)});
  const std::string rows = n.Make("Flatten", {n.In(x)}, {{"axis", xs}});
  const std::string columns = y_rank == 2 ? n.In(y) : n.Make("Flatten", {n.In(y)}, {{"axis", ys}});
  const std::string product = n.Make("MatMul", {rows, columns});
  if (xs == 1 && y_rank == ys + 1) return product;
  const Shape& shape = n.out_shape(out);
  if (shape.known_rank() && std::count(shape.begin(), shape.end(), -1) <= 1)
    return n.ReshapeTo(product, shape);
  Names dims = {n.DimsOf(n.In(x), 0, xs), n.DimsOf(n.In(y), ys, y_rank)};
  return n.Make("Reshape", {product, n.Make("Concat", dims, {{"axis", int64_t{0}}})});
}

void WriteMul(NodeWriter& n) {
  if (!AreFactors(n) || !HaveElements(n)) return;
  n.Out("Out", FlatProduct(n, "X", n.Int("x_num_col_dims"), "Y", n.Int("y_num_col_dims"), "Out"));
}

void WriteFc(NodeWriter& n) {
  if (!n.IsFloat("Input") || n.dtype("W") != n.dtype("Input"))
    return n.Refuse("W is of another type");
  if (n.Bool("padding_weights")) return n.Refuse("its weights are padded");
  std::string y = FlatProduct(n, "Input", n.Int("in_num_col_dims"), "W", 1, "Out");
  if (n.Has("Bias")) y = n.Make("Add", {y, n.Reshape(n.In("Bias"), {-1})});
  const std::string& activation = n.Text("activation_type");
  if (activation == "relu")
    y = n.Make("Relu", {y});
  else if (!activation.empty())
    return n.Refuse("its activation is '", activation, "'");
  n.Out("Out", y);
}

void WriteBmm(NodeWriter& n) {
  if (AreFactors(n) && HaveElements(n)) n.Out("Out", n.Make("MatMul", {n.In("X"), n.In("Y")}));
}

void WriteAddmm(NodeWriter& n) {
  if (!AreFactors(n) || !HaveElements(n)) return;
  const DType t = n.dtype("X");
  n.Out("Out",
        n.Make("Gemm", {n.In("X"), n.In("Y"), n.In("Input")},
               {{"alpha", n.Float(n.Real("Alpha"), t)}, {"beta", n.Float(n.Real("Beta"), t)}}));
}

// Images of [N, C, H, W] by sizes or scales that attributes give. `exact`: where a scale is given,
// pixels lie by it and not by what the sizes say.
void WriteResize(NodeWriter& n, const Floats& scales, bool exact, bool nearest) {
  if (!n.IsOneOf("X", {DType::kF32})) return;
  if (n.Count("SizeTensor") + n.Count("OutSize") + n.Count("Scale") > 0)
    return n.Refuse("its sizes are an operand");
  const int rank = n.Rank("X");
  if (rank != 4) return n.Refuse("X has rank ", rank);
  const bool last = IsLast(n.Text("data_layout"));
  const Shape &x = n.shape("X"), &out = n.out_shape("Out");
  const bool corners = n.Bool("align_corners"), half = !corners && n.Int("align_mode") == 0;
  Floats factors = {1, 1};
  bool whole = true;  // multiples, so that nothing is rounded
  for (int i = 0; i < 2; ++i) {
    const int at = i + (last ? 1 : 2);
    double factor = scales.empty() ? 0 : scales[scales.size() == 1 ? 0 : static_cast<size_t>(i)];
    if (out.is_static() && x[at] > 0)
      factor = static_cast<double>(out[at]) / static_cast<double>(x[at]);
    else if (corners || factor <= 0)
      return n.Refuse("the sizes that it resizes are not known");
    whole = whole && factor >= 1 && factor == std::floor(factor);
    if (exact && !scales.empty() &&
        factor != scales[scales.size() == 1 ? 0 : static_cast<size_t>(i)])
      return n.Refuse("its scale is no whole number");
    if (out.is_static() && out[at] == 1 && x[at] != 1)
      return n.Refuse("it makes one pixel of several");
    factors.push_back(factor);
  }
  if (!whole && (nearest || !out.is_static())) return n.Refuse("its scale is no whole number");
  std::string image = last ? ChannelsFirst(n, n.In("X"), rank) : n.In("X");
  Attributes attributes = {{"mode", std::string(nearest ? "nearest" : "linear")}};
  if (nearest && corners) return n.Refuse("it aligns corners and takes the nearest pixel");
  const char* place = corners ? "align_corners" : half && !nearest ? "half_pixel" : "asymmetric";
  attributes.push_back({"coordinate_transformation_mode", std::string(place)});
  if (nearest) attributes.push_back({"nearest_mode", std::string("floor")});
  Names inputs = {image, "", ""};
  if (out.is_static() && out[0] >= 0) {
    Ints sizes(out.begin(), out.end());
    if (last) sizes = {out[0], out[3], out[1], out[2]};
    inputs.push_back(n.Vector(sizes));
  } else {
    std::vector<float> numbers(factors.begin(), factors.end());
    inputs[2] = n.Hold(Tensor::Of(DType::kF32, {4}, numbers));
  }
  const std::string made = n.Make("Resize", std::move(inputs), std::move(attributes));
  n.Out("Out", last ? ChannelsLast(n, made, rank) : made);
}

Floats OldScale(NodeWriter& n) { return n.Real("scale") > 0 ? Floats{n.Real("scale")} : Floats{}; }
void WriteNearest(NodeWriter& n) { WriteResize(n, OldScale(n), false, true); }
void WriteBilinear(NodeWriter& n) { WriteResize(n, OldScale(n), false, false); }
void WriteNearest2(NodeWriter& n) { WriteResize(n, n.RealList("scale"), true, true); }
void WriteBilinear2(NodeWriter& n) { WriteResize(n, n.RealList("scale"), true, false); }

constexpr Handler kNetworkTable[] = {
    {"addmm", &WriteAddmm},
    {"bilinear_interp", &WriteBilinear},
    {"bilinear_interp_v2", &WriteBilinear2},
    {"bmm", &WriteBmm},
    {"conv2d", &WriteConv},
    {"conv2d_transpose", &WriteConvTranspose},
    {"conv3d", &WriteConv},
    {"conv3d_transpose", &WriteConvTranspose},
    {"depthwise_conv2d", &WriteConv},
    {"depthwise_conv2d_transpose", &WriteConvTranspose},
    {"fc", &WriteFc},
    {"matmul", &WriteMatmul},
    {"matmul_v2", &WriteMatmul2},
    {"mul", &WriteMul},
    {"nearest_interp", &WriteNearest},
    {"nearest_interp_v2", &WriteNearest2},
    {"pool2d", &WritePool},
    {"pool3d", &WritePool},
};

}  // namespace

std::span<const Handler> NetworkHandlers() { return kNetworkTable; }

}  // namespace heddle::offload::to_onnx
