// The library of primitives behind some kernels (oneDNN). It is opened when a function of it is
// first asked for: that takes a third of the start and of the memory of a small program, and many
// programs never call it.
#pragma once

#include <string>

namespace heddle {

// The function of its C interface with this name; null when heddle was built without the library,
// or no library of the version that heddle was built for is found. Any thread.
void* FindPrimitive(const char* name);
// "3.2.0"; empty where FindPrimitive finds nothing. Opens the library. Any thread.
std::string PrimitivesVersion();

}  // namespace heddle
