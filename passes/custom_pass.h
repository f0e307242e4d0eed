// Turns a user's pass into a PassDef.
#pragma once

#include "heddle/pass.h"
#include "passes/pass.h"

namespace heddle::passes {

PassDef FromCustom(const CustomPass& custom);

}  // namespace heddle::passes
