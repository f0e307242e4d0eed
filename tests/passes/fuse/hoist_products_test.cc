// hoist_products: the items that a loop multiplies turn by turn are multiplied before it, where it
// reads all of them; results are those of a plain evaluation of the turns.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "passes/ir_text.h"
#include "passes/pass_manager.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

// h = tanh(x[t] w + b + h u), with what differs.
struct Recurrence {
  int64_t turns = 6, length = 6, rows = 2, in = 10, out = 9;
  int64_t axis = 0;
  bool keeps_axis = false;  // the item is taken with an index of one element
  bool squeezes = false;    // and its axis is dropped then
  bool turned = false;      // the matrix
  bool bias = true;
  bool matrix_changes = false;
  bool item_is_read = false;  // by something else, too
  bool shape_bound = false;   // the number of turns is a shape's
  bool fed_bound = false;
  bool ends_early = false;  // by something computed
  bool backwards = false;   // the index is another one than the counter
  int products = 1;

  Shape sequence() const {
    Shape s{rows};
    if (axis == 0) s = {length, rows};
    if (axis == 1) s = {rows, length};
    s.push_back(in);
    return s;
  }
  Program Build() const {
    ProgramBuilder b;
    const Shape item{rows, in}, state{rows, out};
    Shape whole = sequence();
    whole[static_cast<int>(axis)] = 1;
    b.Feed("x", DType::kF32, sequence()).Feed("many", DType::kI64, {1});
    b.Var("h", DType::kF32, state).Fill("h", {rows, out}, 0);
    for (int k = 0; k < products; ++k)
      b.Param("w" + std::to_string(k), DType::kF32, turned ? Shape{out, in} : Shape{in, out});
    b.Param("b", DType::kF32, {out}).Param("u", DType::kF32, {out, out});
    b.Var("i", DType::kI64, {1}).Fill("i", {1}, 0, DType::kI64);
    std::string n = "n";
    if (shape_bound) {
      b.Var("dims", DType::kI32, {3}).Op("shape", {{"Input", {"x"}}}, {{"Out", {"dims"}}});
      b.Var("dim", DType::kI32, {1})
          .Op("slice", {{"Input", {"dims"}}}, {{"Out", {"dim"}}},
              {{"axes", Ints{0}}, {"starts", Ints{axis}}, {"ends", Ints{axis + 1}}});
      b.Var("n", DType::kI64, {1})
          .Op("cast", {{"X", {"dim"}}}, {{"Out", {"n"}}},
              {{"in_dtype", int64_t{2}}, {"out_dtype", int64_t{3}}});
    } else if (fed_bound) {
      n = "many";
    } else {
      b.Var("n", DType::kI64, {1}).Fill("n", {1}, double(turns), DType::kI64);
    }
    b.Var("go", DType::kBool, {1}).Binary("less_than", "i", n, "go");
    if (backwards)
      b.Var("last", DType::kI64, {1}).Fill("last", {1}, double(length - 1), DType::kI64);
    const int body = b.Block(0);
    b.In(body);
    std::string at = "i", x = "item";
    if (backwards) {
      at = "at";
      b.Var("at", DType::kI64, {1}).Binary("elementwise_sub", "last", "i", "at");
    }
    b.Var("item", DType::kF32, keeps_axis ? whole : item);
    if (keeps_axis) {
      b.Op("gather", {{"X", {"x"}}, {"Index", {at}}}, {{"Out", {"item"}}}, {{"axis", axis}});
      if (squeezes) {
        x = "row";
        b.Var("row", DType::kF32, item)
            .Op("squeeze2", {{"X", {"item"}}}, {{"Out", {"row"}}}, {{"axes", Ints{axis}}});
      }
    } else {
      b.Var("scalar", DType::kI64, Shape{}).Reshape(at, "scalar", Ints{});
      b.Op("gather", {{"X", {"x"}}, {"Index", {"scalar"}}}, {{"Out", {"item"}}}, {{"axis", axis}});
    }
    std::string sum = "hu";
    b.Var("hu", DType::kF32, state).Binary("matmul_v2", "h", "u", "hu");
    for (int k = 0; k < products; ++k) {
      const std::string id = std::to_string(k), next = "sum" + id;
      std::string p = "p" + id;
      b.Var(p, DType::kF32, Shape::Unknown());
      b.Op("matmul_v2", {{"X", {x}}, {"Y", {"w" + id}}}, {{"Out", {p}}}, {{"trans_y", turned}});
      if (bias && k == 0) {
        b.Var("pb", DType::kF32, Shape::Unknown()).Binary("elementwise_add", p, "b", "pb");
        p = "pb";
      }
      if (keeps_axis && !squeezes) {
        b.Var("r" + id, DType::kF32, state).Reshape(p, "r" + id, {rows, out});
        p = "r" + id;
      }
      b.Var(next, DType::kF32, state).Binary("elementwise_add", sum, p, next);
      sum = next;
    }
    if (item_is_read) {
      b.Var("mean", DType::kF32, {1})
          .Op("reduce_mean", {{"X", {"item"}}}, {{"Out", {"mean"}}},
              {{"dim", Ints{}}, {"reduce_all", true}, {"keep_dim", false}});
      b.Var("more", DType::kF32, state).Binary("elementwise_add", sum, "mean", "more");
      sum = "more";
    }
    b.Unary("tanh", sum, "h");
    if (matrix_changes) b.Scale("w0", "w0", 0.5);
    b.Increment("i").Binary("less_than", "i", n, "go");
    if (ends_early) {
      b.Var("size", DType::kF32, {1})
          .Op("reduce_sum", {{"X", {"h"}}}, {{"Out", {"size"}}},
              {{"dim", Ints{}}, {"reduce_all", true}});
      b.Var("most", DType::kF32, {1}).Fill("most", {1}, 1e6);
      b.Var("small", DType::kBool, {1}).Binary("less_than", "size", "most", "small");
      b.Binary("logical_and", "go", "small", "go");
    }
    b.In(0);
    b.Op("while", {{"X", {"x", "h", "i", n}}, {"Condition", {"go"}}},
         {{"Out", {"h", "i", "go"}}, {"StepScopes", {}}}, {{"sub_block", BlockRef{body}}});
    return b.Fetch("h").Build();
  }
  std::shared_ptr<Scope> NewScope() const {
    auto scope = std::make_shared<Scope>();
    const auto put = [&](const std::string& name, const Shape& shape, uint32_t seed) {
      scope->Set(name, RandomF32(shape, seed, 0.4f));
    };
    for (int k = 0; k < products; ++k)
      put("w" + std::to_string(k), turned ? Shape{out, in} : Shape{in, out}, 3 + uint32_t(k));
    put("b", {out}, 1);
    put("u", {out, out}, 2);
    return scope;
  }
};

// Products in the loop's body that multiply by w…, after the passes.
int ProductsInside(const Recurrence& r) {
  OptimizeOptions options{2, {}, {}};
  options.passes.only = {"captures", "fold_constants", "hoist_products", "dead_ops"};
  options.passes.check_unchanged = options.passes.verify = true;
  const auto result = passes::Optimize(r.Build().impl(), r.NewScope(), options);
  EXPECT_TRUE(result.ok()) << result.status().ToString();
  int count = 0;
  for (const ir::Block& block : result->program->blocks)
    for (const ir::Op& op : block.ops)
      count += block.id > 0 && op.type() == "matmul_v2" &&
               result->program->vars[op.In("Y")[0]].name[0] == 'w';
  return count;
}

std::vector<float> Result(const Recurrence& r, int level, int threads, int64_t many) {
  Executor executor({.threads = threads});
  const auto compiled = MustCompile(executor, r.Build(), r.NewScope(), {.opt_level = level});
  return Floats(MustRun(executor, compiled,
                        {{"x", RandomF32(r.sequence(), 11)}, {"many", I64({1}, {many})}})[0]);
}

// The recurrence, turn by turn, in double precision.
std::vector<double> Plain(const Recurrence& r, int64_t many) {
  const auto scope = r.NewScope();
  const auto numbers = [&](const std::string& name) {
    const std::vector<float> v = Floats(scope->Find(name)->tensor());
    return std::vector<double>(v.begin(), v.end());
  };
  std::vector<std::vector<double>> w;
  for (int k = 0; k < r.products; ++k) w.push_back(numbers("w" + std::to_string(k)));
  const std::vector<double> b = numbers("b"), u = numbers("u");
  const std::vector<float> x = Floats(RandomF32(r.sequence(), 11));
  std::vector<double> h(static_cast<size_t>(r.rows * r.out));
  const int64_t turns = r.shape_bound ? r.length : r.fed_bound ? many : r.turns;
  for (int64_t t = 0; t < turns; ++t) {
    const int64_t at = r.backwards ? r.length - 1 - t : t;
    const auto item = [&](int64_t row, int64_t i) {
      return double{x[static_cast<size_t>(
          (r.axis == 0 ? at * r.rows + row : row * r.length + at) * r.in + i)]};
    };
    double mean = 0;
    for (int64_t row = 0; row < r.rows; ++row)
      for (int64_t i = 0; i < r.in; ++i) mean += item(row, i) / static_cast<double>(r.rows * r.in);
    std::vector<double> next(h.size());
    for (int64_t row = 0; row < r.rows; ++row)
      for (int64_t j = 0; j < r.out; ++j) {
        double sum = r.bias ? b[static_cast<size_t>(j)] : 0;
        for (int64_t i = 0; i < r.out; ++i)
          sum += h[static_cast<size_t>(row * r.out + i)] * u[static_cast<size_t>(i * r.out + j)];
        for (const std::vector<double>& matrix : w)
          for (int64_t i = 0; i < r.in; ++i)
            sum +=
                item(row, i) * matrix[static_cast<size_t>(r.turned ? j * r.in + i : i * r.out + j)];
        next[static_cast<size_t>(row * r.out + j)] = std::tanh(r.item_is_read ? sum + mean : sum);
      }
    h = next;
    if (r.matrix_changes)
      for (double& e : w[0]) e *= 0.5;
  }
  return h;
}

TEST(HoistProducts, RandomLoops) {
  std::mt19937 rng(7);
  const auto pick = [&](int n) { return static_cast<int>(rng() % static_cast<unsigned>(n)); };
  int hoisted = 0;
  for (int k = 0; k < 150; ++k) {
    Recurrence r;
    r.length = 1 + pick(9);
    r.turns = pick(4) == 0 ? pick(static_cast<int>(r.length) + 1) : r.length;
    r.rows = 1 + pick(3), r.in = 9 + pick(30), r.out = 8 + pick(20);
    r.axis = pick(2);
    r.keeps_axis = pick(2) == 0, r.squeezes = pick(2) == 0, r.turned = pick(2) == 0;
    r.bias = pick(3) > 0, r.item_is_read = pick(4) == 0, r.matrix_changes = pick(8) == 0;
    r.products = 1 + pick(3);
    r.shape_bound = pick(4) == 0;
    r.fed_bound = !r.shape_bound && pick(6) == 0;
    r.ends_early = pick(8) == 0, r.backwards = pick(8) == 0;
    SCOPED_TRACE(k);
    const int64_t turns = r.shape_bound ? r.length : r.turns;
    const bool reads_all = 2 * turns >= r.length && turns > 0;
    const bool stays = r.fed_bound || r.ends_early || r.backwards || !reads_all;
    const int left = ProductsInside(r);
    if (stays) {
      EXPECT_EQ(left, r.products);
    } else {
      EXPECT_EQ(left, r.matrix_changes ? 1 : 0);
      ++hoisted;
    }
    const auto expected = Plain(r, r.turns);
    for (const auto& [level, threads] : {std::pair(0, 1), {2, 1}, {2, 2}}) {
      const auto got = Result(r, level, threads, r.turns);
      ASSERT_EQ(got.size(), expected.size());
      for (size_t j = 0; j < got.size(); ++j)
        EXPECT_NEAR(got[j], expected[j], 1e-5) << j << " level " << level;
    }
  }
  EXPECT_GT(hoisted, 50);
}

// Turns behind the end of the sequence fail as they did, and one of NaN stays one.
TEST(HoistProducts, MoreTurnsThanItemsFail) {
  Recurrence r;
  r.length = 5, r.turns = 6;
  EXPECT_EQ(ProductsInside(r), 0);
  std::vector<std::string> said;
  for (int level : {0, 2}) {
    Executor executor({.threads = 1});
    const auto compiled = MustCompile(executor, r.Build(), r.NewScope(), {.opt_level = level});
    const auto failed =
        executor.Run(compiled, {{"x", RandomF32(r.sequence(), 11)}, {"many", I64({1}, {1})}});
    ASSERT_FALSE(failed.ok());
    said.push_back(failed.status().ToString());
  }
  EXPECT_EQ(said[0], said[1]);
}

// A NaN in the item of turn 0 must not reach the products of other turns.
TEST(HoistProducts, ANaNStaysInItsTurn) {
  Recurrence r;
  Executor executor({.threads = 1});
  const auto compiled = MustCompile(executor, r.Build(), r.NewScope());
  Tensor x = RandomF32(r.sequence(), 11);
  x.mutable_data<float>()[0] = std::nanf("");  // row 0 of the first turn
  const auto out = Floats(MustRun(executor, compiled, {{"x", x}, {"many", I64({1}, {1})}})[0]);
  for (int64_t k = 0; k < r.rows * r.out; ++k)
    EXPECT_EQ(std::isnan(out[static_cast<size_t>(k)]), k < r.out) << k;
}

}  // namespace
}  // namespace heddle::testing
