#include "kernels/pool/pool.h"

HEDDLE_OP(pool2d) {
  op.Doc("2-D max or average pooling");
  DefinePool(op, 2);
}
HEDDLE_OP(pool2d_grad) { DefinePoolGrad(op, 2); }
HEDDLE_OP(pool2d_double_grad) { DefinePoolDoubleGrad(op, 2); }
