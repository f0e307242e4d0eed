// Fusion passes: the fused program computes what the plain one does, and what must not be fused is
// left alone.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

Tensor Random(const Shape& shape, uint32_t seed) { return RandomF32(shape, seed, 2); }

struct Outcome {
  std::vector<Tensor> out;
  int instructions = 0;
};

// A program, its feeds and its parameters.
struct Case {
  ProgramBuilder b;
  std::vector<heddle::Feed> feeds;
  std::vector<std::pair<std::string, Tensor>> parameters;

  void Feed(const std::string& name, const Shape& shape, Shape declared = {}) {
    b.Feed(name, DType::kF32, declared.rank() > 0 ? declared : shape);
    feeds.push_back({name, Random(shape, static_cast<uint32_t>(feeds.size()) + 1)});
  }
  void Param(const std::string& name, const Shape& shape) {
    b.Param(name, DType::kF32, shape);
    parameters.emplace_back(name, Random(shape, static_cast<uint32_t>(parameters.size()) + 100));
  }
  Outcome Run(int level) const {
    auto scope = std::make_shared<Scope>();
    for (const auto& [name, value] : parameters) scope->Set(name, Value(value.Clone()));
    Executor executor({.threads = 2});
    auto compiled = MustCompile(executor, b.Build(), scope, {.opt_level = level});
    Outcome o{MustRun(executor, compiled, feeds), 0};
    const auto stats = executor.Prepare(compiled, feeds);
    EXPECT_TRUE(stats.ok()) << stats.status().ToString();
    if (stats.ok()) o.instructions = stats->instructions;
    return o;
  }
};

// Level 2 has `instructions`, and the results of level 0.
void ExpectFused(const Case& c, int instructions) {
  const Outcome plain = c.Run(0), fused = c.Run(2);
  EXPECT_EQ(fused.instructions, instructions) << plain.instructions << " without fusion";
  ASSERT_EQ(plain.out.size(), fused.out.size());
  for (size_t i = 0; i < plain.out.size(); ++i) {
    ASSERT_EQ(plain.out[i].shape(), fused.out[i].shape());
    const auto a = Floats(plain.out[i]), b = Floats(fused.out[i]);
    for (size_t k = 0; k < a.size(); ++k) ASSERT_NEAR(a[k], b[k], 1e-4 * (1 + std::abs(a[k]))) << k;
  }
}

Case Product(const std::string& type, const Shape& x, const Shape& y, const Shape& out,
             const Attrs& attrs = {}, Shape declared = {}) {
  Case c;
  c.Feed("x", x, declared);
  c.Param("w", y);
  Shape to = out;
  if (declared.rank() > 0) to[0] = declared[0];
  c.b.Var("p", DType::kF32, to);
  c.b.Op(type, {{"X", {"x"}}, {"Y", {"w"}}}, {{"Out", {"p"}}}, attrs);
  return c;
}

void AddTo(Case& c, const std::string& from, const std::string& what, const std::string& to,
           const Shape& shape, int64_t axis = -1) {
  c.b.Var(to, DType::kF32, shape);
  c.b.Op("elementwise_add", {{"X", {from}}, {"Y", {what}}}, {{"Out", {to}}}, {{"axis", axis}});
}

void Then(Case& c, const std::string& type, const std::string& from, const std::string& to,
          const Shape& shape, const Attrs& attrs = {}) {
  c.b.Var(to, DType::kF32, shape);
  c.b.Op(type, {{"X", {from}}}, {{"Out", {to}}}, attrs);
}

TEST(FuseMatmul, BiasAndEveryActivation) {
  const std::vector<std::pair<std::string, Attrs>> activations = {
      {"relu", {}},
      {"sigmoid", {}},
      {"tanh", {}},
      {"silu", {}},
      {"relu6", {{"threshold", 6.0}}},
      {"leaky_relu", {{"alpha", 0.1}}},
      {"swish", {{"beta", 1.0}}},
      {"hard_sigmoid", {{"slope", 0.3}, {"offset", 0.4}}},
      {"hard_swish", {{"threshold", 6.0}, {"scale", 6.0}, {"offset", 3.0}}},
      {"gelu", {{"approximate", false}}},
      {"gelu", {{"approximate", true}}},
      {"mish", {{"threshold", 20.0}}},
  };
  for (const auto& [type, attrs] : activations) {
    SCOPED_TRACE(type);
    Case c = Product("matmul_v2", {3, 5}, {5, 7}, {3, 7});
    c.Param("b", {7});
    AddTo(c, "p", "b", "q", {3, 7});
    Then(c, type, "q", "r", {3, 7}, attrs);
    c.b.Fetch("r");
    ExpectFused(c, 1);
  }
}

TEST(FuseMatmul, EveryProduct) {
  struct Form {
    std::string type;
    Shape x, y, out;
    Attrs attrs;
  };
  const std::vector<Form> forms = {
      {"matmul_v2", {5, 3}, {7, 5}, {3, 7}, {{"trans_x", true}, {"trans_y", true}}},
      {"matmul_v2", {2, 3, 5}, {5, 7}, {2, 3, 7}, {}},
      {"matmul_v2", {2, 3, 5}, {2, 5, 7}, {2, 3, 7}, {}},
      {"matmul", {3, 5}, {7, 5}, {3, 7}, {{"transpose_Y", true}, {"alpha", 0.5}}},
      {"mul", {3, 5}, {5, 7}, {3, 7}, {}},
      {"mul", {2, 3, 5}, {5, 7}, {2, 3, 7}, {{"x_num_col_dims", int64_t{2}}}},
  };
  for (const Form& f : forms) {
    SCOPED_TRACE(f.type + " " + f.x.ToString() + " " + f.y.ToString());
    Case c = Product(f.type, f.x, f.y, f.out, f.attrs);
    c.Param("b", {7});
    Then(c, "scale", "p", "s", f.out, {{"scale", 0.25}});
    AddTo(c, "s", "b", "q", f.out, f.out.rank() - 1);
    c.Feed("other", f.out);
    AddTo(c, "other", "q", "t", f.out);
    Then(c, "relu", "t", "r", f.out);
    c.b.Fetch("r");
    ExpectFused(c, 1);
  }
}

TEST(FuseMatmul, AnOpenBatch) {
  for (int64_t batch : {1, 4}) {
    Case c = Product("mul", {batch, 5}, {5, 7}, {batch, 7}, {}, {-1, 5});
    c.Param("b", {7});
    AddTo(c, "p", "b", "q", {-1, 7}, 1);
    Then(c, "relu", "q", "r", {-1, 7});
    c.b.Fetch("r");
    ExpectFused(c, 1);
  }
}

// The program says of both batches only that they are open: one may be 1.
TEST(FuseMatmul, ResidualsOfAnotherBatch) {
  for (const auto& [batch, others] : {std::pair{4, 4}, {4, 1}, {1, 4}, {0, 1}, {1, 0}}) {
    SCOPED_TRACE(std::to_string(batch) + " and " + std::to_string(others));
    Case c = Product("mul", {batch, 5}, {5, 7}, {batch, 7}, {}, {-1, 5});
    c.Param("b", {7});
    c.Feed("other", {others, 7}, {-1, 7});
    AddTo(c, "p", "b", "q", {-1, 7}, 1);
    AddTo(c, "q", "other", "r", {-1, 7});
    Then(c, "tanh", "r", "s", {-1, 7});
    c.b.Fetch("s");
    ExpectFused(c, 1);
  }
}

TEST(FuseConv, ResidualsOfAnotherBatch) {
  for (const auto& [batch, others] : {std::pair{4, 4}, {4, 1}, {1, 4}}) {
    SCOPED_TRACE(std::to_string(batch) + " and " + std::to_string(others));
    Case c;
    c.Feed("x", {batch, 3, 6, 6}, {-1, 3, 6, 6});
    c.Feed("other", {others, 4, 4, 4}, {-1, 4, 4, 4});
    c.Param("w", {4, 3, 3, 3});
    c.Param("b", {4});
    c.b.Var("p", DType::kF32, {-1, 4, 4, 4});
    c.b.Op("conv2d", {{"Input", {"x"}}, {"Filter", {"w"}}}, {{"Output", {"p"}}});
    AddTo(c, "p", "b", "q", {-1, 4, 4, 4}, 1);
    AddTo(c, "q", "other", "r", {-1, 4, 4, 4});
    Then(c, "sigmoid", "r", "s", {-1, 4, 4, 4});
    Then(c, "scale", "s", "t", {-1, 4, 4, 4}, {{"scale", 2.0}, {"bias", 0.5}});
    c.b.Fetch("t");
    ExpectFused(c, 1);
  }
}

// p = x y            other = softmax(z)
// q = p + b                |
// r = q + other  <---------+  The fused product must move behind `other`.
// s = relu(r)
TEST(FuseMatmul, AResidualComputedAfterTheProductIsFused) {
  Case c = Product("matmul_v2", {3, 5}, {5, 7}, {3, 7});
  c.Param("b", {7});
  c.Feed("z", {3, 7});
  Then(c, "softmax", "z", "other", {3, 7});
  AddTo(c, "p", "b", "q", {3, 7});
  AddTo(c, "q", "other", "r", {3, 7});
  Then(c, "relu", "r", "s", {3, 7});
  c.b.Fetch("s");
  ExpectFused(c, 2);
}

TEST(FuseMatmul, WhatIsFetchedOrReadElsewhereStays) {
  Case fetched = Product("matmul_v2", {3, 5}, {5, 7}, {3, 7});
  Then(fetched, "relu", "p", "r", {3, 7});
  fetched.b.Fetch("p").Fetch("r");
  ExpectFused(fetched, 2);

  Case read = Product("matmul_v2", {3, 5}, {5, 7}, {3, 7});
  Then(read, "relu", "p", "r", {3, 7});
  Then(read, "tanh", "p", "t", {3, 7});
  read.b.Fetch("r").Fetch("t");
  ExpectFused(read, 3);
}

TEST(FuseMatmul, OtherSumsStay) {
  // Along the first axis.
  Case rows = Product("matmul_v2", {7, 5}, {5, 7}, {7, 7});
  rows.Param("b", {7});
  AddTo(rows, "p", "b", "q", {7, 7}, 0);
  rows.b.Fetch("q");
  ExpectFused(rows, 2);

  // One that makes the result larger.
  Case wider = Product("matmul_v2", {3, 5}, {5, 7}, {3, 7});
  wider.Feed("other", {2, 3, 7});
  AddTo(wider, "p", "other", "q", {2, 3, 7});
  wider.b.Fetch("q");
  ExpectFused(wider, 2);

  // The product with itself.
  Case twice = Product("matmul_v2", {3, 5}, {5, 7}, {3, 7});
  AddTo(twice, "p", "p", "q", {3, 7});
  twice.b.Fetch("q");
  ExpectFused(twice, 2);

  // A bias that is written again before the sum.
  Case again = Product("matmul_v2", {3, 5}, {5, 7}, {3, 7});
  again.b.Fill("b", {7}, 1).Fill("b", {7}, 2);
  AddTo(again, "p", "b", "q", {3, 7});
  again.b.Fetch("q");
  const Outcome plain = again.Run(0), fused = again.Run(2);
  EXPECT_EQ(Floats(plain.out[0]), Floats(fused.out[0]));
}

// What is read before it is written must not be read afterwards.
TEST(FuseMatmul, OperandsThatAreUpdatedAfterwards) {
  for (const char* updated : {"x", "w", "b", "other"}) {
    SCOPED_TRACE(updated);
    Case c;
    for (const char* name : {"x", "w", "b", "other"}) {
      const bool vector = *name == 'b';
      c.Param(name, vector ? Shape{5} : Shape{5, 5});
    }
    c.b.Var("p", DType::kF32, {5, 5});
    c.b.Op("matmul_v2", {{"X", {"x"}}, {"Y", {"w"}}}, {{"Out", {"p"}}});
    AddTo(c, "p", "b", "q", {5, 5});
    AddTo(c, "q", "other", "r", {5, 5});
    c.b.Op("scale", {{"X", {updated}}}, {{"Out", {updated}}}, {{"scale", 3.0}});
    Then(c, "relu", "r", "s", {5, 5});
    c.b.Fetch("s");
    const Outcome plain = c.Run(0), fused = c.Run(2);
    const auto a = Floats(plain.out[0]), b = Floats(fused.out[0]);
    ASSERT_EQ(a.size(), b.size());
    for (size_t k = 0; k < a.size(); ++k) ASSERT_NEAR(a[k], b[k], 1e-4 * (1 + std::abs(a[k])));
  }
}

TEST(FuseConv, OperandsThatAreUpdatedAfterwards) {
  for (const char* updated : {"x", "w", "other"}) {
    SCOPED_TRACE(updated);
    Case c;
    c.Param("x", {1, 4, 6, 6});
    c.Param("w", {4, 4, 3, 3});
    c.Param("other", {1, 4, 4, 4});
    c.b.Var("p", DType::kF32, {1, 4, 4, 4});
    c.b.Op("conv2d", {{"Input", {"x"}}, {"Filter", {"w"}}}, {{"Output", {"p"}}});
    AddTo(c, "p", "other", "q", {1, 4, 4, 4});
    c.b.Op("scale", {{"X", {updated}}}, {{"Out", {updated}}}, {{"scale", 3.0}});
    Then(c, "relu", "q", "r", {1, 4, 4, 4});
    c.b.Fetch("r");
    const Outcome plain = c.Run(0), fused = c.Run(2);
    const auto a = Floats(plain.out[0]), b = Floats(fused.out[0]);
    ASSERT_EQ(a.size(), b.size());
    for (size_t k = 0; k < a.size(); ++k) ASSERT_NEAR(a[k], b[k], 1e-4 * (1 + std::abs(a[k])));
  }
}

TEST(FuseConv, ABiasThroughAReshape) {
  for (const std::string how : {"reshape2", "reshape", "fed bias", "shape of a variable"}) {
    SCOPED_TRACE(how);
    const bool folded = how.starts_with("reshape");
    Case c;
    c.Feed("x", {1, 3, 6, 6});
    c.Param("w", {4, 3, 3, 3});
    if (how == "fed bias")
      c.Feed("b", {4});  // no parameter: its values are not known when the program is fused
    else
      c.Param("b", {4});
    c.b.Var("p", DType::kF32, {1, 4, 4, 4}).Var("column", DType::kF32, {1, 4, 1, 1});
    c.b.Op("conv2d", {{"Input", {"x"}}, {"Filter", {"w"}}}, {{"Output", {"p"}}});
    Slots from = {{"X", {"b"}}};
    if (how == "shape of a variable") {
      c.b.Feed("shape", DType::kI32, {4});
      Tensor shape = Tensor::Empty(DType::kI32, {4});
      for (int k = 0; k < 4; ++k) shape.mutable_data<int32_t>()[k] = k == 1 ? 4 : 1;
      c.feeds.push_back({"shape", shape});
      from.push_back({"Shape", {"shape"}});
    }
    c.b.Op(how == "reshape" ? how : "reshape2", from, {{"Out", {"column"}}},
           {{"shape", Ints{1, -1, 1, 1}}});
    AddTo(c, "p", "column", "q", {1, 4, 4, 4});
    Then(c, "relu", "q", "r", {1, 4, 4, 4});
    c.b.Fetch("r");
    const Outcome plain = c.Run(0), fused = c.Run(2);
    if (folded) {
      EXPECT_LT(fused.instructions, plain.instructions);
    }
    const auto a = Floats(plain.out[0]), b = Floats(fused.out[0]);
    ASSERT_EQ(a.size(), b.size());
    for (size_t k = 0; k < a.size(); ++k) ASSERT_NEAR(a[k], b[k], 1e-4 * (1 + std::abs(a[k])));
  }
}

}  // namespace
}  // namespace heddle::testing
