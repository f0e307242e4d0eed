#include "core/machine.h"

namespace heddle {

// Each family's list of implementations stands in its select.cc.
std::span<const std::string_view> ImplementationFamilies() {
  static constexpr std::string_view kFamilies[] = {"conv", "conv_chain", "gemm"};
  return kFamilies;
}

}  // namespace heddle
