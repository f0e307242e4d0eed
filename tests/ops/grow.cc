#include "tests/ops/grow.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace heddle::testing {
namespace {

template <typename Fn>
void ForEachTensor(const Value& value, Fn&& fn) {
  if (!value.initialized()) return;
  if (value.is_tensor()) return fn(value.tensor());
  if (!value.is_array()) return;  // the numbers of selected rows belong to their values
  for (const Tensor& t : value.array())
    if (t.initialized()) fn(t);
}

template <typename Fn>
Value Mapped(const Value& value, Fn&& fn) {
  if (!value.initialized()) return value;
  if (value.is_tensor()) return Value(fn(value.tensor()));
  if (!value.is_array()) return value;
  Value mapped = value;
  for (Tensor& t : mapped.mutable_array())
    if (t.initialized()) t = fn(t);
  return mapped;
}

// Operands of so few elements may be shapes, sizes, counts.
constexpr int64_t kFewElements = 8;

bool SaysSizes(const Tensor& t) {
  return (t.dtype() == DType::kI32 || t.dtype() == DType::kI64) && t.numel() <= kFewElements &&
         t.rank() <= 1;
}

int64_t IntOf(const Tensor& t, int64_t i) {
  return t.dtype() == DType::kI32 ? t.data<int32_t>()[i] : t.data<int64_t>()[i];
}

// `t` repeated along the axes whose length is `length`.
Tensor Repeated(const Tensor& t, int64_t length, int64_t factor) {
  Shape shape = t.shape();
  for (int axis = 0; axis < t.rank(); ++axis)
    if (shape[axis] == length) shape[axis] *= factor;
  if (shape == t.shape()) return t;
  Tensor repeated = Tensor::Empty(t.dtype(), shape);
  // Row by row of the last axis: where it comes from is found axis by axis.
  const int last = t.rank() - 1;
  const auto size = static_cast<int64_t>(SizeOf(t.dtype()));
  const int64_t row = t.shape()[last], wide = shape[last];
  for (int64_t r = 0; r * wide < shape.numel(); ++r) {
    int64_t rest = r, from = 0, step = row;
    for (int axis = last - 1; axis >= 0; --axis) {
      from += rest % shape[axis] % t.shape()[axis] * step;
      rest /= shape[axis];
      step *= t.shape()[axis];
    }
    auto* to = static_cast<std::byte*>(repeated.mutable_raw()) + r * wide * size;
    for (int64_t at = 0; at < wide; at += row)
      std::memcpy(to + at * size, static_cast<const std::byte*>(t.raw()) + from * size,
                  static_cast<size_t>(row * size));
  }
  LoD lod = t.lod();
  if (!lod.empty() && t.shape()[0] == length) {
    // The sequences grow, their number stays: offsets of the finest level count rows.
    for (size_t& offset : lod.back()) offset *= static_cast<size_t>(factor);
  }
  repeated.set_lod(std::move(lod));
  return repeated;
}

Tensor WithSizes(const Tensor& t, int64_t value, int64_t factor) {
  Tensor changed = Tensor::Empty(t.dtype(), t.shape());
  for (int64_t i = 0; i < t.numel(); ++i) {
    const int64_t v = IntOf(t, i) == value ? value * factor : IntOf(t, i);
    if (t.dtype() == DType::kI32)
      changed.mutable_data<int32_t>()[i] = static_cast<int32_t>(v);
    else
      changed.mutable_data<int64_t>()[i] = v;
  }
  changed.set_lod(t.lod());
  return changed;
}

template <typename Fn>
void ForEachInt(std::vector<proto::OpDesc_Attr>& attrs, Fn&& fn) {
  for (proto::OpDesc_Attr& a : attrs) {
    if (a.name() == "axis" || a.name() == "axes" || a.name() == "dim" || a.name() == "dtype")
      continue;
    if (a.has_i()) a.set_i(static_cast<int32_t>(fn(a.i())));
    if (a.has_l()) a.set_l(fn(a.l()));
    for (int& v : *a.mutable_ints()) v = static_cast<int32_t>(fn(v));
    for (int64_t& v : *a.mutable_longs()) v = fn(v);
  }
}

}  // namespace

std::vector<Size> SizesOf(const Example& example) {
  std::set<int64_t> axes, values, attributes;
  for (const ExampleInput& in : example.inputs)
    ForEachTensor(in.value, [&](const Tensor& t) {
      for (int64_t d : t.shape())
        if (d > 0) axes.insert(d);
      for (int64_t i = 0; SaysSizes(t) && i < t.numel(); ++i)
        if (IntOf(t, i) > 0) values.insert(IntOf(t, i));
    });
  std::vector<proto::OpDesc_Attr> attrs = example.attrs;
  ForEachInt(attrs, [&](int64_t v) {
    if (v > 0) attributes.insert(v);
    return v;
  });
  std::vector<Size> sizes;
  for (int64_t v : axes) sizes.push_back({Size::Of::kAxes, v});
  for (int64_t v : values) sizes.push_back({Size::Of::kValues, v});
  for (int64_t v : attributes) sizes.push_back({Size::Of::kAttributes, v});
  for (int64_t v : axes)
    if (values.count(v) != 0 || attributes.count(v) != 0) sizes.push_back({Size::Of::kAll, v});
  return sizes;
}

Example Grown(const Example& example, const Size& size, int64_t factor) {
  Example grown = example;
  const bool all = size.of == Size::Of::kAll;
  for (ExampleInput& in : grown.inputs)
    in.value = Mapped(in.value, [&](const Tensor& t) {
      const bool says = (all || size.of == Size::Of::kValues) && SaysSizes(t);
      Tensor changed = says ? WithSizes(t, size.value, factor) : t;
      if ((!all && size.of != Size::Of::kAxes) || t.rank() == 0 || t.numel() == 0) return changed;
      return Repeated(changed, size.value, factor);
    });
  if (all || size.of == Size::Of::kAttributes)
    ForEachInt(grown.attrs, [&](int64_t v) { return v == size.value ? v * factor : v; });
  for (ExampleOutput& out : grown.outputs)
    if (out.check != Check::kNothing) out.check = Check::kMeta;
  return grown;
}

int64_t GrownBytes(const Example& example, const Size& size, int64_t factor) {
  constexpr double kMost = 0x1p62;
  const bool axes = size.of == Size::Of::kAxes || size.of == Size::Of::kAll;
  double all = 0;
  for (const ExampleInput& in : example.inputs)
    ForEachTensor(in.value, [&](const Tensor& t) {
      auto bytes = static_cast<double>(t.bytes());
      for (const int64_t d : t.shape())
        if (axes && d == size.value) bytes *= static_cast<double>(factor);
      all += bytes;
    });
  return static_cast<int64_t>(std::min(all, kMost));
}

int64_t OperandBytes(const Example& example) {
  int64_t bytes = 0;
  for (const ExampleInput& in : example.inputs)
    ForEachTensor(in.value, [&](const Tensor& t) { bytes += static_cast<int64_t>(t.bytes()); });
  return bytes;
}

}  // namespace heddle::testing
