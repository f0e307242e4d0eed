// Windows for spectra, and the weights of mel bands.
#include <cmath>

#include "core/interrupts.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

constexpr double kPi = 3.14159265358979323846;

Status WindowShape(ShapeContext& ctx) {
  if (!Known(ctx, "size")) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const int64_t n, IntIn(ctx, "size", 0));
  HEDDLE_ASSIGN_OR_RETURN(const Shape out, MakeShape({n}, "size"));
  HEDDLE_ASSIGN_OR_RETURN(const DType dtype, DTypeOfOnnx(ctx.Int("output_datatype"), DType::kF32));
  ctx.SetOut("output", out, dtype);
  return Status::Ok();
}

// value(phase) for a phase of 2 pi over the window.
template <typename Value>
Status FillWindow(KernelContext& ctx, const Value& value) {
  Tensor& out = ctx.Out("output");
  const int64_t n = out.numel(), period = ctx.Int("periodic") != 0 ? n : n - 1;
  const bool known = VisitAnyDType(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = out.mutable_data<T>();
    for (const auto part : Stretches(n))
      for (int64_t i = part.begin; i < part.end; ++i)
        to[i] = ConvertTo<T>(value(2 * kPi * static_cast<double>(i) / static_cast<double>(period)));
  });
  return known ? Status::Ok() : Unimplemented("no window of ", Name(out.dtype()));
}

Status WindowFunction(KernelContext& ctx) {
  const std::string& window = ctx.Str("window");
  if (window == "hann")
    return FillWindow(ctx, [](double x) { return std::sin(x / 2) * std::sin(x / 2); });
  if (window == "hamming")
    return FillWindow(ctx, [](double x) { return 25.0 / 46 - 21.0 / 46 * std::cos(x); });
  if (window == "blackman")
    return FillWindow(ctx,
                      [](double x) { return 0.42 - 0.5 * std::cos(x) + 0.08 * std::cos(2 * x); });
  return InvalidArgument("window is '", window, "', expected hann, hamming or blackman");
}

struct Mel {
  int64_t bands, spectrum, length;
};

Result<Mel> MelOf(const ShapeContext& ctx) {
  Mel m{};
  HEDDLE_ASSIGN_OR_RETURN(m.bands, IntIn(ctx, "num_mel_bins", 0));
  HEDDLE_ASSIGN_OR_RETURN(m.length, IntIn(ctx, "dft_length", 0));
  m.spectrum = m.length / 2 + 1;
  return m;
}

Status MelShape(ShapeContext& ctx) {
  if (!Known(ctx, "num_mel_bins") || !Known(ctx, "dft_length")) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const Mel m, MelOf(ctx));
  HEDDLE_ASSIGN_OR_RETURN(const Shape out, MakeShape({m.spectrum, m.bands}, "the result"));
  HEDDLE_ASSIGN_OR_RETURN(const DType dtype, DTypeOfOnnx(ctx.Int("output_datatype"), DType::kF32));
  ctx.SetOut("output", out, dtype);
  return Status::Ok();
}

// Triangles whose corners lie at even distances on the mel scale.
Status MelWeights(KernelContext& ctx) {
  Tensor& out = ctx.Out("output");
  HEDDLE_ASSIGN_OR_RETURN(const int64_t length, IntIn(ctx, "dft_length", 0));
  HEDDLE_ASSIGN_OR_RETURN(const double rate, NumberIn(ctx, "sample_rate", 0));
  HEDDLE_ASSIGN_OR_RETURN(const double lower, NumberIn(ctx, "lower_edge_hertz", 0));
  HEDDLE_ASSIGN_OR_RETURN(const double upper, NumberIn(ctx, "upper_edge_hertz", 0));
  const int64_t spectrum = out.dim(0), bands = out.dim(1);
  const auto mel = [](double hertz) { return 2595 * std::log1p(hertz / 700) / std::log(10.0); };
  const double low = mel(lower), step = (mel(upper) - low) / static_cast<double>(bands + 2);
  std::vector<int64_t> edge;
  for (const int64_t i : Watched(bands + 2)) {
    const double at = static_cast<double>(i) * step + low;
    const double hertz = 700 * std::expm1(at / 2595 * std::log(10.0));
    const double bin = std::floor(static_cast<double>(length + 1) * hertz / rate);
    if (!(bin >= 0 && bin < static_cast<double>(spectrum)))
      return InvalidArgument("band edge ", hertz, " Hz lies outside the spectrum of ", rate,
                             " samples a second");
    edge.push_back(static_cast<int64_t>(bin));
  }
  std::vector<double> weights(static_cast<size_t>(spectrum * bands));
  for (const int64_t i : Watched(bands)) {
    const int64_t left = edge[static_cast<size_t>(i)], middle = edge[static_cast<size_t>(i) + 1];
    const int64_t right = edge[static_cast<size_t>(i) + 2];
    const auto put = [&](int64_t bin, double w) {
      weights[static_cast<size_t>(bin * bands + i)] = w;
    };
    if (middle == left) put(middle, 1);
    for (int64_t j = left; middle > left && j <= middle; ++j)
      put(j, static_cast<double>(j - left) / static_cast<double>(middle - left));
    for (int64_t j = middle; j < right; ++j)
      put(j, static_cast<double>(right - j) / static_cast<double>(right - middle));
  }
  ConvertElements(ctx, weights.data(), DType::kF64, out.mutable_raw(), out.dtype(), out.numel());
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(window_function) {
  op.Doc("a window for spectra: a Hann, Hamming (25/46 - 21/46 cos) or Blackman window");
  op.Input("size", kShapeValue).Output("output").Attr("window", "hann").Attr("periodic", 1);
  op.Attr("output_datatype", 1).InferShape(WindowShape).AnyKernel(WindowFunction);
}
HEDDLE_OP(mel_weight_matrix) {
  op.Doc("the weight of each frequency of a spectrum in each mel band");
  op.Input("num_mel_bins", kShapeValue).Input("dft_length", kShapeValue).Input("sample_rate");
  op.Input("lower_edge_hertz").Input("upper_edge_hertz").Output("output");
  op.Attr("output_datatype", 1).InferShape(MelShape).AnyKernel(MelWeights);
}
