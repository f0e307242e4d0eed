#include "kernels/pool/pool.h"

HEDDLE_OP(unpool3d) {
  op.Doc("puts each element where Indices says in a larger plane of zeros");
  DefineUnpool(op, 3);
}
HEDDLE_OP(unpool3d_grad) { DefineUnpoolGrad(op, 3); }
