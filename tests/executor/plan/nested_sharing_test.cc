// Values that share memory across nested loops and branches: concats, splits, slices and reshapes
// of carried values give what a plain evaluation gives, however memory is shared.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>

#include "tests/support/plain_program.h"

namespace heddle::testing {
namespace {

using Numbers = PlainProgram::Numbers;
using Values = PlainProgram::Values;

// A random program of operators on matrices of one shape, in loops and branches of up to three
// levels. All operators are exact, or round as one float operation does.
class NestedProgram {
 public:
  explicit NestedProgram(uint32_t seed) : rng_(seed) {
    rows_ = 2 + Pick(2) * 2;
    constexpr int kWidths[] = {3, 4, 16, 64};
    width_ = kWidths[Pick(4)];
    p_.builder().Feed("x", DType::kF32, {rows_, width_}).Feed("n", DType::kI64, {1});
    for (int k = 1; k <= 3; ++k) {
      const std::string n = "n" + std::to_string(k);
      p_.Var(n, {1}, DType::kI64).Fill(n, {1}, static_cast<float>(k), DType::kI64);
    }
    x_.resize(static_cast<size_t>(rows_ * width_));
    for (float& v : x_) v = static_cast<float>(Pick(64) - 32);
    result_ = Scale(Steps("x", 3), 1, 0);
    p_.builder().Fetch(result_);
  }

  Program Build() const { return p_.Build(); }
  std::vector<heddle::Feed> Feeds() const {
    return {{"x", F32({rows_, width_}, x_)}, {"n", I64({1}, {2})}};
  }
  Numbers Evaluate() const { return p_.Evaluate({{"x", x_}, {"n", {2}}}).at(result_); }

 private:
  int Pick(int n) { return static_cast<int>(rng_() % static_cast<unsigned>(n)); }
  std::string Fresh(int rows) {
    const std::string name = "v" + std::to_string(names_++);
    p_.Var(name, {rows, width_});
    return name;
  }

  // Operators.
  std::string Scale(const std::string& x, float scale, float bias, int rows = 0) {
    const std::string out = Fresh(rows == 0 ? rows_ : rows);
    p_.Scale(x, out, scale, bias);
    return out;
  }
  std::string Relu(const std::string& x, int rows) {
    const std::string out = Fresh(rows);
    p_.Unary("relu", x, out);
    return out;
  }
  std::string Mean(const std::string& x, const std::string& y, int rows, float sign = 1) {
    const std::string sum = Fresh(rows);
    p_.Binary(sign > 0 ? "elementwise_add" : "elementwise_sub", x, y, sum);
    return Scale(sum, 0.5f, 0, rows);
  }
  std::string Slice(const std::string& x, int begin, int end) {
    const std::string out = Fresh(end - begin);
    p_.builder().Op("slice", {{"Input", {x}}}, {{"Out", {out}}},
                    {{"axes", Ints{0}}, {"starts", Ints{begin}}, {"ends", Ints{end}}});
    p_.Then([=, width = width_](Values& v) {
      const Numbers& from = v.at(x);
      v[out] = Numbers(from.begin() + begin * width, from.begin() + end * width);
    });
    return out;
  }
  std::vector<std::string> Split(const std::string& x) {
    const int half = rows_ / 2;
    std::vector<std::string> parts = {Fresh(half), Fresh(half)};
    p_.builder().Op("split", {{"X", {x}}}, {{"Out", parts}},
                    {{"axis", int64_t{Pick(2) == 0 ? 0 : -2}}, {"num", int64_t{2}}});
    p_.Then([=](Values& v) {
      const Numbers from = v.at(x);
      const auto middle = from.begin() + static_cast<std::ptrdiff_t>(from.size() / 2);
      v[parts[0]] = Numbers(from.begin(), middle);
      v[parts[1]] = Numbers(middle, from.end());
    });
    return parts;
  }
  std::string Concat(const std::vector<std::string>& parts, int rows) {
    const std::string out = Fresh(rows);
    p_.builder().Op("concat", {{"X", parts}}, {{"Out", {out}}},
                    {{"axis", int64_t{Pick(2) == 0 ? 0 : -2}}});
    p_.Then([=](Values& v) {
      Numbers all;
      for (const std::string& p : parts) all.insert(all.end(), v.at(p).begin(), v.at(p).end());
      v[out] = all;
    });
    return out;
  }
  std::string Reshaped(const std::string& x) {
    const std::string flat = "v" + std::to_string(names_++), out = Fresh(rows_);
    p_.Var(flat, {rows_ * width_});
    p_.builder().Reshape(x, flat, Ints{rows_ * width_}).Reshape(flat, out, Ints{rows_, width_});
    p_.Then([=](Values& v) { v[out] = v.at(x); });
    return out;
  }

  std::string Loop(const std::string& x, int depth) {
    const std::string c = Fresh(rows_), i = "i" + std::to_string(names_++);
    const int fixed = Pick(4);
    p_.Unary("assign", x, c);
    carried_.push_back(c);
    counters_.push_back(i);
    p_.Loop(i, fixed == 0 ? "n" : "n" + std::to_string(fixed),
            [&] { p_.Unary("assign", Steps(c, depth - 1), c); });
    carried_.pop_back();
    counters_.pop_back();
    return c;
  }
  // The second turn of the loop around it does something else.
  std::string Branch(const std::string& x, int depth) {
    const std::string r = Fresh(rows_), second = "second" + std::to_string(names_++);
    p_.Unary("assign", x, r);
    p_.Var(second, {1}, DType::kBool).Binary("equal", counters_.back(), "n1", second);
    p_.Branch(second, [&] { p_.Unary("assign", Steps(Pick(2) == 0 ? x : r, depth - 1), r); });
    return r;
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
      case 5: {  // reads a variable that a loop around it carries while its next value is made
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
  PlainProgram p_;
  int rows_ = 0, width_ = 0, names_ = 0;
  Numbers x_;
  std::string result_;
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
    const Numbers expected = nested.Evaluate();
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
