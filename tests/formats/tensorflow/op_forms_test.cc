// Nodes of all operators with inputs of drawn ranks and numbers of inputs: what the operator's
// definition does not allow is one error that says where, and nothing else is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "core/error.h"
#include "formats/tensorflow/handlers.h"
#include "formats/tensorflow/types/op_types.h"
#include "tests/formats/tensorflow/graph_bytes.h"

namespace heddle::testing::tf {
namespace {

using tensorflow::FindWrongForm;
using tensorflow::RankRange;
using tensorflow::RanksOf;
using ::testing::HasSubstr;
using ::testing::Not;

const tensorflow::Attribute* NoAttribute(std::string_view) { return nullptr; }

struct Form {
  std::string op;
  size_t inputs = 0;
};

// The operators that have handlers, take a fixed number of inputs and stand alone, outside of
// loops.
std::vector<Form> FixedForms() {
  std::vector<Form> forms;
  for (const tensorflow::HandlerEntry& entry : tensorflow::AllHandlers()) {
    const bool of_loops = entry.op == "Enter" || entry.op == "RefEnter" || entry.op == "Exit" ||
                          entry.op == "LoopCond" || entry.op == "NextIteration";
    if (of_loops || FindWrongForm(entry.op, 99, NoAttribute).empty()) continue;
    for (size_t n = 1; n < 8; ++n)
      if (FindWrongForm(entry.op, n, NoAttribute).empty())
        forms.push_back({std::string(entry.op), n});
  }
  std::sort(forms.begin(), forms.end(), [](const Form& a, const Form& b) { return a.op < b.op; });
  return forms;
}

TEST(TensorflowForms, RanksAndNumbersOfInputsAreThoseOfTheTable) {
  constexpr int kCount = 1500;
  std::mt19937_64 random(1926);
  const std::vector<Form> forms = FixedForms();
  ASSERT_GT(forms.size(), 200u);
  int refused = 0, taken = 0;
  for (int drawn = 0; drawn < kCount; ++drawn) {
    const Form& form = forms[random() % forms.size()];
    Graph g;
    std::vector<std::string> names;
    std::string wrong;
    for (size_t i = 0; i < form.inputs; ++i) {
      const int rank = static_cast<int>(random() % 6);
      names.push_back(StrCat("x", i));
      g.Add(NodeOf("Placeholder", names.back(), {},
                   {{"dtype", TypeValue(kF)},
                    {"shape", ShapeValue(std::vector<int64_t>(static_cast<size_t>(rank), 2))}}));
      const RankRange allowed = RanksOf(form.op, i);
      if (wrong.empty() && (rank < allowed.least || rank > allowed.most))
        wrong = StrCat("input ", i, " ('x", i, "') has rank ", rank);
    }
    g.Add(form.op, "y", names, {{"T", TypeValue(kF)}});
    const std::string error = ErrorOf(g.bytes(), {.fetches = {"y"}});
    if (wrong.empty())
      EXPECT_THAT(error, Not(HasSubstr("') has rank "))) << form.op;
    else
      EXPECT_THAT(error, HasSubstr(wrong)) << form.op;
    ++(wrong.empty() ? taken : refused);
    names.pop_back();
    Graph fewer;
    for (const std::string& name : names) fewer.Add(PlaceholderNode(name));
    fewer.Add(form.op, "y", names, {{"T", TypeValue(kF)}});
    EXPECT_THAT(ErrorOf(fewer.bytes(), {.fetches = {"y"}}),
                HasSubstr(StrCat("has ", names.size(), " inputs, expected ", form.inputs)))
        << form.op;
  }
  EXPECT_GT(refused, kCount / 8);
  EXPECT_GT(taken, kCount / 8);
}

TEST(TensorflowForms, AttributesHaveTheValuesThatThereAre) {
  Graph pad, pack;
  pad.Add(PlaceholderNode("x")).Add(IntsNode("p", {1, 2}, {1, 1}));
  pad.Add("MirrorPad", "y", {"x", "p"}, {{"T", TypeValue(kF)}, {"mode", TextValue("WRAP")}});
  EXPECT_THAT(ErrorOf(pad.bytes(), {.fetches = {"y"}}),
              HasSubstr("attribute mode is 'WRAP', expected one of REFLECT|SYMMETRIC"));
  pack.Add("Pack", "y", {}, {{"T", TypeValue(kF)}, {"N", IntValue(0)}});
  EXPECT_THAT(ErrorOf(pack.bytes(), {.fetches = {"y"}}),
              HasSubstr("attribute N is 0, expected 1 or more"));
}

// The only rank that an operator takes is that of what is fed to it.
TEST(TensorflowForms, FeedsGetTheOnlyRankThatIsAllowed) {
  Graph g;
  g.Add(PlaceholderNode("x")).Add(FloatsNode("w", {2, 2}, {1, 2, 3, 4}));
  g.Add("MatMul", "y", {"x", "w"}, {{"T", TypeValue(kF)}});
  const auto model = LoadBytes(g.bytes(), {.fetches = {"y"}});
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  EXPECT_EQ(model->program.inputs()[0].shape.rank(), 2);
}

}  // namespace
}  // namespace heddle::testing::tf
