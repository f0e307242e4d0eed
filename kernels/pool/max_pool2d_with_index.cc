#include "kernels/pool/pool.h"

HEDDLE_OP(max_pool2d_with_index) {
  op.Doc("2-D max pooling; Mask holds where in its plane each maximum was");
  DefineMaxPoolWithIndex(op, 2);
}
HEDDLE_OP(max_pool2d_with_index_grad) { DefineMaxPoolWithIndexGrad(op, 2); }
