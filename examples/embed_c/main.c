/* Asks a model for the digit in a drawing, in C. */
#include <heddle.h>
#include <stdio.h>

static const char kDrawing[] =
    "  ****  "
    "     ** "
    "    **  "
    "   ***  "
    "     ** "
    "     ** "
    " *  **  "
    "  ***   ";

static heddle_error* Recognise(heddle_model* model, int* digit, float* probability) {
  const int64_t dims[] = {1, 1, 8, 8};
  const char* const names[] = {"x"};
  const heddle_tensor* inputs[1];
  heddle_tensor* image = NULL;
  heddle_tensor* output = NULL;
  heddle_error* error = heddle_tensor_new(HEDDLE_FLOAT32, 4, dims, &image);
  if (!error) {
    float* pixels = heddle_tensor_data(image);
    int i;
    for (i = 0; i < 64; ++i) pixels[i] = kDrawing[i] == '*' ? 16.0f : 0.0f;
    inputs[0] = image;
    error = heddle_model_run(model, NULL, names, inputs, 1, &output, 1);
  }
  if (!error) {
    const float* p = heddle_tensor_const_data(output);
    int64_t i;
    *digit = 0;
    for (i = 1; i < heddle_tensor_numel(output); ++i)
      if (p[i] > p[*digit]) *digit = (int)i;
    *probability = p[*digit];
  }
  heddle_tensor_free(image);
  heddle_tensor_free(output);
  return error;
}

int main(int argc, char** argv) {
  heddle_executor* executor = NULL;
  heddle_model* model = NULL;
  int digit = -1;
  float probability = 0;
  heddle_error* error = heddle_executor_new(NULL, &executor);
  if (!error)
    error = heddle_model_load(executor, argc > 1 ? argv[1] : "examples/digits", NULL, NULL, &model);
  if (!error) error = Recognise(model, &digit, &probability);
  if (error)
    fprintf(stderr, "%s\n", heddle_error_text(error));
  else
    printf("This is a %d (%g)\n", digit, probability);
  heddle_error_free(error);
  heddle_model_free(model);
  heddle_executor_free(executor);
  return digit == 3 ? 0 : 1;
}
