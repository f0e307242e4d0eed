// Fusion around reductions of rows: the fused loop computes the very bits of the plain operators,
// whatever the lengths of rows, and what must not be fused is left alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

Tensor RandomRows(const Shape& shape, uint32_t seed, DType dtype) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> value(-2, 2);
  Tensor t = Tensor::Zeros(dtype, shape);
  for (int64_t i = 0; i < t.numel(); ++i) {
    if (dtype == DType::kF64)
      t.mutable_data<double>()[i] = value(random);
    else
      t.mutable_data<float>()[i] = static_cast<float>(value(random));
  }
  return t;
}

// A program over rows, written step by step. Shapes are those that the program declares.
struct RowCase {
  explicit RowCase(DType d = DType::kF32) : dtype(d) {}
  DType dtype;
  ProgramBuilder b;
  std::vector<Feed> feeds;
  std::map<std::string, Shape> shapes;
  int next = 0;

  std::string In(const Shape& fed, const Shape& declared) {
    const std::string name = "in" + std::to_string(next++);
    shapes[name] = declared;
    b.Feed(name, dtype, declared);
    feeds.push_back({name, RandomRows(fed, static_cast<uint32_t>(next), dtype)});
    return name;
  }
  std::string In(const Shape& shape) { return In(shape, shape); }
  std::string Var(const Shape& shape) {
    const std::string name = "v" + std::to_string(next++);
    shapes[name] = shape;
    b.Var(name, dtype, shape);
    return name;
  }
  std::string Unary(const std::string& type, const std::string& x, const Attrs& attrs = {}) {
    const std::string out = Var(shapes[x]);
    b.Op(type, {{"X", {x}}}, {{"Out", {out}}}, attrs);
    return out;
  }
  // The result has the shape of the operand with more dimensions, or else more elements.
  std::string Binary(const std::string& type, const std::string& x, const std::string& y) {
    const Shape &a = shapes[x], &c = shapes[y];
    Shape s = a.rank() >= c.rank() ? a : c;
    const Shape& other = a.rank() >= c.rank() ? c : a;
    for (int i = 0; i < other.rank(); ++i) {
      int64_t& d = s[s.rank() - other.rank() + i];
      if (d == 1) d = other[i];
    }
    const std::string out = Var(s);
    b.Op("elementwise_" + type, {{"X", {x}}, {"Y", {y}}}, {{"Out", {out}}},
         {{"axis", int64_t{-1}}});
    return out;
  }
  std::string Reduce(const std::string& type, const std::string& x, const Ints& dims = {-1},
                     bool keep = true) {
    const Shape& s = shapes[x];
    Shape kept;
    for (int i = 0; i < s.rank(); ++i) {
      const bool reduced = std::any_of(dims.begin(), dims.end(),
                                       [&](int64_t d) { return (d < 0 ? d + s.rank() : d) == i; });
      if (!reduced || keep) kept.push_back(reduced ? 1 : s[i]);
    }
    const std::string out = Var(kept);
    b.Op("reduce_" + type, {{"X", {x}}}, {{"Out", {out}}}, {{"dim", dims}, {"keep_dim", keep}});
    return out;
  }

  std::string LayerNorm(const std::string& x, const std::string& scale, const std::string& bias,
                        const Ints& dims = {-1}) {
    const std::string mean = Reduce("mean", x, dims), d = Binary("sub", x, mean);
    const std::string var = Reduce("mean", Unary("square", d), dims);
    const std::string factor = Unary("rsqrt", Unary("scale", var, {{"bias", 1e-3}}));
    return Binary("add", Binary("mul", Binary("mul", d, factor), scale), bias);
  }
  std::string Softmax(const std::string& x) {
    const std::string e = Unary("exp", Binary("sub", x, Reduce("max", x)));
    return Binary("div", e, Reduce("sum", e));
  }
};

struct Outcome {
  std::vector<Tensor> out;
  int instructions = 0;
  std::string plan;
};

Outcome RunAt(const RowCase& c, const Program& program, int level, int threads, Schedule schedule) {
  Executor executor({.threads = threads});
  auto compiled =
      MustCompile(executor, program, nullptr, {.opt_level = level, .schedule = schedule});
  Outcome o{MustRun(executor, compiled, c.feeds), 0, *executor.PlanText(compiled, c.feeds)};
  o.instructions = executor.Prepare(compiled, c.feeds)->instructions;
  return o;
}

void ExpectSameBits(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.shape(), b.shape());
  ASSERT_EQ(a.dtype(), b.dtype());
  for (int64_t i = 0; i < a.numel(); ++i) {
    const double x = a.dtype() == DType::kF64 ? a.data<double>()[i] : a.data<float>()[i];
    const double y = b.dtype() == DType::kF64 ? b.data<double>()[i] : b.data<float>()[i];
    if (std::isnan(x) && std::isnan(y)) continue;
    ASSERT_EQ(x, y) << "element " << i << " of " << a.shape().ToString();
  }
}

constexpr int kAny = -1;

// The results of level 0 in every schedule; at level 2 the plan has `instructions`, of which
// `loops` are loops over rows.
void ExpectRows(const RowCase& c, int instructions, int loops = 1) {
  ProgramBuilder b = c.b;
  const Program program = b.Build();
  const Outcome plain = RunAt(c, program, 0, 1, Schedule::kAuto);
  for (const int threads : {1, 2, 3}) {
    for (const Schedule schedule : {Schedule::kAuto, Schedule::kLanes, Schedule::kParallel}) {
      const Outcome fused = RunAt(c, program, 2, threads, schedule);
      ASSERT_EQ(plain.out.size(), fused.out.size());
      for (size_t i = 0; i < plain.out.size(); ++i) {
        SCOPED_TRACE(i);
        ExpectSameBits(plain.out[i], fused.out[i]);
      }
      if (instructions == kAny) continue;
      EXPECT_EQ(fused.instructions, instructions) << fused.plan;
      int found = 0;
      for (const char* of : {" rows of ", " row of "})
        for (size_t at = 0; (at = fused.plan.find(of, at)) != std::string::npos; ++at) ++found;
      EXPECT_EQ(found, loops) << fused.plan;
    }
  }
}

const Shape kShapes[] = {{2, 16, 32}, {3, 5, 7},    {2, 1, 8}, {1, 333}, {5, 300},
                         {40, 3},     {1, 1, 4096}, {700, 64}, {9, 129}, {1000, 5}};

TEST(FuseRows, ANormIsOneInstruction) {
  for (const DType dtype : {DType::kF32, DType::kF64})
    for (const Shape& shape : kShapes) {
      if (dtype == DType::kF64 && shape.dim(-1) > 2048) continue;
      SCOPED_TRACE(shape.ToString());
      RowCase c(dtype);
      const Shape row{shape.dim(-1)};
      const std::string x = c.In(shape), scale = c.In(row), bias = c.In(row);
      c.b.Fetch(c.LayerNorm(x, scale, bias));
      ExpectRows(c, 1);
    }
}

TEST(FuseRows, ASoftmaxIsOneInstruction) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(shape.ToString());
    RowCase c;
    c.b.Fetch(c.Softmax(c.Unary("tanh", c.In(shape))));
    ExpectRows(c, 1);
  }
}

TEST(FuseRows, AReductionMayEndIt) {
  for (const char* type : {"sum", "mean", "max", "min"})
    for (const bool keep : {true, false}) {
      SCOPED_TRACE(type);
      RowCase c;
      const std::string x = c.In({6, 20}), y = c.In({6, 20});
      c.b.Fetch(c.Reduce(type, c.Unary("square", c.Binary("sub", x, y)), {1}, keep));
      ExpectRows(c, 1);
    }
}

TEST(FuseRows, AllOfATensorMayBeARow) {
  RowCase c;
  const std::string x = c.In({6, 20}), y = c.In({6, 20});
  const std::string sum = c.Reduce("sum", c.Binary("mul", x, y), {0, 1}, false);
  c.b.Fetch(c.Unary("sqrt", c.Unary("abs", sum)));
  ExpectRows(c, 1);
}

TEST(FuseRows, SeveralDimensionsMayMakeARow) {
  for (const Shape& shape : {Shape{2, 3, 4, 5}, Shape{2, 3, 4, 8}, Shape{1, 7, 1, 9}}) {
    RowCase c;
    const std::string x = c.In(shape);
    const Shape row{shape[2], shape[3]};
    c.b.Fetch(c.LayerNorm(x, c.In(row), c.In({1}), {2, 3}));
    ExpectRows(c, 1);
  }
}

// An operand of fewer dimensions than a row is repeated within rows: no loop over rows reads it.
TEST(FuseRows, ARowMayRepeatAnOperand) {
  for (const DType dtype : {DType::kF32, DType::kF64})
    for (const Ints& dims : {Ints{0, 1, 2}, Ints{1, 2}})
      for (const Shape& shape : {Shape{4, 4, 4}, Shape{2, 3, 40}, Shape{3, 4, 16}}) {
        SCOPED_TRACE(shape.ToString());
        RowCase c(dtype);
        const std::string x = c.In(shape), bias = c.In({shape[2]});
        c.b.Fetch(c.Reduce("mean", c.Unary("relu", c.Binary("add", x, bias)), dims, false));
        ExpectRows(c, 1, 0);
      }
  RowCase c;  // the dimension that it lacks is one
  c.b.Fetch(c.Reduce("sum", c.Binary("add", c.In({5, 1, 24}), c.In({24})), {1, 2}));
  ExpectRows(c, 1);
}

TEST(FuseRows, WhatIsReadElsewhereIsAnOutput) {
  RowCase c;
  const std::string a = c.Unary("relu", c.In({4, 24})), mean = c.Reduce("mean", a);
  const std::string d = c.Binary("sub", a, mean);
  c.b.Fetch(a).Fetch(mean).Fetch(c.Unary("softmax", d, {{"axis", int64_t{-1}}}));
  ExpectRows(c, 2);
}

TEST(FuseRows, OperandsMayBeOneARow) {
  for (const int64_t cols : {16, 11, 200, 203}) {
    RowCase c;
    const std::string x = c.In({5, cols}), row = c.In({5, 1}), one = c.In({1});
    const std::string y = c.Binary("mul", c.Binary("sub", row, x), one);
    const std::string sum = c.Binary("add", c.Reduce("sum", y), row);
    c.b.Fetch(c.Binary("div", one, c.Binary("mul", sum, y))).Fetch(sum);
    ExpectRows(c, 1);
  }
}

// As many rows as columns: the sums may lie in the memory of the column, which all rows read.
TEST(FuseRows, SumsMayTakeTheMemoryOfAColumn) {
  for (const int64_t n : {64, 67, 136}) {
    RowCase c;
    const std::string x = c.In({n, n}), w = c.Unary("softmax", c.In({n}), {{"axis", int64_t{-1}}});
    const std::string sum = c.Reduce("sum", c.Binary("mul", x, w), {-1}, false);
    c.b.Fetch(c.Unary("softmax", sum, {{"axis", int64_t{-1}}}));
    ExpectRows(c, 3, 0);
  }
}

// A softmax and a maximum of rows that hold NaN, infinities and -0.
TEST(FuseRows, NaNsAndInfinitiesGiveTheSameResults) {
  RowCase c;
  const std::string x = c.In({4, 9});
  float* const v = c.feeds[0].value.tensor().mutable_data<float>();
  v[3] = std::nanf("");
  v[12] = INFINITY;
  v[20] = -INFINITY;
  v[30] = -0.0f;
  c.b.Fetch(c.Softmax(x)).Fetch(c.Reduce("max", c.Unary("relu", x)));
  ExpectRows(c, kAny);
}

// Dimensions that the program leaves open may turn out to be repeated: then operators run apart.
TEST(FuseRows, OpenDimensionsMayBeRepeated) {
  for (const Shape& fed : {Shape{4, 8}, Shape{1, 8}}) {
    RowCase c;
    const std::string x = c.In({4, 8}, {-1, 8}), y = c.In(fed, {-1, 8});
    const std::string e = c.Unary("exp", y), z = c.Binary("add", x, e);
    c.b.Fetch(c.Binary("mul", e, c.Reduce("mean", z))).Fetch(c.Reduce("max", e));
    ExpectRows(c, 1, fed[0] == 1 ? 0 : 1);
  }
}

TEST(FuseRows, WithoutRowsOrElements) {
  RowCase c;
  const std::string x = c.In({0, 8}, {-1, 8});
  c.b.Fetch(c.Softmax(x));
  ExpectRows(c, 1);
}

// Each case breaks one condition of the fusion.
TEST(FuseRows, ReductionsThatAreNotFused) {
  {
    SCOPED_TRACE("the first dimension");
    RowCase c;
    c.b.Fetch(c.Reduce("sum", c.Unary("square", c.In({6, 20})), {0}));
    ExpectRows(c, 2, 0);
  }
  {
    SCOPED_TRACE("an open length");
    RowCase c;
    c.b.Fetch(c.Reduce("sum", c.Unary("square", c.In({6, 20}, {6, -1}))));
    ExpectRows(c, 2, 0);
  }
  {
    SCOPED_TRACE("long rows");
    RowCase c;
    c.b.Fetch(c.Reduce("sum", c.Unary("square", c.In({6, 4104}))));
    ExpectRows(c, 2, 0);
  }
  {
    SCOPED_TRACE("rows of different lengths");
    RowCase c;
    const std::string x = c.Unary("square", c.In({6, 20}));
    c.b.Fetch(c.Binary("add", c.Reduce("sum", x), c.Reduce("sum", x, {0, 1})));
    ExpectRows(c, kAny);
  }
  {
    SCOPED_TRACE("a reduction alone");
    RowCase c;
    c.b.Fetch(c.Reduce("sum", c.In({6, 20})));
    ExpectRows(c, 1, 0);
  }
  {
    SCOPED_TRACE("a product");
    RowCase c;
    c.b.Fetch(c.Reduce("prod", c.Unary("square", c.In({6, 20}))));
    ExpectRows(c, 2, 0);
  }
}

// Random programs of operators over rows.
TEST(FuseRows, RandomPrograms) {
  std::mt19937 random(7);
  const auto pick = [&](size_t n) { return static_cast<size_t>(random() % n); };
  for (int i = 0; i < 150; ++i) {
    SCOPED_TRACE(i);
    RowCase c(pick(4) == 0 ? DType::kF64 : DType::kF32);
    const auto rows = static_cast<int64_t>(1 + pick(6)), more = static_cast<int64_t>(1 + pick(3));
    const int64_t lengths[] = {3, 8, 20, 24, 131, 160};
    const int64_t cols = lengths[pick(6)];
    const Shape full{more, rows, cols};
    const Ints dims[] = {{2}, {1, 2}, {0, 1, 2}};
    const size_t axes = pick(2) == 0 ? 1 : 1 + pick(3);  // that make a row
    const Shape row{axes > 2 ? 1 : more, axes > 1 ? 1 : rows, 1};
    std::vector<std::string> fulls = {c.In(full), c.In(full)}, singles = {c.In(row)};
    const std::vector<std::string> small = {c.In({cols}), c.In({1, 1, cols}), c.In({1}),
                                            c.In({rows, cols})};
    const auto any = [&](const std::vector<std::string>& from) { return from[pick(from.size())]; };
    const char* const unary[] = {"tanh", "square", "relu", "sigmoid", "abs"};
    const char* const binary[] = {"add", "sub", "mul", "max"};
    const char* const reductions[] = {"sum", "mean", "max", "min"};
    for (size_t n = 4 + pick(12); n > 0; --n) {
      switch (pick(6)) {
        case 0:
          fulls.push_back(c.Unary(unary[pick(5)], any(fulls)));
          break;
        case 1:
          fulls.push_back(c.Binary(binary[pick(4)], any(fulls), any(fulls)));
          break;
        case 2:
          singles.push_back(c.Reduce(reductions[pick(4)], any(fulls), dims[axes - 1]));
          break;
        case 3:
          fulls.push_back(pick(2) == 0 ? c.Binary(binary[pick(4)], any(fulls), any(singles))
                                       : c.Binary(binary[pick(4)], any(singles), any(fulls)));
          break;
        case 4:
          if (axes == 1 && pick(4) == 0) {
            fulls.push_back(c.Binary(binary[pick(4)], any(singles), small[1]));
            break;
          }
          fulls.push_back(c.Binary(binary[pick(4)], any(fulls), any(small)));
          break;
        default:
          singles.push_back(pick(2) == 0 ? c.Unary(unary[pick(5)], any(singles))
                                         : c.Binary(binary[pick(4)], any(singles), any(singles)));
      }
    }
    c.b.Fetch(fulls.back()).Fetch(singles.back());
    if (pick(2) == 0) c.b.Fetch(any(fulls));
    ExpectRows(c, kAny);
  }
}

}  // namespace
}  // namespace heddle::testing
