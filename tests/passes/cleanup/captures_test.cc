// captures: variables that no turn of a loop changes are not written by it, those that turns change
// or exchange are, and results keep their bits and are those of a plain evaluation.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <set>
#include <utility>

#include "passes/ir_text.h"
#include "passes/pass_manager.h"
#include "tests/support/plain_program.h"

namespace heddle::testing {
namespace {

const Shape kShape{2, 3};

std::shared_ptr<const ir::Program> Captured(const Program& program) {
  OptimizeOptions options{1, {}, {}};
  options.passes.only = {"captures"};
  options.passes.check_unchanged = options.passes.verify = true;
  auto result = passes::Optimize(program.impl(), std::make_shared<Scope>(), options);
  EXPECT_TRUE(result.ok()) << result.status().ToString();
  return result.ok() ? result->program : program.impl();
}

// The names of the variables that operators of sub-blocks write, or that the operators which run
// sub-blocks list as written.
std::set<std::string> WrittenInside(const ir::Program& p) {
  std::set<std::string> names;
  for (const ir::Block& block : p.blocks)
    for (const ir::Op& op : block.ops)
      if (block.id > 0 || op.def->has(kControlFlow))
        for (const auto& slot : op.outputs)
          for (ir::VarId v : slot)
            if (v != ir::kNoVar) names.insert(p.vars[v].name);
  return names;
}

// The ways in which a turn treats one of the values that it carries.
enum class Way {
  kCopies,        // hands it on through copies
  kBothBranches,  // hands it on in both branches of a condition
  kSelects,       // as Paddle's front end joins branches
  kInnerLoop,     // hands it to a loop, which hands it on
  kPassedOn = kInnerLoop,
  kChanges,
  kOneBranchChanges,
  kBranchesDiffer,
  kSelectsAnother,
  kInnerLoopChanges,
  kRoundsTwice,    // computes, and computes back
  kRestores,       // changes it, reads it, and puts the old value back
  kTakesNeighbor,  // what another variable had
  kExchanges,      // with the next variable
  kWays,
};

// A loop of n turns that carries values, and treats them in random ways.
class CarriedValues {
 public:
  explicit CarriedValues(uint32_t seed) : rng_(seed) {
    p_.builder().Feed("n", DType::kI64, {1}).Param("w", DType::kF32, kShape);
    const int count = 2 + Pick(4);
    for (int k = 0; k < count; ++k) ways_.push_back(static_cast<Way>(Pick(int(Way::kWays))));
    for (int k = 0; k < count; ++k) {
      p_.builder().Feed("x" + std::to_string(k), DType::kF32, kShape);
      New(Name(k)).Unary(Pick(3) == 0 ? "tanh" : "assign", k == 0 ? "w" : "x" + std::to_string(k),
                         Name(k));
    }
    New("sum").Fill("sum", {2, 3}, 0);
    p_.Var("one", {1}, DType::kI64).Fill("one", {1}, 1, DType::kI64);
    p_.Loop("i", "n", [&] { Body(); });
    for (int k = 0; k < count; ++k) fetches_.push_back(Name(k));
    fetches_.push_back("sum");
    for (const std::string& name : fetches_) p_.builder().Fetch(name);
  }
  Program Build() const { return p_.Build(); }
  const std::vector<Way>& ways() const { return ways_; }
  static std::string Name(int k) { return "c" + std::to_string(k); }
  // All that the loop writes to the variable are copies of its own value.
  bool IsPassedOn(int k) const {
    const auto at = static_cast<size_t>(k);
    return ways_[at] <= Way::kPassedOn &&
           ways_[(at + ways_.size() - 1) % ways_.size()] != Way::kExchanges;
  }
  // The values of the fetched variables.
  std::vector<PlainProgram::Numbers> Evaluate(const std::vector<heddle::Feed>& feeds,
                                              const Tensor& w) const {
    PlainProgram::Values values = ValuesOf(feeds);
    values["w"] = NumbersOf(w);
    values = p_.Evaluate(std::move(values));
    std::vector<PlainProgram::Numbers> fetched;
    for (const std::string& name : fetches_) fetched.push_back(values.at(name));
    return fetched;
  }

 private:
  int Pick(int n) { return static_cast<int>(rng_() % static_cast<unsigned>(n)); }
  PlainProgram& New(const std::string& name) { return p_.Var(name, kShape); }
  std::string Fresh() {
    const std::string name = "t" + std::to_string(names_++);
    New(name);
    return name;
  }
  std::string Copy(const std::string& x) {
    const std::string name = Fresh();
    p_.Unary("assign", x, name);
    return name;
  }
  void Sum(const std::string& x) { p_.Binary("elementwise_add", "sum", x, "sum"); }

  void Body() {
    const std::string odd = "odd", even = "even";
    p_.Var(odd, {1}, DType::kBool).Binary("equal", "i", "one", odd);
    p_.Var(even, {1}, DType::kBool).Unary("logical_not", odd, even);
    for (size_t k = 0; k < ways_.size(); ++k)
      Carry(ways_[k], Name(int(k)), Name(int((k + 1) % ways_.size())));
    for (size_t k = 0; k < ways_.size(); ++k) Sum(Name(int(k)));
  }

  void Carry(Way way, const std::string& c, const std::string& next) {
    if (Pick(2) == 0) Sum(c);
    switch (way) {
      case Way::kCopies: {
        std::string t = Copy(c);
        for (int k = Pick(3); k > 0; --k) t = Copy(t);
        Sum(t);
        p_.Unary("assign", t, c);
        break;
      }
      case Way::kBothBranches:
      case Way::kBranchesDiffer: {
        const std::string r = Fresh();
        p_.Branch("odd", [&] { p_.Unary("assign", c, r); });
        p_.Branch("even",
                  [&] { p_.Unary("assign", way == Way::kBothBranches ? Copy(c) : Copy(next), r); });
        Sum(r);
        p_.Unary("assign", r, c);
        break;
      }
      case Way::kSelects:
      case Way::kSelectsAnother: {
        const std::string yes = Fresh(), no = Fresh(), mask = "m" + std::to_string(names_++);
        p_.Branch("odd", [&] { p_.Unary("assign", c, yes); });
        p_.Branch("even", [&] { p_.Unary("assign", way == Way::kSelects ? c : next, no); });
        p_.Var(mask, {1}, DType::kI32).Cast("odd", mask, DType::kBool, DType::kI32);
        const std::string chosen = Fresh();
        p_.builder().Op("select_input", {{"X", {no, yes}}, {"Mask", {mask}}}, {{"Out", {chosen}}});
        p_.Then([=](PlainProgram::Values& v) { v[chosen] = v.at(v.at(mask)[0] != 0 ? yes : no); });
        p_.Unary("assign", chosen, c);
        break;
      }
      case Way::kInnerLoop:
      case Way::kInnerLoopChanges: {
        const std::string d = Copy(c);
        p_.Loop("j" + std::to_string(names_++), "one", [&] {
          Sum(d);
          const std::string t = Copy(d);
          p_.Unary(way == Way::kInnerLoop ? "assign" : "tanh", t, d);
        });
        p_.Unary("assign", d, c);
        break;
      }
      case Way::kChanges:
        p_.Binary("elementwise_add", c, next, c).Unary("tanh", c, c);
        break;
      case Way::kOneBranchChanges:
        p_.Branch("odd", [&] { p_.Unary("tanh", c, c); });
        break;
      case Way::kRoundsTwice:
        p_.Scale(c, c, 2).Scale(c, c, 0.5);
        break;
      case Way::kRestores: {
        const std::string t = Copy(c);
        p_.Unary("tanh", c, c);
        Sum(c);
        p_.Unary("assign", t, c);
        break;
      }
      case Way::kTakesNeighbor:
        p_.Unary("assign", next, c);
        break;
      case Way::kExchanges: {
        const std::string s = Copy(c), t = Copy(next);
        p_.Unary("assign", t, c).Unary("assign", s, next);
        break;
      }
      case Way::kWays:
        break;
    }
  }

  std::mt19937 rng_;
  PlainProgram p_;
  std::vector<Way> ways_;
  std::vector<std::string> fetches_;
  int names_ = 0;
};

Tensor Weights() { return RandomF32(kShape, 99); }

std::vector<Tensor> Fetched(const Program& program, const std::vector<heddle::Feed>& feeds,
                            const CompileOptions& options) {
  Executor executor({.threads = 1});
  auto scope = std::make_shared<Scope>();
  scope->Set("w", Weights());
  return MustRun(executor, MustCompile(executor, program, scope, options), feeds);
}
std::vector<std::string> Results(const Program& program, const std::vector<heddle::Feed>& feeds,
                                 const CompileOptions& options) {
  std::vector<std::string> bits;
  for (const Tensor& t : Fetched(program, feeds, options)) bits.push_back(Bits(t));
  return bits;
}

// Fetches are those of a plain evaluation at level 0, with the same bits at the others.
void ExpectAtAllLevels(const Program& program, const std::vector<heddle::Feed>& feeds,
                       const std::vector<PlainProgram::Numbers>& plain) {
  const std::vector<Tensor> fetched = Fetched(program, feeds, {.opt_level = 0});
  ASSERT_EQ(fetched.size(), plain.size());
  std::vector<std::string> expected;
  for (size_t k = 0; k < plain.size(); ++k) {
    ExpectPlain(fetched[k], plain[k], "fetch " + std::to_string(k));
    expected.push_back(Bits(fetched[k]));
  }
  for (int level : {1, 2})
    EXPECT_EQ(Results(program, feeds, {.opt_level = level}), expected) << "level " << level;
}
PlainProgram::Numbers Of(const PlainProgram::Numbers& x, const std::function<float(float)>& fn) {
  PlainProgram::Numbers y;
  for (float e : x) y.push_back(fn(e));
  return y;
}

TEST(Captures, WhatIsPassedOnIsNotWrittenAndTheRestIs) {
  for (uint32_t seed = 0; seed < 120; ++seed) {
    SCOPED_TRACE(seed);
    const CarriedValues loop(seed);
    const Program program = loop.Build();
    const auto captured = Captured(program);
    const std::set<std::string> written = WrittenInside(*captured);
    std::vector<PlainProgram::Numbers> first;
    std::vector<bool> changes(loop.ways().size());
    for (const int64_t turns : {0, 1, 2, 3}) {
      std::vector<heddle::Feed> feeds = {{"n", I64({1}, {turns})}};
      for (uint32_t k = 0; k < loop.ways().size(); ++k)
        feeds.push_back({"x" + std::to_string(k), RandomF32(kShape, 7 * seed + k)});
      SCOPED_TRACE(std::to_string(turns) + " turns");
      const auto plain = loop.Evaluate(feeds, Weights());
      ExpectAtAllLevels(program, feeds, plain);
      if (turns == 0) first = plain;
      for (size_t k = 0; k < changes.size(); ++k) changes[k] = changes[k] || plain[k] != first[k];
    }
    for (size_t k = 0; k < changes.size(); ++k) {
      const bool is_written = written.count(CarriedValues::Name(int(k))) > 0;
      EXPECT_FALSE(is_written && loop.IsPassedOn(int(k))) << k << "\n" << ir::ToText(*captured);
      EXPECT_TRUE(is_written || !changes[k]) << k << "\n" << ir::ToText(*captured);
    }
  }
}

// A loop that carries a parameter, and one that reads it.
Program Products(bool carries) {
  ProgramBuilder b;
  const Shape square{4, 4};
  b.Feed("x", DType::kF32, square).Param("w", DType::kF32, square);
  b.Var("h", DType::kF32, square).Scale("x", "h", 1);
  b.Var("i", DType::kI64, {1}).Fill("i", {1}, 0, DType::kI64);
  b.Var("n", DType::kI64, {1}).Fill("n", {1}, 5, DType::kI64);
  b.Var("go", DType::kBool, {1}).Binary("less_than", "i", "n", "go");
  if (carries) b.Var("c", DType::kF32, square).Unary("assign", "w", "c");
  const int body = b.Block(0);
  b.In(body);
  b.Var("p", DType::kF32, square).Binary("matmul_v2", "h", carries ? "c" : "w", "p");
  b.Unary("tanh", "p", "h");
  if (carries) b.Var("d", DType::kF32, square).Unary("assign", "c", "d").Unary("assign", "d", "c");
  b.Increment("i").Binary("less_than", "i", "n", "go").In(0);
  std::vector<std::string> in = {"i", "n", "h"}, out = {"i", "go", "h"};
  in.push_back(carries ? "c" : "w");
  if (carries) out.push_back("c");
  b.Op("while", {{"X", in}, {"Condition", {"go"}}}, {{"Out", out}, {"StepScopes", {}}},
       {{"sub_block", BlockRef{body}}});
  return b.Fetch("h").Build();
}

TEST(Captures, ACarriedParameterIsReadAsOne) {
  const auto text = [](bool carries) { return ir::ToText(*Captured(Products(carries))); };
  EXPECT_EQ(text(true), text(false));
}

TEST(Captures, TheLoopsConditionIsLeftAlone) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, kShape).Feed("go", DType::kBool, {1});
  b.Var("h", DType::kF32, kShape).Scale("x", "h", 1);
  b.Var("c", DType::kBool, {1}).Unary("assign", "go", "c");
  const int body = b.Block(0);
  b.In(body).Unary("tanh", "h", "h");
  b.Var("t", DType::kBool, {1}).Unary("assign", "c", "t").Unary("assign", "t", "c").In(0);
  b.Op("while", {{"X", {"h", "c"}}, {"Condition", {"c"}}},
       {{"Out", {"h", "c"}}, {"StepScopes", {}}}, {{"sub_block", BlockRef{body}}});
  const Program program = b.Fetch("h").Build();
  EXPECT_EQ(WrittenInside(*Captured(program)).count("c"), 1u);
}

TEST(Captures, ArraysThatNobodyWritesAreNotCopied) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, kShape).Var("h", DType::kF32, kShape).Scale("x", "h", 1);
  b.Var("i", DType::kI64, {1}).Fill("i", {1}, 0, DType::kI64);
  b.Var("n", DType::kI64, {1}).Fill("n", {1}, 3, DType::kI64);
  b.Array("first").Array("items");
  for (int k = 0; k < 3; ++k) {
    const std::string at = "at" + std::to_string(k), x = "x" + std::to_string(k);
    b.Fill(at, {1}, k, DType::kI64).Var(x, DType::kF32, kShape).Scale("x", x, k + 1);
    b.Op("write_to_array", {{"X", {x}}, {"I", {at}}}, {{"Out", {"first"}}});
  }
  b.Unary("assign", "first", "items").Binary("less_than", "i", "n", "go");
  const int body = b.Block(0);
  b.In(body).Var("r", DType::kF32, kShape);
  b.Op("read_from_array", {{"X", {"items"}}, {"I", {"i"}}}, {{"Out", {"r"}}});
  b.Binary("elementwise_add", "h", "r", "h");
  b.Array("same").Unary("assign", "items", "same").Unary("assign", "same", "items");
  b.Increment("i").Binary("less_than", "i", "n", "go").In(0);
  b.Op("while", {{"X", {"h", "i", "n", "items"}}, {"Condition", {"go"}}},
       {{"Out", {"h", "i", "go", "items"}}, {"StepScopes", {}}}, {{"sub_block", BlockRef{body}}});
  const Program program = b.Fetch("h").Build();
  const std::string text = ir::ToText(*Captured(program));
  EXPECT_EQ(text.find("assign("), std::string::npos) << text;
  const Tensor x = RandomF32(kShape, 3);
  ExpectAtAllLevels(program, {{"x", x}}, {Of(Floats(x), [](float e) { return 7 * e; })});
}

// Operators that write an array change the one that is there: what it is a copy of is needed, even
// where nobody reads the array.
TEST(Captures, ArraysThatAreChangedInPlaceAreCopied) {
  for (uint32_t seed = 0; seed < 64; ++seed) {
    SCOPED_TRACE(seed);
    const bool is_read = seed & 1, nested = seed & 2, passes = seed & 4, copies = seed & 8;
    const bool pops = seed & 16, doubled = seed & 32;
    ProgramBuilder b;
    b.Feed("x", DType::kF32, kShape).Var("h", DType::kF32, kShape).Scale("x", "h", 1);
    b.Var("c", DType::kF32, kShape).Unary("assign", "x", "c");
    for (const char* name : {"i", "j", "zero"})
      b.Var(name, DType::kI64, {1}).Fill(name, {1}, 0, DType::kI64);
    b.Var("n", DType::kI64, {1}).Fill("n", {1}, 3, DType::kI64);
    b.Var("one", DType::kI64, {1}).Fill("one", {1}, 1, DType::kI64);
    b.Array("first").Array("items").Array("same");
    for (int k = 0; k < 4; ++k) b.Op("list_insert", {{"item", {"x"}}}, {{"Out", {"first"}}});
    b.Unary("assign", "first", "items").Binary("less_than", "i", "n", "go");
    if (doubled) b.Unary("assign", "items", "same").Unary("assign", "same", "items");
    const int body = b.Block(0);
    b.In(body).Unary("tanh", "h", "h").Binary("elementwise_add", "h", "c", "h");
    const auto change = [&] {
      if (pops)
        b.Op("list_erase", {}, {{"Out", {"items"}}, {"item", {"last"}}});
      else
        b.Op("list_set_item", {{"index", {"i"}}, {"item", {"h"}}}, {{"Out", {"items"}}});
    };
    if (nested) {
      b.Fill("j", {1}, 0, DType::kI64).Binary("less_than", "j", "one", "on");
      const int inner = b.Block(body);
      b.In(inner);
      change();
      b.Increment("j").Binary("less_than", "j", "one", "on").In(body);
      b.Op("while", {{"X", {"h", "i", "j", "one", "items"}}, {"Condition", {"on"}}},
           {{"Out", {"j", "on", "items"}}, {"StepScopes", {}}}, {{"sub_block", BlockRef{inner}}});
    } else {
      change();
    }
    if (passes) b.Var("d", DType::kF32, kShape).Unary("assign", "c", "d").Unary("assign", "d", "c");
    if (copies) b.Unary("assign", "items", "same").Unary("assign", "same", "items");
    b.Increment("i").Binary("less_than", "i", "n", "go").In(0);
    b.Op("while", {{"X", {"h", "i", "j", "n", "one", "items", "c"}}, {"Condition", {"go"}}},
         {{"Out", {"h", "i", "j", "go", "items", "c"}}, {"StepScopes", {}}},
         {{"sub_block", BlockRef{body}}});
    if (is_read) {
      b.Var("r", DType::kF32, kShape);
      b.Op("list_item", {{"list", {"items"}}, {"index", {"zero"}}}, {{"Out", {"r"}}});
      b.Fetch("r");
    }
    const Program program = b.Fetch("h").Build();
    const Tensor x = RandomF32(kShape, seed);
    const auto turn = [](float h, float e) { return std::tanh(h) + e; };
    std::vector<PlainProgram::Numbers> plain;
    // Item 0 is what the first turn put there, or the last one that was not taken away.
    if (is_read) plain.push_back(Of(Floats(x), [&](float e) { return pops ? e : turn(e, e); }));
    plain.push_back(Of(Floats(x), [&](float e) { return turn(turn(turn(e, e), e), e); }));
    ExpectAtAllLevels(program, {{"x", x}}, plain);
  }
}

// Copies of copies, which a loop and a loop inside it read: all are read at the source.
TEST(Captures, ChainsOfCopiesAreReadAtTheirSource) {
  constexpr int kCopies = 20;
  ProgramBuilder b;
  b.Feed("x", DType::kF32, kShape).Var("h", DType::kF32, kShape).Scale("x", "h", 1);
  b.Var("c0", DType::kF32, kShape).Scale("x", "c0", 2);
  for (int k = 1; k <= kCopies; ++k) {
    const std::string copy = "c" + std::to_string(k);
    b.Var(copy, DType::kF32, kShape).Unary("assign", "c" + std::to_string(k - 1), copy);
  }
  b.Var("n", DType::kI64, {1}).Fill("n", {1}, 2, DType::kI64);
  const auto loop = [&](const std::string& i, auto&& fn) {
    const std::string go = "go_" + i;
    b.Var(i, DType::kI64, {1}).Fill(i, {1}, 0, DType::kI64).Binary("less_than", i, "n", go);
    const int outside = b.current(), body = b.Block(outside);
    b.In(body);
    for (int k = 1; k <= kCopies; ++k)
      if (k % 3 != 0) b.Binary("elementwise_add", "h", "c" + std::to_string(k), "h");
    fn();
    b.Increment(i).Binary("less_than", i, "n", go).In(outside);
    std::vector<std::string> reads = {i, "n", "h"};
    for (int k = 1; k <= kCopies; ++k) reads.push_back("c" + std::to_string(k));
    b.Op("while", {{"X", reads}, {"Condition", {go}}}, {{"Out", {i, go, "h"}}, {"StepScopes", {}}},
         {{"sub_block", BlockRef{body}}});
  };
  loop("i", [&] { loop("j", [] {}); });
  const Program program = b.Fetch("h").Build();
  const std::string text = ir::ToText(*Captured(program));
  EXPECT_EQ(text.find("assign("), std::string::npos) << text;
  // Each body adds 14 copies of 2 x: twice the outer one, four times the inner one.
  const Tensor x = RandomF32(kShape, 5);
  ExpectAtAllLevels(program, {{"x", x}},
                    {Of(Floats(x), [](float e) { return e + (2 + 4) * 14 * 2 * e; })});
}

// A loop may say that it writes what nothing in it writes. With the pass, too, the run says that
// this has no value.
TEST(Captures, WhatIsOnlyListedStaysListed) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, kShape).Var("v", DType::kF32, kShape).Unary("assign", "x", "v");
  b.Var("never", DType::kF32, kShape).Var("n", DType::kI64, {1}).Fill("n", {1}, 2, DType::kI64);
  b.Var("i", DType::kI64, {1}).Fill("i", {1}, 0, DType::kI64).Binary("less_than", "i", "n", "go");
  const int outside = b.current(), body = b.Block(outside);
  b.In(body).Var("w", DType::kF32, kShape).Unary("assign", "v", "w").Unary("assign", "w", "v");
  b.Increment("i").Binary("less_than", "i", "n", "go").In(outside);
  b.Op("while", {{"X", {"i", "n", "v"}}, {"Condition", {"go"}}},
       {{"Out", {"i", "go", "v", "never"}}, {"StepScopes", {}}}, {{"sub_block", BlockRef{body}}});
  const Program program = b.Fetch("never").Build();
  const auto written = WrittenInside(*Captured(program));
  EXPECT_EQ(written.count("v"), 0u);
  EXPECT_EQ(written.count("never"), 1u);
  for (const int level : {0, 1, 2}) {
    Executor executor({.threads = 1});
    auto compiled = executor.Compile(program, std::make_shared<Scope>(), {.opt_level = level});
    ASSERT_TRUE(compiled.ok()) << "level " << level << ": " << compiled.status().ToString();
    const auto out = executor.Run(*compiled, {{"x", RandomF32(kShape, 1)}});
    EXPECT_NE(out.status().ToString().find("'never'"), std::string::npos)
        << "level " << level << ": " << out.status().ToString();
  }
}

}  // namespace
}  // namespace heddle::testing
