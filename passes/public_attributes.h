// Conversion between attributes of the IR and those of the public interface, for custom passes and
// descriptions of plans.
#pragma once

#include "core/attr.h"
#include "heddle/pass.h"

namespace heddle {

AttributeValue ToPublic(const AttrValue& value);
AttrValue ToInternal(const AttributeValue& value);

}  // namespace heddle
