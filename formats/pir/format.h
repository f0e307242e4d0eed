// Paddle 3's programs (`inference.json`, PIR), with parameters in one file beside them, in the
// layout of Paddle 2 (formats/paddle/params.h).
#pragma once

#include "formats/program_source.h"

namespace heddle::pir {

const formats::Format& PirFormat();

}  // namespace heddle::pir
