// FindCulprit: the operator of the file behind a failure of an operator that the passes made.
//
// The file's operators that lead to the failed one run one after another, as they stand in the
// file, with what was fed to the failed run. Only those that the failed one was made of are looked
// through for NaN and infinities: others were looked through in the failed run.
//
// Ownership: what the program keeps in its scope stays as it is; what would be written is copied.
// Parameters that the failed run has updated already are taken as they are now. Operators with side
// effects do not run again unless a later one reads their outputs. Threads: any, outside admission;
// where the run writes to its scope, with the scope's write_mutex held. Errors: where no culprit is
// found, the failure itself, with the file's operators in its message.
#pragma once

#include "executor/run_resources.h"
#include "executor/run_session.h"

namespace heddle::internal {

// `ran`: the program in which `failure` has its place.
Status FindCulprit(RunResources& resources, const RunCall& call, const ir::Program& ran,
                   const Status& failure);

}  // namespace heddle::internal
