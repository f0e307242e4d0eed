// Convolutions, pooling and normalisation.
#include <algorithm>
#include <cctype>
#include <limits>

#include "core/op_registry.h"
#include "core/shapes.h"
#include "formats/tensorflow/direct/ops_direct.h"

namespace heddle::tensorflow {
namespace {

// Attributes of sliding windows in Paddle's order, for the spatial dimensions alone.
struct Windows {
  bool channels_last = true;
  Ints kernel, strides, dilations;
  Ints pads;          // begin and end of each dimension in turn; empty: SAME, computed at run time
  bool same = false;  // padding SAME of unknown sizes
  bool dilated = false;
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
std::optional<Windows> WindowsOf(NodeLowering& n, const Shape& x, Ints kernel, size_t rank) {
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
      const bool ranked = x.rank() == static_cast<int>(rank);
      int64_t size = ranked ? x[static_cast<int>(dim)] : -1;
      if (w.kernel[i] > std::numeric_limits<int32_t>::max()) return std::nullopt;
      if (w.kernel[i] < 0) {
        w.same = true;
        continue;
      }
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
    // The operators compute SAME padding themselves.
    for (const int64_t d : w.dilations) w.dilated = w.dilated || d != 1;
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
              {"padding_algorithm", std::string(!w.same     ? "EXPLICIT"
                                                : w.dilated ? "SAME_DILATED"
                                                            : "SAME")},
              {"data_format", std::string(format)}};
  if (dilations) attrs.emplace_back("dilations", w.dilations);
  return attrs;
}

// Reports window attributes that no form of the operator supports.
void SayBadWindows(NodeLowering& n) {
  n.Problem("has windows that are not supported: strides, dilations, ksize, padding '",
            n.Str("padding", ""),
            "' or explicit_paddings of another length or value, or SAME "
            "padding of dilated windows over sizes that are not known");
}

// The spatial sizes of a filter, -1 where they are not known.
Ints KernelOf(const Shape& filter, size_t rank) {
  if (filter.rank() != static_cast<int>(rank)) return Ints(rank - 2, -1);
  return Ints(filter.begin(), filter.end() - 2);
}

bool LowerConv(NodeLowering& n) {
  const size_t rank = n.op() == "Conv3D" ? 5 : 4;
  const int x = n.In(0), filter = n.In(1);
  const Shape f = n.shape(filter);
  const bool ranked = n.rank(x) == static_cast<int>(rank);
  const std::string format = n.Str("data_format", "NHWC");
  const int64_t channels = ranked && !format.empty()
                               ? n.shape(x)[format.back() == 'C' ? static_cast<int>(rank) - 1 : 1]
                               : -1;
  const int64_t depth =
      f.rank() == static_cast<int>(rank) ? f[static_cast<int>(rank) - 2] : int64_t{-1};
  Ints perm{static_cast<int64_t>(rank) - 1, static_cast<int64_t>(rank) - 2};
  for (size_t i = 0; i + 2 < rank; ++i) perm.push_back(static_cast<int64_t>(i));
  const auto w = WindowsOf(n, n.shape(x), KernelOf(f, rank), rank);
  if (!w) {
    SayBadWindows(n);
    n.Result(0, n.NewVar(n.dtype(x)));
    return true;
  }
  // A filter with fewer input channels than the image belongs to a grouped convolution.
  const bool known = channels > 0 && depth > 0;
  if (known && channels % depth != 0)
    n.Problem("convolves ", channels, " channels with a filter of shape ", f.ToString());
  const int64_t groups = known ? std::max<int64_t>(1, channels / depth) : 0;
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
  const bool known = f.rank() == 4 && f.is_static();
  const auto w = WindowsOf(n, n.shape(x), KernelOf(f, 4), 4);
  if (!w) {
    SayBadWindows(n);
    n.Result(0, n.NewVar(n.dtype(x)));
    return true;
  }
  const int turned = n.Reshape(Permuted(n, filter, {2, 3, 0, 1}),
                               known ? Ints{f[2] * f[3], 1, f[0], f[1]} : Ints{-1, 1, 0, 0});
  Attrs attrs = WindowAttrs(*w, true);
  const int64_t groups = known ? f[2] : 0;
  attrs.emplace_back("groups", groups);
  n.Result(0, n.Make(groups > 1 ? "depthwise_conv2d" : "conv2d",
                     {{"Input", {x}}, {"Filter", {turned}}}, std::move(attrs), "Output"));
  return true;
}

// The gradient of a filter or of an input, whose sizes are an operand.
bool LowerConvBackprop(NodeLowering& n) {
  const bool input = n.op().find("BackpropInput") != n.op().npos;
  Attrs attrs{{"depthwise", n.op().starts_with("Depthwise")}};
  for (const std::string_view name : {"strides", "explicit_paddings", "dilations"})
    if (n.Has(name)) attrs.emplace_back(name, n.IntList(name));
  for (const std::string_view name : {"padding", "data_format"})
    if (n.Has(name)) attrs.emplace_back(name, n.Str(name, ""));
  Ins ins{{input ? "input_sizes" : "input", {n.In(0)}},
          {input ? "filter" : "filter_sizes", {n.In(1)}},
          {"out_backprop", {n.In(2)}}};
  n.Result(0, n.Make(input ? "conv_backprop_input" : "conv_backprop_filter", std::move(ins),
                     std::move(attrs), "output"));
  return true;
}

// The number of steps comes first.
bool LowerBlockLstm(NodeLowering& n) {
  std::vector<int> inputs = n.AllInputs();
  std::rotate(inputs.begin(), inputs.begin() + (inputs.empty() ? 0 : 1), inputs.end());
  return LowerDirect(n, "block_lstm", inputs);
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
    w = WindowsOf(n, n.shape(x), {}, rank);
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

// The gradient of maxima from their input and output, that of means from the shape of their input.
bool LowerPoolGrad(NodeLowering& n) {
  const bool max = n.op().starts_with("Max");
  const size_t rank = n.op().find("3D") != n.op().npos ? 5 : 4;
  const auto w = WindowsOf(n, max ? n.shape(n.In(0)) : Shape::Unknown(), {}, rank);
  if (!w) {
    SayBadWindows(n);
    n.Result(0, n.NewVar(n.dtype(n.In(1))));
    return true;
  }
  Attrs attrs = WindowAttrs(*w, false);
  attrs.emplace_back("ksize", w->kernel);
  attrs.emplace_back("pooling_type", std::string(max ? "max" : "avg"));
  Ins ins{{"Out@GRAD", {n.In(max ? 2 : 1)}}};
  if (max) {
    ins.emplace_back("X", std::vector<int>{n.In(0)});
    ins.emplace_back("Out", std::vector<int>{n.In(1)});
  } else {
    ins.emplace_back("Shape", std::vector<int>{n.In(0)});
  }
  n.Result(0, n.Make(rank == 4 ? "pool2d_grad" : "pool3d_grad", std::move(ins), std::move(attrs),
                     "X@GRAD"));
  return true;
}

// An empty tensor for an output that is not used.
int Empty(NodeLowering& n) { return n.FloatsConstant({}, DType::kF32); }

// What batch_norm and its gradient are told of a node.
Attrs BatchNormAttrs(NodeLowering& n) {
  const bool last = n.Str("data_format", "NHWC").ends_with('C');
  const bool training = n.Bool("is_training", true);
  Attrs attrs{{"epsilon", n.Float("epsilon", 1e-4)},
              {"is_test", !training},
              {"data_layout", std::string(last ? "NHWC" : "NCHW")}};
  if (training) attrs.insert(attrs.end(), {{"lone_passes", false}, {"saves_variance", true}});
  return attrs;
}

bool LowerBatchNorm(NodeLowering& n) {
  const int mean = n.In(3), variance = n.In(4);
  Attrs attrs = BatchNormAttrs(n);
  std::vector<std::string_view> outs{"Y"};
  if (n.Bool("is_training", true)) {
    attrs.emplace_back("momentum", 1 - n.Float("exponential_avg_factor", 1));
    attrs.emplace_back("unbiased", true);
    outs = {"Y", "MeanOut", "VarianceOut", "SavedMean", "SavedVariance"};
  }
  std::vector<int> made = n.MakeMany("batch_norm",
                                     {{"X", {n.In(0)}},
                                      {"Scale", {n.In(1)}},
                                      {"Bias", {n.In(2)}},
                                      {"Mean", {mean}},
                                      {"Variance", {variance}}},
                                     std::move(attrs), outs);
  if (made.size() == 1) made.insert(made.end(), {mean, variance, mean, variance});
  for (size_t i = 0; i < made.size(); ++i) n.Result(i, made[i]);
  if (n.op() == "FusedBatchNormV3" && n.Wants(5)) n.Result(5, Empty(n));
  return true;
}

bool LowerBatchNormGrad(NodeLowering& n) {
  const bool training = n.Bool("is_training", true);
  const auto made = n.MakeMany("batch_norm_grad",
                               {{"Y@GRAD", {n.In(0)}},
                                {"X", {n.In(1)}},
                                {"Scale", {n.In(2)}},
                                {training ? "SavedMean" : "Mean", {n.In(3)}},
                                {training ? "SavedVariance" : "Variance", {n.In(4)}}},
                               BatchNormAttrs(n), {"X@GRAD", "Scale@GRAD", "Bias@GRAD"});
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
  const int channels = ChannelsFirst(n) ? 1 : rank - 1;
  int made;
  if (rank >= 0) {
    if (rank < 2)
      n.Problem("takes a gradient of shape ", n.shape(x).ToString(), ", expected rank 2 or more");
    Ints axes;
    for (int i = 0; i < rank; ++i)
      if (i != channels) axes.push_back(i);
    made = n.Make("reduce_sum", {{"X", {x}}}, {{"dim", axes}, {"keep_dim", false}});
  } else {
    int axes = n.AxesFrom(x, 0, 1);
    if (ChannelsFirst(n))
      axes = n.Make("concat", {{"X", {n.IntsConstant({0}), n.AxesFrom(x, 2)}}},
                    {{"axis", int64_t{0}}});
    made = n.Make("reduce_sum", {{"X", {x}}, {"Axes", {axes}}});
  }
  n.Result(0, n.Cast(made, n.dtype(x)));
  return true;
}

bool LowerSoftmax(NodeLowering& n) {
  n.Result(0, n.Unary(n.op() == "Softmax" ? "softmax" : "log_softmax", n.In(0),
                      {{"axis", int64_t{-1}}}));
  return true;
}

// Losses of rows of logits, and the gradient of their sum.
bool LowerCrossEntropy(NodeLowering& n) {
  int x = n.In(0), labels = n.In(1);
  const bool soft = n.op() == "SoftmaxCrossEntropyWithLogits";
  if (soft && !(n.shape(x).is_static() && n.shape(x) == n.shape(labels))) {  // they broadcast
    const auto zeros = [&](int like) {
      return n.Unary("fill_any_like", like, {{"value", 0.0}, {"dtype", int64_t{-1}}});
    };
    const int wide = n.Binary("elementwise_add", x, zeros(labels));
    labels = n.Binary("elementwise_add", labels, zeros(x));
    x = wide;
  }
  const Attrs attrs{{"soft_label", soft}, {"ignore_index", std::numeric_limits<int64_t>::min()}};
  Attrs forward = attrs;
  forward.emplace_back("bounded", false);
  const std::vector<int> made =
      n.MakeMany("softmax_with_cross_entropy", {{"Logits", {x}}, {"Label", {labels}}},
                 std::move(forward), {"Softmax", "Loss"});
  n.Result(0, n.Reshape(made[1], {-1}));
  if (!n.Wants(1)) return true;
  const int ones = n.Unary("fill_any_like", made[1], {{"value", 1.0}, {"dtype", int64_t{-1}}});
  n.Result(1, n.Make("softmax_with_cross_entropy_grad",
                     {{"Softmax", {made[0]}}, {"Label", {labels}}, {"Loss@GRAD", {ones}}}, attrs,
                     "Logits@GRAD"));
  return true;
}

// Half the sum of squares.
bool LowerL2Loss(NodeLowering& n) {
  const int sum =
      n.Unary("reduce_sum", n.In(0),
              {{"reduce_all", true}, {"in_double", true}, {"of", std::string("square")}});
  n.Result(0, n.Times(sum, 0.5));
  return true;
}

Attrs LrnAttrs(NodeLowering& n) {
  return {{"n", 2 * std::min(n.Int("depth_radius", 5), int64_t{1} << 40) + 1},
          {"k", n.Float("bias", 1)},
          {"alpha", n.Float("alpha", 1)},
          {"beta", n.Float("beta", 0.5)},
          {"data_format", std::string("NHWC")}};
}

bool LowerLrn(NodeLowering& n) {
  n.Result(0, n.Make("lrn", {{"X", {n.In(0)}}}, LrnAttrs(n)));
  return true;
}

// What the image was divided by is computed anew.
bool LowerLrnGrad(NodeLowering& n) {
  const int x = n.In(1);
  const std::vector<int> made = n.MakeMany("lrn", {{"X", {x}}}, LrnAttrs(n), {"Out", "MidOut"});
  n.Result(0,
           n.Make("lrn_grad",
                  {{"X", {x}}, {"Out", {n.In(2)}}, {"MidOut", {made[1]}}, {"Out@GRAD", {n.In(0)}}},
                  LrnAttrs(n), "X@GRAD"));
  return true;
}

constexpr HandlerEntry kNetworkEntries[] = {
    {"AvgPool", &LowerPool},
    {"AvgPool3D", &LowerPool},
    {"AvgPool3DGrad", &LowerPoolGrad},
    {"AvgPoolGrad", &LowerPoolGrad},
    {"BiasAdd", &LowerBiasAdd},
    {"BiasAddGrad", &LowerBiasAddGrad},
    {"BiasAddV1", &LowerBiasAdd},
    {"BlockLSTM", &LowerBlockLstm},
    {"Conv2DBackpropFilter", &LowerConvBackprop},
    {"Conv2DBackpropInput", &LowerConvBackprop},
    {"Conv3DBackpropFilterV2", &LowerConvBackprop},
    {"Conv3DBackpropInputV2", &LowerConvBackprop},
    {"DepthwiseConv2dNativeBackpropFilter", &LowerConvBackprop},
    {"DepthwiseConv2dNativeBackpropInput", &LowerConvBackprop},
    {"Conv2D", &LowerConv},
    {"Conv3D", &LowerConv},
    {"DepthwiseConv2dNative", &LowerDepthwise},
    {"FusedBatchNorm", &LowerBatchNorm},
    {"FusedBatchNormGrad", &LowerBatchNormGrad},
    {"FusedBatchNormGradV2", &LowerBatchNormGrad},
    {"FusedBatchNormGradV3", &LowerBatchNormGrad},
    {"FusedBatchNormV2", &LowerBatchNorm},
    {"FusedBatchNormV3", &LowerBatchNorm},
    {"L2Loss", &LowerL2Loss},
    {"LRN", &LowerLrn},
    {"LRNGrad", &LowerLrnGrad},
    {"LogSoftmax", &LowerSoftmax},
    {"MaxPool", &LowerPool},
    {"MaxPool3D", &LowerPool},
    {"MaxPool3DGrad", &LowerPoolGrad},
    {"MaxPoolGrad", &LowerPoolGrad},
    {"MaxPoolV2", &LowerPool},
    {"Softmax", &LowerSoftmax},
    {"SoftmaxCrossEntropyWithLogits", &LowerCrossEntropy},
    {"SparseSoftmaxCrossEntropyWithLogits", &LowerCrossEntropy},
};

}  // namespace

std::span<const HandlerEntry> NetworkHandlers() { return kNetworkEntries; }

}  // namespace heddle::tensorflow
