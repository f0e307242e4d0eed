#include "kernels/rnn/recurrent_packed.h"

namespace heddle {
namespace {

Status NetworkShape(ShapeContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const RecurrentKind kind, RecurrentKindOf(ctx));
  return RecurrentShape(ctx, kind, false);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(recurrent_network) {
  op.Doc(
      "a plain recurrent network, a GRU (gates z, r, h; the reset before or after the recurrent "
      "product) or an LSTM (gates i, o, f, c; peepholes, coupled gates); any activations");
  DeclareRecurrent(op, RecurrentKind::kLstm);
  op.Attr("cell", "lstm").Attr("layout", 0).Attr("linear_before_reset", 0).InferShape(NetworkShape);
  op.Prepare(PrepareRecurrent).Kernels<RecurrentNetwork, float, double>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
