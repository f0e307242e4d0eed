// Reads an attribute of the file as the type its operator declares.
#pragma once

#include "core/attr.h"
#include "heddle/status.h"

namespace heddle::proto {
class OpDesc_Attr;
}

namespace heddle::paddle {

// `like` gives the wanted type. Integer and float widths, scalars and one-element lists convert
// freely, since exporters of different versions write different ones; a text for a number does not.
Result<AttrValue> ConvertAttr(const proto::OpDesc_Attr& attr, const AttrValue& like);

}  // namespace heddle::paddle
