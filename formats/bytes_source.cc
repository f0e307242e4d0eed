#include "formats/bytes_source.h"

#include <utility>

#include "core/error.h"

namespace heddle::formats {
namespace {

class InBytes : public PackedProgram {
 public:
  // Precondition: the program's source is a BytesSource.
  explicit InBytes(const ir::Program& program)
      : name_(program.name), hash_(program.hash), source_(program.source) {}
  Result<std::shared_ptr<ir::Program>> Unpack() const override {
    ir::ProgramBuilder builder(name_, hash_);
    const std::string& bytes = static_cast<const BytesSource&>(*source_).text();
    const auto parsed = source_->format().Parse({.bytes = bytes, .builder = builder});
    HEDDLE_RETURN_IF_ERROR(parsed.status());
    return std::move(builder).Finish(source_);  // the same bytes, not the copy of them
  }

 private:
  const std::string name_;
  const uint64_t hash_;
  const std::shared_ptr<const ProgramSource> source_;
};

}  // namespace

std::unique_ptr<const PackedProgram> BytesSource::Pack(const ir::Program& program) const {
  return std::make_unique<InBytes>(program);
}

}  // namespace heddle::formats
