// Variables that an operator may leave without a value: in blocks that need not run, in loops of no
// turns, behind operators that write one of their outputs or leave some unwritten, in arrays, in
// the scope. Whoever reads one that was not written in this run gets one error, whatever earlier
// runs wrote, at every level and in every schedule; and where nobody does, results are the same.
// HEDDLE_LAW_PROGRAMS=<n> checks n programs instead of 500, HEDDLE_TEST_SEED=<n> others than usual.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <optional>
#include <random>
#include <set>
#include <utility>

#include "core/error.h"
#include "passes/ir_text.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

class Leaky {
 public:
  explicit Leaky(uint32_t seed) : rng_(seed) {
    b_.Feed("x", DType::kF32, {4});
    for (const char* flag : kFlags) b_.Feed(flag, DType::kBool, {1});
    b_.Feed("n", DType::kF32, {1}).Feed("which", DType::kI32, {1});
    for (const char* name : kVars) b_.Var(name, DType::kF32, {4});
    b_.Param("kept", DType::kF32, {4}).Param("empty", DType::kF32, {4});
    b_.Array("items").Array("others");
    b_.Fill("zero", {1}, 0, DType::kI64).Fill("one", {1}, 1, DType::kI64);
    const int steps = 3 + Pick(9);
    for (int k = 0; k < steps; ++k) Step();
    int fetched = 0;
    for (const char* name : kVars)
      if (Pick(3) == 0 && written_.count(name)) b_.Fetch(name), ++fetched;
    if (fetched == 0) b_.Scale("x", "end", 1).Fetch("end");
  }

  Result<Program> Build() const { return b_.TryBuild(); }
  static void Reset(Scope* scope) {
    scope->Set("kept", Value(F32({4}, {1, -2, 3, -4})));
    scope->Set("empty", Value());
  }
  // One of 16 settings of what decides.
  static std::vector<heddle::Feed> Feeds(unsigned setting) {
    Tensor which = Tensor::Empty(DType::kI32, {1});
    which.mutable_data<int32_t>()[0] = static_cast<int32_t>(setting / 4 % 2);
    return {{"x", F32({4}, {0.5f, -1, 2, -3})},
            {"f0", Bool(setting % 2 != 0)},
            {"f1", Bool(setting / 2 % 2 != 0)},
            {"f2", Bool(setting / 8 % 2 != 0)},
            {"n", F32({1}, {static_cast<float>((setting + setting / 4) % 3)})},
            {"which", which}};
  }

 private:
  static constexpr const char* kFlags[] = {"f0", "f1", "f2"};
  static constexpr const char* kVars[] = {"v0", "v1", "v2", "v3", "v4", "v5"};

  int Pick(int n) { return static_cast<int>(rng_() % static_cast<unsigned>(n)); }
  bool OneIn(int n) { return Pick(n) == 0; }
  std::string Var() { return kVars[Pick(6)]; }
  // One that holds a value, as a rule.
  std::string Any() {
    if (OneIn(3)) return "x";
    if (OneIn(8)) return OneIn(3) ? "empty" : "kept";
    for (int k = 0; k < 4; ++k)
      if (const std::string v = Var(); written_.count(v)) return v;
    return "x";
  }
  std::string Out() {
    std::string v = OneIn(12) ? "kept" : OneIn(12) ? "empty" : Var();
    written_.insert(v);
    return v;
  }

  void Step() {
    switch (depth_ < 2 ? Pick(15) : Pick(9)) {
      case 0:
      case 1: {
        const std::string x = Any();
        b_.Scale(x, Out(), 0.5, 1);
        break;
      }
      case 2: {
        static constexpr const char* kTypes[] = {"relu", "assign", "tanh"};
        const std::string x = Any();
        b_.Unary(kTypes[Pick(3)], x, Out());
        break;
      }
      case 3: {
        const std::string x = Any(), y = Any();
        b_.Binary("elementwise_add", x, y, Out());
        break;
      }
      case 4: {
        const std::string x = Any(), y = Any();
        b_.Op("sum", {{"X", {x, y}}}, {{"Out", {Out()}}});
        break;
      }
      case 5: {
        const std::string x = Any();
        b_.Op("write_to_array", {{"X", {x}}, {"I", {OneIn(2) ? "zero" : "one"}}},
              {{"Out", {OneIn(2) ? "items" : "others"}}});
        break;
      }
      case 6:
        b_.Op("read_from_array",
              {{"X", {OneIn(2) ? "items" : "others"}}, {"I", {OneIn(2) ? "zero" : "one"}}},
              {{"Out", {Out()}}});
        break;
      case 7: {
        const std::string x = Any(), first = Out(), second = Out();
        if (first == second) break;
        b_.Op("select_output", {{"X", {x}}, {"Mask", {"which"}}}, {{"Out", {first, second}}});
        break;
      }
      case 8: {
        const std::string x = Any(), y = Any();
        b_.Op("select_input", {{"X", {x, y}}, {"Mask", {"which"}}}, {{"Out", {Out()}}});
        break;
      }
      case 9:
        NoNorm();
        break;
      case 10:
      case 11:
      case 12:
        Condition();
        break;
      default:
        Loop();
    }
  }

  // An operator that leaves an output unwritten.
  void NoNorm() {
    const std::string x = Any(), norm = "norm" + std::to_string(norms_++);
    b_.Op("norm", {{"X", {x}}}, {{"Out", {Out()}}, {"Norm", {norm}}},
          {{"axis", 0}, {"is_test", OneIn(2)}, {"epsilon", 1.0}});
    if (OneIn(2)) b_.Unary("relu", norm, norm + ".relu");
    if (OneIn(2) && depth_ == 0) b_.Fetch(norm);
  }

  // The steps of a block; returns what they read and write of the variables outside.
  int Block(std::vector<std::string>* out) {
    const int outer = b_.current(), block = b_.Block(outer);
    b_.In(block);
    ++depth_;
    const auto before = std::exchange(written_, {});
    const auto visible = before;
    for (const std::string& v : before)
      if (OneIn(2)) written_.insert(v);
    const int steps = 1 + Pick(4);
    for (int k = 0; k < steps; ++k) Step();
    out->assign(written_.begin(), written_.end());
    out->insert(out->end(), {"items", "others"});
    written_.insert(visible.begin(), visible.end());
    --depth_;
    return block;
  }
  void Condition() {
    const int outer = b_.current();
    std::vector<std::string> out;
    const std::string flag = kFlags[Pick(3)];
    const int block = Block(&out);
    b_.In(outer);
    std::vector<std::string> in(out);
    in.push_back("x");
    b_.Op("conditional_block", {{"Cond", {flag}}, {"Input", in}}, {{"Out", out}, {"Scope", {}}},
          {{"sub_block", BlockRef{block}}, {"is_scalar_condition", true}});
  }
  void Loop() {
    const int outer = b_.current();
    const std::string i = "i" + std::to_string(loops_), go = "go" + std::to_string(loops_);
    ++loops_;
    b_.Var(i, DType::kF32, {1}).Fill(i, {1}, 0);
    const std::string limit = OneIn(3) ? "limit" + i : "n";
    if (limit != "n") b_.Fill(limit, {1}, Pick(3));
    b_.Var(go, DType::kBool, {1}).Binary("less_than", i, limit, go);
    std::vector<std::string> out;
    const int block = Block(&out);
    b_.Increment(i).Binary("less_than", i, limit, go).In(outer);
    std::vector<std::string> in(out);
    in.insert(in.end(), {i, limit, "x"});
    out.insert(out.end(), {i, go});
    b_.Op("while", {{"X", in}, {"Condition", {go}}}, {{"Out", out}, {"StepScopes", {}}},
          {{"sub_block", BlockRef{block}}});
  }

  std::mt19937 rng_;
  ProgramBuilder b_;
  std::set<std::string> written_;  // by an operator above, perhaps
  int depth_ = 0, loops_ = 0, norms_ = 0;
};

struct Way {
  int level;
  Schedule schedule;
  int threads;
};
constexpr Way kWays[] = {{0, Schedule::kSerial, 1},   {1, Schedule::kSerial, 1},
                         {2, Schedule::kSerial, 1},   {0, Schedule::kParallel, 2},
                         {2, Schedule::kParallel, 2}, {0, Schedule::kLanes, 2},
                         {2, Schedule::kLanes, 2}};

struct Answer {
  Status status;
  std::vector<Tensor> values;
};

class Runner {
 public:
  Runner(const Program& program, const Way& way) : executor_({.threads = way.threads}) {
    Leaky::Reset(scope_.get());
    auto compiled =
        executor_.Compile(program, scope_, {.opt_level = way.level, .schedule = way.schedule});
    status_ = compiled.status();
    if (compiled.ok()) compiled_ = *std::move(compiled);
  }
  Answer Run(unsigned setting) {
    if (!status_.ok()) return {status_, {}};
    auto out = executor_.Run(*compiled_, Leaky::Feeds(setting));
    if (!out.ok()) {  // what it wrote to the scope before is not said
      Leaky::Reset(scope_.get());
      return {out.status(), {}};
    }
    return {Status::Ok(), *std::move(out)};
  }

 private:
  Executor executor_;
  std::shared_ptr<Scope> scope_ = std::make_shared<Scope>();
  std::optional<CompiledProgram> compiled_;
  Status status_;
};

bool Near(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape()) || a.dtype() != DType::kF32) return false;
  for (int64_t i = 0; i < a.numel(); ++i) {
    const float x = a.data<float>()[i], y = b.data<float>()[i];
    if (!(x == y || std::abs(x - y) <= 1e-4f * (1 + std::abs(x)))) return false;
  }
  return true;
}

std::string Difference(const Answer& plain, const Answer& other) {
  if (plain.status.ok() != other.status.ok())
    return plain.status.ToString() + " / " + other.status.ToString();
  for (size_t i = 0; i < plain.values.size(); ++i)
    if (!Near(plain.values[i], other.values[i]))
      return StrCat("result ", i, " is ", Name(plain.values[i].dtype()), " ",
                    plain.values[i].shape().ToString(), " / ", Name(other.values[i].dtype()), " ",
                    other.values[i].shape().ToString(), ", perhaps of other numbers");
  return {};
}

TEST(Unwritten, IsOneErrorAtEveryLevelInEverySchedule) {
  const char* given = std::getenv("HEDDLE_LAW_PROGRAMS");
  const char* seed = std::getenv("HEDDLE_TEST_SEED");
  const int programs = given != nullptr ? std::atoi(given) : 500;
  const auto first = static_cast<uint32_t>(seed != nullptr ? std::atoi(seed) : 1);
  int failed = 0, errors = 0, values = 0;
  for (int k = 0; k < programs && failed < 10; ++k) {
    const uint32_t s = first * 1000003u + static_cast<uint32_t>(k);
    const Leaky leaky(s);
    const auto program = leaky.Build();
    if (!program.ok()) {
      EXPECT_NE(program.status().code(), StatusCode::kInternal) << program.status().ToString();
      continue;
    }
    // Runs one after another on parameters that they change, and that keep what they had.
    std::vector<unsigned> settings;
    for (unsigned i = 0; i < 4; ++i) settings.push_back((s * 7 + i * 5) % 16);
    std::vector<Answer> plain;
    std::string different;
    for (const Way& way : kWays) {
      Runner runner(*program, way);
      for (size_t i = 0; i < settings.size() && different.empty(); ++i) {
        Answer answer = runner.Run(settings[i]);
        if (answer.status.code() == StatusCode::kInternal) different = answer.status.ToString();
        if (way.level == 0 && way.threads == 1) {
          (answer.status.ok() ? values : errors) += 1;
          plain.push_back(std::move(answer));
        } else if (different.empty()) {
          different = Difference(plain[i], answer);
        }
        if (!different.empty())
          different += StrCat("; setting ", settings[i], " (run ", i, "), level ", way.level,
                              ", schedule ", ScheduleName(way.schedule));
      }
      if (!different.empty()) break;
    }
    if (different.empty()) continue;
    ++failed;
    ADD_FAILURE() << "program " << k << " (seed " << s << "): " << different << "\n"
                  << ir::ToText(program->ir());
  }
  EXPECT_GT(errors, programs / 4);
  EXPECT_GT(values, programs / 4);
}

}  // namespace
}  // namespace heddle::testing
