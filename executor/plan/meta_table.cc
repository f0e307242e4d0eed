#include "executor/plan/meta_table.h"

#include <utility>

namespace heddle {

uint64_t MetaTable::Hash(DType dtype, const Shape& shape) {
  uint64_t h = static_cast<uint64_t>(dtype) * 31 + static_cast<uint64_t>(shape.rank() + 1);
  for (const int64_t d : shape) h = (h ^ static_cast<uint64_t>(d)) * 0x9e3779b97f4a7c15u;
  return h ^ (h >> 32);
}

Value* MetaTable::Of(DType dtype, const Shape& shape) {
  if (2 * taken_ >= buckets_.size()) Grow();
  for (size_t at = Hash(dtype, shape);; ++at) {
    Value*& bucket = buckets_[at & (buckets_.size() - 1)];
    if (bucket == nullptr) {
      bucket = &values_.emplace_back();
      bucket->tensor().SetMeta(dtype, shape);
      ++taken_;
      return bucket;
    }
    const Tensor& t = bucket->tensor();
    if (t.dtype() == dtype && t.shape() == shape) return bucket;
  }
}

Value* MetaTable::Strided(DType dtype, const Shape& shape, std::vector<int64_t> strides) {
  Value* const value = &strided_.emplace_back();
  value->tensor() = Tensor::WrapStrided(nullptr, dtype, shape, std::move(strides));
  return value;
}

void MetaTable::Grow() {
  std::vector<Value*> old(buckets_.empty() ? 16 : 2 * buckets_.size());
  old.swap(buckets_);
  for (Value* value : old) {
    if (value == nullptr) continue;
    size_t at = Hash(value->tensor().dtype(), value->tensor().shape());
    while (buckets_[at & (buckets_.size() - 1)] != nullptr) ++at;
    buckets_[at & (buckets_.size() - 1)] = value;
  }
}

}  // namespace heddle
