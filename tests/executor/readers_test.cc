// Programs that read their data themselves: queues, double buffers, the end of the data.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "core/readers/reader.h"
#include "core/shapes.h"
#include "heddle/reader_queue.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using Batch = ReaderQueue::Batch;

Batch Number(float v) { return {F32({2}, {v, v + 0.5f}), I64({1}, {static_cast<int64_t>(v)})}; }

// A reader's variable in the program, as Paddle declares it.
void Declare(ProgramBuilder& b, const std::string& name, proto::VarType::Type type) {
  proto::VarDesc* var = b.desc().mutable_blocks(0)->add_vars();
  var->set_name(name);
  var->mutable_type()->set_type(type);
  var->set_persistable(true);
}

Program Startup(bool buffered, const Attrs& attrs = {}) {
  ProgramBuilder b;
  Declare(b, "queue", proto::VarType::RAW);
  Declare(b, "plain", proto::VarType::READER);
  Declare(b, "reader", proto::VarType::READER);
  b.Op("create_py_reader", {{"blocking_queue", {"queue"}}},
       {{"Out", {buffered ? "plain" : "reader"}}}, attrs);
  if (buffered)
    b.Op("create_double_buffer_reader", {{"UnderlyingReader", {"plain"}}}, {{"Out", {"reader"}}});
  return b.Build();
}

Program Main() {
  ProgramBuilder b;
  Declare(b, "reader", proto::VarType::READER);
  b.Var("x", DType::kF32, {-1}).Var("n", DType::kI64, {-1});
  b.Op("read", {{"Reader", {"reader"}}}, {{"Out", {"x", "n"}}});
  b.Scale("x", "y", 2);
  b.Fetch("y").Fetch("n");
  return b.Build();
}

// A program with its scope and queue.
struct Reading {
  std::shared_ptr<Scope> scope = std::make_shared<Scope>();
  std::shared_ptr<ReaderQueue> queue;
  Executor executor;
  std::optional<CompiledProgram> compiled;

  Reading(bool buffered, int threads, size_t capacity, const Attrs& attrs = {})
      : queue(std::make_shared<ReaderQueue>(capacity)), executor({.threads = threads}) {
    scope->Set("queue", ReaderValue(queue));
    MustRun(executor, MustCompile(executor, Startup(buffered, attrs), scope), {});
    compiled = MustCompile(executor, Main(), scope);
  }
  Result<std::vector<Tensor>> Run(const RunOptions& options = {}) {
    return executor.Run(*compiled, {}, options);
  }
};

TEST(Readers, ReadABatchARunUntilTheEnd) {
  for (const bool buffered : {false, true}) {
    Reading r(buffered, 1, 3);
    for (int epoch = 0; epoch < 3; ++epoch) {
      constexpr int kBatches = 20;
      std::thread feeder([&] {
        for (int k = 0; k < kBatches; ++k)
          EXPECT_TRUE(r.queue->Push(Number(static_cast<float>(k + epoch))));
        r.queue->Close();
      });
      for (int k = 0; k < kBatches; ++k) {
        auto out = r.Run();
        ASSERT_TRUE(out.ok()) << out.status().ToString();
        EXPECT_EQ((*out)[0].data<float>()[1], 2 * (static_cast<float>(k + epoch) + 0.5f));
        EXPECT_EQ((*out)[1].data<int64_t>()[0], k + epoch);
      }
      feeder.join();
      // The end is a status, however often it is met, and spoils nothing.
      for (int again = 0; again < 2; ++again) {
        auto end = r.Run();
        ASSERT_FALSE(end.ok());
        EXPECT_TRUE(IsEndOfData(end.status())) << end.status().ToString();
      }
      EXPECT_FALSE(r.queue->Push(Number(0)));
      r.queue->Reset();
    }
  }
}

TEST(Readers, GiveEachBatchToOneOfManyRuns) {
  for (const bool buffered : {false, true}) {
    Reading r(buffered, 2, 4);
    constexpr int kBatches = 200, kRunners = 4;
    std::mutex mutex;
    std::multiset<int64_t> seen;
    std::vector<std::thread> runners;
    for (int t = 0; t < kRunners; ++t)
      runners.emplace_back([&] {
        for (;;) {
          auto out = r.Run();
          if (!out.ok()) {
            EXPECT_TRUE(IsEndOfData(out.status())) << out.status().ToString();
            return;
          }
          const int64_t n = (*out)[1].data<int64_t>()[0];
          EXPECT_EQ((*out)[0].data<float>()[0], 2 * static_cast<float>(n));
          const std::lock_guard lock(mutex);
          seen.insert(n);
        }
      });
    std::vector<std::thread> feeders;
    for (int f = 0; f < 2; ++f)
      feeders.emplace_back([&, f] {
        for (int k = f; k < kBatches; k += 2) r.queue->Push(Number(static_cast<float>(k)));
      });
    for (std::thread& t : feeders) t.join();
    r.queue->Close();
    for (std::thread& t : runners) t.join();
    EXPECT_EQ(seen.size(), size_t{kBatches});
    for (int k = 0; k < kBatches; ++k) EXPECT_EQ(seen.count(k), 1u) << k;
  }
}

// Two batches ahead, and the queue's own.
TEST(Readers, DoubleBuffersTakeTwoAhead) {
  Reading r(true, 1, 1);
  const auto soon = [] { return std::chrono::steady_clock::now() + std::chrono::seconds(20); };
  for (int k = 0; k < 3; ++k)
    EXPECT_EQ(r.queue->PushUntil(Number(static_cast<float>(k)), soon()), true);
  const auto now = std::chrono::steady_clock::now();
  EXPECT_EQ(r.queue->PushUntil(Number(3), now + std::chrono::milliseconds(30)), std::nullopt);
  ASSERT_TRUE(r.Run().ok());
  EXPECT_EQ(r.queue->PushUntil(Number(3), soon()), true);
}

TEST(Readers, BeginAnewWithWhatComesAfterAReset) {
  for (const bool buffered : {false, true}) {
    Reading r(buffered, 1, 4);
    for (int round = 0; round < 20; ++round) {
      for (int k = 0; k < 3; ++k) r.queue->Push(Number(static_cast<float>(100 + k)));
      if (round % 2 == 1) r.queue->Close();
      if (round % 3 == 1) {
        ASSERT_TRUE(r.Run().ok());
      }
      r.queue->Reset();
      r.queue->Push(Number(static_cast<float>(round)));
      auto out = r.Run();
      ASSERT_TRUE(out.ok()) << out.status().ToString();
      EXPECT_EQ((*out)[1].data<int64_t>()[0], round);
    }
  }
}

// A feeder that waits while the queue is reset must not bring a batch of the old data.
TEST(Readers, DropWhatWaitsWhileTheQueueIsReset) {
  for (const bool close : {false, true}) {
    ReaderQueue queue(1);
    ASSERT_TRUE(queue.Push(Number(1)));
    bool pushed = true;
    std::thread feeder([&] { pushed = queue.Push(Number(2)); });
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the feeder waits by then
    if (close) queue.Close();
    queue.Reset();
    feeder.join();
    EXPECT_FALSE(pushed);
    EXPECT_EQ(queue.size(), 0u);
    EXPECT_TRUE(queue.Push(Number(3)));
  }
}

TEST(Readers, WaitNoLongerThanTheRunMay) {
  for (const bool buffered : {false, true}) {
    Reading r(buffered, 1, 2);
    auto late =
        r.Run({.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(20)});
    ASSERT_FALSE(late.ok());
    EXPECT_EQ(late.status().code(), StatusCode::kDeadlineExceeded);
    std::stop_source stop;
    std::thread stopper([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      stop.request_stop();
    });
    RunOptions options;
    options.stop = stop.get_token();
    auto cancelled = r.Run(options);
    stopper.join();
    EXPECT_EQ(cancelled.status().code(), StatusCode::kCancelled);
    r.queue->Push(Number(5));
    EXPECT_TRUE(r.Run().ok());
  }
}

TEST(Readers, CheckWhatTheyAreGiven) {
  Reading r(false, 1, 4,
            {{"ranks", Ints{1, 1}},
             {"shape_concat", Ints{2, -1}},
             {"dtypes", Ints{DTypeToProto(DType::kF32), DTypeToProto(DType::kI64)}},
             {"need_check_feed", Ints{1, 1}}});
  r.queue->Push({F32({3}, {1, 2, 3}), I64({1}, {1})});
  r.queue->Push({F32({2}, {1, 2})});
  r.queue->Push(Number(7));
  auto shape = r.Run();
  ASSERT_FALSE(shape.ok());
  EXPECT_NE(shape.status().ToString().find(
                "tensor 0 of a batch in the reader's queue is float32 [3]; expected float32 [2]"),
            std::string::npos)
      << shape.status().ToString();
  auto count = r.Run();
  ASSERT_FALSE(count.ok());
  EXPECT_NE(count.status().ToString().find("a batch of 1 tensors; expected 2"), std::string::npos)
      << count.status().ToString();
  EXPECT_TRUE(r.Run().ok());
}

// A program of Paddle 2.6.2 (scripts/make_reader_program.py), which makes its readers in every
// step.
TEST(Readers, TrainAsPaddleDoes) {
  constexpr int kEpochs = 2, kBatches = 6, kRows = 4, kWidth = 4, kClasses = 3;
  const std::string folder = HEDDLE_SOURCE_DIR "/tests/executor/reader/";
  const auto number = [](uint64_t i) {  // as the script makes them
    const uint64_t bits = (i * 2654435761u % (uint64_t{1} << 32)) >> 8;
    return static_cast<float>(static_cast<double>(bits) / (1 << 24) - 0.5);
  };
  Executor executor({.threads = 1});
  auto scope = std::make_shared<Scope>();
  auto queue = std::make_shared<ReaderQueue>(2);
  scope->Set("lod_tensor_blocking_queue_0", ReaderValue(queue));
  MustRun(executor, MustCompile(executor, *Program::Load(folder + "startup.pdmodel"), scope), {});
  const CompiledProgram step = MustCompile(executor, *Program::Load(folder + "main.pdmodel"), scope,
                                           {.fetches = {"mean_0.tmp_0"}});
  std::ifstream losses(folder + "losses.txt");
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    std::thread feeder([&] {
      for (int k = 0; k < kBatches; ++k) {
        std::vector<float> x;
        std::vector<int64_t> label;
        for (int i = 0; i < kRows * kWidth; ++i)
          x.push_back(number(static_cast<uint64_t>(k * kRows * kWidth + i)));
        for (int row = 0; row < kRows; ++row) {
          const float* at = x.data() + row * kWidth;
          label.push_back(std::max_element(at, at + kClasses) - at);
        }
        queue->Push({F32({kRows, kWidth}, x), I64({kRows, 1}, label)});
      }
      queue->Close();
    });
    int steps = 0;
    for (;; ++steps) {
      auto out = executor.Run(step, {});
      if (!out.ok()) {
        EXPECT_TRUE(IsEndOfData(out.status())) << out.status().ToString();
        break;
      }
      float expected = 0;
      losses >> expected;
      EXPECT_NEAR((*out)[0].data<float>()[0], expected, 1e-6) << epoch << " " << steps;
    }
    EXPECT_EQ(steps, kBatches);
    queue->Close();  // lets the feeder go if a run has failed
    feeder.join();
    queue->Reset();
  }
}

// A call of the host that comes while a run waits for a batch may use the queue, in any way.
TEST(Readers, LetTheHostUseTheQueueMeanwhile) {
  ::alarm(60);  // a call that waits for itself ends the test's process
  std::mt19937_64 random(71);
  for (int round = 0; round < 40; ++round) {
    Reading r(round % 2 == 0, round % 4 < 2 ? 1 : 2, 3);
    const auto way = random() % 5;
    int calls = 0;
    HostCalls host([&] {
      ++calls;
      if (way == 0) r.queue->Push(Number(7));
      if (way == 1) r.queue->Close();
      if (way == 2) r.queue->Reset();
      if (way == 3) {
        EXPECT_EQ(r.queue->size(), 0u);
      }
      return way == 4 ? Status(StatusCode::kCancelled, "enough") : Status::Ok();
    });
    host.Request();
    std::thread feeder([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 20));
      r.queue->Push(Number(7));
    });
    const auto out = r.Run({.host = &host});
    feeder.join();
    EXPECT_EQ(calls, 1);
    if (out.ok())
      EXPECT_EQ((*out)[1].data<int64_t>()[0], 7);
    else
      EXPECT_TRUE(way == 1 || way == 4) << out.status().ToString();
  }
  ::alarm(0);
}

TEST(Readers, NeedOneInTheScope) {
  Executor executor({.threads = 1});
  const CompiledProgram main = MustCompile(executor, Main(), std::make_shared<Scope>());
  auto out = executor.Run(main, {});
  ASSERT_FALSE(out.ok());
  EXPECT_NE(out.status().ToString().find("reader"), std::string::npos) << out.status().ToString();
  // A queue in its place does as well.
  auto scope = std::make_shared<Scope>();
  auto queue = std::make_shared<ReaderQueue>(1);
  scope->Set("reader", ReaderValue(queue));
  queue->Push(Number(3));
  EXPECT_TRUE(executor.Run(MustCompile(executor, Main(), scope), {}).ok());
}

}  // namespace
}  // namespace heddle::testing
