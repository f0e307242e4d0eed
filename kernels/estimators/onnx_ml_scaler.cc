// Features changed one by one, chosen and joined.
#include <cmath>
#include <unordered_map>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/index_args.h"
#include "kernels/estimators/scores.h"

namespace heddle {
namespace {

Status FloatLikeX(ShapeContext& ctx) {
  ctx.SetOut("Y", ctx.InShape("X"), DType::kF32);
  return Status::Ok();
}
Status SameLikeX(ShapeContext& ctx) {
  ctx.SetOut("Y", ctx.InShape("X"), ctx.InDType("X"));
  return Status::Ok();
}

// Lists have one element, or one for each feature.
Status CheckFeatures(size_t count, int64_t width, const char* what) {
  if (count == 1 || static_cast<int64_t>(count) == width) return Status::Ok();
  return InvalidArgument(what, " has ", count, " elements for ", width, " features");
}

int64_t WidthOf(const Shape& x) { return x.rank() == 0 ? 1 : x.dim(-1); }

Status OnnxScaler(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  const Floats &offset = ctx.Attr<Floats>("offset"), &scale = ctx.Attr<Floats>("scale");
  const int64_t width = WidthOf(x.shape());
  HEDDLE_RETURN_IF_ERROR(CheckFeatures(offset.size(), width, "offset"));
  HEDDLE_RETURN_IF_ERROR(CheckFeatures(scale.size(), width, "scale"));
  CallHeap heap(ctx);
  const std::pmr::vector<float> from = Samples<float>(ctx, x, &heap);
  float* to = ctx.Out("Y").mutable_data<float>();
  for (const int64_t i : Watched(x.numel())) {
    const auto k = static_cast<size_t>(i % width);
    to[i] =
        (from[static_cast<size_t>(i)] - static_cast<float>(offset[offset.size() == 1 ? 0 : k])) *
        static_cast<float>(scale[scale.size() == 1 ? 0 : k]);
  }
  return Status::Ok();
}

Status OnnxNormalizer(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  const std::string& norm = ctx.Str("norm");
  if (norm != "MAX" && norm != "L1" && norm != "L2")
    return InvalidArgument("norm is '", norm, "', expected MAX, L1 or L2");
  HEDDLE_ASSIGN_OR_RETURN(const SampleRows s, SampleRowsOf(x.shape()));
  CallHeap heap(ctx);
  const std::pmr::vector<float> from = Samples<float>(ctx, x, &heap);
  float* to = ctx.Out("Y").mutable_data<float>();
  for (const int64_t r : Watched(s.rows)) {
    const float* row = from.data() + r * s.width;
    float sum = 0;
    for (const auto part : Stretches(s.width))
      for (int64_t i = part.begin; i < part.end; ++i) {
        if (norm == "MAX") sum = i == 0 ? row[0] : std::max(sum, row[i]);
        if (norm == "L1") sum += std::fabs(row[i]);
        if (norm == "L2") sum += row[i] * row[i];
      }
    if (norm == "L2") sum = std::sqrt(sum);
    for (const auto part : Stretches(s.width))
      for (int64_t i = part.begin; i < part.end; ++i)
        to[r * s.width + i] = sum == 0 ? row[i] : row[i] / sum;
  }
  return Status::Ok();
}

template <typename T>
struct OnnxImputer {
  static Status Run(KernelContext& ctx) {
    constexpr bool kFloat = std::is_floating_point_v<T>;
    const Tensor& x = ctx.In("X");
    CallHeap heap(ctx);
    std::pmr::vector<T> values(&heap);
    if constexpr (kFloat)
      for (const double v : ctx.Attr<Floats>("imputed_value_floats"))
        values.push_back(static_cast<T>(v));
    else
      for (const int64_t v : ctx.IntList("imputed_value_int64s"))
        values.push_back(static_cast<T>(v));
    const int64_t width = WidthOf(x.shape());
    HEDDLE_RETURN_IF_ERROR(CheckFeatures(values.size(), width, "the list of imputed values"));
    T replaced{};
    if constexpr (kFloat)
      replaced = static_cast<T>(ctx.Float("replaced_value_float"));
    else
      replaced = static_cast<T>(ctx.Int("replaced_value_int64"));
    const T* from = x.data<T>();
    T* to = ctx.Out("Y").template mutable_data<T>();
    for (const int64_t i : Watched(x.numel())) {
      const bool missing = from[i] == replaced || (IsNan(from[i]) && IsNan(replaced));
      const auto k = static_cast<size_t>(i % width);
      to[i] = missing ? values[values.size() == 1 ? 0 : k] : from[i];
    }
    return Status::Ok();
  }
};

template <typename T>
struct OnnxBinarizer {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const double threshold = static_cast<float>(ctx.Float("threshold"));
    const T* from = x.data<T>();
    T* to = ctx.Out("Y").template mutable_data<T>();
    for (const auto part : Stretches(x.numel()))
      for (int64_t i = part.begin; i < part.end; ++i)
        to[i] = static_cast<double>(from[i]) > threshold ? T(1) : T(0);
    return Status::Ok();
  }
};

Status OnnxOneHotEncoderShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  Shape out = x;
  if (x.rank() == Shape::kMaxRank) return InvalidArgument("X has too many dimensions");
  out.push_back(static_cast<int64_t>(ctx.IntList("cats_int64s").size()));
  ctx.SetOut("Y", out, DType::kF32);
  return Status::Ok();
}

// Indices of keys in lists of attributes.
struct OnnxKeyPlaces final : KernelState {
  std::unordered_map<int64_t, size_t> of_int;
  std::unordered_map<double, size_t> of_float;
  size_t nan = SIZE_MAX;
};
using OnnxPlaceKeys = void (*)(const OpContext& ctx, OnnxKeyPlaces* places);

template <OnnxPlaceKeys kPlace>
Result<std::unique_ptr<KernelState>> PrepareKeyPlaces(PrepareContext& ctx) {
  auto places = std::make_unique<OnnxKeyPlaces>();
  kPlace(ctx, places.get());
  return std::unique_ptr<KernelState>(std::move(places));
}

// The indices that Prepare made, or indices that are made now in `*own`.
template <OnnxPlaceKeys kPlace>
const OnnxKeyPlaces& KeyPlacesIn(const KernelContext& ctx, OnnxKeyPlaces* own) {
  if (ctx.has_state()) return ctx.State<OnnxKeyPlaces>();
  kPlace(ctx, own);
  return *own;
}

void PlaceCategories(const OpContext& ctx, OnnxKeyPlaces* places) {
  const Ints& cats = ctx.IntList("cats_int64s");
  for (size_t i = 0; i < cats.size(); ++i) places->of_int[cats[i]] = i;
}

Status OnnxOneHotEncoder(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  Tensor& out = ctx.Out("Y");
  const Ints& cats = ctx.IntList("cats_int64s");
  if (cats.empty()) return InvalidArgument("cats_int64s is empty");
  CallHeap heap(ctx);
  std::pmr::vector<int64_t> values(static_cast<size_t>(x.numel()), &heap);
  ConvertElements(ctx, x.raw(), x.dtype(), values.data(), DType::kI64, x.numel());
  ZeroBytes(ctx, out.mutable_raw(), out.bytes());
  OnnxKeyPlaces own;
  const auto& place = KeyPlacesIn<PlaceCategories>(ctx, &own).of_int;
  float* to = out.mutable_data<float>();
  for (size_t i = 0; i < values.size(); ++i) {
    const auto found = place.find(values[i]);
    if (found != place.end())
      to[i * cats.size() + found->second] = 1;
    else if (ctx.Int("zeros") == 0)
      return InvalidArgument("X holds ", values[i], ", which is no category");
  }
  return Status::Ok();
}

Status OnnxExtractorShape(ShapeContext& ctx) {
  if (!AllStatic(ctx, {"X", "Y"})) return ctx.Defer();
  Shape out = ctx.InShape("X");
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(ctx.InDType("Y"), "Y"));
  const int64_t count = ctx.InShape("Y").numel();
  if (out.rank() == 0) return InvalidArgument("X is a scalar, expected features");
  if (out.rank() == 1) out = Shape{1, count};
  out[out.rank() - 1] = count;
  ctx.SetOut("Z", out, ctx.InDType("X"));
  return Status::Ok();
}

Status OnnxExtractor(KernelContext& ctx) {
  const Tensor &x = ctx.In("X"), &index = ctx.In("Y");
  const int64_t width = WidthOf(x.shape()), count = index.numel();
  const size_t size = SizeOf(x.dtype());
  const auto* from = static_cast<const std::byte*>(x.raw());
  auto* to = static_cast<std::byte*>(ctx.Out("Z").mutable_raw());
  for (const auto part : Stretches(count))
    for (int64_t i = part.begin; i < part.end; ++i)
      if (IntAt(index, i) < 0 || IntAt(index, i) >= width)
        return OutOfRange("Y holds ", IntAt(index, i), ", X has ", width, " features");
  for (int64_t r = 0; width > 0 && r < x.numel() / width; ++r)
    for (const auto part : Stretches(count))
      for (int64_t i = part.begin; i < part.end; ++i)
        WatchedMemcpy(to + static_cast<size_t>(r * count + i) * size,
                      from + static_cast<size_t>(r * width + IntAt(index, i)) * size, size);
  return Status::Ok();
}

Status OnnxFeatureVectorizerShape(ShapeContext& ctx) {
  if (!AllStatic(ctx, {"X"})) return ctx.Defer();
  const Ints& widths = ctx.IntList("inputdimensions");
  int64_t rows = -1, width = 0;
  for (int i = 0; i < ctx.InCount("X"); ++i) {
    const Shape& x = ctx.InShape("X", i);
    const int64_t n = x.rank() == 0 ? 1 : x[0];
    if (static_cast<size_t>(i) >= widths.size() || x.rank() > 2 || (rows >= 0 && n != rows) ||
        widths[static_cast<size_t>(i)] < 0 || widths[static_cast<size_t>(i)] > int64_t{1} << 40)
      return InvalidArgument("X[", i, "] of shape ", x.ToString(), " does not fit the others, or ",
                             "inputdimensions");
    rows = n;
    width += widths[static_cast<size_t>(i)];
  }
  HEDDLE_ASSIGN_OR_RETURN(const Shape out,
                          MakeShape({std::max<int64_t>(rows, 0), width}, "the result"));
  ctx.SetOut("Y", out, DType::kF32);
  return Status::Ok();
}

Status OnnxFeatureVectorizer(KernelContext& ctx) {
  Tensor& out = ctx.Out("Y");
  const Ints& widths = ctx.IntList("inputdimensions");
  float* to = out.mutable_data<float>();
  int64_t at = 0;
  for (int i = 0; i < ctx.InCount("X"); ++i) {
    const Tensor& x = ctx.In("X", i);
    CallHeap heap(ctx);
    const std::pmr::vector<float> values = Samples<float>(ctx, x, &heap);
    const int64_t own = x.rank() == 2 ? x.dim(1) : 1, width = widths[static_cast<size_t>(i)];
    for (const int64_t r : Watched(out.dim(0)))
      for (int64_t k = 0; k < width; ++k)
        to[r * out.dim(1) + at + k] = k < own ? values[static_cast<size_t>(r * own + k)] : 0;
    at += width;
  }
  return Status::Ok();
}

Status OnnxLabelEncoderShape(ShapeContext& ctx) {
  ctx.SetOut("Y", ctx.InShape("X"),
             ctx.Attr<Floats>("values_floats").empty() ? DType::kI64 : DType::kF32);
  return Status::Ok();
}

// NaN is a key like others.
void PlaceLabels(const OpContext& ctx, OnnxKeyPlaces* places) {
  const Ints& keys = ctx.IntList("keys_int64s");
  const Floats& float_keys = ctx.Attr<Floats>("keys_floats");
  for (size_t i = keys.size(); i-- > 0;) places->of_int[keys[i]] = i;
  for (size_t i = float_keys.size(); i-- > 0;) {
    if (std::isnan(float_keys[i]))
      places->nan = i;
    else
      places->of_float[static_cast<float>(float_keys[i])] = i;
  }
}

// Values of keys.
Status OnnxLabelEncoder(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  Tensor& out = ctx.Out("Y");
  const Ints &keys = ctx.IntList("keys_int64s"), &values = ctx.IntList("values_int64s");
  const Floats& float_keys = ctx.Attr<Floats>("keys_floats");
  const Floats& float_values = ctx.Attr<Floats>("values_floats");
  const size_t n = float_keys.empty() ? keys.size() : float_keys.size();
  const size_t count = float_values.empty() ? values.size() : float_values.size();
  if (n != count) return InvalidArgument("has ", n, " keys and ", count, " values");
  OnnxKeyPlaces own;
  const OnnxKeyPlaces& places = KeyPlacesIn<PlaceLabels>(ctx, &own);
  CallHeap heap(ctx);
  std::pmr::vector<int64_t> ints(&heap);
  std::pmr::vector<double> floats(&heap);
  if (float_keys.empty()) {
    ints.resize(static_cast<size_t>(x.numel()));
    ConvertElements(ctx, x.raw(), x.dtype(), ints.data(), DType::kI64, x.numel());
  } else {
    floats = Samples<double>(ctx, x, &heap);
  }
  for (const int64_t i : Watched(x.numel())) {
    size_t place = n;
    if (float_keys.empty()) {
      const auto found = places.of_int.find(ints[static_cast<size_t>(i)]);
      if (found != places.of_int.end()) place = found->second;
    } else if (const double v = floats[static_cast<size_t>(i)]; std::isnan(v)) {
      place = places.nan;
    } else if (const auto found = places.of_float.find(v); found != places.of_float.end()) {
      place = found->second;
    }
    if (float_values.empty())
      out.mutable_data<int64_t>()[i] = place < n ? values[place] : ctx.Int("default_int64");
    else
      out.mutable_data<float>()[i] =
          static_cast<float>(place < n ? float_values[place] : ctx.Float("default_float"));
  }
  return Status::Ok();
}

constexpr std::initializer_list<DType> kNumbers = {DType::kF32, DType::kF64, DType::kI32,
                                                   DType::kI64};

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_ml_scaler) {
  op.Doc("features minus offset, times scale").Input("X").Output("Y").Attr("offset", Floats{});
  op.Attr("scale", Floats{}).InferShape(FloatLikeX).Kernel(kNumbers, OnnxScaler);
}
HEDDLE_OP(onnx_ml_normalizer) {
  op.Doc("rows divided by their norm").Input("X").Output("Y").Attr("norm", "MAX");
  op.InferShape(FloatLikeX).Kernel(kNumbers, OnnxNormalizer);
}
HEDDLE_OP(onnx_ml_imputer) {
  op.Doc("missing features replaced").Input("X").Output("Y");
  op.Attr("imputed_value_floats", Floats{}).Attr("imputed_value_int64s", Ints{});
  op.Attr("replaced_value_float", 0.0).Attr("replaced_value_int64", 0).InferShape(SameLikeX);
  op.Kernels<OnnxImputer, float, double, int32_t, int64_t>();
}
HEDDLE_OP(onnx_ml_binarizer) {
  op.Doc("1 where a feature is above the threshold, else 0").Input("X").Output("Y");
  op.Attr("threshold", 0.0).InferShape(SameLikeX);
  op.Kernels<OnnxBinarizer, float, double, int32_t, int64_t>();
}
HEDDLE_OP(onnx_ml_one_hot_encoder) {
  op.Doc("a row with a 1 for the category of each element").Input("X").Output("Y");
  op.Attr("cats_int64s", Ints{}).Attr("zeros", 1);
  op.InferShape(OnnxOneHotEncoderShape).Prepare(PrepareKeyPlaces<PlaceCategories>);
  op.Kernel(kNumbers, OnnxOneHotEncoder);
}
HEDDLE_OP(onnx_ml_array_feature_extractor) {
  op.Doc("columns of X that Y names").Input("X").Input("Y").Output("Z");
  op.InferShape(OnnxExtractorShape).KernelKey("X").AnyKernel(OnnxExtractor);
}
HEDDLE_OP(onnx_ml_feature_vectorizer) {
  op.Doc("features of several tensors side by side, cut or filled up to given numbers");
  op.Input("X", kList).Output("Y").Attr("inputdimensions", Ints{});
  op.InferShape(OnnxFeatureVectorizerShape).Kernel(kNumbers, OnnxFeatureVectorizer);
}
HEDDLE_OP(onnx_ml_label_encoder) {
  op.Doc("numbers for numbers, by lists of keys and values").Input("X").Output("Y");
  op.Attr("keys_int64s", Ints{}).Attr("keys_floats", Floats{}).Attr("values_int64s", Ints{});
  op.Attr("values_floats", Floats{}).Attr("default_int64", -1).Attr("default_float", -0.0);
  op.InferShape(OnnxLabelEncoderShape).Prepare(PrepareKeyPlaces<PlaceLabels>);
  op.Kernel({DType::kF32, DType::kF64, DType::kI16, DType::kI32, DType::kI64}, OnnxLabelEncoder);
}
