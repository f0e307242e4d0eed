#include "tests/offload/random_operator.h"

#include <algorithm>
#include <cmath>

#include "core/shapes.h"

namespace heddle::testing {

RandomOperator::RandomOperator(uint32_t seed) : rng_(seed) {
  using Member = void (RandomOperator::*)();
  static constexpr Member kKinds[] = {
      &RandomOperator::OfOneElement, &RandomOperator::Broadcasting, &RandomOperator::Reducing,
      &RandomOperator::Shaping,      &RandomOperator::Cutting,      &RandomOperator::Joining,
      &RandomOperator::Picking,      &RandomOperator::Filling,      &RandomOperator::Convolving,
      &RandomOperator::Pooling,      &RandomOperator::Normalising,  &RandomOperator::Multiplying,
      &RandomOperator::Resizing};
  (this->*kKinds[seed % std::size(kKinds)])();
}

std::shared_ptr<Scope> RandomOperator::NewScope() const {
  auto scope = std::make_shared<Scope>();
  for (const heddle::Feed& c : constants_) scope->Set(c.name, c.value);
  return scope;
}

bool RandomOperator::HasElements() const {
  return std::all_of(feeds_.begin(), feeds_.end(),
                     [](const heddle::Feed& feed) { return feed.value.tensor().numel() > 0; });
}

Shape RandomOperator::AnyShape(int least, int most) {
  Shape shape;
  const int rank = least + Pick(most - least + 1);
  for (int i = 0; i < rank; ++i) shape.push_back(OneIn(16) ? 0 : 1 + Pick(4));
  return shape;
}

DType RandomOperator::AnyType() {
  return AnyOf<DType>({DType::kF32, DType::kF32, DType::kF32, DType::kF64, DType::kI32, DType::kI64,
                       DType::kBool, DType::kI8, DType::kU8, DType::kI16});
}

int64_t RandomOperator::Axis(int rank) { return rank == 0 ? 0 : Pick(2 * rank) - rank; }

Ints RandomOperator::Axes(int rank) {
  Ints all;
  for (int i = 0; i < rank; ++i)
    if (OneIn(2)) all.push_back(OneIn(2) ? i : i - rank);
  std::shuffle(all.begin(), all.end(), rng_);
  return all;
}

Tensor RandomOperator::Numbers(DType dtype, const Shape& shape, double low, double high) {
  Tensor t = Tensor::Empty(dtype, shape);
  std::uniform_real_distribution<double> draw(low, high);
  for (int64_t i = 0; i < t.numel(); ++i) {
    const double v = draw(rng_);
    switch (dtype) {
      case DType::kF32:
        t.mutable_data<float>()[i] = static_cast<float>(v);
        break;
      case DType::kF64:
        t.mutable_data<double>()[i] = v;
        break;
      case DType::kI64:
        t.mutable_data<int64_t>()[i] = static_cast<int64_t>(std::floor(v));
        break;
      case DType::kI32:
        t.mutable_data<int32_t>()[i] = static_cast<int32_t>(std::floor(v));
        break;
      case DType::kI16:
        t.mutable_data<int16_t>()[i] = static_cast<int16_t>(std::floor(v));
        break;
      case DType::kI8:
        t.mutable_data<int8_t>()[i] = static_cast<int8_t>(std::floor(v));
        break;
      case DType::kU8:
        t.mutable_data<uint8_t>()[i] = static_cast<uint8_t>(std::abs(std::floor(v)));
        break;
      default:
        t.mutable_data<bool>()[i] = v > 0;
    }
  }
  return t;
}

std::string RandomOperator::Operand(Tensor value, int of) {
  const std::string name = "v" + std::to_string(names_++);
  if (of > 0 && OneIn(of)) {
    builder_.Param(name, value.dtype(), value.shape());
    constants_.push_back({name, std::move(value)});
  } else {
    builder_.Feed(name, value.dtype(), value.shape());
    feeds_.push_back({name, std::move(value)});
  }
  return name;
}

void RandomOperator::Add(const std::string& type, const Slots& inputs,
                         const std::vector<std::string>& outputs, const Attrs& attrs, int count) {
  type_ = type;
  Slots outs;
  for (const std::string& slot : outputs) {
    std::vector<std::string> names;
    for (int k = 0; k < (slot == outputs[0] ? count : 1); ++k)
      names.push_back("out" + std::to_string(names_++));
    outs.emplace_back(slot, names);
  }
  builder_.Op(type, inputs, outs, attrs);
  for (const auto& [slot, names] : outs)
    if (slot != "XShape")
      for (const std::string& name : names) builder_.Fetch(name);
}

void RandomOperator::OfOneElement() {
  struct Kind {
    const char* type;
    double low, high;
    std::vector<const char*> reals;  // attributes
  };
  static const std::vector<Kind> kinds = {{"abs", -2, 2, {}},
                                          {"acos", -1, 1, {}},
                                          {"acosh", 1, 4, {}},
                                          {"asin", -1, 1, {}},
                                          {"asinh", -2, 2, {}},
                                          {"atan", -2, 2, {}},
                                          {"atanh", -0.9, 0.9, {}},
                                          {"brelu", -30, 30, {"t_min", "t_max"}},
                                          {"ceil", -4, 4, {}},
                                          {"celu", -3, 3, {"alpha"}},
                                          {"cos", -4, 4, {}},
                                          {"cosh", -2, 2, {}},
                                          {"elu", -3, 3, {"alpha"}},
                                          {"erf", -2, 2, {}},
                                          {"exp", -2, 2, {}},
                                          {"floor", -4, 4, {}},
                                          {"gelu", -3, 3, {}},
                                          {"hard_shrink", -2, 2, {"threshold"}},
                                          {"hard_sigmoid", -5, 5, {"slope", "offset"}},
                                          {"hard_swish", -5, 5, {"threshold", "scale", "offset"}},
                                          {"hard_swish", -5, 5, {}},
                                          {"leaky_relu", -2, 2, {"alpha"}},
                                          {"log", 0.1, 4, {}},
                                          {"log10", 0.1, 4, {}},
                                          {"log2", 0.1, 4, {}},
                                          {"logsigmoid", -5, 5, {}},
                                          {"mish", -3, 3, {}},
                                          {"reciprocal", 0.2, 3, {}},
                                          {"relu", -2, 2, {}},
                                          {"relu6", -9, 9, {"threshold"}},
                                          {"rsqrt", 0.2, 3, {}},
                                          {"selu", -2, 2, {"scale", "alpha"}},
                                          {"sigmoid", -5, 5, {}},
                                          {"sign", -1, 1, {}},
                                          {"silu", -5, 5, {}},
                                          {"sin", -4, 4, {}},
                                          {"sinh", -2, 2, {}},
                                          {"softplus", -5, 5, {"beta"}},
                                          {"softshrink", -2, 2, {"lambda"}},
                                          {"softsign", -2, 2, {}},
                                          {"sqrt", 0, 4, {}},
                                          {"square", -2, 2, {}},
                                          {"stanh", -2, 2, {"scale_a", "scale_b"}},
                                          {"swish", -3, 3, {"beta"}},
                                          {"tan", -1, 1, {}},
                                          {"tanh", -3, 3, {}},
                                          {"tanh_shrink", -2, 2, {}},
                                          {"thresholded_relu", -2, 2, {"threshold"}},
                                          {"pow", 0.2, 3, {"factor"}},
                                          {"isnan_v2", -2, 2, {}},
                                          {"isinf_v2", -2, 2, {}},
                                          {"isfinite_v2", -2, 2, {}},
                                          {"clip", -3, 3, {"min", "max"}},
                                          {"scale", -3, 3, {"scale", "bias"}},
                                          {"assign", -3, 3, {}},
                                          {"cast", -3, 3, {}},
                                          {"increment", -3, 3, {"step"}}};
  const Kind& kind = AnyOf(kinds);
  Attrs attrs;
  double least = 0.25;
  for (const char* name : kind.reals) {
    const double v = least + 0.25 * Pick(6);  // exactly a float, half of the time
    attrs.emplace_back(name, OneIn(2) ? v : v + 0.1);
    least = v + 1;  // maxima above minima
  }
  const std::string type = kind.type;
  DType dtype = FloatType();
  if (type == "cast" || type == "assign" || (OneIn(3) && (type == "abs" || type == "relu")))
    dtype = AnyType();
  if (type == "cast") attrs.emplace_back("out_dtype", DTypeToProto(AnyType()));
  if (type == "gelu") attrs.emplace_back("approximate", OneIn(2));
  if (type == "scale") attrs.emplace_back("bias_after_scale", OneIn(2));
  if (type == "scale" && OneIn(3)) {
    dtype = OneIn(2) ? DType::kI32 : DType::kI64;
    attrs[0].second = double(Pick(4));
    attrs[1].second = double(Pick(4));
  }
  const Shape shape = type == "increment" ? Shape{1} : AnyShape(0, 5);
  Add(type, {{"X", {Any(dtype, shape, kind.low, kind.high)}}}, {"Out"}, attrs);
}

void RandomOperator::Broadcasting() {
  const std::string type = AnyOf<std::string>({"elementwise_add",
                                               "elementwise_sub",
                                               "elementwise_mul",
                                               "elementwise_div",
                                               "elementwise_max",
                                               "elementwise_min",
                                               "elementwise_pow",
                                               "elementwise_mod",
                                               "less_than",
                                               "less_equal",
                                               "greater_than",
                                               "greater_equal",
                                               "equal",
                                               "not_equal",
                                               "logical_and",
                                               "logical_or",
                                               "logical_xor",
                                               "bitwise_and",
                                               "sum",
                                               "where"});
  const Shape x = AnyShape(0, 5);
  DType dtype = AnyType();
  if (type == "sum") {
    std::vector<std::string> all;
    for (int k = 1 + Pick(3); k > 0; --k) all.push_back(Any(dtype, x));
    return Add(type, {{"X", all}}, {"Out"});
  }
  if (type == "where")
    return Add(
        type,
        {{"Condition", {Any(DType::kBool, x)}}, {"X", {Any(dtype, x)}}, {"Y", {Any(dtype, x)}}},
        {"Out"});
  // Some dimensions of x, some of them 1.
  const int begin = Pick(x.rank() + 1), end = begin + Pick(x.rank() - begin + 1);
  Shape y;
  for (int i = begin; i < end; ++i) y.push_back(OneIn(4) ? 1 : x[i]);
  Attrs attrs;
  const bool ends = end == x.rank();
  if (!ends || OneIn(2)) attrs.emplace_back("axis", int64_t{begin});
  if (type == "equal" || type == "not_equal") {
    if (OneIn(2)) attrs.emplace_back("exact", true);
  }
  const bool positive =
      type == "elementwise_div" || type == "elementwise_pow" || type == "elementwise_mod";
  std::string a = Any(dtype, x, positive ? 1 : -3, 4), b = Any(dtype, y, positive ? 1 : -3, 4);
  if (OneIn(4)) std::swap(a, b);
  Add(type, {{"X", {a}}, {"Y", {b}}}, {"Out"}, attrs);
}

void RandomOperator::Reducing() {
  const Shape x = AnyShape(0, 5);
  const std::string type = AnyOf<std::string>(
      {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod", "reduce_all",
       "reduce_any", "mean", "logsumexp", "arg_max", "arg_min", "cumsum", "top_k_v2", "p_norm"});
  DType dtype = OneIn(3) ? AnyType() : FloatType();
  if (type == "reduce_all" || type == "reduce_any") dtype = DType::kBool;
  const std::string in = Any(dtype, x);
  Attrs attrs;
  if (type.starts_with("reduce_")) {
    attrs = {{"dim", Axes(x.rank())}, {"keep_dim", OneIn(2)}, {"reduce_all", OneIn(5)}};
  } else if (type == "logsumexp") {
    attrs = {{"axis", Axes(x.rank())}, {"keepdim", OneIn(2)}, {"reduce_all", OneIn(5)}};
  } else if (type == "p_norm") {
    attrs = {{"axis", Axis(x.rank())}, {"keepdim", OneIn(2)}, {"asvector", OneIn(4)}};
  } else if (type.starts_with("arg_")) {
    attrs = {{"axis", Axis(x.rank())},
             {"keepdims", OneIn(2)},
             {"flatten", OneIn(5)},
             {"dtype", int64_t{OneIn(3) ? 2 : 3}}};
  } else if (type == "cumsum") {
    attrs = {{"axis", Axis(x.rank())},
             {"flatten", OneIn(5)},
             {"exclusive", OneIn(2)},
             {"reverse", OneIn(2)}};
  } else if (type == "top_k_v2") {
    attrs = {{"axis", Axis(x.rank())}, {"k", int64_t{1 + Pick(2)}}, {"largest", OneIn(2)}};
    return Add(type, {{"X", {in}}}, {"Out", "Indices"}, attrs);
  }
  Add(type, {{"X", {in}}}, {"Out"}, attrs);
}

void RandomOperator::Shaping() {
  const Shape x = AnyShape(0, 5);
  const std::string type =
      AnyOf<std::string>({"reshape2", "reshape2", "transpose2", "squeeze2", "unsqueeze2",
                          "flatten2", "flatten_contiguous_range", "expand_v2", "tile", "flip",
                          "tril_triu", "shape", "size", "expand_as_v2"});
  const std::string in = Any(AnyType(), x);
  const int rank = x.rank();
  if (type == "reshape2") {
    Ints dims(x.begin(), x.end());
    if (rank > 1 && OneIn(2)) {  // two become one
      const int at = Pick(rank - 1);
      dims[static_cast<size_t>(at)] *= dims[static_cast<size_t>(at) + 1];
      dims.erase(dims.begin() + at + 1);
    } else {
      dims.insert(dims.begin() + Pick(rank + 1), 1);
    }
    for (size_t i = 0; i < dims.size(); ++i)
      if (static_cast<int>(i) < rank && dims[i] == x[static_cast<int>(i)] && OneIn(3)) dims[i] = 0;
    if (OneIn(2)) dims[static_cast<size_t>(Pick(static_cast<int>(dims.size())))] = -1;
    return Add(type, {{"X", {in}}}, {"Out", "XShape"}, {{"shape", dims}});
  }
  if (type == "transpose2") {
    Ints perm;
    for (int i = 0; i < rank; ++i) perm.push_back(i);
    std::shuffle(perm.begin(), perm.end(), rng_);
    return Add(type, {{"X", {in}}}, {"Out", "XShape"}, {{"axis", perm}});
  }
  if (type == "squeeze2") return Add(type, {{"X", {in}}}, {"Out"}, {{"axes", Axes(rank)}});
  if (type == "unsqueeze2") {
    Ints axes;
    for (int k = Pick(3); k >= 0; --k)
      axes.push_back(Axis(rank + 1 + static_cast<int>(axes.size())));
    return Add(type, {{"X", {in}}}, {"Out"}, {{"axes", axes}});
  }
  if (type == "flatten2")
    return Add(type, {{"X", {in}}}, {"Out"}, {{"axis", int64_t{Pick(rank + 1)}}});
  if (type == "flatten_contiguous_range") {
    const int begin = rank > 0 ? Pick(rank) : 0, end = rank > 0 ? begin + Pick(rank - begin) : 0;
    return Add(type, {{"X", {in}}}, {"Out"},
               {{"start_axis", int64_t{OneIn(2) ? begin : begin - rank}},
                {"stop_axis", int64_t{OneIn(2) ? end : end - rank}}});
  }
  if (type == "expand_v2" || type == "expand_as_v2") {
    Ints dims(static_cast<size_t>(Pick(2)), 2);
    for (const int64_t d : x) dims.push_back(d == 1 && OneIn(2) ? 3 : OneIn(3) ? -1 : d);
    if (type == "expand_v2") return Add(type, {{"X", {in}}}, {"Out"}, {{"shape", dims}});
    for (size_t i = 0; i < dims.size(); ++i)
      if (dims[i] < 0) dims[i] = x[static_cast<int>(i + x.rank() - dims.size())];
    return Add(type, {{"X", {in}}}, {"Out"}, {{"target_shape", dims}});
  }
  if (type == "tile") {
    Ints times;
    for (int k = Pick(rank + 2); k > 0; --k) times.push_back(1 + Pick(3));
    return Add(type, {{"X", {in}}}, {"Out"}, {{"repeat_times", times}});
  }
  if (type == "flip") return Add(type, {{"X", {in}}}, {"Out"}, {{"axis", Axes(rank)}});
  if (type == "tril_triu")
    return Add(type, {{"X", {in}}}, {"Out"},
               {{"diagonal", int64_t{Pick(5) - 2}}, {"lower", OneIn(2)}});
  Add(type, {{"Input", {in}}}, {"Out"});
}

void RandomOperator::Cutting() {
  const Shape x = AnyShape(1, 5);
  const int rank = x.rank();
  const std::string in = Any(AnyType(), x);
  const std::string type =
      AnyOf<std::string>({"slice", "slice", "strided_slice", "split", "unstack", "unbind", "pad"});
  if (type == "pad") {
    Ints pads;
    for (int i = 0; i < 2 * rank; ++i) pads.push_back(Pick(3));
    return Add(type, {{"X", {in}}}, {"Out"}, {{"paddings", pads}, {"pad_value", double(Pick(3))}});
  }
  const int64_t axis = Axis(rank);
  const int64_t dim = x[static_cast<int>(axis < 0 ? axis + rank : axis)];
  if (type == "split") {
    if (OneIn(2) && dim > 0)
      return Add(type, {{"X", {in}}}, {"Out"}, {{"axis", axis}, {"num", dim}},
                 static_cast<int>(dim));
    const int64_t first = dim > 0 ? Pick(static_cast<int>(dim) + 1) : 0;
    return Add(type, {{"X", {in}}}, {"Out"},
               {{"axis", axis}, {"sections", Ints{first, OneIn(2) ? -1 : dim - first}}}, 2);
  }
  if (type == "unstack" || type == "unbind") {
    Attrs attrs{{"axis", axis}};
    if (type == "unstack") attrs.emplace_back("num", dim);
    return Add(type, {{"X", {in}}}, {type == "unstack" ? "Y" : "Out"}, attrs,
               static_cast<int>(dim));
  }
  Ints axes, starts, ends, strides, dropped;
  for (int i = 0; i < rank; ++i) {
    if (OneIn(2)) continue;
    axes.push_back(OneIn(4) ? i - rank : i);
    if (OneIn(4) && x[i] > 0) {
      const int64_t at = Pick(static_cast<int>(x[i]));
      starts.push_back(at);
      ends.push_back(at + 1);
      if (OneIn(2)) dropped.push_back(i);
    } else {
      starts.push_back(Pick(9) - 4);
      ends.push_back(OneIn(3) ? (int64_t{1} << 31) - 1 : Pick(11) - 4);
    }
    strides.push_back(OneIn(3) ? 1 + Pick(3) : 1);
  }
  Attrs attrs{{"axes", axes}, {"starts", starts}, {"ends", ends}, {"decrease_axis", dropped}};
  if (type == "strided_slice") attrs.emplace_back("strides", strides);
  Add(type, {{"Input", {in}}}, {"Out"}, attrs);
}

void RandomOperator::Joining() {
  const Shape x = AnyShape(0, 4);
  const DType dtype = AnyType();
  const bool stack = OneIn(2);
  const int64_t axis = Axis(x.rank() + (stack ? 1 : 0));
  std::vector<std::string> all;
  for (int k = 1 + Pick(3); k > 0; --k) {
    Shape shape = x;
    if (!stack && x.rank() > 0)
      shape[static_cast<int>(axis < 0 ? axis + x.rank() : axis)] = Pick(4);
    all.push_back(Any(dtype, shape));
  }
  Add(stack ? "stack" : "concat", {{"X", all}}, {stack ? "Y" : "Out"}, {{"axis", axis}});
}

void RandomOperator::Picking() {
  const std::string type =
      AnyOf<std::string>({"gather", "gather_nd", "index_select", "lookup_table_v2", "one_hot_v2",
                          "index_sample", "take_along_axis"});
  const DType index = OneIn(2) ? DType::kI32 : DType::kI64;
  const Shape x = AnyShape(1, 4);
  const int64_t axis = Axis(x.rank());
  const auto dim = static_cast<double>(x[static_cast<int>(axis < 0 ? axis + x.rank() : axis)]);
  if (type == "gather") {
    Shape at = AnyShape(0, 1);
    if (at.rank() == 1 && OneIn(3)) at.push_back(1);
    return Add(type, {{"X", {Any(AnyType(), x)}}, {"Index", {Any(index, at, 0, dim)}}}, {"Out"},
               {{"axis", axis}});
  }
  if (type == "index_select")
    return Add(type, {{"X", {Any(AnyType(), x)}}, {"Index", {Any(index, AnyShape(1, 1), 0, dim)}}},
               {"Out"}, {{"dim", axis}});
  if (type == "gather_nd") {
    Shape at = AnyShape(0, 2);
    at.push_back(1 + Pick(x.rank()));
    return Add(type, {{"X", {Any(AnyType(), x)}}, {"Index", {Any(index, at, 0, 1)}}}, {"Out"});
  }
  if (type == "lookup_table_v2")
    return Add(type,
               {{"W", {Any(FloatType(), {5, 3})}}, {"Ids", {Any(index, AnyShape(0, 3), 0, 5)}}},
               {"Out"}, {{"padding_idx", int64_t{OneIn(3) ? Pick(5) : -1}}});
  if (type == "one_hot_v2")
    return Add(type, {{"X", {Any(index, AnyShape(0, 3), 0, 4)}}}, {"Out"},
               {{"depth", int64_t{4}}, {"dtype", DTypeToProto(AnyType())}});
  if (type == "index_sample")
    return Add(type, {{"X", {Any(FloatType(), {3, 4})}}, {"Index", {Any(index, {3, 2}, 0, 4)}}},
               {"Out"});
  Shape at = x;
  at[static_cast<int>(axis < 0 ? axis + x.rank() : axis)] = 1 + Pick(3);
  if (OneIn(3)) at[0] = 1;
  Add(type, {{"Input", {Any(FloatType(), x)}}, {"Index", {Any(index, at, 0, dim)}}}, {"Result"},
      {{"Axis", axis}});
}

void RandomOperator::Filling() {
  const Shape x = AnyShape(0, 4);
  const DType dtype = AnyType();
  const std::string type =
      AnyOf<std::string>({"fill_constant", "fill_any_like", "fill_zeros_like", "range"});
  if (type == "fill_constant") {
    Slots inputs;
    Attrs attrs{{"dtype", DTypeToProto(dtype)}, {"value", double(Pick(5)) / (OneIn(2) ? 2 : 1)}};
    if (OneIn(2)) {
      std::vector<int64_t> dims(x.begin(), x.end());
      inputs = {{"ShapeTensor",
                 {Operand(Tensor::Of(DType::kI64, {static_cast<int64_t>(dims.size())}, dims), 2)}}};
    } else {
      attrs.emplace_back("shape", Ints(x.begin(), x.end()));
    }
    return Add(type, inputs, {"Out"}, attrs);
  }
  if (type == "range") {
    const DType of = OneIn(2) ? DType::kI64 : DType::kI32;
    const auto number = [&](int64_t v) {
      Tensor t = Numbers(of, OneIn(2) ? Shape{1} : Shape(), static_cast<double>(v),
                         static_cast<double>(v) + 0.5);
      return Operand(t);
    };
    const std::string start = number(Pick(4)), end = number(4 + Pick(6)),
                      step = number(1 + Pick(3));
    return Add(type, {{"Start", {start}}, {"End", {end}}, {"Step", {step}}}, {"Out"});
  }
  Attrs attrs;
  if (type == "fill_any_like")
    attrs = {{"value", double(Pick(4))},
             {"dtype", OneIn(2) ? int64_t{-1} : DTypeToProto(AnyType())}};
  Add(type, {{"X", {Any(dtype, x)}}}, {"Out"}, attrs);
}

}  // namespace heddle::testing
