// How long the handles of the C API live, what is written for callers of other versions, counts
// that no caller has: drawn from seeds.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "heddle.h"
#include "tests/capi/misuse.h"

namespace {

using heddle_misuse::kDigits;
using heddle_misuse::Turns;

void ExpectFine(heddle_error* error) {
  EXPECT_EQ(error, nullptr) << heddle_error_text(error);
  heddle_error_free(error);
}
void ExpectRefused(heddle_error* error, const char* what) {
  EXPECT_EQ(heddle_error_code(error), HEDDLE_INVALID_ARGUMENT)
      << what << ": " << heddle_error_text(error);
  heddle_error_free(error);
}
#define REFUSED(call) ExpectRefused(call, #call)

// A call that waits for itself ends the test's process.
class Alarm {
 public:
  Alarm() { ::alarm(120); }
  ~Alarm() { ::alarm(0); }
};

// Structures of callers that know fewer fields, or more: what lies behind stays as it was.
TEST(CApiLives, OptionsAreWrittenWithinTheCallersStructure) {
  std::mt19937 random(81);
  heddle_model_options usual;
  heddle_model_options_init(&usual);
  EXPECT_EQ(usual.size, sizeof usual);
  EXPECT_EQ(usual.opt_level, 2);
  for (size_t size = 0; size <= sizeof usual + 64; ++size) {
    const auto fill = static_cast<unsigned char>(1 + random() % 255);
    std::vector<unsigned char> memory(size + 128, fill);
    // Aligned, with room on both sides.
    auto* const at = reinterpret_cast<unsigned char*>(
        (reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64);
    auto* const options = reinterpret_cast<heddle_model_options*>(at);
    heddle_model_options_init_size(options, size);
    for (unsigned char* p = memory.data(); p != memory.data() + memory.size(); ++p) {
      const bool inside = size >= sizeof(size_t) && p >= at && p < at + size;
      if (!inside) {
        ASSERT_EQ(*p, fill) << "size " << size << ": byte " << p - at;
      }
    }
    if (size < sizeof(size_t)) continue;
    EXPECT_EQ(options->size, size);
    const size_t known = std::min(size, sizeof usual);
    EXPECT_EQ(std::memcmp(at + sizeof size, reinterpret_cast<char*>(&usual) + sizeof size,
                          known - sizeof size),
              0);
    for (size_t k = sizeof usual; k < size; ++k) EXPECT_EQ(at[k], 0);
  }
  heddle_model_options_init_size(nullptr, 8);
  (heddle_model_options_init)(nullptr);
  // The function of that name, which cannot know, goes on to write what it always has.
  std::vector<unsigned char> memory(sizeof usual, 0x5a);
  auto* const options = reinterpret_cast<heddle_model_options*>(memory.data());
  (heddle_model_options_init)(options);
  EXPECT_EQ(options->size, offsetof(heddle_model_options, no_in_place) + sizeof(int));
}

TEST(CApiLives, GettersOfNothingSayNothing) {
  size_t count = 7;
  EXPECT_EQ(heddle_tensor_dtype(nullptr), HEDDLE_UNKNOWN);
  EXPECT_EQ(heddle_tensor_rank(nullptr), -1);
  EXPECT_EQ(heddle_tensor_dims(nullptr), nullptr);
  EXPECT_EQ(heddle_tensor_numel(nullptr), 0);
  EXPECT_EQ(heddle_tensor_bytes(nullptr), 0u);
  EXPECT_EQ(heddle_tensor_data(nullptr), nullptr);
  EXPECT_EQ(heddle_tensor_const_data(nullptr), nullptr);
  EXPECT_EQ(heddle_tensor_is_const(nullptr), 0);
  EXPECT_EQ(heddle_tensor_lod_levels(nullptr), 0);
  EXPECT_EQ(heddle_tensor_lod(nullptr, 0, &count), nullptr);
  EXPECT_EQ(count, 0u);
}

// Counts that are negative numbers, or not set: they are refused before anything is read.
TEST(CApiLives, CountsThatNoMemoryHoldsAreRefused) {
  heddle_executor* executor = nullptr;
  heddle_model* model = nullptr;
  ExpectFine(heddle_executor_new(nullptr, &executor));
  ExpectFine(heddle_model_load(executor, kDigits.c_str(), nullptr, nullptr, &model));
  const int64_t dims[] = {1, 1, 8, 8};
  heddle_tensor *x = nullptr, *y = nullptr;
  heddle_model* made = nullptr;
  ExpectFine(heddle_tensor_new(HEDDLE_FLOAT32, 4, dims, &x));
  const char* names[] = {"x"};
  heddle_queue* queue = nullptr;
  ExpectFine(heddle_queue_new(1, &queue));
  for (const size_t count :
       {~size_t{0}, ~size_t{0} - 1, ~size_t{0} / 2, ~size_t{0} / 2 + 1, ~size_t{0} / 4 + 1}) {
    REFUSED(heddle_model_run(model, nullptr, names, &x, count, &y, 1));
    REFUSED(heddle_model_run(model, nullptr, nullptr, &x, count, &y, 1));
    REFUSED(heddle_model_run(model, nullptr, names, &x, 1, &y, count));
    REFUSED(heddle_model_prepare(model, names, &x, count));
    heddle_text* text = nullptr;
    REFUSED(heddle_model_plan(model, names, &x, count, &text));
    heddle_run* run = nullptr;
    REFUSED(heddle_model_start(model, nullptr, names, &x, count, nullptr, nullptr, &run));
    int pushed = 0;
    REFUSED(heddle_queue_push(queue, &x, count, 0, &pushed));
    const size_t offsets[] = {0, 1};
    REFUSED(heddle_tensor_add_lod(x, offsets, count));
    const int members[] = {0, 1};
    const heddle_ring ring = {1, members, count}, fine = {1, members, 2};
    heddle_ranks* ranks = nullptr;
    REFUSED(heddle_ranks_new(2, &ring, 1, &ranks));
    REFUSED(heddle_ranks_new(2, &fine, count, &ranks));
    heddle_model_options options;
    heddle_model_options_init(&options);
    options.fetches = names;
    options.num_fetches = count;
    REFUSED(heddle_model_compile(model, &options, &made));
    heddle_model_options_init(&options);
    const heddle_max_shape most = {"x", dims, 4};
    options.max_shapes = &most;
    options.num_max_shapes = count;
    REFUSED(heddle_model_compile(model, &options, &made));
    heddle_program_part part{};
    part.size = sizeof part;
    part.feeds = names;
    part.num_feeds = count;
    REFUSED(heddle_model_load_part(executor, kDigits.c_str(), nullptr, &part, nullptr, &made));
    if (count > ~size_t{0} / 2) {
      REFUSED(heddle_model_parse(executor, names, count, nullptr, nullptr, &made));
      REFUSED(heddle_model_parse_all(executor, names, count, nullptr, 0, nullptr, &made));
      REFUSED(heddle_model_parse_all(executor, names, 1, names, count, nullptr, &made));
    }
  }
  heddle_queue_free(queue);
  heddle_tensor_free(x);
  heddle_model_free(model);
  heddle_executor_free(executor);
}

// Handles that share what is below them, freed in any order, some by other threads, while others go
// on to be used; all memory that was lent comes back once.
class Lives {
 public:
  explicit Lives(unsigned seed) : random_(seed) {}

  void Run() {
    for (int round = 0; round < 4; ++round) {
      ExpectFine(heddle_executor_new(nullptr, &executor_));
      ExpectFine(heddle_model_load(executor_, kDigits.c_str(), nullptr, nullptr, &model_));
      ExpectFine(heddle_stop_new(&stop_));
      ExpectFine(heddle_queue_new(4, &queue_));
      const int turns = 20 + static_cast<int>(Below(40));
      for (int turn = 0; turn < turns; ++turn) Turn();
      Keep([e = executor_] { heddle_executor_free(e); });
      Keep([m = model_] { heddle_model_free(m); });
      Keep([q = queue_] { heddle_queue_free(q); });
      std::shuffle(kept_.begin(), kept_.end(), random_);
      std::vector<std::thread> threads(2);
      for (size_t t = 0; t < threads.size(); ++t)
        threads[t] = std::thread([&, t] {
          for (size_t k = t; k < kept_.size(); k += threads.size()) kept_[k]();
        });
      for (std::thread& thread : threads) thread.join();
      kept_.clear();
      heddle_stop_free(stop_);  // runs were given it
    }
    EXPECT_EQ(back_.load(), lent_);
  }

 private:
  struct Lent {
    Lives* lives;
    heddle_queue* queue;
    std::vector<float> memory;
  };

  size_t Below(size_t n) { return random_() % n; }
  void Keep(std::function<void()> free) { kept_.push_back(std::move(free)); }

  // What gets memory back may ask, and may push and reset: nothing is held meanwhile.
  static void Back(void* argument) {
    auto* const lent = static_cast<Lent*>(argument);
    ++lent->lives->back_;
    delete lent;
  }

  heddle_tensor* Wrap() {
    ++lent_;
    auto* const lent = new Lent{this, queue_, std::vector<float>(64, 0.5f)};
    const int64_t dims[] = {1, 1, 8, 8};
    heddle_tensor* made = nullptr;
    if (Below(2) == 0)
      ExpectFine(
          heddle_tensor_wrap(HEDDLE_FLOAT32, 4, dims, lent->memory.data(), &Back, lent, &made));
    else
      ExpectFine(heddle_tensor_wrap_const(HEDDLE_FLOAT32, 4, dims, lent->memory.data(), &Back, lent,
                                          &made));
    return made;
  }

  void Turn() {
    heddle_tensor *x = Wrap(), *y = nullptr;
    switch (Below(7)) {
      case 0: {
        ExpectFine(heddle_model_run(model_, nullptr, nullptr, &x, 1, &y, 1));
        Keep([y] {
          const auto* p = static_cast<const float*>(heddle_tensor_const_data(y));
          for (int64_t i = 0; i < heddle_tensor_numel(y); ++i) EXPECT_EQ(p[i], p[i]);
          heddle_tensor_free(y);
        });
        break;
      }
      case 1: {
        heddle_run* run = nullptr;
        heddle_run_options options{};
        options.size = sizeof options;
        options.stop = Below(2) ? stop_ : nullptr;
        ExpectFine(heddle_model_start(model_, &options, nullptr, &x, 1, nullptr, nullptr, &run));
        const bool asks = Below(2) == 0;
        Keep([run, asks] {
          heddle_tensor* out = nullptr;
          if (asks) {
            ExpectFine(heddle_run_outputs(run, &out, 1));
            REFUSED(heddle_run_outputs(run, &out, 1));
            heddle_tensor_free(out);
          }
          heddle_run_free(run);
        });
        break;
      }
      case 2: {
        int pushed = 0;
        ExpectFine(heddle_queue_push(queue_, &x, 1, 0, &pushed));
        if (Below(3) == 0) heddle_queue_reset(queue_);
        break;
      }
      case 3: {
        ExpectFine(heddle_tensor_share(x, &y));
        auto* const data = static_cast<float*>(heddle_tensor_data(y));
        data[0] = 1;  // a const one is given its own first
        Keep([y] { heddle_tensor_free(y); });
        break;
      }
      case 4: {
        heddle_model* other = nullptr;
        ExpectFine(heddle_model_compile(model_, nullptr, &other));
        Keep([other] { heddle_model_free(other); });
        break;
      }
      case 5: {
        const heddle_info info = heddle_model_parameter_info(model_, 0);
        heddle_tensor* p = nullptr;
        ExpectFine(heddle_model_parameter(model_, info.name, &p));
        EXPECT_EQ(heddle_tensor_rank(p), info.rank);
        ExpectFine(heddle_model_set_parameter(model_, info.name, p));
        Keep([p] { heddle_tensor_free(p); });
        break;
      }
      default: {
        Keep([x] { heddle_tensor_free(x); });
        return;
      }
    }
    heddle_tensor_free(x);
  }

  std::mt19937 random_;
  heddle_executor* executor_ = nullptr;
  heddle_model* model_ = nullptr;
  heddle_stop* stop_ = nullptr;
  heddle_queue* queue_ = nullptr;
  std::vector<std::function<void()>> kept_;
  int lent_ = 0;
  std::atomic<int> back_{0};
};

TEST(CApiLives, HandlesGoInAnyOrder) {
  const Alarm alarm;
  for (unsigned seed = 0; seed < static_cast<unsigned>(std::max(1, Turns() / 60)); ++seed)
    Lives(seed).Run();
}

// Tensors of every rank keep it: 0 is one element, and no rank that is not known.
TEST(CApiLives, RanksAreKept) {
  const int64_t dims[HEDDLE_MAX_RANK] = {1, 2, 1, 1, 3, 1, 1, 1, 2, 1};
  static float memory[12];
  for (int rank = 0; rank <= HEDDLE_MAX_RANK; ++rank) {
    int64_t count = 1;
    for (int i = 0; i < rank; ++i) count *= dims[i];
    for (int way = 0; way < 4; ++way) {
      heddle_tensor *t = nullptr, *other = nullptr;
      const int64_t* const given = rank == 0 && way % 2 == 0 ? nullptr : dims;
      if (way < 2)
        ExpectFine(heddle_tensor_new(HEDDLE_FLOAT32, rank, given, &t));
      else
        ExpectFine(
            heddle_tensor_wrap_const(HEDDLE_FLOAT32, rank, given, memory, nullptr, nullptr, &t));
      ExpectFine(heddle_tensor_share(t, &other));
      heddle_tensor_data(other);
      for (const heddle_tensor* one : {t, other}) {
        EXPECT_EQ(heddle_tensor_rank(one), rank);
        EXPECT_EQ(heddle_tensor_numel(one), count);
        EXPECT_EQ(heddle_tensor_bytes(one), static_cast<size_t>(count) * sizeof(float));
        EXPECT_TRUE(std::equal(dims, dims + rank, heddle_tensor_dims(one)));
      }
      heddle_tensor_free(t);
      heddle_tensor_free(other);
    }
  }
}

}  // namespace
