// Quantisation.
#include "formats/onnx/handlers.h"

namespace heddle::onnx {
namespace {

// The result's type is that of the zero point, or that of an attribute.
bool LowerQuantize(NodeLowering& n) {
  if (!NodeLowering::HasOperator("affine_quantize")) return false;
  const int x = n.Required(0), scale = n.Required(1), zero = n.In(2);
  int type = static_cast<int>(n.Int("output_dtype", 0));
  if (zero != kNoDraft) type = n.type(zero);
  if (type == kUndefinedType) type = kUint8;
  const int made =
      n.Make("affine_quantize", {{"x", {x}}, {"y_scale", {scale}}, {"y_zero_point", {zero}}},
             {{"axis", n.Int("axis", 1)},
              {"block_size", n.Int("block_size", 0)},
              {"saturate", n.Int("saturate", 1)},
              {"precision", n.Int("precision", 0)},
              {"output_dtype", int64_t{type}},
              {"elem_type", int64_t{type}}},
             "y");
  n.draft_var(made).dtype = StorageOf(type);
  n.SetType(made, type);
  n.Result(0, made);
  return true;
}

bool LowerDequantize(NodeLowering& n) {
  if (!NodeLowering::HasOperator("affine_dequantize")) return false;
  const int x = n.Required(0), scale = n.Required(1);
  int type = static_cast<int>(n.Int("output_dtype", 0));
  if (type == kUndefinedType) type = n.type(scale);
  const int made =
      n.Make("affine_dequantize", {{"x", {x}}, {"x_scale", {scale}}, {"x_zero_point", {n.In(2)}}},
             {{"axis", n.Int("axis", 1)},
              {"block_size", n.Int("block_size", 0)},
              {"output_dtype", int64_t{type}},
              {"elem_type", int64_t{n.type(x)}}},
             "y");
  n.draft_var(made).dtype = StorageOf(type);
  n.SetType(made, type);
  n.Result(0, made);
  return true;
}

constexpr HandlerEntry kQuantizeEntries[] = {
    {"", "DequantizeLinear", &LowerDequantize},
    {"", "QuantizeLinear", &LowerQuantize},
    {"com.microsoft", "DequantizeLinear", &LowerDequantize},
    {"com.microsoft", "QuantizeLinear", &LowerQuantize},
};

}  // namespace

std::span<const HandlerEntry> QuantizeHandlers() { return kQuantizeEntries; }

}  // namespace heddle::onnx
