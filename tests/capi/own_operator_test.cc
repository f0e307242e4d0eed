// Operators from outside, added through C.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "heddle.h"

namespace {

const std::string kScale = std::string(HEDDLE_SOURCE_DIR) + "/examples/own_operator/scale.onnx";

std::string TextOf(heddle_error* error) {
  const std::string text = heddle_error_text(error);
  heddle_error_free(error);
  return text;
}

bool Holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

int LikeX(heddle_call* call, void*) {
  const heddle_info x = heddle_call_info(call, "X", 0);
  heddle_call_set_output(call, "Y", 0, x.dtype, x.rank, x.dims);
  return 0;
}

// What the kernel of the test does: scale, or something wrong.
enum Deed { kScales, kFails, kSaysNothing, kMisnames, kAllocates };
Deed deed = kScales;

int Compute(heddle_call* call, void* argument) {
  if (deed == kFails) return heddle_call_fail(call, HEDDLE_OUT_OF_RANGE, "too far");
  if (deed == kSaysNothing) return 1;
  if (deed == kMisnames) return heddle_call_input(call, "Z", 0) == nullptr ? 0 : 1;
  const int64_t dims[] = {1};
  if (deed == kAllocates) heddle_call_set_output(call, "Y", 0, HEDDLE_FLOAT32, 1, dims);
  const heddle_tensor* x = heddle_call_input(call, "X", 0);
  heddle_tensor* y = heddle_call_output(call, "Y", 0);
  const heddle_attribute* factor = heddle_call_attribute(call, "factor");
  EXPECT_EQ(heddle_call_num_inputs(call, "Shift"), 1u);
  EXPECT_EQ(heddle_call_num_outputs(call, "Y"), 1u);
  EXPECT_EQ(heddle_call_input(call, "X", 1), nullptr);
  EXPECT_STREQ(heddle_call_op(call), "c_scale");
  EXPECT_EQ(heddle_call_interrupted(call), 0);
  struct Job {
    const float* from;
    float* to;
    float factor;
  } job = {static_cast<const float*>(heddle_tensor_const_data(x)),
           static_cast<float*>(heddle_tensor_data(y)),
           static_cast<float>(factor->f) + (argument ? *static_cast<float*>(argument) : 0)};
  heddle_call_parallel(
      call, heddle_tensor_numel(x), 2,
      [](int64_t begin, int64_t end, void* given) {
        const Job& j = *static_cast<Job*>(given);
        for (int64_t i = begin; i < end; ++i) j.to[i] = j.from[i] * j.factor;
      },
      &job);
  return 0;
}

int releases = 0;

int Create(heddle_call* node, heddle_kernel* kernel, void* argument) {
  EXPECT_STREQ(heddle_call_op(node), "c_scale");
  EXPECT_EQ(heddle_call_attribute(node, "factor")->f, 2);
  EXPECT_EQ(heddle_call_num_inputs(node, "X"), 0u);
  if (argument == nullptr) return heddle_call_fail(node, HEDDLE_NOT_FOUND, "nothing here");
  kernel->run = Compute;
  kernel->argument = argument;
  kernel->release = [](void*) { ++releases; };
  return 0;
}

void AddScale() {
  static bool done = false;
  if (done) return;
  done = true;
  const heddle_dtype floats[] = {HEDDLE_FLOAT32};
  const char* const names[] = {"com.acme.ScaleShift"};
  heddle_slot inputs[2] = {}, output = {};
  inputs[0].name = "X";
  inputs[0].dtypes = floats;
  inputs[0].num_dtypes = 1;
  inputs[1].name = "Shift";
  inputs[1].same_as = "X";
  output.name = "Y";
  heddle_attribute factor = {};
  factor.name = "factor";
  factor.type = HEDDLE_ATTRIBUTE_FLOAT;
  factor.f = 1;
  heddle_operator op = {};
  op.size = sizeof op;
  op.name = "c_scale";
  op.names_in_files = names;
  op.num_names_in_files = 1;
  op.inputs = inputs;
  op.num_inputs = 2;
  op.outputs = &output;
  op.num_outputs = 1;
  op.attributes = &factor;
  op.num_attributes = 1;
  op.shapes = LikeX;
  op.kernel = Compute;
  ASSERT_EQ(TextOf(heddle_operator_add(&op)), "");
  EXPECT_TRUE(Holds(TextOf(heddle_operator_add(&op)), "there is an operator 'c_scale' already"));
}

// The first number of the output, or the error.
std::string RunScale(const heddle_kernel_creator* creator = nullptr) {
  AddScale();
  heddle_executor_options options = {};
  options.size = sizeof options;
  options.threads = 2;
  options.kernel_creator = creator;
  heddle_executor* executor = nullptr;
  heddle_model* model = nullptr;
  heddle_tensor *x = nullptr, *y = nullptr;
  float values[] = {3, 2, 1, 4, 5, 6};
  const int64_t dims[] = {2, 3};
  const char* const name = "x";
  heddle_error* error = heddle_executor_new(&options, &executor);
  if (!error) error = heddle_model_load(executor, kScale.c_str(), nullptr, nullptr, &model);
  if (!error) error = heddle_tensor_wrap(HEDDLE_FLOAT32, 2, dims, values, nullptr, nullptr, &x);
  if (!error) error = heddle_model_run(model, nullptr, &name, &x, 1, &y, 1);
  std::string text = error ? TextOf(error) : "";
  if (text.empty())
    text = std::to_string(static_cast<const float*>(heddle_tensor_const_data(y))[0]);
  heddle_tensor_free(x);
  heddle_tensor_free(y);
  heddle_model_free(model);
  heddle_executor_free(executor);
  return text;
}

TEST(COwnOperator, Runs) {
  deed = kScales;
  EXPECT_EQ(RunScale(), "6.000000");
}

TEST(COwnOperator, ItsErrorsNameIt) {
  const auto error = [](Deed one) {
    deed = one;
    const std::string text = RunScale();
    EXPECT_TRUE(Holds(text, "(c_scale -> y)")) << text;
    return text;
  };
  EXPECT_TRUE(Holds(error(kFails), "too far"));
  EXPECT_TRUE(Holds(error(kSaysNothing), "failed, and does not say why"));
  EXPECT_TRUE(Holds(error(kMisnames), "declares no input 'Z'"));
  EXPECT_TRUE(Holds(error(kAllocates), "whose shape the shape function has said"));
  deed = kScales;
}

TEST(COwnOperator, CreatorsMakeKernels) {
  deed = kScales;
  float more = 8;
  heddle_kernel_creator creator = {Create, &more};
  EXPECT_EQ(RunScale(&creator), "30.000000");
  EXPECT_GE(releases, 1);
  creator.argument = nullptr;
  EXPECT_TRUE(Holds(RunScale(&creator), "nothing here"));
  creator.argument = &more;
  EXPECT_EQ(TextOf(heddle_kernel_creator_set(&creator)), "");
  EXPECT_EQ(RunScale(), "30.000000");
  EXPECT_EQ(TextOf(heddle_kernel_creator_set(nullptr)), "");
  EXPECT_EQ(RunScale(), "6.000000");
}

TEST(COwnOperator, BadDefinitionsAreRefused) {
  EXPECT_TRUE(Holds(TextOf(heddle_operator_add(nullptr)), "op is NULL"));
  heddle_operator op = {};
  EXPECT_TRUE(Holds(TextOf(heddle_operator_add(&op)), "size is 0"));
  op.size = sizeof op;
  EXPECT_TRUE(Holds(TextOf(heddle_operator_add(&op)), "the name is NULL"));
  op.name = "c_none";
  op.num_inputs = 1;
  EXPECT_TRUE(Holds(TextOf(heddle_operator_add(&op)), "inputs is NULL"));
  heddle_slot slot = {};
  op.inputs = &slot;
  EXPECT_TRUE(Holds(TextOf(heddle_operator_add(&op)), "a name is NULL"));
  slot.name = "X";
  slot.num_dtypes = 1;
  EXPECT_TRUE(Holds(TextOf(heddle_operator_add(&op)), "there is no such dtype"));
  slot.num_dtypes = 0;
  EXPECT_TRUE(Holds(TextOf(heddle_operator_add(&op)), "neither an output nor a side effect"));
  heddle_attribute attribute = {};
  attribute.name = "a";
  attribute.type = HEDDLE_ATTRIBUTE_ANY_;
  op.attributes = &attribute;
  op.num_attributes = 1;
  EXPECT_TRUE(Holds(TextOf(heddle_operator_add(&op)), "is not a type of attributes"));
  EXPECT_EQ(heddle_call_input(nullptr, "X", 0), nullptr);
  EXPECT_EQ(heddle_call_num_inputs(nullptr, "X"), 0u);
  EXPECT_STREQ(heddle_call_op(nullptr), "");
}

}  // namespace
