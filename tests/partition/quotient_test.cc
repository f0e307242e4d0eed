// Merging nodes of random graphs, held to a search through all of them.
#include "partition/quotient.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/partition/random_programs.h"

namespace heddle::partition {
namespace {

// Whether a path leaves the operators' nodes and comes back.
bool ComesBack(const Graph& graph, const Quotient& quotient, const std::vector<OpIndex>& ops) {
  std::set<Quotient::Node> merged, seen;
  for (const OpIndex i : ops) merged.insert(quotient.node(i));
  std::vector<Quotient::Node> todo(merged.begin(), merged.end());
  while (!todo.empty()) {
    const Quotient::Node node = todo.back();
    todo.pop_back();
    for (const OpIndex member : quotient.members(node)) {
      for (const OpIndex next : graph.after(member)) {
        const Quotient::Node to = quotient.node(next);
        if (to == node) continue;
        if (merged.contains(to)) {
          if (!merged.contains(node)) return true;
        } else if (seen.insert(to).second) {
          todo.push_back(to);
        }
      }
    }
  }
  return false;
}

void ExpectOrdered(const Graph& graph, const Quotient& quotient) {
  for (OpIndex i = 0; i < graph.size(); ++i)
    for (const OpIndex p : graph.before(i)) {
      const Quotient::Node from = quotient.node(p), to = quotient.node(i);
      ASSERT_TRUE(from == to || quotient.Before(from, to)) << p << " " << i;
    }
}

TEST(Quotient, MergesWhereNoPathComesBack) {
  RandomPrograms random(5);
  int merged = 0, refused = 0;
  for (int k = 0; k < 60; ++k) {
    const std::string program = random.Program(20 + random.Below(60));
    const auto description = Description::Parse(program);
    ASSERT_TRUE(description.ok());
    const Graph graph(*description, 0);
    Quotient quotient(graph);
    for (int step = 0; step < 60; ++step) {
      std::vector<OpIndex> ops;
      for (int n = random.Below(3) + 1; n >= 0; --n) ops.push_back(random.Below(graph.size()));
      if (random.Below(6) == 0) {
        quotient.Split(ops[0]);
      } else {
        const bool back = ComesBack(graph, quotient, ops);
        ASSERT_EQ(quotient.Merge(ops), !back);
        ++(back ? refused : merged);
      }
      ExpectOrdered(graph, quotient);
    }
  }
  EXPECT_GT(merged, 500);
  EXPECT_GT(refused, 500);
}

// A long row of merges at one place uses up the gaps between numbers.
TEST(Quotient, MakesRoom) {
  ProgramText text;
  text.Feed("x");
  std::string last = "x";
  std::vector<OpIndex> chain, sides;
  for (int k = 0; k < 400; ++k) {
    const std::string side = "s" + std::to_string(k), next = "c" + std::to_string(k);
    text.Tensor(side);
    text.Tensor(next);
    sides.push_back(text.Op("tanh", {{"X", {"x"}}}, {{"Out", {side}}}));
    chain.push_back(text.Op("elementwise_add", {{"X", {last}}, {"Y", {side}}}, {{"Out", {next}}}));
    last = next;
  }
  text.Fetch(last);
  const std::string bytes = text.Text();
  const auto description = Description::Parse(bytes);
  const Graph graph(*description, 0);
  Quotient quotient(graph);
  for (size_t k = 1; k < chain.size(); ++k) {
    const OpIndex pair[] = {chain[0], chain[k]};
    ASSERT_TRUE(quotient.Merge(pair)) << k;
  }
  ExpectOrdered(graph, quotient);
  EXPECT_EQ(quotient.members(quotient.node(chain[0])).size(), chain.size());
}

}  // namespace
}  // namespace heddle::partition
