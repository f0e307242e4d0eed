// Packs programs whose memory is given back. The file from which one was read is the smallest form.
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "formats/program_source.h"

namespace heddle::formats {
namespace {

class InFile : public PackedProgram {
 public:
  InFile(FileHandle file, const ir::Program& program)
      : file_(std::move(file)),
        name_(program.name),
        hash_(program.hash),
        format_(program.source->format()) {}
  Result<std::shared_ptr<ir::Program>> Unpack() const override {
    HEDDLE_ASSIGN_OR_RETURN(const FileBytes bytes, file_.ReadAll());
    if (format_.Hash(bytes.view()) != hash_)
      return DataLoss(name_, " was written to while the program in it was still needed");
    return ParseProgram(bytes.view(), name_, /*is_file=*/true);
  }

 private:
  const FileHandle file_;
  const std::string name_;
  const uint64_t hash_;
  const Format& format_;
};

// The file that the program was read from, if it is unchanged. Files much larger than what the
// program keeps are not read again: they consist mostly of call stacks, and reading would cost more
// than it saves.
FileHandle FileOf(const ir::Program& program) {
  constexpr size_t kLeast = 16 << 10, kMostTimes = 4;
  const size_t held = program.source->bytes();
  if (held < kLeast) return {};
  auto file = FileHandle::Open(program.name);
  if (!file.ok() || file->size() > kMostTimes * held) return {};
  const auto bytes = file->ReadAll();
  const bool same = bytes.ok() && program.source->format().Hash(bytes->view()) == program.hash;
  return same ? *std::move(file) : FileHandle();
}

}  // namespace

std::unique_ptr<const PackedProgram> Pack(const ir::Program& program) {
  if (FileHandle file = FileOf(program); file)
    return std::make_unique<InFile>(std::move(file), program);
  return program.source->Pack(program);
}

}  // namespace heddle::formats
