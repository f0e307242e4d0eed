#include "kernels/pool/pool.h"

HEDDLE_OP(pool3d) {
  op.Doc("3-D max or average pooling");
  DefinePool(op, 3);
}
HEDDLE_OP(pool3d_grad) { DefinePoolGrad(op, 3); }
