#include "kernels/conv_ops/conv_ops.h"

HEDDLE_OP(conv3d) {
  op.Doc("3-D convolution of Input with Filter");
  DefineConv(op, 3);
}
HEDDLE_OP(conv3d_grad) { DefineConvGrad(op, 3); }
HEDDLE_OP(conv3d_grad_grad) { DefineConvDoubleGrad(op, 3); }
