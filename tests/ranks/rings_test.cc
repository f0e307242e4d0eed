// Rings: some ranks of a group, counted by themselves.
#include <gtest/gtest.h>

#include <thread>

#include "tests/ranks/group.h"

namespace heddle::testing {
namespace {

const std::vector<RankRing> kRings = {{1, {0, 2}}, {2, {3, 1}}};

// Ranks 0 and 2 exchange values among themselves, 3 and 1 as well, then all.
TEST(Rings, AreOfTheirRanksOnly) {
  Group group(4, 1, kRings);
  const auto program = [](int r) {
    ProgramBuilder b;
    b.Feed("x", DType::kF32, {2});
    const int64_t ring = r % 2 + 1;
    b.Op("c_allreduce_sum", {{"X", {"x"}}}, {{"Out", {"sum"}}}, {{"ring_id", ring}});
    b.Op("c_allgather", {{"X", {"x"}}}, {{"Out", {"row"}}},
         {{"ring_id", ring}, {"nranks", int64_t{2}}});
    b.Op("c_broadcast", {{"X", {"x"}}}, {{"Out", {"second"}}},
         {{"ring_id", ring}, {"root", int64_t{1}}});
    b.Op("c_allreduce_sum", {{"X", {"x"}}}, {{"Out", {"all"}}});
    for (const char* out : {"sum", "row", "second", "all"}) b.Fetch(out);
    return b.Build();
  };
  for (int run = 0; run < 3; ++run) {
    group.Compile(program);
    const auto outputs = group.Run([](int r) {
      return std::vector<Feed>{{"x", F32({2}, {static_cast<float>(1 << r), 0})}};
    });
    for (int r = 0; r < 4; ++r) {
      const auto& out = outputs[static_cast<size_t>(r)];
      ASSERT_TRUE(out.ok()) << out.status().ToString();
      EXPECT_EQ((*out)[0].data<float>()[0], r % 2 == 0 ? 5 : 10);
      EXPECT_EQ(Floats((*out)[1]), r % 2 == 0 ? (V{1, 0, 4, 0}) : (V{8, 0, 2, 0}))
          << "in the order of the ring";
      EXPECT_EQ((*out)[2].data<float>()[0], r % 2 == 0 ? 4 : 2) << "of the ring's second rank";
      EXPECT_EQ((*out)[3].data<float>()[0], 15);
    }
  }
}

// A rank that is not in a ring need not be there when the others meet; peers are counted in it.
TEST(Rings, WaitForTheirOwnRanksOnly) {
  Group group(3, 1, {{7, {2, 0}}});
  group.Compile([](int r) {
    ProgramBuilder b;
    b.Feed("x", DType::kF32, {2});
    if (r == 0) {  // the ring's second
      b.Op("recv_v2", {}, {{"Out", {"y"}}},
           {{"peer", int64_t{0}}, {"ring_id", int64_t{7}}, {"out_shape", Ints{2}}});
      b.Op("c_allreduce_max", {{"X", {"y"}}}, {{"Out", {"z"}}}, {{"ring_id", int64_t{7}}});
    } else if (r == 2) {
      b.Op("send_v2", {{"X", {"x"}}}, {}, {{"peer", int64_t{1}}, {"ring_id", int64_t{7}}});
      b.Op("c_allreduce_max", {{"X", {"x"}}}, {{"Out", {"z"}}}, {{"ring_id", int64_t{7}}});
    } else {
      b.Unary("relu", "x", "z");
    }
    b.Fetch("z");
    return b.Build();
  });
  std::vector<std::thread> threads;
  for (const int r : {0, 2})
    threads.emplace_back([&, r] {
      const auto out =
          group[r].Run(group.compiled(r), {{"x", F32({2}, {static_cast<float>(r), 5})}});
      ASSERT_TRUE(out.ok()) << out.status().ToString();
      EXPECT_EQ(Floats((*out)[0]), (V{2, 5}));
    });
  for (std::thread& t : threads) t.join();
}

TEST(Rings, RefuseWhoIsNotInThemAndWrongCounts) {
  Group group(3, 1, {{1, {0, 1}}});
  group.Compile([](int) {
    return One("c_allreduce_sum", {2}, DType::kF32, {{"ring_id", int64_t{1}}});
  });
  // The two others may have met by then.
  const auto outputs = group.Run(Two);
  ASSERT_FALSE(outputs[2].ok());
  EXPECT_NE(outputs[2].status().ToString().find("for ring 1, and rank 2 is not in it"),
            std::string::npos)
      << outputs[2].status().ToString();
  Group two(2, 1, {{1, {0, 1}}});
  two.Compile([](int r) {
    return One("c_allgather", {2}, DType::kF32,
               {{"ring_id", int64_t{1}}, {"nranks", int64_t{r + 2}}});
  });
  for (const auto& out : two.Run(Two)) EXPECT_FALSE(out.ok());
  const auto error = [](int size, const std::vector<RankRing>& rings) {
    const auto made = NewRanks(size, rings);
    return made.ok() ? std::string() : made.status().ToString();
  };
  EXPECT_NE(error(2, {{1, {0}}, {1, {1}}}).find("ring 1 is named twice"), std::string::npos);
  EXPECT_NE(error(2, {{1, {}}}).find("ring 1 has no ranks"), std::string::npos);
  EXPECT_NE(error(2, {{1, {0, 2}}}).find("names rank 2 of a group of 2"), std::string::npos);
  EXPECT_NE(error(2, {{1, {1, 1}}}).find("names rank 1 twice"), std::string::npos);
  EXPECT_NE(error(0, {}).find("at least one rank"), std::string::npos);
  EXPECT_EQ(error(2, {{0, {1, 0}}}), "") << "ring 0 as well";
}

}  // namespace
}  // namespace heddle::testing
