// Slices, splits and transposes as views: where nothing is copied, and that the results are those
// of copies.
#include <gtest/gtest.h>

#include <functional>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

constexpr const char* kOperators[] = {"slice", "strided_slice", "split", "transpose2", "unbind"};

int CopiesIn(const std::string& text) {
  int n = 0;
  for (const char* op : kOperators) {
    const std::string what = "  " + std::string(op) + " [";
    for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at) ++n;
  }
  return n;
}

class Net {
 public:
  explicit Net(const Shape& shape) : shape_(shape) {
    b_.Feed("x0", DType::kF32, shape).Var("x", DType::kF32, shape).Scale("x0", "x", 2);
  }
  ProgramBuilder& builder() { return b_; }
  Net& Slice(const std::string& x, const std::string& out, Ints axes, Ints starts, Ints ends,
             Ints decrease = {}) {
    b_.Op("slice", {{"Input", {x}}}, {{"Out", {out}}},
          {{"axes", axes}, {"starts", starts}, {"ends", ends}, {"decrease_axis", decrease}});
    return *this;
  }
  Net& Split(const std::string& x, std::vector<std::string> outs, int64_t axis) {
    const auto num = static_cast<int64_t>(outs.size());
    b_.Op("split", {{"X", {x}}}, {{"Out", std::move(outs)}}, {{"axis", axis}, {"num", num}});
    return *this;
  }
  Net& Transpose(const std::string& x, const std::string& out, Ints axis) {
    b_.Op("transpose2", {{"X", {x}}}, {{"Out", {out}}}, {{"axis", std::move(axis)}});
    return *this;
  }
  Net& Concat(std::vector<std::string> xs, const std::string& out, int64_t axis) {
    b_.Op("concat", {{"X", std::move(xs)}}, {{"Out", {out}}}, {{"axis", axis}});
    return *this;
  }
  Net& Product(const std::string& x, const std::string& y, const std::string& out,
               bool trans_x = false) {
    b_.Op("fused_matmul", {{"X", {x}}, {"Y", {y}}}, {{"Out", {out}}}, {{"trans_x", trans_x}});
    return *this;
  }
  Net& Unary(const std::string& op, const std::string& x, const std::string& out) {
    b_.Unary(op, x, out);
    return *this;
  }
  Net& Fetch(const std::string& name) {
    b_.Fetch(name);
    return *this;
  }

  // Runs it in the ways in which instructions reach threads. From a queue, block 0 has no such
  // views: its results are those of copies.
  void Check(int copies) {
    const Program program = b_.Build();
    const std::vector<Feed> feeds = {{"x0", RandomF32(shape_, 1)}};
    Executor queue({.threads = 2});
    auto copied =
        MustCompile(queue, program, nullptr, {.opt_level = 0, .schedule = Schedule::kParallel});
    const auto want = MustRun(queue, copied, feeds);
    for (const Schedule schedule : {Schedule::kSerial, Schedule::kLanes}) {
      Executor executor({.threads = schedule == Schedule::kSerial ? 1 : 2});
      auto compiled =
          MustCompile(executor, program, nullptr, {.opt_level = 0, .schedule = schedule});
      for (int run = 0; run < 2; ++run) {
        const auto got = MustRun(executor, compiled, feeds);
        ASSERT_EQ(want.size(), got.size());
        for (size_t i = 0; i < want.size(); ++i)
          ASSERT_TRUE(SameBits(want[i], got[i])) << ScheduleName(schedule) << " output " << i;
      }
      const std::string text = *executor.PlanText(compiled, feeds);
      EXPECT_EQ(CopiesIn(text), copies) << text;
    }
  }

 private:
  const Shape shape_;
  ProgramBuilder b_;
};

TEST(Windows, WithoutGapsAreViewsForEveryReader) {
  Net({4, 3, 5}).Slice("x", "a", {0}, {1}, {3}).Unary("softmax", "a", "y").Fetch("y").Check(0);
  Net({4, 3, 5})
      .Slice("x", "a", {0, 1}, {2, 1}, {3, 2}, {0, 1})
      .Unary("softmax", "a", "y")
      .Fetch("y")
      .Check(0);
  Net({1, 6, 5}).Slice("x", "a", {1}, {2}, {5}).Unary("softmax", "a", "y").Fetch("y").Check(0);
  Net({6, 5})
      .Split("x", {"a", "b", "c"}, 0)
      .Unary("softmax", "a", "y")
      .Unary("softmax", "c", "z")
      .Fetch("y")
      .Fetch("z")
      .Check(0);
  Net({1, 6, 1, 5})
      .Transpose("x", "a", {2, 1, 0, 3})
      .Unary("softmax", "a", "y")
      .Fetch("y")
      .Check(0);
}

TEST(Windows, WithGapsAreViewsForReadersByStrides) {
  for (const int64_t axis : {0, 1}) {
    Net({6, 8})
        .Slice("x", "a", {1}, {2}, {6})
        .Split("x", {"b", "c"}, 1)
        .Concat({"a", "c", "a"}, "y", axis)
        .Fetch("y")
        .Check(0);
    Net({6, 6})
        .Transpose("x", "t", {1, 0})
        .Slice("t", "a", {axis}, {1}, {6})
        .Concat({"a", "a"}, "y", 0)
        .Concat({"t", "x"}, "z", 1)
        .Fetch("y")
        .Fetch("z")
        .Check(0);
  }
  for (const int64_t axis : {0, 1, 2})
    Net({4, 6, 10})
        .Slice("x", "a", {0, 1, 2}, {1, 1, 2}, {3, 5, 7})
        .Transpose("a", "t", {2, 0, 1})
        .Transpose("x", "u", {1, 2, 0})
        .Slice("u", "v", {0, 1, 2}, {0, 3, 0}, {5, 5, 4})
        .Concat({"t", "t"}, "y", axis)
        .Concat({"v", "v", "v"}, "z", axis)
        .Fetch("y")
        .Fetch("z")
        .Check(0);
}

TEST(Windows, AreCopiedForOtherReadersAndTheCaller) {
  Net({6, 8}).Slice("x", "a", {1}, {2}, {6}).Unary("softmax", "a", "y").Fetch("y").Check(1);
  Net({6, 8})
      .Slice("x", "a", {1}, {2}, {6})
      .Concat({"a", "a"}, "z", 0)
      .Unary("softmax", "a", "y")
      .Fetch("y")
      .Fetch("z")
      .Check(1);
  Net({6, 8}).Slice("x", "a", {0}, {2}, {6}).Fetch("a").Check(1);
  Net({6, 8}).Slice("x0", "a", {0}, {2}, {6}).Fetch("a").Check(1);
}

// Slices of an input need no copy, with or without gaps between their rows.
TEST(Windows, ASliceOfAFeedIsAView) {
  Net({6, 8}).Slice("x0", "a", {0}, {2}, {6}).Unary("softmax", "a", "y").Fetch("y").Check(0);
  Net({6, 8})
      .Slice("x0", "a", {1}, {2}, {6})
      .Slice("x0", "b", {1}, {0}, {1})
      .Concat({"a", "b"}, "y", 1)
      .Fetch("y")
      .Check(0);
}

// A product reads rows at one distance in place, or gathers them itself.
TEST(Windows, AProductReadsASliceOfRowsInPlace) {
  Net({6, 8}).Slice("x", "a", {1}, {2}, {8}).Product("a", "x", "y").Fetch("y").Check(0);
  Net({6, 8}).Slice("x", "a", {1}, {2}, {6}).Product("a", "x", "y", true).Fetch("y").Check(0);
  Net({2, 6, 6})
      .Slice("x", "a", {2}, {1}, {5})
      .Slice("x", "b", {1}, {0}, {4})
      .Product("a", "b", "y")
      .Fetch("y")
      .Check(1);  // the second factor has no gaps
}

// A small part of a large tensor is copied, unless the tensor is needed as long anyway.
TEST(Windows, DoNotKeepLargeTensorsAlive) {
  Net({512, 64}).Slice("x", "a", {0}, {3}, {9}).Unary("softmax", "a", "y").Fetch("y").Check(1);
  Net({512, 64})
      .Slice("x", "a", {0}, {3}, {9})
      .Unary("softmax", "a", "y")
      .Unary("softmax", "x", "z")
      .Fetch("y")
      .Fetch("z")
      .Check(0);
  Net({512, 64}).Slice("x", "a", {0}, {3}, {400}).Unary("softmax", "a", "y").Fetch("y").Check(0);
}

// Dimensions of one element come and go without a copy.
TEST(Windows, GoThroughReshapesThatOnlySqueeze) {
  Net gaps({4, 6});
  gaps.Slice("x", "a", {1}, {1}, {4});
  gaps.builder().Var("r", DType::kF32, {4, 1, 3}).Reshape("a", "r", {4, 1, 3});
  gaps.Concat({"r", "r"}, "y", 2).Fetch("y").Check(0);
  Net others({4, 6});
  others.Slice("x", "a", {1}, {1}, {4});
  others.builder().Var("r", DType::kF32, {2, 6}).Reshape("a", "r", {2, 6});
  others.Concat({"r", "r"}, "y", 1).Fetch("y").Check(1);
}

// What they lie in must not be overwritten while they are read.
TEST(Windows, KeepTheirWholesAlive) {
  Net({6, 6})
      .Slice("x", "a", {0}, {2}, {6})
      .Transpose("x", "t", {1, 0})
      .Unary("relu", "x", "r")
      .Unary("tanh", "r", "s")
      .Unary("relu", "a", "b")
      .Concat({"s", "t", "a", "b"}, "y", 0)
      .Fetch("y")
      .Check(0);
  Net net({6, 6});
  net.Slice("x", "a", {0}, {2}, {6}).Transpose("x", "t", {1, 0});
  net.builder().Scale("x", "x", 3);
  net.Concat({"x", "t", "a"}, "y", 0).Unary("relu", "a", "z").Fetch("y").Fetch("z").Check(0);
}

// The body of a loop may read more than the loop names as its operands.
TEST(Windows, HaveNoGapsForReadersInBlocks) {
  for (const bool named : {true, false}) {
    Net net({6, 8});
    net.Slice("x", "a", {1}, {2}, {6});
    ProgramBuilder& b = net.builder();
    b.Fill("i", {1}, 0, DType::kI64).Fill("n", {1}, 3, DType::kI64).Fill("y", {6, 4}, 0);
    b.Binary("less_than", "i", "n", "more");
    const int body = b.Block(0);
    std::vector<std::string> operands = {"i", "n", "y"};
    if (named) operands.emplace_back("a");
    b.Op("while", {{"X", operands}, {"Condition", {"more"}}},
         {{"Out", {"i", "more", "y"}}, {"StepScopes", {"scopes"}}},
         {{"sub_block", BlockRef{body}}});
    b.In(body);
    b.Unary("softmax", "a", "t").Binary("elementwise_add", "y", "t", "y");
    b.Increment("i");
    b.Binary("less_than", "i", "n", "more");
    b.In(0);
    net.Fetch("y").Check(1);
  }
}

// A view without gaps may be taken over only if it is all of the memory.
TEST(Windows, ArePartsOfPartsAndOfPieces) {
  Net({8, 4})
      .Slice("x", "a", {0}, {2}, {8})
      .Slice("a", "b", {0}, {1}, {5})
      .Split("b", {"c", "d"}, 0)
      .Unary("relu", "c", "e")
      .Concat({"e", "d", "c"}, "y", 0)
      .Fetch("y")
      .Check(0);
}

}  // namespace
}  // namespace heddle::testing
