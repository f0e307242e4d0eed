// Ranks and readers of the C API, with programs written here in Paddle's wire format.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "heddle.h"

namespace {

// Takes the error, gives its code and text.
struct Outcome {
  explicit Outcome(heddle_error* error)
      : code(heddle_error_code(error)),
        text(heddle_error_text(error)),
        at_end(heddle_error_is_end_of_data(error) != 0) {
    heddle_error_free(error);
  }
  heddle_code code;
  std::string text;
  bool at_end;
};
#define EXPECT_FINE(call)                               \
  do {                                                  \
    const Outcome outcome(call);                        \
    EXPECT_EQ(outcome.code, HEDDLE_OK) << outcome.text; \
  } while (false)
#define EXPECT_FAILS(call, words)                                           \
  do {                                                                      \
    const Outcome outcome(call);                                            \
    EXPECT_NE(outcome.code, HEDDLE_OK);                                     \
    EXPECT_NE(outcome.text.find(words), std::string::npos) << outcome.text; \
  } while (false)

// --- messages ---

std::string Varint(uint64_t v) {
  std::string out;
  for (; v >= 0x80; v >>= 7) out += static_cast<char>(v | 0x80);
  return out + static_cast<char>(v);
}
std::string Int(int field, uint64_t v) {
  return Varint(static_cast<uint64_t>(field) << 3) + Varint(v);
}
std::string Part(int field, const std::string& bytes) {
  return Varint(static_cast<uint64_t>(field) << 3 | 2) + Varint(bytes.size()) + bytes;
}

constexpr uint64_t kFloat = 5, kTensor = 7, kFeed = 9, kFetch = 10, kReader = 15;

std::string Var(const std::string& name, uint64_t type) {
  std::string kind = Int(1, type);
  if (type == kTensor) kind += Part(3, Part(1, Int(1, kFloat) + Int(2, 2)));  // [2]
  return Part(3, Part(1, name) + Part(2, kind) + Int(3, type == kTensor ? 0 : 1));
}
std::string Operands(int field, const std::string& slot, const std::string& name) {
  return Part(field, Part(1, slot) + Part(2, name));
}
std::string Attr(const std::string& name, uint64_t value) {
  return Part(4, Part(1, name) + Int(2, 0) + Int(3, value));
}
std::string Op(const std::string& type, const std::string& rest) {
  return Part(4, rest + Part(3, type));
}
std::string Program(const std::string& vars_and_ops) {
  return Part(1, Int(1, 0) + Int(2, 0) + vars_and_ops);
}

// y = the sum over all ranks of a ring of x, which is fed.
std::string AllReduce(uint64_t ring) {
  return Program(Var("feed", kFeed) + Var("fetch", kFetch) + Var("x", kTensor) + Var("y", kTensor) +
                 Op("feed", Operands(1, "X", "feed") + Operands(2, "Out", "x") + Attr("col", 0)) +
                 Op("c_allreduce_sum",
                    Operands(1, "X", "x") + Operands(2, "Out", "y") + Attr("ring_id", ring)) +
                 Op("fetch", Operands(1, "X", "y") + Operands(2, "Out", "fetch") + Attr("col", 0)));
}
// y = relu of what is read.
std::string ReadOne() {
  return Program(Var("fetch", kFetch) + Var("reader", kReader) + Var("x", kTensor) +
                 Var("y", kTensor) +
                 Op("read", Operands(1, "Reader", "reader") + Operands(2, "Out", "x")) +
                 Op("relu", Operands(1, "X", "x") + Operands(2, "Out", "y")) +
                 Op("fetch", Operands(1, "X", "y") + Operands(2, "Out", "fetch") + Attr("col", 0)));
}

// Reads x, reads y; p, a parameter, += x.
std::string ReadTwo() {
  const std::string kind = Int(1, kTensor) + Part(3, Part(1, Int(1, kFloat) + Int(2, 2)));
  return Program(Var("fetch", kFetch) + Var("reader", kReader) + Var("x", kTensor) +
                 Var("y", kTensor) + Part(3, Part(1, "p") + Part(2, kind) + Int(3, 1)) +
                 Op("read", Operands(1, "Reader", "reader") + Operands(2, "Out", "x")) +
                 Op("read", Operands(1, "Reader", "reader") + Operands(2, "Out", "y")) +
                 Op("elementwise_add",
                    Operands(1, "X", "p") + Operands(1, "Y", "x") + Operands(2, "Out", "p")) +
                 Op("fetch", Operands(1, "X", "y") + Operands(2, "Out", "fetch") + Attr("col", 0)));
}

heddle_tensor* Two(float first, float second) {
  const int64_t dims[] = {2};
  heddle_tensor* tensor = nullptr;
  EXPECT_FINE(heddle_tensor_new(HEDDLE_FLOAT32, 1, dims, &tensor));
  auto* data = static_cast<float*>(heddle_tensor_data(tensor));
  data[0] = first;
  data[1] = second;
  return tensor;
}
std::vector<float> Take(heddle_tensor* tensor) {
  if (tensor == nullptr) return {};
  const auto* p = static_cast<const float*>(heddle_tensor_const_data(tensor));
  std::vector<float> values(p, p + heddle_tensor_numel(tensor));
  heddle_tensor_free(tensor);
  return values;
}

heddle_executor* NewExecutor(heddle_ranks* ranks, int rank) {
  heddle_executor_options options{};
  options.size = sizeof options;
  options.threads = 1;
  options.ranks = ranks;
  options.rank = rank;
  heddle_executor* executor = nullptr;
  EXPECT_FINE(heddle_executor_new(&options, &executor));
  return executor;
}
heddle_model* Parse(heddle_executor* executor, const std::string& program) {
  heddle_model* model = nullptr;
  EXPECT_FINE(
      heddle_model_parse(executor, program.data(), program.size(), nullptr, nullptr, &model));
  return model;
}

// --- ranks ---

TEST(CApiRanks, ExchangeValues) {
  const int odd[] = {3, 1};
  const heddle_ring ring = {5, odd, 2};
  heddle_ranks* ranks = nullptr;
  EXPECT_FINE(heddle_ranks_new(4, &ring, 1, &ranks));
  EXPECT_EQ(heddle_ranks_size(ranks), 4);
  std::vector<heddle_executor*> executors;
  for (int r = 0; r < 4; ++r) executors.push_back(NewExecutor(ranks, r));
  heddle_ranks_free(ranks);  // executors keep theirs
  for (const auto& [id, members] : {std::pair{0, std::vector{0, 1, 2, 3}}, {5, {1, 3}}}) {
    float sum = 0;
    for (const int r : members) sum += static_cast<float>(r + 1);
    std::vector<std::thread> threads;
    for (const int r : members)
      threads.emplace_back([&, r, id = id] {
        heddle_model* model = Parse(executors[static_cast<size_t>(r)], AllReduce(id));
        heddle_tensor* x = Two(static_cast<float>(r + 1), -1);
        heddle_tensor* y = nullptr;
        EXPECT_FINE(heddle_model_run(model, nullptr, nullptr, &x, 1, &y, 1));
        EXPECT_EQ(Take(y), (std::vector<float>{sum, -static_cast<float>(members.size())}));
        heddle_tensor_free(x);
        heddle_model_free(model);
      });
    for (std::thread& t : threads) t.join();
  }
  for (heddle_executor* e : executors) heddle_executor_free(e);
}

TEST(CApiRanks, AreChecked) {
  heddle_ranks* ranks = nullptr;
  EXPECT_FAILS(heddle_ranks_new(0, nullptr, 0, &ranks), "at least one rank");
  EXPECT_FAILS(heddle_ranks_new(2, nullptr, 0, nullptr), "ranks is NULL");
  EXPECT_FAILS(heddle_ranks_new(2, nullptr, 1, &ranks), "rings is NULL");
  const int missing[] = {0, 2};
  const heddle_ring ring = {1, missing, 2};
  EXPECT_FAILS(heddle_ranks_new(2, &ring, 1, &ranks), "names rank 2 of a group of 2");
  EXPECT_EQ(ranks, nullptr);
  EXPECT_EQ(heddle_ranks_size(nullptr), 0);
  heddle_ranks_free(nullptr);

  EXPECT_FINE(heddle_ranks_new(2, nullptr, 0, &ranks));
  heddle_executor* first = NewExecutor(ranks, 0);
  heddle_executor_options options{};
  options.size = sizeof options;
  options.threads = 1;
  options.ranks = ranks;
  heddle_executor* other = nullptr;
  EXPECT_FAILS(heddle_executor_new(&options, &other), "rank 0 is another executor's");
  options.rank = 2;
  EXPECT_FAILS(heddle_executor_new(&options, &other), "rank is 2, the group has ranks 0 to 1");
  options.rank = -1;
  EXPECT_FAILS(heddle_executor_new(&options, &other), "rank is -1");
  // Rank 1 is nobody's: who waits for it fails, and does not hang.
  heddle_ranks_free(ranks);
  heddle_model* model = Parse(first, AllReduce(0));
  heddle_tensor* x = Two(1, 2);
  heddle_tensor* y = nullptr;
  EXPECT_FAILS(heddle_model_run(model, nullptr, nullptr, &x, 1, &y, 1), "rank 1");
  heddle_tensor_free(x);
  heddle_model_free(model);
  heddle_executor_free(first);
}

TEST(CApiRanks, AreNoneOfOldCallers) {
  heddle_executor_options options{};
  options.size = offsetof(heddle_executor_options, ranks);
  options.threads = 1;
  options.ranks = reinterpret_cast<heddle_ranks*>(8);  // beyond what the caller says it knows
  heddle_executor* executor = nullptr;
  EXPECT_FINE(heddle_executor_new(&options, &executor));
  heddle_executor_free(executor);
}

// --- readers ---

int Push(heddle_queue* queue, float value, double timeout_ms = -1) {
  heddle_tensor* batch = Two(value, -value);
  int pushed = -2;
  EXPECT_FINE(heddle_queue_push(queue, &batch, 1, timeout_ms, &pushed));
  heddle_tensor_free(batch);
  return pushed;
}

TEST(CApiReaders, ReadABatchARunUntilTheEnd) {
  heddle_queue* queue = nullptr;
  EXPECT_FINE(heddle_queue_new(2, &queue));
  heddle_executor* executor = NewExecutor(nullptr, 0);
  heddle_model* model = Parse(executor, ReadOne());
  EXPECT_FINE(heddle_model_set_queue(model, "reader", queue));
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::thread feeder([&] {
      for (int k = 1; k <= 10; ++k) EXPECT_EQ(Push(queue, static_cast<float>(k)), 1);
      heddle_queue_close(queue);
    });
    for (int k = 1; k <= 10; ++k) {
      heddle_tensor* y = nullptr;
      EXPECT_FINE(heddle_model_run(model, nullptr, nullptr, nullptr, 0, &y, 1));
      EXPECT_EQ(Take(y), (std::vector<float>{static_cast<float>(k), 0}));
    }
    heddle_tensor* y = nullptr;
    const Outcome end(heddle_model_run(model, nullptr, nullptr, nullptr, 0, &y, 1));
    EXPECT_NE(end.code, HEDDLE_OK);
    EXPECT_TRUE(end.at_end) << end.text;
    feeder.join();
    EXPECT_EQ(Push(queue, 1), 0) << "it is closed";
    heddle_queue_reset(queue);
  }
  heddle_queue_free(queue);  // the model keeps a share
  heddle_run_options options{};
  options.size = sizeof options;
  options.deadline_ms = 20;
  heddle_tensor* y = nullptr;
  const Outcome late(heddle_model_run(model, &options, nullptr, nullptr, 0, &y, 1));
  EXPECT_EQ(late.code, HEDDLE_DEADLINE_EXCEEDED) << late.text;
  EXPECT_FALSE(late.at_end);
  heddle_model_free(model);
  heddle_executor_free(executor);
}

// Operators may work in the memory of what was read, unless nobody may write to it.
TEST(CApiReaders, WhatIsConstStaysAsItIs) {
  heddle_queue* queue = nullptr;
  EXPECT_FINE(heddle_queue_new(1, &queue));
  heddle_executor* executor = NewExecutor(nullptr, 0);
  heddle_model* model = Parse(executor, ReadOne());
  EXPECT_FINE(heddle_model_set_queue(model, "reader", queue));
  const float held[] = {-3, 4};
  const int64_t dims[] = {2};
  heddle_tensor *batch = nullptr, *y = nullptr;
  EXPECT_FINE(heddle_tensor_wrap_const(HEDDLE_FLOAT32, 1, dims, held, nullptr, nullptr, &batch));
  int pushed = 0;
  EXPECT_FINE(heddle_queue_push(queue, &batch, 1, -1, &pushed));
  heddle_tensor_free(batch);
  EXPECT_FINE(heddle_model_run(model, nullptr, nullptr, nullptr, 0, &y, 1));
  EXPECT_EQ(Take(y), (std::vector<float>{0, 4}));
  EXPECT_EQ(held[0], -3);
  heddle_queue_free(queue);
  heddle_model_free(model);
  heddle_executor_free(executor);
}

// A parameter is set while a run that writes to it waits for data: the run comes first.
TEST(CApiReaders, ParametersWaitForRunsThatWriteThem) {
  heddle_queue* queue = nullptr;
  EXPECT_FINE(heddle_queue_new(1, &queue));
  heddle_executor* executor = NewExecutor(nullptr, 0);
  heddle_model* model = Parse(executor, ReadTwo());
  EXPECT_FINE(heddle_model_set_queue(model, "reader", queue));
  heddle_tensor* value = Two(0, 0);
  EXPECT_FINE(heddle_model_set_parameter(model, "p", value));
  heddle_tensor_free(value);
  EXPECT_EQ(Push(queue, 1), 1);
  std::thread run([&] {
    heddle_tensor* y = nullptr;
    EXPECT_FINE(heddle_model_run(model, nullptr, nullptr, nullptr, 0, &y, 1));
    EXPECT_EQ(Take(y), (std::vector<float>{2, -2}));
  });
  // It has taken the first batch, and waits for the second.
  while (heddle_queue_size(queue) > 0) std::this_thread::yield();
  std::atomic<bool> is_set = false;
  std::thread set([&] {
    heddle_tensor* hundred = Two(100, 100);
    EXPECT_FINE(heddle_model_set_parameter(model, "p", hundred));
    heddle_tensor_free(hundred);
    is_set = true;
  });
  for (int i = 0; i < 100 && !is_set; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_FALSE(is_set);
  EXPECT_EQ(Push(queue, 2), 1);
  run.join();
  set.join();
  heddle_tensor* p = nullptr;
  EXPECT_FINE(heddle_model_parameter(model, "p", &p));
  EXPECT_EQ(Take(p), (std::vector<float>{100, 100}));
  heddle_queue_free(queue);
  heddle_model_free(model);
  heddle_executor_free(executor);
}

TEST(CApiReaders, PushesEndInTime) {
  heddle_queue* queue = nullptr;
  EXPECT_FINE(heddle_queue_new(1, &queue));
  EXPECT_EQ(Push(queue, 1, 0), 1);
  EXPECT_EQ(heddle_queue_size(queue), 1u);
  EXPECT_EQ(Push(queue, 2, 10), -1) << "full";
  std::thread waiter([&] { EXPECT_EQ(Push(queue, 3), 0) << "reset meanwhile"; });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  heddle_queue_reset(queue);
  waiter.join();
  EXPECT_EQ(heddle_queue_size(queue), 0u);
  heddle_queue_free(queue);
}

TEST(CApiReaders, AreChecked) {
  heddle_queue* queue = nullptr;
  EXPECT_FAILS(heddle_queue_new(0, &queue), "capacity is 0");
  EXPECT_FAILS(heddle_queue_new(1, nullptr), "queue is NULL");
  EXPECT_FINE(heddle_queue_new(1, &queue));
  int pushed = 0;
  heddle_tensor* nothing = nullptr;
  EXPECT_FAILS(heddle_queue_push(queue, &nothing, 1, 0, &pushed), "tensors[0] is NULL");
  EXPECT_FAILS(heddle_queue_push(queue, nullptr, 1, 0, &pushed), "tensors is NULL");
  EXPECT_FAILS(heddle_queue_push(queue, nullptr, 0, std::nan(""), &pushed), "not a number");
  EXPECT_FAILS(heddle_queue_push(nullptr, nullptr, 0, 0, &pushed), "queue or pushed is NULL");
  EXPECT_FAILS(heddle_model_set_queue(nullptr, "reader", queue), "is NULL");
  EXPECT_EQ(heddle_queue_size(nullptr), 0u);
  EXPECT_EQ(heddle_error_is_end_of_data(nullptr), 0);
  heddle_queue_close(nullptr);
  heddle_queue_reset(nullptr);
  // A batch of another size than the program reads is the run's error.
  heddle_executor* executor = NewExecutor(nullptr, 0);
  heddle_model* model = Parse(executor, ReadOne());
  EXPECT_FINE(heddle_model_set_queue(model, "reader", queue));
  heddle_tensor* pair[] = {Two(1, 2), Two(3, 4)};
  EXPECT_FINE(heddle_queue_push(queue, pair, 2, 0, &pushed));
  EXPECT_EQ(pushed, 1);
  heddle_tensor* y = nullptr;
  EXPECT_FAILS(heddle_model_run(model, nullptr, nullptr, nullptr, 0, &y, 1), "read");
  for (heddle_tensor* t : pair) heddle_tensor_free(t);
  heddle_queue_free(queue);
  heddle_model_free(model);
  heddle_executor_free(executor);
}

// Several devices of one kind, for operators that name theirs.
TEST(CApiPlaces, SeveralDevices) {
  heddle_executor_options options{};
  options.size = sizeof options;
  options.threads = 1;
  options.place = "emulated:0,emulated:1";
  heddle_executor* executor = nullptr;
  EXPECT_FINE(heddle_executor_new(&options, &executor));
  EXPECT_EQ(heddle_executor_num_places(executor), 3u);
  heddle_executor_free(executor);
  options.place = "emulated:0,";
  EXPECT_FAILS(heddle_executor_new(&options, &executor), "no device ''");
  options.place = "emulated:0,tpu";
  EXPECT_FAILS(heddle_executor_new(&options, &executor), "tpu");
}

}  // namespace
