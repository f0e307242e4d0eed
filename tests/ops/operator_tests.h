// The tests of all operators, one per source file below kernels/.
#pragma once

#include <string>

namespace heddle::testing {

// Adds them to GoogleTest: FAMILY.FILE. With an operator, only its file's, which then runs that
// operator's examples alone; false when there is no such operator.
bool RegisterOperatorTests(const std::string& op);
// All changes of one thing (tests/ops/one_change.h), a test for each source file:
// changes.FAMILY.FILE. The tests above draw some of them.
void RegisterChanges();
// `count` examples drawn from all operators, grown: those fail that compute on a megabyte without a
// look for interrupts. Some have little to do there: a list to read, no gate.
void RegisterGrown(int count);

}  // namespace heddle::testing
