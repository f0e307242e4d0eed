#include "kernels/rnn/recurrent_packed.h"

HEDDLE_OP(onnx_gru) {
  DefineRecurrent<RecurrentKind::kGru>(
      op, "GRU of ONNX: gates z, r, h; the reset before or after the recurrent product");
}
