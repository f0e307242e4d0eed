// Random numbers that their seeds alone decide: Philox 4×32-10, as TensorFlow runs it.
#include <cmath>

#include "kernels/index/index_args.h"
#include "kernels/onnx/operands.h"

namespace heddle {
namespace {

using Block = std::array<uint32_t, 4>;

class Philox {
 public:
  Philox(const Block& counter, uint32_t key0, uint32_t key1)
      : counter_(counter), key0_(key0), key1_(key1) {}

  // Key and counter of an operator, mixed from its two seeds.
  static Philox OfSeeds(uint64_t seed0, uint64_t seed1) {
    const Block counter{static_cast<uint32_t>(seed0), static_cast<uint32_t>(seed0 >> 32),
                        static_cast<uint32_t>(seed1), static_cast<uint32_t>(seed1 >> 32)};
    const Block mixed = Philox(counter, 0x3ec8f720, 0x02461e29).Next();
    return {{0, 0, mixed[2], mixed[3]}, mixed[0], mixed[1]};
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
float UnitFloat(uint32_t x) {
  const uint32_t bits = (x & 0x7fffffU) | 127U << 23;
  float f = 0;
  std::memcpy(&f, &bits, sizeof(f));
  return f - 1;
}
double UnitDouble(uint32_t high, uint32_t low) {
  const uint64_t bits = static_cast<uint64_t>(high & 0xfffffU) << 32 | low | uint64_t{1023} << 52;
  double d = 0;
  std::memcpy(&d, &bits, sizeof(d));
  return d - 1;
}

constexpr double kPi = 3.14159265358979323846;

// Two normal numbers of two uniform ones.
std::array<float, 2> Normal(uint32_t a, uint32_t b) {
  const float u = std::max(UnitFloat(a), 1.0e-7F);
  const float v = static_cast<float>(2 * kPi) * UnitFloat(b), r = std::sqrt(-2 * std::log(u));
  return {std::sin(v) * r, std::cos(v) * r};
}
std::array<double, 2> Normal(const Block& x) {
  const double u = std::max(UnitDouble(x[0], x[1]), 1.0e-7);
  const double v = 2 * kPi * UnitDouble(x[2], x[3]), r = std::sqrt(-2 * std::log(u));
  return {std::sin(v) * r, std::cos(v) * r};
}

Result<Philox> GeneratorOf(const KernelContext& ctx) {
  const Tensor& seed = ctx.In("seed");
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(seed.dtype(), "seed"));
  if (seed.numel() != 2)
    return InvalidArgument("seed has shape ", seed.shape().ToString(), ", expected two elements");
  return Philox::OfSeeds(static_cast<uint64_t>(IntAt(seed, 0)),
                         static_cast<uint64_t>(IntAt(seed, 1)));
}

Status RandomShape(ShapeContext& ctx) {
  const DType dtype = DTypeFromProto(ctx.Int("dtype"));
  if (!Known(ctx, "shape")) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts dims, IntsIn(ctx, "shape"));
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims, "shape"));
  ctx.SetOut("output", shape, dtype);
  return Status::Ok();
}

// Calls fn(place, value) for n values of blocks that give `Each` values.
template <typename Values, typename T>
void FillBlocks(Philox generator, int64_t n, Values values, T* to) {
  for (int64_t i = 0; i < n;) {
    const auto some = values(generator.Next());
    for (size_t k = 0; k < some.size() && i < n; ++k) to[i++] = some[k];
  }
}

enum class Kind : uint8_t { kUniform, kNormal, kTruncated };

// Numbers within two deviations. Each group of four starts at blocks of its own.
void FillTruncated(const Philox& base, int64_t n, float* to) {
  constexpr int64_t kGroup = 4, kBlocksForGroup = 256;
  for (int64_t g = 0; g * kGroup < n; ++g) {
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
Status Random(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const Philox generator, GeneratorOf(ctx));
  Tensor& out = ctx.Out("output");
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

Status IntegerShape(ShapeContext& ctx) {
  if (!Known(ctx, "shape")) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts dims, IntsIn(ctx, "shape"));
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims, "shape"));
  ctx.SetOut("output", shape, ctx.InDType("minval"));
  return Status::Ok();
}

Status Integers(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const Philox generator, GeneratorOf(ctx));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t low, IntIn(ctx, "minval", 0));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t high, IntIn(ctx, "maxval", 0));
  Tensor& out = ctx.Out("output");
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

void DefineRandom(OpDef& op, const char* doc, KernelFn fn) {
  op.Doc(doc).Input("shape", kShapeValue).Input("seed").Output("output").Attr("dtype", 5);
  op.InferShape(RandomShape).KernelKey("seed").Kernel({DType::kI32, DType::kI64}, fn);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_stateless_random_uniform) {
  DefineRandom(op, "numbers in [0, 1) that seed decides", Random<Kind::kUniform>);
}
HEDDLE_OP(tf_stateless_random_normal) {
  DefineRandom(op, "normal numbers that seed decides", Random<Kind::kNormal>);
}
HEDDLE_OP(tf_stateless_truncated_normal) {
  DefineRandom(op, "normal numbers within two deviations that seed decides",
               Random<Kind::kTruncated>);
}
HEDDLE_OP(tf_stateless_random_uniform_int) {
  op.Doc("integers from minval up to maxval that seed decides").Input("shape", kShapeValue);
  op.Input("seed").Input("minval").Input("maxval").Output("output").InferShape(IntegerShape);
  op.KernelKey("minval").Kernel({DType::kI32, DType::kI64}, Integers);
}

HEDDLE_EXAMPLES(tf_stateless_random_uniform, R"(
example recorded case 1
attr dtype INT 5
attr Tseed INT 2
in shape int32 [2] 2 4
in seed int32 [2] 4093 9367
out output float32 [2, 4] 0.11821985 0.6406137 0.6726004 0.10700798 0.120547295 0.2294116 0.8270637
  0.76640606
)")

HEDDLE_EXAMPLES(tf_stateless_random_normal, R"(
example recorded case 1
attr Tseed INT 2
in shape int32 [1] 7
in seed int32 [2] 228 7212
out output float32 [7] 1.3136238 -0.5418512 2.0257082 -1.0957829 0.9962516 0.6178223 -0.22643271
)")

HEDDLE_EXAMPLES(tf_stateless_truncated_normal, R"(
example recorded case 1
attr Tseed INT 2
in shape int32 [3] 5 7 4
in seed int32 [2] 6689 6985
out output float32 [5, 7, 4] -1.0057392 0.100627065 0.2662648 1.9206564 -1.1305736 -1.0392268
  -0.8627054 0.82887 -0.9948698 0.8424525 0.3608623 0.62902606 0.13925621 0.054765057 1.1055067
  0.036786877 1.7528285 1.1352484 -0.2094282 -1.248618 0.9953633 -0.536078 0.5588345 -1.9748993
  1.7240319 0.6386692 -1.3360765 -0.99772525 0.44167814 -1.7193632 0.26055175 -0.8194837 -0.07066846
  -0.34198627 -0.3000629 -0.804208 -0.7312183 -0.44513413 0.6281953 0.35966817 -1.4681984
  -0.41247693 -1.181181 -0.1013731 -0.41315034 -0.2419396 0.91063815 -0.0016567227 -0.046220247
  0.37537095 -0.29273784 1.4463515 0.044244822 1.1080757 0.45251432 0.95540184 -0.61643404 0.2984896
  1.2560246 0.28468552 0.30256903 0.6083302 0.94835925 -0.7159546 0.36516437 -0.6482196 -0.39525905
  0.2656469 -0.26649696 0.4526287 0.3120567 0.0642396 0.04107092 1.3471696 -1.6714582 0.015893742
  -0.5836825 -1.6097287 1.0551808 1.7091862 1.5096672 1.0227427 1.2733387 0.17003924 0.3008298
  0.017231662 -0.05943935 -0.4424882 0.577044 -0.8305639 -0.99107784 0.070277564 0.1543811
  0.43615493 -0.96192884 0.29823574 0.75462586 1.7419919 -0.11610562 0.31571263 -0.030780068
  -0.67486537 0.5821835 0.14299273 -0.0833507 0.87166595 0.8999269 0.648449 -0.20278133 0.5475946
  0.049917016 -0.5051949 -0.14953543 0.9259554 -0.7228451 0.47288647 -0.014763949 -1.3172808
  -0.055853028 1.2895577 0.15214355 -0.21945216 -0.9582336 -0.8999075 1.2747315 -0.6520086 0.5092391
  0.1678754 1.3815448 0.58655936 -1.1475108 -0.5689882 1.1969153 1.1405959 -1.5471241 -0.075416155
  -1.5699071 0.306789 0.27125943 -0.23293783
)")

HEDDLE_EXAMPLES(tf_stateless_random_uniform_int, R"(
example recorded case 1
dtypes none: wider integers take more bits
attr dtype INT 2
attr Tseed INT 2
in shape int32 [2] 3 5
in seed int32 [2] 8559 833
in minval int32 [] -3
in maxval int32 [] 17
out output int32 [3, 5] 13 9 -3 16 16 0 9 4 15 11 14 6 2 -1 -3
)")
