// A program as text, as a graph, and as a hash: for dumps, comparisons and tests.
#pragma once

#include <cstdint>
#include <string>

#include "core/programs/ir.h"

namespace heddle::ir {

// One line per operator, with what is known of its variables. Programs that are equal up to the ids
// of their variables give the same text.
std::string ToText(const Program& program);
// The same for Graphviz: operators as nodes, variables as edges, blocks as clusters.
std::string ToDot(const Program& program);
// A hash of everything that a pass can change.
uint64_t Fingerprint(const Program& program);
// A hash of the operator's type and attributes; differs from process to process.
uint64_t AttrFingerprint(const Op& op);
std::string AttrText(const AttrValue& value);

}  // namespace heddle::ir
