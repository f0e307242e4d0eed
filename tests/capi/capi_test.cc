// The C API as a C program sees it; libheddle_c hides everything else.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "heddle.h"

namespace {

const std::string kDigits = std::string(HEDDLE_SOURCE_DIR) + "/examples/digits";

// Takes the error, gives its code and text.
struct Outcome {
  explicit Outcome(heddle_error* error)
      : code(heddle_error_code(error)), text(heddle_error_text(error)) {
    heddle_error_free(error);
  }
  heddle_code code;
  std::string text;
};
#define EXPECT_FINE(call)                               \
  do {                                                  \
    const Outcome outcome(call);                        \
    EXPECT_EQ(outcome.code, HEDDLE_OK) << outcome.text; \
  } while (false)
#define EXPECT_FAILS(call, expected, words)                                 \
  do {                                                                      \
    const Outcome outcome(call);                                            \
    EXPECT_EQ(outcome.code, expected) << outcome.text;                      \
    EXPECT_NE(outcome.text.find(words), std::string::npos) << outcome.text; \
  } while (false)

class CApi : public testing::Test {
 protected:
  void SetUp() override {
    heddle_executor_options options{};
    options.size = sizeof options;
    options.threads = 2;
    EXPECT_FINE(heddle_executor_new(&options, &executor_));
    EXPECT_FINE(heddle_model_load(executor_, kDigits.c_str(), nullptr, nullptr, &model_));
  }
  void TearDown() override {
    heddle_model_free(model_);
    heddle_executor_free(executor_);
  }
  // A batch of images, all pixels `pixel`.
  static heddle_tensor* Image(float pixel, int64_t batch = 1, int64_t height = 8) {
    const int64_t dims[] = {batch, 1, height, 8};
    heddle_tensor* tensor = nullptr;
    EXPECT_FINE(heddle_tensor_new(HEDDLE_FLOAT32, 4, dims, &tensor));
    auto* data = static_cast<float*>(heddle_tensor_data(tensor));
    for (int64_t i = 0; i < heddle_tensor_numel(tensor); ++i) data[i] = pixel;
    return tensor;
  }
  static std::vector<float> Take(heddle_tensor* tensor) {
    const auto* p = static_cast<const float*>(heddle_tensor_const_data(tensor));
    std::vector<float> values(p, p + heddle_tensor_numel(tensor));
    heddle_tensor_free(tensor);
    return values;
  }
  std::vector<float> RunOn(heddle_model* model, float pixel) {
    heddle_tensor* image = Image(pixel);
    heddle_tensor* output = nullptr;
    EXPECT_FINE(heddle_model_run(model, nullptr, nullptr, &image, 1, &output, 1));
    heddle_tensor_free(image);
    return output == nullptr ? std::vector<float>() : Take(output);
  }

  heddle_executor* executor_ = nullptr;
  heddle_model* model_ = nullptr;
};

TEST_F(CApi, TellsWhatAModelIs) {
  EXPECT_EQ(heddle_abi_version(), HEDDLE_ABI_VERSION);
  EXPECT_GT(std::strlen(heddle_version()), 0u);
  EXPECT_EQ(heddle_executor_threads(executor_), 2);
  ASSERT_EQ(heddle_model_num_inputs(model_), 1u);
  ASSERT_EQ(heddle_model_num_outputs(model_), 1u);
  const heddle_info x = heddle_model_input(model_, 0);
  EXPECT_STREQ(x.name, "x");
  EXPECT_EQ(x.dtype, HEDDLE_FLOAT32);
  ASSERT_EQ(x.rank, 4);
  EXPECT_EQ(x.dims[0], -1);
  EXPECT_EQ(x.dims[3], 8);
  EXPECT_EQ(heddle_model_input(model_, 1).name, nullptr);
  EXPECT_EQ(heddle_model_output(nullptr, 0).name, nullptr);
  for (size_t index : {0, 1}) {
    EXPECT_STREQ(heddle_model_input_type(model_, index), "");
    EXPECT_STREQ(heddle_model_output_type(model_, index), "");
  }
  EXPECT_STREQ(heddle_model_input_type(nullptr, 0), "");
  EXPECT_STREQ(heddle_model_output_type(nullptr, 0), "");
}

TEST_F(CApi, OutputsAreTheCallersOwn) {
  heddle_tensor* image = Image(3, 2);
  heddle_tensor* first = nullptr;
  heddle_tensor* second = nullptr;
  const char* names[] = {"x"};
  EXPECT_FINE(heddle_model_run(model_, nullptr, names, &image, 1, &first, 1));
  static_cast<float*>(heddle_tensor_data(image))[5] = 16;
  EXPECT_FINE(heddle_model_run(model_, nullptr, names, &image, 1, &second, 1));
  heddle_tensor_free(image);
  ASSERT_EQ(heddle_tensor_rank(first), 2);
  EXPECT_EQ(heddle_tensor_dims(first)[0], 2);
  EXPECT_EQ(heddle_tensor_bytes(first), 2 * 10 * sizeof(float));
  const auto a = Take(first), b = Take(second);
  EXPECT_NE(std::vector(a.begin(), a.begin() + 10), std::vector(b.begin(), b.begin() + 10));
  EXPECT_EQ(std::vector(a.begin() + 10, a.end()), std::vector(b.begin() + 10, b.end()));
}

TEST_F(CApi, ErrorsNameWhatIsWrongAndSpoilNothing) {
  const auto before = RunOn(model_, 2);
  heddle_tensor* image = Image(2, 1, 7);
  heddle_tensor* output = nullptr;
  const char* wrong[] = {"y"};
  const char* right[] = {"x"};
  EXPECT_FAILS(heddle_model_run(model_, nullptr, right, &image, 1, &output, 1),
               HEDDLE_INVALID_ARGUMENT, "'x'");
  EXPECT_FAILS(heddle_model_run(model_, nullptr, wrong, &image, 1, &output, 1),
               HEDDLE_INVALID_ARGUMENT, "y");
  EXPECT_FAILS(heddle_model_run(model_, nullptr, nullptr, nullptr, 0, &output, 1),
               HEDDLE_INVALID_ARGUMENT, "1 inputs, 0 were given");
  EXPECT_FAILS(heddle_model_run(model_, nullptr, right, &image, 1, nullptr, 0),
               HEDDLE_INVALID_ARGUMENT, "1 outputs, room was given for 0");
  EXPECT_FAILS(heddle_model_run(model_, nullptr, right, &image, 1, nullptr, 1),
               HEDDLE_INVALID_ARGUMENT, "outputs is NULL");
  EXPECT_FAILS(heddle_model_run(nullptr, nullptr, right, &image, 1, &output, 1),
               HEDDLE_INVALID_ARGUMENT, "model is NULL");
  heddle_tensor_free(image);
  EXPECT_EQ(output, nullptr);
  heddle_model* other = nullptr;
  EXPECT_FAILS(heddle_model_load(executor_, "/nowhere", nullptr, nullptr, &other), HEDDLE_NOT_FOUND,
               "/nowhere");
  EXPECT_FAILS(heddle_model_parse(executor_, "nonsense", 8, nullptr, nullptr, &other),
               HEDDLE_UNIMPLEMENTED, "program: this is text");
  EXPECT_EQ(other, nullptr);
  EXPECT_EQ(RunOn(model_, 2), before);
}

TEST_F(CApi, AnErrorKnowsItsOperator) {
  heddle_run_options options{};
  options.size = sizeof options;
  options.check_nan_inf = 1;
  heddle_tensor* image = Image(NAN);
  heddle_tensor* output = nullptr;
  heddle_error* error = heddle_model_run(model_, &options, nullptr, &image, 1, &output, 1);
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(heddle_error_code(error), HEDDLE_OUT_OF_RANGE);
  EXPECT_GT(std::strlen(heddle_error_op_type(error)), 0u);
  EXPECT_GT(std::strlen(heddle_error_output(error)), 0u);
  EXPECT_EQ(heddle_error_block(error), 0);
  EXPECT_GE(heddle_error_op_index(error), 0);
  heddle_error_free(error);
  heddle_tensor_free(image);
  EXPECT_EQ(heddle_error_op_index(nullptr), -1);
  EXPECT_STREQ(heddle_error_op_type(nullptr), "");
}

TEST_F(CApi, OptionsAreChecked) {
  heddle_executor* executor = nullptr;
  heddle_executor_options wrong{};
  EXPECT_FAILS(heddle_executor_new(&wrong, &executor), HEDDLE_INVALID_ARGUMENT, "size");
  wrong.size = sizeof wrong;
  wrong.threads = -1;
  EXPECT_FAILS(heddle_executor_new(&wrong, &executor), HEDDLE_INVALID_ARGUMENT, "threads");
  wrong.threads = 1;
  wrong.runs_at_once = -1;
  EXPECT_FAILS(heddle_executor_new(&wrong, &executor), HEDDLE_INVALID_ARGUMENT, "runs_at_once");
  heddle_model_options options;
  heddle_model_options_init(&options);
  heddle_model* other = nullptr;
  options.opt_level = 3;
  EXPECT_FAILS(heddle_model_compile(model_, &options, &other), HEDDLE_INVALID_ARGUMENT,
               "opt_level");
  heddle_model_options_init(&options);
  options.schedule = static_cast<heddle_schedule>(17);
  EXPECT_FAILS(heddle_model_compile(model_, &options, &other), HEDDLE_INVALID_ARGUMENT, "schedule");
  heddle_model_options_init(&options);
  const char* fetches[] = {"no such variable"};
  options.fetches = fetches;
  options.num_fetches = 1;
  EXPECT_FAILS(heddle_model_compile(model_, &options, &other), HEDDLE_NOT_FOUND,
               "no such variable");
}

TEST_F(CApi, OptionsOfMemoryAndPrecision) {
  heddle_model_options options;
  heddle_model* other = nullptr;
  const auto want = RunOn(model_, 4);
  const auto same_within = [&](float tolerance) {
    EXPECT_FINE(heddle_model_compile(model_, &options, &other));
    const auto got = RunOn(other, 4);
    heddle_model_free(other);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], tolerance);
  };
  heddle_model_options_init(&options);
  options.lean = 1;
  same_within(1e-5f);
  heddle_model_options_init(&options);
  const std::string packed = testing::TempDir() + "/capi_packed_" + std::to_string(getpid());
  options.packed_weights = packed.c_str();
  same_within(0);
  EXPECT_EQ(std::remove(packed.c_str()), 0) << "no file was made";
  heddle_model_options_init(&options);
  options.bf16 = 1;
  same_within(3e-2f);
  options.int8_weights = 1;
  EXPECT_FAILS(heddle_model_compile(model_, &options, &other), HEDDLE_INVALID_ARGUMENT,
               "int8_weights");
  options.bf16 = 0;
  same_within(3e-2f);
  heddle_model_options_init(&options);
  options.schedule = HEDDLE_SCHEDULE_LANES;
  options.reuse_edges = 1;
  const int64_t dims[] = {8, 1, 8, 8};
  const heddle_max_shape most[] = {{"x", dims, 4}};
  options.max_shapes = most;
  options.num_max_shapes = 1;
  same_within(1e-5f);
  const heddle_max_shape nameless[] = {{nullptr, dims, 4}};
  options.max_shapes = nameless;
  EXPECT_FAILS(heddle_model_compile(model_, &options, &other), HEDDLE_INVALID_ARGUMENT,
               "max_shapes[0]");
  const heddle_max_shape unknown[] = {{"y", dims, 4}};
  options.max_shapes = unknown;
  EXPECT_FAILS(heddle_model_compile(model_, &options, &other), HEDDLE_INVALID_ARGUMENT, "'y'");
  const heddle_max_shape deep[] = {{"x", dims, 4000}};
  options.max_shapes = deep;
  EXPECT_FAILS(heddle_model_compile(model_, &options, &other), HEDDLE_INVALID_ARGUMENT,
               "rank 4000");
}

// A caller built against an older, shorter structure: what it does not know has its default.
TEST_F(CApi, ShorterOptionsAreUnderstood) {
  heddle_model_options options;
  heddle_model_options_init(&options);
  options.opt_level = 99;
  options.size = offsetof(heddle_model_options, opt_level);
  heddle_model* other = nullptr;
  EXPECT_FINE(heddle_model_compile(model_, &options, &other));
  EXPECT_EQ(RunOn(other, 4), RunOn(model_, 4));
  heddle_model_free(other);
}

TEST_F(CApi, WrappedMemoryIsReleasedOnce) {
  int released = 0;
  const auto release = [](void* count) { ++*static_cast<int*>(count); };
  float pixels[64] = {};
  const int64_t dims[] = {1, 1, 8, 8};
  heddle_tensor* tensor = nullptr;
  EXPECT_FINE(heddle_tensor_wrap(HEDDLE_FLOAT32, 4, dims, pixels, release, &released, &tensor));
  EXPECT_EQ(heddle_tensor_const_data(tensor), pixels);
  heddle_tensor* shared = nullptr;
  EXPECT_FINE(heddle_tensor_share(tensor, &shared));
  heddle_tensor_free(tensor);
  EXPECT_EQ(released, 0);
  heddle_tensor_free(shared);
  EXPECT_EQ(released, 1);
  const int64_t negative[] = {-1};
  EXPECT_FAILS(heddle_tensor_wrap(HEDDLE_FLOAT32, 1, negative, pixels, release, &released, &tensor),
               HEDDLE_INVALID_ARGUMENT, "-1");
  EXPECT_EQ(released, 2);
}

TEST_F(CApi, TensorsAreChecked) {
  heddle_tensor* tensor = nullptr;
  const int64_t huge[] = {int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_FAILS(heddle_tensor_new(HEDDLE_FLOAT32, 2, huge, &tensor), HEDDLE_INVALID_ARGUMENT,
               "bytes");
  EXPECT_FAILS(heddle_tensor_new(HEDDLE_FLOAT32, 11, huge, &tensor), HEDDLE_INVALID_ARGUMENT,
               "rank");
  EXPECT_FAILS(heddle_tensor_new(HEDDLE_FLOAT32, 1, nullptr, &tensor), HEDDLE_INVALID_ARGUMENT,
               "dims");
  EXPECT_FAILS(heddle_tensor_new(HEDDLE_UNKNOWN, 0, nullptr, &tensor), HEDDLE_INVALID_ARGUMENT,
               "dtype");
  EXPECT_EQ(heddle_dtype_size(HEDDLE_COMPLEX128), 16u);
  EXPECT_EQ(heddle_dtype_size(static_cast<heddle_dtype>(99)), 0u);
  EXPECT_STREQ(heddle_dtype_name(HEDDLE_BFLOAT16), "bfloat16");
  const int64_t empty[] = {0, 5};
  EXPECT_FINE(heddle_tensor_new(HEDDLE_INT64, 2, empty, &tensor));
  EXPECT_EQ(heddle_tensor_bytes(tensor), 0u);
  const size_t rising[] = {0, 2, 5}, falling[] = {0, 3, 2};
  EXPECT_FINE(heddle_tensor_add_lod(tensor, rising, 3));
  EXPECT_FAILS(heddle_tensor_add_lod(tensor, falling, 3), HEDDLE_INVALID_ARGUMENT, "fall");
  ASSERT_EQ(heddle_tensor_lod_levels(tensor), 1);
  size_t count = 0;
  EXPECT_EQ(heddle_tensor_lod(tensor, 0, &count)[2], 5u);
  EXPECT_EQ(count, 3u);
  EXPECT_EQ(heddle_tensor_lod(tensor, 1, &count), nullptr);
  heddle_tensor_free(tensor);
}

TEST_F(CApi, ParametersCanBeReplacedAndSaved) {
  ASSERT_GT(heddle_model_num_parameters(model_), 0u);
  const heddle_info info = heddle_model_parameter_info(model_, 0);
  const auto before = RunOn(model_, 2);
  heddle_tensor* old = nullptr;
  EXPECT_FINE(heddle_model_parameter(model_, info.name, &old));
  heddle_tensor* changed = nullptr;
  EXPECT_FINE(heddle_tensor_new(info.dtype, info.rank, info.dims, &changed));
  auto* data = static_cast<float*>(heddle_tensor_data(changed));
  for (int64_t i = 0; i < heddle_tensor_numel(changed); ++i) data[i] = 0.25f * (i % 3);
  EXPECT_FINE(heddle_model_set_parameter(model_, info.name, changed));
  const auto after = RunOn(model_, 2);
  EXPECT_NE(after, before);
  // It was copied: what happens to the tensor is of no concern.
  data[0] = 1e9f;
  EXPECT_EQ(RunOn(model_, 2), after);
  heddle_tensor_free(changed);

  const std::string path = testing::TempDir() + "/capi_" + std::to_string(getpid()) + ".pdiparams";
  EXPECT_FINE(heddle_model_save_parameters(model_, path.c_str()));
  heddle_model* loaded = nullptr;
  EXPECT_FINE(heddle_model_load(executor_, kDigits.c_str(), path.c_str(), nullptr, &loaded));
  EXPECT_EQ(RunOn(loaded, 2), after);
  heddle_model_free(loaded);
  std::filesystem::remove(path);

  EXPECT_FINE(heddle_model_set_parameter(model_, info.name, old));
  EXPECT_EQ(RunOn(model_, 2), before);
  heddle_tensor* scalar = nullptr;
  EXPECT_FINE(heddle_tensor_new(HEDDLE_INT64, 0, nullptr, &scalar));
  EXPECT_FAILS(heddle_model_set_parameter(model_, info.name, scalar), HEDDLE_INVALID_ARGUMENT,
               info.name);
  EXPECT_FAILS(heddle_model_set_parameter(model_, "no such", old), HEDDLE_NOT_FOUND, "no such");
  EXPECT_FAILS(heddle_model_parameter(model_, "x", &old), HEDDLE_NOT_FOUND, "x");
  heddle_tensor_free(scalar);
  heddle_tensor_free(old);
}

TEST_F(CApi, RunsCanBeStopped) {
  heddle_stop* stop = nullptr;
  EXPECT_FINE(heddle_stop_new(&stop));
  heddle_run_options options{};
  options.size = sizeof options;
  options.stop = stop;
  heddle_tensor* image = Image(1);
  heddle_tensor* output = nullptr;
  EXPECT_FINE(heddle_model_run(model_, &options, nullptr, &image, 1, &output, 1));
  heddle_tensor_free(output);
  output = nullptr;
  heddle_stop_request(stop);
  EXPECT_FAILS(heddle_model_run(model_, &options, nullptr, &image, 1, &output, 1), HEDDLE_CANCELLED,
               "");
  options.stop = nullptr;
  options.deadline_ms = 1e-9;
  EXPECT_FAILS(heddle_model_run(model_, &options, nullptr, &image, 1, &output, 1),
               HEDDLE_DEADLINE_EXCEEDED, "");
  options.deadline_ms = 1e300;
  EXPECT_FINE(heddle_model_run(model_, &options, nullptr, &image, 1, &output, 1));
  heddle_tensor_free(output);
  heddle_tensor_free(image);
  heddle_stop_free(stop);
}

TEST_F(CApi, RunsGoOnByThemselves) {
  constexpr int kRuns = 64;
  std::atomic<int> ended{0};
  heddle_tensor* images[kRuns];
  heddle_run* runs[kRuns];
  for (int k = 0; k < kRuns; ++k) {
    images[k] = Image(static_cast<float>(k % 5));
    EXPECT_FINE(heddle_model_start(
        model_, nullptr, nullptr, &images[k], 1,
        [](void* count) { ++*static_cast<std::atomic<int>*>(count); }, &ended, &runs[k]));
  }
  for (int k = kRuns; k-- > 0;) {
    heddle_tensor *want = nullptr, *got = nullptr;
    EXPECT_FINE(heddle_model_run(model_, nullptr, nullptr, &images[k], 1, &want, 1));
    int done = 0;
    EXPECT_FINE(heddle_run_wait(runs[k], -1, &done));
    EXPECT_EQ(done, 1);
    EXPECT_NE(heddle_run_done(runs[k]), 0);
    EXPECT_FAILS(heddle_run_outputs(runs[k], &got, 2), HEDDLE_INVALID_ARGUMENT, "1 outputs");
    EXPECT_FINE(heddle_run_outputs(runs[k], &got, 1));
    ASSERT_EQ(heddle_tensor_bytes(got), heddle_tensor_bytes(want));
    EXPECT_EQ(std::memcmp(heddle_tensor_const_data(got), heddle_tensor_const_data(want),
                          heddle_tensor_bytes(got)),
              0);
    heddle_tensor* again = nullptr;
    EXPECT_FAILS(heddle_run_outputs(runs[k], &again, 1), HEDDLE_INVALID_ARGUMENT, "taken");
    heddle_run_cancel(runs[k]);  // too late, and no harm
    heddle_run_free(runs[k]);
    heddle_tensor_free(want);
    heddle_tensor_free(got);
    heddle_tensor_free(images[k]);
  }
  // A run's callback may come after those who wait were told.
  while (ended.load() < kRuns) std::this_thread::yield();
}

TEST_F(CApi, ARunThatGoesOnByItselfFailsAsOthersDo) {
  heddle_run_options options{};
  options.size = sizeof options;
  options.deadline_ms = 1e-9;
  heddle_tensor *image = Image(1), *output = nullptr;
  heddle_run* run = nullptr;
  EXPECT_FINE(heddle_model_start(model_, &options, nullptr, &image, 1, nullptr, nullptr, &run));
  EXPECT_FAILS(heddle_run_outputs(run, &output, 1), HEDDLE_DEADLINE_EXCEEDED, "");
  heddle_run_free(run);
  EXPECT_FAILS(heddle_model_start(model_, nullptr, nullptr, &image, 1, nullptr, nullptr, nullptr),
               HEDDLE_INVALID_ARGUMENT, "NULL");
  EXPECT_EQ(heddle_run_done(nullptr), 0);
  EXPECT_FAILS(heddle_run_wait(nullptr, 0, nullptr), HEDDLE_INVALID_ARGUMENT, "NULL");
  EXPECT_FAILS(heddle_run_outputs(nullptr, &output, 1), HEDDLE_INVALID_ARGUMENT, "NULL");
  heddle_run_cancel(nullptr);
  heddle_run_free(nullptr);
  heddle_tensor_free(image);
}

TEST_F(CApi, ALimitOfMemory) {
  heddle_executor_options options{};
  options.size = sizeof options;
  options.threads = 1;
  options.memory_limit = 16;
  heddle_executor* executor = nullptr;
  EXPECT_FINE(heddle_executor_new(&options, &executor));
  heddle_model* model = nullptr;
  EXPECT_FINE(heddle_model_load(executor, kDigits.c_str(), nullptr, nullptr, &model));
  heddle_tensor* image = Image(1);
  heddle_tensor* output = nullptr;
  EXPECT_FAILS(heddle_model_run(model, nullptr, nullptr, &image, 1, &output, 1),
               HEDDLE_RESOURCE_EXHAUSTED, "block 0, op");
  heddle_tensor_free(image);
  heddle_model_free(model);
  heddle_executor_free(executor);
}

TEST_F(CApi, PlansAndProgramsInMemory) {
  heddle_tensor* image = Image(1);
  heddle_text* text = nullptr;
  EXPECT_FINE(heddle_model_prepare(model_, nullptr, &image, 1));
  EXPECT_FINE(heddle_model_plan(model_, nullptr, &image, 1, &text));
  EXPECT_EQ(std::strlen(heddle_text_data(text)), heddle_text_size(text));
  EXPECT_NE(std::string(heddle_text_data(text)).find("softmax"), std::string::npos);
  heddle_text_free(text);
  heddle_tensor_free(image);

  std::ifstream file(kDigits + "/model.pdmodel", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  heddle_model* parsed = nullptr;
  const std::string params = kDigits + "/model.pdiparams";
  EXPECT_FINE(
      heddle_model_parse(executor_, bytes.data(), bytes.size(), params.c_str(), nullptr, &parsed));
  EXPECT_EQ(RunOn(parsed, 5), RunOn(model_, 5));
  heddle_model_free(parsed);

  // Both files in memory.
  std::ifstream weights(params, std::ios::binary);
  const std::string values{std::istreambuf_iterator<char>(weights), {}};
  EXPECT_FINE(heddle_model_parse_all(executor_, bytes.data(), bytes.size(), values.data(),
                                     values.size(), nullptr, &parsed));
  EXPECT_EQ(RunOn(parsed, 5), RunOn(model_, 5));
  heddle_model_free(parsed);
  EXPECT_FAILS(heddle_model_parse_all(executor_, bytes.data(), bytes.size(), values.data(),
                                      values.size() / 2, nullptr, &parsed),
               HEDDLE_DATA_LOSS, "the parameters in memory: cut short");
  EXPECT_FAILS(
      heddle_model_parse_all(executor_, bytes.data(), bytes.size(), nullptr, 5, nullptr, &parsed),
      HEDDLE_INVALID_ARGUMENT, "params is NULL");
}

// An ONNX model holds its weights, which need not be named.
TEST_F(CApi, ModelsInMemoryHaveTheirOwnParameters) {
  const std::string path = kDigits + "/onnx/model.onnx";
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  heddle_model *loaded = nullptr, *parsed = nullptr;
  EXPECT_FINE(heddle_model_load(executor_, path.c_str(), nullptr, nullptr, &loaded));
  EXPECT_FINE(heddle_model_parse(executor_, bytes.data(), bytes.size(), nullptr, nullptr, &parsed));
  EXPECT_EQ(RunOn(parsed, 5), RunOn(loaded, 5));
  EXPECT_FALSE(RunOn(parsed, 5).empty());
  heddle_model_free(parsed);
  heddle_model_free(loaded);
}

TEST_F(CApi, PartsOfFilesAreLoaded) {
  heddle_program_part part = {};
  part.size = sizeof(part);
  heddle_model* loaded = nullptr;
  EXPECT_FINE(heddle_model_load_part(executor_, kDigits.c_str(), nullptr, &part, nullptr, &loaded));
  EXPECT_EQ(RunOn(loaded, 5), RunOn(model_, 5));
  heddle_model_free(loaded);
  part.signature = "other";
  EXPECT_FAILS(heddle_model_load_part(executor_, kDigits.c_str(), nullptr, &part, nullptr, &loaded),
               HEDDLE_INVALID_ARGUMENT, "no signature 'other'");
  part.num_fetches = 2;
  EXPECT_FAILS(heddle_model_load_part(executor_, kDigits.c_str(), nullptr, &part, nullptr, &loaded),
               HEDDLE_INVALID_ARGUMENT, "part->fetches has NULL at 0");
  const char* const names[] = {"a", nullptr};
  part.fetches = names;
  EXPECT_FAILS(heddle_model_load_part(executor_, kDigits.c_str(), nullptr, &part, nullptr, &loaded),
               HEDDLE_INVALID_ARGUMENT, "part->fetches has NULL at 1");
  part.size = 1;
  EXPECT_FAILS(heddle_model_load_part(executor_, kDigits.c_str(), nullptr, &part, nullptr, &loaded),
               HEDDLE_INVALID_ARGUMENT, "part->size");
}

TEST_F(CApi, ManyThreadsShareAModel) {
  const auto expected = RunOn(model_, 7);
  // A model outlives the handle of its executor.
  heddle_executor_free(executor_);
  executor_ = nullptr;
  std::vector<std::thread> threads;
  std::vector<int> right(4);
  for (int& count : right)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) count += RunOn(model_, 7) == expected;
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(right, std::vector<int>(4, 50));
}

TEST_F(CApi, TellsTheMemoryOfRuns) {
  EXPECT_EQ(heddle_executor_num_places(executor_), 1u);
  EXPECT_EQ(heddle_executor_num_places(nullptr), 0u);
  heddle_tensor* image = Image(0);
  heddle_tensor* outputs[1] = {};
  EXPECT_FINE(heddle_model_run(model_, nullptr, nullptr, &image, 1, outputs, 1));
  heddle_place_memory memory{};
  EXPECT_FAILS(heddle_executor_memory(executor_, 0, &memory), HEDDLE_INVALID_ARGUMENT, "size");
  memory.size = sizeof memory;
  EXPECT_FINE(heddle_executor_memory(executor_, 0, &memory));
  EXPECT_STREQ(memory.place, "cpu");
  EXPECT_GE(memory.allocated_bytes, heddle_tensor_bytes(outputs[0]));
  EXPECT_GE(memory.reserved_bytes, memory.allocated_bytes);
  EXPECT_GE(memory.peak_bytes, memory.allocated_bytes);
  EXPECT_FAILS(heddle_executor_memory(executor_, 1, &memory), HEDDLE_OUT_OF_RANGE, "1 places");
  const size_t held = memory.allocated_bytes;
  heddle_tensor_free(outputs[0]);
  heddle_executor_reset_memory_peaks(executor_);
  EXPECT_FINE(heddle_executor_memory(executor_, 0, &memory));
  EXPECT_LT(memory.allocated_bytes, held);
  EXPECT_EQ(memory.peak_bytes, memory.allocated_bytes);
  heddle_tensor_free(image);
}

TEST_F(CApi, RunsOnADevice) {
  heddle_executor_options options{};
  options.size = sizeof options;
  options.place = "emulated";
  heddle_executor* executor = nullptr;
  heddle_model* model = nullptr;
  EXPECT_FINE(heddle_executor_new(&options, &executor));
  EXPECT_FINE(heddle_model_load(executor, kDigits.c_str(), nullptr, nullptr, &model));
  heddle_tensor* image = Image(0.5f);
  heddle_tensor *here[1] = {}, *there[1] = {};
  EXPECT_FINE(heddle_model_run(model_, nullptr, nullptr, &image, 1, here, 1));
  EXPECT_FINE(heddle_model_run(model, nullptr, nullptr, &image, 1, there, 1));
  ASSERT_EQ(heddle_tensor_bytes(here[0]), heddle_tensor_bytes(there[0]));
  const auto* a = static_cast<const float*>(heddle_tensor_const_data(here[0]));
  const auto* b = static_cast<const float*>(heddle_tensor_const_data(there[0]));
  for (int64_t i = 0; i < heddle_tensor_numel(here[0]); ++i) EXPECT_NEAR(a[i], b[i], 1e-5) << i;
  EXPECT_EQ(heddle_executor_num_places(executor), 2u);
  heddle_place_memory memory{};
  memory.size = sizeof memory;
  EXPECT_FINE(heddle_executor_memory(executor, 1, &memory));
  EXPECT_STREQ(memory.place, "emulated:0");
  EXPECT_GT(memory.peak_bytes, 0u);
  heddle_tensor_free(here[0]);
  heddle_tensor_free(there[0]);
  heddle_tensor_free(image);
  heddle_model_free(model);
  heddle_executor_free(executor);
  options.place = "tpu:0";
  EXPECT_FAILS(heddle_executor_new(&options, &executor), HEDDLE_INVALID_ARGUMENT,
               "there is no device 'tpu:0'");
  // A caller that was built when the structure ended before `place` has something else there.
  options.size = offsetof(heddle_executor_options, place);
  EXPECT_FINE(heddle_executor_new(&options, &executor));
  EXPECT_EQ(heddle_executor_num_places(executor), 1u);
  heddle_executor_free(executor);
  EXPECT_FAILS(heddle_executor_memory(nullptr, 0, &memory), HEDDLE_INVALID_ARGUMENT, "NULL");
  EXPECT_FAILS(heddle_executor_memory(executor_, 0, nullptr), HEDDLE_INVALID_ARGUMENT, "NULL");
}

}  // namespace
