// Random programs and targets: every answer is legal, and that of a small program the best.
#include <gtest/gtest.h>

#include "partition/graph.h"
#include "tests/partition/legal.h"
#include "tests/partition/random_programs.h"

namespace heddle::partition {
namespace {

struct Answer {
  Target target;
  Description description;
  Partition partition;
};

// The program must outlive the answer.
Answer AnswerTo(const std::string& program, const std::string& target) {
  auto parsed = ParseTarget(target, "t.json");
  EXPECT_TRUE(parsed.ok()) << parsed.status().ToString() << target;
  auto description = Description::Parse(program);
  auto partition = PartitionBytes(program, {*parsed});
  EXPECT_TRUE(partition.ok()) << partition.status().ToString();
  return {*parsed, *std::move(description), *partition};
}

int CoveredBy(const BlockPartition& block) {
  size_t covered = 0;
  for (const PlacedGroup& group : block.groups) covered += group.operators.size();
  return static_cast<int>(covered);
}

TEST(RandomPrograms, AreGroupedLegally) {
  RandomPrograms random(1);
  for (int k = 0; k < 500; ++k) {
    const std::string program = random.Program(10 + random.Below(60)), target = random.Target();
    const Answer answer = AnswerTo(program, target);
    const Graph graph(answer.description, 0);
    ASSERT_EQ(WhyIllegal(Matches(graph, answer.target), answer.partition.blocks[0]), "")
        << k << "\n"
        << target;
  }
}

// `crossing`: of the kind in which groups easily wait for each other.
void ExpectTheBestOf(RandomPrograms& random, bool crossing) {
  int compared = 0;
  for (int k = 0; k < 500; ++k) {
    const std::string program =
        crossing ? random.Crossing(4 + random.Below(3)) : random.Program(2 + random.Below(7));
    const std::string target = crossing ? random.SmallGroups() : random.Target();
    const Answer answer = AnswerTo(program, target);
    const Graph graph(answer.description, 0);
    const Matches matches(graph, answer.target);
    const BlockPartition& block = answer.partition.blocks[0];
    ASSERT_EQ(WhyIllegal(matches, block), "") << k << "\n" << target;
    const auto best = BestOfAll(matches, 6);
    if (!best) continue;
    ++compared;
    if (answer.target.objective == Objective::kCost) {
      ASSERT_NEAR(block.groups_cost + block.host_cost, best->cost, 1e-6) << k << "\n" << target;
    } else {
      ASSERT_EQ(CoveredBy(block), best->covered) << k << "\n" << target;
      ASSERT_EQ(block.groups.size(), static_cast<size_t>(best->groups)) << k << "\n" << target;
    }
  }
  EXPECT_GT(compared, 300);
}

TEST(RandomPrograms, OfFewOperatorsAreGroupedInTheBestWay) {
  RandomPrograms random(2);
  ExpectTheBestOf(random, false);
}

TEST(RandomPrograms, WhoseGroupsWaitForEachOtherAreGroupedInTheBestWay) {
  RandomPrograms random(6);
  ExpectTheBestOf(random, true);
}

TEST(RandomPrograms, AreGroupedAlikeEachTime) {
  RandomPrograms random(3);
  for (int k = 0; k < 20; ++k) {
    const std::string program = random.Program(80), target = random.Target();
    const Answer one = AnswerTo(program, target), two = AnswerTo(program, target);
    ASSERT_EQ(one.partition.blocks[0].groups.size(), two.partition.blocks[0].groups.size());
    for (size_t q = 0; q < one.partition.blocks[0].groups.size(); ++q)
      ASSERT_EQ(one.partition.blocks[0].groups[q].operators,
                two.partition.blocks[0].groups[q].operators);
  }
}

// Two targets: the first one has what it has alone, and nothing is claimed twice.
TEST(RandomPrograms, GoToTheFirstTargetFirst) {
  RandomPrograms random(4);
  for (int k = 0; k < 100; ++k) {
    const std::string program = random.Program(5 + random.Below(40));
    auto first = ParseTarget(random.Target(), "a"), second = ParseTarget(random.Target(), "b");
    second->name = "second";
    const auto alone = PartitionBytes(program, {*first});
    const auto both = PartitionBytes(program, {*first, *second});
    ASSERT_TRUE(alone.ok() && both.ok());
    const BlockPartition &a = alone->blocks[0], &b = both->blocks[0];
    ASSERT_GE(b.groups.size(), a.groups.size());
    for (size_t q = 0; q < a.groups.size(); ++q)
      ASSERT_EQ(a.groups[q].operators, b.groups[q].operators);
    size_t count = b.rest.size();
    for (const PlacedGroup& group : b.groups) {
      count += group.operators.size() + group.helpers.size();
      ASSERT_EQ(group.target,
                &group - b.groups.data() < static_cast<long>(a.groups.size()) ? 0 : 1);
    }
    ASSERT_EQ(count, static_cast<size_t>(b.operators));
  }
}

}  // namespace
}  // namespace heddle::partition
