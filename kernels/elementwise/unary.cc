#include "kernels/elementwise/unary.h"

#include <algorithm>
#include <cstring>

#include "kernels/base/widen.h"

namespace heddle {
namespace {

// One element is one element, in whatever shape: programs of Paddle 2.4 and older know no scalars,
// and give a gradient of [1] for what Paddle now makes [].
bool Compatible(const Shape& a, const Shape& b) {
  if (!a.known_rank() || !b.known_rank()) return true;
  if (a.is_static() && b.is_static() && a.numel() == 1 && b.numel() == 1) return true;
  if (a.rank() != b.rank()) return false;
  for (int i = 0; i < a.rank(); ++i)
    if (a[i] >= 0 && b[i] >= 0 && a[i] != b[i]) return false;
  return true;
}

// The memory of a map's operands, first the inputs; nullptr: absent.
struct MapOperands {
  const std::byte* in[unary_internal::kMostOperands];
  std::byte* out[unary_internal::kMostOperands];
};

// Elements [begin, end) of operands that are converted or absent, through buffers of a chunk. An
// absent input reads as zero.
void RunChunks(const unary_internal::ErasedMap& map, const MapOperands& operands, int64_t begin,
               int64_t end) {
  constexpr size_t kMostBytes = 16;  // of an element
  alignas(64) std::byte buffers[unary_internal::kMostOperands][kWidenChunk * kMostBytes];
  const WidenFn widen = Widening(map.stored_in, map.compute);
  const WidenFn narrow = Narrowing(map.compute, map.stored_out);
  const size_t in_size = SizeOf(map.stored_in), out_size = SizeOf(map.stored_out);
  const size_t size = SizeOf(map.compute), ins = map.ins.size();
  const void* x[unary_internal::kMostOperands];
  void* y[unary_internal::kMostOperands];
  for (int64_t at = begin; at < end; at += kWidenChunk) {
    const int64_t n = std::min(kWidenChunk, end - at);
    for (size_t k = 0; k < ins; ++k) {
      const std::byte* from = operands.in[k];
      if (from != nullptr) from += static_cast<size_t>(at) * in_size;
      x[k] = buffers[k];
      if (from == nullptr)
        std::memset(buffers[k], 0, static_cast<size_t>(n) * size);
      else if (widen != nullptr)
        widen(from, buffers[k], n);
      else
        x[k] = from;
    }
    for (size_t k = 0; k < map.outs.size(); ++k) {
      std::byte* to = operands.out[k];
      y[k] = to == nullptr || narrow != nullptr ? buffers[ins + k]
                                                : to + static_cast<size_t>(at) * out_size;
    }
    map.loop(map.functor, x, y, n);
    for (size_t k = 0; narrow != nullptr && k < map.outs.size(); ++k)
      if (operands.out[k] != nullptr)
        narrow(y[k], operands.out[k] + static_cast<size_t>(at) * out_size, n);
  }
}

}  // namespace

Status unary_internal::RunErasedMap(KernelContext& ctx, const ErasedMap& map) {
  bool direct = map.stored_in == map.compute && map.stored_out == map.compute;
  if (direct && map.ins.size() == 1 && map.outs.size() == 1) [[likely]] {
    // The most frequent case, without what the others need.
    const Tensor& x = ctx.In(map.ins[0]);
    Tensor* y = ctx.OutOpt(map.outs[0]);
    if (const int64_t n = x.numel(); n <= map.grain && y != nullptr) {
      const void* in = x.raw();
      void* out = y->mutable_raw();
      if (n > 0) map.loop(map.functor, &in, &out, n);
      return Status::Ok();
    }
  }
  MapOperands operands;
  int64_t n = 0;
  for (size_t k = 0; k < map.ins.size(); ++k) {
    const Tensor* t = map.ins.size() == 1 ? &ctx.In(map.ins[k]) : ctx.InOpt(map.ins[k]);
    operands.in[k] = t != nullptr ? static_cast<const std::byte*>(t->raw()) : nullptr;
    if (t != nullptr) n = t->numel();
    direct = direct && t != nullptr;
  }
  for (size_t k = 0; k < map.outs.size(); ++k) {
    Tensor* t = ctx.OutOpt(map.outs[k]);
    operands.out[k] = t != nullptr ? static_cast<std::byte*>(t->mutable_raw()) : nullptr;
    direct = direct && t != nullptr;
  }
  ctx.ParallelFor(n, map.grain, [&](int64_t begin, int64_t end) {
    if (!direct) [[unlikely]]
      return RunChunks(map, operands, begin, end);
    const size_t from = static_cast<size_t>(begin) * SizeOf(map.compute);
    const void* x[kMostOperands];
    void* y[kMostOperands];
    for (size_t k = 0; k < map.ins.size(); ++k) x[k] = operands.in[k] + from;
    for (size_t k = 0; k < map.outs.size(); ++k) y[k] = operands.out[k] + from;
    map.loop(map.functor, x, y, end - begin);
  });
  return Status::Ok();
}

bool MayBeAbsent(std::string_view operand) {
  return operand.find("grad") != std::string_view::npos ||
         operand.find("GRAD") != std::string_view::npos;
}

Status SameShapes(ShapeContext& ctx, int operands) {
  const BoundOp& op = ctx.op();
  const auto& slots = ctx.def().inputs();
  const Tensor* first = nullptr;
  std::string first_name;
  for (int s = 0; s < operands; ++s) {
    if (op.in_begin[s] == op.in_begin[s + 1] || op.in[op.in_begin[s]] == kNoSlot) continue;
    const Value& v = *ctx.frame()[op.in[op.in_begin[s]]];
    if (!v.is_tensor()) return InvalidArgument("input ", slots[s].name, " must be a tensor");
    const Tensor& t = v.tensor();
    if (t.dtype() == DType::kUnknown) continue;  // holds nothing
    if (first == nullptr) {
      first = &t;
      first_name = slots[s].name;
    } else if (!Compatible(first->shape(), t.shape())) {
      return InvalidArgument("input ", slots[s].name, " must have the shape of ", first_name, ", ",
                             first->shape().ToString(), ", but has ", t.shape().ToString());
    } else if (first->dtype() != t.dtype()) {
      return InvalidArgument("input ", slots[s].name, " must have the dtype of ", first_name, ", ",
                             Name(first->dtype()), ", but has ", Name(t.dtype()));
    }
  }
  if (first == nullptr) return ctx.Defer();
  for (size_t o = 0; o < op.out.size(); ++o) {
    if (op.out[o] == kNoSlot) continue;
    ctx.SetOutAt(o, first->shape(), first->dtype());
    if (first->has_lod()) ctx.SetOutLoDAt(o, first->lod());
  }
  return Status::Ok();
}

Status FloatShape(ShapeContext& ctx) {
  const DType in = ctx.InDType("X");
  ctx.SetOut("Out", ctx.InShape("X"), IsInteger(in) ? DType::kF32 : in);
  ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

double SlowMapCost(const ShapeContext& ctx) {
  constexpr double kNsPerElement = 8;
  for (const uint32_t slot : ctx.op().in) {
    if (slot == kNoSlot || !ctx.frame()[slot]->is_tensor()) continue;
    const Shape& shape = ctx.frame()[slot]->tensor().shape();
    return shape.is_static() ? kNsPerElement * static_cast<double>(shape.numel()) : 0;
  }
  return 0;
}

}  // namespace heddle
