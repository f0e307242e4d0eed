#include "kernels/conv_ops/conv_ops.h"

HEDDLE_OP(depthwise_conv2d) {
  op.Doc("2-D convolution with one filter per channel");
  DefineConv(op, 2);
}
HEDDLE_OP(depthwise_conv2d_grad) { DefineConvGrad(op, 2); }
HEDDLE_OP(depthwise_conv2d_grad_grad) { DefineConvDoubleGrad(op, 2); }
