// Copies of values that do not keep the memory alive.
#pragma once

#include <utility>

#include "heddle/value.h"

namespace heddle {

// The value's dtype, shape and sequence offsets, without contents.
inline Value ShapeOf(const Value& v) {
  if (!v.is_tensor()) return Value();
  Tensor bare;
  bare.SetMeta(v.tensor().dtype(), v.tensor().shape());
  if (v.tensor().has_lod()) bare.set_lod(v.tensor().lod());
  return Value(std::move(bare));
}

// The value at the same address, without a reference: another owner must keep the memory while it
// is used.
inline Value Detached(const Value& v) {
  Value bare = ShapeOf(v);
  if (bare.is_tensor() && v.initialized()) bare.tensor().Bind(const_cast<void*>(v.tensor().raw()));
  return bare;
}

}  // namespace heddle
