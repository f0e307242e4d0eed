// The tests of all operators, one per source file below kernels/.
#pragma once

#include <string>

namespace heddle::testing {

// Adds them to GoogleTest: FAMILY.FILE. With an operator, only its file's, which then runs that
// operator's examples alone; false when there is no such operator.
bool RegisterOperatorTests(const std::string& op);
// Prints what no example shows (tests/ops/shown.h), a line each: OPERATOR WHAT OF.
void PrintGaps();
// All changes of one thing (tests/ops/one_change.h), a test for each source file:
// changes.FAMILY.FILE. The tests above draw some of them.
void RegisterChanges();
// The examples of all operators, grown, a test for each source file: grown_FAMILY.FILE. Those fail
// that compute long without a look for interrupts; the last test prints the ten longest. The tests
// above draw some of them.
void RegisterGrown();

}  // namespace heddle::testing
