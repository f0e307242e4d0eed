#include "executor/source_program.h"

#include <utility>

#include "core/error.h"

namespace heddle::internal {

Result<std::shared_ptr<const ir::Program>> SourceProgram::Get() const {
  if (whole_) return whole_;
  HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<ir::Program> parsed, packed_->Unpack());
  return std::shared_ptr<const ir::Program>(std::move(parsed));
}

void SourceProgram::LetGo() {
  if (!whole_ || !whole_->as_parsed()) return;
  packed_ = formats::Pack(*whole_);
  whole_ = nullptr;
}

}  // namespace heddle::internal
