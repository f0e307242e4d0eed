#include "passes/public_attributes.h"

#include <type_traits>
#include <variant>
#include <vector>

namespace heddle {

AttributeValue ToPublic(const AttrValue& value) {
  return std::visit(
      [](const auto& v) -> AttributeValue {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, BlockRef>) {
          return BlockId{v.id};
        } else if constexpr (std::is_same_v<T, std::vector<BlockRef>>) {
          std::vector<BlockId> ids;
          for (BlockRef b : v) ids.push_back({b.id});
          return ids;
        } else {
          return v;
        }
      },
      value);
}

AttrValue ToInternal(const AttributeValue& value) {
  return std::visit(
      [](const auto& v) -> AttrValue {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, BlockId>) {
          return BlockRef{v.id};
        } else if constexpr (std::is_same_v<T, std::vector<BlockId>>) {
          std::vector<BlockRef> refs;
          for (BlockId b : v) refs.push_back({b.id});
          return refs;
        } else {
          return v;
        }
      },
      value);
}

}  // namespace heddle
