// Reads an attribute of the file as the type its operator declares.
#pragma once

#include "core/attr.h"
#include "heddle/status.h"

namespace heddle::proto {
class OpDesc_Attr;
}

namespace heddle::paddle {

// `like` has the wanted type. Integer and float widths, scalars and one-element lists are converted
// into each other, since exporters of different versions write different ones; text is not taken
// for a number.
Result<AttrValue> ConvertAttr(const proto::OpDesc_Attr& attr, const AttrValue& like);

}  // namespace heddle::paddle
