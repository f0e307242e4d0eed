// Scaled dot-product attention with ONNX's masks, caches and head groups.
//
// 16-bit operands are computed in float and rounded where the operator's text has a tensor.
#include <cmath>
#include <limits>
#include <vector>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/call_heap.h"
#include "kernels/base/index_args.h"
#include "kernels/gemm/gemm.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

// The layout of the heads of an operand: [batch, heads, length, size], or [batch, length, heads *
// size].
struct Heads {
  int64_t batch = 0, heads = 0, length = 0, size = 0;
  bool packed = false;

  int64_t At(int64_t b, int64_t h, int64_t i) const {
    return packed ? ((b * length + i) * heads + h) * size : ((b * heads + h) * length + i) * size;
  }
};

Result<Heads> HeadsOf(const Shape& s, int64_t count, Key key, Key attribute) {
  if (s.rank() == 4) {
    if (count != 0 && count != s[1])
      return InvalidArgument(attribute.name, " is ", count, ", but ", key.name, " has shape ",
                             s.ToString());
    return Heads{s[0], s[1], s[2], s[3], false};
  }
  if (s.rank() != 3 || count < 1 || s[2] % count != 0)
    return InvalidArgument(key.name, " has shape ", s.ToString(), " and ", attribute.name, " is ",
                           count,
                           ", expected rank 4, or rank 3 and a divisor of the last dimension");
  return Heads{s[0], count, s[1], s[2] / count, true};
}

struct AttentionPlan {
  Heads q, k, v;
  int64_t past = 0, total = 0;
};

template <typename Context>
Result<AttentionPlan> AttentionPlanOf(const Context& ctx) {
  AttentionPlan p;
  const int64_t kv_heads = ctx.Int("kv_num_heads");
  HEDDLE_ASSIGN_OR_RETURN(p.q,
                          HeadsOf(ShapeIn(ctx, "Q"), ctx.Int("q_num_heads"), "Q", "q_num_heads"));
  HEDDLE_ASSIGN_OR_RETURN(p.k, HeadsOf(ShapeIn(ctx, "K"), kv_heads, "K", "kv_num_heads"));
  HEDDLE_ASSIGN_OR_RETURN(p.v, HeadsOf(ShapeIn(ctx, "V"), kv_heads, "V", "kv_num_heads"));
  if (p.k.batch != p.q.batch || p.v.batch != p.q.batch || p.k.heads != p.v.heads ||
      p.k.length != p.v.length || p.k.size != p.q.size || p.k.heads == 0 ||
      p.q.heads % p.k.heads != 0)
    return InvalidArgument("Q ", ShapeIn(ctx, "Q").ToString(), ", K ", ShapeIn(ctx, "K").ToString(),
                           " and V ", ShapeIn(ctx, "V").ToString(), " do not fit each other");
  if (Has(ctx, "past_key") != Has(ctx, "past_value"))
    return InvalidArgument("past_key and past_value are given together or not at all");
  if (Has(ctx, "past_key")) {
    const Shape &key = ShapeIn(ctx, "past_key"), &value = ShapeIn(ctx, "past_value");
    const bool good = key.rank() == 4 && key[0] == p.q.batch && key[1] == p.k.heads &&
                      key[3] == p.k.size && value.rank() == 4 && value[0] == p.q.batch &&
                      value[1] == p.v.heads && value[3] == p.v.size && key[2] == value[2];
    if (!good)
      return InvalidArgument("past_key ", key.ToString(), " and past_value ", value.ToString(),
                             " do not fit K and V");
    p.past = key[2];
  }
  p.total = p.past + p.k.length;
  if (Has(ctx, "nonpad_kv_seqlen") && ShapeIn(ctx, "nonpad_kv_seqlen").numel() != p.q.batch)
    return InvalidArgument("nonpad_kv_seqlen has shape ",
                           ShapeIn(ctx, "nonpad_kv_seqlen").ToString(), ", expected ", p.q.batch,
                           " elements");
  if (Has(ctx, "attn_mask")) {
    const Shape& mask = ShapeIn(ctx, "attn_mask");
    const Shape full{p.q.batch, p.q.heads, p.q.length, p.total};
    bool good = mask.rank() <= 4;
    for (int i = 1; good && i <= mask.rank(); ++i)
      good =
          mask.dim(-i) == 1 || mask.dim(-i) == full.dim(-i) || (i == 1 && mask.dim(-1) <= p.total);
    if (!good)
      return InvalidArgument("attn_mask ", mask.ToString(), " does not broadcast to ",
                             full.ToString());
  }
  return p;
}

Status GroupedQueryAttentionShape(ShapeContext& ctx) {
  if (!AllStatic(ctx, {"Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen"}))
    return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const AttentionPlan p, AttentionPlanOf(ctx));
  if (ctx.InDType("K") != ctx.InDType("Q"))
    return InvalidArgument("K is ", Name(ctx.InDType("K")), ", Q ", Name(ctx.InDType("Q")));
  const DType dtype = ctx.InDType("Q");
  ctx.SetOut("Y",
             p.q.packed ? Shape{p.q.batch, p.q.length, p.q.heads * p.v.size}
                        : Shape{p.q.batch, p.q.heads, p.q.length, p.v.size},
             dtype);
  if (ctx.HasOut("present_key"))
    ctx.SetOut("present_key", {p.q.batch, p.k.heads, p.total, p.k.size}, dtype);
  if (ctx.HasOut("present_value"))
    ctx.SetOut("present_value", {p.q.batch, p.v.heads, p.total, p.v.size}, ctx.InDType("V"));
  if (ctx.HasOut("qk_matmul_output"))
    ctx.SetOut("qk_matmul_output", {p.q.batch, p.q.heads, p.q.length, p.total}, dtype);
  return Status::Ok();
}

// A tensor's elements in another type.
template <typename C>
std::pmr::vector<C> As(const KernelContext& ctx, const Tensor& t, CallHeap* heap) {
  std::pmr::vector<C> values(static_cast<size_t>(t.numel()), heap);
  ConvertElements(ctx, t.raw(), t.dtype(), values.data(), kDTypeOf<C>, t.numel());
  return values;
}

template <typename C>
using Rounder = C (*)(C);
template <typename C, typename T>
C RoundedTo(C x) {
  if constexpr (std::is_same_v<T, C>)
    return x;
  else
    return static_cast<C>(static_cast<ComputeType<T>>(T(static_cast<ComputeType<T>>(x))));
}
// The rounding of softmax: to the type with ONNX's number `number`, or to T for 0.
template <typename C, typename T>
Result<Rounder<C>> RounderOf(int64_t number) {
  switch (number) {
    case 0:
      return Rounder<C>{&RoundedTo<C, T>};
    case 1:
    case 11:
      return Rounder<C>{&RoundedTo<C, C>};
    case 10:
      return Rounder<C>{&RoundedTo<C, float16>};
    case 16:
      return Rounder<C>{&RoundedTo<C, bfloat16>};
    default:
      return InvalidArgument("softmax_precision is ", number, ", expected 1, 10, 11 or 16");
  }
}

template <typename T>
class AttentionRun {
  using C = ComputeType<T>;
  static constexpr C kOff = -std::numeric_limits<C>::infinity();

 public:
  AttentionRun(KernelContext& ctx, const AttentionPlan& p, Rounder<C> softmax)
      : ctx_(ctx), p_(p), softmax_(softmax), heap_(ctx) {}

  Status Run() {
    HEDDLE_RETURN_IF_ERROR(Prepare());
    const int64_t heads = p_.q.batch * p_.q.heads;
    const int64_t work = 1 + p_.q.length * p_.total * (p_.q.size + p_.v.size);
    ctx_.ParallelFor(heads, 1 + 65536 / work, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) Head(i / p_.q.heads, i % p_.q.heads);
    });
    return Status::Ok();
  }

 private:
  static C Round(C x) { return RoundedTo<C, T>(x); }

  Status Prepare() {
    q_ = As<C>(ctx_, ctx_.In("Q"), &heap_);
    key_ = Joined("K", "past_key", "present_key", p_.k);
    value_ = Joined("V", "past_value", "present_value", p_.v);
    const double given = ctx_.Float("scale");
    const C scale = Round(static_cast<C>(
        std::sqrt(given != 0 ? given : 1 / std::sqrt(static_cast<double>(p_.q.size)))));
    for (C& x : q_) x = Round(x * scale);
    for (C& x : key_) x = Round(x * scale);
    if (const Tensor* mask = ctx_.InOpt("attn_mask")) {
      mask_ = As<C>(ctx_, *mask, &heap_);
      if (mask->dtype() == DType::kBool)
        for (C& x : mask_) x = x != 0 ? C(0) : kOff;
      Shape shape = mask->shape();
      while (shape.rank() < 4) shape.insert(0, 1);
      mask_length_ = shape[3];
      mask_strides_ = BroadcastStrides(shape, {p_.q.batch, p_.q.heads, p_.q.length, shape[3]});
      // One column for all keys is no short mask.
      if (mask_length_ == 1 && p_.total != 1) one_column_ = true;
    }
    if (const Tensor* lengths = ctx_.InOpt("nonpad_kv_seqlen")) {
      HEDDLE_RETURN_IF_ERROR(CheckIntDType(lengths->dtype(), "nonpad_kv_seqlen"));
      if (p_.past > 0) return InvalidArgument("nonpad_kv_seqlen and past_key exclude each other");
      lengths_ = lengths;
    }
    return Status::Ok();
  }

  // The keys or values of before and the new ones, [batch, heads, total, size].
  std::pmr::vector<C> Joined(Key fresh, Key past, Key present, const Heads& h) {
    CallHeap own(ctx_);
    const std::pmr::vector<C> now = As<C>(ctx_, ctx_.In(fresh), &own);
    std::pmr::vector<C> before(&own);
    if (const Tensor* t = ctx_.InOpt(past)) before = As<C>(ctx_, *t, &own);
    std::pmr::vector<C> all(static_cast<size_t>(h.batch * h.heads * p_.total * h.size), &heap_);
    C* to = all.data();
    for (const int64_t b : Watched(h.batch))
      for (int64_t head = 0; head < h.heads; ++head) {
        to = WatchedCopy(before.data() + (b * h.heads + head) * p_.past * h.size, p_.past * h.size,
                         to);
        for (int64_t i = 0; i < h.length; ++i)
          to = WatchedCopy(now.data() + h.At(b, head, i), h.size, to);
      }
    if (Tensor* out = ctx_.OutOpt(present))
      ConvertElements(ctx_, all.data(), kDTypeOf<C>, out->mutable_raw(), out->dtype(),
                      out->numel());
    return all;
  }

  // Sets the addends of the scores of query i: 0, the mask's values, minus infinity for keys that
  // the query does not see. False when it sees none.
  bool Bias(int64_t b, int64_t head, int64_t i, C* bias) const {
    const int64_t valid = lengths_ == nullptr ? p_.total : IntAt(*lengths_, b);
    const int64_t offset = lengths_ != nullptr ? valid - p_.q.length : p_.past;
    const int64_t left = ctx_.Int("left_window_size"), right = ctx_.Int("right_window_size");
    const bool causal = ctx_.Int("is_causal") != 0;
    const C* mask = mask_.empty() ? nullptr
                                  : mask_.data() + b * mask_strides_[0] + head * mask_strides_[1] +
                                        i * mask_strides_[2];
    bool any = false;
    for (const auto part : Stretches(p_.total))
      for (int64_t j = part.begin; j < part.end; ++j) {
        const int64_t ahead = j - (i + offset);
        C x = 0;
        if (mask != nullptr) x = one_column_ ? mask[0] : j < mask_length_ ? mask[j] : kOff;
        if ((causal && ahead > 0) || j >= valid || (left >= 0 && -ahead > left) ||
            (right >= 0 && ahead > right))
          x = kOff;
        bias[j] = x;
        any = any || x != kOff;
      }
    return any;
  }

  void Head(int64_t b, int64_t head) const {
    const int64_t n = p_.q.length, total = p_.total, group = head / (p_.q.heads / p_.k.heads);
    const auto size = static_cast<size_t>(n * total);
    CallHeap own(ctx_);
    std::pmr::vector<C> scores(size, &own), bias(static_cast<size_t>(total), &own);
    const C* keys = key_.data() + (b * p_.k.heads + group) * total * p_.k.size;
    const C* values = value_.data() + (b * p_.v.heads + group) * total * p_.v.size;
    GemmDims dims = GemmDims::Dense(n, total, p_.q.size, false, true);
    dims.lda = p_.q.packed ? p_.q.heads * p_.q.size : p_.q.size;
    if (n > 0 && total > 0 && p_.q.size > 0)
      Gemm<C>(dims, C(1), q_.data() + p_.q.At(b, head, 0), keys, C(0), scores.data());
    const double cap = ctx_.Float("softcap");
    const int64_t mode = ctx_.Int("qk_matmul_output_mode");
    Tensor* seen = ctx_.OutOpt("qk_matmul_output");
    T* shown =
        seen == nullptr ? nullptr : seen->mutable_data<T>() + (b * p_.q.heads + head) * n * total;
    for (const int64_t i : Watched(n)) {
      C* row = scores.data() + i * total;
      const auto show = [&](int64_t wanted) {
        if (shown != nullptr && mode == wanted)
          for (int64_t j = 0; j < total; ++j) shown[i * total + j] = T(row[j]);
      };
      for (int64_t j = 0; j < total; ++j) row[j] = Round(row[j]);
      show(0);
      if (cap > 0)
        for (int64_t j = 0; j < total; ++j)
          row[j] =
              Round(Round(std::tanh(Round(row[j] / static_cast<C>(cap)))) * static_cast<C>(cap));
      show(1);
      const bool any = Bias(b, head, i, bias.data());
      for (int64_t j = 0; j < total; ++j) row[j] = Round(row[j] + bias[j]);
      show(2);
      Softmax(row, any);
      show(3);
    }
    Write(b, head, scores, values);
  }

  void Softmax(C* row, bool any) const {
    const int64_t n = p_.total;
    if (!any) return WatchedFill(row, n, C(0)), void();
    C most = kOff, sum = 0;
    for (const int64_t j : Watched(n)) {
      row[j] = softmax_(row[j]);
      most = std::max(most, row[j]);
    }
    for (const auto part : Stretches(n))
      for (int64_t j = part.begin; j < part.end; ++j)
        sum += row[j] = softmax_(std::exp(softmax_(row[j] - most)));
    sum = softmax_(sum);
    for (const auto part : Stretches(n))
      for (int64_t j = part.begin; j < part.end; ++j) row[j] = Round(softmax_(row[j] / sum));
  }

  void Write(int64_t b, int64_t head, const std::pmr::vector<C>& weights, const C* values) const {
    const int64_t n = p_.q.length, size = p_.v.size;
    CallHeap own(ctx_);
    std::pmr::vector<C> sums(static_cast<size_t>(n * size), &own);
    if (n > 0 && size > 0 && p_.total > 0)
      Gemm<C>(GemmDims::Dense(n, size, p_.total), C(1), weights.data(), values, C(0), sums.data());
    const Heads out{p_.q.batch, p_.q.heads, n, size, p_.q.packed};
    T* to = ctx_.Out("Y").template mutable_data<T>();
    for (const int64_t i : Watched(n))
      for (int64_t k = 0; k < size; ++k)
        to[out.At(b, head, i) + k] = T(sums[static_cast<size_t>(i * size + k)]);
  }

  KernelContext& ctx_;
  const AttentionPlan& p_;
  const Rounder<C> softmax_;
  CallHeap heap_;
  std::pmr::vector<C> q_{&heap_}, key_{&heap_}, value_{&heap_}, mask_{&heap_};
  std::array<int64_t, Shape::kMaxRank> mask_strides_{};
  int64_t mask_length_ = 0;
  bool one_column_ = false;
  const Tensor* lengths_ = nullptr;
};

template <typename T>
struct GroupedQueryAttention {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const AttentionPlan p, AttentionPlanOf(ctx));
    if (const int64_t mode = ctx.Int("qk_matmul_output_mode"); mode < 0 || mode > 3)
      return InvalidArgument("qk_matmul_output_mode is ", mode, ", expected 0 to 3");
    HEDDLE_ASSIGN_OR_RETURN(const auto softmax,
                            (RounderOf<ComputeType<T>, T>(ctx.Int("softmax_precision"))));
    return AttentionRun<T>(ctx, p, softmax).Run();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(grouped_query_attention) {
  op.Doc("attention: heads in groups, masks, windows, caches inside and outside");
  op.Input("Q").Input("K").Input("V").Input("attn_mask", kOptional);
  op.Input("past_key", kOptional).Input("past_value", kOptional);
  op.Input("nonpad_kv_seqlen", kOptional);
  op.Output("Y").Output("present_key", kOptional).Output("present_value", kOptional);
  op.Output("qk_matmul_output", kOptional);
  op.Attr("is_causal", 0).Attr("scale", 0.0).Attr("softcap", 0.0).Attr("q_num_heads", 0);
  op.Attr("kv_num_heads", 0).Attr("softmax_precision", 0).Attr("qk_matmul_output_mode", 0);
  op.Attr("left_window_size", -1).Attr("right_window_size", -1);
  op.InferShape(GroupedQueryAttentionShape);
  op.Kernels<GroupedQueryAttention, float, double, float16, bfloat16>();
}
