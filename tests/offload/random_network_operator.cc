// Convolutions, pooling, normalisation, products and resizing.
#include <algorithm>

#include "tests/offload/random_operator.h"

namespace heddle::testing {

void RandomOperator::Convolving() {
  const bool transposed = OneIn(3), last = !transposed && OneIn(3), deep = OneIn(6);
  const int spatial = deep ? 3 : 2;
  const int64_t groups = OneIn(3) ? 2 : 1, in = 2 * groups, out = 2 * groups;
  Shape x{1 + Pick(2)}, filter{transposed ? in : out, (transposed ? out : in) / groups};
  if (!last) x.push_back(in);
  Ints strides, dilations, pads;
  for (int i = 0; i < spatial; ++i) {
    x.push_back(5 + Pick(4));
    filter.push_back(1 + Pick(3));
    strides.push_back(1 + Pick(2));
    dilations.push_back(1 + Pick(2));
    pads.push_back(Pick(2));
  }
  if (last) x.push_back(in);
  if (OneIn(3))
    for (int i = 0; i < spatial; ++i) pads.push_back(Pick(2));
  Attrs attrs{
      {"strides", strides},
      {"dilations", dilations},
      {"paddings", pads},
      {"groups", groups},
      {"padding_algorithm", AnyOf<std::string>({"EXPLICIT", "EXPLICIT", "SAME", "VALID"})},
      {"data_format", std::string(deep ? (last ? "NDHWC" : "NCDHW") : (last ? "NHWC" : "NCHW"))}};
  if (transposed && OneIn(3))
    attrs.emplace_back("output_padding", Ints(static_cast<size_t>(spatial), 1));
  const DType dtype = FloatType();
  const std::string type =
      std::string(deep ? "conv3d" : "conv2d") + (transposed ? "_transpose" : "");
  const std::string input = Any(dtype, x), weights = Operand(Numbers(dtype, filter, -1, 1), 1);
  Add(type, {{"Input", {input}}, {"Filter", {weights}}}, {"Output"}, attrs);
}

void RandomOperator::Pooling() {
  const bool last = OneIn(3), deep = OneIn(6);
  const int spatial = deep ? 3 : 2;
  Shape x{1 + Pick(2)};
  if (!last) x.push_back(3);
  Ints kernel, strides, pads;
  const bool adaptive = OneIn(5);
  for (int i = 0; i < spatial; ++i) {
    x.push_back(4 + Pick(4));
    kernel.push_back(1 + Pick(3));
    strides.push_back(1 + Pick(3));
    pads.push_back(Pick(2));
  }
  if (last) x.push_back(3);
  if (OneIn(3))
    for (int i = 0; i < spatial; ++i) pads.push_back(Pick(2));
  Add(deep ? "pool3d" : "pool2d", {{"X", {Any(FloatType(), x)}}}, {"Out"},
      {{"ksize", kernel},
       {"strides", strides},
       {"paddings", pads},
       {"global_pooling", OneIn(6)},
       {"adaptive", adaptive},
       {"ceil_mode", OneIn(3)},
       {"exclusive", OneIn(2)},
       {"pooling_type", std::string(OneIn(2) ? "max" : "avg")},
       {"padding_algorithm", AnyOf<std::string>({"EXPLICIT", "EXPLICIT", "SAME", "VALID"})},
       {"data_format", std::string(deep ? (last ? "NDHWC" : "NCDHW") : (last ? "NHWC" : "NCHW"))}});
}

void RandomOperator::Normalising() {
  const std::string type =
      AnyOf<std::string>({"batch_norm", "layer_norm", "instance_norm", "group_norm", "softmax",
                          "log_softmax", "norm", "lrn", "prelu"});
  const DType dtype = FloatType();
  // A number that a float holds, for float64.
  const double epsilon = OneIn(2) ? 1e-5 : 0.0009765625;
  if (type == "softmax" || type == "log_softmax" || type == "norm") {
    const Shape x = AnyShape(1, 4);
    return Add(type, {{"X", {Any(dtype, x)}}}, {"Out"}, {{"axis", Axis(x.rank())}});
  }
  if (type == "layer_norm") {
    const Shape x = AnyShape(2, 4);
    const int begin = 1 + Pick(x.rank() - 1);
    const int64_t width = x.Product(begin, x.rank());
    Slots inputs{{"X", {Any(dtype, x)}}};
    if (OneIn(2)) inputs.push_back({"Scale", {Any(dtype, {width})}});
    if (OneIn(2)) inputs.push_back({"Bias", {Any(dtype, {width})}});
    return Add(type, inputs, {"Y"}, {{"begin_norm_axis", int64_t{begin}}, {"epsilon", epsilon}});
  }
  const bool last = OneIn(3);
  Shape x{2};
  const int rank = type == "batch_norm" ? 2 + Pick(4) : 4;
  for (int i = 1; i < rank; ++i) x.push_back(i == 1 ? 4 : 1 + Pick(4));
  if (last && type == "batch_norm") std::swap(x[1], x[rank - 1]);
  Slots inputs{{"X", {Any(dtype, x)}}};
  Attrs attrs{{"epsilon", epsilon}};
  if (type == "lrn")
    return Add(type, inputs, {"Out"}, {{"n", int64_t{OneIn(4) ? 4 : 3}}, {"k", 1.0}});
  if (type == "prelu") {
    const std::string mode = AnyOf<std::string>({"all", "channel", "element"});
    const Shape alpha = mode == "all" ? Shape{1} : mode == "channel" ? Shape{4} : x;
    Shape element = x;
    element[0] = 1;
    inputs.push_back({"Alpha", {Any(dtype, mode == "element" ? element : alpha)}});
    return Add(type, inputs, {"Out"}, {{"mode", mode}});
  }
  if (OneIn(2)) inputs.push_back({"Scale", {Operand(Numbers(dtype, {4}, -1, 1), 2)}});
  if (OneIn(2)) inputs.push_back({"Bias", {Operand(Numbers(dtype, {4}, -1, 1), 2)}});
  if (type == "batch_norm") {
    inputs.push_back({"Mean", {Operand(Numbers(dtype, {4}, -1, 1), 1)}});
    inputs.push_back({"Variance", {Operand(Numbers(dtype, {4}, 0.5, 2), 1)}});
    attrs.emplace_back("is_test", true);
    attrs.emplace_back("data_layout", std::string(last ? "NHWC" : "NCHW"));
  }
  if (type == "group_norm") attrs.emplace_back("groups", int64_t{1 << Pick(3)});
  Add(type, inputs, {"Y"}, attrs);
}

void RandomOperator::Multiplying() {
  const std::string type =
      AnyOf<std::string>({"matmul_v2", "matmul_v2", "matmul", "mul", "fc", "bmm", "addmm"});
  const DType dtype = FloatType();
  if (type == "mul" || type == "fc") {
    const Shape x = AnyShape(2, 4);
    const int at = 1 + Pick(x.rank() - 1);
    const int64_t terms = x.Product(at, x.rank());
    if (type == "fc")
      return Add(type,
                 {{"Input", {Any(dtype, x)}},
                  {"W", {Any(dtype, {terms, 3})}},
                  {"Bias", {Any(dtype, {3})}}},
                 {"Out"},
                 {{"in_num_col_dims", int64_t{at}},
                  {"activation_type", std::string(OneIn(2) ? "relu" : "")}});
    Shape y(x.dims().subspan(static_cast<size_t>(at)));
    const int cut = y.rank();
    for (int k = 1 + Pick(2); k > 0; --k) y.push_back(1 + Pick(3));
    return Add(type, {{"X", {Any(dtype, x)}}, {"Y", {Any(dtype, y)}}}, {"Out"},
               {{"x_num_col_dims", int64_t{at}}, {"y_num_col_dims", int64_t{cut}}});
  }
  const int64_t rows = 1 + Pick(3), terms = 1 + Pick(3), columns = 1 + Pick(3);
  if (type == "addmm")
    return Add(type,
               {{"Input", {Any(dtype, {rows, columns})}},
                {"X", {Any(dtype, {rows, terms})}},
                {"Y", {Any(dtype, {terms, columns})}}},
               {"Out"}, {{"Alpha", 0.5}, {"Beta", 2.0}});
  const bool trans_x = type != "bmm" && OneIn(3), trans_y = type != "bmm" && OneIn(3);
  Shape batch = type == "bmm" ? Shape{2} : AnyShape(0, 2);
  Shape x = batch, y = OneIn(3) && type != "bmm" ? Shape() : batch;
  x.push_back(trans_x ? terms : rows);
  x.push_back(trans_x ? rows : terms);
  y.push_back(trans_y ? columns : terms);
  y.push_back(trans_y ? terms : columns);
  if (type == "matmul_v2" && OneIn(6)) x = Shape{terms};
  if (type == "matmul_v2" && OneIn(6)) y = Shape{terms};
  Attrs attrs;
  if (type == "matmul_v2") attrs = {{"trans_x", trans_x}, {"trans_y", trans_y}};
  if (type == "matmul")
    attrs = {{"transpose_X", trans_x}, {"transpose_Y", trans_y}, {"alpha", OneIn(2) ? 1.0 : 0.5}};
  Add(type, {{"X", {Any(dtype, x)}}, {"Y", {Any(dtype, y)}}}, {"Out"}, attrs);
}

void RandomOperator::Resizing() {
  const bool nearest = OneIn(2), last = OneIn(3), old = OneIn(3);
  Shape x{1, 2, 2 + Pick(3), 2 + Pick(3)};
  if (last) x = Shape{x[0], x[2], x[3], x[1]};
  Attrs attrs{{"align_corners", OneIn(3)},
              {"align_mode", int64_t{Pick(2)}},
              {"data_layout", std::string(last ? "NHWC" : "NCHW")}};
  const double scale = OneIn(2) ? 2 : 1.5;
  if (OneIn(2)) {
    attrs.emplace_back("out_h", int64_t{1 + Pick(8)});
    attrs.emplace_back("out_w", int64_t{1 + Pick(8)});
  } else if (old) {
    attrs.emplace_back("scale", scale);
  } else {
    attrs.emplace_back("scale", std::vector<double>{scale, 3});
  }
  Add(std::string(nearest ? "nearest_interp" : "bilinear_interp") + (old ? "" : "_v2"),
      {{"X", {Any(OneIn(6) ? DType::kF64 : DType::kF32, x)}}}, {"Out"}, attrs);
}

}  // namespace heddle::testing
