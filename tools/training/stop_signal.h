// SIGINT and SIGTERM as a wish to stop.
#pragma once

namespace heddle::tools {

// From now on the first SIGINT or SIGTERM is only noted; the same signal once more ends the
// process.
void CatchStopSignals();
// The signal that was noted, or 0.
int StopSignal();

}  // namespace heddle::tools
