// ContentsError is thrown if the contents of a parameter cannot be had by a caller that returns no
// Status, such as a kernel that packs it. The code that catches it reports the Status.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "heddle/status.h"
#include "heddle/tensor.h"

namespace heddle {

class ContentsError : public std::runtime_error {
 public:
  // `of`: the buffer whose contents are missing; used only for comparison.
  ContentsError(Status status, const Buffer* of)
      : std::runtime_error(std::string(status.message())), status_(std::move(status)), of_(of) {}

  const Status& status() const { return status_; }
  bool IsAbout(const Tensor& t) const { return t.buffer().get() == of_; }

 private:
  Status status_;
  const Buffer* of_;
};

}  // namespace heddle
