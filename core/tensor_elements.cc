#include <stdexcept>
#include <string>

#include "heddle/tensor.h"

namespace heddle {

void Tensor::CheckSmall(size_t size) const {
  if (data_ == nullptr || numel() == 0) return;
  throw std::invalid_argument("an operand " + shape_.ToString() + " is " +
                              std::string(Name(dtype_)) + ", but is read as elements of " +
                              std::to_string(size) + " bytes");
}

}  // namespace heddle
