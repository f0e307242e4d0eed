// Values that share memory across nested loops and branches: concats, splits, slices and reshapes
// of carried values give what a plain evaluation gives, however memory is shared.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using Rows = std::vector<float>;
using Values = std::map<std::string, Rows>;                        // by variable
using Code = std::vector<std::function<void(Values&, int turn)>>;  // the plain evaluation

// A random program of operators on matrices of one shape, in loops and branches of up to three
// levels, and its evaluation. All operators are exact, or round as one float operation does.
class NestedProgram {
 public:
  explicit NestedProgram(uint32_t seed) : rng_(seed) {
    rows_ = 2 + Pick(2) * 2;
    constexpr int kWidths[] = {3, 4, 16, 64};
    width_ = kWidths[Pick(4)];
    b_.Feed("x", DType::kF32, {rows_, width_}).Feed("n", DType::kI64, {1});
    b_.Var("one", DType::kI64, {1}).Fill("one", {1}, 1, DType::kI64);
    for (int k = 1; k <= 3; ++k) {
      const std::string n = "n" + std::to_string(k);
      b_.Var(n, DType::kI64, {1}).Fill(n, {1}, k, DType::kI64);
    }
    x_.resize(static_cast<size_t>(rows_ * width_));
    for (float& v : x_) v = static_cast<float>(Pick(64) - 32);
    const std::string out = Steps("x", 3);
    b_.Fetch(Scale(out, 1, 0));
    result_ = "v" + std::to_string(names_ - 1);
  }

  Program Build() const { return b_.Build(); }
  std::vector<heddle::Feed> Feeds() const {
    return {{"x", F32({rows_, width_}, x_)}, {"n", I64({1}, {2})}};
  }
  Rows Evaluate() const {
    Values values = {{"x", x_}};
    for (const auto& step : code_) step(values, 0);
    return values.at(result_);
  }

 private:
  int Pick(int n) { return static_cast<int>(rng_() % static_cast<unsigned>(n)); }
  std::string Fresh(int rows) {
    const std::string name = "v" + std::to_string(names_++);
    b_.Var(name, DType::kF32, {rows, width_});
    return name;
  }
  int RowsOf(size_t count) const { return static_cast<int>(count) / width_; }
  void Then(std::function<void(Values&, int)> step) { now_->push_back(std::move(step)); }

  // Operators.
  void Assign(const std::string& x, const std::string& out) {
    b_.Unary("assign", x, out);
    Then([=](Values& v, int) { v[out] = v.at(x); });
  }
  std::string Scale(const std::string& x, float scale, float bias, int rows = 0) {
    const std::string out = Fresh(rows == 0 ? rows_ : rows);
    b_.Scale(x, out, scale, bias);
    Then([=](Values& v, int) {
      Rows y = v.at(x);
      for (float& e : y) e = e * scale + bias;
      v[out] = y;
    });
    return out;
  }
  std::string Relu(const std::string& x, int rows) {
    const std::string out = Fresh(rows);
    b_.Unary("relu", x, out);
    Then([=](Values& v, int) {
      Rows y = v.at(x);
      for (float& e : y) e = std::max(e, 0.f);
      v[out] = y;
    });
    return out;
  }
  std::string Mean(const std::string& x, const std::string& y, int rows, float sign = 1) {
    const std::string sum = Fresh(rows);
    b_.Binary(sign > 0 ? "elementwise_add" : "elementwise_sub", x, y, sum);
    Then([=](Values& v, int) {
      Rows z = v.at(x);
      const Rows& other = v.at(y);
      for (size_t i = 0; i < z.size(); ++i) z[i] += sign * other[i];
      v[sum] = z;
    });
    return Scale(sum, 0.5f, 0, rows);
  }
  std::string Slice(const std::string& x, int begin, int end) {
    const std::string out = Fresh(end - begin);
    b_.Op("slice", {{"Input", {x}}}, {{"Out", {out}}},
          {{"axes", Ints{0}}, {"starts", Ints{begin}}, {"ends", Ints{end}}});
    Then([=, width = width_](Values& v, int) {
      const Rows& from = v.at(x);
      v[out] = Rows(from.begin() + begin * width, from.begin() + end * width);
    });
    return out;
  }
  std::vector<std::string> Split(const std::string& x) {
    const int half = rows_ / 2;
    std::vector<std::string> parts = {Fresh(half), Fresh(half)};
    b_.Op("split", {{"X", {x}}}, {{"Out", parts}},
          {{"axis", int64_t{Pick(2) == 0 ? 0 : -2}}, {"num", int64_t{2}}});
    Then([=](Values& v, int) {
      const Rows from = v.at(x);
      const auto middle = from.begin() + static_cast<std::ptrdiff_t>(from.size() / 2);
      v[parts[0]] = Rows(from.begin(), middle);
      v[parts[1]] = Rows(middle, from.end());
    });
    return parts;
  }
  std::string Concat(const std::vector<std::string>& parts, int rows) {
    const std::string out = Fresh(rows);
    b_.Op("concat", {{"X", parts}}, {{"Out", {out}}}, {{"axis", int64_t{Pick(2) == 0 ? 0 : -2}}});
    Then([=](Values& v, int) {
      Rows all;
      for (const std::string& p : parts) all.insert(all.end(), v.at(p).begin(), v.at(p).end());
      v[out] = all;
    });
    return out;
  }
  std::string Reshaped(const std::string& x) {
    const std::string flat = "v" + std::to_string(names_++);
    b_.Var(flat, DType::kF32, {rows_ * width_}).Reshape(x, flat, Ints{rows_ * width_});
    Then([=](Values& v, int) { v[flat] = v.at(x); });
    const std::string out = Fresh(rows_);
    b_.Reshape(flat, out, Ints{rows_, width_});
    Then([=](Values& v, int) { v[out] = v.at(flat); });
    return out;
  }

  // Blocks. `fn` adds the operators, and the outer variables that they write are found in them.
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
  std::string Loop(const std::string& x, int depth) {
    const std::string c = Fresh(rows_), at = std::to_string(names_++);
    const std::string i = "i" + at, go = "go" + at;
    const int fixed = Pick(4);
    const std::string limit = fixed == 0 ? "n" : "n" + std::to_string(fixed);
    const int turns = fixed == 0 ? 2 : fixed;
    Assign(x, c);
    b_.Var(i, DType::kI64, {1}).Fill(i, {1}, 0, DType::kI64);
    b_.Var(go, DType::kBool, {1}).Binary("less_than", i, limit, go);
    const Code body = Inside([&] {
      carried_.push_back(c);
      counters_.push_back(i);
      Assign(Steps(c, depth - 1), c);
      carried_.pop_back();
      counters_.pop_back();
      b_.Increment(i).Binary("less_than", i, limit, go);
    });
    b_.Op("while", {{"X", {i, limit, c}}, {"Condition", {go}}},
          {{"Out", Written(inside_, {i, go})}, {"StepScopes", {}}},
          {{"sub_block", BlockRef{inside_}}});
    Then([=](Values& v, int) {
      for (int turn = 0; turn < turns; ++turn)
        for (const auto& step : body) step(v, turn);
    });
    return c;
  }
  // The second turn of the loop around it does something else.
  std::string Branch(const std::string& x, int depth) {
    const std::string r = Fresh(rows_), odd = "odd" + std::to_string(names_++);
    Assign(x, r);
    b_.Var(odd, DType::kBool, {1}).Binary("equal", counters_.back(), "one", odd);
    const Code body = Inside([&] { Assign(Steps(Pick(2) == 0 ? x : r, depth - 1), r); });
    b_.Op("conditional_block", {{"Cond", {odd}}, {"Input", {}}},
          {{"Out", Written(inside_, {})}, {"Scope", {}}},
          {{"sub_block", BlockRef{inside_}}, {"is_scalar_condition", true}});
    Then([=](Values& v, int turn) {
      if (turn == 1)
        for (const auto& step : body) step(v, turn);
    });
    return r;
  }
  template <typename Fn>
  Code Inside(Fn&& fn) {
    Code body;
    Code* const outer = std::exchange(now_, &body);
    const int outside = b_.current(), block = b_.Block(outside);
    b_.In(block);
    fn();
    b_.In(outside);
    now_ = outer;
    inside_ = block;
    return body;
  }

  std::string Steps(std::string x, int depth) {
    for (int count = 1 + Pick(3); count > 0; --count) x = Step(x, depth);
    return x;
  }
  std::string Step(const std::string& x, int depth) {
    if (depth > 0 && Pick(5) < 2)
      return counters_.empty() || Pick(3) > 0 ? Loop(x, depth) : Branch(x, depth);
    const int half = rows_ / 2;
    switch (Pick(8)) {
      case 0: {
        const std::string p = Slice(x, 0, 1), q = Slice(x, 1, rows_);
        return Concat({q, p}, rows_);
      }
      case 1: {
        const auto parts = Split(x);
        return Concat({Relu(parts[1], half), Scale(parts[0], -1, 1, half)}, rows_);
      }
      case 2: {
        const auto parts = Split(x);
        const std::string sum = Mean(parts[0], parts[1], half);
        return Concat({sum, Mean(parts[0], parts[1], half, -1)}, rows_);
      }
      case 3: {
        const std::string all = Concat({Scale(x, -1, 2), x}, 2 * rows_);
        return Slice(all, half, half + rows_);
      }
      case 4:
        return Reshaped(Pick(2) == 0 ? x : Scale(x, -1, 3));
      case 5: {  // what a loop around it carries is read while its next value is made
        const std::string y = carried_.empty() ? "x" : carried_[size_t(Pick(int(carried_.size())))];
        const auto parts = Split(x);
        return Mean(Concat({parts[1], Scale(parts[0], -1, 1, half)}, rows_), y, rows_);
      }
      case 6: {
        const std::string part = Slice(Reshaped(x), half, rows_);
        return Concat({part, part}, rows_);
      }
      default:
        return Scale(x, -0.5f, 1);
    }
  }

  std::mt19937 rng_;
  ProgramBuilder b_;
  int rows_ = 0, width_ = 0, names_ = 0;
  int inside_ = 0;  // the block that Inside() made last
  Rows x_;
  std::string result_;
  Code code_;
  Code* now_ = &code_;
  std::vector<std::string> carried_, counters_;  // of the loops around
};

struct NestedWay {
  int level, threads;
  Schedule schedule;
  Reuse reuse;
  bool in_place;
};
constexpr NestedWay kNestedWays[] = {
    {0, 1, Schedule::kSerial, Reuse::kOrdered, true},
    {0, 1, Schedule::kSerial, Reuse::kOrdered, false},
    {0, 1, Schedule::kSerial, Reuse::kNone, true},
    {0, 2, Schedule::kLanes, Reuse::kEdges, true},
    {0, 2, Schedule::kParallel, Reuse::kOrdered, true},
    {1, 1, Schedule::kSerial, Reuse::kOrdered, true},
    {1, 2, Schedule::kLanes, Reuse::kOrdered, true},
    {2, 1, Schedule::kSerial, Reuse::kOrdered, true},
    {2, 2, Schedule::kLanes, Reuse::kEdges, true},
    {2, 1, Schedule::kSerial, Reuse::kNone, false},
};

TEST(NestedSharing, GivesWhatAPlainEvaluationGives) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const NestedProgram nested(seed);
    const Program program = nested.Build();
    const Rows expected = nested.Evaluate();
    for (const NestedWay& way : kNestedWays) {
      SCOPED_TRACE(std::to_string(seed) + " level " + std::to_string(way.level) + " " +
                   ScheduleName(way.schedule) + " reuse " +
                   std::to_string(static_cast<int>(way.reuse)));
      Executor executor({.threads = way.threads, .poison = true});
      const auto compiled = MustCompile(executor, program, nullptr,
                                        {.opt_level = way.level,
                                         .schedule = way.schedule,
                                         .reuse = way.reuse,
                                         .in_place = way.in_place});
      for (int run = 0; run < 2; ++run)
        ASSERT_EQ(Floats(MustRun(executor, compiled, nested.Feeds())[0]), expected);
    }
  }
}

}  // namespace
}  // namespace heddle::testing
