// Makes the sharing of a storage by several variables (core/op_traits.h) explicit: after an
// operator that writes one of them the storage is written, and before an operator that reads
// another one that variable is read from the storage. Later stages need not know of storages: every
// variable has its own value, the operands show all dependencies, and the plan turns these copies
// into views where nothing but names differ.
//
//   s = share_data(t)            s = share_data(t)
//   s = scale(s)          ->     h = assign(t)
//   y = relu(t)                  s = scale(s)
//                                h = write_storage(h, s)
//                                t = read_storage(h, t)
//                                y = relu(t)
//
// As in Paddle, a variable joins the storage when the operator runs, and leaves it when it is given
// another one. Blocks of loops and branches continue the storages of the outer block. If a block
// makes outer variables share a storage, they share it afterwards if the block ran; it is an error
// if one of them is then written and another one is used. A variable that shares its storage can be
// given another one in the same block only.
#pragma once

#include <memory>
#include <set>
#include <span>
#include <string_view>

#include "core/programs/ir.h"
#include "heddle/status.h"

namespace heddle::passes {

// Returns `program` itself if no variable is written that shares its storage with one read later.
// `kept`: variables that are read after the program; those that outlive a run are, too. Variables
// keep their ids. kUnimplemented: blocks that write one variable of a storage and use another one,
// if their operator does more than run them, has a gradient, or is one of several that run the
// block; or a block that gives another storage to a variable that shares one outside.
Result<std::shared_ptr<const ir::Program>> MakeAliasesExplicit(
    const std::shared_ptr<const ir::Program>& program, const std::set<ir::VarId>& kept);

// The operators that this adds and Paddle lacks.
std::span<const std::string_view> StorageOps();

}  // namespace heddle::passes
