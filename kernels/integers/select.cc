#include "kernels/integers/select.h"

#include <stdexcept>

#include "core/interrupts.h"
#include "core/machine.h"
#include "core/memory/lazy_buffer.h"

namespace heddle {
namespace {

#ifdef HEDDLE_WITH_ONEDNN
constexpr bool kIntegersWithOnednn = true;
#else
constexpr bool kIntegersWithOnednn = false;
#endif

bool MultipliesBytes(const Machine& m) {
  // With AVX2 alone oneDNN adds pairs of products in 16 bits, which saturate.
  return kIntegersWithOnednn && m.has(kAvx512 | kAvx512Vnni);
}
bool IsEmpty(const ConvGeometry& g) {
  return g.batch * g.in_c * g.in_size() == 0 || g.out_c * g.out_size() == 0;
}
// Only the order matters: where oneDNN covers a case it is several times as fast.
template <typename Case>
double First(const Case&, const Machine&) {
  return 1;
}
template <typename Case>
double Second(const Case&, const Machine&) {
  return 2;
}
template <typename Case>
std::string DescribeOnednnInt8(const Case&, const Machine&) {
  return "onednn_int8";
}
template <typename Case>
std::string DescribeWords(const Case&, const Machine&) {
  return "words";
}

constexpr IntegerConvImplementation kConvImplementations[] = {
    {"onednn_int8",
     [](const IntegerConvCase& c, const Machine& m) { return MultipliesBytes(m) && !IsEmpty(c.g); },
     First<IntegerConvCase>, DescribeOnednnInt8<IntegerConvCase>, MakeOnednnIntegerConv},
    {"words", [](const IntegerConvCase&, const Machine&) { return true; }, Second<IntegerConvCase>,
     DescribeWords<IntegerConvCase>,
     [](const PrepareContext&, const IntegerConvCase& c) { return MakeWordConv(c); }},
};
constexpr IntegerGemmImplementation kGemmImplementations[] = {
    {"onednn_int8",
     [](const IntegerGemmCase& c, const Machine& m) {
       return MultipliesBytes(m) && c.g.batch * c.g.one.work() > 0 && !c.g.sums;
     },
     First<IntegerGemmCase>, DescribeOnednnInt8<IntegerGemmCase>, MakeOnednnIntegerGemm},
    {"words", [](const IntegerGemmCase& c, const Machine&) { return !c.g.sums; },
     Second<IntegerGemmCase>, DescribeWords<IntegerGemmCase>,
     [](const PrepareContext&, const IntegerGemmCase& c) { return MakeWordGemm(c); }},
};

class NamedIntegers final : public IntegerRunner {
 public:
  explicit NamedIntegers(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_; }
  void Run(const KernelContext&, const IntegerOperands&) const override {
    throw std::logic_error("this plan is for a machine that was only described");
  }

 private:
  const std::string name_;
};

template <typename Case, size_t kCount>
Family<Case, IntegerRunner> FamilyOf(std::string_view name,
                                     const Implementation<Case, IntegerRunner> (&list)[kCount]) {
  return {name, list,
          [](std::string text) -> std::unique_ptr<IntegerRunner> {
            return std::make_unique<NamedIntegers>(std::move(text));
          },
          [](const Case&) -> std::string { return ""; },
          [](const Case&) -> std::unique_ptr<Trial<IntegerRunner>> { return nullptr; }};
}

Status CheckBytes(DType dtype, const char* what) {
  if (dtype == DType::kU8 || dtype == DType::kI8) return Status::Ok();
  return InvalidArgument(what, " is ", Name(dtype), ", expected uint8 or int8");
}

}  // namespace

std::span<const IntegerConvImplementation> IntegerConvImplementations() {
  return kConvImplementations;
}
std::span<const IntegerGemmImplementation> IntegerGemmImplementations() {
  return kGemmImplementations;
}

Result<std::unique_ptr<IntegerRunner>> MakeIntegerConv(const PrepareContext* ctx,
                                                       const IntegerConvCase& c) {
  static const auto family = FamilyOf("integer_conv", kConvImplementations);
  HEDDLE_RETURN_IF_ERROR(CheckBytes(c.x, "the image"));
  HEDDLE_RETURN_IF_ERROR(CheckBytes(c.w.dtype(), "the filter"));
  ConvGeometry last = c.g;
  last.channels_last = true;
  const IntegerConvCase inner{last, c.x, c.x_shifted, c.w, c.w_zero, c.result};
  std::unique_ptr<IntegerRunner> runner;
  if (ctx == nullptr) {
    runner = MakeWordConv(inner);
  } else {
    HEDDLE_ASSIGN_OR_RETURN(runner, MakeBest(*ctx, family, inner));
  }
  return c.g.channels_last ? std::move(runner) : WithChannelsFirst(c, std::move(runner));
}

Result<std::unique_ptr<IntegerRunner>> MakeIntegerGemm(const PrepareContext* ctx,
                                                       const IntegerGemmCase& c) {
  static const auto family = FamilyOf("integer_gemm", kGemmImplementations);
  HEDDLE_RETURN_IF_ERROR(CheckBytes(c.x, "the first factor"));
  HEDDLE_RETURN_IF_ERROR(CheckBytes(c.y, "the second factor"));
  return ctx == nullptr ? MakeWordGemm(c) : MakeBest(*ctx, family, c);
}

std::vector<int64_t> CenteredSums(const Tensor& w, std::span<const int32_t> zero, int axis) {
  const BorrowedContents contents(w);
  const Tensor& t = contents.tensor();
  const int64_t n = w.dim(axis), inner = w.shape().Product(axis + 1, w.rank());
  const int64_t outer = w.shape().Product(0, axis);
  std::vector<int64_t> sums(static_cast<size_t>(n));
  const auto* const bytes = static_cast<const uint8_t*>(t.raw());
  const bool is_signed = w.dtype() == DType::kI8;
  for (int64_t o = 0; o < outer; ++o)
    for (const int64_t c : Watched(n)) {
      int64_t sum = 0;
      for (int64_t i = 0; i < inner; ++i) {
        const uint8_t b = bytes[(o * n + c) * inner + i];
        sum += is_signed ? int64_t{static_cast<int8_t>(b)} : int64_t{b};
      }
      const int64_t z = zero.empty() ? 0 : zero[zero.size() == 1 ? 0 : static_cast<size_t>(c)];
      sums[static_cast<size_t>(c)] += sum - inner * z;
    }
  return sums;
}

}  // namespace heddle
