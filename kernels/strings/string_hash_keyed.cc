// Texts as numbers of buckets: SipHash-2-4 with a key (Aumasson and Bernstein, 2012), and without
// one MurmurHash64A (Appleby, 2008).
#include <cstring>
#include <string_view>

#include "core/interrupts.h"
#include "core/operands/slot_kinds.h"
#include "kernels/strings/string_operand.h"
#include "kernels/strings/text_hash.h"

namespace heddle {
namespace {

uint64_t Word(std::string_view text, size_t at) {
  uint64_t word = 0;
  std::memcpy(&word, text.data() + at, std::min<size_t>(sizeof(word), text.size() - at));
  return word;
}

uint64_t Murmur(std::string_view text) {
  constexpr uint64_t kFactor = 0xc6a4a7935bd1e995, kSeed = 0xDECAFCAFFE;
  uint64_t hash = kSeed ^ (text.size() * kFactor);
  const size_t whole = text.size() / 8 * 8;
  for (size_t at = 0; at < whole; at += 8) {
    uint64_t word = Word(text, at) * kFactor;
    word ^= word >> 47;
    hash = (hash ^ word * kFactor) * kFactor;
  }
  if (whole < text.size()) hash = (hash ^ Word(text, whole)) * kFactor;
  hash = (hash ^ hash >> 47) * kFactor;
  return hash ^ hash >> 47;
}

Status HashBuckets(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const auto x, StringsOf(ctx, "X"));
  const int64_t buckets = ctx.Int("num_buckets");
  if (buckets < 1) return InvalidArgument("'num_buckets' is ", buckets, "; expected 1 or more");
  const Ints& key = ctx.IntList("key");
  if (!key.empty() && key.size() != 2)
    return InvalidArgument("'key' has ", key.size(), " numbers; expected 2");
  int64_t* to = ctx.Alloc("Out", DType::kI64, x->shape).mutable_data<int64_t>();
  for (const std::string& text : x->elements) {
    LookForInterrupt();
    const uint64_t hash =
        key.empty()
            ? Murmur(text)
            : SipHash(static_cast<uint64_t>(key[0]), static_cast<uint64_t>(key[1])).Of(text);
    *to++ = static_cast<int64_t>(hash % static_cast<uint64_t>(buckets));
  }
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(string_hash_bucket) {
  op.Doc("the hash of each text modulo num_buckets: SipHash with the `key`, MurmurHash without");
  op.Input("X", kAnyKind | kOtherOnly)
      .Output("Out")
      .Attr("num_buckets", 1)
      .Attr("key", Ints{})
      .AnyKernel(HashBuckets);
}
