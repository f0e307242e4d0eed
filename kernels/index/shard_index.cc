#include "core/interrupts.h"
#include "core/shapes.h"

namespace heddle {
namespace {

// The place of an index within this shard, ignore_value for indices of other shards.
template <typename T>
struct ShardIndex {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    T* out = ctx.Out("Out").mutable_data<T>();
    const int64_t total = ctx.Int("index_num"), shards = ctx.Int("nshards");
    const int64_t shard = ctx.Int("shard_id");
    const auto ignored = static_cast<T>(ctx.Int("ignore_value"));
    if (total < 1 || shards < 1 || shard < 0 || shard >= shards)
      return InvalidArgument("index_num ", total, ", nshards ", shards, " and shard_id ", shard,
                             " do not make a shard");
    const int64_t size = (total - 1) / shards + 1;
    const T* v = x.data<T>();
    for (const int64_t i : Watched(x.numel())) {
      if (v[i] < 0 || v[i] >= total)
        return OutOfRange("'X' holds ", v[i], " at position ", i, "; expected 0 to ", total - 1);
      out[i] = v[i] / size == shard ? static_cast<T>(v[i] % size) : ignored;
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(shard_index) {
  op.Doc("X's indices relative to one of nshards equal parts of [0, index_num).")
      .Input("X")
      .Output("Out")
      .Attr("index_num", 0)
      .Attr("nshards", 1)
      .Attr("shard_id", 0)
      .Attr("ignore_value", -1)
      .Inplace("X", "Out")
      .InferShape(SameShape)
      .Kernels<ShardIndex, int32_t, int64_t>();
}
