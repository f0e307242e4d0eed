// Target files: what is wrong with one is said in one line that names it.
#include "partition/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "partition/match.h"
#include "tests/partition/program_text.h"

namespace heddle::partition {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kGood =
    R"({"name": "t", "version": 1, "objective": "cost",
        "units": [{"name": "a", "cost": {"call": 1}, "ops": [{"type": "relu", "rank": [1, 4]}]},
                  {"name": "b", "ops": [{"type": "tanh", "attrs": {"k": {"min": 1}},
                                         "slots": {"X": {"constant": false}}}]}],
        "links": [["a", "b"]], "start": ["a"], "helpers": [{"type": "shape"}],
        "limits": {"max_group": 4}, "cost": {"group": 1}, "host": {"call": 2}})";

std::string With(const std::string& from, const std::string& to) {
  std::string text = kGood;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Target, IsRead) {
  const auto target = ParseTarget(kGood, "t.json");
  ASSERT_TRUE(target.ok()) << target.status().ToString();
  EXPECT_EQ(target->objective, Objective::kCost);
  EXPECT_EQ(target->units[1].patterns[0].attrs[0].name, "k");
  EXPECT_EQ(target->limits.max_group, 4);
  EXPECT_EQ(target->first, (std::vector<UnitId>{0, 1}));
  EXPECT_EQ(target->next[0], (std::vector<UnitId>{1}));
}

TEST(Target, FaultsAreNamed) {
  const struct {
    std::string from, to, named;
  } cases[] = {
      {R"("version")", R"("versoin")", "versoin"},
      {R"("version": 1)", R"("version": 2)", "version"},
      {R"("objective": "cost")", R"("objective": "best")", "best"},
      {R"("name": "t", )", "", "'name'"},
      {R"("start": ["a"], )", "", "'start'"},
      {R"("start": ["a"])", R"("start": [])", "start"},
      {R"("start": ["a"])", R"("start": ["c"])", "'c'"},
      {R"([["a", "b"]])", R"([["a", "c"]])", "'c'"},
      {R"([["a", "b"]])", R"([["a"]])", "links[0]"},
      {R"({"name": "b")", R"({"name": "a")", "'a'"},
      {R"({"name": "b", )", "{", "'name'"},
      {R"({"type": "relu", )", "{", "'type'"},
      {R"("call": 1)", R"("cal": 1)", "'cal'"},
      {R"("call": 1)", R"("call": -1)", "call"},
      {R"("call": 1)", R"("call": "1")", "call"},
      {R"("rank": [1, 4])", R"("rank": [4, 1])", "rank"},
      {R"("rank": [1, 4])", R"("rank": 4)", "rank"},
      {R"("rank": [1, 4])", R"("ranks": [1, 4])", "ranks"},
      {R"("rank": [1, 4])", R"("dtypes": ["flaot32"])", "flaot32"},
      {R"({"min": 1})", R"({"mni": 1})", "mni"},
      {R"({"min": 1})", R"({"min": [1]})", "min"},
      {R"({"min": 1})", R"({"in": 1})", "attrs.k.in"},
      {R"({"min": 1})", "null", "attrs.k"},
      {R"("constant": false)", R"("constant": 0)", "constant"},
      {R"("constant": false)", R"("constnat": false)", "constnat"},
      {R"("max_group": 4)", R"("max_grop": 4)", "max_grop"},
      {R"("max_group": 4)", R"("max_group": 0)", "max_group"},
      {R"("max_group": 4)", R"("max_group": 1.5)", "max_group"},
      {R"("max_group": 4)", R"("static_shapes": 1)", "static_shapes"},
      {R"({"group": 1})", R"({"groups": 1})", "groups"},
      {R"({"type": "shape"})", R"({"typ": "shape"})", "typ"},
      {R"("host": {"call": 2}})", R"("host": {"call": 2})", "cut short"},
      {kGood, "[]", "object"},
  };
  for (const auto& fault : cases) {
    const auto target = ParseTarget(With(fault.from, fault.to), "t.json");
    ASSERT_FALSE(target.ok()) << fault.to;
    EXPECT_THAT(target.status().ToString(),
                AllOf(HasSubstr("t.json"), HasSubstr(fault.named), Not(HasSubstr("\n"))));
  }
}

TEST(Target, AFileThatIsNotThereIsNamed) {
  EXPECT_THAT(LoadTarget("/nowhere/t.json").status().ToString(), HasSubstr("/nowhere/t.json"));
}

// Whether unit a takes a relu with the attributes, by the conditions on attribute k.
bool Takes(const std::string& conditions, const std::vector<std::string>& attrs) {
  auto target =
      ParseTarget(With(R"("rank": [1, 4])", R"("attrs": {"k": )" + conditions + "}"), "t.json");
  EXPECT_TRUE(target.ok()) << target.status().ToString();
  ProgramText text;
  text.Feed("x");
  text.Tensor("y");
  const int relu = text.Op("relu", {{"X", {"x"}}}, {{"Out", {"y"}}}, attrs);
  const std::string bytes = text.Text();
  const auto description = Description::Parse(bytes);
  const Graph graph(*description, 0);
  return Matches(graph, *target).taken(relu);
}

TEST(Target, ConditionsOnAttributes) {
  const std::vector<std::string> none,
      two = {AttrText("k", 0, {2})}, list = {AttrText("k", 3, {2, 2, 3})},
      flag = {AttrText("k", 6, {1})}, word = {TextAttr("k", "up")}, block = {AttrText("k", 8, {})};
  const struct {
    std::string conditions;
    std::vector<std::string> attrs;
    bool taken;
  } cases[] = {
      {"2", two, true},
      {"2.0", two, true},
      {"3", two, false},
      {R"("up")", two, false},
      {R"("up")", word, true},
      {"true", flag, true},
      {"1", flag, true},
      {"false", flag, false},
      {"[2, 2, 3]", list, true},
      {"[2, 2]", list, false},
      {"2", list, false},
      {R"({"ne": 2})", two, false},
      {R"({"in": [1, 2]})", two, true},
      {R"({"in": [[2, 2, 3]]})", list, true},
      {R"({"not_in": ["up"]})", word, false},
      {R"({"min": 2, "max": 3})", list, true},
      {R"({"min": 3})", list, false},
      {R"({"max": 2})", list, false},
      {R"({"min": 0})", word, false},
      {R"({"all": 2})", list, false},
      {R"({"all": 2})", two, true},
      {R"({"len": 3})", list, true},
      {R"({"len": 3, "max": 2})", list, false},
      {"2", none, false},
      {R"({"eq": 2, "default": 2})", none, true},
      {R"({"eq": 2, "default": 1})", none, false},
      {R"({"eq": 2, "absent": true})", none, true},
      {R"({"eq": 2, "absent": true})", {AttrText("k", 0, {3})}, false},
      {R"({"ne": 2})", none, false},
      {"{}", two, true},
      {"{}", none, false},
  };
  for (const auto& c : cases) EXPECT_EQ(Takes(c.conditions, c.attrs), c.taken) << c.conditions;
}

}  // namespace
}  // namespace heddle::partition
