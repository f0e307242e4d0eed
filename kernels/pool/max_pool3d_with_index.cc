#include "kernels/pool/pool.h"

HEDDLE_OP(max_pool3d_with_index) {
  op.Doc("3-D max pooling; Mask holds where in its plane each maximum was");
  DefineMaxPoolWithIndex(op, 3);
}
HEDDLE_OP(max_pool3d_with_index_grad) { DefineMaxPoolWithIndexGrad(op, 3); }
