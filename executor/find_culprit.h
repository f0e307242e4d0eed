// FindCulprit: finds the operator of the file behind a failure of an operator that passes made.
//
// The file's operators that the failed one depends on run one after another, without passes, with
// the feeds of the failed run. Only those from which the failed one was made are checked for NaN
// and infinity; the others were checked in the failed run.
//
// Ownership: the program's variables in the scope stay unchanged; those that would be written are
// copied. Parameters that the failed run has already updated are taken as they are now. Operators
// with side effects do not run again unless a later one reads their outputs. Threads: any, outside
// admission; with the scope's write_mutex held if the run writes to its scope. Errors: if no
// culprit is found, the result is the failure itself, with the file's operators in its message.
#pragma once

#include "executor/run_resources.h"
#include "executor/run_session.h"

namespace heddle::internal {

// `ran`: the program to which the location of `failure` refers.
Status FindCulprit(RunResources& resources, const RunCall& call, const ir::Program& ran,
                   const Status& failure);

}  // namespace heddle::internal
