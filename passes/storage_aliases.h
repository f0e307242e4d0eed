// Variables that share one storage (core/op_traits.h), made explicit: behind an operator that
// writes to one of them the storage is written to, and before an operator that reads another one
// the variable is read from the storage anew. What comes behind needs to know nothing of storages:
// every variable has its own value, passes and schedules see all dependencies in the operands, and
// where nothing but names differ the plan makes these copies views.
//
//   s = share_data(t)            s = share_data(t)
//   s = scale(s)          ->     h = assign(t)
//   y = relu(t)                  s = scale(s)
//                                h = write_storage(h, s)
//                                t = read_storage(h, t)
//                                y = relu(t)
//
// As in Paddle, a variable joins the storage when the operator runs, and leaves it when it is given
// another one. Blocks of loops and branches go on with the storages of the outer block. Sharing of
// outer variables that begins in a block lasts if the block ran; it is an error where a write to
// one of them behind that would change another one that is used then. A variable that shares its
// storage may be given another one in the same block only.
#pragma once

#include <memory>
#include <set>
#include <span>
#include <string_view>

#include "core/programs/ir.h"
#include "heddle/status.h"

namespace heddle::passes {

// `program` itself where no variable is written that shares its storage with one read later.
// `kept`: variables that are read when the program has ended; those that outlive a run are, too.
// Variables keep their ids. Errors (kUnimplemented): an operator that does more than to run a
// block, or that a gradient goes back through, has blocks that write to one variable of a storage
// and use another one, or one of an outer block; several operators run such a block; a block gives
// another storage to a variable that shares one outside.
Result<std::shared_ptr<const ir::Program>> MakeAliasesExplicit(
    const std::shared_ptr<const ir::Program>& program, const std::set<ir::VarId>& kept);

// Operators that this makes and Paddle lacks.
std::span<const std::string_view> StorageOps();

}  // namespace heddle::passes
