#include "kernels/base/only_value.h"

#include <sstream>
#include <type_traits>

namespace heddle {
namespace {

std::string TextOf(const AttrValue& value) {
  std::ostringstream text;
  std::visit(
      [&](const auto& v) {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, bool>)
          text << (v ? "true" : "false");
        else if constexpr (std::is_same_v<T, int64_t>)
          text << v;
        else if constexpr (std::is_same_v<T, std::string>)
          text << '\'' << v << '\'';
        else
          text << "something";
      },
      value);
  return text.str();
}

}  // namespace

Status CheckOnlyValue(const OpContext& ctx, Key attribute) {
  const auto at = static_cast<size_t>(ctx.def().FindAttr(attribute.name));
  const AttrValue &got = ctx.op().attrs[at], &only = ctx.def().attrs()[at].default_value;
  if (got == only) return Status::Ok();
  return Unimplemented(attribute.name, " is ", TextOf(got), ", expected ", TextOf(only), ", ",
                       kIsOnlyValue);
}

}  // namespace heddle
