// A program's hash where there is no file to hash: equal programs have equal ones.
#pragma once

#include <cstdint>

#include "core/programs/ir.h"

namespace heddle::builder {

uint64_t DigestOf(const ir::Program& program);

}  // namespace heddle::builder
