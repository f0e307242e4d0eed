// Passes that users hand in, as passes like any other.
#pragma once

#include "heddle/pass.h"
#include "passes/pass.h"

namespace heddle::passes {

PassDef FromCustom(const CustomPass& custom);

}  // namespace heddle::passes
