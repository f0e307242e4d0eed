#include "kernels/conv_ops/conv_ops.h"

HEDDLE_OP(conv2d) {
  op.Doc("2-D convolution of Input with Filter");
  DefineConv(op, 2);
}
HEDDLE_OP(conv2d_grad) { DefineConvGrad(op, 2); }
HEDDLE_OP(conv2d_grad_grad) { DefineConvDoubleGrad(op, 2); }
