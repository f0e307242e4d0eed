// Writes operators that become several of PIR's, or that the table cannot express.
#include <algorithm>

#include "core/shapes.h"
#include "formats/paddle_words.h"
#include "formats/pir/write.h"
#include "formats/pir/write_text.h"

namespace heddle::pir {

using ir::kNoVar;
using ir::Op;
using ir::VarId;

Writer::Handler Writer::HandlerOf(std::string_view type) {
  using W = Writer;
  if (type.starts_with("elementwise_") && !type.ends_with("_grad") && !type.ends_with("_grad_grad"))
    return &W::AddElementwise;
  static constexpr std::pair<std::string_view, Handler> kHandlers[] = {
      {"assign", &W::AddAssign},
      {"fill_constant", &W::AddFill},
      {"flatten2_grad", &W::AddShapeGradient},
      {"flatten_contiguous_range_grad", &W::AddShapeGradient},
      {"lookup_table", &W::AddEmbedding},
      {"lookup_table_v2_grad", &W::AddRowsGradient},
      {"mul", &W::AddMul},
      {"relu", &W::AddInPaddlesWords},
      {"reshape2_grad", &W::AddShapeGradient},
      {"rnn", &W::AddRnn},
      {"select_input", &W::AddSelect},
      {"squeeze2_grad", &W::AddShapeGradient},
      {"transpose2_grad", &W::AddTransposeGradient},
      {"unsqueeze2_grad", &W::AddShapeGradient},
      {"write_to_array", &W::AddArrayWrite},
  };
  for (const auto& [name, handler] : kHandlers)
    if (name == type) return handler;
  return nullptr;
}

ValueId Writer::Reshaped(ValueId x, DType dtype, const Ints& shape) {
  return EmitOne({.name = "pd_op.reshape",
                  .operands = {x, IntArray(shape)},
                  .results = {TensorType(dtype, Shape(shape))}});
}

// PIR aligns the last dimensions of X and Y. For another axis, Y is reshaped with ones at its end.
void Writer::AddElementwise(const Op& op) {
  const int a = op.def->FindAttr("axis");
  const int64_t axis = a < 0 ? -1 : std::get<int64_t>(op.attrs[static_cast<size_t>(a)]);
  const ir::Var &x = VarOf(op.In("X")[0]), &y = VarOf(op.In("Y")[0]);
  const bool ranked = x.shape.known_rank() && y.shape.known_rank();
  if (axis == -1 || (ranked && axis == x.shape.rank() - y.shape.rank())) {
    Op plain = op;
    if (a >= 0) plain.attrs[static_cast<size_t>(a)] = int64_t{-1};
    return AddMapped(plain);
  }
  int open = 0;
  Ints shape(y.shape.begin(), y.shape.end());
  for (int64_t d : shape) open += d < 0;
  if (!ranked || open > 1) return CannotSay(op, "'axis' with shapes that are not known");
  while (static_cast<int64_t>(shape.size()) + axis < x.shape.rank()) shape.push_back(1);
  const VarId y_var = op.In("Y")[0];
  const ValueId before = now_[y_var];
  now_[y_var] = Reshaped(before, y.dtype, shape);
  Op plain = op;
  plain.attrs[static_cast<size_t>(a)] = int64_t{-1};
  AddMapped(plain);
  if (op.Out("Out")[0] != y_var) now_[y_var] = before;
}

void Writer::AddInPaddlesWords(const Op& op) {
  const auto said = formats::InPaddlesWords(op);
  AddMapped(said ? *said : op);
}

// mul becomes a matrix product between reshapes.
void Writer::AddMul(const Op& op) {
  const VarId x = op.In("X")[0], y = op.In("Y")[0], out = op.Out("Out")[0];
  const Shape &xs = VarOf(x).shape, &ys = VarOf(y).shape;
  const int64_t nx = op.Attr<int64_t>("x_num_col_dims"), ny = op.Attr<int64_t>("y_num_col_dims");
  if (!xs.known_rank() || !ys.is_static() || nx >= xs.rank() || ny >= ys.rank())
    return CannotSay(op, "shapes that are not known");
  const DType dtype = VarOf(out).dtype;
  const int64_t inner = ys.Product(0, static_cast<int>(ny));
  const int64_t columns = ys.Product(static_cast<int>(ny), ys.rank());
  ValueId left = ValueOf(x), right = ValueOf(y);
  const bool plain = nx == xs.rank() - 1;  // matmul computes it without reshapes
  if (!plain) left = Reshaped(left, dtype, {-1, inner});
  if (ys.rank() != 2) right = Reshaped(right, dtype, {inner, columns});
  Shape rows;
  for (int i = 0; i < nx; ++i) rows.push_back(xs[i]);
  Shape made = plain ? rows : Shape{-1};
  made.push_back(columns);
  const std::string no = *AttributeText("bool", false);
  ValueId product = EmitOne({.name = "pd_op.matmul",
                             .attributes = {Named("transpose_x", no), Named("transpose_y", no)},
                             .operands = {left, right},
                             .results = {TensorType(dtype, made)}});
  if (!plain || ys.rank() - ny != 1) {
    Ints shape(rows.begin(), rows.end());
    for (int i = static_cast<int>(ny); i < ys.rank(); ++i) shape.push_back(ys[i]);
    if (std::count(shape.begin(), shape.end(), -1) > 1)
      return CannotSay(op, "shapes that are not known");
    product = Reshaped(product, dtype, shape);
  }
  Set(out, product);
}

// fill_constant: the value may be text; value and shape may come from tensors.
void Writer::AddFill(const Op& op) {
  if (!op.In("ValueTensor").empty()) return AddMapped(op);
  const VarId out = op.Out("Out")[0];
  const std::string& text = op.Attr<std::string>("str_value");
  const double value = text.empty() ? op.Attr<double>("value") : RealIn(text);
  const DType dtype = DTypeFromProto(op.Attr<int64_t>("dtype"));
  const auto &shape = op.In("ShapeTensor"), &shapes = op.In("ShapeTensorList");
  if (shape.empty() && shapes.empty())
    return Set(out, Full(dtype, Shape(op.Attr<Ints>("shape")), value));
  const ValueId filling = Full(dtype, {1}, value);
  const ValueId wanted = shape.empty() ? Combined(shapes) : ValueOf(shape[0]);
  Set(out, EmitOne({.name = "pd_op.full_with_tensor",
                    .attributes = {Named("dtype", *AttributeText("dtype", DTypeToProto(dtype)))},
                    .operands = {filling, wanted},
                    .results = {TypeOf(VarOf(out))}}));
}

// The old embedding's row numbers have a last dimension of one.
void Writer::AddEmbedding(const Op& op) {
  const VarId ids = op.In("Ids")[0];
  const Shape& shape = VarOf(ids).shape;
  if (!shape.known_rank() || shape.rank() == 0) return CannotSay(op, "shapes that are not known");
  Shape without = shape;
  without.erase(shape.rank() - 1);
  const ValueId before = now_[ids];
  now_[ids] = EmitOne({.name = "pd_op.squeeze",
                       .operands = {before, IntArray({-1})},
                       .results = {TensorType(VarOf(ids).dtype, without)}});
  AddMapped(op);
  now_[ids] = before;
}

void Writer::AddSelect(const Op& op) {
  const VarId out = op.Out("Out")[0];
  const auto& choices = op.In("X");
  if (choices.size() != 2) return CannotSay(op, "it chooses from ", choices.size(), " values");
  Set(out,
      EmitOne({.name = "pd_op.select_input",
               .operands = {ValueOf(op.In("Mask")[0]), ValueFor(choices[0]), ValueFor(choices[1])},
               .results = {TypeOf(VarOf(out))}}));
}

void Writer::AddArrayWrite(const Op& op) {
  const VarId array = op.Out("Out")[0];
  Emit({.name = "pd_op.array_write_",
        .operands = {ValueOf(array), ValueOf(op.In("X")[0]), ValueOf(op.In("I")[0])},
        .results = {TypeOf(VarOf(array))}});
}

// PIR has separate operators to copy arrays and tensors.
void Writer::AddAssign(const Op& op) {
  const VarId x = op.In("X")[0], out = op.Out("Out")[0];
  const bool array = VarOf(x).kind == ir::VarKind::kArray;
  Set(out, EmitOne({.name = array ? "pd_op.assign_array" : "pd_op.assign",
                    .operands = {ValueOf(x)},
                    .results = {TypeOf(VarOf(out))}}));
}

// Gradients of views need the shape of the forward operator's input. `XShape` stands for that
// input: AddResults has bound it to that value.
void Writer::AddShapeGradient(const Op& op) {
  const VarId out = op.Out("X@GRAD")[0];
  Set(out, EmitOne({.name = "pd_op.reshape_grad",
                    .operands = {ValueOf(op.In("XShape")[0]), ValueOf(op.In("Out@GRAD")[0])},
                    .results = {TypeOf(VarOf(out))}}));
}

void Writer::AddTransposeGradient(const Op& op) {
  Op plain = op;
  plain.inputs[static_cast<size_t>(op.def->FindInput("XShape"))].clear();
  AddMapped(plain);
}

// An embedding's sparse gradient is an operator of its own.
void Writer::AddRowsGradient(const Op& op) {
  if (!op.Attr<bool>("is_sparse")) return AddMapped(op);
  const VarId out = op.Out("W@GRAD")[0];
  const AttrValue padding = op.Attr<int64_t>("padding_idx");
  Set(out, EmitOne({.name = "pd_op.embedding_sparse_grad",
                    .attributes = {Named("padding_idx", *AttributeText("i64", padding))},
                    .operands = {ValueOf(op.In("Ids")[0]), ValueOf(op.In("W")[0]),
                                 ValueOf(op.In("Out@GRAD")[0])},
                    .results = {TypeOf(VarOf(out))}}));
}

// PIR's rnn has an operand for the dropout state, which no file contains.
void Writer::AddRnn(const Op& op) {
  const ValueId state = ++results_;
  ops_.back().push_back(R"({"#":"p","A":[0,1,1,)" +
                        Quoted("dropout_state_" + std::to_string(state) + "__non_persistable") +
                        R"(],"DA":[],"O":{"%":)" + std::to_string(state) + R"(,"TT":)" +
                        TensorType(DType::kU8, {}) + R"(},"OA":[0,1,0],"QA":[]})");
  dropout_state_ = state;
  AddMapped(op);
  dropout_state_ = 0;
}

}  // namespace heddle::pir
