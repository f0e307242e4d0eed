// Groups of operators that passes look for, as one.
#include <algorithm>

#include "tests/support/net_program.h"

namespace heddle::testing {

// As fusion and layout passes leave them, large enough to be made row by row.
void NetProgram::ConvolutionChain() {
  std::string x = Feed(DType::kF32, {1, 12, 12, 8}, 1);
  const int64_t channels[] = {8, 64, 64, 8};
  for (int i = 0; i < 3; ++i) {
    const int64_t kernel = i == 1 ? 3 : 1, pad = kernel / 2, to = channels[i + 1];
    const std::string w = Param({to, i == 1 ? 1 : channels[i], kernel, kernel}, 0.1),
                      bias = Param({to}, 0.1), out = NewVar({1, 12, 12, to}, DType::kF32, 9);
    Op("fused_conv2d", {{"Input", {x}}, {"Filter", {w}}, {"Bias", {bias}}}, {{"Output", {out}}},
       {{"paddings", Ints{pad, pad}},
        {"groups", i == 1 ? to : int64_t{1}},
        {"data_format", std::string("NHWC")},
        {"fuse_activation", std::string("relu")}});
    x = out;
  }
}

// A product, as fusion leaves it, of two tensors side by side; the second may be written before it.
void NetProgram::JoinedProduct() {
  const std::string x = Feed(DType::kF32, {4, 12}, 1), y = NewVar({4, 14}, DType::kF32, 1),
                    whole = NewVar({4, 26}, DType::kF32, 1), out = NewVar({4, 8}, DType::kF32, 9),
                    w = Param({26, 8}, 0.2), bias = Param({8}, 0.1);
  Op("scale", {{"X", {Feed(DType::kF32, {4, 14}, 1)}}}, {{"Out", {y}}});
  Op("concat", {{"X", {x, y}}}, {{"Out", {whole}}}, {{"axis", int64_t{1}}});
  if (OneIn(4)) Op("scale", {{"X", {y}}}, {{"Out", {y}}}, {{"scale", 0.5}});
  Op("fused_matmul", {{"X", {whole}}, {"Y", {w}}, {"Bias", {bias}}}, {{"Out", {out}}},
     {{"fuse_activation", std::string("relu")}});
}

// Products of one tensor, which may be written between them.
void NetProgram::ProductsOfOne() {
  const std::string x = NewVar({4, 12}, DType::kF32, 1);
  Op("scale", {{"X", {Feed(DType::kF32, {4, 12}, 1)}}}, {{"Out", {x}}});
  for (int i = 2 + Pick(3); i > 0; --i) {
    const int64_t columns = 4 + 8 * Pick(3);
    const std::string out = NewVar({4, columns}, DType::kF32, 9);
    if (OneIn(2)) {
      Op("matmul_v2", {{"X", {x}}, {"Y", {Param({columns, 12}, 0.3)}}}, {{"Out", {out}}},
         {{"trans_y", true}});
    } else {
      Op("fused_matmul",
         {{"X", {x}}, {"Y", {Param({12, columns}, 0.3)}}, {"Bias", {Param({columns}, 0.1)}}},
         {{"Out", {out}}}, {{"fuse_activation", std::string(OneIn(2) ? "relu" : "gelu")}});
    }
    if (OneIn(6)) Op("scale", {{"X", {x}}}, {{"Out", {x}}}, {{"scale", 0.5}});
  }
}

// A variable's gradient in two or three parts, of which operators make some that can add.
void NetProgram::SummedGradients() {
  const Shape shape = {4, 6};
  std::vector<std::string> parts;
  for (int i = 2 + Pick(2); i > 0; --i) {
    parts.push_back(NewVar(shape, DType::kF32, 9, false));
    if (i > 1 && OneIn(2)) {
      Op("scale", {{"X", {Feed(DType::kF32, shape, 1)}}}, {{"Out", {parts.back()}}});
      continue;
    }
    if (OneIn(3)) {
      Op("layer_norm_grad",
         {{"X", {Feed(DType::kF32, shape, 1)}},
          {"Mean", {Param({4}, 0.3)}},
          {"Variance", {Param({4}, 0.3)}},
          {"Y@GRAD", {Feed(DType::kF32, shape, 1)}}},
         {{"X@GRAD", {parts.back()}}}, {{"epsilon", 1.0}});
      continue;
    }
    Op("matmul_v2_grad",
       {{"X", {Feed(DType::kF32, shape, 1)}},
        {"Y", {Param({6, 5}, 0.3)}},
        {"Out@GRAD", {Feed(DType::kF32, {4, 5}, 1)}}},
       {{"X@GRAD", {parts.back()}}});
  }
  Op("sum", {{"X", parts}}, {{"Out", {NewVar(shape, DType::kF32, 30)}}});
}

// Steps of a parameter along the gradients of one lookup or of two.
void NetProgram::SparseUpdate(const std::string& param) {
  const std::string id = std::to_string(names_++);
  std::vector<std::string> parts;
  const auto rows = [&](const std::string& name) {
    auto* const var = builder_.desc().mutable_blocks(0)->add_vars();
    var->set_name(name);
    var->mutable_type()->set_type(proto::VarType::SELECTED_ROWS);
    var->mutable_type()->mutable_selected_rows()->set_data_type(proto::VarType::FP32);
    return name;
  };
  for (int i = 1 + Pick(2); i > 0; --i) {
    const std::string n = id + "_" + std::to_string(i), ids = "ids" + n;
    builder_.Feed(ids, DType::kI64, {3, 1});
    feeds_.push_back({ids, I64({3, 1}, {Pick(4), Pick(4), Pick(4)})});
    parts.push_back(rows("rows" + n));
    Op("lookup_table_v2_grad",
       {{"W", {param}}, {"Ids", {ids}}, {"Out@GRAD", {Feed(DType::kF32, {3, 1, 6}, 1)}}},
       {{"W@GRAD", {parts.back()}}}, {{"is_sparse", true}});
  }
  std::string grad = parts[0];
  if (parts.size() > 1) {
    grad = rows("rows" + id);
    Op("sum", {{"X", parts}}, {{"Out", {grad}}});
  }
  Op("sgd", {{"Param", {param}}, {"Grad", {grad}}, {"LearningRate", {Param({1}, 0.1)}}},
     {{"ParamOut", {param}}});
}

// Element-wise operators on both sides of a reshape, which another operator may read as well.
void NetProgram::ReshapedElements() {
  const std::string a = NewVar({4, 6}, DType::kF32, 1, false),
                    b = NewVar({3, 8}, DType::kF32, 1, false),
                    c = NewVar({3, 8}, DType::kF32, 2, false);
  Op("tanh", {{"X", {Feed(DType::kF32, {4, 6}, 1)}}}, {{"Out", {a}}});
  Op("reshape2", {{"X", {a}}}, {{"Out", {b}}}, {{"shape", Ints{3, -1}}});
  Op("elementwise_add", {{"X", {b}}, {"Y", {Param({8}, 1)}}}, {{"Out", {c}}},
     {{"axis", int64_t{-1}}});
  if (OneIn(3))
    Op("softmax", {{"X", {b}}}, {{"Out", {NewVar({3, 8}, DType::kF32, 1)}}},
       {{"axis", int64_t{-1}}});
  Op("scale", {{"X", {c}}}, {{"Out", {NewVar({3, 8}, DType::kF32, 1)}}}, {{"scale", 0.5}});
}

// Two tensors' last dimensions interleaved, in one part or two.
void NetProgram::Shuffle(const Var& x) {
  Var y;
  const auto like = [&](const Var& v) { return v.dtype == x.dtype && v.shape == x.shape; };
  if (!Choose(like, &y)) return;
  const int64_t channels = x.shape.dim(-1), rows = x.shape.numel() / channels;
  const double bound = std::max(x.bound, y.bound);
  Shape to = x.shape;
  to[to.rank() - 1] *= 2;
  const std::string whole = NewVar(to, x.dtype, bound), out = NewVar(to, x.dtype, bound),
                    apart = NewVar({rows, 2, channels}, x.dtype, bound),
                    turned = NewVar({rows, channels, 2}, x.dtype, bound);
  Op("concat", {{"X", {x.name, y.name}}}, {{"Out", {whole}}}, {{"axis", int64_t{-1}}});
  Op("reshape2", {{"X", {whole}}}, {{"Out", {apart}}}, {{"shape", Ints{-1, 2, channels}}});
  Op("transpose2", {{"X", {apart}}}, {{"Out", {turned}}}, {{"axis", Ints{0, 2, 1}}});
  Op("reshape2", {{"X", {turned}}}, {{"Out", {out}}}, {{"shape", Ints(to.begin(), to.end())}});
  if (OneIn(2)) return;
  Op("split", {{"X", {out}}},
     {{"Out", {Out(x.shape, x.dtype, bound), NewVar(x.shape, x.dtype, bound)}}},
     {{"axis", int64_t{to.rank() - 1}}, {"num", int64_t{2}}});
}

// The iteration's last step works on a matrix of the `outside` first variables with its rows as
// columns; it is of no interest whether others of the body's operators touch the matrix.
void NetProgram::CarriedTransposed(size_t outside) {
  for (size_t k = 0; k < outside; ++k) {
    const Var x = vars_[k];
    if (!x.writable || x.dtype != DType::kF32 || x.shape.rank() != 2 || !x.shape.is_static())
      continue;
    const Shape turned{x.shape[1], x.shape[0]};
    const std::string in = NewVar(turned, x.dtype, x.bound), out = NewVar(turned, x.dtype, 1),
                      back = NewVar(x.shape, x.dtype, 1);
    Op("transpose2", {{"X", {x.name}}}, {{"Out", {in}}}, {{"axis", Ints{1, 0}}});
    Op("tanh", {{"X", {in}}}, {{"Out", {out}}});
    Op("transpose2", {{"X", {out}}}, {{"Out", {back}}}, {{"axis", Ints{1, 0}}});
    Op("assign", {{"X", {back}}}, {{"Out", {x.name}}});
    return;
  }
}

// h = tanh(x[t] w + b + h) for each t.
void NetProgram::Recurrence() {
  if (nested_) return;
  constexpr int64_t kTurns = 3, kRows = 2;
  const int64_t in = OneIn(2) ? 12 : 3, out = in == 3 ? 4 : 9;
  const std::string x = Feed(DType::kF32, {kTurns, kRows, in}, 1), w = Param({in, out}, 0.3),
                    b = Param({out}, 0.5), h = NewVar({kRows, out}, DType::kF32, 1, false),
                    id = std::to_string(names_++), i = "i" + id, n = "n" + id, go = "go" + id;
  const std::string item = "item" + id, row = "row" + id, product = "p" + id, sum = "s" + id,
                    next = "next" + id;
  builder_.Fill(h, {kRows, out}, 0).Fill(i, {1}, 0, DType::kI64);
  builder_.Fill(n, {1}, kTurns, DType::kI64).Binary("less_than", i, n, go);
  const int body = builder_.Block(0);
  builder_.In(body).Var(item, DType::kF32, {1, kRows, in}).Var(row, DType::kF32, {kRows, in});
  for (const std::string& v : {product, sum, next}) builder_.Var(v, DType::kF32, {kRows, out});
  builder_.Op("gather", {{"X", {x}}, {"Index", {i}}}, {{"Out", {item}}});
  builder_.Op("squeeze2", {{"X", {item}}}, {{"Out", {row}}}, {{"axes", Ints{0}}});
  builder_.Binary("matmul_v2", row, w, product).Binary("elementwise_add", product, b, sum);
  builder_.Binary("elementwise_add", sum, h, next).Unary("tanh", next, h);
  builder_.Increment(i).Binary("less_than", i, n, go).In(0);
  builder_.Op("while", {{"X", {x, w, b, h, i, n}}, {"Condition", {go}}},
              {{"Out", {h, i, go}}, {"StepScopes", {}}}, {{"sub_block", BlockRef{body}}});
}

}  // namespace heddle::testing
