// The field numbers of proto/framework.proto, for readers of the wire format.
#pragma once

#include <cstdint>

namespace heddle::paddle::desc {

inline constexpr uint32_t kBlocks = 1, kOpVersions = 5, kOps = 4, kOpType = 3, kAttrs = 4;
inline constexpr uint32_t kAttrName = 1, kAttrType = 2, kAttrInt = 3, kStrings = 8;

}  // namespace heddle::paddle::desc
