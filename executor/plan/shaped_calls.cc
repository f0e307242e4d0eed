#include "executor/plan/shaped_calls.h"

#include <utility>

#include "core/guard.h"
#include "core/kernel_context.h"
#include "core/memory/bytes.h"
#include "core/shape_context.h"

namespace heddle {
namespace {

// Calls fn with each number of the signature (dtypes and shapes of the present inputs, and perhaps
// of the outputs), until it returns false.
template <typename Fn>
bool ForSignature(const BoundOp& op, Value* const* frame, bool with_outs, Fn&& fn) {
  const auto tell = [&](const IdList& slots) {
    for (uint32_t s : slots) {
      if (s == kNoSlot) continue;
      const Tensor& t = frame[s]->tensor();
      if (!fn(static_cast<int64_t>(t.dtype())) || !fn(static_cast<int64_t>(t.rank()))) return false;
      for (int64_t d : t.shape())
        if (!fn(d)) return false;
    }
    return true;
  };
  return tell(op.in) && (!with_outs || tell(op.out));
}

bool HasSignature(const BoundOp& op, Value* const* frame, const ShapedCall& call) {
  const std::vector<int64_t>& signature = call.signature;
  size_t at = 0;
  return ForSignature(op, frame, call.fn == nullptr,
                      [&](int64_t n) { return at < signature.size() && signature[at++] == n; }) &&
         at == signature.size();
}

std::vector<int64_t> SignatureOf(const BoundOp& op, Value* const* frame, bool with_outs) {
  std::vector<int64_t> signature;
  ForSignature(op, frame, with_outs, [&](int64_t n) {
    signature.push_back(n);
    return true;
  });
  return signature;
}

bool IsSame(const ShapeContext::OutMeta& a, const ShapeContext::OutMeta& b) {
  return a.set == b.set && !a.has_lod && !b.has_lod &&
         (!a.set || (a.dtype == b.dtype && a.shape == b.shape));
}

// Whether the shape function gives the same shapes if it sees only dtypes, shapes, and the contents
// of constants.
bool FollowFromShapes(const BoundOp& op, Value* const* frame, const std::vector<bool>* constant,
                      const std::vector<ShapeContext::OutMeta>& outs) {
  std::vector<Value> values;
  values.reserve(op.in.size() + op.out.size());
  BoundOp alone = op;
  for (uint32_t& s : alone.in) {
    if (s == kNoSlot) continue;
    const Tensor& t = frame[s]->tensor();
    Tensor seen = t;
    if (constant == nullptr || !(*constant)[s]) {
      seen = Tensor();
      seen.SetMeta(t.dtype(), t.shape());
    }
    s = static_cast<uint32_t>(values.size());
    values.emplace_back(std::move(seen));
  }
  for (uint32_t& s : alone.out) {
    if (s == kNoSlot) continue;
    s = static_cast<uint32_t>(values.size());
    values.emplace_back();
  }
  std::vector<Value*> alone_frame;
  for (Value& v : values) alone_frame.push_back(&v);
  ShapeContext ctx(alone, alone_frame.data());
  const Status status = Guard([&] { return op.def->infer_shape()(ctx); });
  if (!status.ok() || ctx.deferred()) return false;
  ctx.outs().resize(op.out.size());
  for (size_t i = 0; i < op.out.size(); ++i)
    if (!IsSame(outs[i], ctx.outs()[i])) return false;
  return true;
}

Result<std::shared_ptr<ShapedCall>> Prepared(const BoundOp& op, Value* const* frame,
                                             Services& services,
                                             const std::vector<bool>* constant) {
  auto call = std::make_shared<ShapedCall>();
  if (op.def->prepare() == nullptr) return call;
  PrepareContext ctx(op, frame, services, constant);
  auto state = op.def->prepare()(ctx);
  if (!state.ok()) return state.status();
  call->state = *std::move(state);
  return call;
}

// Empty: see ShapedCall::bytes.
std::vector<size_t> BytesOf(const std::vector<ShapeContext::OutMeta>& outs) {
  std::vector<size_t> bytes;
  bytes.reserve(outs.size());
  for (const ShapeContext::OutMeta& out : outs) {
    if (!out.set || out.has_lod || !out.shape.is_static()) return {};
    bytes.push_back(BytesFor(out.dtype, out.shape));
  }
  return bytes;
}

}  // namespace

bool ArePlain(const BoundOp& op, Value* const* frame) {
  for (uint32_t s : op.in) {
    if (s == kNoSlot) continue;
    const Value& v = *frame[s];
    if (!v.is_tensor() || !v.tensor().initialized() || v.tensor().has_lod()) return false;
  }
  return true;
}

Result<std::shared_ptr<const ShapedCall>> PrepareCall(const BoundOp& op, Value* const* frame,
                                                      Services& services,
                                                      const std::vector<bool>* constant) {
  HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<ShapedCall> call,
                          Prepared(op, frame, services, constant));
  call->signature = SignatureOf(op, frame, true);
  return std::shared_ptr<const ShapedCall>(std::move(call));
}

std::shared_ptr<const ShapedCall> ShapedCalls::Find(const BoundOp& op, Value* const* frame) {
  if (depends_on_more_.load(std::memory_order_relaxed)) return nullptr;
  return Find(op, frame, false);
}

std::shared_ptr<const ShapedCall> ShapedCalls::Find(const BoundOp& op, Value* const* frame,
                                                    bool with_outs) {
  MutexLock lock(mutex_);
  for (size_t k = 0, i = last_; k < calls_.size(); ++k, ++i) {
    if (i == calls_.size()) i = 0;
    if ((calls_[i]->fn == nullptr) != with_outs || !HasSignature(op, frame, *calls_[i])) continue;
    last_ = i;
    misses_ = 0;
    return calls_[i];
  }
  return nullptr;
}

Result<std::shared_ptr<const ShapedCall>> ShapedCalls::FindOrPrepare(
    const BoundOp& op, Value* const* frame, Services& services, const std::vector<bool>* constant) {
  std::shared_ptr<const ShapedCall> call = Find(op, frame, true);
  if (call != nullptr) return call;
  HEDDLE_ASSIGN_OR_RETURN(call, PrepareCall(op, frame, services, constant));
  Keep(call);
  return call;
}

Result<std::shared_ptr<const ShapedCall>> ShapedCalls::FindOrPrepare(
    const BoundOp& op, Value* const* frame, Services& services, const std::vector<bool>* constant,
    const std::vector<ShapeContext::OutMeta>* outs, KernelFn fn) {
  if (!depends_on_more_.load(std::memory_order_relaxed) && outs != nullptr &&
      !FollowFromShapes(op, frame, constant, *outs))
    depends_on_more_.store(true, std::memory_order_relaxed);
  if (depends_on_more_.load(std::memory_order_relaxed)) {
    if (op.def->prepare() == nullptr) return std::shared_ptr<const ShapedCall>();
    return FindOrPrepare(op, frame, services, constant);
  }
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<ShapedCall> call,
                          Prepared(op, frame, services, constant));
  if (outs != nullptr) {
    call->outs = *outs;
    call->bytes = BytesOf(*outs);
  }
  call->fn = fn;
  call->signature = SignatureOf(op, frame, false);
  for (uint32_t s : op.in)
    if (s != kNoSlot)
      call->operands.push_back({frame[s]->tensor().dtype(), frame[s]->tensor().shape()});
  Keep(call);
  return std::shared_ptr<const ShapedCall>(call);
}

// A full list drops its oldest call. In a loop's body it drops the newest instead: a loop with more
// iterations than entries repeats its calls in the same order in each run, so a list that dropped
// the oldest would never find one. If no kept call is found for long, the list starts again.
void ShapedCalls::Keep(std::shared_ptr<const ShapedCall> call) {
  const size_t most = this->most();
  MutexLock lock(mutex_);
  if (++misses_ > 8 * most) {
    calls_.clear();
    misses_ = 0;
  }
  if (calls_.size() == most) calls_.erase(in_block_ ? calls_.end() - 1 : calls_.begin());
  calls_.push_back(std::move(call));
  last_ = calls_.size() - 1;
}

const ShapedCall* CallMemo::Next(const BoundOp& op, Value* const* frame) {
  if (at_ == calls_.size()) return nullptr;
  const ShapedCall* const call = calls_[at_].get();
  const ShapedCall::Operand* operand = call->operands.data();
  for (uint32_t s : op.in) {
    if (s == kNoSlot) continue;
    const Value& v = *frame[s];
    if (!v.is_tensor()) return nullptr;
    const Tensor& t = v.tensor();
    if (!t.initialized() || t.has_lod() || t.dtype() != operand->dtype ||
        !(t.shape() == operand->shape))
      return nullptr;
    ++operand;
  }
  // A loop of many turns has more calls than the nearest cache holds.
  if (++at_ < calls_.size()) {
    const ShapedCall& next = *calls_[at_];
    __builtin_prefetch(next.operands.data());
    __builtin_prefetch(next.outs.data());
    __builtin_prefetch(next.state.get());
  }
  if (at_ + 1 < calls_.size()) __builtin_prefetch(calls_[at_ + 1].get());
  return call;
}

void CallMemo::Put(const std::shared_ptr<const ShapedCall>& call, size_t most) {
  if (call == nullptr || call->fn == nullptr || at_ == most) return;
  if (at_ == calls_.size())
    calls_.push_back(call);
  else
    calls_[at_] = call;
  ++at_;
}

}  // namespace heddle
