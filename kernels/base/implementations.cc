#include "kernels/base/implementations.h"

namespace heddle {
namespace {

std::string Joined(const std::vector<std::string>& names, const char* between) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : between) + name;
  return text;
}

}  // namespace

// Each family's list of implementations stands in its select.cc.
std::span<const std::string_view> ImplementationFamilies() {
  static constexpr std::string_view kFamilies[] = {"conv", "conv_chain", "gemm", "integer_conv",
                                                   "integer_gemm"};
  return kFamilies;
}

Tensor TrialOperand(int64_t elements) {
  Tensor t = Tensor::Empty(DType::kF32, {std::max<int64_t>(1, elements)});
  if (!t.initialized()) throw std::bad_alloc();
  for (int64_t i = 0; i < t.numel(); ++i)
    t.mutable_data<float>()[i] = static_cast<float>(i % 17 - 8) / 8 + 0.01f;
  return t;
}

Status CannotForce(std::string_view family, const std::vector<std::string>& wanted,
                   const std::vector<std::string>& names) {
  return InvalidArgument("force: ", family, "=", Joined(wanted, ":"),
                         " does not cover this case; implementations that do are ",
                         Joined(names, ", "));
}

}  // namespace heddle
