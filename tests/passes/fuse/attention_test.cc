// fuse_attention: attention in the forms that frameworks write it becomes one operator with the
// same results, and what looks like it but is not stays.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

struct Sizes {
  int64_t batch = 2, heads = 3, queries = 7, keys = 9, depth = 5, value_depth = 6;
};

// Attention as models write it; the members say what differs from the plainest form.
struct Writer {
  Sizes n = {};
  bool split_heads = true;  // operands [batch, rows, heads, depth], parted and joined by transposes
  bool keep_shapes = false;  // transposes write XShape, too
  bool flip_keys = false;    // K^T by a transpose, not by the product
  bool scale_queries = false, scale_scores = false;
  Shape mask = {};          // none
  bool selects = false;     // the mask is a condition, under which scores are kept
  bool with_ones = false;   // joined to one that holds for all scores
  double otherwise = -1e9;  // of the scores that are not
  bool scale_by_parameter = false;
  std::shared_ptr<Scope> scope = std::make_shared<Scope>();
  std::string product = "matmul_v2";
  int64_t axis = -1;
  ProgramBuilder b = {};
  std::vector<Feed> feeds = {};

  void AddFeed(const std::string& name, const Shape& shape) {
    std::mt19937 random(static_cast<uint32_t>(feeds.size()) + 1);
    std::uniform_real_distribution<float> value(-2, 2);
    std::vector<float> v(static_cast<size_t>(shape.numel()));
    for (float& x : v) x = value(random);
    b.Feed(name, DType::kF32, shape);
    feeds.push_back({name, F32(shape, v)});
  }
  void Op(const std::string& type, const Slots& inputs, const std::string& out, const Shape& shape,
          const Attrs& attrs = {}) {
    b.Var(out, DType::kF32, shape);
    b.Op(type, inputs, {{"Out", {out}}}, attrs);
  }
  void Number(const std::string& name, float x) {
    b.Param(name, DType::kF32, {});
    scope->Set(name, Value(F32({}, {x})));
  }
  std::string Selected(const std::string& scores, const Shape& shape) {
    AddFeed("mask", mask);
    Number("zero", 0.5f);
    Number("otherwise", static_cast<float>(otherwise));
    b.Var("condition", DType::kBool, mask);
    b.Op("greater_than", {{"X", {"mask"}}, {"Y", {"zero"}}}, {{"Out", {"condition"}}},
         {{"axis", int64_t{-1}}});
    std::string condition = "condition";
    if (with_ones) {
      b.Param("true", DType::kBool, {});
      scope->Set("true", Value(Tensor::Of(DType::kBool, {}, std::vector<uint8_t>{1})));
      b.Var("dims", DType::kI32, {4}).Op("shape", {{"Input", {scores}}}, {{"Out", {"dims"}}});
      b.Var("ones", DType::kBool, shape);
      b.Op("fill_constant", {{"ShapeTensor", {"dims"}}, {"ValueTensor", {"true"}}},
           {{"Out", {"ones"}}}, {{"dtype", int64_t{0}}});
      b.Var("both", DType::kBool, shape);
      b.Op("logical_and", {{"X", {"ones"}}, {"Y", {"condition"}}}, {{"Out", {"both"}}});
      condition = "both";
    }
    b.Var("selected", DType::kF32, shape);
    b.Op("where", {{"Condition", {condition}}, {"X", {scores}}, {"Y", {"otherwise"}}},
         {{"Out", {"selected"}}});
    return "selected";
  }
  void Transpose(const std::string& x, const std::string& out, const Shape& shape, Ints axes) {
    if (!keep_shapes)
      return Op("transpose2", {{"X", {x}}}, out, shape, {{"axis", std::move(axes)}});
    b.Var(out, DType::kF32, shape).Var(out + "_shape", DType::kF32, {0, 1, 1, 1, 1});
    b.Op("transpose2", {{"X", {x}}}, {{"Out", {out}}, {"XShape", {out + "_shape"}}},
         {{"axis", std::move(axes)}});
  }
  void Operand(const std::string& name, int64_t rows, int64_t depth) {
    if (!split_heads) return AddFeed(name, {n.batch, n.heads, rows, depth});
    AddFeed(name + "_in", {n.batch, rows, n.heads, depth});
    Transpose(name + "_in", name, {n.batch, n.heads, rows, depth}, {0, 2, 1, 3});
  }
  void Operands() {
    Operand("q", n.queries, n.depth);
    Operand("k", n.keys, n.depth);
    Operand("v", n.keys, n.value_depth);
  }
  void Scores() {
    const Shape scores = {n.batch, n.heads, n.queries, n.keys};
    std::string q = "q", k = "k", s = "scores";
    if (scale_queries) {
      Op("scale", {{"X", {q}}}, "q_scaled", {n.batch, n.heads, n.queries, n.depth},
         {{"scale", 0.3}});
      q = "q_scaled";
    }
    if (flip_keys) {
      Transpose(k, "k_flipped", {n.batch, n.heads, n.depth, n.keys}, {0, 1, 3, 2});
      k = "k_flipped";
    }
    Attrs attrs = {{product == "matmul" ? "transpose_Y" : "trans_y", !flip_keys}};
    if (product == "matmul") attrs.emplace_back("alpha", 0.7);
    Op(product, {{"X", {q}}, {"Y", {k}}}, s, scores, attrs);
    if (scale_scores) {
      Op("scale", {{"X", {s}}}, "scores_scaled", scores, {{"scale", 0.4}});
      s = "scores_scaled";
    }
    if (scale_by_parameter) {
      Number("factor", 0.6f);
      Op("elementwise_mul", {{"X", {s}}, {"Y", {"factor"}}}, "scores_times", scores,
         {{"axis", int64_t{-1}}});
      s = "scores_times";
    }
    if (selects) {
      s = Selected(s, scores);
    } else if (mask.rank() > 0) {
      AddFeed("mask", mask);
      Op("elementwise_add", {{"X", {s}}, {"Y", {"mask"}}}, "scores_masked", scores,
         {{"axis", int64_t{-1}}});
      s = "scores_masked";
    }
    Op("softmax", {{"X", {s}}}, "weights", scores, {{"axis", axis}});
  }
  void Result() {
    Op("matmul_v2", {{"X", {"weights"}}, {"Y", {"v"}}}, "heads",
       {n.batch, n.heads, n.queries, n.value_depth});
    if (split_heads)
      Transpose("heads", "out", {n.batch, n.queries, n.heads, n.value_depth}, {0, 2, 1, 3});
    b.Fetch(split_heads ? "out" : "heads");
  }
  // Q, K and V are all `x`.
  void SelfAttention(const std::string& x, const Shape& shape, const std::string& out) {
    const Shape scores = {shape[0], shape[1], shape[2], shape[2]};
    Op("matmul_v2", {{"X", {x}}, {"Y", {x}}}, out + "_scores", scores, {{"trans_y", true}});
    Op("softmax", {{"X", {out + "_scores"}}}, out + "_weights", scores, {{"axis", int64_t{-1}}});
    Op("matmul_v2", {{"X", {out + "_weights"}}, {"Y", {x}}}, out, shape);
  }
  Writer& All() {
    Operands();
    Scores();
    Result();
    return *this;
  }
};

std::vector<Tensor> RunAt(const Writer& w, int level, int threads, int* instructions) {
  Executor executor({.threads = threads});
  auto compiled = MustCompile(executor, w.b.Build(), w.scope, {.opt_level = level});
  auto out = MustRun(executor, compiled, w.feeds);
  const auto stats = executor.Prepare(compiled, w.feeds);
  if (stats.ok()) *instructions = stats->instructions;
  return out;
}

// With passes there are `instructions`, and the results without them, on any number of threads.
void Expect(const Writer& w, int instructions) {
  int before = 0, after = 0;
  const auto plain = RunAt(w, 0, 1, &before), fused = RunAt(w, 2, 1, &after);
  EXPECT_EQ(after, instructions) << before << " without passes";
  ASSERT_EQ(plain.size(), fused.size());
  for (size_t i = 0; i < plain.size(); ++i) {
    ASSERT_EQ(plain[i].shape(), fused[i].shape());
    const auto a = Floats(plain[i]), c = Floats(fused[i]);
    for (size_t k = 0; k < a.size(); ++k) ASSERT_NEAR(a[k], c[k], 1e-5 * (1 + std::abs(a[k]))) << k;
  }
  for (int threads : {2, 5}) {
    const auto shared = RunAt(w, 2, threads, &after);
    for (size_t i = 0; i < fused.size(); ++i) EXPECT_EQ(Bits(fused[i]), Bits(shared[i])) << threads;
  }
}

TEST(FuseAttention, FormsOfOperands) {
  for (bool split : {false, true})
    for (bool flip : {false, true})
      for (bool scale : {false, true}) {
        Writer w{.split_heads = split,
                 .flip_keys = flip,
                 .scale_queries = scale,
                 .scale_scores = !scale};
        Expect(w.All(), 1);
      }
  Writer w{.product = "matmul"};
  Expect(w.All(), 1);
}

TEST(FuseAttention, MasksOfAnyBroadcast) {
  for (const Shape& mask :
       {Shape{2, 1, 1, 9}, Shape{1, 1, 7, 9}, Shape{2, 3, 7, 9}, Shape{1, 3, 7, 1}, Shape{3, 7, 9},
        Shape{3, 1, 1}, Shape{7, 9}, Shape{1, 9}, Shape{7, 1}, Shape{9}}) {
    Writer w{.scale_scores = true, .mask = mask};
    Expect(w.All(), 1);
  }
}

// The comparison that makes the condition, the mask that it means, and the attention. Some rows
// have no score that is kept: all of them weigh the same.
TEST(FuseAttention, MasksThatSelect) {
  for (const Shape& mask :
       {Shape{2, 1, 1, 9}, Shape{2, 3, 7, 9}, Shape{2, 1, 7, 1}, Shape{7, 9}, Shape{9}})
    for (bool ones : {false, true})
      for (double otherwise : {-3e38, -1e9, -1.0}) {
        Writer w{.scale_scores = true,
                 .mask = mask,
                 .selects = true,
                 .with_ones = ones,
                 .otherwise = otherwise};
        Expect(w.All(), 3);
      }
}

// The two rows of keys that the mask excludes hold NaN or infinity.
TEST(FuseAttention, MaskedNaNsAndInfinitiesDoNotReachTheResult) {
  for (float odd : {std::nanf(""), INFINITY, -INFINITY}) {
    Writer w{.split_heads = false, .mask = {1, 1, 1, 9}, .selects = true};
    w.All();
    for (Feed& feed : w.feeds) {
      float* x = feed.value.tensor().mutable_data<float>();
      if (feed.name == "mask")
        for (int i = 0; i < 9; ++i) x[i] = i == 4 || i == 8 ? 0.f : 1.f;
      // Two rows of keys, which the mask leaves out.
      if (feed.name == "k")
        for (int64_t head = 0; head < 6; ++head)
          for (int64_t row : {4, 8}) x[(head * 9 + row) * 5] = odd;
    }
    Expect(w, 3);
  }
}

TEST(FuseAttention, ASelectionOfInfinityStays) {
  Writer w{.split_heads = false, .mask = {1, 1, 1, 9}, .selects = true, .otherwise = INFINITY};
  w.All();
  int instructions = 0;
  RunAt(w, 2, 1, &instructions);
  EXPECT_EQ(instructions, 5);
}

TEST(FuseAttention, AFactorMayBeAParameter) {
  Writer w{.mask = {2, 1, 1, 9}, .scale_by_parameter = true};
  Expect(w.All(), 1);
}

TEST(FuseAttention, SizesAroundTheVectorsLength) {
  for (const Sizes& n :
       {Sizes{1, 1, 1, 1, 1, 1}, Sizes{1, 2, 3, 33, 16, 32}, Sizes{1, 1, 4, 16, 16, 16},
        Sizes{1, 1, 101, 65, 24, 40}, Sizes{2, 1, 49, 17, 8, 64}, Sizes{1, 7, 6, 47, 31, 15},
        Sizes{2, 3, 4, 0, 5, 6}, Sizes{2, 3, 0, 4, 5, 6}, Sizes{2, 3, 4, 5, 0, 6},
        Sizes{2, 3, 4, 5, 6, 0}, Sizes{0, 3, 4, 5, 6, 7}}) {
    Writer w{.n = n};
    Expect(w.All(), 1);
  }
}

TEST(FuseAttention, OperandsJoinedInOneTensor) {
  Writer w;
  w.n = {2, 2, 6, 6, 8, 8};
  const Shape one = {2, 2, 6, 8};
  w.AddFeed("qkv", {2, 6, 3, 2, 8});
  w.Transpose("qkv", "parts", {3, 2, 2, 6, 8}, {2, 0, 3, 1, 4});
  int64_t part = 0;
  for (const char* name : {"q", "k", "v"}) {
    w.b.Var(name, DType::kF32, one);
    w.b.Op("slice", {{"Input", {"parts"}}}, {{"Out", {name}}},
           {{"axes", Ints{0}},
            {"starts", Ints{part}},
            {"ends", Ints{part + 1}},
            {"decrease_axis", Ints{0}}});
    ++part;
  }
  w.flip_keys = w.scale_queries = true;
  w.Scores();
  w.Result();
  Expect(w, 1);
}

TEST(FuseAttention, ATransposeThatOthersReadStays) {
  Writer w;
  w.All();
  w.b.Unary("relu", "k", "other");
  w.b.Fetch("other");
  Expect(w, 3);
}

// A gradient reads of a transpose which shape its operand had.
TEST(FuseAttention, TransposesWhoseShapesAreReadStay) {
  for (const char* name : {"q", "k", "v", "out"}) {
    SCOPED_TRACE(name);
    Writer w{.keep_shapes = true};
    w.All();
    const int64_t rows = *name == 'k' || *name == 'v' ? w.n.keys : w.n.queries;
    const int64_t depth = *name == 'v' || *name == 'o' ? w.n.value_depth : w.n.depth;
    const bool last = *name == 'o';
    const Shape parted = {w.n.batch, w.n.heads, rows, depth};
    const Shape joined = {w.n.batch, rows, w.n.heads, depth};
    w.AddFeed("dy", last ? joined : parted);
    w.b.Var("dx", DType::kF32, last ? parted : joined);
    w.b.Op("transpose2_grad", {{"Out@GRAD", {"dy"}}, {"XShape", {std::string(name) + "_shape"}}},
           {{"X@GRAD", {"dx"}}}, {{"axis", Ints{0, 2, 1, 3}}});
    w.b.Fetch("dx");
    int count = 0;
    const auto plain = RunAt(w, 0, 1, &count), fused = RunAt(w, 2, 1, &count);
    ASSERT_EQ(plain.size(), fused.size());
    for (size_t i = 0; i < plain.size(); ++i) {
      const auto a = Floats(plain[i]), c = Floats(fused[i]);
      ASSERT_EQ(a.size(), c.size());
      for (size_t k = 0; k < a.size(); ++k)
        ASSERT_NEAR(a[k], c[k], 1e-5 * (1 + std::abs(a[k]))) << k;
    }
  }
}

TEST(FuseAttention, FetchedInnerValuesStay) {
  for (const char* inner : {"scores", "weights"}) {
    Writer w{.split_heads = false};
    w.All();
    w.b.Fetch(inner);
    Expect(w, 3);
  }
}

TEST(FuseAttention, OtherReadersOfTheWeightsStay) {
  Writer w{.split_heads = false};
  w.All();
  w.b.Unary("relu", "weights", "other");
  w.b.Fetch("other");
  Expect(w, 4);
}

TEST(FuseAttention, SoftmaxAlongAnotherAxisStays) {
  Writer w{.split_heads = false, .axis = 2};
  Expect(w.All(), 3);
}

TEST(FuseAttention, AnOperandWrittenAgainStays) {
  Writer w{.split_heads = false};
  w.Operands();
  w.Scores();
  // V is read by the product only after it was replaced; K was read before.
  w.b.Unary("relu", "k", "k");
  w.b.Unary("relu", "v", "v");
  w.Result();
  w.b.Fetch("k");
  Expect(w, 5);
}

TEST(FuseAttention, AFactorAfterTheMaskStays) {
  Writer w{.split_heads = false};
  w.Operands();
  const Shape scores = {2, 3, 7, 9};
  w.Op("matmul_v2", {{"X", {"q"}}, {"Y", {"k"}}}, "scores", scores, {{"trans_y", true}});
  w.AddFeed("mask", {2, 1, 1, 9});
  w.Op("elementwise_add", {{"X", {"scores"}}, {"Y", {"mask"}}}, "masked", scores,
       {{"axis", int64_t{-1}}});
  w.Op("scale", {{"X", {"masked"}}}, "scaled", scores, {{"scale", 0.5}});
  w.Op("softmax", {{"X", {"scaled"}}}, "weights", scores, {{"axis", int64_t{-1}}});
  w.Result();
  int plain = 0, fused = 0;
  RunAt(w, 0, 1, &plain);
  RunAt(w, 2, 1, &fused);
  EXPECT_EQ(plain, 5);
  Expect(w, fused);
  EXPECT_GE(fused, 4);
}

// Attention along rows, then along columns: the transpose in between joins the heads of the first
// and parts those of the second.
TEST(FuseAttention, OneAfterAnotherThroughOneTranspose) {
  Writer w{.split_heads = false};
  const Shape rows = {2, 3, 4, 5}, columns = {2, 4, 3, 5};
  w.AddFeed("x", rows);
  w.SelfAttention("x", rows, "first");
  w.Transpose("first", "turned", columns, {0, 2, 1, 3});
  w.SelfAttention("turned", columns, "second");
  w.b.Fetch("second");
  Expect(w, 2);
}

// The scores of the second softmax are the result of the first attention.
TEST(FuseAttention, ASoftmaxOfAnAttention) {
  Writer w{.split_heads = false};
  const Shape x = {2, 3, 4, 4};
  w.AddFeed("x", x);
  w.AddFeed("u", x);
  w.Transpose("u", "flipped", x, {0, 1, 3, 2});
  w.Op("matmul_v2", {{"X", {"x"}}, {"Y", {"x"}}}, "scores", x, {{"trans_y", true}});
  w.Op("softmax", {{"X", {"scores"}}}, "weights", x, {{"axis", int64_t{-1}}});
  w.Op("matmul_v2", {{"X", {"weights"}}, {"Y", {"flipped"}}}, "more_scores", x);
  w.Op("softmax", {{"X", {"more_scores"}}}, "more_weights", x, {{"axis", int64_t{-1}}});
  w.Op("matmul_v2", {{"X", {"more_weights"}}, {"Y", {"x"}}}, "out", x);
  w.b.Fetch("out");
  Expect(w, 4);
}

// for (i = 0; i < 3; ++i) h = attention(h, h, h), where h begins as x * 0.5; with `overwrite`, h
// becomes x * 2 between the scores and their softmax.
TEST(FuseAttention, InALoopThatCarriesTheOperands) {
  for (const bool overwrite : {false, true}) {
    SCOPED_TRACE(overwrite);
    Writer w{.split_heads = false};
    const Shape shape = {2, 3, 4, 5}, scores = {2, 3, 4, 4};
    w.AddFeed("x", shape);
    w.Op("scale", {{"X", {"x"}}}, "h", shape, {{"scale", 0.5}});
    w.b.Fill("i", {1}, 0, DType::kI64).Fill("n", {1}, 3, DType::kI64);
    w.b.Var("go", DType::kBool, {1}).Binary("less_than", "i", "n", "go");
    const int body = w.b.Block(0);
    w.b.In(body);
    w.Op("matmul_v2", {{"X", {"h"}}, {"Y", {"h"}}}, "scores", scores, {{"trans_y", true}});
    if (overwrite) w.b.Scale("x", "h", 2);
    w.Op("softmax", {{"X", {"scores"}}}, "weights", scores, {{"axis", int64_t{-1}}});
    w.Op("matmul_v2", {{"X", {"weights"}}, {"Y", {"h"}}}, "next", shape);
    w.b.Unary("assign", "next", "h");
    w.b.Increment("i").Binary("less_than", "i", "n", "go").In(0);
    w.b.Op("while", {{"X", {"h", "x", "i", "n"}}, {"Condition", {"go"}}},
           {{"Out", {"h", "i", "go"}}, {"StepScopes", {}}}, {{"sub_block", BlockRef{body}}});
    w.Op("scale", {{"X", {"h"}}}, "y", shape, {{"scale", 1.0}});
    w.b.Fetch("y");
    int unused = 0;
    const auto plain = Floats(RunAt(w, 0, 1, &unused)[0]), got = Floats(RunAt(w, 2, 1, &unused)[0]);
    for (size_t k = 0; k < plain.size(); ++k) ASSERT_NEAR(plain[k], got[k], 1e-5) << k;
    Executor executor;
    const auto plan = executor.DescribePlan(
        MustCompile(executor, w.b.Build(), w.scope, {.opt_level = 2}), w.feeds);
    ASSERT_TRUE(plan.ok()) << plan.status().ToString();
    const auto fused =
        std::count_if(plan->instructions.begin(), plan->instructions.end(),
                      [](const auto& in) { return in.op == "scaled_dot_attention"; });
    EXPECT_EQ(fused, overwrite ? 0 : 1);
  }
}

}  // namespace
}  // namespace heddle::testing
