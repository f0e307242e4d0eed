// Names on a command line: pairs NAME=VALUE where names may have any characters, and what somebody
// may have meant by a name that is not known.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle::tools {

// Why `text` cannot be NAME=VALUE, both not empty; empty when it can.
std::string CheckPair(const std::string& text);

// Splits NAME=VALUE. A name may contain `=`: of the places where the text could be cut, that behind
// the longest of the names `known` is taken, or the first one where none of them fits.
// Precondition: CheckPair(text) is empty.
std::pair<std::string, std::string> SplitPair(const std::string& text,
                                              const std::vector<std::string>& known);
// The same where the value has no `=`: at the last one.
std::pair<std::string, std::string> SplitAtLast(const std::string& text);
// Whether the text can be cut at several places.
bool IsAmbiguousPair(const std::string& text);

// "; did you mean 'x'?" for the nearest of the names: letters left out, added, changed or swapped,
// at most one for each three. Empty where none is near.
std::string DidYouMean(std::string_view word, const std::vector<std::string>& known);

// The names in the values of an option that may be repeated and may list several with commas.
std::vector<std::string> SplitNames(const std::vector<std::string>& values);

}  // namespace heddle::tools
