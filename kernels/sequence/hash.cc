#include <xxhash.h>

#include "core/interrupts.h"
#include "core/shapes.h"

namespace heddle {
namespace {

Status HashShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  if (x.rank() != 2 || ctx.Int("mod_by") < 1 || ctx.Int("num_hash") < 0)
    return InvalidArgument("X has shape ", x.ToString(), ", mod_by is ", ctx.Int("mod_by"),
                           "; expected a matrix and a positive number");
  ctx.SetOut("Out", {x[0], ctx.Int("num_hash"), 1}, ctx.InDType("X"));
  ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

// A row's bytes, hashed with seeds 0, 1, …
template <typename T>
struct Hash {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const int64_t hashes = ctx.Int("num_hash");
    const auto mod = static_cast<uint64_t>(ctx.Int("mod_by"));
    T* out = ctx.Out("Out").template mutable_data<T>();
    for (const int64_t i : Watched(x.dim(0)))
      for (const int64_t k : Watched(hashes))
        out[i * hashes + k] = static_cast<T>(XXH64(x.data<T>() + i * x.dim(1),
                                                   sizeof(T) * static_cast<size_t>(x.dim(1)),
                                                   static_cast<uint64_t>(k)) %
                                             mod);
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(hash) {
  op.Doc("num_hash hashes of each row, modulo mod_by").Input("X").Output("Out");
  op.Attr("num_hash", 1).Attr("mod_by", 100000).InferShape(HashShape);
  op.Kernels<Hash, int32_t, int64_t>();
}
