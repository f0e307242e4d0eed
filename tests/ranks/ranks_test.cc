// Groups of ranks within a process: what communication operators compute, and how groups end.
#include "heddle/ranks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>
#include <thread>

#include "core/shapes.h"
#include "heddle/async_run.h"
#include "heddle/bounds.h"
#include "ranks/communicator.h"
#include "tests/ranks/group.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

// The results of the ranks.
std::vector<Tensor> Collective(const std::string& type, const std::vector<Tensor>& x,
                               const Attrs& attrs = {}) {
  Group group(static_cast<int>(x.size()));
  group.Compile([&](int) { return One(type, x[0].shape(), x[0].dtype(), attrs); });
  std::vector<Tensor> results;
  for (auto& out : group.Run([&](int r) {
         return std::vector<Feed>{{"x", x[static_cast<size_t>(r)]}};
       })) {
    EXPECT_TRUE(out.ok()) << type << ": " << out.status().ToString();
    results.push_back(out.ok() ? (*out)[0] : Tensor());
  }
  return results;
}

TEST(Ranks, TheirNumberIsBounded) {
  for (const int size : {kMostRanks + 1, 1 << 20, std::numeric_limits<int>::max()}) {
    const auto made = NewRanks(size, {});
    EXPECT_EQ(made.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(made.status().message().find("at most 1024"), std::string::npos);
    EXPECT_THROW(NewRanks(size), std::invalid_argument);
  }
  for (const int size : {0, -1, std::numeric_limits<int>::min()})
    EXPECT_FALSE(NewRanks(size, {}).ok()) << size;
  EXPECT_EQ(NewRanks(kMostRanks, {{1, {0, kMostRanks - 1}}})->size(), size_t{kMostRanks});
  std::vector<RankRing> rings(kMostRings + 1);
  for (size_t k = 0; k < rings.size(); ++k) rings[k] = {static_cast<int64_t>(k), {0}};
  EXPECT_FALSE(NewRanks(1, rings).ok());
  rings.pop_back();
  EXPECT_TRUE(NewRanks(1, rings).ok());
}

// The operands of ranks in the tests below: 0.5 (rank + 1) (1, 2, …, 6).
std::vector<Tensor> Ramps(int ranks) {
  std::vector<Tensor> x;
  for (int r = 0; r < ranks; ++r) {
    std::vector<float> v(6);
    for (int i = 0; i < 6; ++i)
      v[static_cast<size_t>(i)] = 0.5f * static_cast<float>((r + 1) * (i + 1));
    x.push_back(F32({6}, v));
  }
  return x;
}

// Values of Paddle 2.6.2, two processes with gloo.
TEST(Collectives, GiveWhatPaddleGives) {
  const std::vector<Tensor> x = Ramps(2);
  for (const Tensor& y : Collective("c_allreduce_sum", x))
    EXPECT_EQ(Floats(y), (V{1.5, 3, 4.5, 6, 7.5, 9}));
  for (const Tensor& y : Collective("c_allreduce_max", x))
    EXPECT_EQ(Floats(y), (V{1, 2, 3, 4, 5, 6}));
  for (const Tensor& y : Collective("c_allreduce_min", x))
    EXPECT_EQ(Floats(y), (V{0.5, 1, 1.5, 2, 2.5, 3}));
  for (const Tensor& y : Collective("c_allreduce_prod", x))
    EXPECT_EQ(Floats(y), (V{0.5, 2, 4.5, 8, 12.5, 18}));
  for (const Tensor& y : Collective("c_allgather", x, {{"nranks", int64_t{2}}}))
    EXPECT_EQ(Floats(y), (V{0.5, 1, 1.5, 2, 2.5, 3, 1, 2, 3, 4, 5, 6}));
  const auto reduced = Collective("c_reduce_sum", x, {{"root_id", int64_t{1}}});
  EXPECT_EQ(Floats(reduced[1]), (V{1.5, 3, 4.5, 6, 7.5, 9}));
  EXPECT_EQ(Floats(reduced[0]), Floats(x[0]));
}

TEST(Collectives, ComputeWhatTheirNamesSay) {
  for (const int n : {1, 2, 3, 4}) {
    const std::vector<Tensor> x = Ramps(n);
    const float all = static_cast<float>(n * (n + 1)) / 4;  // of the first elements
    const Attrs ranks = {{"nranks", int64_t{n}}};
    for (const char* type : {"c_allreduce_sum", "mp_allreduce_sum", "all_reduce"})
      for (const Tensor& y : Collective(type, x))
        for (int i = 0; i < 6; ++i)
          EXPECT_FLOAT_EQ(y.data<float>()[i], all * static_cast<float>(i + 1)) << type << n;
    for (const Tensor& y : Collective("all_reduce", x, {{"reduce_type", int64_t{4}}}))
      EXPECT_FLOAT_EQ(y.data<float>()[1], 2 * all / static_cast<float>(n));
    for (const Tensor& y : Collective("all_reduce", x, {{"reduce_type", int64_t{2}}}))
      EXPECT_EQ(Floats(y), Floats(x[0]));
    for (const Tensor& y : Collective("broadcast", x, {{"root", int64_t{n - 1}}}))
      EXPECT_EQ(Floats(y), Floats(x.back()));
    for (const Tensor& y : Collective("barrier", x)) EXPECT_EQ(y.numel(), 6);
    for (const Tensor& y : Collective("dist_concat", x, ranks)) {
      EXPECT_EQ(y.shape(), Shape({6 * n}));
      EXPECT_EQ(y.data<float>()[6 * n - 1], 3.f * static_cast<float>(n));
    }
    if (6 % n != 0) continue;
    const int part = 6 / n;
    const auto scattered = Collective("reduce_scatter", x, ranks);
    const auto cut = Collective("c_scatter", x, {{"nranks", int64_t{n}}, {"root", int64_t{n - 1}}});
    const auto turned = Collective("alltoall", x);
    for (int r = 0; r < n; ++r)
      for (int i = 0; i < part; ++i) {
        const auto at = static_cast<size_t>(r);
        EXPECT_FLOAT_EQ(scattered[at].data<float>()[i], all * static_cast<float>(r * part + i + 1));
        EXPECT_EQ(cut[at].data<float>()[i], x.back().data<float>()[r * part + i]);
        for (int s = 0; s < n; ++s)
          EXPECT_EQ(turned[at].data<float>()[s * part + i],
                    x[static_cast<size_t>(s)].data<float>()[r * part + i]);
      }
  }
}

TEST(Collectives, JoinAlongTheLastAxisAndSplitAgain) {
  const std::vector<Tensor> x = {F32({2, 2}, {1, 2, 3, 4}), F32({2, 2}, {5, 6, 7, 8})};
  for (const Tensor& y : Collective("c_concat", x, {{"nranks", int64_t{2}}})) {
    EXPECT_EQ(y.shape(), Shape({2, 4}));
    EXPECT_EQ(Floats(y), (V{1, 2, 5, 6, 3, 4, 7, 8}));
    Executor executor;
    const CompiledProgram split = MustCompile(
        executor,
        One("c_split", {2, 4}, DType::kF32, {{"nranks", int64_t{2}}, {"rank", int64_t{1}}}));
    EXPECT_EQ(Floats(MustRun(executor, split, {{"x", y}})[0]), (V{5, 6, 7, 8}));
  }
}

// Every element of every dtype, against the same tree in one thread.
TEST(Collectives, AddAlongAFixedTree) {
  constexpr int kRanks = 5;
  constexpr int64_t kCount = 5003;
  std::vector<Tensor> x;
  for (int r = 0; r < kRanks; ++r)
    x.push_back(RandomF32({kCount}, static_cast<uint32_t>(r + 1), 1e4f));
  const auto at = [&](int r, int64_t i) { return x[static_cast<size_t>(r)].data<float>()[i]; };
  const auto sums = Collective("c_allreduce_sum", x);
  for (const Tensor& y : sums)
    for (int64_t i = 0; i < kCount; ++i)
      ASSERT_EQ(y.data<float>()[i], ((at(0, i) + at(1, i)) + (at(2, i) + at(3, i))) + at(4, i))
          << i;
}

TEST(Collectives, WorkInEveryDType) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI8,
                            DType::kU8, DType::kI16, DType::kI32, DType::kI64}) {
    ProgramBuilder b;
    b.Feed("x", DType::kF32, {5});
    b.Op("cast", {{"X", {"x"}}}, {{"Out", {"y"}}}, {{"out_dtype", DTypeToProto(dtype)}});
    b.Op("c_allreduce_sum", {{"X", {"y"}}}, {{"Out", {"z"}}});
    b.Op("cast", {{"X", {"z"}}}, {{"Out", {"w"}}}, {{"out_dtype", int64_t{5}}});
    b.Fetch("w");
    Group group(3);
    group.Compile([&](int) { return b.Build(); });
    for (auto& out : group.Run([](int r) {
           const auto v = static_cast<float>(r);
           return std::vector<Feed>{{"x", F32({5}, {v, 2 * v, 3, 4, 5})}};
         })) {
      ASSERT_TRUE(out.ok()) << out.status().ToString();
      EXPECT_EQ(Floats((*out)[0]), (V{3, 6, 9, 12, 15})) << Name(dtype);
    }
  }
}

// Rank r sends to the next one and receives from the one before; then the halves of what came.
TEST(SendAndReceive, GoAround) {
  for (const int n : {1, 2, 3}) {
    Group group(n);
    group.Compile([&](int r) {
      const int64_t next = (r + 1) % n, before = (r + n - 1) % n;
      ProgramBuilder b;
      b.Feed("x", DType::kF32, {2, 2});
      b.Op("send_v2", {{"X", {"x"}}}, {}, {{"peer", next}});
      b.Op("recv_v2", {}, {{"Out", {"y"}}}, {{"peer", before}, {"out_shape", Ints{2, 2}}});
      b.Op("p_send", {{"x", {"y"}}}, {}, {{"peer", next}, {"ring_id", int64_t{1}}});
      b.Op("p_recv", {}, {{"out", {"z"}}},
           {{"peer", before}, {"ring_id", int64_t{1}}, {"dynamic_shape", true}});
      const Attrs half = {{"num", int64_t{2}}, {"id", int64_t{1}}};
      Attrs to = half, from = half;
      to.emplace_back("peer", next);
      from.emplace_back("peer", before);
      from.emplace_back("out_shape", Ints{2, 2});
      b.Op("partial_send", {{"X", {"z"}}}, {}, to);
      b.Op("partial_recv", {}, {{"Out", {"w"}}}, from);
      b.Fetch("y").Fetch("z").Fetch("w");
      return b.Build();
    });
    for (int run = 0; run < 3; ++run) {
      auto outputs = group.Run([&](int r) {
        const auto v = static_cast<float>(r + run);
        return std::vector<Feed>{{"x", F32({2, 2}, {v, v + 1, v + 2, v + 3})}};
      });
      for (int r = 0; r < n; ++r) {
        auto& out = outputs[static_cast<size_t>(r)];
        ASSERT_TRUE(out.ok()) << out.status().ToString();
        const auto of = [&](int steps) {
          return static_cast<float>((r + steps * n - steps) % n + run);
        };
        const float y = of(1), z = of(2), w = of(3);
        EXPECT_EQ(Floats((*out)[0]), (V{y, y + 1, y + 2, y + 3}));
        EXPECT_EQ(Floats((*out)[1]), (V{z, z + 1, z + 2, z + 3}));
        EXPECT_EQ(Floats((*out)[2]), (V{0, 0, w + 2, w + 3}));
      }
    }
  }
}

TEST(Ranks, OnesOfAGroupOfOneNeedNoGroup) {
  Executor executor;
  const Attrs one = {{"nranks", int64_t{1}}};
  for (const char* type : {"c_allgather", "c_concat", "c_reducescatter", "c_scatter"}) {
    const CompiledProgram p = MustCompile(executor, One(type, {2, 3}, DType::kF32, one));
    EXPECT_EQ(Floats(MustRun(executor, p, {{"x", F32({2, 3}, {1, 2, 3, 4, 5, 6})}})[0]),
              (V{1, 2, 3, 4, 5, 6}));
  }
}

std::string ErrorOf(Executor& executor, const Program& program) {
  const CompiledProgram p = MustCompile(executor, program);
  auto out = executor.Run(p, {{"x", F32({2}, {1, 2})}});
  return out.ok() ? "" : out.status().ToString();
}

TEST(Ranks, WithoutAGroupTheErrorSaysSo) {
  Executor executor;
  const std::string all = ErrorOf(executor, One("c_allreduce_sum", {2}, DType::kF32, {}));
  EXPECT_NE(all.find("op 1 (c_allreduce_sum -> y)"), std::string::npos) << all;
  EXPECT_NE(all.find("none of a group's"), std::string::npos) << all;
  const std::string two =
      ErrorOf(executor, One("c_allgather", {2}, DType::kF32, {{"nranks", int64_t{2}}}));
  EXPECT_NE(two.find("none of a group's"), std::string::npos) << two;
  Executor alone({.threads = 1, .communicator = NewRanks(1)[0]});
  const std::string count =
      ErrorOf(alone, One("c_allgather", {2}, DType::kF32, {{"nranks", int64_t{2}}}));
  EXPECT_NE(count.find("is made for 2 ranks; this group has 1"), std::string::npos) << count;
}

// --- groups that cannot go on ---

// Every rank fails with a message that holds `text`; the group can be used again.
void ExpectAll(Group& group, const Outputs& outputs, const std::string& text) {
  for (const auto& out : outputs) {
    ASSERT_FALSE(out.ok());
    EXPECT_NE(out.status().ToString().find(text), std::string::npos) << out.status().ToString();
  }
  group.Compile([](int) { return One("c_allreduce_sum", {2}, DType::kF32, {}); });
  for (auto& out : group.Run(Two)) {
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    EXPECT_EQ((*out)[0].data<float>()[1], 2.f * static_cast<float>(group.size()));
  }
}

TEST(Ranks, MustBringOperandsOfOneShape) {
  Group group(3);
  group.Compile([](int r) { return One("c_allreduce_sum", {r == 1 ? 3 : 2}, DType::kF32, {}); });
  const auto outputs = group.Run([](int r) {
    return std::vector<Feed>{{"x", r == 1 ? F32({3}, {1, 2, 3}) : F32({2}, {1, 2})}};
  });
  for (const auto& out : outputs)
    EXPECT_NE(out.status().ToString().find("of float32 [3] (c_allreduce_sum)"), std::string::npos)
        << out.status().ToString();
  ExpectAll(group, outputs, "the ranks' operators do not fit together");
}

TEST(Ranks, MustMakeTheSameCollective) {
  Group group(2);
  group.Compile(
      [](int r) { return One(r == 0 ? "c_allreduce_sum" : "c_broadcast", {2}, DType::kF32, {}); });
  ExpectAll(group, group.Run(Two), "do not fit together");
}

TEST(Ranks, FailTogether) {
  Group group(3);
  group.Compile([](int r) {
    ProgramBuilder b;
    b.Feed("x", DType::kF32, {2});
    b.Op("cast", {{"X", {"x"}}}, {{"Out", {"i"}}}, {{"out_dtype", DTypeToProto(DType::kI64)}});
    if (r == 2)  // fails: the index is too large
      b.Op("gather", {{"X", {"x"}}, {"Index", {"i"}}}, {{"Out", {"g"}}});
    else
      b.Op("relu", {{"X", {"x"}}}, {{"Out", {"g"}}});
    b.Op("c_allreduce_sum", {{"X", {"g"}}}, {{"Out", {"y"}}});
    b.Fetch("y");
    return b.Build();
  });
  const auto outputs = group.Run([](int) { return std::vector<Feed>{{"x", F32({2}, {1, 7})}}; });
  for (int r = 0; r < 2; ++r)
    EXPECT_NE(outputs[static_cast<size_t>(r)].status().ToString().find("rank 2's run failed"),
              std::string::npos);
  ExpectAll(group, outputs, "gather");
}

TEST(Ranks, FailTogetherBeforeTheRunBegins) {
  Group group(2);
  group.Compile([](int) { return One("c_allreduce_sum", {2}, DType::kF32, {}); });
  ExpectAll(group, group.Run([](int r) {
    return std::vector<Feed>{{r == 0 ? "x" : "unknown", F32({2}, {1, 2})}};
  }),
            "unknown");
}

TEST(Ranks, DoNotWaitForOneThatHasEnded) {
  Group group(2);
  group.Compile([](int r) {
    ProgramBuilder b;
    b.Feed("x", DType::kF32, {2});
    b.Op("c_allreduce_sum", {{"X", {"x"}}}, {{"Out", {"y"}}});
    if (r == 0) b.Op("c_allreduce_sum", {{"X", {"y"}}}, {{"Out", {"z"}}});
    b.Fetch(r == 0 ? "z" : "y");
    return b.Build();
  });
  const auto outputs = group.Run(Two);
  EXPECT_TRUE(outputs[1].ok());
  EXPECT_NE(outputs[0].status().ToString().find("which has ended its run without it"),
            std::string::npos)
      << outputs[0].status().ToString();
}

TEST(Ranks, DoNotWaitForEachOther) {
  Group group(2);
  group.Compile([](int r) {
    ProgramBuilder b;
    b.Feed("x", DType::kF32, {2});
    b.Op("recv_v2", {}, {{"Out", {"y"}}}, {{"peer", int64_t{1 - r}}, {"out_shape", Ints{2}}});
    b.Op("send_v2", {{"X", {"y"}}}, {}, {{"peer", int64_t{1 - r}}});
    b.Fetch("y");
    return b.Build();
  });
  ExpectAll(group, group.Run(Two),
            "the ranks wait for each other: rank 0 in recv_v2 from rank 1, rank 1 in recv_v2 from "
            "rank 0");
}

TEST(Ranks, DoNotWaitForOneThatIsGivenUp) {
  auto ranks = NewRanks(2);
  Executor first({.threads = 1, .communicator = ranks[0]});
  ranks.pop_back();
  const std::string error = ErrorOf(first, One("c_allreduce_sum", {2}, DType::kF32, {}));
  EXPECT_NE(error.find("which is there no more"), std::string::npos) << error;
}

TEST(Ranks, NeedScopesOfTheirOwn) {
  Group group(2);
  auto scope = std::make_shared<Scope>();
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2});
  b.Param("w", DType::kF32, {2});
  b.Op("c_allreduce_sum", {{"X", {"x"}}}, {{"Out", {"w"}}});
  b.Fetch("w");
  std::vector<CompiledProgram> compiled;
  for (int r = 0; r < 2; ++r) compiled.push_back(MustCompile(group[r], b.Build(), scope));
  std::vector<Status> status(2);
  std::vector<std::thread> threads;
  for (size_t r = 0; r < 2; ++r)
    threads.emplace_back([&, r] {
      auto out = group[static_cast<int>(r)].Run(compiled[r], Two(0));
      status[r] = out.ok() ? Status::Ok() : out.status();
    });
  for (std::thread& t : threads) t.join();
  for (const Status& s : status)
    EXPECT_NE(s.ToString().find("each needs a scope of its own"), std::string::npos)
        << s.ToString();
  // A scope that nobody writes to may be shared.
  compiled.clear();
  for (int r = 0; r < 2; ++r)
    compiled.push_back(MustCompile(group[r], One("c_allreduce_sum", {2}, DType::kF32, {}), scope));
  threads.clear();
  for (size_t r = 0; r < 2; ++r)
    threads.emplace_back([&, r] {
      auto out = group[static_cast<int>(r)].Run(compiled[r], Two(0));
      status[r] = out.ok() ? Status::Ok() : out.status();
    });
  for (std::thread& t : threads) t.join();
  for (const Status& s : status) EXPECT_TRUE(s.ok()) << s.ToString();
}

TEST(Ranks, EndAtADeadlineOrWhenCancelled) {
  for (const bool cancel : {false, true}) {
    Group group(2);
    std::stop_source stop;
    const auto started = std::chrono::steady_clock::now();
    group.Compile([](int) { return One("c_allreduce_sum", {2}, DType::kF32, {}); });
    // Rank 1 does not come.
    std::thread stopper([&] {
      if (!cancel) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      stop.request_stop();
    });
    RunOptions options;
    if (cancel)
      options.stop = stop.get_token();
    else
      options.deadline = started + std::chrono::milliseconds(30);
    auto out = group[0].Run(group.compiled(0), Two(0), options);
    stopper.join();
    ASSERT_FALSE(out.ok());
    EXPECT_EQ(out.status().code(), cancel ? StatusCode::kCancelled : StatusCode::kDeadlineExceeded);
    // Its own run, which belongs to that one, fails when it comes; then they are together again.
    auto late = group[1].Run(group.compiled(1), Two(0));
    ASSERT_FALSE(late.ok());
    EXPECT_NE(late.status().ToString().find("rank 0's run failed"), std::string::npos);
    for (auto& both : group.Run(Two)) EXPECT_TRUE(both.ok()) << both.status().ToString();
  }
}

// Asynchronous runs of one rank keep their order, whatever threads make them.
TEST(Ranks, MeetInAsynchronousRuns) {
  constexpr int kRuns = 40;
  Group group(2, 2);
  group.Compile([](int) { return One("c_allreduce_sum", {2}, DType::kF32, {}); });
  std::vector<std::vector<AsyncRun>> runs(2);
  for (int k = 0; k < kRuns; ++k)
    for (int r = 0; r < 2; ++r)
      runs[static_cast<size_t>(r)].push_back(AsyncRun::Start(
          group.compiled(r), {{"x", F32({2}, {static_cast<float>(k), static_cast<float>(r)})}}));
  for (auto& of_rank : runs)
    for (int k = 0; k < kRuns; ++k) {
      auto out = of_rank[static_cast<size_t>(k)].Take();
      ASSERT_TRUE(out.ok()) << out.status().ToString();
      EXPECT_EQ(Floats((*out)[0].tensor()), (V{2.f * static_cast<float>(k), 1}));
    }
}

// A run that ends before its turn still takes its turn: the runs behind it meet those of the other
// rank that belong to them.
TEST(Ranks, MeetAfterAnAsynchronousRunThatEndedEarly) {
  for (const bool cancel : {false, true}) {
    Group group(2, 2);
    group.Compile([](int) { return One("c_allreduce_sum", {2}, DType::kF32, {}); });
    const auto feed = [](int k) {
      return std::vector<Feed>{{"x", F32({2}, {static_cast<float>(k), 1})}};
    };
    std::vector<AsyncRun> first;
    for (int k = 0; k < 3; ++k) {
      RunOptions options;
      if (k == 1 && !cancel) options.deadline = std::chrono::steady_clock::now();
      first.push_back(AsyncRun::Start(group.compiled(0), feed(k), options));
    }
    if (cancel) first[1].Cancel();  // the one before waits for rank 1
    for (int k = 0; k < 3; ++k) {
      auto mine = group[1].Run(group.compiled(1), feed(k));
      auto theirs = first[static_cast<size_t>(k)].Take();
      if (k == 1) {
        EXPECT_EQ(theirs.status().code(),
                  cancel ? StatusCode::kCancelled : StatusCode::kDeadlineExceeded);
        EXPECT_NE(mine.status().ToString().find("rank 0's run failed"), std::string::npos)
            << mine.status().ToString();
        continue;
      }
      ASSERT_TRUE(mine.ok() && theirs.ok())
          << mine.status().ToString() << theirs.status().ToString();
      EXPECT_EQ(Floats((*mine)[0]), (V{2.f * static_cast<float>(k), 2}));
    }
  }
}

TEST(Ranks, WaitForTheirTurnNoLongerThanTheRunMay) {
  Group group(2);
  group.Compile([](int) { return One("c_allreduce_sum", {2}, DType::kF32, {}); });
  Status patient;
  std::thread other([&] { patient = group[0].Run(group.compiled(0), Two(0)).status(); });
  // Rank 1 has not come: this one waits for it, or for the run of the other thread.
  const auto soon = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
  const auto late = group[0].Run(group.compiled(0), Two(0), {.deadline = soon});
  EXPECT_EQ(late.status().code(), StatusCode::kDeadlineExceeded) << late.status().ToString();
  int met = 0;
  for (int run = 0; run < 2; ++run) met += group[1].Run(group.compiled(1), Two(1)).ok() ? 1 : 0;
  other.join();
  EXPECT_TRUE(patient.ok()) << patient.ToString();
  EXPECT_EQ(met, 1);
}

// Nobody may count on the operands of a rank whose wait has ended by an exception.
TEST(Ranks, WithdrawWhenTheirWaitThrows) {
  const auto ranks = NewRanks(2);
  const auto go_on = [] { return Status::Ok(); };
  const auto no_memory = []() -> Status { throw std::bad_alloc(); };
  std::vector<Tensor> out;
  for (const auto& rank : ranks) {
    ASSERT_TRUE(rank->BeginRun(go_on).ok());
    out.push_back(F32({2}, {0, 0}));
  }
  const Tensor x = F32({2}, {1, 2});
  const Status first =
      ranks[0]->AllReduce({"c_allreduce_sum", 0, no_memory}, Reduction::kSum, x, &out[0]);
  EXPECT_EQ(first.code(), StatusCode::kResourceExhausted) << first.ToString();
  const Status second =
      ranks[1]->AllReduce({"c_allreduce_sum", 0, go_on}, Reduction::kSum, x, &out[1]);
  EXPECT_NE(second.ToString().find("rank 0's run failed"), std::string::npos) << second.ToString();
}

TEST(Collectives, RefuseShapesThatNobodyCanHave) {
  Executor executor({.threads = 1, .communicator = NewRanks(1)[0]});
  for (const int64_t nranks : {int64_t{1} << 62, int64_t{1} << 50})
    for (const char* type : {"c_allgather", "dist_concat"}) {
      const std::string error =
          ErrorOf(executor, One(type, {2}, DType::kF32, {{"nranks", nranks}}));
      EXPECT_NE(error.find("more elements than can be stored"), std::string::npos) << error;
    }
  for (const char* type : {"c_allgather", "c_reducescatter", "c_split", "c_scatter"}) {
    const std::string error =
        ErrorOf(executor, One(type, {2}, DType::kF32, {{"nranks", int64_t{-2}}}));
    EXPECT_NE(error.find("nranks must be positive; it is -2"), std::string::npos) << error;
  }
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2});
  b.Op("send_v2", {{"X", {"x"}}}, {});
  b.Op("recv_v2", {}, {{"Out", {"y"}}}, {{"out_shape", Ints(11, 1)}});
  b.Fetch("y");
  const std::string error = ErrorOf(executor, b.Build());
  EXPECT_NE(error.find("out_shape has 11 dimensions"), std::string::npos) << error;
}

// Collectives keep the program's order whatever runs beside them.
TEST(Ranks, MeetInOrderInEverySchedule) {
  constexpr int kBranches = 8;
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {64});
  for (int k = 0; k < kBranches; ++k) {
    const std::string n = std::to_string(k);
    b.Scale("x", "s" + n, 1.0 + k);
    b.Unary("tanh", "s" + n, "t" + n);
    b.Op("c_allreduce_sum", {{"X", {"t" + n}}}, {{"Out", {"r" + n}}},
         {{"ring_id", int64_t{k % 2}}});
    b.Unary("exp", "r" + n, "e" + n);
    b.Fetch("e" + n);
  }
  std::vector<std::string> expected;
  for (const int threads : {1, 3})
    for (const Schedule schedule :
         {Schedule::kSerial, Schedule::kParallel, Schedule::kLanes, Schedule::kAuto})
      for (const uint64_t seed : {0, 9}) {
        Group group(2, threads);
        group.Compile([&](int) { return b.Build(); }, {.schedule = schedule, .shuffle_seed = seed});
        for (int run = 0; run < 3; ++run) {
          std::vector<std::string> bits;
          for (auto& out : group.Run([](int r) {
                 return std::vector<Feed>{{"x", RandomF32({64}, static_cast<uint32_t>(r + 5))}};
               })) {
            ASSERT_TRUE(out.ok()) << out.status().ToString();
            for (const Tensor& t : *out) bits.push_back(Bits(t));
          }
          if (expected.empty()) expected = bits;
          EXPECT_EQ(bits, expected) << ScheduleName(schedule) << threads;
        }
      }
}

}  // namespace
}  // namespace heddle::testing
