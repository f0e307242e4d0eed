// scaled_dot_attention, an operator of heddle's own that the fusion passes create: attention over
// queries, keys and values in whatever layout the layers before give them.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/interrupts.h"
#include "core/machine.h"
#include "core/shapes.h"
#include "kernels/attention/attention.h"
#include "kernels/base/check.h"
#include "kernels/simd/microkernels.h"

namespace heddle {
namespace {

// The order of an operand's dimensions.
enum Layout : int64_t {
  kHeadsFirst = 0,  // [batch, heads, rows, depth]
  kRowsFirst = 1,   // [batch, rows, heads, depth]
  kJoined = 2,      // [batch, rows, several, heads, depth]: one of several
};

// An operand as a matrix per batch and head; steps in elements.
struct Operand {
  int64_t batch = 0, heads = 0, rows = 0, depth = 0;
  int64_t at = 0, batch_step = 0, head_step = 0, row_step = 0;
};

Result<Operand> ViewOf(const char* what, const Shape& s, int64_t layout, int64_t index) {
  if (layout < kHeadsFirst || layout > kJoined || s.rank() != (layout == kJoined ? 5 : 4))
    return InvalidArgument(what, " has shape ", s.ToString(), ", which layout ", layout,
                           " does not fit");
  Operand o;
  const int heads = layout == kHeadsFirst ? 1 : layout == kRowsFirst ? 2 : 3;
  const int rows = layout == kHeadsFirst ? 2 : 1;
  const auto step = [&](int d) { return s.Product(d + 1, s.rank()); };
  o.batch = s[0], o.heads = s[heads], o.rows = s[rows], o.depth = s.dim(-1);
  o.batch_step = step(0), o.head_step = step(heads), o.row_step = step(rows);
  if (layout == kJoined) {
    if (index < 0 || index >= s[2])
      return OutOfRange(what, " has shape ", s.ToString(), ", there is no part ", index);
    o.at = index * step(2);
  }
  return o;
}

struct Attention {
  Operand q, k, v, out;
  int64_t batch = 0, heads = 0;
  int64_t mask_batch = 0, mask_head = 0, mask_row = 0, mask_column = 0;  // steps
};

int64_t LayoutOf(const OpContext& ctx, size_t operand) {
  return ctx.IntList("layouts").at(operand);
}

// Shapes broadcast as in the products that this operator replaces.
Result<int64_t> Common(const char* what, std::initializer_list<int64_t> sizes) {
  int64_t all = 1;
  for (int64_t n : sizes) {
    if (n != 1 && all != 1 && n != all)
      return InvalidArgument("Q, K, V and Mask have ", what, " of different sizes: ", all, " and ",
                             n);
    if (n != 1) all = n;
  }
  return all;
}

Status SetMask(const Shape& mask, Attention* a) {
  const std::array<int64_t, 4> full = {a->batch, a->heads, a->q.rows, a->k.rows};
  const std::array<int64_t*, 4> steps = {&a->mask_batch, &a->mask_head, &a->mask_row,
                                         &a->mask_column};
  bool fits = mask.rank() <= 4;
  for (int d = 0; fits && d < mask.rank(); ++d) {
    const size_t at = static_cast<size_t>(4 - mask.rank() + d);
    fits = mask[d] == 1 || mask[d] == full[at];
    if (mask[d] != 1) *steps[at] = mask.Product(d + 1, mask.rank());
  }
  if (fits) return Status::Ok();
  return InvalidArgument("Mask has shape ", mask.ToString(), ", the scores' is [", full[0], ", ",
                         full[1], ", ", full[2], ", ", full[3], "]");
}

template <typename Context>
Result<Attention> Resolve(const Context& ctx) {
  Attention a;
  const Ints& part = ctx.IntList("parts");
  const Shape &q = ctx.InShape("Q"), &k = ctx.InShape("K"), &v = ctx.InShape("V");
  HEDDLE_ASSIGN_OR_RETURN(a.q, ViewOf("Q", q, LayoutOf(ctx, 0), part.at(0)));
  HEDDLE_ASSIGN_OR_RETURN(a.k, ViewOf("K", k, LayoutOf(ctx, 1), part.at(1)));
  HEDDLE_ASSIGN_OR_RETURN(a.v, ViewOf("V", v, LayoutOf(ctx, 2), part.at(2)));
  if (a.q.depth != a.k.depth || a.k.rows != a.v.rows)
    return InvalidArgument("Q ", q.ToString(), ", K ", k.ToString(), " and V ", v.ToString(),
                           " cannot be multiplied");
  const Shape mask = ctx.HasIn("Mask") ? ctx.InShape("Mask") : Shape();
  const auto of_mask = [&](int d) { return mask.rank() < d ? int64_t{1} : mask.dim(-d); };
  HEDDLE_ASSIGN_OR_RETURN(a.batch,
                          Common("batches", {a.q.batch, a.k.batch, a.v.batch, of_mask(4)}));
  HEDDLE_ASSIGN_OR_RETURN(a.heads, Common("heads", {a.q.heads, a.k.heads, a.v.heads, of_mask(3)}));
  HEDDLE_RETURN_IF_ERROR(SetMask(mask, &a));
  return a;
}

Shape OutShape(const Attention& a, int64_t layout) {
  if (layout == kHeadsFirst) return {a.batch, a.heads, a.q.rows, a.v.depth};
  return {a.batch, a.q.rows, a.heads, a.v.depth};
}

bool ShapesAreKnown(const ShapeContext& ctx) {
  return ctx.InShape("Q").is_static() && ctx.InShape("K").is_static() &&
         ctx.InShape("V").is_static() && (!ctx.HasIn("Mask") || ctx.InShape("Mask").is_static());
}

Status AttentionShape(ShapeContext& ctx) {
  if (ctx.IntList("layouts").size() != 4 || ctx.IntList("parts").size() != 3)
    return InvalidArgument("'layouts' needs 4 numbers and 'parts' 3");
  if (!ShapesAreKnown(ctx)) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const Attention a, Resolve(ctx));
  ctx.SetOut("Out", OutShape(a, LayoutOf(ctx, 3)), ctx.InDType("Q"));
  return Status::Ok();
}

struct AttentionState final : KernelState {
  Attention plan;
};

Result<std::unique_ptr<KernelState>> PrepareAttention(PrepareContext& ctx) {
  auto state = std::make_unique<AttentionState>();
  HEDDLE_ASSIGN_OR_RETURN(state->plan, Resolve(ctx));
  HEDDLE_ASSIGN_OR_RETURN(state->plan.out, ViewOf("Out", ctx.OutShape("Out"), LayoutOf(ctx, 3), 0));
  state->facts().implementation = StrCat(FewQueries(state->plan.q.rows) ? "few queries" : "blocks",
                                         ", ", simd::VectorsOf(MachineOr(ctx.machine())));
  return std::unique_ptr<KernelState>(std::move(state));
}

// Factors of Q, K and their product.
struct Factors {
  float q = 1, k = 1, product = 1;
};

Factors FactorsOf(const OpContext& ctx) {
  const double q = ctx.Float("q_factor"), k = ctx.Float("k_factor");
  return {static_cast<float>(q), static_cast<float>(k),
          static_cast<float>(ctx.Float("scale") / (q * k))};
}

// One query as the operators compute it that the fusion has replaced, each factor where it was:
// where values overflow, their order decides what becomes infinite and what NaN.
void RunPlainly(const AttentionHead& h, const Factors& factors, int64_t query, float* scores) {
  const float* q = h.q + query * h.q_step;
  float most = -std::numeric_limits<float>::infinity(), sum = 0;
  for (int64_t j = 0; j < h.keys; ++j) {
    float s = 0;
    for (int64_t d = 0; d < h.depth; ++d)
      s += q[d] * factors.q * (h.k[j * h.k_step + d] * factors.k);
    s *= factors.product;
    if (h.mask != nullptr) {
      const float m = h.mask[query * h.mask_row + j * h.mask_column];
      s = !h.selects ? s + m : m == std::numeric_limits<float>::infinity() ? s : m;
    }
    scores[j] = s;
    most = std::max(most, s);
  }
  for (int64_t j = 0; j < h.keys; ++j) sum += scores[j] = std::exp(scores[j] - most);
  float* out = h.out + query * h.out_step;
  std::fill_n(out, h.value_depth, 0.f);
  for (int64_t j = 0; j < h.keys; ++j)
    for (int64_t d = 0; d < h.value_depth; ++d) out[d] += scores[j] / sum * h.v[j * h.v_step + d];
}

void MendOverflows(const AttentionHead& h, const Factors& factors, float* work) {
  auto* const is_finite = simd::BestMicrokernels()->is_finite;
  if (is_finite(h.out, h.queries, h.value_depth, h.out_step)) [[likely]]
    return;
  for (int64_t i = 0; i < h.queries; ++i)
    if (!is_finite(h.out + i * h.out_step, 1, h.value_depth, h.out_step))
      RunPlainly(h, factors, i, work);
}

// A head's queries, cut where they take long, with a look for interrupts between the parts. `head`
// is left at its last part: copies of it would wait for what has just been written.
void RunByParts(AttentionHead& head, const Factors& factors, float* work) {
  constexpr int64_t kPartWork = int64_t{1} << 26;  // multiplications
  const int64_t each = std::max<int64_t>(1, head.keys * (head.depth + head.value_depth));
  const int64_t blocks = std::max<int64_t>(1, kPartWork / each / kAttentionBlock);
  for (const auto [begin, end] : Stretches(head.queries, blocks * kAttentionBlock)) {
    if (begin > 0) {
      head.q += head.queries * head.q_step;
      head.out += head.queries * head.out_step;
      if (head.mask != nullptr) head.mask += head.queries * head.mask_row;
    }
    head.queries = end - begin;
    RunAttention(head, work);
    MendOverflows(head, factors, work);
  }
}

Status RunScaledDotAttention(KernelContext& ctx) {
  constexpr int64_t kThreadWork = 64 * 1024;  // the least multiplications that are worth a thread
  const Attention& a = ctx.State<AttentionState>().plan;
  const Tensor* mask = ctx.InOpt("Mask");
  HEDDLE_RETURN_IF_ERROR(CheckDType(DType::kF32, {&ctx.In("Q"), &ctx.In("K"), &ctx.In("V"), mask}));
  const float *q = ctx.In("Q").data<float>(), *k = ctx.In("K").data<float>(),
              *v = ctx.In("V").data<float>();
  float* out = ctx.Out("Out").mutable_data<float>();
  AttentionHead one;
  one.few = FewQueries(a.q.rows);
  one.keys = a.k.rows, one.depth = a.q.depth, one.value_depth = a.v.depth;
  one.q_step = a.q.row_step, one.k_step = a.k.row_step, one.v_step = a.v.row_step;
  one.out_step = a.out.row_step, one.mask_row = a.mask_row, one.mask_column = a.mask_column;
  one.scale = static_cast<float>(ctx.Float("scale"));
  const Factors factors = FactorsOf(ctx);
  one.selects = mask != nullptr && ctx.Bool("mask_selects");
  const auto place = [](const Operand& o, int64_t b, int64_t h) {
    return o.at + (o.batch == 1 ? 0 : b * o.batch_step) + (o.heads == 1 ? 0 : h * o.head_step);
  };
  // The queries of a head are cut when there are fewer heads than threads.
  const int64_t heads = a.batch * a.heads;
  if (heads == 0 || a.q.rows == 0) return Status::Ok();
  if (one.keys == 0) {  // an empty sum
    std::fill_n(out, ctx.Out("Out").numel(), 0.f);
    return Status::Ok();
  }
  const int64_t cuts = heads >= ctx.threads() ? 1 : std::min<int64_t>(ctx.threads(), a.q.rows);
  const int64_t length = (a.q.rows + cuts - 1) / cuts;
  const int64_t work = std::max<int64_t>(1, length * one.keys * (one.depth + one.value_depth));
  ctx.ParallelFor(heads * cuts, 1 + kThreadWork / work, [&](int64_t begin, int64_t end) {
    const Tensor space = ctx.CallScratch(
        DType::kF32, {AttentionWork(one.few, one.keys, one.depth, one.value_depth)});
    AttentionHead head = one;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t b = i / cuts / a.heads, h = i / cuts % a.heads, row = i % cuts * length;
      head.queries = std::min(length, a.q.rows - row);
      if (head.queries <= 0) continue;
      head.q = q + place(a.q, b, h) + row * a.q.row_step;
      head.k = k + place(a.k, b, h);
      head.v = v + place(a.v, b, h);
      head.out = out + place(a.out, b, h) + row * a.out.row_step;
      if (mask != nullptr)
        head.mask = mask->data<float>() + b * a.mask_batch + h * a.mask_head + row * a.mask_row;
      RunByParts(head, factors, const_cast<Tensor&>(space).mutable_data<float>());
    }
  });
  return Status::Ok();
}

double AttentionCost(const ShapeContext& ctx) {
  if (!ShapesAreKnown(ctx)) return 0;
  const Result<Attention> a = Resolve(ctx);
  if (!a.ok()) return 0;
  const auto scores = static_cast<double>(a->batch * a->heads * a->q.rows * a->k.rows);
  return 200 + scores * (1 + static_cast<double>(a->q.depth + a->v.depth) / 40);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(scaled_dot_attention) {
  op.Doc(
      "softmax(scale Q K^T + Mask) V per batch and head; with `mask_selects`, scores are kept "
      "where "
      "Mask is infinite, and are Mask elsewhere. layouts of Q, K, V and Out: 0 [batch, heads, "
      "rows, "
      "depth], 1 [batch, rows, heads, depth], 2 [batch, rows, several, heads, depth] of which "
      "`parts` names one. q_factor and k_factor are those factors of scale that belong to Q and K: "
      "a row that overflows is computed with each in its place");
  op.Input("Q").Input("K").Input("V").Input("Mask", kOptional).Output("Out");
  op.Attr("scale", 1.0)
      .Attr("q_factor", 1.0)
      .Attr("k_factor", 1.0)
      .Attr("mask_selects", false)
      .Attr("layouts", Ints{0, 0, 0, 0})
      .Attr("parts", Ints{0, 0, 0});
  op.InferShape(AttentionShape).Prepare(PrepareAttention).Cost(AttentionCost);
  op.Kernel(DType::kF32, RunScaledDotAttention);
}
