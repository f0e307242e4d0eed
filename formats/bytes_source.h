// The source of a program whose format needs no more of a file than its bytes.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "formats/program_source.h"

namespace heddle::formats {

// Keeps a copy of the file's bytes. A packed program is parsed from them again by the format, so
// that this serves formats whose programs depend on nothing else: no parts, no further files.
class BytesSource : public ProgramSource {
 public:
  // `format` outlives the source.
  BytesSource(const Format& format, std::string_view bytes) : format_(format), bytes_(bytes) {}

  const Format& format() const override { return format_; }
  size_t bytes() const override { return bytes_.size(); }
  std::unique_ptr<const PackedProgram> Pack(const ir::Program& program) const override;
  const std::string& text() const { return bytes_; }

 private:
  const Format& format_;
  const std::string bytes_;
};

}  // namespace heddle::formats
