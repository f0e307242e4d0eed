#include "tools/training/stop_signal.h"

#include <signal.h>

#include <initializer_list>

namespace heddle::tools {
namespace {

// A handler has nothing else to write to.
volatile sig_atomic_t noted = 0;

void Note(int signal) { noted = signal; }

}  // namespace

void CatchStopSignals() {
  struct sigaction action {};
  action.sa_handler = Note;
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  for (int signal : {SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
}

int StopSignal() { return noted; }

}  // namespace heddle::tools
