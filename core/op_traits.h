// Traits of a few operators, in addition to those of OpDef.
#pragma once

namespace heddle {

// The operator makes variables share storage: a later write to one of them changes the others. Its
// kernel copies; what follows from the sharing is made explicit before the passes run
// (passes/storage_aliases.h).
//
// For every View(in, out) of the definition, each variable of `out` has the storage of the variable
// of `in` at the same position.
inline constexpr unsigned kSharesStorage = 1u << 16;
// The variables of the list output lie one after another in the variable of the other output. The
// attributes of the operator storage_layout, if present, say where each begins.
inline constexpr unsigned kSharesParts = 1u << 17;

// A copy between places that programs may contain and plans turn into a view. With both traits, the
// attribute dst_place_type decides: 0 and 2 (pinned host memory) mean the host.
inline constexpr unsigned kToHost = 1u << 18;
inline constexpr unsigned kToDevice = 1u << 19;

// Operands that no block of a file declares are variables of the scope: queues, which the caller
// puts there.
inline constexpr unsigned kScopeOperands = 1u << 20;

}  // namespace heddle
