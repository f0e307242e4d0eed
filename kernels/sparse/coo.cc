#include "kernels/sparse/coo.h"

#include <any>
#include <memory>

namespace heddle {
namespace {

using Shared = std::shared_ptr<const CooTensor>;

}  // namespace

std::vector<int64_t> CooTensor::Coordinates(int64_t p) const {
  std::vector<int64_t> c(static_cast<size_t>(sparse_dim));
  for (int d = sparse_dim - 1; d >= 0; --d) {
    c[static_cast<size_t>(d)] = p % shape[d];
    p /= shape[d];
  }
  return c;
}

Tensor CooTensor::NewValues(const KernelContext& ctx, DType dtype, int64_t entries) const {
  Shape s{entries};
  for (int d = sparse_dim; d < shape.rank(); ++d) s.push_back(shape[d]);
  return ctx.Scratch(dtype, s);
}

const CooTensor* CooInOpt(const KernelContext& ctx, Key key) {
  Value* v = ctx.InVar(key);
  if (v == nullptr || v->kind() != Value::Kind::kOther) return nullptr;
  const auto* shared = std::any_cast<Shared>(&v->mutable_other());
  return shared != nullptr ? shared->get() : nullptr;
}

Result<const CooTensor*> CooIn(const KernelContext& ctx, Key key) {
  const CooTensor* coo = CooInOpt(ctx, key);
  if (coo == nullptr) return InvalidArgument("'", key.name, "' holds no sparse tensor");
  return coo;
}

void PutCoo(const KernelContext& ctx, Key key, CooTensor value) {
  if (Value* v = ctx.OutVar(key))
    v->mutable_other() = std::make_shared<const CooTensor>(std::move(value));
}

}  // namespace heddle
