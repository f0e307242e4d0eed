// The hash of a program that has no file: equal programs have equal hashes.
#pragma once

#include <cstdint>

#include "core/programs/ir.h"

namespace heddle::builder {

uint64_t DigestOf(const ir::Program& program);

}  // namespace heddle::builder
