// What the tests of misuse of the C API draw from: numbers, texts and structures that no sensible
// program passes, and what judges the answers.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <random>
#include <string>

#include "heddle.h"

namespace heddle_misuse {

inline const std::string kDigits = std::string(HEDDLE_SOURCE_DIR) + "/examples/digits";

inline int Turns() {
  const char* given = std::getenv("HEDDLE_MISUSE_TURNS");
  return given != nullptr ? std::atoi(given) : 600;
}

inline std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// What several callers share.
struct Shared {
  Shared() {
    heddle_executor_options options{};
    options.size = sizeof options;
    options.threads = 2;
    heddle_error_free(heddle_executor_new(&options, &executor));
    heddle_error_free(heddle_model_load(executor, kDigits.c_str(), nullptr, nullptr, &model));
    heddle_error_free(heddle_queue_new(3, &queue));
    heddle_error_free(heddle_stop_new(&stop));
    heddle_stop_request(stop);
    program = Contents(kDigits + "/model.pdmodel");
    params = Contents(kDigits + "/model.pdiparams");
  }
  ~Shared() {
    heddle_stop_free(stop);
    heddle_queue_free(queue);
    heddle_model_free(model);
    heddle_executor_free(executor);
    EXPECT_EQ(released.load(), wrapped.load());
    EXPECT_EQ(called.load(), started.load());
  }
  heddle_executor* executor = nullptr;
  heddle_model* model = nullptr;
  heddle_queue* queue = nullptr;
  heddle_stop* stop = nullptr;  // was requested
  std::string program, params;
  std::atomic<int> wrapped{0}, released{0};  // memory that was lent, and is back
  std::atomic<int> started{0}, called{0};    // callbacks
};

// Threads: one each.
class Mischief {
 public:
  explicit Mischief(unsigned seed) : rng_(seed) {}
  int answered() const { return answered_; }
  int refused() const { return refused_; }

 protected:
  size_t Below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(rng_); }
  bool Now(int of) { return Below(static_cast<size_t>(of)) == 0; }
  template <typename T>
  T Of(std::initializer_list<T> list) {
    return *(list.begin() + Below(list.size()));
  }

  // True: the call succeeded.
  bool Judge(heddle_error* error, const char* what) {
    if (error == nullptr) {
      ++answered_;
      return true;
    }
    ++refused_;
    const std::string text = heddle_error_text(error);
    EXPECT_NE(heddle_error_code(error), HEDDLE_INTERNAL) << turn_ << " " << what << ": " << text;
    EXPECT_NE(heddle_error_code(error), HEDDLE_OK) << what;
    EXPECT_GT(text.size(), 10u) << what;
    EXPECT_EQ(text.find('\n'), std::string::npos) << what << ": " << text;
    EXPECT_NE(heddle_error_op_type(error), nullptr);
    EXPECT_NE(heddle_error_output(error), nullptr);
    heddle_error_free(error);
    return false;
  }
  void Refuse(heddle_error* error, const char* what) {
    EXPECT_FALSE(Judge(error, what)) << turn_ << " " << what << " was accepted";
  }

  int OddInt() { return Of({0, 1, 2, -1, 3, 99, 1 << 20, INT32_MAX, INT32_MIN}); }
  size_t OddSize() { return Of<size_t>({0, 1, 2, 3, 99, size_t{1} << 40, ~size_t{0}}); }
  double OddTime() {
    return Of({0.0, 1e-9, 0.5, 1e3, 1e300, -1.0, -1e-300, double(NAN), double(INFINITY),
               -double(INFINITY)});
  }
  int64_t OddDim() {
    return Of<int64_t>({0, 1, 1, 2, 3, 8, 8, -1, 1 << 16, int64_t{1} << 31, int64_t{1} << 62,
                        INT64_MAX, INT64_MIN});
  }
  heddle_dtype OddDType() {
    return static_cast<heddle_dtype>(Now(3) ? OddInt() : static_cast<int>(Below(13)));
  }
  const char* OddText() {
    static const std::string long_text(100000, 'a');
    return Of<const char*>({nullptr, "", "x", "nothing", "\xff%s%n\n", long_text.c_str(), "/",
                            "/dev/null", "/nowhere", "/dev/full", "cpu", "conv=", "a=b,c"});
  }

  // A structure in memory of just as many bytes as it says it has. Sizes that cut a field, or that
  // no structure has, are errors.
  template <typename T>
  struct Sized {
    std::unique_ptr<char[]> memory;
    T* get() const { return reinterpret_cast<T*>(memory.get()); }
  };
  template <typename T>
  Sized<T> Resized(const T& whole, bool* bad) {
    const size_t size =
        Of<size_t>({0, 1, 7, 8, 9, 16, 20, 24, sizeof(T) - 1, sizeof(T), sizeof(T), sizeof(T),
                    sizeof(T) + 8, sizeof(T) + 1, 4096, 4097, size_t{1} << 40, ~size_t{0}});
    *bad = size < 8 || size > 4096 || size % 8 != 0;
    Sized<T> sized{std::make_unique<char[]>(std::clamp<size_t>(size, 8, 4097))};
    const size_t known = std::min(size, sizeof(T));
    std::memset(sized.memory.get(), 0x5a, std::clamp<size_t>(size, 8, 4097));
    std::memcpy(sized.memory.get(), &whole, known);
    std::memcpy(sized.memory.get(), &size, sizeof size);
    return sized;
  }

  int turn_ = 0;

 private:
  std::mt19937 rng_;
  int answered_ = 0, refused_ = 0;
};

#define JUDGE(call) Judge(call, #call)
#define REFUSE(call) Refuse(call, #call)

}  // namespace heddle_misuse
