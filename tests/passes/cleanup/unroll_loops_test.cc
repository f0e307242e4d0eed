// unroll_loops: small turns are written out, several become one where they are many; results keep
// their bits, and the file's operators are named where a run fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>

#include "passes/ir_text.h"
#include "passes/pass_manager.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<const ir::Program> Unrolled(const Program& program) {
  OptimizeOptions options{2, {}, {}};
  options.passes.only = {"unroll_loops", "fold_constants", "identity", "captures", "dead_ops"};
  options.passes.check_unchanged = options.passes.verify = true;
  auto result = passes::Optimize(program.impl(), std::make_shared<Scope>(), options);
  EXPECT_TRUE(result.ok()) << result.status().ToString();
  return result.ok() ? result->program : program.impl();
}
int Count(const ir::Program& p, const std::string& type) {
  int count = 0;
  for (const ir::Block& block : p.blocks)
    for (const ir::Op& op : block.ops) count += op.type() == type;
  return count;
}

// for (i = first; i < limit; i += step) { … }, once or in another loop, on small tensors.
class TinyLoop {
 public:
  explicit TinyLoop(uint32_t seed, int64_t turns) : rng_(seed) {
    shape_ = {1 + Pick(3), 1 + Pick(5)};
    b_.Feed("x", DType::kF32, shape_).Feed("many", DType::kI64, {1});
    carried_ = 1 + Pick(3);
    for (int k = 0; k < carried_; ++k) New("c" + std::to_string(k)).Scale("x", Carried(k), 1 + k);
    const int64_t first = Pick(5) - 2;
    nested_ = OneIn(3);
    if (nested_)
      Loop("j", 0, 2, 1, [&] { Loop("i", first, first + turns, 1, [&] { Body(); }); });
    else
      Loop("i", first, first + turns, 1, [&] { Body(); });
    for (int k = 0; k < carried_; ++k) b_.Fetch(Carried(k));
    if (!nested_ && OneIn(2)) b_.Fetch("i");
  }
  Program Build() const { return b_.Build(); }
  Tensor x(uint32_t seed) const { return RandomF32(shape_, seed); }
  bool nested() const { return nested_; }

 private:
  int Pick(int n) { return static_cast<int>(rng_() % static_cast<unsigned>(n)); }
  bool OneIn(int n) { return Pick(n) == 0; }
  ProgramBuilder& New(const std::string& name) { return b_.Var(name, DType::kF32, shape_); }
  static std::string Carried(int k) { return "c" + std::to_string(k); }

  template <typename Fn>
  void Loop(const std::string& i, int64_t first, int64_t limit, int64_t step, Fn&& fn) {
    const std::string n = "n_" + i, go = "go_" + i;
    b_.Var(i, DType::kI64, {1}).Fill(i, {1}, double(first), DType::kI64);
    b_.Var(n, DType::kI64, {1}).Fill(n, {1}, double(limit), DType::kI64);
    b_.Var(go, DType::kBool, {1}).Binary("less_than", i, n, go);
    const int outside = b_.current(), body = b_.Block(outside);
    b_.In(body);
    fn();
    const int way = Pick(3);
    if (way == 0) {  // as Paddle's front end counts
      const std::string next = "next_" + i, more = "more_" + i;
      b_.Var(next, DType::kI64, {1}).Scale(i, next, 1, double(step));
      b_.Var(more, DType::kBool, {1}).Binary("less_than", next, n, more);
      b_.Unary("assign", next, i).Unary("assign", more, go);
    } else {
      b_.Increment(i, double(step)).Binary("less_than", i, n, go);
    }
    b_.In(outside);
    std::vector<std::string> out = {i, go};
    for (int k = 0; k < carried_; ++k) out.push_back(Carried(k));
    b_.Op("while", {{"X", {i, n}}, {"Condition", {go}}}, {{"Out", out}, {"StepScopes", {}}},
          {{"sub_block", BlockRef{body}}});
  }

  void Body() {
    for (int left = 1 + Pick(5); left > 0; --left) {
      const std::string c = Carried(Pick(carried_)), d = Carried(Pick(carried_));
      const std::string t = "t" + std::to_string(names_++);
      New(t);
      switch (Pick(6)) {
        case 0:
          b_.Unary("tanh", c, t).Unary("assign", t, d);
          break;
        case 1:
          b_.Binary("elementwise_add", c, d, t).Unary("sigmoid", t, c);
          break;
        case 2:
          b_.Scale(c, c, 0.75, 0.125);
          break;
        case 3: {  // exchanges
          const std::string u = "u" + std::to_string(names_++);
          New(u).Unary("assign", c, t).Unary("assign", d, u);
          b_.Unary("assign", u, c).Unary("assign", t, d);
          break;
        }
        case 4: {  // the counter is read
          const std::string f = "f" + std::to_string(names_++);
          b_.Var(f, DType::kF32, {1})
              .Op("cast", {{"X", {"i"}}}, {{"Out", {f}}},
                  {{"in_dtype", int64_t{3}}, {"out_dtype", int64_t{5}}});
          b_.Binary("elementwise_add", c, f, t).Unary("tanh", t, d);
          break;
        }
        default:
          b_.Binary("elementwise_mul", c, "x", t).Unary("assign", t, d);
          break;
      }
    }
  }

  std::mt19937 rng_;
  ProgramBuilder b_;
  Shape shape_;
  int carried_ = 0, names_ = 0;
  bool nested_ = false;
};

std::vector<std::string> Results(const Program& program, const std::vector<heddle::Feed>& feeds,
                                 int level) {
  Executor executor({.threads = 1});
  std::vector<std::string> bits;
  const auto compiled = MustCompile(executor, program, nullptr, {.opt_level = level});
  for (const Tensor& t : MustRun(executor, compiled, feeds)) bits.push_back(Bits(t));
  return bits;
}

TEST(UnrollLoops, ResultsKeepTheirBits) {
  int gone = 0, joined = 0;
  for (uint32_t seed = 0; seed < 150; ++seed) {
    const int64_t turns = seed % 10 < 6 ? seed % 10 : 7 * (seed % 23);
    SCOPED_TRACE("seed " + std::to_string(seed) + ", turns " + std::to_string(turns));
    const TinyLoop loop(seed, turns);
    const Program program = loop.Build();
    const auto after = Unrolled(program);
    const int loops = Count(*after, "while");
    gone += loops == 0;
    joined +=
        loops > 0 && Count(*after, "increment") + Count(*after, "scale") >
                         Count(*program.impl(), "increment") + Count(*program.impl(), "scale");
    const std::vector<heddle::Feed> feeds = {{"x", loop.x(seed)}, {"many", I64({1}, {turns})}};
    EXPECT_EQ(Results(program, feeds, 2), Results(program, feeds, 0)) << ir::ToText(*after);
  }
  EXPECT_GT(gone, 40);
  EXPECT_GT(joined, 15);
}

// One loop around what `body` makes of "h".
template <typename Fn>
ProgramBuilder LoopOf(const Shape& shape, int64_t turns, Fn&& body_of,
                      const std::string& limit = "n") {
  ProgramBuilder b;
  b.Feed("h0", DType::kF32, shape).Feed("many", DType::kI64, {1});
  b.Var("h", DType::kF32, shape).Scale("h0", "h", 1);
  b.Var("i", DType::kI64, {1}).Fill("i", {1}, 0, DType::kI64);
  b.Var("n", DType::kI64, {1}).Fill("n", {1}, double(turns), DType::kI64);
  b.Var("go", DType::kBool, {1}).Binary("less_than", "i", limit, "go");
  const int body = b.Block(0);
  b.In(body).Var("t", DType::kF32, shape);
  body_of(b);
  b.Increment("i").Binary("less_than", "i", limit, "go").In(0);
  b.Op("while", {{"X", {"h", "i", limit}}, {"Condition", {"go"}}},
       {{"Out", {"h", "i", "go"}}, {"StepScopes", {}}}, {{"sub_block", BlockRef{body}}});
  b.Fetch("h");
  return b;
}
void Tanh(ProgramBuilder& b) { b.Unary("tanh", "h", "t").Unary("assign", "t", "h"); }

TEST(UnrollLoops, WhatIsLeftAlone) {
  const Shape small{2, 2};
  const auto loops = [](const ProgramBuilder& b) { return Count(*Unrolled(b.Build()), "while"); };
  EXPECT_EQ(loops(LoopOf(small, 4, Tanh)), 0);
  EXPECT_EQ(loops(LoopOf(small, 4, Tanh, "many")), 1) << "a number of turns that is fed";
  EXPECT_EQ(loops(LoopOf({40, 40}, 4, Tanh)), 1) << "turns with something to do";
  EXPECT_EQ(loops(LoopOf(small, 4,
                         [](ProgramBuilder& b) {
                           b.Op("gaussian_random", {}, {{"Out", {"t"}}}, {{"shape", Ints{2, 2}}});
                           b.Binary("elementwise_add", "h", "t", "h");
                         })),
            1)
      << "random numbers";
  EXPECT_EQ(loops(LoopOf(small, 4,
                         [](ProgramBuilder& b) {
                           b.Op("print", {{"In", {"h"}}}, {{"Out", {"t"}}});
                           b.Unary("assign", "t", "h");
                         })),
            1)
      << "side effects";
}

// A loop stays that alone is said to write what others read: it has no turns, or the body does not.
TEST(UnrollLoops, LoopsThatAreSaidToWrite) {
  for (const auto& [written, turns] : {std::pair(true, 0), {true, 1}, {false, 0}, {false, 1}}) {
    ProgramBuilder b;
    b.Feed("x", DType::kF32, {2, 2}).Var("y", DType::kF32, {2, 2});
    b.Var("i", DType::kI64, {1}).Fill("i", {1}, 0, DType::kI64);
    b.Var("n", DType::kI64, {1}).Fill("n", {1}, turns, DType::kI64);
    b.Var("go", DType::kBool, {1}).Binary("less_than", "i", "n", "go");
    if (written) b.Scale("x", "y", 2);
    const int body = b.Block(0);
    b.In(body);
    if (turns == 0) b.Scale("x", "y", 3);
    b.Increment("i", 1).Binary("less_than", "i", "n", "go");
    b.In(0).Op("while", {{"X", {"x", "i", "n"}}, {"Condition", {"go"}}},
               {{"Out", {"y", "i", "go"}}, {"StepScopes", {}}}, {{"sub_block", BlockRef{body}}});
    b.Fetch("y");
    EXPECT_EQ(Count(*Unrolled(b.Build()), "while"), written ? 0 : 1);
  }
}

// A loop whose first turn comes in any case; the others while i, `dtype`, is below a bound that is
// 2^doublings times `bound`.
Program LoopWithAFirstTurn(double first, double bound, DType dtype, int doublings, int conditions) {
  ProgramBuilder b;
  b.Feed("h0", DType::kF32, {2}).Var("h", DType::kF32, {2}).Scale("h0", "h", 1);
  b.Var("i", dtype, {1}).Fill("i", {1}, first, dtype);
  b.Var("n0", dtype, {1}).Fill("n0", {1}, bound, dtype);
  std::string n = "n0";
  for (int k = 1; k <= doublings; ++k) {
    const std::string half = std::exchange(n, "n" + std::to_string(k));
    b.Var(n, dtype, {1}).Binary("elementwise_add", half, half, n).Fetch(n);  // so it is not folded
  }
  b.Var("go", DType::kBool, {1}).Fill("go", {1}, 1, DType::kBool);
  const int body = b.Block(0);
  b.In(body).Scale("h", "h", 1, 1).Increment("i", 1);
  b.Var("c0", DType::kBool, {1}).Binary("less_than", "i", n, "c0");
  for (int k = 1; k <= conditions; ++k) {
    const std::string c = "c" + std::to_string(k), last = "c" + std::to_string(k - 1);
    b.Var(c, DType::kBool, {1}).Binary("logical_and", last, last, c);
  }
  b.Unary("assign", "c" + std::to_string(conditions), "go").In(0);
  b.Op("while", {{"X", {"h", "i", n}}, {"Condition", {"go"}}},
       {{"Out", {"h", "i", "go"}}, {"StepScopes", {}}}, {{"sub_block", BlockRef{body}}});
  return b.Fetch("h").Fetch("i").Build();
}

TEST(UnrollLoops, NumbersThatDoNotFit) {
  const std::vector<heddle::Feed> feeds = {{"h0", F32({2}, {1, 2})}};
  const double least = -9223372036854775808.0;
  for (const Program& p : {LoopWithAFirstTurn(5, least, DType::kI64, 0, 0),
                           LoopWithAFirstTurn(-7, least, DType::kI64, 0, 1),
                           LoopWithAFirstTurn(0, 1 << 30, DType::kI32, 1, 0),
                           LoopWithAFirstTurn(0, 1 << 30, DType::kI32, 2, 0)})
    EXPECT_EQ(Results(p, feeds, 2), Results(p, feeds, 0));
}

// Looked through operand by operand they would take years.
TEST(UnrollLoops, ChainsOfOperatorsThatReadOneValueTwice) {
  const std::vector<heddle::Feed> feeds = {{"h0", F32({2}, {1, 2})}};
  for (const Program& p : {LoopWithAFirstTurn(0, 10, DType::kI64, 0, 100),
                           LoopWithAFirstTurn(0, 0, DType::kI64, 100, 0)})
    EXPECT_EQ(Results(p, feeds, 2), Results(p, feeds, 0));
}

TEST(UnrollLoops, ManyTurnsBecomeFewer) {
  const auto after = Unrolled(LoopOf({4}, 1000, Tanh).Build());
  EXPECT_EQ(Count(*after, "while"), 1);
  EXPECT_GE(Count(*after, "tanh"), 8);
  EXPECT_LE(Count(*after, "tanh"), 40);
  // A second time it finds nothing to do.
  const Program once(after);
  EXPECT_EQ(ir::ToText(*Unrolled(once)), ir::ToText(*after));
}

// A decoder's keys: each turn adds a row.
TEST(UnrollLoops, ValuesThatGrow) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {1, 100}).Var("k", DType::kF32, {-1, 100}).Scale("x", "k", 1);
  b.Var("i", DType::kI64, {1}).Fill("i", {1}, 0, DType::kI64);
  b.Var("n", DType::kI64, {1}).Fill("n", {1}, 6, DType::kI64);
  b.Var("go", DType::kBool, {1}).Binary("less_than", "i", "n", "go");
  const int body = b.Block(0);
  b.In(body).Var("row", DType::kF32, {1, 100}).Var("next", DType::kF32, {-1, 100});
  b.Op("reduce_mean", {{"X", {"k"}}}, {{"Out", {"row"}}}, {{"dim", Ints{0}}, {"keep_dim", true}});
  b.Op("concat", {{"X", {"k", "row"}}}, {{"Out", {"next"}}}, {{"axis", int64_t{0}}});
  b.Unary("assign", "next", "k").Increment("i").Binary("less_than", "i", "n", "go").In(0);
  b.Op("while", {{"X", {"k", "i", "n"}}, {"Condition", {"go"}}},
       {{"Out", {"k", "i", "go"}}, {"StepScopes", {}}}, {{"sub_block", BlockRef{body}}});
  const Program program = b.Fetch("k").Build();
  EXPECT_EQ(Count(*Unrolled(program), "while"), 0);
  const std::vector<heddle::Feed> feeds = {{"x", RandomF32({1, 100}, 5)}};
  EXPECT_EQ(Results(program, feeds, 2), Results(program, feeds, 0));
}

// Written out, or several turns in one.
TEST(UnrollLoops, AFailureNamesTheFilesOperator) {
  for (const int64_t turns : {5, 1000}) {
    const auto b = LoopOf({2}, turns, [](ProgramBuilder& b) {
      b.Var("item", DType::kF32, {1});
      b.Op("gather", {{"X", {"h"}}, {"Index", {"i"}}}, {{"Out", {"item"}}});  // i reaches 2
      b.Binary("elementwise_add", "h", "item", "t").Unary("assign", "t", "h");
    });
    EXPECT_GT(Count(*Unrolled(b.Build()), "gather"), 1);
    std::vector<std::string> said;
    for (int level : {0, 2}) {
      Executor executor({.threads = 1});
      const auto compiled = MustCompile(executor, b.Build(), nullptr, {.opt_level = level});
      const auto failed =
          executor.Run(compiled, {{"h0", F32({2}, {1, 2})}, {"many", I64({1}, {5})}});
      ASSERT_FALSE(failed.ok());
      said.push_back(failed.status().ToString());
    }
    EXPECT_THAT(said[0], HasSubstr("(gather -> item)"));
    EXPECT_EQ(said[1], said[0]) << turns;
  }
}

}  // namespace
}  // namespace heddle::testing
