// Normalisation and softmax.
#include <cmath>

#include "core/dtype_of.h"
#include "offload/onnx/handlers.h"

namespace heddle::offload::to_onnx {
namespace {

void WriteSoftmaxBy(NodeWriter& n, const char* type) {
  if (!n.IsFloat("X")) return;
  if (n.Rank("X") == 0) return n.Refuse("X is one number");
  n.Out("Out", n.Make(type, {n.In("X")}, {{"axis", n.Axis(n.Int("axis"), "X")}}));
}
void WriteSoftmax(NodeWriter& n) { WriteSoftmaxBy(n, "Softmax"); }
void WriteLogSoftmax(NodeWriter& n) { WriteSoftmaxBy(n, "LogSoftmax"); }

// The operand, or as many equal numbers.
std::string OrFilled(NodeWriter& n, std::string_view slot, double otherwise, int64_t count) {
  return n.Has(slot) ? n.In(slot) : n.Filled(otherwise, n.dtype("X"), {count});
}

// Factor and summand of each channel, where all statistics are constants.
template <typename T>
bool Folded(NodeWriter& n, int64_t channels, double epsilon, Tensor* factor, Tensor* summand) {
  const auto data = [&](std::string_view slot) {
    const Tensor* t = n.Constant(slot);
    return t != nullptr && t->numel() == channels ? t->data<T>() : nullptr;
  };
  const T *mean = data("Mean"), *variance = data("Variance"), *scale = data("Scale"),
          *bias = data("Bias");
  if (mean == nullptr || variance == nullptr || (scale == nullptr && n.Has("Scale")) ||
      (bias == nullptr && n.Has("Bias")))
    return false;
  *factor = Tensor::Empty(n.dtype("X"), {channels});
  *summand = Tensor::Empty(n.dtype("X"), {channels});
  for (int64_t i = 0; i < channels; ++i) {
    const double f = (scale != nullptr ? static_cast<double>(scale[i]) : 1) /
                     std::sqrt(static_cast<double>(variance[i]) + epsilon);
    const double b = bias != nullptr ? static_cast<double>(bias[i]) : 0;
    factor->mutable_data<T>()[i] = static_cast<T>(f);
    summand->mutable_data<T>()[i] = static_cast<T>(b - static_cast<double>(mean[i]) * f);
  }
  return true;
}

void WriteBatchNorm(NodeWriter& n) {
  if (!n.IsFloat("X")) return;
  if (!(n.Bool("is_test") && !n.Bool("trainable_statistics")) && !n.Bool("use_global_stats"))
    return n.Refuse("it takes the statistics of what it is given");
  for (const char* slot : {"Scale", "Bias", "Mean", "Variance"})
    if (n.Has(slot) && n.dtype(slot) != n.dtype("X"))
      return n.Refuse(slot, " is ", Name(n.dtype(slot)));
  const Shape& mean = n.shape("Mean");
  const int rank = n.Rank("X");
  if (!mean.is_static() || mean.rank() != 1 || rank < 2)
    return n.Refuse("the number of channels is not known");
  const DType t = n.dtype("X");
  const int64_t channels = mean[0];
  const double epsilon = n.Real("epsilon");
  if (n.Text("data_layout") == "NHWC" && rank > 2) {
    // Channels that come last need no other order.
    Tensor factor, summand;
    const bool folded = t == DType::kF32 ? Folded<float>(n, channels, epsilon, &factor, &summand)
                                         : Folded<double>(n, channels, epsilon, &factor, &summand);
    if (!folded) return n.Refuse("its channels come last and its statistics are no constants");
    return n.Out("Y", n.Make("Add", {n.Make("Mul", {n.In("X"), n.Hold(factor)}), n.Hold(summand)}));
  }
  n.Out("Y", n.Make("BatchNormalization",
                    {n.In("X"), OrFilled(n, "Scale", 1, channels), OrFilled(n, "Bias", 0, channels),
                     n.In("Mean"), n.In("Variance")},
                    {{"epsilon", n.Float(epsilon, t)}}));
}

// As ONNX has it: statistics of X's rank, parameters that broadcast.
void WriteRowNorm(NodeWriter& n) {
  Names inputs = {n.In("X")};
  if (!n.Has("Scale")) return n.Refuse("it has no Scale");
  for (const char* slot : {"Scale", "Bias"}) {
    if (!n.Has(slot)) continue;
    if (n.dtype(slot) != n.dtype("X")) return n.Refuse(slot, " is ", Name(n.dtype(slot)));
    inputs.push_back(n.In(slot));
  }
  constexpr const char* kOuts[] = {"Y", "Mean", "Variance"};
  const size_t outputs = n.Wants("Variance") ? 3 : n.Wants("Mean") ? 2 : 1;
  const Names made = n.MakeMany(
      "LayerNormalization", std::move(inputs), outputs,
      {{"axis", n.Int("begin_norm_axis")}, {"epsilon", n.Float(n.Real("epsilon"), n.dtype("X"))}});
  for (size_t k = 0; k < outputs; ++k) n.Out(kOuts[k], made[k]);
}

void WriteLayerNorm(NodeWriter& n) {
  if (!n.IsFloat("X")) return;
  if (n.Bool("inverse_deviation")) return WriteRowNorm(n);
  const int rank = n.Rank("X");
  const int64_t begin = n.Int("begin_norm_axis");
  if (begin < 1 || begin >= rank) return n.Refuse("it begins at axis ", begin, " of ", rank);
  Ints dims;
  for (int64_t i = begin; i < rank; ++i) dims.push_back(n.shape("X")[static_cast<int>(i)]);
  // A scale alone tells the size of one dimension.
  if (dims.size() == 1 && dims[0] < 0 && n.Has("Scale") && n.shape("Scale").is_static())
    dims[0] = n.shape("Scale").numel();
  Shape row;
  for (const int64_t d : dims) row.push_back(d);
  if (!row.is_static()) return n.Refuse("the size of what it normalises is not known");
  if (row.numel() == 0) return n.Refuse("it normalises nothing");
  const auto operand = [&](std::string_view slot, double otherwise) {
    if (!n.Has(slot)) return n.Filled(otherwise, n.dtype("X"), row);
    if (n.dtype(slot) != n.dtype("X")) n.Refuse(slot, " is ", Name(n.dtype(slot)));
    return n.shape(slot) == row ? n.In(slot) : n.Reshape(n.In(slot), dims);
  };
  Names inputs = {n.In("X"), operand("Scale", 1)};
  if (n.Has("Bias")) inputs.push_back(operand("Bias", 0));
  n.Out("Y",
        n.Make("LayerNormalization", std::move(inputs),
               {{"axis", begin - rank}, {"epsilon", n.Float(n.Real("epsilon"), n.dtype("X"))}}));
}

void WriteInstanceNorm(NodeWriter& n) {
  if (!n.IsFloat("X")) return;
  if (n.Rank("X") < 3) return n.Refuse("X has rank ", n.Rank("X"));
  const int64_t channels = n.shape("X")[1];
  if (channels < 0) return n.Refuse("the number of channels is not known");
  n.Out("Y",
        n.Make("InstanceNormalization",
               {n.In("X"), OrFilled(n, "Scale", 1, channels), OrFilled(n, "Bias", 0, channels)},
               {{"epsilon", n.Float(n.Real("epsilon"), n.dtype("X"))}}));
}

// Groups of channels as the channels of what instances normalise.
void WriteGroupNorm(NodeWriter& n) {
  if (!n.IsFloat("X")) return;
  if (n.Text("data_layout") != "NCHW") return n.Refuse("its channels come last");
  if (n.Bool("per_group")) return n.Refuse("its scale and bias are those of groups");
  const Shape& x = n.shape("X");
  const int64_t groups = n.Int("groups");
  if (n.Rank("X") < 3 || x[1] < 0 || groups < 1 || x[1] % groups != 0)
    return n.Refuse("the channels of X, ", x.ToString(), ", are no ", groups, " groups");
  const DType t = n.dtype("X");
  const std::string input = n.In("X");
  const std::string apart = n.Reshape(input, {0, groups, -1});
  const std::string normal =
      n.Make("InstanceNormalization", {apart, n.Filled(1, t, {groups}), n.Filled(0, t, {groups})},
             {{"epsilon", n.Float(n.Real("epsilon"), t)}});
  std::string y = n.Make("Reshape", {normal, n.Make("Shape", {input})});
  Ints each(static_cast<size_t>(x.rank() - 1), 1);
  each[0] = x[1];
  if (n.Has("Scale")) y = n.Make("Mul", {y, n.Reshape(n.In("Scale"), each)});
  if (n.Has("Bias")) y = n.Make("Add", {y, n.Reshape(n.In("Bias"), each)});
  n.Out("Y", y);
}

void WriteLrn(NodeWriter& n) {
  const int64_t size = n.Int("n");
  if (!n.IsOneOf("X", {DType::kF32})) return;
  if (n.Rank("X") != 4 || size < 1 || size % 2 == 0 || n.Text("data_format") == "NHWC")
    return n.Refuse("it takes ", size, " channels of '", n.Text("data_format"), "'");
  n.Out("Out", n.Make("LRN", {n.In("X")},
                      {{"size", size},
                       {"alpha", n.Real("alpha") * static_cast<double>(size)},
                       {"beta", n.Real("beta")},
                       {"bias", n.Real("k")}}));
}

void WriteNorm(NodeWriter& n) {
  if (!n.IsFloat("X")) return;
  const int64_t axis = n.Axis(n.Int("axis"), "X");
  const std::string x = n.In("X");
  const std::string squares =
      n.Make("ReduceSum", {n.Make("Mul", {x, x}), n.Vector({axis})}, {{"keepdims", int64_t{1}}});
  const std::string sum = n.Make("Add", {squares, n.Scalar(n.Real("epsilon"), n.dtype("X"))});
  n.Out("Out", n.Make("Div", {x, n.Make("Sqrt", {sum})}));
}

constexpr Handler kNormalizeTable[] = {
    {"batch_norm", &WriteBatchNorm},
    {"group_norm", &WriteGroupNorm},
    {"instance_norm", &WriteInstanceNorm},
    {"layer_norm", &WriteLayerNorm},
    {"log_softmax", &WriteLogSoftmax},
    {"lrn", &WriteLrn},
    {"norm", &WriteNorm},
    {"softmax", &WriteSoftmax},
};

}  // namespace

std::span<const Handler> NormalizeHandlers() { return kNormalizeTable; }

}  // namespace heddle::offload::to_onnx
