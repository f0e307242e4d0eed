// Convolutions, pooling, normalisation and matrix products.
#include <algorithm>
#include <cctype>
#include <limits>

#include "core/op_registry.h"
#include "core/shapes.h"
#include "formats/tensorflow/ops_direct.h"

namespace heddle::tensorflow {
namespace {

// Attributes of sliding windows in Paddle's order, for the spatial dimensions alone.
struct Windows {
  bool channels_last = true;
  Ints kernel, strides, dilations;
  Ints pads;          // begin and end of each dimension in turn; empty: SAME, computed at run time
  bool same = false;  // padding SAME of unknown sizes
};

// The spatial elements of a list with one element per dimension of the layout. Nothing if the
// elements of batch and channels are not 1, or the list has another length.
std::optional<Ints> Spatial(const Ints& list, size_t rank, bool channels_last) {
  if (list.empty()) return Ints(rank - 2, 1);
  const size_t channel = channels_last ? rank - 1 : 1;
  if (list.size() != rank || list[0] != 1 || list[channel] != 1) return std::nullopt;
  Ints spatial = list;
  spatial.erase(spatial.begin() + static_cast<int64_t>(channel));
  spatial.erase(spatial.begin());
  for (const int64_t v : spatial)
    if (v < 1 || v > std::numeric_limits<int32_t>::max()) return std::nullopt;
  return spatial;
}

// Reads the window attributes. `kernel`: the spatial sizes; empty: those of the attribute ksize.
std::optional<Windows> WindowsOf(NodeLowering& n, int x, Ints kernel, size_t rank) {
  Windows w;
  const std::string format = n.Str("data_format", rank == 4 ? "NHWC" : "NDHWC");
  const std::string padding = n.Str("padding", "VALID");
  w.channels_last = format.empty() || format.back() == 'C';
  const auto strides = Spatial(n.IntList("strides"), rank, w.channels_last);
  const auto dilations = Spatial(n.IntList("dilations"), rank, w.channels_last);
  if (kernel.empty()) {
    const auto ksize = Spatial(n.IntList("ksize"), rank, w.channels_last);
    if (!ksize) return std::nullopt;
    kernel = *ksize;
  }
  if (!strides || !dilations) return std::nullopt;
  w.kernel = kernel;
  w.strides = *strides;
  w.dilations = *dilations;
  const Ints pads = n.IntList("explicit_paddings");
  if (padding == "EXPLICIT" && pads.size() != 2 * rank) return std::nullopt;
  if (padding != "EXPLICIT" && padding != "SAME" && padding != "VALID") return std::nullopt;
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    const size_t dim = i + (w.channels_last ? 1 : 2);
    int64_t begin = 0, end = 0;
    if (padding == "EXPLICIT") {
      begin = pads[2 * dim];
      end = pads[2 * dim + 1];
      if (begin < 0 || end < 0) return std::nullopt;
    }
    if (padding == "SAME") {
      const bool ranked = n.rank(x) == static_cast<int>(rank);
      int64_t size = ranked ? n.shape(x)[static_cast<int>(dim)] : -1;
      if (w.kernel[i] < 0 || w.kernel[i] > std::numeric_limits<int32_t>::max()) return std::nullopt;
      const int64_t reach = w.dilations[i] * (w.kernel[i] - 1) + 1;
      if (size < 0 && w.strides[i] == 1) size = reach;  // any size gives the same padding
      if (size < 0) {
        w.same = true;
        continue;
      }
      const int64_t out = (size + w.strides[i] - 1) / w.strides[i];
      const int64_t total = std::max<int64_t>((out - 1) * w.strides[i] + reach - size, 0);
      begin = total / 2;
      end = total - begin;
    }
    w.pads.push_back(begin);
    w.pads.push_back(end);
  }
  if (w.same) {
    // The operators compute SAME padding themselves, except for dilated windows.
    for (const int64_t d : w.dilations)
      if (d != 1) return std::nullopt;
    w.pads.assign(w.kernel.size(), 0);
  }
  return w;
}

// One number per dimension where begin and end are equal: the form that most fusions look for.
Ints ShortPads(const Ints& pads, size_t spatial) {
  if (pads.size() == spatial) return pads;
  Ints one;
  for (size_t i = 0; i < pads.size(); i += 2) {
    if (pads[i] != pads[i + 1]) return pads;
    one.push_back(pads[i]);
  }
  return one;
}

Attrs WindowAttrs(const Windows& w, bool dilations) {
  const size_t spatial = w.kernel.size();
  const char* format =
      spatial == 2 ? (w.channels_last ? "NHWC" : "NCHW") : (w.channels_last ? "NDHWC" : "NCDHW");
  Attrs attrs{{"strides", w.strides},
              {"paddings", ShortPads(w.pads, spatial)},
              {"padding_algorithm", std::string(w.same ? "SAME" : "EXPLICIT")},
              {"data_format", std::string(format)}};
  if (dilations) attrs.emplace_back("dilations", w.dilations);
  return attrs;
}

// Transposes a filter; for constants, passes compute the result.
int Permuted(NodeLowering& n, int v, const Ints& perm) {
  return n.Make("transpose2", {{"X", {v}}}, {{"axis", perm}});
}

bool IsEmpty(NodeLowering& n, int v) { return n.shape(v).is_static() && n.shape(v).numel() == 0; }

// Reports window attributes that no form of the operator supports.
void SayBadWindows(NodeLowering& n) {
  n.Problem("has windows that are not supported: strides, dilations, ksize, padding '",
            n.Str("padding", ""),
            "' or explicit_paddings of another length or value, or SAME "
            "padding of dilated windows over sizes that are not known");
}

bool LowerConv(NodeLowering& n) {
  const size_t rank = n.op() == "Conv3D" ? 5 : 4;
  const int x = n.In(0), filter = n.In(1);
  const Shape f = n.shape(filter);
  const char* const general = rank == 4 ? "tf_conv2d" : "tf_conv3d";
  const bool ranked = n.rank(x) == static_cast<int>(rank);
  const std::string format = n.Str("data_format", "NHWC");
  const int64_t channels = ranked && !format.empty()
                               ? n.shape(x)[format.back() == 'C' ? static_cast<int>(rank) - 1 : 1]
                               : -1;
  // The number of groups follows from the numbers of channels, which must be known.
  if (f.rank() != static_cast<int>(rank) || channels < 1 || f[static_cast<int>(rank) - 2] < 1 ||
      IsEmpty(n, x))
    return LowerDirect(n, general);
  Ints kernel(f.begin(), f.end() - 2),
      perm{static_cast<int64_t>(rank) - 1, static_cast<int64_t>(rank) - 2};
  for (size_t i = 0; i + 2 < rank; ++i) perm.push_back(static_cast<int64_t>(i));
  const auto w = WindowsOf(n, x, kernel, rank);
  if (!w) return LowerDirect(n, general);
  // A filter with fewer input channels than the image belongs to a grouped convolution.
  const int64_t depth = f[static_cast<int>(rank) - 2];
  if (channels % depth != 0)
    n.Problem("convolves ", channels, " channels with a filter of shape ", f.ToString());
  const int64_t groups = std::max<int64_t>(1, channels / depth);
  Attrs attrs = WindowAttrs(*w, true);
  attrs.emplace_back("groups", groups);
  const bool depthwise = rank == 4 && groups > 1 && depth == 1;
  n.Result(0, n.Make(depthwise   ? "depthwise_conv2d"
                     : rank == 4 ? "conv2d"
                                 : "conv3d",
                     {{"Input", {x}}, {"Filter", {Permuted(n, filter, perm)}}}, std::move(attrs),
                     "Output"));
  return true;
}

// The filter [H, W, in, multiplier] becomes [in * multiplier, 1, H, W].
bool LowerDepthwise(NodeLowering& n) {
  const int x = n.In(0), filter = n.In(1);
  const Shape f = n.shape(filter);
  if (f.rank() != 4 || !f.is_static() || IsEmpty(n, x))
    return LowerDirect(n, "tf_depthwise_conv2d_native");
  const auto w = WindowsOf(n, x, {f[0], f[1]}, 4);
  if (!w) return LowerDirect(n, "tf_depthwise_conv2d_native");
  const int turned = n.Reshape(Permuted(n, filter, {2, 3, 0, 1}), {f[2] * f[3], 1, f[0], f[1]});
  Attrs attrs = WindowAttrs(*w, true);
  attrs.emplace_back("groups", f[2]);
  n.Result(0, n.Make(f[2] > 1 ? "depthwise_conv2d" : "conv2d",
                     {{"Input", {x}}, {"Filter", {turned}}}, std::move(attrs), "Output"));
  return true;
}

bool LowerPool(NodeLowering& n) {
  const bool max = n.op().starts_with("Max");
  const size_t rank = n.op().ends_with("3D") ? 5 : 4;
  const int x = n.In(0);
  std::optional<Windows> w;
  if (n.op() == "MaxPoolV2") {
    // MaxPoolV2 has ksize and strides as inputs.
    const Ints ksize = n.ConstantInts(n.In(1)).value_or(Ints()),
               strides = n.ConstantInts(n.In(2)).value_or(Ints());
    if (ksize.empty() || strides.empty()) return LowerDirect(n, "tf_max_pool_v2");
    const bool last = n.Str("data_format", "NHWC") != "NCHW";
    const auto kernel = Spatial(ksize, 4, last), steps = Spatial(strides, 4, last);
    if (kernel && steps) {
      w = Windows{last, *kernel, *steps, {1, 1}, {0, 0}, n.Str("padding", "VALID") == "SAME"};
    }
  } else {
    w = WindowsOf(n, x, {}, rank);
  }
  if (!w) {
    SayBadWindows(n);
    n.Result(0, n.NewVar(n.dtype(x)));
    return true;
  }
  Attrs attrs = WindowAttrs(*w, false);
  attrs.emplace_back("ksize", w->kernel);
  attrs.emplace_back("pooling_type", std::string(max ? "max" : "avg"));
  attrs.emplace_back("exclusive", true);
  // TensorFlow's kernels for 2-D and 3-D differ in how they treat NaN and -infinity.
  attrs.emplace_back("skip_nan", max && rank == 4);
  attrs.emplace_back("from_infinity", max && rank == 5);
  n.Result(0, n.Make(rank == 4 ? "pool2d" : "pool3d", {{"X", {x}}}, std::move(attrs)));
  return true;
}

// An empty tensor for an output that is not used.
int Empty(NodeLowering& n) { return n.FloatsConstant({}, DType::kF32); }

bool LowerBatchNorm(NodeLowering& n) {
  const int x = n.In(0), scale = n.In(1), offset = n.In(2), mean = n.In(3), variance = n.In(4);
  const double epsilon = n.Float("epsilon", 1e-4);
  const std::string format = n.Str("data_format", "NHWC");
  const bool training = n.Bool("is_training", true);
  if (!training && n.dtype(x) == DType::kF32 && format.size() == 4) {
    const auto made = n.MakeMany("batch_norm",
                                 {{"X", {x}},
                                  {"Scale", {scale}},
                                  {"Bias", {offset}},
                                  {"Mean", {mean}},
                                  {"Variance", {variance}}},
                                 {{"epsilon", epsilon}, {"is_test", true}, {"data_layout", format}},
                                 {"Y", "MeanOut", "VarianceOut"});
    n.Result(0, made[0]);
    n.Result(1, mean);
    n.Result(2, variance);
    n.Result(3, mean);
    n.Result(4, variance);
  } else {
    const auto made =
        n.MakeMany("tf_fused_batch_norm_v3",
                   {{"x", {x}},
                    {"scale", {scale}},
                    {"offset", {offset}},
                    {"mean", {mean}},
                    {"variance", {variance}}},
                   {{"epsilon", epsilon},
                    {"exponential_avg_factor", n.Float("exponential_avg_factor", 1)},
                    {"data_format", format},
                    {"is_training", training}},
                   {"y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2"});
    for (size_t i = 0; i < made.size(); ++i) n.Result(i, made[i]);
  }
  if (n.op() == "FusedBatchNormV3" && n.Wants(5)) n.Result(5, Empty(n));
  return true;
}

bool LowerBatchNormGrad(NodeLowering& n) {
  const auto made = n.MakeMany("tf_fused_batch_norm_grad_v3",
                               {{"y_backprop", {n.In(0)}},
                                {"x", {n.In(1)}},
                                {"scale", {n.In(2)}},
                                {"reserve_space_1", {n.In(3)}},
                                {"reserve_space_2", {n.In(4)}}},
                               {{"epsilon", n.Float("epsilon", 1e-4)},
                                {"data_format", n.Str("data_format", "NHWC")},
                                {"is_training", n.Bool("is_training", true)}},
                               {"x_backprop", "scale_backprop", "offset_backprop"});
  for (size_t i = 0; i < made.size(); ++i) n.Result(i, made[i]);
  for (size_t i = 3; i < 5; ++i)
    if (n.Wants(i)) n.Result(i, Empty(n));
  return true;
}

bool ChannelsFirst(NodeLowering& n) {
  return n.op() != "BiasAddV1" && n.Str("data_format", "NHWC").starts_with("NC");
}

bool LowerBiasAdd(NodeLowering& n) {
  const int x = n.In(0);
  const int made = n.Make("elementwise_add", {{"X", {x}}, {"Y", {n.In(1)}}},
                          {{"axis", int64_t{ChannelsFirst(n) ? 1 : -1}}});
  ResultLike(n, 0, made, x);
  return true;
}

bool LowerBiasAddGrad(NodeLowering& n) {
  const int x = n.In(0), rank = n.rank(x);
  if (rank < 2) return LowerDirect(n, "tf_bias_add_grad");
  Ints axes;
  for (int i = 0; i < rank; ++i)
    if (i != (ChannelsFirst(n) ? 1 : rank - 1)) axes.push_back(i);
  const int made = n.Make("reduce_sum", {{"X", {x}}}, {{"dim", axes}, {"keep_dim", false}});
  n.Result(0, n.Cast(made, n.dtype(x)));
  return true;
}

// A matrix product whose operands may be transposed or, for adjoints, also conjugated.
void Multiply(NodeLowering& n, int x, int y, bool trans_x, bool trans_y, bool conjugate) {
  if (conjugate && IsComplex(n.dtype(x))) {
    if (trans_x) x = n.Unary("conj", x);
    if (trans_y) y = n.Unary("conj", y);
  }
  int made;
  const bool empty = IsEmpty(n, x) || IsEmpty(n, y);
  if (empty && IsComplex(n.dtype(x)) && n.rank(x) == 2 && n.rank(y) == 2) {
    const int64_t rows = n.shape(x)[trans_x ? 1 : 0], cols = n.shape(y)[trans_y ? 0 : 1];
    made =
        n.Make("fill_constant", {},
               {{"shape", Ints{rows, cols}}, {"dtype", DTypeToProto(n.dtype(x))}, {"value", 0.0}});
  } else if (empty) {
    const auto turned = [&](int v) {
      Ints perm;
      const int rank = n.rank(v);
      for (int i = 0; i < rank; ++i) perm.push_back(i < rank - 2 ? i : 2 * rank - 3 - i);
      return Permuted(n, v, perm);
    };
    made = n.Make("onnx_mat_mul",
                  {{"A", {trans_x ? turned(x) : x}}, {"B", {trans_y ? turned(y) : y}}}, {}, "Y");
  } else {
    made =
        n.Make("matmul_v2", {{"X", {x}}, {"Y", {y}}}, {{"trans_x", trans_x}, {"trans_y", trans_y}});
  }
  ResultLike(n, 0, made, x);
}

bool LowerMatMul(NodeLowering& n) {
  Multiply(n, n.In(0), n.In(1), n.Bool("transpose_a", false), n.Bool("transpose_b", false), false);
  return true;
}
bool LowerBatchMatMul(NodeLowering& n) {
  int x = n.In(0), y = n.In(1);
  if (n.op() == "BatchMatMulV3") {
    const DType to = n.TypeAttr("Tout", n.dtype(x));
    x = n.Cast(x, to);
    y = n.Cast(y, to);
  }
  Multiply(n, x, y, n.Bool("adj_x", false), n.Bool("adj_y", false), true);
  return true;
}

bool LowerSoftmax(NodeLowering& n) {
  n.Result(0, n.Unary(n.op() == "Softmax" ? "softmax" : "log_softmax", n.In(0),
                      {{"axis", int64_t{-1}}}));
  return true;
}

bool Holds(std::string_view letters, char c) { return letters.find(c) != std::string_view::npos; }

// An operand of an einsum without repeated letters, with one letter per axis.
struct Lettered {
  int var;
  std::string letters;
  int64_t Size(const NodeLowering& n, char c) const {
    return n.shape(var)[static_cast<int>(letters.find(c))];
  }
};

int Reordered(NodeLowering& n, const Lettered& x, const std::string& letters) {
  Ints perm;
  for (const char c : letters) perm.push_back(static_cast<int64_t>(x.letters.find(c)));
  return x.letters == letters ? x.var : Permuted(n, x.var, perm);
}

// A product with a matrix, if both operands and the result keep the order of their axes. Several
// axes may form one axis of the matrix.
std::optional<int> ProductWithMatrix(NodeLowering& n, const Lettered& x, const Lettered& y,
                                     const std::string& rows, const std::string& inner,
                                     const std::string& columns) {
  int64_t depth = 1, width = 1;
  Ints flat(rows.size(), 0), split(rows.size(), 0);  // 0: the dimension of the input
  for (const char c : inner) {
    if (x.Size(n, c) != y.Size(n, c) || y.Size(n, c) <= 0 ||
        __builtin_mul_overflow(depth, y.Size(n, c), &depth))
      return std::nullopt;
  }
  for (const char c : columns) {
    if (y.Size(n, c) <= 0 || __builtin_mul_overflow(width, y.Size(n, c), &width))
      return std::nullopt;
    split.push_back(y.Size(n, c));
  }
  flat.push_back(depth);
  const int left = inner.size() > 1 ? n.Reshape(x.var, flat) : x.var;
  const int right = y.letters.size() > 2 ? n.Reshape(y.var, {depth, width}) : y.var;
  const int made = n.Binary("matmul_v2", left, right);
  return columns.size() > 1 ? n.Reshape(made, split) : made;
}

// An einsum that is a matrix product between transposes or reshapes: passes know more about these
// operators (attention, for one). Nothing: it is no such product, or a size that is needed is not
// known.
std::optional<int> EinsumProduct(NodeLowering& n, Lettered x, Lettered y, const std::string& out) {
  std::string batch, rows, columns, inner;
  for (const char c : out) {
    const bool in_x = Holds(x.letters, c), in_y = Holds(y.letters, c);
    if (!in_x && !in_y) return std::nullopt;
    (in_x && in_y ? batch : in_x ? rows : columns).push_back(c);
  }
  for (const char c : x.letters)
    if (!Holds(out, c)) inner.push_back(c);
  for (const char c : inner)
    if (!Holds(y.letters, c)) return std::nullopt;
  if (batch.size() + columns.size() + inner.size() != y.letters.size() || inner.empty() ||
      n.rank(x.var) != static_cast<int>(x.letters.size()) ||
      n.rank(y.var) != static_cast<int>(y.letters.size()))
    return std::nullopt;
  if (batch.empty())
    return x.letters == rows + inner && y.letters == inner + columns && out == rows + columns &&
                   !rows.empty() && !columns.empty()
               ? ProductWithMatrix(n, x, y, rows, inner, columns)
               : std::nullopt;
  if (rows.size() != 1 || columns.size() != 1 || inner.size() != 1) return std::nullopt;
  for (const char c : batch + inner)
    if (x.Size(n, c) >= 0 && y.Size(n, c) >= 0 && x.Size(n, c) != y.Size(n, c)) return std::nullopt;
  if (out.find(columns) < out.find(rows)) {
    std::swap(x, y);
    std::swap(rows, columns);
  }
  const bool turned = y.letters.find(columns) < y.letters.find(inner);
  const int left = Reordered(n, x, batch + rows + inner);
  const int right = Reordered(n, y, batch + (turned ? columns + inner : inner + columns));
  const int made = n.Make("matmul_v2", {{"X", {left}}, {"Y", {right}}}, {{"trans_y", turned}});
  return Reordered(n, {made, batch + rows + columns}, out);
}

// The shape of an einsum's result; a letter's size is known if it is in one operand.
Shape ShapeByLetters(const NodeLowering& n, const std::vector<Lettered>& operands,
                     const std::string& out) {
  Shape shape;
  for (const char c : out) {
    int64_t size = -1;
    for (const Lettered& x : operands)
      if (Holds(x.letters, c) && n.rank(x.var) == static_cast<int>(x.letters.size()))
        size = std::max(size, x.Size(n, c));
    shape.push_back(size);
  }
  return shape;
}

// An einsum of two real operands without repeated letters becomes Paddle's; any other a general
// operator.
bool LowerEinsum(NodeLowering& n) {
  const std::vector<int> inputs = n.AllInputs();
  std::string equation = n.Str("equation", "");
  std::erase(equation, ' ');
  if (inputs.empty()) return false;
  std::string_view left = equation;
  left = left.substr(0, left.find("->"));
  bool plain = inputs.size() == 2 && equation.find("->") != std::string::npos &&
               (n.dtype(inputs[0]) == DType::kF32 || n.dtype(inputs[0]) == DType::kF64) &&
               equation.find('.') == std::string::npos;
  for (const int v : inputs) plain = plain && !IsEmpty(n, v);
  std::string seen;
  for (const char c : left) {
    if (c == ',') seen.clear();
    plain = plain && (c == ',' || seen.find(c) == std::string::npos);
    seen.push_back(c);
  }
  const std::string out = equation.substr(std::min(equation.size(), left.size() + 2));
  const size_t comma = std::min(left.find(','), left.size());
  for (const char c : out) plain = plain && std::count(out.begin(), out.end(), c) == 1;
  plain = plain && comma < left.size();
  if (plain) {
    const Lettered x{inputs[0], std::string(left.substr(0, comma))};
    const Lettered y{inputs[1], std::string(left.substr(comma + 1))};
    const auto product = EinsumProduct(n, x, y, out);
    const int made =
        product ? *product : n.Make("einsum", {{"Operands", inputs}}, {{"equation", equation}});
    if (!n.shape(made).is_static()) n.SetShape(made, ShapeByLetters(n, {x, y}, out));
    ResultLike(n, 0, made, inputs[0]);
  } else if (IsComplex(n.dtype(inputs[0]))) {
    n.Result(0, n.Make("einsum", {{"Operands", inputs}}, {{"equation", equation}}));
  } else {
    ResultLike(n, 0,
               n.Make("onnx_einsum", {{"Inputs", inputs}}, {{"equation", equation}}, "Output"),
               inputs[0]);
  }
  return true;
}

bool LowerLrn(NodeLowering& n) {
  return LowerDirect(n, n.op() == "LRN" ? "tf_lrn" : "tf_lrn_grad");
}

constexpr HandlerEntry kNetworkEntries[] = {
    {"AvgPool", &LowerPool},
    {"AvgPool3D", &LowerPool},
    {"BatchMatMul", &LowerBatchMatMul},
    {"BatchMatMulV2", &LowerBatchMatMul},
    {"BatchMatMulV3", &LowerBatchMatMul},
    {"BiasAdd", &LowerBiasAdd},
    {"BiasAddGrad", &LowerBiasAddGrad},
    {"BiasAddV1", &LowerBiasAdd},
    {"Conv2D", &LowerConv},
    {"Conv3D", &LowerConv},
    {"DepthwiseConv2dNative", &LowerDepthwise},
    {"Einsum", &LowerEinsum},
    {"FusedBatchNorm", &LowerBatchNorm},
    {"FusedBatchNormGrad", &LowerBatchNormGrad},
    {"FusedBatchNormGradV2", &LowerBatchNormGrad},
    {"FusedBatchNormGradV3", &LowerBatchNormGrad},
    {"FusedBatchNormV2", &LowerBatchNorm},
    {"FusedBatchNormV3", &LowerBatchNorm},
    {"LRN", &LowerLrn},
    {"LRNGrad", &LowerLrn},
    {"LogSoftmax", &LowerSoftmax},
    {"MatMul", &LowerMatMul},
    {"MaxPool", &LowerPool},
    {"MaxPool3D", &LowerPool},
    {"MaxPoolV2", &LowerPool},
    {"Softmax", &LowerSoftmax},
};

}  // namespace

std::span<const HandlerEntry> NetworkHandlers() { return kNetworkEntries; }

}  // namespace heddle::tensorflow
