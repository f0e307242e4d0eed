// Normalisation and softmax.
#include <algorithm>
#include <bit>
#include <limits>

#include "core/shapes.h"
#include "formats/onnx/handlers.h"

namespace heddle::onnx {
namespace {

// Softmax along one axis from opset 13 on; before, over all axes from `axis` on together.
bool LowerSoftmaxBy(NodeLowering& n, const char* type) {
  const int x = n.Required(0);
  const bool old = n.opset() < 13;
  int64_t axis = n.Int("axis", old ? 1 : -1);
  const int rank = n.rank(x);
  if (rank == 0) return false;
  if (rank > 0 && n.shape(x).is_static() && n.shape(x).numel() == 0) {
    n.Result(0, n.Unary("assign", x));
    return true;
  }
  if (rank > 0 && axis < 0) axis += rank;
  if (!old || axis == -1 || (rank > 0 && axis == rank - 1)) {
    n.Result(0, n.Unary(type, x, {{"axis", axis}}));
    return true;
  }
  const int flat = n.Unary(type, n.Unary("flatten2", x, {{"axis", axis}}), {{"axis", int64_t{-1}}});
  if (n.shape(x).is_static()) {
    n.Result(0, n.Reshape(flat, Ints(n.shape(x).begin(), n.shape(x).end())));
  } else {
    // A dimension of 0 in the shape means 0, not "as in `flat`".
    const int made =
        n.Make("reshape2", {{"X", {flat}}, {"Shape", {n.ShapeOf(x)}}}, {{"literal_zero", true}});
    n.draft_var(made).dtype = n.dtype(x);
    n.facts(made).shape = n.shape(x);
    n.Result(0, made);
  }
  return true;
}
bool LowerSoftmax(NodeLowering& n) { return LowerSoftmaxBy(n, "softmax"); }
bool LowerLogSoftmax(NodeLowering& n) { return LowerSoftmaxBy(n, "log_softmax"); }

bool LowerBatchNormalization(NodeLowering& n) {
  const int x = n.Required(0);
  const size_t outputs = n.node().outputs.size();
  bool more = false;
  for (size_t i = 1; i < outputs; ++i) more = more || n.Wants(i);
  const bool trains = n.opset() >= 14  ? n.Int("training_mode", 0) != 0
                      : n.opset() >= 7 ? more
                                       : n.Int("is_test", 0) == 0;
  if (n.Int("spatial", 1) == 0) n.Problem("has statistics of pixels, which heddle does not know");
  // A vector has one channel.
  const int rank = n.rank(x);
  const bool plane = !trains && n.IsPlane(x);
  const bool flat = rank == 0 || rank == 1;
  const int input = plane ? n.AsPlane(x) : flat ? n.Reshape(x, {-1, 1}) : x;
  const DType dtype = n.dtype(x);
  Ins ins{{"X", {input}}};
  for (size_t i = 1; i < 5; ++i) {
    constexpr std::string_view kSlots[] = {"Scale", "Bias", "Mean", "Variance"};
    const int v = n.Required(i);
    const bool wide = dtype == DType::kF32 || dtype == DType::kF64;
    ins.emplace_back(kSlots[i - 1], std::vector<int>{wide ? n.Cast(v, dtype) : v});
  }
  // Who goes on training an inference model needs the momentum, too.
  Attrs attrs{{"epsilon", n.Float("epsilon", 1e-5)},
              {"is_test", !trains},
              {"momentum", n.Float("momentum", 0.9)}};
  if (trains) attrs.emplace_back("lone_passes", false);
  std::vector<std::string_view> outs = {"Y"};
  if (trains && more) outs = {"Y", "MeanOut", "VarianceOut"};
  std::vector<int> made = n.MakeMany("batch_norm", std::move(ins), std::move(attrs), outs);
  if (plane) made[0] = n.AsLine(made[0]);
  if (flat) made[0] = n.Reshape(made[0], rank == 0 ? Ints{} : Ints{-1});
  for (size_t i = 0; i < made.size(); ++i) n.Result(i, made[i]);
  if (!trains) return true;
  if (outputs > 5) n.Problem("has ", outputs, " outputs; at most 5 are expected");
  for (size_t i = made.size(); i < std::min<size_t>(outputs, 5); ++i)
    // The batch's statistics, which are not used afterwards.
    if (n.Wants(i)) n.Result(i, made[i - 2]);
  return true;
}

// Makes the results that the node wants: rows, their means, and the inverse of their deviations.
void LayerNorm(NodeLowering& n, int x, int scale, int bias, int64_t axis, double epsilon) {
  Ins ins{{"X", {x}}, {"Scale", {scale}}};
  if (bias != kNoDraft) ins.emplace_back("Bias", std::vector<int>{bias});
  std::vector<std::string_view> outs{"Y"};
  std::vector<size_t> places{0};
  for (size_t i = 1; i < 3; ++i)
    if (n.Wants(i)) {
      outs.push_back(i == 1 ? "Mean" : "Variance");
      places.push_back(i);
    }
  const std::vector<int> made = n.MakeMany(
      "layer_norm", std::move(ins),
      {{"begin_norm_axis", axis}, {"epsilon", epsilon}, {"inverse_deviation", true}}, outs);
  for (size_t k = 0; k < made.size(); ++k) n.Result(places[k], made[k]);
}

bool LowerLayerNormalization(NodeLowering& n) {
  const int x = n.Required(0), scale = n.Required(1), bias = n.In(2);
  const int rank = n.rank(x);
  int64_t axis = n.Int("axis", -1);
  const double epsilon = n.Float("epsilon", 1e-5);
  if (rank < 2 || n.Wants(1) || n.Wants(2) || n.dtype(x) != DType::kF32) {
    LayerNorm(n, x, scale, bias, axis, epsilon);
    return true;
  }
  if (axis < 0) axis += rank;
  const bool is_last =
      axis == rank - 1 && n.rank(scale) == 1 && (bias == kNoDraft || n.rank(bias) == 1);
  const bool fits = is_last && n.shape(scale)[0] == n.shape(x)[rank - 1] && n.shape(scale)[0] > 0;
  if (!fits && !(is_last && n.facts(scale).data != nullptr && n.shape(scale)[0] > 1)) {
    LayerNorm(n, x, scale, bias, axis, epsilon);
    return true;
  }
  n.Result(0, n.Make("layer_norm", {{"X", {x}}, {"Scale", {scale}}, {"Bias", {bias}}},
                     {{"begin_norm_axis", axis}, {"epsilon", epsilon}}, "Y"));
  return true;
}

// Of a sum, which is a result, too. Halves are added up in float.
bool LowerSkipLayerNormalization(NodeLowering& n) {
  const bool half = n.dtype(n.Required(0)) == DType::kF16;
  const auto in = [&](size_t i) {
    const int v = n.In(i);
    return v != kNoDraft && half ? n.Cast(v, DType::kF32) : v;
  };
  n.Required(1), n.Required(2);
  int sum = n.Binary("elementwise_add", in(0), in(1));
  if (n.Has(4)) sum = n.Binary("elementwise_add", sum, in(4));
  const double epsilon = n.Float("epsilon", 1e-12);
  if (half) {
    const int made = n.Make(
        "layer_norm", {{"X", {sum}}, {"Scale", {in(2)}}, {"Bias", {in(3)}}},
        {{"begin_norm_axis", int64_t{-1}}, {"epsilon", epsilon}, {"inverse_deviation", true}}, "Y");
    n.Result(0, n.Cast(made, DType::kF16));
  } else {
    LayerNorm(n, sum, in(2), in(3), -1, epsilon);
  }
  if (n.Wants(3)) n.Result(3, half ? n.Cast(sum, DType::kF16) : sum);
  return true;
}

// Before opset 21 scale and bias are those of groups.
bool LowerGroupNormalization(NodeLowering& n) {
  n.Result(0,
           n.Make("group_norm",
                  {{"X", {n.Required(0)}}, {"Scale", {n.Required(1)}}, {"Bias", {n.Required(2)}}},
                  {{"groups", n.Int("num_groups", 1)},
                   {"epsilon", n.Float("epsilon", 1e-5)},
                   {"per_group", n.opset() < 21}},
                  "Y"));
  return true;
}

bool LowerInstanceNormalization(NodeLowering& n) {
  n.Result(0,
           n.Make("instance_norm",
                  {{"X", {n.Required(0)}}, {"Scale", {n.Required(1)}}, {"Bias", {n.Required(2)}}},
                  {{"epsilon", n.Float("epsilon", 1e-5)}}, "Y"));
  return true;
}

// Lines of zeros stay.
bool LowerLpNormalization(NodeLowering& n) {
  const int x = n.Required(0);
  const int64_t p = n.Int("p", 2);
  if (p != 1 && p != 2) n.Problem("has p ", p, ", expected 1 or 2");
  const int norm =
      n.Unary("p_norm", x,
              {{"porder", static_cast<double>(p)}, {"axis", n.Int("axis", -1)}, {"keepdim", true}});
  n.Result(0, n.Binary("div_no_nan", x, norm));
  return true;
}

bool LowerLrn(NodeLowering& n) {
  const int x = n.Required(0);
  const int64_t size = n.Int("size", 0);
  if (size < 1) n.Problem("takes ", size, " channels together, expected 1 or more");
  n.Result(
      0,
      n.Make("lrn", {{"X", {x}}},
             {{"n", std::max<int64_t>(size, 1)},
              {"alpha", n.Float("alpha", 1e-4) / static_cast<double>(std::max<int64_t>(size, 1))},
              {"beta", n.Float("beta", 0.75)},
              {"k", n.Float("bias", 1)}}));
  return true;
}

// A seed makes the operator's own generator, one of 0 too.
int64_t SeedOf(const NodeLowering& n) {
  if (n.Find("seed") == nullptr) return 0;
  const auto bits = std::bit_cast<int64_t>(n.Float("seed", 0));
  return bits == 0 ? std::numeric_limits<int64_t>::min() : bits;
}

// The result in the type that the node names, or in `otherwise`.
void ResultOfType(NodeLowering& n, int made, int otherwise) {
  const auto named = static_cast<int>(n.Int("dtype", 0));
  const int type = named == 0 ? otherwise : named;
  if (StorageOf(type) == DType::kUnknown)
    n.Problem("has dtype ", type, ", which is no element type");
  else
    made = n.Cast(made, StorageOf(type));
  n.Result(0, made);
}

// Numbers in the shape of the attribute, or in that of the input.
bool LowerRandom(NodeLowering& n) {
  const std::string_view op = n.node().op_type;
  const bool like = op.ends_with("Like"), normal = op.starts_with("RandomNormal");
  const int x = like ? n.Required(0) : kNoDraft;
  const auto named = static_cast<int>(n.Int("dtype", like ? n.type(x) : kFloat));
  const DType dtype = StorageOf(named);
  const DType drawn = IsFloat(dtype) ? dtype : DType::kF32;
  Ins ins;
  Attrs attrs{{"seed", SeedOf(n)}, {"dtype", DTypeToProto(drawn)}};
  attrs.emplace_back(normal ? "mean" : "min", n.Float(normal ? "mean" : "low", 0));
  attrs.emplace_back(normal ? "std" : "max", n.Float(normal ? "scale" : "high", 1));
  if (!like)
    attrs.emplace_back("shape", n.IntList("shape"));
  else if (n.shape(x).is_static())
    attrs.emplace_back("shape", Ints(n.shape(x).begin(), n.shape(x).end()));
  else
    ins.emplace_back("ShapeTensor", std::vector<int>{n.ShapeOf(x)});
  const int made =
      n.Make(normal ? "gaussian_random" : "uniform_random", std::move(ins), std::move(attrs));
  ResultOfType(n, made, named);
  return true;
}

bool LowerBernoulli(NodeLowering& n) {
  const int x = n.Required(0);
  ResultOfType(n, n.Unary("bernoulli", x, {{"seed", SeedOf(n)}}), n.type(x));
  return true;
}

// By logarithms of weights.
bool LowerMultinomial(NodeLowering& n) {
  const int weights = n.Unary("softmax", n.Required(0), {{"axis", int64_t{-1}}});
  const int made = n.Unary(
      "multinomial", weights,
      {{"num_samples", n.Int("sample_size", 1)}, {"replacement", true}, {"seed", SeedOf(n)}});
  ResultOfType(n, made, kInt32);
  return true;
}

// In inference Dropout returns its input, with a mask that keeps all elements.
bool LowerDropout(NodeLowering& n) {
  const int x = n.Required(0);
  bool trains = n.opset() < 7 && n.Int("is_test", 0) == 0;
  if (n.Has(2)) {
    const auto mode = n.ConstantInts(n.In(2));
    if (!mode || mode->size() != 1) return false;
    trains = (*mode)[0] != 0;
  }
  if (trains && n.opset() >= 12 && n.Has(1)) {
    const auto ratio = n.ConstantFloats(n.In(1));
    if (ratio && ratio->size() == 1 && (*ratio)[0] == 0) trains = false;
  }
  if (trains) return false;
  n.Result(0, x);
  if (!n.Wants(1)) return true;
  // Before opset 10 the mask has the input's type. Before opset 12 its value in inference is
  // undefined, and ONNX Runtime's is zero.
  const bool is_bool = n.opset() >= 10;
  const double kept = n.opset() >= 12 ? 1.0 : 0.0;
  const int mask =
      n.Unary("fill_any_like", x, {{"value", kept}, {"dtype", int64_t{is_bool ? 0 : -1}}});
  if (is_bool) n.SetType(mask, kBool);
  n.Result(1, mask);
  return true;
}

constexpr HandlerEntry kNormalizeEntries[] = {
    {"", "BatchNormalization", &LowerBatchNormalization},
    {"", "Bernoulli", &LowerBernoulli},
    {"", "Dropout", &LowerDropout},
    {"", "GroupNormalization", &LowerGroupNormalization},
    {"", "InstanceNormalization", &LowerInstanceNormalization},
    {"", "LpNormalization", &LowerLpNormalization},
    {"", "LRN", &LowerLrn},
    {"", "LayerNormalization", &LowerLayerNormalization},
    {"", "LogSoftmax", &LowerLogSoftmax},
    {"", "Multinomial", &LowerMultinomial},
    {"", "RandomNormal", &LowerRandom},
    {"", "RandomNormalLike", &LowerRandom},
    {"", "RandomUniform", &LowerRandom},
    {"", "RandomUniformLike", &LowerRandom},
    {"", "Softmax", &LowerSoftmax},
    {"com.microsoft", "SkipLayerNormalization", &LowerSkipLayerNormalization},
};

}  // namespace

std::span<const HandlerEntry> NormalizeHandlers() { return kNormalizeEntries; }

}  // namespace heddle::onnx
