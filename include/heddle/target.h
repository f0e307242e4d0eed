// HardwareTarget: which operators a piece of hardware, or a library, takes, by patterns, and the
// limits of their groups. docs/partition.md describes the file.
//
// Ownership: copies share one description. Threads: any. Errors: kNotFound, kInvalidArgument,
// kDataLoss, one line that names the file and the place in it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "heddle/status.h"

namespace heddle {

namespace partition {
struct Target;
}

class HardwareTarget {
 public:
  static Result<HardwareTarget> Load(const std::string& path);
  // `name` precedes error messages.
  static Result<HardwareTarget> Parse(std::string_view json, const std::string& name);

  const std::string& name() const;
  const std::string& text() const { return *text_; }  // of its file
  const partition::Target& impl() const { return *impl_; }

 private:
  HardwareTarget(std::shared_ptr<const partition::Target> impl,
                 std::shared_ptr<const std::string> text)
      : impl_(std::move(impl)), text_(std::move(text)) {}
  std::shared_ptr<const partition::Target> impl_;
  std::shared_ptr<const std::string> text_;
};

}  // namespace heddle
