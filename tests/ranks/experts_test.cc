// Rows for experts on other ranks, and losses whose classes are spread over ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "tests/ranks/group.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using ::testing::HasSubstr;

Program Exchange(const std::string& type) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1, -1});
  b.Feed("local", DType::kI64, {-1}).Feed("global", DType::kI64, {-1});
  b.Op(type, {{"X", {"x"}}, {"local_count", {"local"}}, {"global_count", {"global"}}},
       {{"Out", {"y"}}});
  b.Fetch("y");
  return b.Build();
}

std::vector<Tensor> RunExchange(const std::string& type, const std::vector<Tensor>& x,
                                const std::vector<Ints>& local, const std::vector<Ints>& global) {
  Group group(static_cast<int>(x.size()));
  group.Compile([&](int) { return Exchange(type); });
  std::vector<Tensor> made;
  for (auto& out : group.Run([&](int r) {
         const auto k = static_cast<size_t>(r);
         const auto n = static_cast<int64_t>(local[k].size());
         return std::vector<Feed>{
             {"x", x[k]}, {"local", I64({n}, local[k])}, {"global", I64({n}, global[k])}};
       })) {
    EXPECT_TRUE(out.ok()) << out.status().ToString();
    made.push_back(out.ok() ? (*out)[0] : Tensor());
  }
  return made;
}

// The example of Paddle's documentation of global_scatter.
TEST(Experts, GetTheRowsThatPaddleSends) {
  const Tensor x = F32({5, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  const std::vector<Ints> counts = {{2, 1, 1, 1}, {1, 1, 2, 1}};
  const auto sent = RunExchange("global_scatter", {x, x}, counts, counts);
  EXPECT_EQ(Floats(sent[0]), (V{1, 2, 3, 4, 1, 2, 5, 6, 3, 4}));
  EXPECT_EQ(Floats(sent[1]), (V{7, 8, 5, 6, 7, 8, 9, 10, 9, 10}));
  const auto back = RunExchange("global_gather", sent, counts, counts);
  for (const Tensor& t : back) EXPECT_EQ(Floats(t), Floats(x));
}

// Drawn counts, some zero: each row arrives where it should, and comes back to its place.
TEST(Experts, RowsComeBackToTheirPlaces) {
  std::mt19937 random(11);
  for (const int ranks : {1, 2, 3})
    for (const int experts : {1, 2, 3})
      for (int round = 0; round < 4; ++round) {
        const auto n = static_cast<size_t>(ranks), e = static_cast<size_t>(experts);
        std::vector<Ints> local(n, Ints(n * e)), global(n, Ints(n * e));
        for (size_t r = 0; r < n; ++r)
          for (size_t k = 0; k < n * e; ++k) local[r][k] = static_cast<int64_t>(random() % 4);
        for (size_t r = 0; r < n; ++r)
          for (size_t from = 0; from < n; ++from)
            for (size_t k = 0; k < e; ++k) global[r][from * e + k] = local[from][r * e + k];
        std::vector<Tensor> x;
        for (size_t r = 0; r < n; ++r)
          x.push_back(RandomF32({std::accumulate(local[r].begin(), local[r].end(), int64_t{0}), 3},
                                random()));
        const auto sent = RunExchange("global_scatter", x, local, global);
        for (size_t r = 0; r < n; ++r) {
          V expected;  // by expert, then by rank
          for (size_t k = 0; k < e; ++k)
            for (size_t from = 0; from < n; ++from) {
              const size_t at = r * e + k;
              const int64_t begin = std::accumulate(
                  local[from].begin(), local[from].begin() + static_cast<int64_t>(at), int64_t{0});
              const V rows = Floats(x[from]);
              expected.insert(expected.end(), rows.begin() + begin * 3,
                              rows.begin() + (begin + local[from][at]) * 3);
            }
          EXPECT_EQ(Floats(sent[r]), expected);
        }
        const auto back = RunExchange("global_gather", sent, local, global);
        for (size_t r = 0; r < n; ++r) EXPECT_EQ(Floats(back[r]), Floats(x[r]));
      }
}

TEST(Experts, CountsThatDoNotFitAreOneError) {
  const auto error = [](const Tensor& x, const Ints& local, const Ints& global) {
    Group group(1);
    group.Compile([](int) { return Exchange("global_scatter"); });
    const auto feeds = [&](int) {
      return std::vector<Feed>{{"x", x},
                               {"local", I64({static_cast<int64_t>(local.size())}, local)},
                               {"global", I64({static_cast<int64_t>(global.size())}, global)}};
    };
    return group.Run(feeds)[0].status().ToString();
  };
  const Tensor x = F32({2, 2}, {1, 2, 3, 4});
  EXPECT_THAT(error(x, {3}, {3}), HasSubstr("the counts say 3 rows; 'X' has 2"));
  EXPECT_THAT(error(x, {-1}, {1}), HasSubstr("'local_count' says -1 rows"));
  EXPECT_THAT(error(x, {1, 1}, {2}), HasSubstr("'local_count' has 2 counts, 'global_count' 1"));
  EXPECT_THAT(error(x, {1}, {2}), HasSubstr("where this one expects 2 rows"));
}

// The loss of classes on two ranks is that of all classes on one.
TEST(SpreadClasses, GiveTheLossOfAll) {
  const int64_t rows = 5, classes = 6;
  const Tensor logits = RandomF32({rows, classes}, 3, 4);
  const Tensor label = I64({rows, 1}, {0, 5, 3, 2, -100});
  const auto program = [&](int64_t ranks) {
    return [&, ranks](int rank) {
      ProgramBuilder b;
      b.Feed("x", DType::kF32, {rows, classes / ranks}).Feed("label", DType::kI64, {rows, 1});
      b.Op("c_softmax_with_cross_entropy", {{"Logits", {"x"}}, {"Label", {"label"}}},
           {{"Softmax", {"softmax"}}, {"Loss", {"loss"}}},
           {{"nranks", ranks}, {"rank", int64_t{rank}}});
      b.Fill("one", {rows, 1}, 1);
      b.Op("c_softmax_with_cross_entropy_grad",
           {{"Softmax", {"softmax"}}, {"Label", {"label"}}, {"Loss@GRAD", {"one"}}},
           {{"Logits@GRAD", {"grad"}}}, {{"nranks", ranks}, {"rank", int64_t{rank}}});
      b.Fetch("softmax").Fetch("loss").Fetch("grad");
      return b.Build();
    };
  };
  const auto part = [&](const V& all, int rank, int64_t ranks) {
    const int64_t width = classes / ranks;
    V made;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < width; ++c)
        made.push_back(all[static_cast<size_t>(r * classes + rank * width + c)]);
    return made;
  };
  Group one(1);
  one.Compile(program(1));
  const auto whole = one.Run([&](int) {
    return std::vector<Feed>{{"x", logits}, {"label", label}};
  });
  ASSERT_TRUE(whole[0].ok()) << whole[0].status().ToString();
  const std::vector<Tensor>& all = *whole[0];
  EXPECT_EQ(Floats(all[1])[4], 0);
  for (const int64_t ranks : {2, 3}) {
    Group group(static_cast<int>(ranks));
    group.Compile(program(ranks));
    const auto outs = group.Run([&](int r) {
      return std::vector<Feed>{{"x", F32({rows, classes / ranks}, part(Floats(logits), r, ranks))},
                               {"label", label}};
    });
    for (int r = 0; r < ranks; ++r) {
      const auto& out = outs[static_cast<size_t>(r)];
      ASSERT_TRUE(out.ok()) << out.status().ToString();
      EXPECT_THAT(Floats((*out)[1]),
                  ::testing::Pointwise(::testing::FloatNear(1e-5F), Floats(all[1])));
      for (const size_t k : {0, 2})
        EXPECT_THAT(Floats((*out)[k]), ::testing::Pointwise(::testing::FloatNear(1e-5F),
                                                            part(Floats(all[k]), r, ranks)));
    }
  }
}

}  // namespace
}  // namespace heddle::testing
