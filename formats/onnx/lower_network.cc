// Convolutions, pooling and matrix products.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/shapes.h"
#include "formats/onnx/handlers.h"

namespace heddle::onnx {
namespace {

// Attributes of sliding windows in Paddle's order.
struct Windows {
  int dims = 0;  // number of spatial dimensions
  Ints kernel, strides, dilations;
  Ints pads;  // begin and end of each dimension in turn
};

// Reads the attributes; nothing where the number of dimensions is not known, or auto_pad depends on
// an unknown shape.
std::optional<Windows> WindowsOf(NodeLowering& n, int x, int w) {
  Windows made;
  made.kernel = n.IntList("kernel_shape");
  made.dims = !made.kernel.empty()             ? static_cast<int>(made.kernel.size())
              : w != kNoDraft && n.rank(w) > 0 ? n.rank(w) - 2
                                               : n.rank(x) - 2;
  if (made.dims < 1 || made.dims > 3) return std::nullopt;
  const auto count = static_cast<size_t>(made.dims);
  if (w != kNoDraft && made.kernel.empty() && n.shape(w).is_static())
    for (int i = 2; i < n.rank(w); ++i) made.kernel.push_back(n.shape(w)[i]);
  made.strides = n.IntList("strides");
  made.dilations = n.IntList("dilations");
  Ints pads = n.IntList("pads");
  if (made.strides.empty()) made.strides.assign(count, 1);
  if (made.dilations.empty()) made.dilations.assign(count, 1);
  if (pads.empty()) pads.assign(2 * count, 0);
  if (made.kernel.size() != count || made.strides.size() != count ||
      made.dilations.size() != count || pads.size() != 2 * count)
    return std::nullopt;
  const auto fits = [](const Ints& list, int64_t least) {
    return std::all_of(list.begin(), list.end(), [&](int64_t v) {
      return v >= least && v <= std::numeric_limits<int32_t>::max();
    });
  };
  if (!fits(made.kernel, 0) || !fits(made.strides, 1) || !fits(made.dilations, 1) ||
      !fits(pads, std::numeric_limits<int32_t>::min()))
    return std::nullopt;
  const std::string auto_pad = n.Str("auto_pad", "NOTSET");
  for (size_t i = 0; i < count; ++i) {
    int64_t begin = pads[i], end = pads[count + i];
    if (auto_pad == "VALID") begin = end = 0;
    if (auto_pad.starts_with("SAME")) {
      int64_t size = n.rank(x) == made.dims + 2 ? n.shape(x)[static_cast<int>(i) + 2] : -1;
      const int64_t reach = made.dilations[i] * (made.kernel[i] - 1) + 1;
      if (size < 0 && made.strides[i] == 1) size = reach;  // any size gives the same padding
      if (size < 0) return std::nullopt;
      const int64_t out = (size + made.strides[i] - 1) / made.strides[i];
      const int64_t total = std::max<int64_t>((out - 1) * made.strides[i] + reach - size, 0);
      begin = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
      end = total - begin;
    }
    made.pads.push_back(begin);
    made.pads.push_back(end);
  }
  if (std::any_of(made.pads.begin(), made.pads.end(), [](int64_t p) { return p < 0; }))
    return std::nullopt;
  return made;
}

// Makes a 1-D window a 2-D one whose first dimension is 1.
void MakePlane(Windows* w) {
  if (w->dims != 1) return;
  w->dims = 2;
  for (Ints* list : {&w->kernel, &w->strides, &w->dilations}) list->insert(list->begin(), 1);
  w->pads.insert(w->pads.begin(), {0, 0});
}

// One number per dimension where begin and end are equal: the form that most fusions look for.
Ints ShortPads(const Ints& pads) {
  Ints one;
  for (size_t i = 0; i < pads.size(); i += 2) {
    if (pads[i] != pads[i + 1]) return pads;
    one.push_back(pads[i]);
  }
  return one;
}

// Adds a bias per channel (axis 1).
int AddBias(NodeLowering& n, int y, int bias) {
  if (bias == kNoDraft) return y;
  return n.Make("elementwise_add", {{"X", {y}}, {"Y", {bias}}}, {{"axis", int64_t{1}}});
}

// Whether the bias has one element per channel. A sum would broadcast others, which Conv refuses.
bool IsBias(NodeLowering& n, int bias, int64_t channels) {
  return bias == kNoDraft ||
         (n.rank(bias) == 1 && n.shape(bias)[0] >= 0 && n.shape(bias)[0] == channels);
}

bool IsPlain(NodeLowering& n, int v) { return IsFloat(n.dtype(v)); }

bool LowerConv(NodeLowering& n) {
  const int x = n.Required(0), w = n.Required(1);
  auto windows = WindowsOf(n, x, w);
  if (!windows || !IsPlain(n, x)) return false;
  if (n.shape(x).is_static() && n.shape(x).numel() == 0) return false;
  if (!IsBias(n, n.In(2), n.rank(w) > 0 ? n.shape(w)[0] : -1)) return false;
  if (n.rank(w) > 1 && n.shape(w)[1] > 0) n.ExpectDim(x, 1, n.shape(w)[1] * n.Int("group", 1));
  const bool line = windows->dims == 1;
  MakePlane(&*windows);
  const int input = line ? n.AsPlane(x) : x, filter = line ? n.Unsqueeze(w, {2}) : w;
  const bool plane = windows->dims == 2;
  int y = n.Make(plane ? "conv2d" : "conv3d", {{"Input", {input}}, {"Filter", {filter}}},
                 {{"strides", windows->strides},
                  {"paddings", ShortPads(windows->pads)},
                  {"dilations", windows->dilations},
                  {"groups", n.Int("group", 1)}},
                 "Output");
  y = AddBias(n, y, n.In(2));
  n.Result(0, line ? n.AsLine(y) : y);
  return true;
}

// ONNX Runtime's FusedConv: a convolution, a summand and an activation.
bool LowerFusedConv(NodeLowering& n) {
  static constexpr std::string_view kOwn[] = {"activation", "activation_params"};
  Node& conv = n.lowering().OwnNode(n.node());
  conv.domain = "";
  conv.op_type = "Conv";
  conv.inputs.resize(std::min<size_t>(conv.inputs.size(), 3));
  conv.outputs.assign(1, n.lowering().OwnName(0));
  std::erase_if(conv.attributes, [](const Attribute& a) {
    return std::find(std::begin(kOwn), std::end(kOwn), a.name) != std::end(kOwn);
  });
  NameScope names;
  names.outer = n.around().names;
  Surroundings around = n.around();
  around.names = &names;
  n.lowering().LowerNode(conv, around);
  int y = names.vars.at(conv.outputs[0]);
  if (n.Has(3)) y = n.Binary("elementwise_add", y, n.In(3));
  const std::string activation = n.Str("activation", "");
  const Floats params = n.FloatList("activation_params");
  const auto param = [&](size_t i, double otherwise) {
    return i < params.size() ? params[i] : otherwise;
  };
  if (activation == "Relu")
    y = n.Unary("relu", y, {{"keep_nan", true}});
  else if (activation == "Sigmoid")
    y = n.Unary("sigmoid", y);
  else if (activation == "Tanh")
    y = n.Unary("tanh", y);
  else if (activation == "LeakyRelu")
    y = n.Unary("leaky_relu", y, {{"alpha", param(0, 0.01)}});
  else if (activation == "Clip")
    y = n.Unary("clip", y, {{"min", param(0, 0)}, {"max", param(1, 0)}});
  else if (activation == "HardSigmoid")
    y = n.Unary("hard_sigmoid", y, {{"slope", param(0, 0.2)}, {"offset", param(1, 0.5)}});
  else if (!activation.empty())
    n.Problem("has the activation '", activation, "', which heddle does not know");
  n.Result(0, y);
  return true;
}

bool LowerConvTranspose(NodeLowering& n) {
  const int x = n.Required(0), w = n.Required(1);
  auto windows = WindowsOf(n, x, w);
  const std::string auto_pad = n.Str("auto_pad", "NOTSET");
  if (!windows || !IsPlain(n, x) || windows->dims == 3 || n.Find("output_shape") != nullptr ||
      auto_pad.starts_with("SAME") || (n.shape(x).is_static() && n.shape(x).numel() == 0))
    return false;
  const int64_t each = n.rank(w) > 1 ? n.shape(w)[1] : -1;
  if (!IsBias(n, n.In(2), each < 0 ? -1 : each * n.Int("group", 1))) return false;
  const bool line = windows->dims == 1;
  MakePlane(&*windows);
  Ints extra = n.IntList("output_padding");
  if (line && !extra.empty()) extra.insert(extra.begin(), 0);
  if (std::any_of(extra.begin(), extra.end(), [](int64_t e) { return e != 0; })) return false;
  const int input = line ? n.AsPlane(x) : x, filter = line ? n.Unsqueeze(w, {2}) : w;
  int y = n.Make("conv2d_transpose", {{"Input", {input}}, {"Filter", {filter}}},
                 {{"strides", windows->strides},
                  {"paddings", ShortPads(windows->pads)},
                  {"dilations", windows->dilations},
                  {"groups", n.Int("group", 1)}},
                 "Output");
  y = AddBias(n, y, n.In(2));
  n.Result(0, line ? n.AsLine(y) : y);
  return true;
}

bool LowerPool(NodeLowering& n, bool max) {
  const int x = n.Required(0);
  auto windows = WindowsOf(n, x, kNoDraft);
  const bool dilated = windows && std::any_of(windows->dilations.begin(), windows->dilations.end(),
                                              [](int64_t d) { return d != 1; });
  if (!windows || dilated || n.Wants(1) || n.Int("ceil_mode", 0) != 0 || !IsPlain(n, x))
    return false;
  for (size_t i = 0; i < windows->kernel.size(); ++i)
    if (windows->pads[2 * i] >= windows->kernel[i] ||
        windows->pads[2 * i + 1] >= windows->kernel[i])
      return false;
  const bool counts_padding = n.opset() >= 7 && n.Int("count_include_pad", 0) != 0;
  // Paddle's average pooling counts as much padding at the end of a dimension as at its begin.
  for (size_t i = 0; i < windows->kernel.size(); ++i)
    if (!max && counts_padding && windows->pads[2 * i] != windows->pads[2 * i + 1]) return false;
  const bool line = windows->dims == 1;
  MakePlane(&*windows);
  const int input = line ? n.AsPlane(x) : x;
  const int y = n.Make(windows->dims == 2 ? "pool2d" : "pool3d", {{"X", {input}}},
                       {{"ksize", windows->kernel},
                        {"strides", windows->strides},
                        {"paddings", ShortPads(windows->pads)},
                        {"exclusive", !counts_padding},
                        {"keep_nan", max},
                        {"from_infinity", max},
                        {"pooling_type", std::string(max ? "max" : "avg")}});
  n.Result(0, line ? n.AsLine(y) : y);
  return true;
}
bool LowerMaxPool(NodeLowering& n) { return LowerPool(n, true); }
bool LowerAveragePool(NodeLowering& n) { return LowerPool(n, false); }

bool LowerGlobalPool(NodeLowering& n, bool max) {
  const int x = n.Required(0);
  const int rank = n.rank(x);
  const std::string_view type = max ? "reduce_max" : "reduce_mean";
  if (rank < 0) {
    Attrs attrs{{"keep_dim", true}, {"no_axes", std::string("none")}};
    if (!max) attrs.emplace_back("in_double", true);
    n.Result(0, n.Make(type, {{"X", {x}}, {"Axes", {n.AxesFrom(x, 2)}}}, std::move(attrs)));
    return true;
  }
  if (rank == 4 && IsPlain(n, x)) {
    n.Result(0, n.Make("pool2d", {{"X", {x}}},
                       {{"ksize", Ints{1, 1}},
                        {"global_pooling", true},
                        {"keep_nan", max},
                        {"from_infinity", max},
                        {"pooling_type", std::string(max ? "max" : "avg")}}));
    return true;
  }
  if (rank < 3) {
    n.Result(0, x);
    return true;
  }
  Ints axes(static_cast<size_t>(rank - 2));
  std::iota(axes.begin(), axes.end(), 2);
  n.Result(0, n.Make(type, {{"X", {x}}}, {{"dim", axes}, {"keep_dim", true}}));
  return true;
}
bool LowerGlobalMaxPool(NodeLowering& n) { return LowerGlobalPool(n, true); }
bool LowerGlobalAveragePool(NodeLowering& n) { return LowerGlobalPool(n, false); }

// The p-norm of each plane.
bool LowerGlobalLpPool(NodeLowering& n) {
  const int64_t p = n.Int("p", 2);
  if (p < 1) n.Problem("has p ", p, ", expected at least 1");
  int x = n.Required(0);
  if (p > 2) x = n.Unary("pow", n.Unary("abs", x), {{"factor", static_cast<double>(p)}});
  Attrs attrs{{"keep_dim", true}, {"no_axes", std::string("none")}, {"in_double", true}};
  if (p == 1) attrs.emplace_back("of", std::string("abs"));
  int made = n.Make(p == 2 ? "frobenius_norm" : "reduce_sum",
                    {{"X", {x}}, {"Axes", {n.AxesFrom(x, 2)}}}, std::move(attrs));
  if (p > 2) made = n.Unary("pow", made, {{"factor", 1 / static_cast<double>(p)}});
  n.Result(0, made);
  return true;
}

// The places are those in the tensor that the pooling had, of which the node's result may be a
// larger form.
bool LowerMaxUnpool(NodeLowering& n) {
  const int x = n.Required(0), index = n.Required(1);
  const Ints kernel = n.IntList("kernel_shape");
  const size_t spatial = kernel.size();
  const Ints strides = n.IntList("strides", Ints(spatial, 1));
  const Ints pads = n.IntList("pads", Ints(2 * spatial, 0));
  if (strides.size() != spatial || pads.size() != 2 * spatial || spatial == 0) {
    n.Problem("has ", spatial, " kernel sizes, ", strides.size(), " strides and ", pads.size(),
              " pads, which do not go together");
    return true;
  }
  Ints factors{1, 1}, summands{0, 0};
  for (size_t i = 0; i < spatial; ++i) {
    factors.push_back(strides[i]);
    summands.push_back(kernel[i] - strides[i] - pads[i] - pads[spatial + i]);
  }
  const int sizes = n.Binary("elementwise_add",
                             n.Binary("elementwise_mul", n.ShapeOf(x), n.IntsConstant(factors)),
                             n.IntsConstant(summands));
  const int zeros = n.Make("fill_constant", {{"ShapeTensor", {sizes}}},
                           {{"value", 0.0}, {"dtype", DTypeToProto(n.dtype(x))}});
  const int put = n.Make("put_along_axis",
                         {{"Input", {n.Reshape(zeros, {-1})}},
                          {"Index", {n.Reshape(index, {-1})}},
                          {"Value", {n.Reshape(x, {-1})}}},
                         {{"Axis", int64_t{0}}, {"Reduce", std::string("assign")}}, "Result");
  int made = n.Make("reshape2", {{"X", {put}}, {"Shape", {sizes}}}, {{"literal_zero", true}});
  if (n.Has(2)) {
    const int more = n.Binary("elementwise_sub", n.Cast(n.In(2), DType::kI64), sizes);
    const int none = n.Times(more, 0);
    made = n.Make("pad", {{"X", {made}}, {"Paddings", {n.Make("concat", {{"X", {none, more}}})}}},
                  {{"before_first", true}});
  }
  n.Result(0, made);
  return true;
}

// Without an index of its own no label is ignored.
int NegativeLogLikelihood(NodeLowering& n, int logs) {
  Ins ins{{"X", {logs}}, {"Label", {n.Required(1)}}};
  if (n.Has(2)) ins.emplace_back("Weight", std::vector<int>{n.In(2)});
  return n.Make("nll_loss", std::move(ins),
                {{"reduction", n.Str("reduction", "mean")},
                 {"ignore_index", n.Int("ignore_index", std::numeric_limits<int64_t>::min())},
                 {"nan_of_nothing", true}});
}
bool LowerNegativeLogLikelihood(NodeLowering& n) {
  n.Result(0, NegativeLogLikelihood(n, n.Required(0)));
  return true;
}
bool LowerSoftmaxCrossEntropy(NodeLowering& n) {
  const int logs = n.Unary("log_softmax", n.Required(0), {{"axis", int64_t{1}}});
  n.Result(0, NegativeLogLikelihood(n, logs));
  if (n.Wants(1)) n.Result(1, logs);
  return true;
}

bool LowerMatMul(NodeLowering& n) {
  const int x = n.Required(0), y = n.Required(1);
  if (n.rank(y) >= 2) n.ExpectDim(x, n.rank(x) - 1, n.shape(y)[n.rank(y) - 2]);
  if (n.rank(x) >= 1 && n.rank(y) >= 2) n.ExpectDim(y, n.rank(y) - 2, n.shape(x)[n.rank(x) - 1]);
  n.Result(0, n.Binary("matmul_v2", x, y));
  return true;
}

// alpha * A' B' + beta * C, where ' is an optional transposition.
bool LowerGemm(NodeLowering& n) {
  const int a = n.Required(0), b = n.Required(1), c = n.In(2);
  int y = n.Make("matmul_v2", {{"X", {a}}, {"Y", {b}}},
                 {{"trans_x", n.Int("transA", 0) != 0}, {"trans_y", n.Int("transB", 0) != 0}});
  const double alpha = n.Float("alpha", 1), beta = n.Float("beta", 1);
  if (alpha != 1) y = n.Times(y, alpha);
  if (c != kNoDraft && beta != 0) {
    const int add = beta != 1 ? n.Times(c, beta) : c;
    y = n.Binary("elementwise_add", y, add);
  }
  n.Result(0, y);
  return true;
}

bool LowerFusedMatMul(NodeLowering& n) {
  if (n.Int("transBatchA", 0) != 0 || n.Int("transBatchB", 0) != 0) return false;
  int y = n.Make("matmul_v2", {{"X", {n.Required(0)}}, {"Y", {n.Required(1)}}},
                 {{"trans_x", n.Int("transA", 0) != 0}, {"trans_y", n.Int("transB", 0) != 0}});
  if (const double alpha = n.Float("alpha", 1); alpha != 1) y = n.Times(y, alpha);
  n.Result(0, y);
  return true;
}

// Upsample, the former name of asymmetric resizing, and Resize of opset 10.
bool LowerUpsample(NodeLowering& n) {
  if (!NodeLowering::HasOperator("onnx_resize")) return false;
  const int x = n.Required(0);
  int scales = n.In(1);
  if (n.opset() < 9) {
    Floats values = n.FloatList("scales");
    if (n.opset() < 7) values = {1, 1, n.Float("height_scale", 1), n.Float("width_scale", 1)};
    scales = n.FloatsConstant(values, DType::kF32);
  }
  std::string mode = n.Str("mode", "nearest");
  if (mode == "bilinear") mode = "linear";
  n.Result(0,
           n.Make("onnx_resize", {{"X", {x}}, {"scales", {scales}}},
                  {{"mode", mode},
                   {"coordinate_transformation_mode", std::string("asymmetric")},
                   {"nearest_mode",
                    std::string(n.node().op_type == "Resize" ? "ceil_when_shrinking" : "floor")}},
                  "Y"));
  return true;
}

// Resizing images by whole factors, or linearly, with Paddle's operators.
bool LowerPlainResize(NodeLowering& n) {
  const int x = n.Required(0);
  const bool old = n.opset() < 11;
  if (n.opset() < 10 || n.rank(x) != 4 || n.dtype(x) != DType::kF32) return false;
  const std::string mode = n.Str("mode", "nearest");
  const std::string place =
      old ? "asymmetric" : n.Str("coordinate_transformation_mode", "half_pixel");
  const std::string rounding = old ? "floor" : n.Str("nearest_mode", "round_prefer_floor");
  const auto scales = n.ConstantFloats(n.In(old ? 1 : 2));
  if (!scales || scales->size() != 4 || (*scales)[0] != 1 || (*scales)[1] != 1 ||
      n.Find("axes") != nullptr || n.Int("antialias", 0) != 0 || n.Has(3))
    return false;
  const double h = (*scales)[2], w = (*scales)[3];
  const bool whole = h >= 1 && w >= 1 && h == std::floor(h) && w == std::floor(w);
  const bool half = place == "half_pixel";
  Attrs attrs = {{"scale", Floats{h, w}}, {"align_corners", false}};
  if (mode == "nearest") {
    const bool same =
        (place == "asymmetric" && rounding == "floor") || (half && rounding.starts_with("round"));
    if (!whole || !same) return false;
    n.Result(0, n.Make("nearest_interp_v2", {{"X", {x}}}, std::move(attrs)));
    return true;
  }
  if (mode != "linear" || !whole || !(half || place == "asymmetric")) return false;
  attrs.emplace_back("align_mode", int64_t{half ? 0 : 1});
  n.Result(0, n.Make("bilinear_interp_v2", {{"X", {x}}}, std::move(attrs)));
  return true;
}

bool LowerResize(NodeLowering& n) {
  return LowerPlainResize(n) || (n.opset() == 10 && LowerUpsample(n));
}

bool LowerAffineGrid(NodeLowering& n) {
  if (!NodeLowering::HasOperator("affine_grid")) return false;
  n.Result(0, n.Make("affine_grid", {{"Theta", {n.Required(0)}}, {"OutputShape", {n.Required(1)}}},
                     {{"align_corners", n.Int("align_corners", 0) != 0}}, "Output"));
  return true;
}

// Before opset 16 pixels have their numbers as places, and no half is taken away.
bool LowerRoiAlign(NodeLowering& n) {
  const std::string place =
      n.Str("coordinate_transformation_mode", n.opset() < 16 ? "output_half_pixel" : "half_pixel");
  if (place != "half_pixel" && place != "output_half_pixel")
    n.Problem("has the coordinate_transformation_mode '", place,
              "', expected half_pixel or output_half_pixel");
  n.Result(0,
           n.Make("roi_align",
                  {{"X", {n.Required(0)}}, {"ROIs", {n.Required(1)}}, {"Images", {n.Required(2)}}},
                  {{"pooled_height", n.Int("output_height", 1)},
                   {"pooled_width", n.Int("output_width", 1)},
                   {"sampling_ratio", n.Int("sampling_ratio", 0)},
                   {"spatial_scale", n.Float("spatial_scale", 1)},
                   {"aligned", place == "half_pixel"},
                   {"mode", n.Str("mode", "avg")}}));
  return true;
}

// A region is the number of its image and four places.
bool LowerMaxRoiPool(NodeLowering& n) {
  const int rois = n.Required(1);
  const Ints pooled = n.IntList("pooled_shape");
  if (pooled.size() != 2) n.Problem("has ", pooled.size(), " pooled sizes, expected 2");
  const auto columns = [&](int64_t from, int64_t to, Ints dropped) {
    return n.Make("slice", {{"Input", {rois}}},
                  {{"axes", Ints{1}},
                   {"starts", Ints{from}},
                   {"ends", Ints{to}},
                   {"decrease_axis", std::move(dropped)}});
  };
  n.Result(0, n.Make("roi_pool",
                     {{"X", {n.Required(0)}},
                      {"ROIs", {columns(1, 5, {})}},
                      {"Images", {n.Cast(columns(0, 1, {1}), DType::kI64)}}},
                     {{"pooled_height", pooled.size() == 2 ? pooled[0] : 1},
                      {"pooled_width", pooled.size() == 2 ? pooled[1] : 1},
                      {"spatial_scale", n.Float("spatial_scale", 1)}}));
  return true;
}

// Without a threshold every overlap counts.
bool LowerNonMaxSuppression(NodeLowering& n) {
  if (!NodeLowering::HasOperator("non_max_suppression")) return false;
  const int boxes = n.Required(0);
  if (n.rank(boxes) >= 0 && n.rank(boxes) != 3)
    n.Problem("has boxes of rank ", n.rank(boxes), ", expected 3");
  Ins ins{{"boxes", {boxes}},
          {"scores", {n.Required(1)}},
          {"iou_threshold", {n.Has(3) ? n.In(3) : n.FloatConstant(0, DType::kF32)}}};
  if (n.Has(2)) ins.emplace_back("max_output_size", std::vector<int>{n.In(2)});
  if (n.Has(4)) ins.emplace_back("score_threshold", std::vector<int>{n.In(4)});
  const int made = n.Make("non_max_suppression", std::move(ins),
                          {{"center_point_box", n.Int("center_point_box", 0)}}, "selected_indices");
  n.SetType(made, kInt64);
  n.Result(0, made);
  return true;
}

constexpr HandlerEntry kNetworkEntries[] = {
    {"", "AffineGrid", &LowerAffineGrid},
    {"", "AveragePool", &LowerAveragePool},
    {"", "Conv", &LowerConv},
    {"", "ConvTranspose", &LowerConvTranspose},
    {"", "Gemm", &LowerGemm},
    {"", "GlobalAveragePool", &LowerGlobalAveragePool},
    {"", "GlobalLpPool", &LowerGlobalLpPool},
    {"", "GlobalMaxPool", &LowerGlobalMaxPool},
    {"", "MatMul", &LowerMatMul},
    {"", "NegativeLogLikelihoodLoss", &LowerNegativeLogLikelihood},
    {"", "SoftmaxCrossEntropyLoss", &LowerSoftmaxCrossEntropy},
    {"", "MaxPool", &LowerMaxPool},
    {"", "MaxRoiPool", &LowerMaxRoiPool},
    {"", "MaxUnpool", &LowerMaxUnpool},
    {"", "NonMaxSuppression", &LowerNonMaxSuppression},
    {"", "Resize", &LowerResize},
    {"", "RoiAlign", &LowerRoiAlign},
    {"", "Upsample", &LowerUpsample},
    {"com.microsoft", "FusedConv", &LowerFusedConv},
    {"com.microsoft", "FusedMatMul", &LowerFusedMatMul},
};

}  // namespace

std::span<const HandlerEntry> NetworkHandlers() { return kNetworkEntries; }

}  // namespace heddle::onnx
