// Instructions whose shapes are found while running: the calls that are kept give what a plain
// evaluation gives, also where operands of one shape ask for outputs of another.
#include "executor/plan/shaped_calls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tests/support/plain_program.h"

namespace heddle::testing {
namespace {

using Numbers = PlainProgram::Numbers;
using Values = PlainProgram::Values;

// A loop of n turns in which `all` grows by the row `h` in each turn. The new row is made of random
// operators, whose outputs have as many rows as their operands have or as the counter says.
class GrowingProgram {
 public:
  explicit GrowingProgram(uint32_t seed) : rng_(seed), width_(1 + Pick(4)) {
    auto& b = p_.builder();
    b.Feed("x", DType::kF32, {1, width_}).Feed("n", DType::kI64, {1});
    p_.Var("w", {1}, DType::kI64).Fill("w", {1}, static_cast<float>(width_), DType::kI64);
    p_.Var("all", {-1, width_}).Unary("assign", "x", "all");
    p_.Var("h", {-1, width_}).Unary("assign", "x", "h");
    p_.Loop("i", "n", [&] { Turn(); });
    b.Fetch("h").Fetch("all");
  }
  Program Build() const { return p_.Build(); }
  int width() const { return width_; }
  Values Evaluate(const std::vector<heddle::Feed>& feeds) const {
    return p_.Evaluate(ValuesOf(feeds));
  }

 private:
  int Pick(int n) { return static_cast<int>(rng_() % static_cast<unsigned>(n)); }
  std::string Fresh() { return "v" + std::to_string(names_++); }
  std::string Op(const std::string& type, Slots inputs, const Attrs& attrs,
                 const std::function<Numbers(Values&)>& fn) {
    const std::string out = Fresh();
    p_.builder().Op(type, inputs, {{"Out", {out}}}, attrs);
    p_.Then([=](Values& v) { v[out] = fn(v); });
    return out;
  }

  void Turn() {
    p_.Var("rows", {1}, DType::kI64).Scale("i", "rows", 1, 1);
    p_.Var("of", {2}, DType::kI64);
    p_.builder().Op("concat", {{"X", {"rows", "w"}}}, {{"Out", {"of"}}}, {{"axis", int64_t{0}}});
    std::string x = "all";
    for (int count = 1 + Pick(4); count > 0; --count) x = Step(x);
    const std::string mean = Op("reduce_mean", {{"X", {x}}}, {{"dim", Ints{0}}, {"keep_dim", true}},
                                [x, width = width_](Values& v) {
                                  const Numbers& from = v.at(x);
                                  std::vector<double> sums(static_cast<size_t>(width));
                                  for (size_t i = 0; i < from.size(); ++i)
                                    sums[i % sums.size()] += double{from[i]};
                                  Numbers row;
                                  const double rows = static_cast<double>(from.size()) / width;
                                  for (double sum : sums)
                                    row.push_back(static_cast<float>(sum / rows));
                                  return row;
                                });
    const std::string sum = Fresh(), bounded = Fresh();
    p_.Var(sum, {-1, width_}).Binary("elementwise_add", mean, "h", sum);
    p_.Var(bounded, {-1, width_}).Unary("tanh", sum, bounded).Unary("assign", bounded, "h");
    p_.Unary("assign", WithRow("all"), "all");
  }

  std::string WithRow(const std::string& x) {
    return Op("concat", {{"X", {x, "h"}}}, {{"axis", int64_t{0}}}, [x](Values& v) {
      Numbers all = v.at(x);
      all.insert(all.end(), v.at("h").begin(), v.at("h").end());
      return all;
    });
  }

  std::string Step(const std::string& x) {
    const auto width = static_cast<size_t>(width_);
    switch (Pick(9)) {
      case 0: {
        const std::string out = Fresh();
        p_.Var(out, {-1, width_}).Scale(x, out, 0.5f, 0.125f);
        return out;
      }
      case 1: {
        const std::string out = Fresh();
        p_.Var(out, {-1, width_}).Unary("relu", x, out);
        return out;
      }
      case 2:
        return Op("elementwise_add", {{"X", {x}}, {"Y", {"h"}}}, {}, [x, width](Values& v) {
          Numbers y = v.at(x);
          for (size_t i = 0; i < y.size(); ++i) y[i] += v.at("h")[i % width];
          return y;
        });
      case 3:
        return WithRow(x);
      case 4:  // as many rows as the counter says, if there are so many
        return Op("slice", {{"Input", {x}}, {"EndsTensor", {"rows"}}},
                  {{"axes", Ints{0}}, {"starts", Ints{0}}, {"ends", Ints{-1}}},
                  [x, width](Values& v) {
                    Numbers y = v.at(x);
                    const auto rows = static_cast<size_t>(v.at("rows")[0]);
                    y.resize(std::min(y.size(), rows * width));
                    return y;
                  });
      case 5:
        return Op("fill_constant", {{"ShapeTensor", {"of"}}},
                  {{"dtype", int64_t{5}}, {"value", 0.5}}, [width](Values& v) {
                    return Numbers(static_cast<size_t>(v.at("rows")[0]) * width, 0.5f);
                  });
      case 6:
        return Op("expand_v2", {{"X", {"h"}}, {"Shape", {"of"}}}, {}, [](Values& v) {
          Numbers y;
          for (float k = 0; k < v.at("rows")[0]; ++k)
            y.insert(y.end(), v.at("h").begin(), v.at("h").end());
          return y;
        });
      case 7: {
        const std::string flat =
            Op("reshape2", {{"X", {x}}}, {{"shape", Ints{-1}}}, [x](Values& v) { return v.at(x); });
        return Op("reshape2", {{"X", {flat}}}, {{"shape", Ints{-1, width_}}},
                  [x](Values& v) { return v.at(x); });
      }
      default: {
        const std::string turned = Op("transpose2", {{"X", {x}}}, {{"axis", Ints{1, 0}}},
                                      [x](Values& v) { return v.at(x); });
        return Op("transpose2", {{"X", {turned}}}, {{"axis", Ints{1, 0}}},
                  [x](Values& v) { return v.at(x); });
      }
    }
  }

  std::mt19937 rng_;
  const int width_;
  PlainProgram p_;
  int names_ = 0;
};

void ExpectRuns(uint32_t seed, const std::vector<int64_t>& turns, int level, int threads) {
  const GrowingProgram growing(seed);
  const Program program = growing.Build();
  Executor executor({.threads = threads, .poison = true});
  const auto compiled = MustCompile(executor, program, nullptr, {.opt_level = level});
  for (const int64_t n : turns) {
    SCOPED_TRACE(std::to_string(seed) + " level " + std::to_string(level) + ", " +
                 std::to_string(n) + " turns");
    const std::vector<heddle::Feed> feeds = {
        {"x", RandomF32({1, growing.width()}, seed + static_cast<uint32_t>(n))},
        {"n", I64({1}, {n})}};
    const Values plain = growing.Evaluate(feeds);
    const std::vector<Tensor> got = MustRun(executor, compiled, feeds);
    ExpectPlain(got[0], plain.at("h"), "h");
    ExpectPlain(got[1], plain.at("all"), "all");
  }
}

TEST(ShapedCalls, LoopsOfValuesThatGrow) {
  for (uint32_t seed = 0; seed < 150; ++seed)
    for (int level : {0, 2}) ExpectRuns(seed, {5, 3, 9, 0, 9, 12}, level, 1 + seed % 2);
}

// More turns than calls are kept for, and runs in which those that were kept do not come again.
TEST(ShapedCalls, LoopsOfManyTurns) {
  for (uint32_t seed = 0; seed < 8; ++seed)
    for (int level : {0, 2}) ExpectRuns(seed, {150, 300, 10, 1100, 150}, level, 1);
}

// An operator that makes more or fewer rows of X, [r, c], as a fed operand says.
struct RowOperator {
  const char *type, *x, *operand;
  Attrs attrs;
  int least_rows, most_rows;  // of X
  // The operand for k rows of c columns, and the row of X of which row i is made.
  std::function<std::vector<int64_t>(int64_t k, int64_t c)> ask;
  std::function<int64_t(int64_t i, int64_t k, int64_t r)> from;
};
const std::vector<RowOperator> kRowOperators = {
    {"expand_v2",
     "X",
     "Shape",
     {},
     1,
     1,
     [](int64_t k, int64_t c) {
       return std::vector{k, c};
     },
     [](int64_t, int64_t, int64_t) { return int64_t{0}; }},
    {"tile",
     "X",
     "RepeatTimes",
     {},
     1,
     1,
     [](int64_t k, int64_t) {
       return std::vector{k, int64_t{1}};
     },
     [](int64_t, int64_t, int64_t) { return int64_t{0}; }},
    {"slice",
     "Input",
     "EndsTensor",
     {{"axes", Ints{0}}, {"starts", Ints{0}}, {"ends", Ints{-1}}},
     9,
     12,
     [](int64_t k, int64_t) { return std::vector{k}; },
     [](int64_t i, int64_t, int64_t) { return i; }},
    {"strided_slice",
     "Input",
     "EndsTensor",
     {{"axes", Ints{0}}, {"starts", Ints{0}}, {"ends", Ints{-1}}, {"strides", Ints{1}}},
     9,
     12,
     [](int64_t k, int64_t) { return std::vector{k}; },
     [](int64_t i, int64_t, int64_t) { return i; }},
    {"crop_tensor",
     "X",
     "Shape",
     {{"offsets", Ints{0, 0}}},
     9,
     12,
     [](int64_t k, int64_t c) {
       return std::vector{k, c};
     },
     [](int64_t i, int64_t, int64_t) { return i; }},
};

// Runs of one plan whose operands have the same shapes, and other contents.
TEST(ShapedCalls, OperandsThatAskForOtherShapes) {
  std::mt19937 rng(5);
  const auto pick = [&](int64_t n) { return static_cast<int64_t>(rng() % uint64_t(n)); };
  for (const RowOperator& op : kRowOperators)
    for (int round = 0; round < 12; ++round) {
      const int64_t r = op.least_rows + pick(op.most_rows - op.least_rows + 1), c = 1 + pick(5);
      const Tensor x = RandomF32({r, c}, rng());
      const int64_t numbers = static_cast<int64_t>(op.ask(1, c).size());
      ProgramBuilder b;
      b.Feed("x", DType::kF32, {r, c}).Feed("asked", DType::kI64, {numbers});
      b.Op(op.type, {{op.x, {"x"}}, {op.operand, {"asked"}}}, {{"Out", {"y"}}}, op.attrs);
      b.Scale("y", "z", 2).Fetch("z");
      Executor executor({.threads = 1, .poison = true});
      const auto compiled = MustCompile(executor, b.Build(), nullptr, {.opt_level = round % 3});
      for (int run = 0; run < 12; ++run) {
        const int64_t k = 1 + pick(9);
        SCOPED_TRACE(std::string(op.type) + ", " + std::to_string(k) + " rows");
        const Tensor z =
            MustRun(executor, compiled, {{"x", x}, {"asked", I64({numbers}, op.ask(k, c))}})[0];
        ASSERT_EQ(z.shape(), (Shape{k, c}));
        for (int64_t i = 0; i < k * c; ++i)
          ASSERT_EQ(z.data<float>()[i], 2 * x.data<float>()[op.from(i / c, k, r) * c + i % c]);
      }
    }
}

}  // namespace
}  // namespace heddle::testing
