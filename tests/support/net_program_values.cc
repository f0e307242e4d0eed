// Operators whose results' shapes follow from values, from sequence offsets or from an array's
// items, and behind them operators that passes join or leave out.
#include "tests/support/net_program.h"

namespace heddle::testing {

void NetProgram::FollowValues() {
  for (int n = 1 + Pick(3); n > 0; --n) {
    switch (Pick(6)) {
      case 0:
        Selected();
        break;
      case 1:
        Places();
        break;
      case 2:
        Sequences();
        break;
      case 3:
        ReadItem();
        break;
      case 4:
        ReshapedAsFed({4, 6}, {2, 3, 4});
        break;
      default:
        ReshapedAsFed({2, 3, 6, 6}, {2, 3, 4, 9});
    }
  }
}

// The elements that a mask names: as many as there are.
void NetProgram::Selected() {
  const std::string x = Feed(DType::kF32, {4, 6}, 1), zero = Param({1}, 0.1),
                    mask = NewVar({4, 6}, DType::kBool, 1, false),
                    some = NewVar({-1}, DType::kF32, 1, false);
  Op("greater_than", {{"X", {x}}, {"Y", {zero}}}, {{"Out", {mask}}});
  Op("masked_select", {{"X", {x}}, {"Mask", {mask}}}, {{"Y", {some}}});
  Follow(some, {-1}, 1);
}

// Where elements are not 0: as many rows as there are, with an index for each dimension.
void NetProgram::Places() {
  const std::string x = Feed(DType::kI64, {4, 6}, 3), at = NewVar({-1, 2}, DType::kI64, 6, false),
                    floats = NewVar({-1, 2}, DType::kF32, 6, false);
  Op("where_index", {{"Condition", {x}}}, {{"Out", {at}}});
  Op("cast", {{"X", {at}}}, {{"Out", {floats}}},
     {{"in_dtype", int64_t{3}}, {"out_dtype", int64_t{5}}});
  Follow(floats, {-1, 2}, 6);
}

// Rows in sequences, and one row for each of them.
void NetProgram::Sequences() {
  const std::string x = Feed(DType::kF32, {6, 4}, 1), y = NewVar({-1, 4}, DType::kF32, 1, false);
  Tensor t = feeds_.back().value.tensor();
  t.set_lod(OneIn(2) ? LoD{{0, 2, 6}} : LoD{{0, 1, 3, 6}});
  feeds_.back().value = Value(std::move(t));
  switch (Pick(3)) {
    case 0:
      Op("sequence_pool", {{"X", {x}}}, {{"Out", {y}}}, {{"pooltype", std::string("AVERAGE")}});
      break;
    case 1:
      Op("sequence_reverse", {{"X", {x}}}, {{"Y", {y}}});
      break;
    default: {
      const std::string few = NewVar({-1, 4}, DType::kF32, 1, false);
      Op("sequence_pool", {{"X", {x}}}, {{"Out", {few}}}, {{"pooltype", std::string("LAST")}});
      Op("sequence_expand", {{"X", {few}}, {"Y", {x}}}, {{"Out", {y}}},
         {{"ref_level", int64_t{0}}});
    }
  }
  Follow(y, {-1, 4}, 1);
}

// One of an array's items, which differ: which one is fed.
void NetProgram::ReadItem() {
  const std::string id = std::to_string(names_++), array = "items" + id, at = "which" + id,
                    item = NewVar({-1, -1}, DType::kF32, 1, false);
  const bool other_rank = OneIn(2);
  builder_.Array(array).Feed(at, DType::kI64, {1});
  feeds_.push_back({at, I64({1}, {Pick(2)})});
  for (int k = 0; k < 2; ++k) {
    const std::string i = "item" + id + "_" + std::to_string(k),
                      x = Feed(DType::kF32,
                               k == 0       ? Shape{4, 6}
                               : other_rank ? Shape{2, 3, 6}
                                            : Shape{3, 6},
                               1);
    builder_.Fill(i, {1}, k, DType::kI64);
    builder_.Op("write_to_array", {{"X", {x}}, {"I", {i}}}, {{"Out", {array}}});
  }
  builder_.Op("read_from_array", {{"X", {array}}, {"I", {at}}}, {{"Out", {item}}});
  Follow(item, {-1, 6}, 1);
}

// A tensor in a shape that is fed.
void NetProgram::ReshapedAsFed(const Shape& from, const Shape& to) {
  const std::string id = std::to_string(names_++), shape = "shape" + id,
                    x = Feed(DType::kF32, from, 1), y = NewVar(to, DType::kF32, 1, false);
  builder_.Feed(shape, DType::kI32, {to.rank()});
  Tensor dims = Tensor::Empty(DType::kI32, {to.rank()});
  for (int d = 0; d < to.rank(); ++d) dims.mutable_data<int32_t>()[d] = static_cast<int32_t>(to[d]);
  feeds_.push_back({shape, std::move(dims)});
  Op("reshape2", {{"X", {x}}, {"Shape", {shape}}}, {{"Out", {y}}});
  if (to.rank() == 4 && OneIn(2)) {
    const std::string turned = NewVar(to, DType::kF32, 9, false), w = Param({3, 3, 3, 3}, 0.2),
                      b = Param({3}, 1), sum = NewVar(to, DType::kF32, 9, false);
    Op("conv2d", {{"Input", {y}}, {"Filter", {w}}}, {{"Output", {turned}}},
       {{"paddings", Ints{1, 1}}});
    Op("elementwise_add", {{"X", {turned}}, {"Y", {b}}}, {{"Out", {sum}}}, {{"axis", int64_t{1}}});
    return Follow(sum, to, 9);
  }
  Follow(y, to, 1);
}

// `shape` is what an honest file declares. The last result is fetched.
void NetProgram::Follow(std::string x, Shape shape, double bound) {
  for (int n = 2 + Pick(4); n > 0; --n) {
    const bool wide = shape.rank() > 0 && shape[shape.rank() - 1] > 0;
    const int64_t last = wide ? shape[shape.rank() - 1] : 1;
    Shape to = shape;
    const auto out = [&] { return NewVar(to, DType::kF32, bound, false); };
    const int kind = Pick(13);
    const std::string from = x;
    if (kind == 0) {
      Op("tanh", {{"X", {from}}}, {{"Out", {x = out()}}});
    } else if (kind == 1) {
      Op("scale", {{"X", {from}}}, {{"Out", {x = out()}}}, {{"scale", OneIn(2) ? 1.0 : 0.5}});
    } else if (kind == 2) {
      const std::string p = Param({last}, 0.5);
      Op("elementwise_add", {{"X", {from}}, {"Y", {p}}}, {{"Out", {x = out()}}},
         {{"axis", int64_t{-1}}});
    } else if (kind == 3) {
      Op("cast", {{"X", {from}}}, {{"Out", {x = out()}}},
         {{"in_dtype", int64_t{5}}, {"out_dtype", int64_t{5}}});
    } else if (kind == 4 && shape.rank() >= 2 && wide) {
      to[to.rank() - 1] = 5;
      const std::string w = Param({last, 5}, 0.3);
      Op("matmul_v2", {{"X", {from}}, {"Y", {w}}}, {{"Out", {x = out()}}});
    } else if (kind == 5 && shape.rank() >= 1) {
      to[to.rank() - 1] = 1;
      Op(OneIn(2) ? "reduce_mean" : "reduce_max", {{"X", {from}}}, {{"Out", {x = out()}}},
         {{"dim", Ints{-1}}, {"keep_dim", true}});
    } else if (kind == 6) {
      Op("softmax", {{"X", {from}}}, {{"Out", {x = out()}}}, {{"axis", int64_t{-1}}});
    } else if (kind == 7 && shape.rank() >= 2) {
      const int rank = shape.rank();
      Ints perm;
      for (int d = 0; d < rank; ++d) perm.push_back(rank - 1 - d);
      for (int d = 0; d < rank; ++d) to[d] = shape[rank - 1 - d];
      Op("transpose2", {{"X", {from}}}, {{"Out", {x = out()}}}, {{"axis", perm}});
      if (OneIn(2)) {
        const std::string back = x;
        to = shape;
        Op("transpose2", {{"X", {back}}}, {{"Out", {x = out()}}}, {{"axis", perm}});
      }
    } else if (kind == 8 && wide) {
      const std::string scale = Param({last}, 1), bias = Param({last}, 1);
      Op("layer_norm", {{"X", {from}}, {"Scale", {scale}}, {"Bias", {bias}}}, {{"Y", {x = out()}}},
         {{"begin_norm_axis", int64_t{shape.rank() - 1}}, {"epsilon", 0.1}});
    } else if (kind == 9) {
      const std::string wide_x = NewVar(to, DType::kF64, bound, false);
      Op("cast", {{"X", {from}}}, {{"Out", {wide_x}}},
         {{"in_dtype", int64_t{5}}, {"out_dtype", int64_t{6}}});
      if (OneIn(2)) builder_.Fetch(wide_x);
      Op("cast", {{"X", {wide_x}}}, {{"Out", {x = out()}}},
         {{"in_dtype", int64_t{6}}, {"out_dtype", int64_t{5}}});
    } else if (kind == 10 && shape.rank() >= 2) {
      to.erase(0);
      Op("reduce_sum", {{"X", {from}}}, {{"Out", {x = out()}}}, {{"dim", Ints{0}}});
    } else if (kind == 11) {
      const std::string square = out();
      Op("square", {{"X", {from}}}, {{"Out", {square}}});
      to = {};
      Op("reduce_mean", {{"X", {square}}}, {{"Out", {x = out()}}}, {{"reduce_all", true}});
    } else if (kind == 12 && shape.rank() >= 1) {
      to.insert(1, 1);
      const std::string apart = out();
      Op("unsqueeze2", {{"X", {from}}}, {{"Out", {apart}}}, {{"axes", Ints{1}}});
      to = shape;
      Op("squeeze2", {{"X", {apart}}}, {{"Out", {x = out()}}}, {{"axes", Ints{1}}});
    }
    shape = to;
    bound += 1;
    if (OneIn(5)) builder_.Fetch(x);
  }
  if (vars_.back().name == x || OneIn(2)) builder_.Fetch(x);
}

}  // namespace heddle::testing
