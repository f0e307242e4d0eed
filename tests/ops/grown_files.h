// Grown examples as files, for programs that end runs from outside (scripts/sweep_interrupts.py).
#pragma once

#include <string>

namespace heddle::testing {

// Writes the operator's longest-running grown example to the directory `to`: program.pdmodel, a
// .npy file for each feed, and feeds.txt with a line "NAME FILE OFFSETS" for each and a line
// "fetch NAME" for each output. Examples grow as for PrintLooks. False: no example that consists of
// arrays takes `ms`.
bool WriteGrown(const std::string& op, double ms, int64_t bytes, const std::string& to);

}  // namespace heddle::testing
