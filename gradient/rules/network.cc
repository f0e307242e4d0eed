// Convolutions, pools, resizing and other operators of networks.
#include <algorithm>
#include <string>

#include "gradient/op_gradient.h"

namespace heddle::gradient {
namespace {

using ir::kNoVar;
using ir::VarId;

// Windows as ONNX declares them, over images with one to three dimensions. Images of one dimension
// get a second one of size 1 in front.
struct Windows {
  int64_t dims = 0;  // of the image, at least 2
  bool added = false;
  Ints strides, pads, dilations;  // pads: begin and end of each dimension in turn
  std::string algorithm = "EXPLICIT";
};

// `image`: the dimensions of the file's image; `kernel`: the window; static sizes of X, -1: open.
Result<Windows> WindowsOf(OpGradient& g, int64_t image, const Ints& kernel, bool ceil) {
  if (image < 1 || image > 3) return Unimplemented("an image of ", image, " dimensions");
  Windows w;
  w.dims = image;
  w.strides = g.Attr<Ints>("strides");
  w.dilations = g.Attr<Ints>("dilations");
  const Ints pads = g.Attr<Ints>("pads");
  w.strides.resize(static_cast<size_t>(image), 1);
  w.dilations.resize(static_cast<size_t>(image), 1);
  const std::string auto_pad = g.Attr<std::string>("auto_pad");
  const Shape& x = g.Info(g.InVar("X")).shape;
  for (int64_t i = 0; i < image; ++i) {
    const auto k = static_cast<size_t>(i);
    int64_t begin = 0, end = 0;
    const int64_t reach = (kernel[k] - 1) * w.dilations[k] + 1;
    const int64_t size = x.known_rank() ? x[static_cast<int>(i + 2)] : -1;
    if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
      if (size < 0 && w.strides[k] != 1)
        return Unimplemented("auto_pad ", auto_pad, " of an image whose size is not known");
      const int64_t outs = size < 0 ? 0 : (size + w.strides[k] - 1) / w.strides[k];
      const int64_t all =
          size < 0 ? reach - 1 : std::max<int64_t>(0, (outs - 1) * w.strides[k] + reach - size);
      begin = auto_pad == "SAME_UPPER" ? all / 2 : (all + 1) / 2;
      end = all - begin;
    } else if (auto_pad != "VALID" && !pads.empty()) {
      begin = pads[k];
      end = pads[k + static_cast<size_t>(image)];
    }
    if (ceil && auto_pad != "SAME_UPPER" && auto_pad != "SAME_LOWER" && w.strides[k] > 1) {
      if (size < 0) return Unimplemented("ceil_mode for an image whose size is not known");
      const int64_t rest = (size + begin + end - reach) % w.strides[k];
      if (rest > 0) end += w.strides[k] - rest;
    }
    w.pads.push_back(begin);
    w.pads.push_back(end);
  }
  if (image == 1) {
    w.added = true;
    w.dims = 2;
    w.strides.insert(w.strides.begin(), 1);
    w.dilations.insert(w.dilations.begin(), 1);
    w.pads.insert(w.pads.begin(), {0, 0});
  }
  return w;
}

VarId Convolved(OpGradient& g, const Windows& w, VarId x, VarId filter, int64_t groups) {
  if (w.added) {
    x = g.Unsqueeze(x, 2);
    filter = g.Unsqueeze(filter, 2);
  }
  const VarId y = g.Emit(w.dims == 2 ? "conv2d" : "conv3d", {{"Input", x}, {"Filter", filter}},
                         {{"strides", w.strides},
                          {"paddings", w.pads},
                          {"dilations", w.dilations},
                          {"groups", groups}});
  return w.added ? g.Squeeze(y, 2) : y;
}

Status OnnxConvGradient(OpGradient& g) {
  return g.Through([&](OpGradient::Outputs* out) {
    const VarId filter = g.In("W");
    HEDDLE_ASSIGN_OR_RETURN(const int64_t rank, g.RankOf(filter));
    Ints kernel = g.Attr<Ints>("kernel_shape");
    const Shape& shape = g.Info(filter).shape;
    if (kernel.empty())
      for (int i = 2; i < rank; ++i) kernel.push_back(shape[i]);
    auto windows = WindowsOf(g, rank - 2, kernel, false);
    const bool upper = !windows.ok() && g.Attr<std::string>("auto_pad") == "SAME_UPPER";
    Windows w;
    if (upper && rank >= 4) {
      // The sizes are found when it runs.
      w.dims = rank - 2;
      w.strides = g.Attr<Ints>("strides");
      w.dilations = g.Attr<Ints>("dilations");
      w.strides.resize(static_cast<size_t>(w.dims), 1);
      w.dilations.resize(static_cast<size_t>(w.dims), 1);
      for (const int64_t d : w.dilations)
        if (d != 1) return windows.status();
    } else {
      if (!windows.ok()) return windows.status();
      w = *windows;
    }
    VarId y = kNoVar;
    if (upper)
      y = g.Emit(w.dims == 2 ? "conv2d" : "conv3d", {{"Input", g.In("X")}, {"Filter", filter}},
                 {{"strides", w.strides},
                  {"paddings", Ints(static_cast<size_t>(w.dims), 0)},
                  {"padding_algorithm", "SAME"},
                  {"dilations", w.dilations},
                  {"groups", g.Attr<int64_t>("group")}});
    else
      y = Convolved(g, w, g.In("X"), filter, g.Attr<int64_t>("group"));
    if (g.HasIn("B")) y = g.Plus(y, g.In("B"), 1);
    out->push_back({{"Y", 0}, y});
    return Status::Ok();
  });
}

// Sums over windows of one channel at a time, by a convolution with ones.
Result<VarId> WindowSums(OpGradient& g, VarId x, const Windows& w, const Ints& kernel, int64_t rank,
                         VarId like) {
  Ints flat{-1, 1};
  const Shape& shape = g.Info(x).shape;
  // [images and channels, 1, the image]
  int open = 0;
  for (int i = 2; i < rank; ++i)
    if (!shape.known_rank() || shape[i] < 0) ++open;
  VarId y = kNoVar;
  if (open == 0) {
    for (int i = 2; i < rank; ++i) flat.push_back(shape[i]);
    y = g.Reshape(x, flat);
  } else {
    const VarId dims = g.Emit("shape", {{"Input", x}});
    const VarId tail = g.Slice(dims, {0}, {2}, {rank});
    const VarId head = g.Constant(g.Info(dims).dtype, {2}, 1);
    const VarId minus = g.Binary(
        "elementwise_mul", head,
        g.Concat({g.Constant(g.Info(dims).dtype, {1}, -1), g.Constant(g.Info(dims).dtype, {1}, 1)},
                 0));
    y = g.Emit("reshape2", {{"X", x}, {"Shape", g.Concat({minus, tail}, 0)}});
    Shape known = Shape::Unknown();
    known = Shape({-1, 1});
    for (int i = 2; i < rank; ++i) known.push_back(-1);
    g.Made(y).shape = known;
  }
  Ints ones{1, 1};
  ones.insert(ones.end(), kernel.begin(), kernel.end());
  y = Convolved(g, w, y, g.Constant(g.Info(x).dtype, ones, 1), 1);
  return g.ReshapeLike(y, like);
}

// The p-norm over each window.
Status LpPoolGradient(OpGradient& g) {
  return g.Through([&](OpGradient::Outputs* out) {
    const VarId x = g.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const int64_t rank, g.RankOf(x));
    const Ints kernel = g.Attr<Ints>("kernel_shape");
    HEDDLE_ASSIGN_OR_RETURN(const Windows w,
                            WindowsOf(g, rank - 2, kernel, g.Attr<int64_t>("ceil_mode") != 0));
    const int64_t p = g.Attr<int64_t>("p");
    const VarId size = g.Unary("abs", x);
    const VarId powers = p == 1   ? size
                         : p == 2 ? g.Unary("square", x)
                                  : g.Emit("pow", {{"X", size}}, {{"factor", p}});
    HEDDLE_ASSIGN_OR_RETURN(const VarId sums,
                            WindowSums(g, powers, w, kernel, rank, g.OutVar("Y")));
    const VarId norm = p == 1 ? sums
                       : p == 2
                           ? g.Unary("sqrt", sums)
                           : g.Emit("pow", {{"X", sums}}, {{"factor", 1 / static_cast<double>(p)}});
    out->push_back({{"Y", 0}, norm});
    return Status::Ok();
  });
}

Status AveragePoolGradient(OpGradient& g) {
  return g.Through([&](OpGradient::Outputs* out) {
    const VarId x = g.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const int64_t rank, g.RankOf(x));
    const Ints kernel = g.Attr<Ints>("kernel_shape");
    HEDDLE_ASSIGN_OR_RETURN(const Windows w,
                            WindowsOf(g, rank - 2, kernel, g.Attr<int64_t>("ceil_mode") != 0));
    if (g.Attr<int64_t>("count_include_pad") != 0 && g.Attr<int64_t>("ceil_mode") != 0)
      return Unimplemented("the gradient of means that count padding, with ceil_mode");
    HEDDLE_ASSIGN_OR_RETURN(const VarId sums, WindowSums(g, x, w, kernel, rank, g.OutVar("Y")));
    if (g.Attr<int64_t>("count_include_pad") != 0) {
      double count = 1;
      for (const int64_t k : kernel) count *= static_cast<double>(k);
      out->push_back({{"Y", 0}, g.Scale(sums, 1 / count)});
      return Status::Ok();
    }
    HEDDLE_ASSIGN_OR_RETURN(const VarId counts,
                            WindowSums(g, g.Filled(x, 1), w, kernel, rank, g.OutVar("Y")));
    out->push_back({{"Y", 0}, g.Div(sums, counts)});
    return Status::Ok();
  });
}

// The element that is the maximum gets the gradient.
Status MaxPoolGradient(OpGradient& g) {
  if (g.Attr<int64_t>("storage_order") != 0)
    return Unimplemented("the gradient with indices in column order");
  const VarId x = g.In("X");
  const VarId said = g.Emit("reshape2", {{"X", g.Out("Indices")}}, {{"shape", Ints{-1, 1}}});
  // A window that lies in the padding has the place -1, and no element.
  const VarId zero = g.Scale(said, 0);
  const VarId inside = g.Cast(g.Compare("greater_equal", said, zero), g.Info(x).dtype);
  const VarId places = g.Binary("elementwise_max", said, zero);
  const VarId seed = g.Mul(g.Reshape(g.OutGrad("Y"), {-1}), g.Reshape(inside, {-1}));
  const VarId zeros = g.Reshape(g.ZerosLike(x), {-1});
  const VarId flat = g.Emit("scatter_nd", {{"X", zeros}, {"Index", places}, {"Updates", seed}},
                            {{"reduce", "add"}});
  g.SetInGrad("X", g.ReshapeLike(flat, x));
  return Status::Ok();
}

// Resizing is linear, one dimension after the other. Along each, it is the product with the matrix
// that resizing makes of the unit matrix.
Status ResizeGradient(OpGradient& g) {
  if (g.Attr<std::string>("coordinate_transformation_mode") == "tf_crop_and_resize")
    return Unimplemented("the gradient of cropping and resizing at the same time");
  if (g.Attr<std::string>("keep_aspect_ratio_policy") != "stretch")
    return Unimplemented("the gradient of resizing with a kept aspect ratio");
  const VarId x = g.In("X");
  const DType dtype = g.Info(x).dtype;
  HEDDLE_ASSIGN_OR_RETURN(const int64_t rank, g.RankOf(x));
  Ints axes = g.Attr<Ints>("axes");
  if (axes.empty())
    for (int64_t a = 0; a < rank; ++a) axes.push_back(a);
  const bool by_scales = g.HasIn("scales");
  const VarId sizes = by_scales ? g.In("scales") : g.In("sizes");
  VarId dx = g.OutGrad("Y");
  const VarId dims = g.Emit("shape", {{"Input", x}});
  for (size_t j = 0; j < axes.size(); ++j) {
    const int64_t axis = axes[j] < 0 ? axes[j] + rank : axes[j];
    const VarId n = g.Slice(dims, {0}, {axis}, {axis + 1});
    const VarId zero = g.Constant(g.Info(dims).dtype, {1}, 0);
    const VarId one = g.Constant(g.Info(dims).dtype, {1}, 1);
    const VarId numbers = g.Emit("range", {{"Start", zero}, {"End", n}, {"Step", one}});
    g.Made(numbers).shape = Shape({-1});
    const VarId unit =
        g.Cast(g.Compare("equal", g.Reshape(numbers, {-1, 1}), g.Reshape(numbers, {1, -1})), dtype);
    Settings settings;
    for (const AttrDef& a : g.op().def->attrs())
      if (a.name != "axes")
        settings.emplace_back(
            a.name, AttrValue(g.op().attrs[static_cast<size_t>(g.op().def->FindAttr(a.name))]));
    settings.emplace_back("axes", Ints{0});
    const VarId matrix =
        g.Emit("onnx_resize",
               {{"X", unit},
                {by_scales ? "scales" : "sizes",
                 g.Slice(sizes, {0}, {static_cast<int64_t>(j)}, {static_cast<int64_t>(j) + 1})}},
               settings);
    g.Made(matrix).shape = Shape({-1, -1});
    // Moves the dimension to the end, multiplies, and moves it back.
    Ints order;
    for (int64_t a = 0; a < rank; ++a) order.push_back(a);
    std::swap(order[static_cast<size_t>(axis)], order[static_cast<size_t>(rank - 1)]);
    const bool moved = axis != rank - 1;
    if (moved) dx = g.Transpose(dx, order);
    if (rank == 1) dx = g.Unsqueeze(dx, 0);
    dx = g.Emit("matmul_v2", {{"X", dx}, {"Y", matrix}});
    if (rank == 1) dx = g.Squeeze(dx, 0);
    if (moved) dx = g.Transpose(dx, order);
  }
  g.Made(dx).shape = g.Info(x).shape;
  g.SetInGrad("X", dx);
  return Status::Ok();
}

// TensorFlow's Conv2DBackpropInput as a transposed convolution: towards the small image it is the
// convolution, towards the filter the gradient of that.
Status ConvBackpropInputGradient(OpGradient& g) {
  const VarId seed = g.OutGrad("output"), filter = g.In("filter");
  HEDDLE_ASSIGN_OR_RETURN(const int64_t rank, g.RankOf(filter));
  const bool last = g.Attr<std::string>("data_format").find('C') != 1;
  const Settings same = {{"depthwise", g.Attr<bool>("depthwise")},
                         {"strides", g.Attr<Ints>("strides")},
                         {"padding", g.Attr<std::string>("padding")},
                         {"data_format", g.Attr<std::string>("data_format")},
                         {"explicit_paddings", g.Attr<Ints>("explicit_paddings")},
                         {"dilations", g.Attr<Ints>("dilations")}};
  if (g.Wants("filter"))
    g.SetInGrad("filter", g.Emit("conv_backprop_filter",
                                 {{"input", seed},
                                  {"filter_sizes", g.Emit("shape", {{"Input", filter}})},
                                  {"out_backprop", g.In("out_backprop")}},
                                 same));
  if (!g.Wants("out_backprop")) return Status::Ok();
  const auto image = [&](const Ints& all) {
    Ints values;
    for (int64_t i = 0; i < rank - 2; ++i) {
      const auto k = static_cast<size_t>(last ? i + 1 : i + 2);
      values.push_back(k < all.size() ? all[k] : 1);
    }
    return values;
  };
  const std::string padding = g.Attr<std::string>("padding");
  Ints pads(static_cast<size_t>(rank - 2), 0);
  if (padding == "EXPLICIT") {
    const Ints& all = g.Attr<Ints>("explicit_paddings");
    pads.clear();
    for (int64_t i = 0; i < rank - 2; ++i)
      for (int64_t side = 0; side < 2; ++side)
        pads.push_back(all[static_cast<size_t>(2 * (last ? i + 1 : i + 2) + side)]);
  }
  int64_t groups = 1;
  VarId weights = kNoVar;
  Ints order;
  if (g.Attr<bool>("depthwise")) {
    const Shape& shape = g.Info(filter).shape;
    if (!shape.is_static()) return Unimplemented("a filter whose sizes are not known");
    groups = shape[static_cast<int>(rank - 2)];
    order = {rank - 2, rank - 1};
    for (int64_t i = 0; i < rank - 2; ++i) order.push_back(i);
    Ints sizes{groups * shape[static_cast<int>(rank - 1)], 1};
    for (int i = 0; i < rank - 2; ++i) sizes.push_back(shape[i]);
    weights = g.Reshape(g.Transpose(filter, order), sizes);
  } else {
    order = {rank - 1, rank - 2};
    for (int64_t i = 0; i < rank - 2; ++i) order.push_back(i);
    weights = g.Transpose(filter, order);
    const Shape &image_shape = g.Info(seed).shape, &shape = g.Info(filter).shape;
    const int channels = static_cast<int>(last ? rank - 1 : 1), each = static_cast<int>(rank - 2);
    if (image_shape.known_rank() && shape.known_rank() && image_shape[channels] > 0 &&
        shape[each] > 0)
      groups = std::max<int64_t>(1, image_shape[channels] / shape[each]);
  }
  const VarId y = g.Emit(
      rank == 4 ? "conv2d" : "conv3d", {{"Input", seed}, {"Filter", weights}},
      {{"strides", image(g.Attr<Ints>("strides"))},
       {"paddings", pads},
       {"padding_algorithm", padding == "EXPLICIT" ? "EXPLICIT" : padding.c_str()},
       {"dilations", image(g.Attr<Ints>("dilations"))},
       {"groups", groups},
       {"data_format", last ? (rank == 4 ? "NHWC" : "NDHWC") : (rank == 4 ? "NCHW" : "NCDHW")}});
  g.SetInGrad("out_backprop", y);
  return Status::Ok();
}

Status MaskedSliceGradient(OpGradient& g) {
  const VarId input = g.InVar("input");
  VarId shape = g.Emit("shape", {{"Input", input}});
  shape = g.Cast(shape, g.Info(g.InVar("begin")).dtype);
  Settings masks;
  for (const char* name :
       {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"})
    masks.emplace_back(name, g.Attr<int64_t>(name));
  const VarId dx = g.Emit("masked_slice_grad",
                          {{"shape", shape},
                           {"begin", g.In("begin")},
                           {"end", g.In("end")},
                           {"strides", g.In("strides")},
                           {"dy", g.OutGrad("output")}},
                          masks);
  g.Made(dx).shape = g.Info(input).shape;
  g.SetInGrad("input", dx);
  return Status::Ok();
}

// What training keeps for the gradient does not exist in a network for inference, which computes
// the same where nothing is dropped.
Status RnnGradient(OpGradient& g) {
  ir::Op& op = g.Forward();
  const auto attr = [&](std::string_view name) -> AttrValue& {
    return op.attrs[static_cast<size_t>(op.def->FindAttr(name))];
  };
  if (std::get<bool>(attr("is_test"))) {
    attr("is_test") = false;
    attr("dropout_prob") = 0.0;
  }
  return EmitOperator(g, "rnn_grad");
}

// In training a batch norm reads no statistics, but rewrites them.
Status BatchNormGradient(OpGradient& g) {
  const bool trains = !g.Attr<bool>("use_global_stats") &&
                      (!g.Attr<bool>("is_test") || g.Attr<bool>("trainable_statistics"));
  return EmitOperator(g, "batch_norm_grad",
                      trains ? "Mean=- Variance=- MeanOut=- VarianceOut=-" : "");
}

// One cache for each pair of operands.
Status EinsumGradient(OpGradient& g) {
  for (size_t i = 0; i < g.Ins("Operands"); ++i) {
    g.Out("InnerCache", i);
    g.Out("XShape", i);
  }
  return EmitOperator(g, "einsum_grad", "x_shape=XShape");
}

Status OnnxDropoutGradient(OpGradient& g) {
  VarId dx = g.OutGrad("output");
  if (g.HasIn("training_mode")) {
    const VarId data = g.InVar("data");
    const DType dtype = g.Info(data).dtype;
    const VarId mask = g.Cast(g.Out("mask"), dtype);
    const VarId training = g.Cast(g.In("training_mode"), dtype);
    // 1 / (1 - ratio) in training, else 1
    const VarId ratio = g.HasIn("ratio") ? g.Cast(g.In("ratio"), dtype) : g.Scale(training, 0, 0.5);
    const VarId kept = g.Scale(g.Mul(ratio, training), -1, 1);
    dx = g.Div(g.Mul(dx, mask), kept);
  }
  g.SetInGrad("data", dx);
  return Status::Ok();
}

Status RoiAlignGradient(OpGradient& g) {
  if (g.Attr<std::string>("mode") != "avg")
    return Unimplemented("the gradient of the mode '", g.Attr<std::string>("mode"), "'");
  return EmitOperator(g, "roi_align_grad");
}

Status MatmulGradient(OpGradient& g) {
  if (g.Attr<int64_t>("head_number") > 1)
    return Unimplemented("the gradient of a product of several heads");
  return EmitOperator(g, "matmul_grad");
}

Status LuUnpackGradient(OpGradient& g) {
  if (!g.Attr<bool>("unpack_ludata")) return Unimplemented("the gradient of permutations alone");
  return EmitOperator(g, "lu_unpack_grad");
}

Status QrGradient(OpGradient& g) {
  if (g.Attr<std::string>("mode") == "r")
    return Unimplemented("the gradient of the mode 'r', which gives no Q");
  return EmitOperator(g, "qr_grad");
}

Status ResizeImagesGradient(OpGradient& g) {
  const std::string& method = g.Attr<std::string>("method");
  if (method == "bilinear" || method == "bicubic")
    return EmitOperator(g, "resize_images_grad",
                        "grads=grad(resized_images) original_image=images output=grad(images)");
  if (method != "nearest") return Unimplemented("the gradient of the method '", method, "'");
  const VarId dims = g.Emit("shape", {{"Input", g.InVar("images")}});
  const VarId dx =
      g.Emit("resize_nearest_images_grad",
             {{"grads", g.OutGrad("resized_images")}, {"size", g.Slice(dims, {0}, {1}, {3})}},
             {{"align_corners", g.Attr<bool>("align_corners")},
              {"half_pixel_centers", g.Attr<bool>("half_pixel_centers")}});
  g.Made(dx).shape = g.Info(g.InVar("images")).shape;
  g.SetInGrad("images", dx);
  return Status::Ok();
}

}  // namespace

RuleTable NetworkRules() {
  return {
      Composed("onnx_conv", OnnxConvGradient),
      Composed("onnx_lp_pool", LpPoolGradient),
      Composed("onnx_average_pool", AveragePoolGradient),
      Composed("onnx_max_pool", MaxPoolGradient, "X", "Y"),
      Composed("onnx_resize", ResizeGradient, "X"),
      Composed("onnx_dropout", OnnxDropoutGradient, "data", "output"),
      Composed("conv_backprop_input", ConvBackpropInputGradient, "filter out_backprop"),
      Composed("masked_slice", MaskedSliceGradient, "input"),
      Composed("recurrent_network", RecurrentNetworkGradient, "X W R B initial_h initial_c P"),
      Composed("rnn", RnnGradient, "Input PreState WeightList", "Out State"),
      Composed("batch_norm", BatchNormGradient, "X Scale Bias", "Y"),
      Composed("einsum", EinsumGradient, "Operands", "Out"),
      Composed("matmul", MatmulGradient),
      Composed("qr", QrGradient),
      Composed("lu_unpack", LuUnpackGradient),
      Composed("roi_align", RoiAlignGradient, "X"),
      Composed("resize_images", ResizeImagesGradient, "images"),
  };
}

}  // namespace heddle::gradient
