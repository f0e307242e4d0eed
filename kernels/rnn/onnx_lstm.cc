#include "kernels/rnn/recurrent_packed.h"

HEDDLE_OP(onnx_lstm) {
  DefineRecurrent<RecurrentKind::kLstm>(
      op, "LSTM of ONNX: gates i, o, f, c; peepholes, coupled gates, any activations");
}
