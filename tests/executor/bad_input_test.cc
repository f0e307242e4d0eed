// Wrong calls and failing kernels: one clear error each, and everything works afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <new>
#include <stdexcept>
#include <thread>

#include "tests/support/program_builder.h"
#include "tests/support/test_ops.h"

namespace heddle::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

[[maybe_unused]] const bool kInstalled = InstallTestOps();

ProgramBuilder Good() {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1, 2}).Feed("ids", DType::kI64, {-1});
  b.Scale("x", "t", 2).Op("gather", {{"X", {"t"}}, {"Index", {"ids"}}}, {{"Out", {"y"}}});
  b.Fetch("y");
  return b;
}
std::vector<heddle::Feed> GoodFeeds() {
  return {{"x", F32({2, 2}, {1, 2, 3, 4})}, {"ids", I64({1}, {1})}};
}

class BadInput : public ::testing::TestWithParam<Schedule> {
 protected:
  BadInput() : executor_({.threads = 2}), good_(MustCompile(executor_, Good().Build())) {}

  CompileOptions Options() const { return {.opt_level = 0, .schedule = GetParam()}; }
  // The run fails with this code, and a good one after it does not.
  Status Fails(Executor& executor, const CompiledProgram& compiled,
               const std::vector<heddle::Feed>& feeds, StatusCode code) {
    auto out = executor.Run(compiled, feeds);
    EXPECT_FALSE(out.ok());
    EXPECT_EQ(out.status().code(), code) << out.status().ToString();
    AfterAll();
    return out.status();
  }
  std::string Fails(const ProgramBuilder& b, const std::vector<heddle::Feed>& feeds,
                    StatusCode code) {
    auto compiled = executor_.Compile(b.Build(), nullptr, Options());
    if (!compiled.ok()) {
      EXPECT_EQ(compiled.status().code(), code) << compiled.status().ToString();
      AfterAll();
      return compiled.status().ToString();
    }
    return Fails(executor_, *compiled, feeds, code).ToString();
  }
  std::string FailsGood(const std::vector<heddle::Feed>& feeds, StatusCode code) {
    return Fails(Good(), feeds, code);
  }
  void AfterAll() {
    auto out = executor_.Run(good_, GoodFeeds());
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    EXPECT_EQ(Floats((*out)[0]), (std::vector<float>{6, 8}));
  }

  Executor executor_;
  CompiledProgram good_;
};
INSTANTIATE_TEST_SUITE_P(Ways, BadInput,
                         ::testing::Values(Schedule::kSerial, Schedule::kParallel,
                                           Schedule::kLanes),
                         [](const auto& info) { return ScheduleName(info.param); });

// --- feeds and fetches ---
TEST_P(BadInput, AMissingFeed) {
  EXPECT_THAT(FailsGood({{"x", F32({1, 2}, {1, 2})}}, StatusCode::kInvalidArgument),
              AllOf(HasSubstr("'ids'"), HasSubstr("int64")));
  EXPECT_THAT(FailsGood({}, StatusCode::kInvalidArgument), HasSubstr("'x'"));
}

TEST_P(BadInput, AnUnknownFeed) {
  auto feeds = GoodFeeds();
  feeds.push_back({"z", F32({1}, {1})});
  EXPECT_THAT(FailsGood(feeds, StatusCode::kInvalidArgument),
              AllOf(HasSubstr("'z'"), HasSubstr("'x'"), HasSubstr("'ids'")));
}

TEST_P(BadInput, AFeedTwice) {
  auto feeds = GoodFeeds();
  feeds.push_back(feeds[0]);
  EXPECT_THAT(FailsGood(feeds, StatusCode::kInvalidArgument), HasSubstr("'x'"));
}

TEST_P(BadInput, AnEmptyFeed) {
  EXPECT_THAT(FailsGood({{"x", Tensor()}, {"ids", I64({1}, {0})}}, StatusCode::kInvalidArgument),
              HasSubstr("'x'"));
}

TEST_P(BadInput, AFeedOfTheWrongDType) {
  EXPECT_THAT(
      FailsGood({{"x", I64({1, 2}, {1, 2})}, {"ids", I64({1}, {0})}}, StatusCode::kInvalidArgument),
      AllOf(HasSubstr("'x'"), HasSubstr("int64"), HasSubstr("float32")));
}

TEST_P(BadInput, AFeedOfTheWrongRank) {
  EXPECT_THAT(
      FailsGood({{"x", F32({2}, {1, 2})}, {"ids", I64({1}, {0})}}, StatusCode::kInvalidArgument),
      AllOf(HasSubstr("'x'"), HasSubstr("rank 1"), HasSubstr("[?, 2]")));
}

TEST_P(BadInput, AFeedWithAWrongDimension) {
  EXPECT_THAT(FailsGood({{"x", F32({1, 3}, {1, 2, 3})}, {"ids", I64({1}, {0})}},
                        StatusCode::kInvalidArgument),
              AllOf(HasSubstr("'x'"), HasSubstr("[1, 3]"), HasSubstr("[?, 2]")));
}

TEST_P(BadInput, AFeedThatIsAnArray) {
  auto out = executor_.Run(
      good_, {{"x", Value(TensorArray{F32({1, 2}, {1, 2})})}, {"ids", I64({1}, {0})}});
  EXPECT_FALSE(out.ok());
  AfterAll();
}

TEST_P(BadInput, AFetchOfANameThatDoesNotExist) {
  auto compiled = executor_.Compile(Good().Build(), nullptr, {.fetches = {"y", "nobody"}});
  ASSERT_FALSE(compiled.ok());
  EXPECT_EQ(compiled.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(compiled.status().ToString(), HasSubstr("'nobody'"));
  AfterAll();
}

TEST_P(BadInput, AFetchOfAVariableNobodyWrites) {
  ProgramBuilder b = Good();
  b.Var("idle", DType::kF32, {1});
  b.Fetch("idle");
  EXPECT_THAT(Fails(b, GoodFeeds(), StatusCode::kInvalidArgument), HasSubstr("'idle'"));
}

// --- operators ---
TEST_P(BadInput, AnOperatorReadsWhatNobodyWrites) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1}).Var("ghost", DType::kF32, {1});
  b.Scale("x", "t", 1).Binary("elementwise_add", "t", "ghost", "y").Fetch("y");
  EXPECT_THAT(Fails(b, {{"x", F32({1}, {1})}}, StatusCode::kInvalidArgument),
              AllOf(HasSubstr("block 0, op 2"), HasSubstr("elementwise_add"), HasSubstr("'ghost'"),
                    HasSubstr("-> y")));
}

TEST_P(BadInput, AnOperatorReadsWhatIsWrittenOnlyLater) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1}).Var("late", DType::kF32, {1});
  b.Binary("elementwise_add", "x", "late", "y").Scale("x", "late", 1).Fetch("y").Fetch("late");
  EXPECT_THAT(Fails(b, {{"x", F32({1}, {1})}}, StatusCode::kInvalidArgument), HasSubstr("'late'"));
}

TEST_P(BadInput, AParameterWithoutAValue) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1}).Param("w", DType::kF32, {1});
  b.Binary("elementwise_add", "x", "w", "y").Fetch("y");
  EXPECT_THAT(Fails(b, {{"x", F32({1}, {1})}}, StatusCode::kNotFound), HasSubstr("'w'"));
}

TEST_P(BadInput, AnIndexOutOfRange) {
  for (int64_t index : {int64_t{2}, int64_t{-3}, int64_t{1} << 62}) {
    EXPECT_THAT(FailsGood({{"x", F32({2, 2}, {1, 2, 3, 4})}, {"ids", I64({1}, {index})}},
                          StatusCode::kOutOfRange),
                AllOf(HasSubstr("block 0, op 3"), HasSubstr("gather"), HasSubstr("-> y"),
                      HasSubstr(std::to_string(index))));
  }
}

TEST_P(BadInput, ALookupOutOfRange) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1, 2}).Feed("ids", DType::kI64, {-1});
  b.Op("lookup_table_v2", {{"W", {"x"}}, {"Ids", {"ids"}}}, {{"Out", {"y"}}}).Fetch("y");
  EXPECT_THAT(Fails(b, {{"x", F32({2, 2}, {1, 2, 3, 4})}, {"ids", I64({2}, {0, 7})}},
                    StatusCode::kOutOfRange),
              AllOf(HasSubstr("block 0, op 2"), HasSubstr("lookup_table_v2"), HasSubstr("7")));
}

TEST_P(BadInput, ShapesThatDoNotFit) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1}).Feed("y", DType::kF32, {-1});
  b.Scale("x", "t", 1).Binary("elementwise_add", "t", "y", "z").Fetch("z");
  EXPECT_THAT(
      Fails(b, {{"x", F32({2}, {1, 2})}, {"y", F32({3}, {1, 2, 3})}}, StatusCode::kInvalidArgument),
      AllOf(HasSubstr("block 0, op 3"), HasSubstr("elementwise_add"), HasSubstr("[2]"),
            HasSubstr("[3]")));
}

TEST_P(BadInput, AnErrorInsideABlock) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1, 2}).Feed("ids", DType::kI64, {-1}).Feed("go", DType::kBool, {1});
  b.Scale("x", "y", 1);
  const int body = b.Block(0);
  b.In(body).Scale("x", "inner", 1);
  b.Op("gather", {{"X", {"inner"}}, {"Index", {"ids"}}}, {{"Out", {"y"}}}).In(0);
  b.Op("conditional_block", {{"Cond", {"go"}}, {"Input", {"x", "ids"}}},
       {{"Out", {"y"}}, {"Scope", {}}},
       {{"sub_block", BlockRef{body}}, {"is_scalar_condition", true}});
  b.Fetch("y");
  EXPECT_THAT(Fails(b, {{"x", F32({1, 2}, {1, 2})}, {"ids", I64({1}, {9})}, {"go", Bool(true)}},
                    StatusCode::kOutOfRange),
              AllOf(HasSubstr("block 1, op 1"), HasSubstr("gather"), HasSubstr("-> y")));
}

TEST_P(BadInput, ADTypeWithoutAKernel) {
  ProgramBuilder b;
  b.Feed("x", DType::kBool, {-1}).Unary("relu", "x", "y").Fetch("y");
  EXPECT_THAT(Fails(b, {{"x", Bool(true)}}, StatusCode::kUnimplemented),
              AllOf(HasSubstr("block 0, op 1"), HasSubstr("relu"), HasSubstr("bool"),
                    HasSubstr("float32")));
}

TEST_P(BadInput, AConditionThatIsNoBool) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1}).Scale("x", "y", 1);
  const int body = b.Block(0);
  b.In(body).Scale("y", "y", 1).In(0);
  b.Op("while", {{"X", {"y"}}, {"Condition", {"x"}}}, {{"Out", {"y"}}, {"StepScopes", {}}},
       {{"sub_block", BlockRef{body}}});
  b.Fetch("y");
  EXPECT_THAT(Fails(b, {{"x", F32({1}, {1})}}, StatusCode::kInvalidArgument),
              AllOf(HasSubstr("while"), HasSubstr("bool")));
}

// --- memory ---
TEST_P(BadInput, AnAbsurdSize) {
  for (const Ints& shape : {Ints{int64_t{1} << 40, int64_t{1} << 40}, Ints{int64_t{1} << 47},
                            Ints{int64_t{1} << 62, 4}}) {
    ProgramBuilder b;
    b.Feed("x", DType::kF32, {-1}).Fill("big", shape, 1).Fetch("big");
    EXPECT_THAT(Fails(b, {{"x", F32({1}, {1})}}, StatusCode::kResourceExhausted),
                ::testing::Not(HasSubstr("INTERNAL")));
  }
}

TEST_P(BadInput, MoreThanTheMemoryLimit) {
  Executor small({.threads = 2, .memory_limit = 1 << 20});
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1});
  for (const char* name : {"a", "b", "c"}) b.Op("test_call", {{"X", {"x"}}}, {{"Out", {name}}});
  b.Op("sum", {{"X", {"a", "b", "c"}}}, {{"Out", {"y"}}}).Fetch("y");
  auto compiled = MustCompile(small, b.Build(), nullptr, Options());
  const int64_t n = 100 << 10;
  for (int k = 0; k < 3; ++k) {
    const Status s = Fails(small, compiled, {{"x", F32({n}, std::vector<float>(n, 1.f))}},
                           StatusCode::kResourceExhausted);
    EXPECT_THAT(s.message(), HasSubstr(std::to_string(1 << 20)));
    EXPECT_EQ(Floats(MustRun(small, compiled, {{"x", F32({2}, {1, 2})}})[0]),
              (std::vector<float>{3, 6}));
  }
}

// --- kernels that fail ---
ProgramBuilder Calls(int count) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1});
  std::vector<std::string> ends;
  for (int k = 0; k < count; ++k) {
    ends.push_back("y" + std::to_string(k));
    b.Op("test_call", {{"X", {"x"}}}, {{"Out", {ends.back()}}}, {{"id", k}});
  }
  b.Op("sum", {{"X", ends}}, {{"Out", {"y"}}}).Fetch("y");
  return b;
}

TEST_P(BadInput, AKernelThatThrowsInOneOfManyRuns) {
  auto compiled = MustCompile(executor_, Calls(5).Build(), nullptr, Options());
  for (int what = 0; what < 5; ++what) {
    for (int run = 1; run <= 10; ++run) {
      ScopedHook hook([&](int64_t id) -> Status {
        if (run != 5 || id != 3) return Status::Ok();
        if (what == 0) throw std::runtime_error("the test's error");
        if (what == 1) throw std::bad_alloc();
        if (what == 2) throw std::invalid_argument("the test's error");
        if (what == 3) throw 7;
        return Status(StatusCode::kCancelled, "the test's error");
      });
      const std::vector<heddle::Feed> feeds = {{"x", F32({1}, {2})}};
      if (run == 5) {
        constexpr StatusCode kCodes[] = {StatusCode::kInternal, StatusCode::kResourceExhausted,
                                         StatusCode::kInvalidArgument, StatusCode::kInternal,
                                         StatusCode::kCancelled};
        EXPECT_THAT(Fails(executor_, compiled, feeds, kCodes[what]).ToString(),
                    AllOf(HasSubstr("block 0, op 4 (test_call -> y3)"),
                          HasSubstr(what == 1   ? "bad_alloc"
                                    : what == 3 ? "threw"
                                                : "the test's")));
      } else {
        EXPECT_EQ(Floats(MustRun(executor_, compiled, feeds)[0]), (std::vector<float>{10}));
      }
    }
  }
}

// Two operators that wait for each other are on two threads; the one that is not the caller throws.
TEST(PoolThread, AKernelThatThrowsThere) {
  Executor executor({.threads = 2});
  auto compiled = MustCompile(executor, Calls(2).Build(), nullptr,
                              {.opt_level = 0, .schedule = Schedule::kParallel});
  const auto caller = std::this_thread::get_id();
  for (int run = 1; run <= 10; ++run) {
    std::mutex mutex;
    std::condition_variable both;
    int inside = 0;
    ScopedHook hook([&](int64_t) -> Status {
      std::unique_lock lock(mutex);
      ++inside;
      both.notify_all();
      if (!both.wait_for(lock, std::chrono::seconds(20), [&] { return inside == 2; }))
        return Status(StatusCode::kDeadlineExceeded, "no second thread came");
      if (run == 5 && std::this_thread::get_id() != caller) throw std::runtime_error("on the pool");
      return Status::Ok();
    });
    auto out = executor.Run(compiled, {{"x", F32({1}, {2})}});
    EXPECT_EQ(out.ok(), run != 5) << run << ": " << out.status().ToString();
    if (run == 5) {
      EXPECT_THAT(out.status().ToString(), AllOf(HasSubstr("on the pool"), HasSubstr("test_call")));
    } else if (out.ok()) {
      EXPECT_EQ(Floats((*out)[0]), (std::vector<float>{4}));
    }
  }
}

TEST_P(BadInput, AFailedRunLeavesParametersAtACompleteValue) {
  ProgramBuilder b;
  b.Param("w", DType::kF32, {2}).Param("v", DType::kF32, {2}).Feed("x", DType::kF32, {-1});
  b.Binary("elementwise_add", "w", "x", "w");
  b.Op("test_call", {{"X", {"w"}}}, {{"Out", {"t"}}}, {{"id", 1}});
  b.Binary("elementwise_add", "v", "t", "v");
  b.Fetch("v");
  auto scope = std::make_shared<Scope>();
  scope->Set("w", F32({2}, {0, 0}));
  scope->Set("v", F32({2}, {0, 0}));
  auto compiled = MustCompile(executor_, b.Build(), scope, Options());
  const std::vector<heddle::Feed> feeds = {{"x", F32({2}, {1, 2})}};
  MustRun(executor_, compiled, feeds);
  {
    ScopedHook hook([](int64_t) -> Status { throw std::runtime_error("now"); });
    EXPECT_FALSE(Fails(executor_, compiled, feeds, StatusCode::kInternal).ok());
  }
  EXPECT_EQ(Floats(scope->Find("w")->tensor()), (std::vector<float>{2, 4}));
  EXPECT_EQ(Floats(scope->Find("v")->tensor()), (std::vector<float>{1, 2}));
  EXPECT_EQ(Floats(MustRun(executor_, compiled, feeds)[0]), (std::vector<float>{4, 8}));
}

TEST_P(BadInput, ManyClientsAndSomeFailures) {
  auto compiled = MustCompile(executor_, Calls(6).Build(), nullptr, Options());
  std::atomic<int> calls{0}, wrong{0}, failed{0};
  ScopedHook hook([&](int64_t) -> Status {
    if (calls.fetch_add(1) % 37 == 0) throw std::runtime_error("every now and then");
    return Status::Ok();
  });
  std::vector<std::thread> clients;
  for (int c = 0; c < 4; ++c)
    clients.emplace_back([&, c] {
      for (int k = 0; k < 100; ++k) {
        const auto v = static_cast<float>(c * 100 + k);
        auto out = executor_.Run(compiled, {{"x", F32({1}, {v})}});
        if (!out.ok())
          ++failed;
        else if (Floats((*out)[0])[0] != 6 * v)
          ++wrong;
      }
    });
  for (auto& t : clients) t.join();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_GT(failed.load(), 0);
  AfterAll();
}

TEST(EmptyProgram, IsRefused) {
  Executor executor({.threads = 1});
  EXPECT_FALSE(executor.Compile(Program(), nullptr).ok());
}

}  // namespace
}  // namespace heddle::testing
