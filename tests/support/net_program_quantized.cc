#include "core/shapes.h"
#include "tests/support/net_program.h"

namespace heddle::testing {

// A convolution between quantised images. Scales are powers of two and zero points even, so that
// sums of floats are exact, and halves are rounded alike in the sums and in the integers.
void NetProgram::Quantized() {
  const auto bytes = [&](DType dtype, const Shape& shape, int least, int most) {
    const std::string name = "w" + std::to_string(params_.size());
    builder_.Param(name, dtype, shape);
    Tensor t = Tensor::Empty(dtype, shape);
    for (int64_t i = 0; i < t.numel(); ++i)
      static_cast<uint8_t*>(t.mutable_raw())[i] =
          static_cast<uint8_t>(least + Pick(most - least + 1));
    params_.emplace_back(name, std::move(t));
    return name;
  };
  const auto number = [&](float value) {
    const std::string name = "w" + std::to_string(params_.size());
    builder_.Param(name, DType::kF32, {});
    params_.emplace_back(name, F32({}, {value}));
    return name;
  };
  const Shape image{2, 3, 6, 6}, filter{3, 3, 1, 1};
  const std::string x_scale = number(1.0f / 64), x_zero = bytes(DType::kU8, {}, 128, 128);
  const std::string w_scale = number(1.0f / 32), w = bytes(DType::kI8, filter, -60, 60);
  const std::string y_scale = number(1.0f / 16), y_zero = bytes(DType::kU8, {}, 4, 4);
  const std::string q = NewVar(image, DType::kU8, 255, false);
  Op("affine_quantize", {{"x", {"in3"}}, {"y_scale", {x_scale}}, {"y_zero_point", {x_zero}}},
     {{"y", {q}}});
  const std::string a = NewVar(image, DType::kF32, 2, false);
  Op("affine_dequantize", {{"x", {q}}, {"x_scale", {x_scale}}, {"x_zero_point", {x_zero}}},
     {{"y", {a}}});
  const std::string b = NewVar(filter, DType::kF32, 2, false);
  Op("affine_dequantize", {{"x", {w}}, {"x_scale", {w_scale}}}, {{"y", {b}}});
  const std::string c = NewVar(image, DType::kF32, 9, false);
  Op("conv2d", {{"Input", {a}}, {"Filter", {b}}}, {{"Output", {c}}});
  const std::string d = NewVar(image, DType::kF32, 9, false);
  Op("relu", {{"X", {c}}}, {{"Out", {d}}});
  const std::string e = NewVar(image, DType::kU8, 255, false);
  Op("affine_quantize", {{"x", {d}}, {"y_scale", {y_scale}}, {"y_zero_point", {y_zero}}},
     {{"y", {e}}});
  const std::string f = NewVar(image, DType::kF32, 16, false);
  Op("affine_dequantize", {{"x", {e}}, {"x_scale", {y_scale}}, {"x_zero_point", {y_zero}}},
     {{"y", {f}}});
  builder_.Fetch(f);
  // Operators of ONNX: a sum of quantised images, a product of integers that is scaled.
  const std::string g = NewVar(image, DType::kU8, 255, false);
  Op("onnx_ms_q_linear_add",
     {{"A", {e}},
      {"A_scale", {y_scale}},
      {"A_zero_point", {y_zero}},
      {"B", {q}},
      {"B_scale", {x_scale}},
      {"B_zero_point", {x_zero}},
      {"C_scale", {y_scale}},
      {"C_zero_point", {y_zero}}},
     {{"C", {g}}});
  builder_.Fetch(g);
  const std::string matrix = bytes(DType::kI8, {6, 5}, -60, 60);
  const Shape product{2, 3, 6, 5};
  const std::string sums = NewVar(product, DType::kI32, 1e5, false);
  Op("onnx_mat_mul_integer", {{"A", {q}}, {"B", {matrix}}, {"a_zero_point", {x_zero}}},
     {{"Y", {sums}}});
  const std::string wide = NewVar(product, DType::kF32, 1e5, false);
  Op("cast", {{"X", {sums}}}, {{"Out", {wide}}},
     {{"in_dtype", DTypeToProto(DType::kI32)}, {"out_dtype", DTypeToProto(DType::kF32)}});
  const std::string scaled = NewVar(product, DType::kF32, 100, false);
  Op("elementwise_mul", {{"X", {wide}}, {"Y", {w_scale}}}, {{"Out", {scaled}}});
  builder_.Fetch(scaled);
  // A convolution of integers that is scaled, and a product with a matrix that stays integers.
  const std::string image_sums = NewVar(image, DType::kI32, 1e5, false);
  Op("onnx_conv_integer", {{"x", {q}}, {"w", {w}}, {"x_zero_point", {x_zero}}},
     {{"y", {image_sums}}});
  const std::string wide_image = NewVar(image, DType::kF32, 1e5, false);
  Op("cast", {{"X", {image_sums}}}, {{"Out", {wide_image}}},
     {{"in_dtype", DTypeToProto(DType::kI32)}, {"out_dtype", DTypeToProto(DType::kF32)}});
  const std::string scaled_image = NewVar(image, DType::kF32, 100, false);
  Op("elementwise_mul", {{"X", {wide_image}}, {"Y", {w_scale}}}, {{"Out", {scaled_image}}});
  builder_.Fetch(scaled_image);
  const std::string large = bytes(DType::kI8, {6, 700}, -60, 60);
  const std::string floats = NewVar({6, 700}, DType::kF32, 2, false);
  Op("affine_dequantize", {{"x", {large}}, {"x_scale", {w_scale}}}, {{"y", {floats}}});
  const std::string rows = NewVar({2, 3, 6, 700}, DType::kF32, 200, false);
  Op("matmul_v2", {{"X", {f}}, {"Y", {floats}}}, {{"Out", {rows}}});
  builder_.Fetch(rows);
}

}  // namespace heddle::testing
