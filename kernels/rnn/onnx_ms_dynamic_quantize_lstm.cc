// DynamicQuantizeLSTM of com.microsoft.
#include "core/interrupts.h"
#include "kernels/base/call_heap.h"
#include "kernels/base/check.h"
#include "kernels/quantize/quantized.h"
#include "kernels/rnn/recurrent.h"

namespace heddle {
namespace {

// Weights of a direction and their scales: one, or one for each column.
Status DequantizeRows(const KernelContext& ctx, Key weights, Key scale_key, Key zero_key,
                      int64_t directions, int64_t columns, std::pmr::vector<float>* to) {
  const Tensor &w = ctx.In(weights), &scale = ctx.In(scale_key), &zero = ctx.In(zero_key);
  const bool per_column = scale.numel() == directions * columns;
  if (scale.dtype() != DType::kF32 || zero.dtype() != w.dtype() ||
      (!per_column && scale.numel() != directions) || zero.numel() != scale.numel())
    return InvalidArgument(scale_key.name, " ", scale.shape().ToString(), " and ", zero_key.name,
                           " ", zero.shape().ToString(), " do not fit ", weights.name, " ",
                           w.shape().ToString());
  to->resize(static_cast<size_t>(w.numel()));
  const int64_t each = w.numel() / directions;
  const bool known = VisitDType<uint8_t, int8_t>(w.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (const auto part : Stretches(w.numel()))
      for (int64_t i = part.begin; i < part.end; ++i) {
        const int64_t at = per_column ? i / each * columns + i % columns : i / each;
        (*to)[static_cast<size_t>(i)] =
            static_cast<float>(int32_t{w.data<T>()[i]} - int32_t{zero.data<T>()[at]}) *
            scale.data<float>()[at];
      }
  });
  return known ? Status::Ok() : InvalidArgument(weights.name, " is ", Name(w.dtype()));
}

Status DynamicLstm(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const RecurrentConfig config,
                          RecurrentConfigOf(ctx, RecurrentKind::kLstm, true));
  HEDDLE_RETURN_IF_ERROR(CheckDType(DType::kF32, {ctx.InOpt("B"), ctx.InOpt("initial_h"),
                                                  ctx.InOpt("initial_c"), ctx.InOpt("P")}));
  const int64_t columns = 4 * config.hidden;
  CallHeap heap(ctx);
  std::pmr::vector<float> w(&heap), r(&heap);
  if (columns > 0) {
    HEDDLE_RETURN_IF_ERROR(
        DequantizeRows(ctx, "W", "W_scale", "W_zero_point", config.directions, columns, &w));
    HEDDLE_RETURN_IF_ERROR(
        DequantizeRows(ctx, "R", "R_scale", "R_zero_point", config.directions, columns, &r));
  }
  return RunRecurrent<float>(ctx, config,
                             {.w = w.data(), .r = r.data(), .transposed = true, .quantize = true});
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_ms_dynamic_quantize_lstm) {
  op.Doc(
      "LSTM with quantised, transposed weights; inputs and states are quantised before each "
      "product");
  DeclareRecurrent(op, RecurrentKind::kLstm);
  op.Input("W_scale").Input("W_zero_point").Input("R_scale").Input("R_zero_point");
  op.InferShape([](ShapeContext& ctx) { return RecurrentShape(ctx, RecurrentKind::kLstm, true); });
  op.KernelKey("X").Kernel(DType::kF32, DynamicLstm);
}
