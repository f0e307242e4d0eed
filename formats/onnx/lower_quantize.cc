// Quantisation.
#include <vector>

#include "core/shapes.h"
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

// The fields of `bits` bits of bytes, the lowest bits first, side by side along the last axis.
int FieldsOf(NodeLowering& n, int bytes, int64_t bits) {
  if (bits == 8) return bytes;
  const int wide = n.Cast(bytes, DType::kI32);
  const int range = n.IntConstant(int64_t{1} << bits, DType::kI32);
  std::vector<int> fields;
  for (int64_t bit = 0; bit < 8; bit += bits) {
    const int above =
        n.Binary("elementwise_floordiv", wide, n.IntConstant(int64_t{1} << bit, DType::kI32));
    fields.push_back(n.Binary("elementwise_mod", above, range));
  }
  const int apart = n.Make("stack", {{"X", fields}}, {{"axis", int64_t{-1}}}, "Y");
  const int beside = n.Make("flatten_contiguous_range", {{"X", {apart}}},
                            {{"start_axis", int64_t{-2}}, {"stop_axis", int64_t{-1}}});
  return n.Cast(beside, DType::kU8);
}

// Rows of a matrix of integers in blocks along its last axis, as floats: only those that are picked
// are dequantised.
bool LowerGatherBlockQuantized(NodeLowering& n) {
  const int data = n.Required(0), indices = n.Required(1), scales = n.Required(2);
  const int64_t bits = n.Int("bits", 4), block = n.Int("block_size", 128);
  const int64_t rank = n.rank(data), ids = n.rank(indices);
  const auto positive = [&](int64_t axis) { return axis < 0 && rank > 0 ? axis + rank : axis; };
  const int64_t axis = positive(n.Int("gather_axis", 0)),
                along = positive(n.Int("quantize_axis", 1));
  // Tensors of 4-bit types have a byte for each element here; uint8 holds several elements.
  const bool fields = n.type(data) == kUint8;
  const bool whole = fields ? axis == 0 && along == rank - 1 && 8 % bits == 0 : axis != along;
  if (rank < 1 || block < 1 || bits < 1 || bits > 8 || !whole || (axis < along && ids < 0)) {
    n.Problem("has gather_axis ", axis, ", quantize_axis ", along, ", block_size ", block,
              ", bits ", bits, " and data of rank ", rank,
              "; known ranks and two axes are expected, of uint8 the first and the last one");
    n.Result(0, scales);
    return true;
  }
  const auto picked = [&](int v) {
    return n.Make("gather", {{"X", {v}}, {"Index", {indices}}},
                  {{"axis", axis}, {"index_shape", true}, {"wrap", true}});
  };
  int x = picked(data), zero = n.Has(3) ? picked(n.In(3)) : kNoDraft;
  const int factors = picked(scales);
  int64_t type = n.type(data);
  if (fields) {
    x = FieldsOf(n, x, bits);
    if (zero == kNoDraft) {
      zero = n.Make("fill_any_like", {{"X", {factors}}},
                    {{"value", static_cast<double>(int64_t{1} << (bits - 1))},
                     {"dtype", DTypeToProto(DType::kU8)}});
    } else {
      // Bytes are whole: there may be more fields than blocks.
      const Shape& shape = n.shape(scales);
      zero = FieldsOf(n, zero, bits);
      zero = n.Make("slice", {{"Input", {zero}}},
                    {{"axes", Ints{n.rank(factors) - 1}},
                     {"starts", Ints{0}},
                     {"ends", Ints{shape[shape.rank() - 1]}}});
    }
    type = kUint8;
  }
  n.Result(
      0, n.Make("affine_dequantize", {{"x", {x}}, {"x_scale", {factors}}, {"x_zero_point", {zero}}},
                {{"axis", axis < along ? along - 1 + ids : along},
                 {"block_size", block},
                 {"output_dtype", int64_t{n.type(scales)}},
                 {"elem_type", type}},
                "y"));
  return true;
}

constexpr HandlerEntry kQuantizeEntries[] = {
    {"", "DequantizeLinear", &LowerDequantize},
    {"", "QuantizeLinear", &LowerQuantize},
    {"com.microsoft", "DequantizeLinear", &LowerDequantize},
    {"com.microsoft", "GatherBlockQuantized", &LowerGatherBlockQuantized},
    {"com.microsoft", "QuantizeLinear", &LowerQuantize},
};

}  // namespace

std::span<const HandlerEntry> QuantizeHandlers() { return kQuantizeEntries; }

}  // namespace heddle::onnx
