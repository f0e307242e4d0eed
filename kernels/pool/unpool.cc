#include "kernels/pool/pool.h"

HEDDLE_OP(unpool) {
  op.Doc("puts each element where Indices says in a larger plane of zeros");
  DefineUnpool(op, 2);
}
HEDDLE_OP(unpool_grad) { DefineUnpoolGrad(op, 2); }
