// The suite over all operators:
// heddle_ops_tests [--op=NAME | --changes | --grown] [GoogleTest's options]
//
// One test per source file below kernels/, called FAMILY.FILE, runs the examples of its operators;
// --op runs those of one operator alone. --changes runs every change of one thing
// (tests/ops/one_change.h), minutes of work, instead of some of them. --grown has the
// examples of all grow, lists those that compute long without a look for interrupts, and the
// longest times.
//
// heddle_ops_tests --looks=OP [MS] [MIB] prints how long the operator computes without a look for
// interrupts, with operands grown until a run takes MS or they take MIB
// (scripts/sweep_deadlines.py). --write-grown=OP MS MIB DIR writes the grown operator as files
// (scripts/sweep_interrupts.py). --gaps prints what no example shows (tests/ops/shown.h).
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "tests/ops/crash_note.h"
#include "tests/ops/grown_files.h"
#include "tests/ops/looks.h"
#include "tests/ops/operator_tests.h"

int main(int argc, char** argv) {
  if (argc >= 2 && std::strncmp(argv[1], "--looks=", 8) == 0) {
    heddle::testing::PrintLooks(argv[1] + 8, argc > 2 ? std::atof(argv[2]) : 150,
                                (argc > 3 ? std::atoll(argv[3]) : 512) << 20, 1);
    return 0;
  }
  if (argc == 5 && std::strncmp(argv[1], "--write-grown=", 14) == 0)
    return heddle::testing::WriteGrown(argv[1] + 14, std::atof(argv[2]), std::atoll(argv[3]) << 20,
                                       argv[4])
               ? 0
               : 1;
  if (argc == 2 && std::strcmp(argv[1], "--gaps") == 0) {
    heddle::testing::PrintGaps();
    return 0;
  }
  ::testing::InitGoogleTest(&argc, argv);
  std::string op;
  if (argc == 2 && std::strncmp(argv[1], "--op=", 5) == 0) op = argv[1] + 5;
  const bool changes = argc == 2 && std::strcmp(argv[1], "--changes") == 0;
  const bool grown = argc >= 2 && std::strcmp(argv[1], "--grown") == 0;
  if (argc > 1 && op.empty() && !changes && !grown) {
    std::fprintf(stderr,
                 "heddle_ops_tests [--op=NAME | --changes | --grown] [GoogleTest's options]\n");
    return 2;
  }
  heddle::testing::InstallCrashNotes();
  if (grown) {
    heddle::testing::RegisterGrown();
    return RUN_ALL_TESTS();
  }
  if (changes) {
    heddle::testing::RegisterChanges();
    return RUN_ALL_TESTS();
  }
  if (!heddle::testing::RegisterOperatorTests(op)) {
    std::fprintf(stderr, "%s has no operator '%s'\n", "heddle", op.c_str());
    return 2;
  }
  return RUN_ALL_TESTS();
}
