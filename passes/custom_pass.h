// Turns a user's pass into a PassDef.
#pragma once

#include <memory>

#include "heddle/pass.h"
#include "passes/pass.h"

namespace heddle::passes {

PassDef FromCustom(const CustomPass& custom);

// A ProgramEditor with what it needs. Program and context live longer.
class OwnedEditor {
 public:
  OwnedEditor(ir::Program& program, PassContext& context);
  ~OwnedEditor();
  ProgramEditor& editor() { return editor_; }

 private:
  const std::unique_ptr<internal::EditorState> state_;
  ProgramEditor editor_;
};

}  // namespace heddle::passes
