#include "kernels/conv_ops/conv_ops.h"

HEDDLE_OP(conv3d_transpose) {
  op.Doc("3-D transposed convolution: the gradient of a convolution");
  DefineConvTranspose(op, 3);
}
HEDDLE_OP(conv3d_transpose_grad) { DefineConvTransposeGrad(op, 3); }
