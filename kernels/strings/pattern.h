// Regular expressions of RE2's syntax, matched in time proportional to text × pattern.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
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

  // The bytes [places[2 * k], places[2 * k + 1]) of a text that group k matched; group 0 is the
  // whole match. kNowhere: the group matched nothing.
  struct Match {
    static constexpr uint32_t kGroups = 10;
    static constexpr size_t kNowhere = SIZE_MAX;
    std::array<size_t, 2 * kGroups> places;
    Match() { places.fill(kNowhere); }
  };

  // Whether the whole text matches.
  bool MatchesAll(std::string_view text) const;
  // The first match that begins at the byte `from` or behind it; of those that begin at one place,
  // the one that Perl would take.
  std::optional<Match> Find(std::string_view text, size_t from = 0) const;
  // The same with the longest of those that begin at one place.
  std::optional<Match> FindLongest(std::string_view text, size_t from = 0) const;
  // The number of groups, without the whole.
  uint32_t groups() const { return groups_; }

 private:
  friend class PatternParser;
  using Range = std::pair<int32_t, int32_t>;  // of code points, both included
  enum class Kind : uint8_t {
    kSet,        // one code point out of `sets[x]`
    kSplit,      // on with x, and with y
    kJump,       // on with x
    kSave,       // notes the place as number x of the groups' places
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
  // A place of a text: its byte, and the code points on both sides.
  struct Place {
    size_t at = 0;
    int32_t before = 0, after = 0;
  };
  struct State {
    uint32_t step;
    Match groups;
  };
  class States;  // of the machine; each once

  void Add(const State& first, const Place& place, States* states) const;
  enum class Wanted { kFirst, kLongest, kWhole };
  std::optional<Match> Run(std::string_view text, size_t from, Wanted wanted) const;

  uint32_t groups_ = 0;
  std::vector<Step> steps_;
  std::vector<std::vector<Range>> sets_;
};

// The pattern of an operator's operand or attribute; its error has the text.
Result<Pattern> CompiledPattern(const std::string& text);

}  // namespace heddle
