#include "kernels/base/broadcast.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "core/interrupts.h"
#include "kernels/base/widen.h"

namespace heddle {
namespace {

constexpr int64_t kWatchedRow = 1 << 17;  // longer ones are cut, with looks for interrupts

constexpr int64_t kNarrow = 32;  // below this many columns a row is not worth a call
constexpr int64_t kTileBytes = 2048;

const std::byte* At(const void* p, int64_t i, uint32_t size) {
  return static_cast<const std::byte*>(p) + i * size;
}
std::byte* At(void* p, int64_t i, uint32_t size) { return static_cast<std::byte*>(p) + i * size; }

// A row whose repeated operand has no loop of its own: its value is written out once for the loop
// of two vectors.
void RunRepeated(const BinaryLoops& loops, bool repeat_y, const void* x, const void* y, void* out,
                 int64_t n, const void* arg) {
  alignas(64) std::byte tile[kTileBytes];
  const int64_t most = std::min<int64_t>(kTileBytes / loops.in_size, n);
  for (int64_t i = 0; i < most; ++i)
    std::memcpy(At(tile, i, loops.in_size), repeat_y ? y : x, loops.in_size);
  for (int64_t at = 0; at < n; at += most) {
    const void* from = At(repeat_y ? x : y, at, loops.in_size);
    loops.fn[0](repeat_y ? from : tile, repeat_y ? tile : from, At(out, at, loops.out_size),
                std::min(most, n - at), arg);
  }
}

// A row of a 16-bit type, in chunks that the wide loops compute. Results of another type than the
// operands' are not converted.
void RunWide(const BinaryLoops& loops, InnerKind kind, const void* x, const void* y, void* out,
             int64_t n, const void* arg) {
  alignas(64) float wide[3][kWidenChunk];
  const WidenFn widen = Widening(loops.stored, DType::kF32);
  const bool narrow = loops.out_size == loops.in_size;
  const bool x_moves = kind != InnerKind::kScalarVector, y_moves = kind != InnerKind::kVectorScalar;
  for (int64_t at = 0; at < n; at += kWidenChunk) {
    const int64_t count = std::min(kWidenChunk, n - at);
    if (x_moves || at == 0)
      widen(At(x, x_moves ? at : 0, loops.in_size), wide[0], x_moves ? count : 1);
    if (y_moves || at == 0)
      widen(At(y, y_moves ? at : 0, loops.in_size), wide[1], y_moves ? count : 1);
    void* to = At(out, at, loops.out_size);
    loops.wide->Run(kind, wide[0], wide[1], narrow ? wide[2] : to, count, arg);
    if (narrow) Narrowing(DType::kF32, loops.stored)(wide[2], to, count);
  }
}

// [rows, narrow] with one operand repeated per row: that operand is copied side by side into a
// small buffer, so that one call of the inner loop covers many rows.
void RunNarrowRows(const BroadcastPlan& plan, const BinaryLoops& loops, const void* x,
                   const void* y, void* out, const void* arg, int64_t begin, int64_t end) {
  alignas(64) std::byte tile[kTileBytes];
  const bool repeat_y = plan.y_strides[0] == 0;
  const uint32_t row_bytes = static_cast<uint32_t>(plan.cols) * loops.in_size;
  const int64_t tile_rows = std::min<int64_t>(kTileBytes / row_bytes, end - begin);
  for (int64_t i = 0; i < tile_rows; ++i)
    std::memcpy(tile + i * row_bytes, repeat_y ? y : x, row_bytes);
  for (int64_t r = begin; r < end; r += tile_rows) {
    const int64_t n = std::min(tile_rows, end - r) * plan.cols, at = r * plan.cols;
    void* o = At(out, at, loops.out_size);
    if (repeat_y)
      loops.Run(InnerKind::kVectorVector, At(x, at, loops.in_size), tile, o, n, arg);
    else
      loops.Run(InnerKind::kVectorVector, tile, At(y, at, loops.in_size), o, n, arg);
  }
}

// Merges dimensions from the last to the first; a dimension joins the one after it when both
// operands advance or stand still alike.
void Collapse(const Shape& x, const Shape& y, BroadcastPlan* plan) {
  int64_t dims[Shape::kMaxRank];
  bool x_moves[Shape::kMaxRank], y_moves[Shape::kMaxRank];
  int n = 0;
  for (int i = 0; i < x.rank(); ++i) {
    const int64_t d = x[i] == 1 ? y[i] : x[i];
    if (d == 1) continue;
    const bool xm = x[i] != 1, ym = y[i] != 1;
    if (n > 0 && x_moves[n - 1] == xm && y_moves[n - 1] == ym) {
      dims[n - 1] *= d;
      continue;
    }
    dims[n] = d;
    x_moves[n] = xm;
    y_moves[n] = ym;
    ++n;
  }
  if (n == 0) {
    dims[0] = 1;
    x_moves[0] = y_moves[0] = true;
    n = 1;
  }
  int64_t xs = 1, ys = 1, numel = 1;
  for (int i = n - 1; i >= 0; --i) {
    plan->dims[i] = dims[i];
    plan->x_strides[i] = x_moves[i] ? xs : 0;
    plan->y_strides[i] = y_moves[i] ? ys : 0;
    if (x_moves[i]) xs *= dims[i];
    if (y_moves[i]) ys *= dims[i];
    numel *= dims[i];
  }
  plan->rank = n;
  plan->numel = numel;
  plan->cols = dims[n - 1];
  plan->rows = plan->cols == 0 ? 0 : numel / plan->cols;
  plan->inner = !x_moves[n - 1]   ? InnerKind::kScalarVector
                : !y_moves[n - 1] ? InnerKind::kVectorScalar
                                  : InnerKind::kVectorVector;
}

}  // namespace

void BinaryLoops::RunIndirect(InnerKind kind, const void* x, const void* y, void* out, int64_t n,
                              const void* arg) const {
  if (wide != nullptr)
    RunWide(*this, kind, x, y, out, n, arg);
  else
    RunRepeated(*this, kind == InnerKind::kVectorScalar, x, y, out, n, arg);
}

bool AlignShapes(const Shape& x, const Shape& y, int64_t axis, Shape* x_out, Shape* y_out) {
  const bool x_larger = x.rank() >= y.rank();
  const Shape& large = x_larger ? x : y;
  const Shape& small = x_larger ? y : x;
  int rank = small.rank();
  int64_t start = large.rank() - rank;
  if (axis >= 0) {
    start = axis;
    while (rank > 0 && start + rank > large.rank() && small[rank - 1] == 1) --rank;
  }
  if (start < 0 || start + rank > large.rank()) return false;
  Shape padded = large;
  for (int i = 0; i < large.rank(); ++i)
    padded[i] = i >= start && i < start + rank ? small[static_cast<int>(i - start)] : 1;
  *x_out = x_larger ? large : padded;
  *y_out = x_larger ? padded : large;
  return true;
}

Result<BroadcastPlan> MakeBroadcastPlan(const Shape& x, const Shape& y, int64_t axis) {
  BroadcastPlan plan;
  if (x == y) {
    plan.numel = plan.cols = plan.dims[0] = x.numel();
    plan.rows = plan.numel > 0 ? 1 : 0;
    plan.x_strides[0] = plan.y_strides[0] = 1;
    return plan;
  }
  Shape a, b;
  bool fits = AlignShapes(x, y, axis, &a, &b);
  for (int i = 0; fits && i < a.rank(); ++i) fits = a[i] == b[i] || a[i] == 1 || b[i] == 1;
  if (!fits)
    return InvalidArgument("shapes ", x.ToString(), " and ", y.ToString(),
                           " cannot be broadcast together with axis ", axis);
  Collapse(a, b, &plan);
  return plan;
}

void ForEachRow(const BroadcastPlan& plan, int64_t begin, int64_t end,
                FunctionRef<void(int64_t, int64_t, int64_t)> fn) {
  if (begin >= end) return;
  const int outer = plan.rank - 1;
  int64_t index[Shape::kMaxRank] = {};
  int64_t x = 0, y = 0;
  for (int64_t rest = begin, i = outer - 1; i >= 0; --i) {
    index[i] = rest % plan.dims[i];
    rest /= plan.dims[i];
    x += index[i] * plan.x_strides[i];
    y += index[i] * plan.y_strides[i];
  }
  for (int64_t r = begin;;) {
    fn(x, y, r * plan.cols);
    if (++r == end) return;
    for (int i = outer - 1; i >= 0; --i) {
      x += plan.x_strides[i];
      y += plan.y_strides[i];
      if (++index[i] < plan.dims[i]) break;
      x -= plan.x_strides[i] * plan.dims[i];
      y -= plan.y_strides[i] * plan.dims[i];
      index[i] = 0;
    }
  }
}

void ParallelRows(const KernelContext& ctx, const BroadcastPlan& plan, int64_t grain,
                  FunctionRef<void(int64_t, int64_t, int64_t, int64_t)> fn) {
  if (plan.numel == 0) return;
  if (plan.rank == 1) {
    ctx.ParallelFor(plan.cols, grain, [&](int64_t b, int64_t e) {
      fn(plan.x_strides[0] * b, plan.y_strides[0] * b, b, e - b);
    });
    return;
  }
  if (plan.cols > kWatchedRow) {
    const int64_t x_step = plan.x_strides[plan.rank - 1], y_step = plan.y_strides[plan.rank - 1];
    ctx.ParallelFor(plan.rows, 1, [&](int64_t b, int64_t e) {
      ForEachRow(plan, b, e, [&](int64_t x, int64_t y, int64_t out) {
        for (const auto [from, to] : Stretches(plan.cols, kWatchedRow))
          fn(x + from * x_step, y + from * y_step, out + from, to - from);
      });
    });
    return;
  }
  ctx.ParallelFor(plan.rows, std::max<int64_t>(1, grain / plan.cols), [&](int64_t b, int64_t e) {
    ForEachRow(plan, b, e, [&](int64_t x, int64_t y, int64_t out) { fn(x, y, out, plan.cols); });
  });
}

void RunBinary(const KernelContext& ctx, const BroadcastPlan& plan, const BinaryLoops& loops,
               const void* x, const void* y, void* out, const void* arg) {
  if (plan.rank == 1 && plan.numel <= loops.grain) {
    if (plan.numel > 0) loops.Run(plan.inner, x, y, out, plan.numel, arg);
    return;
  }
  if (plan.rank == 2 && plan.cols < kNarrow && plan.inner == InnerKind::kVectorVector) {
    ctx.ParallelFor(
        plan.rows, std::max<int64_t>(1, loops.grain / plan.cols),
        [&](int64_t b, int64_t e) { RunNarrowRows(plan, loops, x, y, out, arg, b, e); });
    return;
  }
  ParallelRows(ctx, plan, loops.grain, [&](int64_t xo, int64_t yo, int64_t oo, int64_t n) {
    loops.Run(plan.inner, At(x, xo, loops.in_size), At(y, yo, loops.in_size),
              At(out, oo, loops.out_size), n, arg);
  });
}

}  // namespace heddle
