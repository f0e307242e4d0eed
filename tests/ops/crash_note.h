// Says what was running when the process dies of a signal: a crash of one example would else only
// name its whole file.
#pragma once

#include <string>

#include "tests/ops/example.h"

namespace heddle::testing {

// Installs the handlers. Once, at the start of the process.
void InstallCrashNotes();

// While it lives, a crash prints "crashed in OP / TITLE (FILE:LINE), VARIANT". One at a time.
class CrashNote {
 public:
  CrashNote(const Example& example, const std::string& variant);
  ~CrashNote();
  CrashNote(const CrashNote&) = delete;
  CrashNote& operator=(const CrashNote&) = delete;
};

}  // namespace heddle::testing
