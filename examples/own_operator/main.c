/* An operator that heddle lacks, com.acme.ScaleShift of an ONNX file, added by the program that
 * runs the file: own_operator_c scale.onnx */
#include <heddle.h>
#include <stdio.h>

/* y = x * factor + shift, where shift has one element for each of x's last axis. */
static int scale_shift(heddle_call* call, void* argument) {
  const heddle_tensor* x = heddle_call_input(call, "X", 0);
  const heddle_tensor* shift = heddle_call_input(call, "Shift", 0);
  heddle_tensor* y = heddle_call_output(call, "Y", 0);
  const heddle_attribute* factor = heddle_call_attribute(call, "factor");
  if (!x || !shift || !y || !factor) return 1; /* heddle knows why */
  const float* from = heddle_tensor_const_data(x);
  const float* add = heddle_tensor_const_data(shift);
  float* to = heddle_tensor_data(y);
  const int64_t width = heddle_tensor_numel(shift);
  for (int64_t i = 0; i < heddle_tensor_numel(x); ++i)
    to[i] = from[i] * (float)factor->f + add[i % width];
  (void)argument;
  return 0;
}

/* Called before a run with what is known of the operands, and in it if that was not all. */
static int shapes(heddle_call* call, void* argument) {
  const heddle_info x = heddle_call_info(call, "X", 0);
  const heddle_info shift = heddle_call_info(call, "Shift", 0);
  (void)argument;
  if (shift.rank >= 0 && shift.rank != 1)
    return heddle_call_fail(call, HEDDLE_INVALID_ARGUMENT, "'Shift' must have one dimension");
  if (x.rank == 0) return heddle_call_fail(call, HEDDLE_INVALID_ARGUMENT, "'X' must have an axis");
  if (x.rank > 0 && shift.rank == 1 && x.dims[x.rank - 1] >= 0 && shift.dims[0] >= 0 &&
      x.dims[x.rank - 1] != shift.dims[0])
    return heddle_call_fail(call, HEDDLE_INVALID_ARGUMENT,
                            "'Shift' must be as long as the last axis of 'X'");
  heddle_call_set_output(call, "Y", 0, x.dtype, x.rank, x.dims);
  return 0;
}

static heddle_error* add_scale_shift(void) {
  static const heddle_dtype kFloat[] = {HEDDLE_FLOAT32};
  static const char* const kNames[] = {"com.acme.ScaleShift"}; /* of ONNX: domain and type */
  static const heddle_slot kInputs[] = {{.name = "X", .dtypes = kFloat, .num_dtypes = 1},
                                        {.name = "Shift", .same_as = "X"}};
  static const heddle_slot kOutputs[] = {{.name = "Y"}};
  static const heddle_attribute kAttributes[] = {
      {.name = "factor", .type = HEDDLE_ATTRIBUTE_FLOAT, .f = 1}};
  const heddle_operator op = {.size = sizeof op,
                              .name = "acme_scale_shift",
                              .doc = "y = x * factor + shift",
                              .names_in_files = kNames,
                              .num_names_in_files = 1,
                              .inputs = kInputs,
                              .num_inputs = 2,
                              .outputs = kOutputs,
                              .num_outputs = 1,
                              .attributes = kAttributes,
                              .num_attributes = 1,
                              .shapes = shapes,
                              .kernel = scale_shift};
  return heddle_operator_add(&op);
}

/* Another kernel of the operator, for one executor: zeros. */
static int zeros(heddle_call* call, void* argument) {
  heddle_tensor* y = heddle_call_output(call, "Y", 0);
  (void)argument;
  if (!y) return 1;
  for (int64_t i = 0; i < heddle_tensor_numel(y); ++i) ((float*)heddle_tensor_data(y))[i] = 0;
  return 0;
}

static int create_zeros(heddle_call* node, heddle_kernel* kernel, void* argument) {
  (void)node;
  (void)argument;
  kernel->run = zeros;
  return 0;
}

static heddle_error* run(const char* path, const heddle_kernel_creator* creator) {
  float values[] = {1, 2, 3, 4, 5, 6};
  const int64_t dims[] = {2, 3};
  const char* const names[] = {"x"};
  heddle_executor_options options = {.size = sizeof options, .kernel_creator = creator};
  heddle_executor* executor = NULL;
  heddle_model* model = NULL;
  heddle_tensor *x = NULL, *y = NULL;
  heddle_error* error = heddle_executor_new(&options, &executor);
  if (!error) error = heddle_model_load(executor, path, NULL, NULL, &model);
  if (!error) error = heddle_tensor_wrap(HEDDLE_FLOAT32, 2, dims, values, NULL, NULL, &x);
  if (!error)
    error = heddle_model_run(model, NULL, names, (const heddle_tensor* const*)&x, 1, &y, 1);
  for (int64_t i = 0; !error && i < heddle_tensor_numel(y); ++i)
    printf("%s%g", i > 0 ? " " : "", ((const float*)heddle_tensor_const_data(y))[i]);
  if (!error) printf("\n");
  heddle_tensor_free(y);
  heddle_tensor_free(x);
  heddle_model_free(model);
  heddle_executor_free(executor);
  return error;
}

int main(int argc, char** argv) {
  const heddle_kernel_creator creator = {create_zeros, NULL};
  heddle_error* error = NULL;
  if (argc != 2) {
    fprintf(stderr, "usage: own_operator_c scale.onnx\n");
    return 2;
  }
  error = add_scale_shift();
  if (!error) error = run(argv[1], NULL);
  if (!error) error = run(argv[1], &creator);
  if (!error) return 0;
  fprintf(stderr, "%s\n", heddle_error_text(error));
  heddle_error_free(error);
  return 1;
}
