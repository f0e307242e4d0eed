#include "executor/source_program.h"

#include <xxhash.h>

#include <utility>

#include "core/error.h"

namespace heddle::internal {
namespace {

bool IsThat(const FileBytes& bytes, uint64_t hash) {
  return XXH64(bytes.view().data(), bytes.view().size(), 0) == hash;
}

// The file that the program was read from, if it is there as it was. Where most of it is what
// nobody holds anyway (call stacks), looking costs more than it saves.
FileHandle FileOf(const ir::Program& program) {
  constexpr size_t kLeast = 16 << 10, kMostTimes = 4;
  if (!program.source || program.source->size() < kLeast) return {};
  auto file = FileHandle::Open(program.name);
  if (!file.ok() || file->size() > kMostTimes * program.source->size()) return {};
  const auto bytes = file->ReadAll();
  return bytes.ok() && IsThat(*bytes, program.hash) ? *std::move(file) : FileHandle();
}

}  // namespace

Result<std::shared_ptr<const ir::Program>> SourceProgram::Get() const {
  if (whole_) return whole_;
  std::shared_ptr<ir::Program> parsed;
  if (file_) {
    HEDDLE_ASSIGN_OR_RETURN(const FileBytes bytes, file_.ReadAll());
    if (!IsThat(bytes, hash_))
      return DataLoss(name_, " was written to while the program in it was still needed");
    HEDDLE_ASSIGN_OR_RETURN(parsed, ir::ParseProgram(bytes.view(), name_));
  } else {
    HEDDLE_ASSIGN_OR_RETURN(parsed, ir::Unpack(packed_));
  }
  return std::shared_ptr<const ir::Program>(std::move(parsed));
}

void SourceProgram::LetGo() {
  if (!whole_ || !whole_->as_parsed()) return;
  file_ = FileOf(*whole_);
  if (!file_) packed_ = ir::Pack(*whole_);
  whole_ = nullptr;
}

}  // namespace heddle::internal
