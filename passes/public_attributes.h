// Attributes as passes of users and descriptions of plans have them, and back.
#pragma once

#include "core/attr.h"
#include "heddle/pass.h"

namespace heddle {

AttributeValue ToPublic(const AttrValue& value);
AttrValue ToInternal(const AttributeValue& value);

}  // namespace heddle
