// Memory that callers may not write to: pages without the right to, in whatever way they come in.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "heddle.h"

namespace {

void ExpectFine(heddle_error* error, const std::string& what) {
  EXPECT_EQ(error, nullptr) << what << ": " << heddle_error_text(error);
  heddle_error_free(error);
}

// --- ONNX models of one operator ---

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
std::string Declared(int field, const std::string& name, uint64_t type) {
  return Part(field, Part(1, name) + Part(2, Part(1, Int(1, type))));
}
std::string OneOperator(const std::string& op, uint64_t type) {
  const std::string node = Part(1, Part(1, "x") + Part(2, "y") + Part(4, op));
  const std::string graph = node + Part(2, "g") + Declared(11, "x", type) + Declared(12, "y", type);
  return Int(1, 8) + Part(7, graph) + Part(8, Int(2, 17));
}

struct Kind {
  heddle_dtype dtype;
  uint64_t onnx;
};
constexpr Kind kKinds[] = {{HEDDLE_FLOAT32, 1}, {HEDDLE_UINT8, 2},   {HEDDLE_INT8, 3},
                           {HEDDLE_INT16, 5},   {HEDDLE_INT32, 6},   {HEDDLE_INT64, 7},
                           {HEDDLE_BOOL, 9},    {HEDDLE_FLOAT64, 11}};

// A page that no one can write to, of bytes that every dtype takes.
class Page {
 public:
  static constexpr size_t kBytes = 4096;
  explicit Page(unsigned seed) {
    data_ = static_cast<uint8_t*>(
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::mt19937 random(seed);
    for (size_t i = 0; i < kBytes; ++i) data_[i] = random() % 2;
    before_.assign(data_, data_ + kBytes);
    mprotect(data_, kBytes, PROT_READ);
  }
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;
  ~Page() { munmap(data_, kBytes); }
  const uint8_t* at(size_t offset) const { return data_ + offset; }
  bool unchanged() const { return std::memcmp(data_, before_.data(), kBytes) == 0; }

 private:
  uint8_t* data_;
  std::vector<uint8_t> before_;
};

// What the handle hands out to be written to is written to.
void WriteAll(heddle_tensor* tensor, const std::string& what) {
  const size_t bytes = heddle_tensor_bytes(tensor);
  const std::vector<uint8_t> held(
      static_cast<const uint8_t*>(heddle_tensor_const_data(tensor)),
      static_cast<const uint8_t*>(heddle_tensor_const_data(tensor)) + bytes);
  auto* data = static_cast<uint8_t*>(heddle_tensor_data(tensor));
  ASSERT_NE(data, nullptr) << what;
  EXPECT_EQ(std::memcmp(data, held.data(), bytes), 0) << what;
  std::memset(data, 1, bytes);
  EXPECT_EQ(heddle_tensor_is_const(tensor), 0) << what;
  EXPECT_EQ(heddle_tensor_const_data(tensor), data) << what;
}

TEST(ConstMemory, StaysAsItIsWhateverIsDoneWithIt) {
  heddle_executor* executor = nullptr;
  heddle_executor_options options{};
  options.size = sizeof options;
  options.threads = 1;
  ExpectFine(heddle_executor_new(&options, &executor), "executor");
  std::mt19937 random(11);
  const auto pick = [&](size_t n) { return random() % n; };
  int released = 0, wrapped = 0;
  const auto release = [](void* count) { ++*static_cast<int*>(count); };
  const char* const ops[] = {"Identity", "Abs", "Neg", "Relu", "Not", "Flatten"};
  for (const char* op : ops) {
    for (const Kind& kind : kKinds) {
      heddle_model* model = nullptr;
      const std::string file = OneOperator(op, kind.onnx);
      if (heddle_error* error =
              heddle_model_parse(executor, file.data(), file.size(), nullptr, nullptr, &model)) {
        heddle_error_free(error);  // the operator takes no such elements
        continue;
      }
      for (int turn = 0; turn < 16; ++turn) {
        const Page page(random());
        const std::string what = std::string(op) + " of " + heddle_dtype_name(kind.dtype) +
                                 ", turn " + std::to_string(turn);
        const auto rank = static_cast<int>(pick(4));
        std::vector<int64_t> dims;
        for (int d = 0; d < rank; ++d) dims.push_back(static_cast<int64_t>(pick(5)));
        heddle_tensor *x = nullptr, *share = nullptr, *y = nullptr;
        ExpectFine(heddle_tensor_wrap_const(kind.dtype, rank, dims.data(), page.at(8 * pick(64)),
                                            release, &released, &x),
                   what);
        ++wrapped;
        EXPECT_NE(heddle_tensor_is_const(x), 0) << what;
        ExpectFine(heddle_tensor_share(x, &share), what);
        EXPECT_NE(heddle_tensor_is_const(share), 0) << what;
        heddle_run* run = nullptr;
        heddle_error* error = nullptr;
        const bool start = pick(2) == 0;
        if (start) {  // the handle may be freed while the run goes on
          error = heddle_model_start(model, nullptr, nullptr, &x, 1, nullptr, nullptr, &run);
          if (error == nullptr && pick(2) == 0) {
            heddle_tensor_free(x);
            x = nullptr;
          }
          if (error == nullptr) error = heddle_run_outputs(run, &y, 1);
        } else {
          error = heddle_model_run(model, nullptr, nullptr, &x, 1, &y, 1);
        }
        heddle_error_free(error);  // an error is an answer
        heddle_run_free(run);
        for (heddle_tensor* t : {y, share, x})
          if (t != nullptr) WriteAll(t, what);
        for (heddle_tensor* t : {y, share, x}) heddle_tensor_free(t);
        EXPECT_TRUE(page.unchanged()) << what;
      }
      heddle_model_free(model);
    }
  }
  heddle_executor_free(executor);
  EXPECT_GE(wrapped, 500);
  EXPECT_EQ(released, wrapped);
}

TEST(ConstMemory, OfAParameterIsTheModels) {
  const std::string digits = std::string(HEDDLE_SOURCE_DIR) + "/examples/digits";
  heddle_executor* executor = nullptr;
  heddle_model* model = nullptr;
  ExpectFine(heddle_executor_new(nullptr, &executor), "executor");
  ExpectFine(heddle_model_load(executor, digits.c_str(), nullptr, nullptr, &model), "digits");
  for (size_t k = 0; k < heddle_model_num_parameters(model); ++k) {
    const char* name = heddle_model_parameter_info(model, k).name;
    heddle_tensor *held = nullptr, *share = nullptr, *again = nullptr;
    ExpectFine(heddle_model_parameter(model, name, &held), name);
    ExpectFine(heddle_tensor_share(held, &share), name);
    EXPECT_NE(heddle_tensor_is_const(share), 0);
    WriteAll(share, name);
    ExpectFine(heddle_model_parameter(model, name, &again), name);
    EXPECT_EQ(heddle_tensor_const_data(again), heddle_tensor_const_data(held)) << name;
    EXPECT_NE(heddle_tensor_const_data(share), heddle_tensor_const_data(held)) << name;
    EXPECT_NE(std::memcmp(heddle_tensor_const_data(share), heddle_tensor_const_data(held),
                          heddle_tensor_bytes(held)),
              0)
        << name;
    for (heddle_tensor* t : {held, share, again}) heddle_tensor_free(t);
  }
  heddle_model_free(model);
  heddle_executor_free(executor);
}

TEST(ConstMemory, ErrorsReleaseIt) {
  int released = 0;
  const auto release = [](void* count) { ++*static_cast<int*>(count); };
  const int64_t dims[] = {2, -1};
  heddle_tensor* tensor = nullptr;
  for (const auto& [rank, data] : {std::pair<int, const void*>{2, "12345678"}, {1, nullptr}}) {
    heddle_error* error =
        heddle_tensor_wrap_const(HEDDLE_FLOAT32, rank, dims, data, release, &released, &tensor);
    EXPECT_EQ(heddle_error_code(error), HEDDLE_INVALID_ARGUMENT);
    heddle_error_free(error);
  }
  EXPECT_EQ(released, 2);
  EXPECT_EQ(tensor, nullptr);
}

}  // namespace
