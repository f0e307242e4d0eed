#include "kernels/strided/index_pad.h"

#include <algorithm>
#include <complex>

#include "core/memory/watched_bytes.h"
#include "core/threads/look_meter.h"

namespace heddle {
namespace {

constexpr int64_t kGrainBytes = 128 << 10;

// Source index of element `o` of the padded dimension.
int64_t SourceOf(int64_t o, int64_t before, int64_t size, PadMode mode) {
  const int64_t s = o - before;
  switch (mode) {
    case PadMode::kReflect: {
      const int64_t up = std::max(s, -s);
      return std::min(up, 2 * size - up - 2);
    }
    case PadMode::kCircular:
      return ((s % size) + size) % size;
    default:
      return std::clamp<int64_t>(s, 0, size - 1);
  }
}

// The tensor as [outer, a, b, c, inner] with the padded dimensions in the middle, and for each of
// those the source of every padded position.
struct Mapped {
  int64_t outer = 1, inner = 1;
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, before[3] = {0, 0, 0};
  Tensor tables[3];
  const int64_t* map[3];
};

Status MakeMapped(const KernelContext& ctx, const Shape& x, const Padding& pad, PadMode mode,
                  Mapped* m) {
  int first = x.rank(), last = -1;
  for (int i = 0; i < x.rank(); ++i)
    if (pad.before[i] != 0 || pad.after[i] != 0) {
      first = std::min(first, i);
      last = i;
    }
  if (last < 0) first = last = 0;
  if (last - first > 2)
    return InvalidArgument("only three neighbouring dimensions can be padded in this mode");
  m->outer = x.Product(0, first);
  m->inner = x.Product(last + 1, x.rank());
  for (int k = 0; k < 3; ++k) {
    const int i = last - 2 + k;
    if (i >= first && i < x.rank()) {
      m->in[k] = x[i];
      m->before[k] = pad.before[i];
      m->out[k] = x[i] + pad.before[i] + pad.after[i];
    }
    m->tables[k] = ctx.Scratch(DType::kI64, Shape{m->out[k]});
    int64_t* table = m->tables[k].mutable_data<int64_t>();
    for (const auto [begin, end] : Stretches(m->out[k]))
      for (int64_t o = begin; o < end; ++o) table[o] = SourceOf(o, m->before[k], m->in[k], mode);
    m->map[k] = table;
  }
  return Status::Ok();
}

// fn(offset in x, offset in out) for every row of out (its dimensions a and b), in elements.
template <typename Fn>
void ForEachRow(const Mapped& m, int64_t begin, int64_t end, Fn&& fn) {
  const int64_t in_row = m.in[2] * m.inner, out_row = m.out[2] * m.inner;
  LookMeter meter;
  for (int64_t o = begin; o < end; ++o)
    for (int64_t a = 0; a < m.out[0]; ++a)
      for (int64_t b = 0; b < m.out[1]; ++b) {
        fn(((o * m.in[0] + m.map[0][a]) * m.in[1] + m.map[1][b]) * in_row,
           ((o * m.out[0] + a) * m.out[1] + b) * out_row);
        meter.Did(out_row);
      }
}

int64_t OuterGrain(const Mapped& m, size_t size) {
  const int64_t bytes = m.out[0] * m.out[1] * m.out[2] * m.inner * static_cast<int64_t>(size);
  return std::max<int64_t>(1, kGrainBytes / std::max<int64_t>(1, bytes));
}

// The part of x that is kept and where it lies in the padded tensor, as a copy.
StridedCopy Interior(const Shape& x, const Shape& out, const Padding& pad, size_t size,
                     bool to_out) {
  const auto xs = RowMajorStrides(x), os = RowMajorStrides(out);
  std::array<CopyDim, Shape::kMaxRank> dims;
  int64_t x_offset = 0, out_offset = 0;
  for (int i = 0; i < x.rank(); ++i) {
    const int64_t cut = std::max<int64_t>(0, -pad.before[i]);
    const int64_t at = std::max<int64_t>(0, pad.before[i]);
    const int64_t n = std::max<int64_t>(0, std::min(x[i] - cut, out[i] - at));
    dims[i] = to_out ? CopyDim{n, xs[i], os[i]} : CopyDim{n, os[i], xs[i]};
    x_offset += cut * xs[i];
    out_offset += at * os[i];
  }
  const std::span<const CopyDim> used(dims.data(), static_cast<size_t>(x.rank()));
  return to_out ? StridedCopy(size, used, x_offset, out_offset)
                : StridedCopy(size, used, out_offset, x_offset);
}

template <typename T>
void AddRow(const T* grad, const Mapped& m, T* x) {
  using C = ComputeType<T>;
  LookMeter meter;
  for (int64_t c = 0; c < m.out[2]; ++c) {
    T* to = x + m.map[2][c] * m.inner;
    for (int64_t i = 0; i < m.inner; ++i)
      to[i] = static_cast<T>(static_cast<C>(to[i]) + static_cast<C>(grad[c * m.inner + i]));
    meter.Did(m.inner);
  }
}

}  // namespace

Result<PadMode> PadModeOf(const std::string& name) {
  if (name == "constant") return PadMode::kConstant;
  if (name == "reflect") return PadMode::kReflect;
  if (name == "replicate" || name == "edge") return PadMode::kReplicate;
  if (name == "circular") return PadMode::kCircular;
  return InvalidArgument("'mode' is '", name,
                         "'; expected constant, reflect, replicate, edge or circular");
}

Result<Shape> PaddedShape(const Shape& x, const Padding& pad, PadMode mode) {
  if (pad.rank != x.rank())
    return InvalidArgument("there are paddings for ", pad.rank, " dimensions, but X has shape ",
                           x.ToString());
  Shape out = x;
  for (int i = 0; i < x.rank(); ++i) {
    const int64_t before = pad.before[i], after = pad.after[i];
    if (x[i] < 0) continue;
    out[i] = x[i] + before + after;
    bool fits = out[i] >= 0;
    if (mode == PadMode::kReflect)
      fits = fits && before < std::max<int64_t>(x[i], 1) && after < std::max<int64_t>(x[i], 1);
    if (mode != PadMode::kConstant && (before > 0 || after > 0)) fits = fits && x[i] > 0;
    if (!fits)
      return InvalidArgument("dimension ", i, " of X ", x.ToString(), " cannot be padded by ",
                             before, " and ", after, " in this mode");
  }
  return out;
}

Status FillElements(const KernelContext& ctx, double value, Tensor& out) {
  const bool known =
      VisitDType<float, double, int32_t, int64_t, bool, uint8_t, int8_t, int16_t, float16, bfloat16,
                 std::complex<float>, std::complex<double>>(out.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        const T v = static_cast<T>(static_cast<ComputeType<T>>(value));
        T* to = out.mutable_data<T>();
        ctx.ParallelFor(out.numel(), kGrainBytes,
                        [&](int64_t begin, int64_t end) { std::fill(to + begin, to + end, v); });
      });
  return known ? Status::Ok() : Unimplemented("no values of type ", Name(out.dtype()));
}

Status RunPad(const KernelContext& ctx, const Tensor& x, const Padding& pad, PadMode mode,
              double value, Tensor& out) {
  const size_t size = SizeOf(x.dtype());
  if (mode == PadMode::kConstant) {
    HEDDLE_RETURN_IF_ERROR(FillElements(ctx, value, out));
    Interior(x.shape(), out.shape(), pad, size, true).Run(ctx, x.raw(), out.mutable_raw());
    return Status::Ok();
  }
  if (out.numel() == 0) return Status::Ok();
  Mapped m;
  HEDDLE_RETURN_IF_ERROR(MakeMapped(ctx, x.shape(), pad, mode, &m));
  const auto row = m.inner * static_cast<int64_t>(size);
  const auto* src = static_cast<const std::byte*>(x.raw());
  auto* dst = static_cast<std::byte*>(out.mutable_raw());
  // Positions [left, right) of a row come from neighbours: one copy.
  const int64_t left = std::max<int64_t>(0, m.before[2]);
  const int64_t right = std::max(left, std::min(m.out[2], m.before[2] + m.in[2]));
  ctx.ParallelFor(m.outer, OuterGrain(m, size), [&](int64_t begin, int64_t end) {
    ForEachRow(m, begin, end, [&](int64_t from, int64_t to) {
      const std::byte* s = src + from * static_cast<int64_t>(size);
      std::byte* d = dst + to * static_cast<int64_t>(size);
      LookMeter meter;
      const auto copy = [&](int64_t first, int64_t last) {
        for (int64_t c = first; c < last; ++c) {
          CopyRow(d + c * row, s + m.map[2][c] * row, row);
          meter.Did(row);
        }
      };
      copy(0, left);
      if (right > left)
        WatchedMemcpy(d + left * row, s + m.map[2][left] * row,
                      static_cast<size_t>((right - left) * row));
      copy(right, m.out[2]);
    });
  });
  return Status::Ok();
}

Status RunPadGrad(const KernelContext& ctx, const Tensor& grad, const Padding& pad, PadMode mode,
                  Tensor& x_grad) {
  HEDDLE_ASSIGN_OR_RETURN(const Shape padded, PaddedShape(x_grad.shape(), pad, mode));
  if (!(padded == grad.shape()) || grad.dtype() != x_grad.dtype())
    return InvalidArgument("'Out@GRAD' has shape ", grad.shape().ToString(), "; the padded X has ",
                           padded.ToString());
  const size_t size = SizeOf(grad.dtype());
  ZeroBytes(ctx, x_grad.mutable_raw(), x_grad.bytes());
  if (mode == PadMode::kConstant) {
    Interior(x_grad.shape(), grad.shape(), pad, size, false)
        .Run(ctx, grad.raw(), x_grad.mutable_raw());
    return Status::Ok();
  }
  if (grad.numel() == 0) return Status::Ok();
  Mapped m;
  HEDDLE_RETURN_IF_ERROR(MakeMapped(ctx, x_grad.shape(), pad, mode, &m));
  const bool known =
      VisitDType<float, double, float16, bfloat16, std::complex<float>, std::complex<double>>(
          grad.dtype(), [&](auto tag) {
            using T = typename decltype(tag)::type;
            T* to = x_grad.mutable_data<T>();
            const T* from = grad.data<T>();
            ctx.ParallelFor(m.outer, OuterGrain(m, size), [&](int64_t begin, int64_t end) {
              ForEachRow(m, begin, end, [&](int64_t x, int64_t g) { AddRow(from + g, m, to + x); });
            });
          });
  return known ? Status::Ok() : Unimplemented("no sums of ", Name(grad.dtype()), " tensors");
}

}  // namespace heddle
