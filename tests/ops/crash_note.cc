#include "tests/ops/crash_note.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>

namespace heddle::testing {
namespace {

// A signal handler may only use memory that is there already.
struct Note {
  char text[512];
  std::atomic<size_t> size{0};
};
Note& TheNote() {
  static Note note;
  return note;
}

void Tell(int signal) {
  const Note& note = TheNote();
  [[maybe_unused]] const auto written = write(STDERR_FILENO, note.text, note.size);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

void InstallCrashNotes() {
  TheNote();
  for (const int signal : {SIGSEGV, SIGFPE, SIGABRT, SIGBUS, SIGILL}) std::signal(signal, Tell);
}

CrashNote::CrashNote(const Example& e, const std::string& variant) {
  const std::string text = "\ncrashed in " + NameOf(e) + " (" + e.file + ":" +
                           std::to_string(e.line) + "), " + variant + "\n";
  Note& note = TheNote();
  const size_t size = std::min(text.size(), sizeof(note.text));
  std::memcpy(note.text, text.data(), size);
  note.size = size;
}

CrashNote::~CrashNote() { TheNote().size = 0; }

}  // namespace heddle::testing
