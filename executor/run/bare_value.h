// Tensors without a hold on their memory.
#pragma once

#include <utility>

#include "heddle/value.h"

namespace heddle {

// Dtype, shape and sequence offsets, as if the contents were not known.
inline Value ShapeOf(const Value& v) {
  if (!v.is_tensor()) return Value();
  Tensor bare;
  bare.SetMeta(v.tensor().dtype(), v.tensor().shape());
  if (v.tensor().has_lod()) bare.set_lod(v.tensor().lod());
  return Value(std::move(bare));
}

// At the same address; somebody else keeps the memory until nobody uses it any more.
inline Value Detached(const Value& v) {
  Value bare = ShapeOf(v);
  if (bare.is_tensor() && v.initialized()) bare.tensor().Bind(const_cast<void*>(v.tensor().raw()));
  return bare;
}

}  // namespace heddle
