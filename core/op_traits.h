// Traits beside those of OpDef that a few operators have.
#pragma once

namespace heddle {

// Operators that give variables one storage: a later write to one of the variables changes the
// others. Their kernels copy; what follows from the sharing is made explicit before the passes run
// (passes/storage_aliases.h).
//
// For every View(in, out) of the definition, each variable of `out` has the storage of the variable
// of `in` at the same place.
inline constexpr unsigned kSharesStorage = 1u << 16;
// The variables of the list output lie, one behind the other, in the variable of the other output.
// Attributes of the operator storage_layout, where it has them, say where each begins.
inline constexpr unsigned kSharesParts = 1u << 17;

// Copies between places, which programs may have and plans make views. One with both goes by its
// attribute dst_place_type: 0 and 2 (memory of the host that a device has pinned) are the host.
inline constexpr unsigned kToHost = 1u << 18;
inline constexpr unsigned kToDevice = 1u << 19;

// Operands that no block of a file declares are variables of the scope: queues, which the caller
// puts there.
inline constexpr unsigned kScopeOperands = 1u << 20;

}  // namespace heddle
