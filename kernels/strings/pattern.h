// Regular expressions of RE2's syntax, matched in time proportional to text × pattern.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/status.h"

namespace heddle {

// A pattern, compiled: a machine with many states at a time, so that no text makes it try again.
// Texts and patterns are UTF-8; what is no UTF-8 in a text matches nothing. Letters of ASCII alone
// have a case. Threads: any.
class Pattern {
 public:
  // kInvalidArgument: the pattern is wrong, or has a form that is not supported (Unicode classes).
  static Result<Pattern> Compile(std::string_view text);

  // Whether the whole text matches.
  bool MatchesAll(std::string_view text) const;

 private:
  friend class PatternParser;
  using Range = std::pair<int32_t, int32_t>;  // of code points, both included
  enum class Kind : uint8_t {
    kSet,        // one code point out of `sets[x]`
    kSplit,      // on with x, and with y
    kJump,       // on with x
    kTextBegin,  // the others consume nothing, and hold or do not
    kTextEnd,
    kLineBegin,
    kLineEnd,
    kWordBorder,
    kNoWordBorder,
    kMatch,
  };
  struct Step {
    Kind kind;
    uint32_t x = 0, y = 0;
  };
  // States of the machine; each once.
  class States;

  void Add(uint32_t step, int32_t before, int32_t after, States* states) const;

  std::vector<Step> steps_;
  std::vector<std::vector<Range>> sets_;
};

}  // namespace heddle
