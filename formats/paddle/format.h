// Paddle's programs up to version 2.6 (`.pdmodel`, `__model__`): serialized ProgramDesc messages
// (proto/framework.proto), with parameters in files beside them (formats/paddle/params.h).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "formats/program_source.h"

namespace heddle::paddle {

const formats::Format& ProgramDescFormat();

// The file's bytes without call stacks, which are in the program.
class ProgramBytes : public formats::ProgramSource {
 public:
  explicit ProgramBytes(std::string bytes) : bytes_(std::move(bytes)) {}
  const formats::Format& format() const override { return ProgramDescFormat(); }
  size_t bytes() const override { return bytes_.size(); }
  std::unique_ptr<const formats::PackedProgram> Pack(const ir::Program& program) const override;
  // is_parameter and stop_gradient of its variables.
  Result<formats::TrainingMarks> Marks(const ir::Program& program) const override;
  const std::string& serialized() const { return bytes_; }

 private:
  const std::string bytes_;
};

// Implements Format::Parse.
Result<std::shared_ptr<const formats::ProgramSource>> ParseProgramDesc(std::string_view bytes,
                                                                       ir::ProgramBuilder& builder);
// Implements Format::Write. Slots with variables of sub-blocks are left out
// (core/programs/sub_block_slots.h).
Result<std::string> WriteProgramDesc(const ir::Program& program);

}  // namespace heddle::paddle
