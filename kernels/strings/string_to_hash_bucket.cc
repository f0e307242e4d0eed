// Texts as numbers of buckets, by FarmHash's 64-bit fingerprint (Pike and Alakuijala, 2014), which
// is the same on every machine.
#include <bit>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/operands/slot_kinds.h"
#include "kernels/strings/string_operand.h"

namespace heddle {
namespace {

class Fingerprint {
 public:
  static uint64_t Of(std::string_view text) {
    if (text.size() <= 16) return OfUpTo16(text);
    if (text.size() <= 32) return OfUpTo32(text);
    if (text.size() <= 64) return OfUpTo64(text);
    return OfLong(text);
  }

 private:
  static constexpr uint64_t k0 = 0xc3a5c85c97cb3127, k1 = 0xb492b66fbe98f273,
                            k2 = 0x9ae16a3b2f90404f;
  struct Pair {
    uint64_t first = 0, second = 0;
  };

  static uint64_t Word(std::string_view text, size_t at) {
    uint64_t word;
    std::memcpy(&word, text.data() + at, sizeof(word));
    return word;
  }
  static uint64_t HalfWord(std::string_view text, size_t at) {
    uint32_t word;
    std::memcpy(&word, text.data() + at, sizeof(word));
    return word;
  }
  static uint64_t Mix(uint64_t x) { return x ^ x >> 47; }
  static uint64_t Join(uint64_t u, uint64_t v, uint64_t factor) {
    const uint64_t a = Mix((u ^ v) * factor);
    return Mix((v ^ a) * factor) * factor;
  }
  static uint64_t Factor(std::string_view text) { return k2 + text.size() * 2; }

  static uint64_t OfUpTo16(std::string_view text) {
    const size_t n = text.size();
    if (n >= 8) {
      const uint64_t factor = Factor(text), a = Word(text, 0) + k2, b = Word(text, n - 8);
      return Join(std::rotr(b, 37) * factor + a, (std::rotr(a, 25) + b) * factor, factor);
    }
    if (n >= 4) return Join(n + (HalfWord(text, 0) << 3), HalfWord(text, n - 4), Factor(text));
    if (n == 0) return k2;
    const auto byte = [&](size_t at) { return uint64_t{static_cast<uint8_t>(text[at])}; };
    const uint64_t y = byte(0) + (byte(n >> 1) << 8), z = n + (byte(n - 1) << 2);
    return Mix(y * k2 ^ z * k0) * k2;
  }

  static uint64_t OfUpTo32(std::string_view text) {
    const size_t n = text.size();
    const uint64_t factor = Factor(text), a = Word(text, 0) * k1, b = Word(text, 8),
                   c = Word(text, n - 8) * factor, d = Word(text, n - 16) * k2;
    return Join(std::rotr(a + b, 43) + std::rotr(c, 30) + d, a + std::rotr(b + k2, 18) + c, factor);
  }

  static uint64_t OfUpTo64(std::string_view text) {
    const size_t n = text.size();
    const uint64_t factor = Factor(text), a = Word(text, 0) * k2, b = Word(text, 8),
                   c = Word(text, n - 8) * factor, d = Word(text, n - 16) * k2;
    const uint64_t y = std::rotr(a + b, 43) + std::rotr(c, 30) + d;
    const uint64_t z = Join(y, a + std::rotr(b + k2, 18) + c, factor);
    const uint64_t e = Word(text, 16) * factor, f = Word(text, 24),
                   g = (y + Word(text, n - 32)) * factor, h = (z + Word(text, n - 24)) * factor;
    return Join(std::rotr(e + f, 43) + std::rotr(g, 30) + h, e + std::rotr(f + a, 18) + g, factor);
  }

  static Pair Weak(std::string_view text, size_t at, uint64_t a, uint64_t b) {
    const uint64_t z = Word(text, at + 24);
    a += Word(text, at);
    b = std::rotr(b + a + z, 21);
    const uint64_t c = a;
    a += Word(text, at + 8) + Word(text, at + 16);
    b += std::rotr(a, 44);
    return {a + z, b + c};
  }

  // The state that blocks of 64 bytes change.
  struct State {
    uint64_t x = 0, y = 0, z = 0;
    Pair v, w;
    void Take(std::string_view text, size_t at, uint64_t factor, uint64_t often) {
      x = std::rotr(x + y + v.first + Word(text, at + 8), 37) * factor;
      y = std::rotr(y + v.second + Word(text, at + 48), 42) * factor;
      x ^= w.second * often;
      y += v.first * often + Word(text, at + 40);
      z = std::rotr(z + w.first, 33) * factor;
      v = Weak(text, at, v.second * factor, x + w.first);
      w = Weak(text, at + 32, z + w.second, y + Word(text, at + 16));
      std::swap(z, x);
    }
  };

  static uint64_t OfLong(std::string_view text) {
    constexpr uint64_t kSeed = 81;
    State s;
    s.y = kSeed * k1 + 113;
    s.z = Mix(s.y * k2 + 113) * k2;
    s.x = kSeed * k2 + Word(text, 0);
    const size_t last = text.size() - 1;
    for (size_t at = 0; at < last / 64 * 64; at += 64) s.Take(text, at, k1, 1);
    const uint64_t factor = k1 + ((s.z & 0xff) << 1);
    s.w.first += last & 63;
    s.v.first += s.w.first;
    s.w.first += s.v.first;
    s.Take(text, text.size() - 64, factor, 9);
    return Join(Join(s.v.first, s.w.first, factor) + Mix(s.y) * k0 + s.z,
                Join(s.v.second, s.w.second, factor) + s.x, factor);
  }
};

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
