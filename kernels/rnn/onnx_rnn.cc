#include "kernels/rnn/recurrent_packed.h"

HEDDLE_OP(onnx_rnn) { DefineRecurrent<RecurrentKind::kRnn>(op, "plain recurrent network of ONNX"); }
