// Convolutions and their windows, whichever operators they become.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/formats/tensorflow/graph_bytes.h"

namespace heddle::testing::tf {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Message ListValue(const std::vector<int64_t>& values) {
  Message list;
  for (const int64_t v : values) list.Int(3, v);
  return Message().Add(1, list);
}

// y = Conv2D(x, w), a filter of one row and two columns.
Graph Convolution(const Message& input, const std::vector<int64_t>& filter,
                  const std::vector<float>& weights, NamedValues attributes) {
  Graph g;
  g.Add(input).Add(FloatsNode("w", filter, weights));
  attributes.emplace_back("T", TypeValue(kF));
  return g.Add("Conv2D", "y", {"x", "w"}, attributes);
}
const NamedValues kSame = {{"strides", ListValue({1, 1, 2, 1})}, {"padding", TextValue("SAME")}};

// Width 4, stride 2, two taps: nothing is padded.
TEST(TensorflowNetwork, SamePaddingIsKnownOnlyWhenTheSizesAre) {
  const auto x = F32({1, 1, 4, 1}, {1, 2, 3, 4});
  NamedValues known = {{"dtype", TypeValue(kF)}, {"shape", ShapeValue({1, 1, 4, 1})}};
  NamedValues open = {{"dtype", TypeValue(kF)}, {"shape", ShapeValue({1, -1, -1, 1})}};
  for (const Message& input : {NodeOf("Placeholder", "x", {}, known),
                               NodeOf("Placeholder", "x", {}, open), PlaceholderNode("x")}) {
    const Graph g = Convolution(input, {1, 2, 1, 1}, {1, 10}, kSame);
    EXPECT_THAT(RunGraph(g, {{"x", x}}, "y"), ElementsAre(21, 43));
  }
}

// Width 3: one column of zeros behind the last.
TEST(TensorflowNetwork, SamePaddingGoesToTheEndFirst) {
  const Graph g = Convolution(PlaceholderNode("x"), {1, 2, 1, 1}, {1, 10}, kSame);
  EXPECT_THAT(RunGraph(g, {{"x", F32({1, 1, 3, 1}, {1, 2, 3})}}, "y"), ElementsAre(21, 3));
}

// No attribute says that there are groups.
TEST(TensorflowNetwork, AFilterOfFewerChannelsHasGroups) {
  NamedValues known = {{"dtype", TypeValue(kF)}, {"shape", ShapeValue({1, 1, 1, 2})}};
  const NamedValues valid = {{"strides", ListValue({1, 1, 1, 1})}, {"padding", TextValue("VALID")}};
  for (const Message& input : {NodeOf("Placeholder", "x", {}, known), PlaceholderNode("x")}) {
    const Graph g = Convolution(input, {1, 1, 1, 4}, {1, 2, 3, 4}, valid);
    EXPECT_THAT(RunGraph(g, {{"x", F32({1, 1, 1, 2}, {10, 100})}}, "y"),
                ElementsAre(10, 20, 300, 400));
  }
}

TEST(TensorflowNetwork, WindowsThatDoNotFitAreNamed) {
  NamedValues known = {{"dtype", TypeValue(kF)}, {"shape", ShapeValue({1, 4, 4, 1})}};
  Graph g;
  g.Add(NodeOf("Placeholder", "x", {}, known));
  g.Add("MaxPool", "y", {"x"},
        {{"ksize", ListValue({1, 2})},
         {"strides", ListValue({1, 1, 1, 1})},
         {"padding", TextValue("VALID")}});
  EXPECT_THAT(ErrorOf(g.bytes(), {.fetches = {"y"}}),
              ::testing::AllOf(HasSubstr("MaxPool 'y'"), HasSubstr("ksize")));
}

TEST(TensorflowNetwork, AnEmptyProductIsZeros) {
  Graph g;
  g.Add(FloatsNode("a", {2, 0}, {})).Add(FloatsNode("b", {0, 1}, {}));
  g.Add("MatMul", "y", {"a", "b"});
  EXPECT_THAT(RunGraph(g, {}, "y"), ElementsAre(0, 0));
}

// The formula of an einsum of two operands: each letter's place runs over its size.
std::vector<double> EinsumOf(const std::string& equation, const Tensor& x, const Tensor& y) {
  const size_t comma = equation.find(','), arrow = equation.find("->");
  const std::string lx = equation.substr(0, comma);
  const std::string ly = equation.substr(comma + 1, arrow - comma - 1);
  const std::string out = equation.substr(arrow + 2);
  std::map<char, int64_t> size, at;
  for (size_t i = 0; i < lx.size(); ++i) size[lx[i]] = x.dim(static_cast<int>(i));
  for (size_t i = 0; i < ly.size(); ++i) size[ly[i]] = y.dim(static_cast<int>(i));
  const auto place = [&](const std::string& letters) {
    int64_t p = 0;
    for (const char l : letters) p = p * size[l] + at[l];
    return static_cast<size_t>(p);
  };
  int64_t count = 1;
  for (const char l : out) count *= size[l];
  std::vector<double> made(static_cast<size_t>(count));
  const std::vector<float> xs = Floats(x), ys = Floats(y);
  for (bool more = true; more;) {
    made[place(out)] += double{xs[place(lx)]} * ys[place(ly)];
    more = false;
    for (auto& [letter, n] : size) {
      more = ++at[letter] < n;
      if (more) break;
      at[letter] = 0;
    }
  }
  return made;
}

// Values are those that the formula gives, whichever operators an einsum becomes.
TEST(TensorflowNetwork, EinsumsOfMatricesAreProducts) {
  struct Case {
    const char* equation;
    std::vector<int64_t> x, y;
    bool is_product;
  };
  const Case cases[] = {{"aecd,abcd->acbe", {2, 3, 4, 5}, {2, 6, 4, 5}, true},
                        {"acbe,aecd->abcd", {2, 4, 3, 6}, {2, 6, 4, 5}, true},
                        {"abc,cde->abde", {2, 3, 4}, {4, 5, 6}, true},
                        {"abcd,cde->abe", {2, 3, 4, 5}, {4, 5, 6}, true},
                        {"ab,bc->ac", {2, 3}, {3, 4}, true},
                        {"ab,bc->ca", {2, 3}, {3, 4}, false},
                        {"abc,abd->acd", {2, 3, 4}, {2, 3, 5}, true},
                        {"abc,bd->acd", {2, 3, 4}, {3, 5}, false}};
  for (const Case& c : cases) {
    const Tensor x = RandomF32(Shape(c.x), 3), y = RandomF32(Shape(c.y), 4);
    const std::vector<double> want = EinsumOf(c.equation, x, y);
    for (const bool open : {false, true}) {
      SCOPED_TRACE(std::string(c.equation) + (open ? ", open" : ""));
      Graph g;
      const std::vector<int64_t> any(c.x.size(), -1);
      g.Add(NodeOf("Placeholder", "x", {},
                   {{"dtype", TypeValue(kF)}, {"shape", ShapeValue(open ? any : c.x)}}));
      g.Add(FloatsNode("y", c.y, Floats(y)));
      g.Add("Einsum", "z", {"x", "y"},
            {{"equation", TextValue(c.equation)}, {"T", TypeValue(kF)}, {"N", IntValue(2)}});
      const auto model = LoadBytes(g.bytes(), {.fetches = {"z"}});
      ASSERT_TRUE(model.ok()) << model.status().ToString();
      bool product = false;
      for (const auto& op : model->program.op_counts()) product |= op.type == "matmul_v2";
      EXPECT_TRUE(open || product == c.is_product);
      const std::vector<float> got = RunGraph(g, {{"x", x}}, "z");
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5) << i;
    }
  }
}

TEST(TensorflowNetwork, EinsumsWithoutACommaAreRefused) {
  Graph g;
  g.Add(PlaceholderNode("x")).Add(PlaceholderNode("y"));
  g.Add("Einsum", "z", {"x", "y"}, {{"equation", TextValue("ab->ab")}, {"N", IntValue(2)}});
  const auto model = LoadBytes(g.bytes(), {.fetches = {"z"}});
  EXPECT_FALSE(model.ok() &&
               TryRun(*model, {{"x", F32({1, 1}, {1})}, {"y", F32({1, 1}, {1})}}).ok());
}

}  // namespace
}  // namespace heddle::testing::tf
