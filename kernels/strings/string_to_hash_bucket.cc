// Texts as numbers of buckets, by a fingerprint that is the same on every machine.
#include "core/operands/slot_kinds.h"
#include "kernels/strings/string_operand.h"
#include "kernels/strings/text_hash.h"

namespace heddle {
namespace {

Status StringToHashBucketFast(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const auto texts, StringsOf(ctx, "input"));
  const int64_t buckets = ctx.Int("num_buckets");
  if (buckets < 1) return InvalidArgument("'num_buckets' is ", buckets, "; expected 1 or more");
  int64_t* to = ctx.Alloc("output", DType::kI64, texts->shape).mutable_data<int64_t>();
  for (size_t i = 0; i < texts->elements.size(); ++i)
    to[i] =
        static_cast<int64_t>(Fingerprint::Of(texts->elements[i]) % static_cast<uint64_t>(buckets));
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(string_to_hash_bucket) {
  op.Doc("the fingerprint of each text, modulo num_buckets").Input("input", kAnyKind | kOtherOnly);
  op.Output("output").Attr("num_buckets", 1).AnyKernel(StringToHashBucketFast);
}
