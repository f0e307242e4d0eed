// Element-wise fusion: the fused program computes the very bits of the plain one, and what must not
// be fused is left alone.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <set>

#include "core/op_registry.h"
#include "core/tile_ops.h"
#include "passes/pass_manager.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

Tensor Random(const Shape& shape, uint32_t seed, DType dtype = DType::kF32) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> value(-2, 2);
  Tensor t = Tensor::Zeros(dtype, shape);
  for (int64_t i = 0; i < t.numel(); ++i) {
    const double v = value(random);
    if (dtype == DType::kF64)
      t.mutable_data<double>()[i] = v;
    else
      t.mutable_data<float>()[i] = static_cast<float>(v);
  }
  return t;
}

struct Outcome {
  std::vector<Tensor> out;
  int instructions = 0;
};

// A program, its feeds and its parameters.
struct Case {
  ProgramBuilder b;
  std::vector<heddle::Feed> feeds;
  std::vector<std::pair<std::string, Tensor>> parameters;
  std::set<std::string> declared;

  void Feed(const std::string& name, const Shape& shape, DType dtype = DType::kF32) {
    FeedAs(name, shape, shape, dtype);
  }
  void FeedAs(const std::string& name, const Shape& shape, const Shape& as,
              DType dtype = DType::kF32) {
    declared.insert(name);
    b.Feed(name, dtype, as);
    feeds.push_back({name, Random(shape, static_cast<uint32_t>(feeds.size()) + 1, dtype)});
  }
  void Param(const std::string& name, const Shape& shape) {
    declared.insert(name);
    b.Param(name, DType::kF32, shape);
    parameters.emplace_back(name, Random(shape, static_cast<uint32_t>(parameters.size()) + 100));
  }
  void Unary(const std::string& type, const std::string& x, const std::string& out,
             const Shape& shape, const Attrs& attrs = {}, DType dtype = DType::kF32) {
    Declare(out, dtype, shape);
    b.Op(type, {{"X", {x}}}, {{"Out", {out}}}, attrs);
  }
  void Binary(const std::string& type, const std::string& x, const std::string& y,
              const std::string& out, const Shape& shape, int64_t axis = -1,
              DType dtype = DType::kF32) {
    Declare(out, dtype, shape);
    b.Op(type, {{"X", {x}}, {"Y", {y}}}, {{"Out", {out}}}, {{"axis", axis}});
  }

  void Declare(const std::string& name, DType dtype, const Shape& shape) {
    if (declared.insert(name).second) b.Var(name, dtype, shape);
  }

  Outcome Run(int level, Schedule schedule = Schedule::kAuto) const {
    auto scope = std::make_shared<Scope>();
    for (const auto& [name, value] : parameters) scope->Set(name, Value(value.Clone()));
    Executor executor({.threads = 2});
    CompileOptions options;
    options.opt_level = level;
    options.schedule = schedule;
    auto compiled = MustCompile(executor, b.Build(), scope, options);
    Outcome o{MustRun(executor, compiled, feeds), 0};
    for (const auto& [name, value] : parameters)
      if (scope->Find(name) != nullptr) o.out.push_back(scope->Find(name)->tensor().Clone());
    const auto stats = executor.Prepare(compiled, feeds);
    EXPECT_TRUE(stats.ok()) << stats.status().ToString();
    if (stats.ok()) o.instructions = stats->instructions;
    return o;
  }
};

// Bits, but that any NaN equals any other.
template <typename T>
void ExpectSameNumbers(const Tensor& a, const Tensor& b) {
  for (int64_t i = 0; i < a.numel(); ++i) {
    const T x = a.data<T>()[i], y = b.data<T>()[i];
    if (std::isnan(x) && std::isnan(y)) continue;
    ASSERT_EQ(std::memcmp(&x, &y, sizeof(T)), 0) << "element " << i << ": " << x << ", fused " << y;
  }
}

void ExpectSame(const Outcome& plain, const Outcome& fused) {
  ASSERT_EQ(plain.out.size(), fused.out.size());
  for (size_t i = 0; i < plain.out.size(); ++i) {
    SCOPED_TRACE(i);
    ASSERT_EQ(plain.out[i].shape(), fused.out[i].shape());
    ASSERT_EQ(plain.out[i].dtype(), fused.out[i].dtype());
    EXPECT_EQ(plain.out[i].lod(), fused.out[i].lod());
    if (plain.out[i].dtype() == DType::kF64)
      ExpectSameNumbers<double>(plain.out[i], fused.out[i]);
    else
      ExpectSameNumbers<float>(plain.out[i], fused.out[i]);
  }
}

// Level 2 has `instructions`, and the results of level 0.
void ExpectFused(const Case& c, int instructions) {
  const Outcome plain = c.Run(0), fused = c.Run(2);
  EXPECT_EQ(fused.instructions, instructions) << plain.instructions << " without fusion";
  ExpectSame(plain, fused);
}

TEST(FuseElementwise, AGraphIsOneInstruction) {
  Case c;
  const Shape s{3, 7};
  c.Feed("x", s);
  c.Feed("y", s);
  c.Unary("scale", "x", "a", s, {{"scale", 0.5}, {"bias", 1.0}});
  c.Binary("elementwise_add", "a", "y", "b", s);
  c.Unary("tanh", "b", "c", s);
  c.Binary("elementwise_mul", "a", "c", "d", s);
  c.Binary("elementwise_sub", "d", "b", "e", s);
  c.b.Fetch("e");
  ExpectFused(c, 1);
}

TEST(FuseElementwise, WhatIsFetchedOrReadElsewhereIsAnOutput) {
  Case c;
  const Shape s{4, 5};
  c.Feed("x", s);
  c.Unary("relu", "x", "a", s);
  c.Unary("exp", "a", "b", s);
  c.Unary("sigmoid", "b", "c", s);
  c.b.Var("sum", DType::kF32, {});
  c.b.Op("reduce_prod", {{"X", {"a"}}}, {{"Out", {"sum"}}}, {{"reduce_all", true}});
  c.b.Fetch("b");
  c.b.Fetch("c");
  c.b.Fetch("sum");
  ExpectFused(c, 2);
}

TEST(FuseElementwise, WhatNobodyReadsIsLeftOut) {
  Case c;
  const Shape s{9};
  c.Feed("x", s);
  c.Unary("relu", "x", "a", s);
  c.Unary("exp", "a", "unread", s);
  c.Unary("tanh", "a", "b", s);
  c.b.Fetch("b");
  ExpectFused(c, 1);
}

// a -> b -> matmul -> q -> d -> e. `d` also reads b, and e also reads a: in one group with a and b
// they would have to run both before and after the product.
TEST(FuseElementwise, AGroupWithAPathThroughAnotherOperatorIsSplit) {
  Case c;
  const Shape s{4, 4};
  c.Feed("x", s);
  c.Param("w", s);
  c.Unary("relu", "x", "a", s);
  c.Unary("exp", "a", "b", s);
  c.b.Var("p", DType::kF32, s);
  c.b.Op("matmul_v2", {{"X", {"b"}}, {"Y", {"w"}}}, {{"Out", {"p"}}});
  c.Unary("softmax", "p", "q", s, {{"axis", int64_t{-1}}});
  c.Binary("elementwise_add", "q", "b", "d", s);
  c.Binary("elementwise_mul", "d", "a", "e", s);
  c.b.Fetch("e");
  ExpectFused(c, 4);
}

// exp(y) is read only after the softmax of x: it moves there and is fused with its reader.
TEST(FuseElementwise, AnOperandOfALateReaderIsComputedThere) {
  Case c;
  const Shape s{4, 4};
  c.Feed("x", s);
  c.Feed("y", s);
  c.Unary("exp", "y", "late", s);
  c.Unary("softmax", "x", "q", s, {{"axis", int64_t{-1}}});
  c.Binary("elementwise_add", "q", "late", "d", s);
  c.b.Fetch("d");
  ExpectFused(c, 2);
}

// The reader of a middle value stands before the group's last operator.
TEST(FuseElementwise, ReadersInBetweenComeLater) {
  Case c;
  const Shape s{6};
  c.Feed("x", s);
  c.Unary("relu", "x", "a", s);
  c.b.Var("sum", DType::kF32, {});
  c.b.Op("reduce_prod", {{"X", {"a"}}}, {{"Out", {"sum"}}}, {{"reduce_all", true}});
  c.Unary("exp", "a", "b", s);
  c.Unary("tanh", "b", "c", s);
  c.b.Fetch("sum");
  c.b.Fetch("c");
  ExpectFused(c, 2);
}

TEST(FuseElementwise, VariablesThatAreWrittenAgainStay) {
  Case c;
  const Shape s{5};
  c.Feed("x", s);
  c.Feed("y", s);
  c.b.Var("a", DType::kF32, s);
  c.Unary("relu", "x", "a", s);
  c.Unary("exp", "a", "b", s);
  c.Unary("tanh", "y", "a", s);  // again
  c.Binary("elementwise_add", "a", "b", "c", s);
  c.Unary("square", "c", "d", s);
  c.Unary("sigmoid", "d", "e", s);
  c.b.Fetch("e");
  c.b.Fetch("a");
  ExpectFused(c, 4);  // c, d and e, behind what writes a again
}

// A feed that is read, then written: its readers mean two different values.
TEST(FuseElementwise, AFeedThatIsWritten) {
  Case c;
  const Shape s{5};
  c.Feed("x", s);
  c.Unary("relu", "x", "a", s);
  c.Unary("exp", "a", "b", s);
  c.b.Op("scale", {{"X", {"b"}}}, {{"Out", {"x"}}}, {{"scale", 3.0}});
  c.Binary("elementwise_add", "x", "a", "d", s);
  c.b.Fetch("d");
  ExpectSame(c.Run(0), c.Run(2));
}

TEST(FuseElementwise, ParametersThatAreUpdated) {
  Case c;
  const Shape s{5};
  c.Feed("x", s);
  c.Param("w", s);
  c.Binary("elementwise_mul", "x", "w", "a", s);
  c.b.Op("scale", {{"X", {"w"}}}, {{"Out", {"w"}}}, {{"scale", 2.0}});
  c.Unary("exp", "a", "b", s);
  c.Binary("elementwise_add", "b", "w", "d", s);
  c.b.Fetch("d");
  ExpectSame(c.Run(0), c.Run(2));
}

TEST(FuseElementwise, WhatSubBlocksReadStays) {
  Case c;
  const Shape s{3};
  c.Feed("x", s);
  c.b.Feed("flag", DType::kBool, {1});
  c.feeds.push_back({"flag", Bool(true)});
  c.Unary("relu", "x", "a", s);
  c.Unary("exp", "a", "b", s);
  c.Unary("tanh", "b", "c", s);
  c.b.Var("out", DType::kF32, s);
  const int block = c.b.Block(0);
  c.b.Op("conditional_block", {{"Cond", {"flag"}}, {"Input", {"b"}}},
         {{"Out", {"out"}}, {"Scope", {}}},
         {{"sub_block", BlockRef{block}}, {"is_scalar_condition", true}});
  c.b.In(block).Op("scale", {{"X", {"b"}}}, {{"Out", {"out"}}}, {{"scale", 5.0}});
  c.b.In(0);
  c.b.Fetch("c");
  c.b.Fetch("out");
  ExpectSame(c.Run(0), c.Run(2));
}

TEST(FuseElementwise, Broadcasts) {
  struct Form {
    Shape x, y;
    int64_t axis;
  };
  const std::vector<Form> forms = {
      {{2, 3, 4, 5}, {1}, -1},       {{2, 3, 4, 5}, {5}, -1},          {{2, 3, 4, 5}, {3}, 1},
      {{2, 3, 4, 5}, {3, 1, 1}, -1}, {{2, 3, 4, 5}, {2, 1, 4, 1}, -1}, {{2, 3, 4, 5}, {2, 3}, 0},
      {{2, 3, 4, 5}, {3, 4}, 1},     {{2, 3, 4, 5}, {2, 1, 1, 5}, -1}, {{37, 3}, {3}, -1},
      {{3, 700}, {3, 1}, -1},        {{3, 1500}, {1500}, -1},          {{40, 130}, {130}, -1},
      {{2, 3000}, {2, 1}, -1},       {{5000, 24}, {24}, -1},           {{2, 3, 1}, {2, 3}, 0},
  };
  for (const Form& f : forms) {
    for (const bool swapped : {false, true}) {
      SCOPED_TRACE(f.x.ToString() + " " + f.y.ToString() + (swapped ? " swapped" : ""));
      Case c;
      c.Feed("x", f.x);
      c.Feed("y", f.y);
      c.Feed("z", f.x);
      if (swapped)
        c.Binary("elementwise_sub", "y", "x", "a", f.x, f.axis);
      else
        c.Binary("elementwise_sub", "x", "y", "a", f.x, f.axis);
      c.Unary("sigmoid", "a", "b", f.x);
      c.Binary("elementwise_mul", "b", "y", "d", f.x, f.axis);
      c.Binary("elementwise_add", "d", "z", "e", f.x);
      c.b.Fetch("e");
      ExpectFused(c, 1);
    }
  }
}

// Both operands repeated, each along the other's dimension.
TEST(FuseElementwise, BothOperandsAreBroadcast) {
  Case c;
  c.Feed("x", {7, 1});
  c.Feed("y", {1, 9});
  c.Binary("elementwise_add", "x", "y", "a", {7, 9});
  c.Unary("tanh", "a", "b", {7, 9});
  c.b.Fetch("b");
  ExpectFused(c, 1);
}

// As far as the program says all shapes are one; in the run they are three.
TEST(FuseElementwise, OpenDimensionsThatDiffer) {
  Case c;
  const Shape open{-1, -1};
  c.FeedAs("x", {1, 6}, open);
  c.FeedAs("y", {5, 1}, open);
  c.FeedAs("z", {5, 6}, open);
  c.Unary("exp", "x", "a", open);
  c.Unary("tanh", "y", "b", open);
  c.Binary("elementwise_add", "a", "b", "d", open);
  c.Unary("sigmoid", "a", "e", open);
  c.Binary("elementwise_mul", "d", "e", "f", open);
  c.Binary("elementwise_sub", "f", "z", "g", open);
  c.b.Fetch("g");
  c.b.Fetch("e");
  ExpectFused(c, 1);
}

TEST(FuseElementwise, ShapesThatDoNotFitAreAnError) {
  Case c;
  const Shape open{-1, -1};
  c.FeedAs("x", {2, 6}, open);
  c.FeedAs("y", {3, 6}, open);
  c.Unary("exp", "x", "a", open);
  c.Binary("elementwise_add", "a", "y", "b", open);
  c.b.Fetch("b");
  Executor executor({.threads = 1});
  auto compiled = MustCompile(executor, c.b.Build());
  const auto out = executor.Run(compiled, c.feeds);
  ASSERT_FALSE(out.ok());
  EXPECT_NE(out.status().ToString().find("broadcast"), std::string::npos)
      << out.status().ToString();
}

TEST(FuseElementwise, SizesAroundATile) {
  for (const int64_t n : {0, 1, 3, 7, 8, 9, 16, 31, 1023, 1024, 1025, 5000, 300000}) {
    SCOPED_TRACE(n);
    Case c;
    c.Feed("x", {n});
    c.Feed("y", {n});
    c.Unary("scale", "x", "a", {n}, {{"scale", 1.5}, {"bias", 0.25}, {"bias_after_scale", false}});
    c.Binary("elementwise_max", "a", "y", "b", {n});
    c.Binary("elementwise_div", "b", "a", "d", {n});
    c.b.Fetch("d");
    c.b.Fetch("b");
    ExpectFused(c, 1);
  }
}

TEST(FuseElementwise, Doubles) {
  Case c;
  const Shape s{33};
  c.Feed("x", s, DType::kF64);
  c.Feed("y", s);
  c.Unary("exp", "x", "a", s, {}, DType::kF64);
  c.Unary("square", "a", "b", s, {}, DType::kF64);
  c.Unary("exp", "y", "d", s);
  c.Unary("square", "d", "e", s);
  c.b.Fetch("b");
  c.b.Fetch("e");
  ExpectFused(c, 2);
}

TEST(FuseElementwise, SumsOfSeveral) {
  Case c;
  const Shape s{11};
  for (const char* name : {"x", "y", "z"}) c.Feed(name, s);
  c.b.Var("a", DType::kF32, s);
  c.b.Op("sum", {{"X", {"x", "y", "z", "x"}}}, {{"Out", {"a"}}});
  c.Unary("tanh", "a", "b", s);
  c.b.Fetch("b");
  ExpectFused(c, 1);
}

TEST(FuseElementwise, SequenceOffsetsComeFromTheFirstOperand) {
  Case c;
  const Shape s{5, 2};
  c.Feed("x", s);
  c.Feed("y", s);
  c.feeds[0].value.tensor().set_lod({{0, 2, 5}});
  c.Unary("exp", "x", "a", s);
  c.Binary("elementwise_add", "y", "a", "b", s);
  c.Binary("elementwise_add", "a", "b", "d", s);
  c.b.Fetch("b");
  c.b.Fetch("d");
  ExpectFused(c, 1);
}

// Every operator that says how it works as a step, with attributes off their defaults.
TEST(FuseElementwise, EveryStep) {
  int steps = 0;
  for (const OpDef* def : AllOps()) {
    const TileOp* tile = FindTileOp(def->name());
    if (tile == nullptr) continue;
    SCOPED_TRACE(def->name());
    ++steps;
    for (const DType dtype : {DType::kF32, DType::kF64}) {
      for (const bool defaults : {true, false}) {
        Case c;
        const Shape s{3, 71};
        Slots inputs;
        for (int i = 0; i < tile->operands; ++i) {
          const std::string name = "x" + std::to_string(i);
          c.Feed(name, s, dtype);
          inputs.push_back({def->inputs()[static_cast<size_t>(i)].name, {name}});
        }
        float* first =
            dtype == DType::kF32 ? c.feeds[0].value.tensor().mutable_data<float>() : nullptr;
        for (int i = 0; first != nullptr && i < 6; ++i)
          first[i] =
              std::array{0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1e-40f}[static_cast<size_t>(i)];
        Attrs attrs;
        for (const AttrDef& a : def->attrs()) {
          if (const auto* d = std::get_if<double>(&a.default_value); d && !defaults)
            attrs.push_back({a.name, *d + (a.name == "max" || a.name == "t_max" ? 0.75 : 0.25)});
          if (std::holds_alternative<bool>(a.default_value) && !defaults)
            attrs.push_back({a.name, !std::get<bool>(a.default_value)});
        }
        c.b.Var("a", dtype, s);
        c.b.Op(def->name(), inputs, {{def->outputs()[0].name, {"a"}}}, attrs);
        c.Unary("scale", "a", "b", s, {{"scale", 1.0}}, dtype);
        c.b.Fetch("a");
        c.b.Fetch("b");
        // With these attributes the operators are no steps, and run by themselves.
        const bool refuses =
            !defaults && (def->FindAttr("finite") >= 0 || def->FindAttr("truncate") >= 0);
        ExpectFused(c, refuses ? 2 : 1);
      }
    }
  }
  EXPECT_GT(steps, 60);
}

// Random graphs over a few shapes, with operators in between that cannot be fused; now and then one
// writes to a variable that has been there before, a feed or a parameter included.
TEST(FuseElementwise, RandomGraphs) {
  const std::vector<std::string> unary = {"relu", "tanh", "sigmoid", "exp", "abs", "square"};
  const std::vector<std::string> binary = {"elementwise_add", "elementwise_sub", "elementwise_mul",
                                           "elementwise_max", "elementwise_min"};
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto pick = [&](size_t n) { return static_cast<size_t>(random()) % n; };
    Case c;
    struct Value {
      std::string name;
      Shape shape;
    };
    std::vector<Value> values;
    const Shape shapes[] = {{6, 10}, {10}, {6, 1}};
    for (const Shape& s : shapes) {
      values.push_back({"x" + std::to_string(values.size()), s});
      c.Feed(values.back().name, s);
    }
    values.push_back({"w", shapes[0]});
    c.Param("w", shapes[0]);
    const size_t ops = 5 + pick(60);
    for (size_t i = 0; i < ops; ++i) {
      std::string out = "v" + std::to_string(i);
      const Value a = values[pick(values.size())], b = values[pick(values.size())];
      const size_t kind = pick(10);
      if (const Value& again = values[pick(values.size())];
          pick(10) == 0 && again.shape == shapes[0] && a.shape == shapes[0])
        out = again.name;
      if (kind < 4) {
        c.Unary(unary[pick(unary.size())], a.name, out, a.shape);
        values.push_back({out, a.shape});
      } else if (kind < 5) {
        c.Unary("scale", a.name, out, a.shape, {{"scale", 0.1 * static_cast<double>(pick(9))}});
        values.push_back({out, a.shape});
      } else if (kind < 9) {
        const Shape shape = a.shape == b.shape ? a.shape : shapes[0];
        c.Binary(binary[pick(binary.size())], a.name, b.name, out, shape);
        values.push_back({out, shape});
      } else {
        c.Unary("softmax", a.name, out, a.shape, {{"axis", int64_t{-1}}});
        values.push_back({out, a.shape});
      }
      if (pick(8) == 0) c.b.Fetch(out);
    }
    c.b.Fetch(values.back().name);
    const Outcome plain = c.Run(0), fused = c.Run(2);
    EXPECT_LE(fused.instructions, plain.instructions);
    ExpectSame(plain, fused);
    ExpectSame(plain, c.Run(2, Schedule::kParallel));
    ExpectSame(plain, c.Run(2, Schedule::kLanes));
  }
}

// A graph too wide for the work space that needs no allocation.
TEST(FuseElementwise, ManyValuesAtOnce) {
  Case c;
  const Shape s{21};
  c.Feed("x", s);
  constexpr int kWide = 1500;
  for (int i = 0; i < kWide; ++i)
    c.Unary("scale", "x", "a" + std::to_string(i), s, {{"scale", 0.001 * i}, {"bias", 0.5}});
  std::string sum = "a0";
  for (int i = kWide - 1; i > 0; --i) {
    const std::string next = "b" + std::to_string(i);
    c.Binary("elementwise_add", sum, "a" + std::to_string(i), next, s);
    sum = next;
  }
  c.b.Fetch(sum);
  ExpectFused(c, 1);
}

// x0 + x1 * 1.5 + x2 * 2.5 + …
Case SumOfMany(const Shape& s) {
  Case c;
  constexpr int kFeeds = 100;
  for (int k = 0; k < kFeeds; ++k) c.Feed("x" + std::to_string(k), s);
  std::string sum = "x0";
  for (int k = 1; k < kFeeds; ++k) {
    const std::string scaled = "s" + std::to_string(k), next = "t" + std::to_string(k);
    c.Unary("scale", "x" + std::to_string(k), scaled, s, {{"scale", 0.5 + k}});
    c.Binary("elementwise_add", sum, scaled, next, s);
    sum = next;
  }
  c.b.Fetch(sum);
  return c;
}

// A loop over more memory than the first-level cache holds is slower than several.
TEST(FuseElementwise, AGroupOfVeryManyOperandsIsCut) {
  ExpectFused(SumOfMany({5, 3}), 1);
  const Case c = SumOfMany({64, 32});
  const Outcome plain = c.Run(0), fused = c.Run(2);
  ExpectSame(plain, fused);
  EXPECT_LE(fused.instructions, 8);
  Executor executor;
  const auto compiled = MustCompile(executor, c.b.Build(), nullptr, {.opt_level = 2});
  const auto plan = executor.DescribePlan(compiled, c.feeds);
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  for (const auto& in : plan->instructions)
    EXPECT_LE(in.inputs.size() + in.outputs.size(), 24u) << in.op;
}

// for (i = 0; i < n; ++i) h = tanh(h * w) + h * tanh(x); what an iteration computes of h is one
// instruction, and tanh(x), which no iteration changes, another one.
TEST(FuseElementwise, TheBodyOfALoop) {
  Case c;
  const Shape s{4, 3};
  c.Feed("x", s);
  c.Feed("w", s);
  c.b.Feed("n", DType::kI64, {1});
  c.Unary("scale", "x", "h", s, {{"scale", 0.5}});
  c.b.Fill("i", {1}, 0, DType::kI64).Var("go", DType::kBool, {1});
  c.b.Binary("less_than", "i", "n", "go");
  const int body = c.b.Block(0);
  c.b.In(body);
  c.Binary("elementwise_mul", "h", "w", "a", s);
  c.Unary("tanh", "a", "b", s);
  c.Unary("tanh", "x", "k", s);
  c.Binary("elementwise_mul", "h", "k", "d", s);
  c.Binary("elementwise_add", "b", "d", "e", s);
  c.b.Unary("assign", "e", "h").Increment("i").Binary("less_than", "i", "n", "go").In(0);
  c.b.Op("while", {{"X", {"h", "w", "x", "i", "n"}}, {"Condition", {"go"}}},
         {{"Out", {"h", "i", "go"}}, {"StepScopes", {}}}, {{"sub_block", BlockRef{body}}});
  c.Unary("scale", "h", "y", s, {{"scale", 1.0}});
  c.b.Fetch("y");
  const auto feeds = c.feeds;
  for (const int64_t n : {0, 1, 7}) {
    c.feeds = feeds;
    c.feeds.push_back({"n", I64({1}, {n})});
    for (const Schedule schedule : {Schedule::kSerial, Schedule::kParallel, Schedule::kLanes})
      ExpectSame(c.Run(0, schedule), c.Run(2, schedule));
  }
  Executor executor;
  const auto compiled =
      MustCompile(executor, c.b.Build(), nullptr, {.opt_level = 2, .schedule = Schedule::kSerial});
  const auto plan = executor.DescribePlan(compiled, c.feeds);
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  std::multiset<std::string> ops;
  for (const auto& in : plan->instructions)
    if (in.block == body) ops.insert(in.op);
  EXPECT_EQ(ops,
            (std::multiset<std::string>{"fused_elementwise", "increment", "less_than", "tanh"}));
}

}  // namespace
}  // namespace heddle::testing
