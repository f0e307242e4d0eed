// Texts in small letters and in capitals, by Unicode's tables and whatever the system's locale is.
#pragma once

#include <string>
#include <string_view>

namespace heddle {

enum class Case { kLower, kUpper };

// UTF-8 text in the case; bytes that are no UTF-8 stay. `whole`: letters whose other case has
// several code points change too (ß becomes SS), and a sigma at a word's end has its final form;
// otherwise a letter stays where no single one is its other case.
std::string InCase(std::string_view text, Case to, bool whole);

// The same for letters of ASCII alone.
std::string InAsciiCase(std::string_view text, Case to);

}  // namespace heddle
