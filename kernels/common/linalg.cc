#include "kernels/common/linalg.h"

namespace heddle {

Status CheckMatrix(const ShapeContext& ctx, Key key, bool square) {
  const Shape& s = ctx.InShape(key);
  if (!s.known_rank()) return Status::Ok();
  if (s.rank() < 2)
    return InvalidArgument(key.name, " must have at least two axes, not ", s.ToString());
  if (square && s.dim(-1) >= 0 && s.dim(-2) >= 0 && s.dim(-1) != s.dim(-2))
    return InvalidArgument(key.name, " must hold square matrices, not ", s.ToString());
  return Status::Ok();
}

Shape LeadingAxes(const Shape& s, int trailing) {
  const int keep = std::max(0, s.rank() - trailing);
  return Shape(s.dims().first(static_cast<size_t>(keep)));
}

namespace {
// Matrix number in a batch of shape `own` for matrix `at` of the broadcast batch.
int64_t Locate(const Shape& batch, const Shape& own, int64_t at) {
  int64_t index = 0, stride = 1;
  for (int i = batch.rank() - 1, k = own.rank() - 1; i >= 0; --i, --k) {
    const int64_t pos = at % batch[i];
    at /= batch[i];
    if (k < 0) continue;
    index += own[k] == 1 ? 0 : pos * stride;
    stride *= own[k];
  }
  return index;
}
}  // namespace

Result<BatchPairs> PairBatches(const Shape& a, const Shape& b) {
  HEDDLE_ASSIGN_OR_RETURN(const Shape batch, BroadcastShape(a, b, -1));
  BatchPairs pairs;
  pairs.batch = batch;
  const int64_t count = batch.numel();
  pairs.a.resize(static_cast<size_t>(count));
  pairs.b.resize(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    pairs.a[static_cast<size_t>(i)] = Locate(batch, a, i);
    pairs.b[static_cast<size_t>(i)] = Locate(batch, b, i);
  }
  return pairs;
}

Status SquareToSame(ShapeContext& ctx) {
  const Value* v = nullptr;
  for (uint32_t s : ctx.op().in)
    if (v == nullptr && s != kNoSlot) v = ctx.frame()[s];
  if (v != nullptr && v->is_tensor()) {
    const Shape& s = v->tensor().shape();
    if (s.known_rank() && (s.rank() < 2 || (s.is_static() && s.dim(-1) != s.dim(-2))))
      return InvalidArgument("expects square matrices, not ", s.ToString());
  }
  return SameShape(ctx);
}

}  // namespace heddle
