// captures: variables that no turn of a loop changes are not written by it; what turns change or
// exchange stays, and results keep their bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "passes/ir_text.h"
#include "passes/pass_manager.h"
#include "tests/support/program_builder.h"

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

// The variables that operators of sub-blocks write, by name, and that the operators list which run
// them.
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

// What a turn does with one of the values that it carries.
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

// A loop of n turns that carries values, and what it may do with them, at random.
class CarriedValues {
 public:
  CarriedValues(uint32_t seed) : rng_(seed), b_() {
    b_.Feed("n", DType::kI64, {1}).Param("w", DType::kF32, kShape);
    const int count = 2 + Pick(4);
    for (int k = 0; k < count; ++k) ways_.push_back(static_cast<Way>(Pick(int(Way::kWays))));
    for (int k = 0; k < count; ++k) {
      b_.Feed("x" + std::to_string(k), DType::kF32, kShape);
      New(Name(k)).Unary(Pick(3) == 0 ? "tanh" : "assign", k == 0 ? "w" : "x" + std::to_string(k),
                         Name(k));
    }
    New("sum").Fill("sum", {2, 3}, 0);
    b_.Var("one", DType::kI64, {1}).Fill("one", {1}, 1, DType::kI64);
    Loop("n", "i", [&] { Body(); });
    for (int k = 0; k < count; ++k) b_.Fetch(Name(k));
    b_.Fetch("sum");
  }
  Program Build() const { return b_.Build(); }
  const std::vector<Way>& ways() const { return ways_; }
  static std::string Name(int k) { return "c" + std::to_string(k); }
  // All that the loop writes to the variable are copies of what it holds.
  bool IsPassedOn(int k) const {
    const auto at = static_cast<size_t>(k);
    return ways_[at] <= Way::kPassedOn &&
           ways_[(at + ways_.size() - 1) % ways_.size()] != Way::kExchanges;
  }

 private:
  int Pick(int n) { return static_cast<int>(rng_() % static_cast<unsigned>(n)); }
  ProgramBuilder& New(const std::string& name) { return b_.Var(name, DType::kF32, kShape); }
  std::string Fresh() {
    const std::string name = "t" + std::to_string(names_++);
    New(name);
    return name;
  }
  std::string Copy(const std::string& x) {
    const std::string name = Fresh();
    b_.Unary("assign", x, name);
    return name;
  }

  template <typename Fn>
  void Loop(const std::string& limit, const std::string& i, Fn&& fn) {
    const std::string go = "go_" + i;
    b_.Var(i, DType::kI64, {1}).Fill(i, {1}, 0, DType::kI64);
    b_.Var(go, DType::kBool, {1}).Binary("less_than", i, limit, go);
    const int outside = b_.current(), body = b_.Block(outside);
    b_.In(body);
    fn();
    b_.Increment(i).Binary("less_than", i, limit, go).In(outside);
    b_.Op("while", {{"X", {i, limit}}, {"Condition", {go}}},
          {{"Out", Written(body, {i, go})}, {"StepScopes", {}}}, {{"sub_block", BlockRef{body}}});
  }
  template <typename Fn>
  void Branch(const std::string& condition, Fn&& fn) {
    const int outside = b_.current(), body = b_.Block(outside);
    b_.In(body);
    fn();
    b_.In(outside);
    b_.Op("conditional_block", {{"Cond", {condition}}, {"Input", {}}},
          {{"Out", Written(body, {})}, {"Scope", {}}},
          {{"sub_block", BlockRef{body}}, {"is_scalar_condition", true}});
  }
  // The variables of outer blocks that a block writes.
  std::vector<std::string> Written(int block, std::vector<std::string> also) {
    std::set<std::string> own;
    for (const auto& var : b_.desc().blocks(block).vars()) own.insert(var.name());
    for (const auto& op : b_.desc().blocks(block).ops())
      for (const auto& slot : op.outputs())
        for (const std::string& name : slot.arguments())
          if (own.count(name) == 0 && std::find(also.begin(), also.end(), name) == also.end())
            also.push_back(name);
    return also;
  }
  void Sum(const std::string& x) { b_.Binary("elementwise_add", "sum", x, "sum"); }

  void Body() {
    const std::string odd = "odd", even = "even";
    b_.Var(odd, DType::kBool, {1}).Binary("equal", "i", "one", odd);
    b_.Var(even, DType::kBool, {1}).Unary("logical_not", odd, even);
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
        b_.Unary("assign", t, c);
        break;
      }
      case Way::kBothBranches:
      case Way::kBranchesDiffer: {
        const std::string r = Fresh();
        Branch("odd", [&] { b_.Unary("assign", c, r); });
        Branch("even",
               [&] { b_.Unary("assign", way == Way::kBothBranches ? Copy(c) : Copy(next), r); });
        Sum(r);
        b_.Unary("assign", r, c);
        break;
      }
      case Way::kSelects:
      case Way::kSelectsAnother: {
        const std::string yes = Fresh(), no = Fresh(), mask = "m" + std::to_string(names_++);
        Branch("odd", [&] { b_.Unary("assign", c, yes); });
        Branch("even", [&] { b_.Unary("assign", way == Way::kSelects ? c : next, no); });
        b_.Var(mask, DType::kI32, {1})
            .Op("cast", {{"X", {"odd"}}}, {{"Out", {mask}}},
                {{"in_dtype", int64_t{0}}, {"out_dtype", int64_t{2}}});
        const std::string chosen = Fresh();
        b_.Op("select_input", {{"X", {no, yes}}, {"Mask", {mask}}}, {{"Out", {chosen}}});
        b_.Unary("assign", chosen, c);
        break;
      }
      case Way::kInnerLoop:
      case Way::kInnerLoopChanges: {
        const std::string d = Copy(c);
        Loop("one", "j" + std::to_string(names_++), [&] {
          Sum(d);
          const std::string t = Copy(d);
          b_.Unary(way == Way::kInnerLoop ? "assign" : "tanh", t, d);
        });
        b_.Unary("assign", d, c);
        break;
      }
      case Way::kChanges:
        b_.Binary("elementwise_add", c, next, c).Unary("tanh", c, c);
        break;
      case Way::kOneBranchChanges:
        Branch("odd", [&] { b_.Unary("tanh", c, c); });
        break;
      case Way::kRoundsTwice:
        b_.Scale(c, c, 2).Scale(c, c, 0.5);
        break;
      case Way::kRestores: {
        const std::string t = Copy(c);
        b_.Unary("tanh", c, c);
        Sum(c);
        b_.Unary("assign", t, c);
        break;
      }
      case Way::kTakesNeighbor:
        b_.Unary("assign", next, c);
        break;
      case Way::kExchanges: {
        const std::string s = Copy(c), t = Copy(next);
        b_.Unary("assign", t, c).Unary("assign", s, next);
        break;
      }
      case Way::kWays:
        break;
    }
  }

  std::mt19937 rng_;
  ProgramBuilder b_;
  std::vector<Way> ways_;
  int names_ = 0;
};

std::vector<std::string> Results(const Program& program, const std::vector<heddle::Feed>& feeds,
                                 const CompileOptions& options) {
  Executor executor({.threads = 1});
  auto scope = std::make_shared<Scope>();
  scope->Set("w", RandomF32(kShape, 99));
  std::vector<std::string> bits;
  for (const Tensor& t : MustRun(executor, MustCompile(executor, program, scope, options), feeds))
    bits.push_back(Bits(t));
  return bits;
}

TEST(Captures, WhatIsPassedOnIsNotWrittenAndTheRestIs) {
  for (uint32_t seed = 0; seed < 120; ++seed) {
    SCOPED_TRACE(seed);
    const CarriedValues loop(seed);
    const Program program = loop.Build();
    const auto captured = Captured(program);
    const std::set<std::string> written = WrittenInside(*captured);
    std::vector<std::string> first;
    std::vector<bool> changes(loop.ways().size());
    for (const int64_t turns : {0, 1, 2, 3}) {
      std::vector<heddle::Feed> feeds = {{"n", I64({1}, {turns})}};
      for (uint32_t k = 0; k < loop.ways().size(); ++k)
        feeds.push_back({"x" + std::to_string(k), RandomF32(kShape, 7 * seed + k)});
      const auto expected = Results(program, feeds, {.opt_level = 0});
      if (turns == 0) first = expected;
      for (size_t k = 0; k < changes.size(); ++k)
        changes[k] = changes[k] || expected[k] != first[k];
      for (int level : {1, 2})
        EXPECT_EQ(Results(program, feeds, {.opt_level = level}), expected) << turns << " " << level;
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
  b.Fill("i", {1}, 0, DType::kI64).Fill("n", {1}, 5, DType::kI64);
  b.Binary("less_than", "i", "n", "go");
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
  const std::vector<heddle::Feed> feeds = {{"x", RandomF32(kShape, 3)}};
  const auto expected = Results(program, feeds, {.opt_level = 0});
  for (int level : {1, 2}) EXPECT_EQ(Results(program, feeds, {.opt_level = level}), expected);
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
    for (int k = 0; k < 4; ++k) b.Op("tf_list_push_back", {{"item", {"x"}}}, {{"Out", {"first"}}});
    b.Unary("assign", "first", "items").Binary("less_than", "i", "n", "go");
    if (doubled) b.Unary("assign", "items", "same").Unary("assign", "same", "items");
    const int body = b.Block(0);
    b.In(body).Unary("tanh", "h", "h").Binary("elementwise_add", "h", "c", "h");
    const auto change = [&] {
      if (pops)
        b.Op("tf_list_pop_back", {}, {{"Out", {"items"}}, {"item", {"last"}}});
      else
        b.Op("tf_list_set_item", {{"index", {"i"}}, {"item", {"h"}}}, {{"Out", {"items"}}});
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
      b.Op("tf_list_get_item", {{"list", {"items"}}, {"index", {"zero"}}}, {{"Out", {"r"}}});
      b.Fetch("r");
    }
    const Program program = b.Fetch("h").Build();
    const std::vector<heddle::Feed> feeds = {{"x", RandomF32(kShape, seed)}};
    const auto expected = Results(program, feeds, {.opt_level = 0});
    for (int level : {1, 2}) EXPECT_EQ(Results(program, feeds, {.opt_level = level}), expected);
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
  const std::vector<heddle::Feed> feeds = {{"x", RandomF32(kShape, 5)}};
  const auto expected = Results(program, feeds, {.opt_level = 0});
  for (int level : {1, 2}) EXPECT_EQ(Results(program, feeds, {.opt_level = level}), expected);
}

}  // namespace
}  // namespace heddle::testing
