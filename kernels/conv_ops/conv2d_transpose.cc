#include "kernels/conv_ops/conv_ops.h"

HEDDLE_OP(conv2d_transpose) {
  op.Doc("2-D transposed convolution: the gradient of a convolution");
  DefineConvTranspose(op, 2);
}
HEDDLE_OP(conv2d_transpose_grad) { DefineConvTransposeGrad(op, 2); }
HEDDLE_OP(conv2d_transpose_grad_grad) { DefineConvTransposeDoubleGrad(op, 2); }
