// Attributes of which an operator knows one value, as formats declare them for kinds of work that
// nobody implements.
#pragma once

#include "core/error.h"
#include "core/op_context.h"

namespace heddle {

// How the messages of CheckOnlyValue end; tests tell them from others by it.
inline constexpr const char* kIsOnlyValue = "which is its only value";

// An error unless the attribute, a boolean, an integer or a text, has its default value.
Status CheckOnlyValue(const OpContext& ctx, Key attribute);

}  // namespace heddle
