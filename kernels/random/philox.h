// Random numbers as TensorFlow makes them of its seeds: Philox 4×32-10, and the distributions.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "core/threads/look_meter.h"
#include "kernels/base/index_args.h"
#include "kernels/operands/operands.h"

namespace heddle::philox {

using Block = std::array<uint32_t, 4>;

class Philox {
 public:
  Philox(const Block& counter, uint32_t key0, uint32_t key1)
      : counter_(counter), key0_(key0), key1_(key1) {}

  // Key and counter of a stateless operator, mixed from its two seeds.
  static Philox OfSeeds(uint64_t seed0, uint64_t seed1) {
    const Block counter{static_cast<uint32_t>(seed0), static_cast<uint32_t>(seed0 >> 32),
                        static_cast<uint32_t>(seed1), static_cast<uint32_t>(seed1 >> 32)};
    const Block mixed = Philox(counter, 0x3ec8f720, 0x02461e29).Next();
    return {{0, 0, mixed[2], mixed[3]}, mixed[0], mixed[1]};
  }

  // Those of an operator that goes on from run to run.
  static Philox OfKey(uint64_t seed0, uint64_t seed1) {
    return {{0, 0, static_cast<uint32_t>(seed1), static_cast<uint32_t>(seed1 >> 32)},
            static_cast<uint32_t>(seed0),
            static_cast<uint32_t>(seed0 >> 32)};
  }

  void Skip(uint64_t blocks) {
    uint64_t low = counter_[0] | static_cast<uint64_t>(counter_[1]) << 32;
    uint64_t high = counter_[2] | static_cast<uint64_t>(counter_[3]) << 32;
    low += blocks;
    if (low < blocks) ++high;
    counter_ = {static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32),
                static_cast<uint32_t>(high), static_cast<uint32_t>(high >> 32)};
  }
  Block Next() {
    Block c = counter_;
    uint32_t k0 = key0_, k1 = key1_;
    for (int round = 0; round < 10; ++round) {
      const uint64_t a = uint64_t{0xD2511F53} * c[0], b = uint64_t{0xCD9E8D57} * c[2];
      c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(b),
           static_cast<uint32_t>(a >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(a)};
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    Skip(1);
    return c;
  }

 private:
  Block counter_;
  uint32_t key0_, key1_;
};

// In [0, 1): the low bits as a mantissa.
inline float UnitFloat(uint32_t x) {
  const uint32_t bits = (x & 0x7fffffU) | 127U << 23;
  float f = 0;
  std::memcpy(&f, &bits, sizeof(f));
  return f - 1;
}
inline double UnitDouble(uint32_t high, uint32_t low) {
  const uint64_t bits = static_cast<uint64_t>(high & 0xfffffU) << 32 | low | uint64_t{1023} << 52;
  double d = 0;
  std::memcpy(&d, &bits, sizeof(d));
  return d - 1;
}

constexpr double kPi = 3.14159265358979323846;

// Two normal numbers of two uniform ones.
inline std::array<float, 2> Normal(uint32_t a, uint32_t b) {
  const float u = std::max(UnitFloat(a), 1.0e-7F);
  const float v = static_cast<float>(2 * kPi) * UnitFloat(b), r = std::sqrt(-2 * std::log(u));
  return {std::sin(v) * r, std::cos(v) * r};
}
inline std::array<double, 2> Normal(const Block& x) {
  const double u = std::max(UnitDouble(x[0], x[1]), 1.0e-7);
  const double v = 2 * kPi * UnitDouble(x[2], x[3]), r = std::sqrt(-2 * std::log(u));
  return {std::sin(v) * r, std::cos(v) * r};
}

// Writes n values, of which values(block) gives some at a time.
template <typename Values, typename T>
void FillBlocks(Philox generator, int64_t n, Values values, T* to) {
  LookMeter meter;
  for (int64_t i = 0; i < n;) {
    meter.Did(16);
    const auto some = values(generator.Next());
    for (size_t k = 0; k < some.size() && i < n; ++k) to[i++] = some[k];
  }
}

enum class Kind : uint8_t { kUniform, kNormal, kTruncated };

// Numbers within two deviations. Each group of four starts at blocks of its own.
inline void FillTruncated(const Philox& base, int64_t n, float* to) {
  constexpr int64_t kGroup = 4, kBlocksForGroup = 256;
  LookMeter meter;
  for (int64_t g = 0; g * kGroup < n; ++g) {
    meter.Did(64);
    Philox generator = base;
    generator.Skip(static_cast<uint64_t>(g * kBlocksForGroup));
    int64_t i = g * kGroup;
    const int64_t end = std::min(n, i + kGroup);
    while (i < end) {
      const Block x = generator.Next();
      for (size_t k = 0; k < 4 && i < end; k += 2)
        for (const float f : Normal(x[k], x[k + 1]))
          if (std::abs(f) < 2 && i < end) to[i++] = f;
    }
  }
}

template <Kind kKind>
Status Fill(const Philox& generator, Tensor& out) {
  const int64_t n = out.numel();
  if (out.dtype() == DType::kF64 && kKind != Kind::kTruncated) {
    double* to = out.mutable_data<double>();
    if constexpr (kKind == Kind::kUniform)
      FillBlocks(
          generator, n,
          [](const Block& x) {
            return std::array<double, 2>{UnitDouble(x[0], x[1]), UnitDouble(x[2], x[3])};
          },
          to);
    else
      FillBlocks(
          generator, n, [](const Block& x) { return Normal(x); }, to);
    return Status::Ok();
  }
  if (out.dtype() == DType::kF16 && kKind == Kind::kUniform) {
    FillBlocks(
        generator, n,
        [](const Block& x) {
          std::array<float16, 4> made;
          for (size_t i = 0; i < 4; ++i)
            made[i] = static_cast<float16>(static_cast<float>(x[i] & 0x3ffU) / 1024);
          return made;
        },
        out.mutable_data<float16>());
    return Status::Ok();
  }
  if (out.dtype() != DType::kF32)
    return Unimplemented("random numbers of ", Name(out.dtype()), " are not supported");
  float* to = out.mutable_data<float>();
  if constexpr (kKind == Kind::kUniform)
    FillBlocks(
        generator, n,
        [](const Block& x) {
          return std::array<float, 4>{UnitFloat(x[0]), UnitFloat(x[1]), UnitFloat(x[2]),
                                      UnitFloat(x[3])};
        },
        to);
  else if constexpr (kKind == Kind::kNormal)
    FillBlocks(
        generator, n,
        [](const Block& x) {
          const auto a = Normal(x[0], x[1]), b = Normal(x[2], x[3]);
          return std::array<float, 4>{a[0], a[1], b[0], b[1]};
        },
        to);
  else
    FillTruncated(generator, n, to);
  return Status::Ok();
}

// From `low` up to, not including, `high`.
inline Status FillIntegers(const Philox& generator, int64_t low, int64_t high, Tensor& out) {
  if (out.numel() == 0) return Status::Ok();  // whatever the bounds are
  if (low >= high)
    return InvalidArgument("minval is ", low, " and maxval ", high, ", expected a greater one");
  const uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  const int64_t n = out.numel();
  if (out.dtype() == DType::kI64) {
    FillBlocks(
        generator, n,
        [&](const Block& x) {
          const auto at = [&](uint32_t lo, uint32_t hi) {
            const uint64_t raw = lo | static_cast<uint64_t>(hi) << 32;
            return static_cast<int64_t>(static_cast<uint64_t>(low) + raw % range);
          };
          return std::array<int64_t, 2>{at(x[0], x[1]), at(x[2], x[3])};
        },
        out.mutable_data<int64_t>());
  } else {
    FillBlocks(
        generator, n,
        [&](const Block& x) {
          std::array<int32_t, 4> made{};
          for (size_t i = 0; i < 4; ++i)
            made[i] = static_cast<int32_t>(low + static_cast<int64_t>(x[i] % range));
          return made;
        },
        out.mutable_data<int32_t>());
  }
  return Status::Ok();
}

}  // namespace heddle::philox
