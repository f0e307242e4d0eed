#include <algorithm>

#include "device/cuda/grid/batched_gemm.h"
#include "device/cuda/grid/epilogue.h"
#include "device/cuda/grid/grid.h"
#include "device/cuda/grid/real.h"

namespace heddle::HEDDLE_GRID {
namespace {

bool StandsStill(const Shape& batch, const Steps& steps) {
  for (int d = 0; d < batch.rank(); ++d)
    if (batch[d] != 1 && steps.at[d] != 0) return false;
  return true;
}
// The matrices are contiguous, so that they form one taller matrix.
bool OneBehindTheOther(const Shape& batch, const Steps& steps, int64_t rows, int64_t ld) {
  int64_t step = rows * ld;
  for (int d = batch.rank() - 1; d >= 0; --d) {
    if (batch[d] != 1 && steps.at[d] != step) return false;
    step *= batch[d];
  }
  return true;
}

// Joins dimensions of the batch into fewer, larger products where the operands allow it.
void Fold(BatchedProduct* p) {
  const int64_t count = p->batch.numel();
  if (count <= 1) return;
  if (!p->a.trans && StandsStill(p->batch, p->b.steps) &&
      OneBehindTheOther(p->batch, p->a.steps, p->a.rows, p->a.ld) &&
      OneBehindTheOther(p->batch, p->c_steps, p->a.rows, p->ldc)) {
    p->a.rows *= count;
    p->batch = Shape();
  } else if (p->a.trans && !p->b.trans && StandsStill(p->batch, p->c_steps) &&
             OneBehindTheOther(p->batch, p->a.steps, p->a.rows, p->a.ld) &&
             OneBehindTheOther(p->batch, p->b.steps, p->b.rows, p->b.ld)) {
    p->a.rows *= count;
    p->b.rows *= count;
    p->batch = Shape();
  }
}

const void* Moved(const void* p, int64_t elements, DType type) {
  return static_cast<const std::byte*>(p) + elements * static_cast<int64_t>(SizeOf(type));
}
void* Moved(void* p, int64_t elements, DType type) {
  return static_cast<std::byte*>(p) + elements * static_cast<int64_t>(SizeOf(type));
}

// The dimension along which products are one call; the others are loops. The longest one along
// which the result moves; -1: none.
int AlongOf(const BatchedProduct& p) {
  int along = -1;
  for (int d = 0; d < p.batch.rank(); ++d)
    if (p.batch[d] > 1 && p.c_steps.at[d] != 0 && (along < 0 || p.batch[d] > p.batch[along]))
      along = d;
  return along;
}
RowMajorGemm GemmOf(const BatchedProduct& p, int along) {
  RowMajorGemm g;
  g.trans_a = p.a.trans, g.trans_b = p.b.trans;
  g.m = p.m(), g.n = p.n(), g.k = p.k();
  g.a = p.a.data, g.b = p.b.data, g.c = p.c;
  g.lda = std::max<int64_t>(1, p.a.ld), g.ldb = std::max<int64_t>(1, p.b.ld), g.ldc = p.ldc;
  g.alpha = g.k == 0 ? 0 : p.alpha, g.beta = p.beta;
  g.type = p.type, g.c_type = p.c_type;
  if (along >= 0) {
    g.batch = p.batch[along];
    g.a_step = p.a.steps.at[along], g.b_step = p.b.steps.at[along];
    g.c_step = p.c_steps.at[along];
  }
  return g;
}
bool WritesAgain(const BatchedProduct& p) {
  for (int d = 0; d < p.batch.rank(); ++d)
    if (p.batch[d] > 1 && p.c_steps.at[d] == 0) return true;
  return false;
}

template <typename T>
struct RoundBody {  // operands: the sums, the result
  Strides<2> strides;
  const float* sums;
  RealOut<T> to;
  float beta;
  HEDDLE_BODY void operator()(int64_t i) const {
    const auto p = strides.At(static_cast<uint32_t>(i));
    const float before = beta == 0 ? 0 : beta * to[p.at[1]];
    to[p.at[1]] = sums[p.at[0]] + before;
  }
};

template <typename T>
struct HalfEpilogueBody {
  const float* sums;
  RealIn<T> residual, bias;
  RealOut<T> out;
  int64_t columns;
  Element op;
  ElementArgs args;
  HEDDLE_BODY void operator()(int64_t i) const {
    float x = sums[i];
    if (bias.there()) x += bias[i % columns];
    if (residual.there()) x += residual[i];
    out[i] = Compute(op, x, 0, args);
  }
};

}  // namespace

Steps BatchSteps(const Shape& own, const Shape& batch, int64_t size) {
  Steps steps = Spread(own, batch, batch.rank() - own.rank());
  for (int64_t& s : steps.at) s *= size;
  return steps;
}

std::optional<RowMajorGemm> BatchedProduct::AsOne() const {
  BatchedProduct p = *this;
  Fold(&p);
  const int along = AlongOf(p);
  for (int d = 0; d < p.batch.rank(); ++d)
    if (d != along && p.batch[d] != 1) return std::nullopt;
  if (p.m() == 0 || p.n() == 0) return std::nullopt;
  return GemmOf(p, along);
}

// Sums over several products are rounded once, as on the host.
Status BatchedProduct::RunInFloat(Queue& queue) const {
  BatchedProduct p = *this;
  Shape kept;
  Steps from, to;
  int64_t size = m() * n();
  for (int d = batch.rank() - 1; d >= 0; --d) {
    p.c_steps.at[d] = batch[d] > 1 && c_steps.at[d] == 0 ? 0 : size;
    if (p.c_steps.at[d] != 0) size *= batch[d];
  }
  for (int d = 0; d < batch.rank(); ++d) {
    if (p.c_steps.at[d] == 0) continue;
    from.at[kept.rank()] = p.c_steps.at[d], to.at[kept.rank()] = c_steps.at[d];
    kept.push_back(batch[d]);
  }
  from.at[kept.rank()] = n(), to.at[kept.rank()] = ldc;
  kept.push_back(m());
  from.at[kept.rank()] = 1, to.at[kept.rank()] = 1;
  kept.push_back(n());
  Scratch scratch(queue);
  HEDDLE_RETURN_IF_ERROR(scratch.Take(size));
  p.c = scratch.data(), p.ldc = n(), p.c_type = DType::kF32, p.beta = 0;
  HEDDLE_RETURN_IF_ERROR(p.Run(queue));
  const auto strides = MakeStrides<2>(kept, {from, to});
  return VisitReal(c_type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return Each(queue, strides.numel,
                RoundBody<T>{strides, scratch.data(), {static_cast<T*>(c)}, beta});
  });
}

Status BatchedProduct::Run(Queue& queue) const {
  BatchedProduct p = *this;
  Fold(&p);
  if (p.m() == 0 || p.n() == 0 || p.batch.numel() == 0) return Status::Ok();
  if (IsHalf(p.c_type) && WritesAgain(p)) return p.RunInFloat(queue);
  const int along = AlongOf(p);
  Strides<4> rest;  // a, b, c, and whether the result was written before
  for (int d = 0; d < p.batch.rank(); ++d) {
    if (d == along) continue;
    const int64_t again = p.c_steps.at[d] == 0 && p.batch[d] > 1 ? 1 : 0;
    rest.Add(p.batch[d], {p.a.steps.at[d], p.b.steps.at[d], p.c_steps.at[d], again});
  }
  RowMajorGemm g = GemmOf(p, along);
  for (int64_t i = 0; i < rest.numel; ++i) {
    const auto at = rest.At(static_cast<uint32_t>(i));
    g.a = Moved(p.a.data, at.at[0], p.type), g.b = Moved(p.b.data, at.at[1], p.type);
    g.c = Moved(p.c, at.at[2], p.c_type);
    g.beta = at.at[3] != 0 ? 1 : beta;
    HEDDLE_RETURN_IF_ERROR(queue.Gemm(ByColumns(g)));
  }
  return Status::Ok();
}

Result<Activation> ActivationOf(const OpContext& ctx) {
  const std::string& name = ctx.Str("fuse_activation");
  const auto alpha = static_cast<float>(ctx.Float("fuse_alpha"));
  const auto beta = static_cast<float>(ctx.Float("fuse_beta"));
  const bool usual = alpha == 0 && beta == 0;
  Activation a;
  if (name.empty() || name == "identity") return a;
  a.none = false;
  if (name == "relu") {
    a.op = Element::kRelu;
  } else if (name == "relu6") {
    a.op = Element::kClip, a.args = {0, 6, 0};
  } else if (name == "leaky_relu") {
    a.op = Element::kLeakyRelu, a.args = {1, alpha, 0};
  } else if (name == "clip") {
    a.op = Element::kClip, a.args = {alpha, beta, 0};
  } else if (name == "hard_swish") {  // x min(max(alpha x + beta, 0), 1)
    const float slope = usual ? 1.0f / 6.0f : alpha, offset = usual ? 0.5f : beta;
    a.op = Element::kHardSwishDividedFirst;
    a.args = {1 / slope, 1 / slope, offset / slope};
  } else if (name == "hard_swish_divided_last") {
    a.op = Element::kHardSwish, a.args = {6, 6, 3};
  } else if (name == "hard_sigmoid") {
    a.op = Element::kHardSigmoid, a.args = {usual ? 0.2f : alpha, usual ? 0.5f : beta, 0};
  } else if (name == "swish") {
    a.op = Element::kSwish, a.args = {alpha == 0 ? 1.0f : alpha, 0, 0};
  } else if (name == "sigmoid") {
    a.op = Element::kSigmoid;
  } else if (name == "gelu") {
    a.op = alpha == 1 ? Element::kGeluTanh : Element::kGelu;
  } else if (name == "tanh") {
    a.op = Element::kTanh;
  } else if (name == "mish") {
    a.op = Element::kMish, a.args = {20, 0, 0};
  } else {
    return InvalidArgument("fuse_activation '", name, "' is not known");
  }
  return a;
}

Status RunEpilogue(Queue& queue, float* c, int64_t n, const float* bias, int64_t inner,
                   int64_t channels, const Activation& activation, float scale, float shift) {
  if (bias == nullptr && activation.none && scale == 1 && shift == 0) return Status::Ok();
  return Each(queue, n,
              EpilogueBody{c, bias, inner, channels, activation.op, activation.args, scale, shift});
}

Status RunEpilogue(Queue& queue, const float* sums, const Tensor* residual, const Tensor* bias,
                   int64_t columns, const Activation& activation, Tensor& out) {
  return VisitReal(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    return Each(queue, out.numel(),
                HalfEpilogueBody<T>{sums, ReadOr<T>(residual), ReadOr<T>(bias), WriteOf<T>(out),
                                    columns, activation.op, activation.args});
  });
}

}  // namespace heddle::HEDDLE_GRID
