// unroll_loops: small turns are written out, several become one where they are many; results keep
// their bits and are those of a plain evaluation, and the file's operators are named where a run
// fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>

#include "passes/ir_text.h"
#include "passes/pass_manager.h"
#include "tests/support/plain_program.h"

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
  TinyLoop(uint32_t seed, int64_t turns) : rng_(seed) {
    shape_ = {1 + Pick(3), 1 + Pick(5)};
    p_.builder().Feed("x", DType::kF32, shape_).Feed("many", DType::kI64, {1});
    carried_ = 1 + Pick(3);
    for (int k = 0; k < carried_; ++k)
      New("c" + std::to_string(k)).Scale("x", Carried(k), static_cast<float>(1 + k));
    const int64_t first = Pick(5) - 2, step = OneIn(2) ? 1 : 2 + Pick(2);
    const int64_t limit = first + turns * step - (turns > 0 ? Pick(static_cast<int>(step)) : 0);
    nested_ = OneIn(3);
    if (nested_)
      Loop("j", 0, 2, 1, [&] { Loop("i", first, limit, step, [&] { Body(); }); });
    else
      Loop("i", first, limit, step, [&] { Body(); });
    for (int k = 0; k < carried_; ++k) fetches_.push_back(Carried(k));
    if (!nested_ && OneIn(2)) fetches_.push_back("i");
    for (const std::string& name : fetches_) p_.builder().Fetch(name);
  }
  Program Build() const { return p_.Build(); }
  Tensor x(uint32_t seed) const { return RandomF32(shape_, seed); }
  // The fetched variables, and their values.
  const std::vector<std::string>& fetches() const { return fetches_; }
  PlainProgram::Values Evaluate(const std::vector<heddle::Feed>& feeds) const {
    return p_.Evaluate(ValuesOf(feeds));
  }

 private:
  int Pick(int n) { return static_cast<int>(rng_() % static_cast<unsigned>(n)); }
  bool OneIn(int n) { return Pick(n) == 0; }
  PlainProgram& New(const std::string& name) { return p_.Var(name, shape_); }
  static std::string Carried(int k) { return "c" + std::to_string(k); }

  template <typename Fn>
  void Loop(const std::string& i, int64_t first, int64_t limit, int64_t step, Fn&& fn) {
    const std::string n = "n_" + i, go = "go_" + i;
    const auto by = static_cast<float>(step);
    p_.Var(n, {1}, DType::kI64).Fill(n, {1}, static_cast<float>(limit), DType::kI64);
    if (Pick(3) > 0) {
      p_.Loop(i, n, fn, static_cast<float>(first), by);
      return;
    }
    // As Paddle's front end counts.
    const std::string next = "next_" + i, more = "more_" + i;
    p_.Var(i, {1}, DType::kI64).Fill(i, {1}, static_cast<float>(first), DType::kI64);
    p_.Var(go, {1}, DType::kBool).Binary("less_than", i, n, go);
    p_.While(go, [&] {
      fn();
      p_.Var(next, {1}, DType::kI64).Scale(i, next, 1, by);
      p_.Var(more, {1}, DType::kBool).Binary("less_than", next, n, more);
      p_.Unary("assign", next, i).Unary("assign", more, go);
    });
  }

  void Body() {
    for (int left = 1 + Pick(5); left > 0; --left) {
      const std::string c = Carried(Pick(carried_)), d = Carried(Pick(carried_));
      const std::string t = "t" + std::to_string(names_++);
      New(t);
      switch (Pick(6)) {
        case 0:
          p_.Unary("tanh", c, t).Unary("assign", t, d);
          break;
        case 1:
          p_.Binary("elementwise_add", c, d, t).Unary("sigmoid", t, c);
          break;
        case 2:
          p_.Scale(c, c, 0.75f, 0.125f);
          break;
        case 3: {  // exchanges
          const std::string u = "u" + std::to_string(names_++);
          New(u).Unary("assign", c, t).Unary("assign", d, u);
          p_.Unary("assign", u, c).Unary("assign", t, d);
          break;
        }
        case 4: {  // the counter is read
          const std::string f = "f" + std::to_string(names_++);
          p_.Var(f, {1}).Cast("i", f, DType::kI64, DType::kF32);
          p_.Binary("elementwise_add", c, f, t).Unary("tanh", t, d);
          break;
        }
        default:
          p_.Binary("elementwise_mul", c, "x", t).Unary("assign", t, d);
          break;
      }
    }
  }

  std::mt19937 rng_;
  PlainProgram p_;
  Shape shape_;
  int carried_ = 0, names_ = 0;
  bool nested_ = false;
  std::vector<std::string> fetches_;
};

std::vector<Tensor> Fetched(const Program& program, const std::vector<heddle::Feed>& feeds,
                            int level) {
  Executor executor({.threads = 1});
  return MustRun(executor, MustCompile(executor, program, nullptr, {.opt_level = level}), feeds);
}
std::vector<std::string> Results(const Program& program, const std::vector<heddle::Feed>& feeds,
                                 int level) {
  std::vector<std::string> bits;
  for (const Tensor& t : Fetched(program, feeds, level)) bits.push_back(Bits(t));
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
    const PlainProgram::Values plain = loop.Evaluate(feeds);
    const std::vector<Tensor> got = Fetched(program, feeds, 2);
    for (size_t k = 0; k < got.size(); ++k)
      ExpectPlain(got[k], plain.at(loop.fetches()[k]), loop.fetches()[k]);
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

// Runs LoopWithAFirstTurn, which must end after so many turns.
void ExpectTurns(const Program& program, double first, float turns) {
  const std::vector<heddle::Feed> feeds = {{"h0", F32({2}, {1, 2})}};
  for (int level : {0, 1, 2}) {
    const std::vector<Tensor> out = Fetched(program, feeds, level);
    EXPECT_EQ(Floats(out[out.size() - 2]), (std::vector<float>{1 + turns, 2 + turns})) << level;
    const Tensor& i = out.back();
    const int64_t number =
        i.dtype() == DType::kI32 ? int64_t{*i.data<int32_t>()} : *i.data<int64_t>();
    EXPECT_EQ(number, static_cast<int64_t>(first) + static_cast<int64_t>(turns)) << level;
  }
}

TEST(UnrollLoops, NumbersThatDoNotFit) {
  const double least = -9223372036854775808.0;
  ExpectTurns(LoopWithAFirstTurn(5, least, DType::kI64, 0, 0), 5, 1);
  ExpectTurns(LoopWithAFirstTurn(-7, least, DType::kI64, 0, 1), -7, 1);
  // Doubled once, 2^30 becomes -2^31; twice, 0.
  ExpectTurns(LoopWithAFirstTurn(0, 1 << 30, DType::kI32, 1, 0), 0, 1);
  ExpectTurns(LoopWithAFirstTurn(0, 1 << 30, DType::kI32, 2, 0), 0, 1);
}

// Looked through operand by operand they would take years.
TEST(UnrollLoops, ChainsOfOperatorsThatReadOneValueTwice) {
  ExpectTurns(LoopWithAFirstTurn(0, 10, DType::kI64, 0, 100), 0, 10);
  ExpectTurns(LoopWithAFirstTurn(0, 0, DType::kI64, 100, 0), 0, 1);
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

// What all loops of a program add to it is bounded. The loops behind that stay, but for those that
// add nothing, of one turn.
TEST(UnrollLoops, ManyLoopsAddABoundedNumberOfOperators) {
  constexpr int kLoops = 500, kOfOneTurn = 50, kMostAdded = 1 << 15;
  PlainProgram p;
  p.builder().Feed("x", DType::kF32, {2});
  p.Var("h", {2}).Unary("assign", "x", "h");
  p.Var("one", {1}, DType::kI64).Fill("one", {1}, 1, DType::kI64);
  p.Var("many", {1}, DType::kI64).Fill("many", {1}, 50, DType::kI64);
  for (int k = 0; k < kLoops; ++k) {
    const std::string number = std::to_string(k), t = "t" + number;
    p.Loop("i" + number, k % (kLoops / kOfOneTurn) == 0 ? "one" : "many",
           [&] { p.Var(t, {2}).Unary("tanh", "h", t).Unary("sigmoid", t, "h"); });
  }
  p.builder().Fetch("h");
  const Program program = p.Build();
  const auto after = Unrolled(program);
  const auto operators = [](const ir::Program& of) {
    size_t count = 0;
    for (const ir::Block& block : of.blocks) count += block.ops.size();
    return static_cast<int>(count);
  };
  const int added = operators(*after) - operators(*program.impl());
  EXPECT_LE(added, kMostAdded);
  EXPECT_GT(added, kMostAdded * 9 / 10);
  EXPECT_GT(Count(*after, "while"), 0);
  EXPECT_LT(Count(*after, "while"), kLoops - kOfOneTurn);
  const std::vector<heddle::Feed> feeds = {{"x", RandomF32({2}, 3)}};
  EXPECT_EQ(Results(program, feeds, 2), Results(program, feeds, 0));
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
  // The mean of equal rows is such a row.
  const std::vector<float> x = Floats(feeds[0].value.tensor());
  PlainProgram::Numbers rows;
  for (int k = 0; k < 7; ++k) rows.insert(rows.end(), x.begin(), x.end());
  ExpectPlain(Fetched(program, feeds, 2)[0], rows);
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
