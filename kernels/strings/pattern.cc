#include "kernels/strings/pattern.h"

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>

#include "core/error.h"
#include "core/interrupts.h"
#include "kernels/strings/code_points.h"

namespace heddle {
namespace {

constexpr int32_t kNone = kNoCodePoint, kEdge = -2;  // no code point; before and behind the text
constexpr uint32_t kMostSteps = 20000;
constexpr uint32_t kMostGroups = Pattern::Match::kGroups;
constexpr int kMostNested = 200, kMostRepeats = 1000;

using Ranges = std::vector<std::pair<int32_t, int32_t>>;

const Ranges kDigits = {{'0', '9'}};
const Ranges kSpaces = {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}};
const Ranges kWords = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};

bool In(const Ranges& ranges, int32_t code) {
  return code != kNone && std::any_of(ranges.begin(), ranges.end(), [&](const auto& r) {
           return r.first <= code && code <= r.second;
         });
}

Ranges Complement(Ranges ranges) {
  std::sort(ranges.begin(), ranges.end());
  Ranges others;
  int32_t next = 0;
  for (const auto& [first, last] : ranges) {
    if (first > next) others.emplace_back(next, first - 1);
    next = std::max(next, last + 1);
  }
  if (next <= kLastCodePoint) others.emplace_back(next, kLastCodePoint);
  return others;
}

struct Named {
  std::string_view name;
  Ranges ranges;
};
const std::vector<Named>& Posix() {
  static const std::vector<Named> all = {
      {"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
      {"alpha", {{'A', 'Z'}, {'a', 'z'}}},
      {"ascii", {{0, 127}}},
      {"blank", {{'\t', '\t'}, {' ', ' '}}},
      {"cntrl", {{0, 31}, {127, 127}}},
      {"digit", kDigits},
      {"graph", {{'!', '~'}}},
      {"lower", {{'a', 'z'}}},
      {"print", {{' ', '~'}}},
      {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
      {"space", {{'\t', '\r'}, {' ', ' '}}},
      {"upper", {{'A', 'Z'}}},
      {"word", kWords},
      {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}},
  };
  return all;
}

}  // namespace

// Reads a pattern by recursive descent, and writes the steps of each part behind those before it.
class PatternParser {
 public:
  PatternParser(std::string_view text, Pattern* made) : rest_(text), made_(*made) {}

  Status Run() {
    HEDDLE_RETURN_IF_ERROR(Alternatives(0));
    if (!rest_.empty()) return InvalidArgument("a ')' without its '('");
    return Emit(Kind::kMatch);
  }

 private:
  using Kind = Pattern::Kind;
  using Step = Pattern::Step;
  struct Flags {
    bool any_case = false, dot_is_all = false, lines = false, least = false;
  };

  bool Accept(std::string_view what) {
    if (!rest_.starts_with(what)) return false;
    rest_.remove_prefix(what.size());
    return true;
  }
  uint32_t size() const { return static_cast<uint32_t>(made_.steps_.size()); }

  Status Emit(Kind kind, uint32_t x = 0, uint32_t y = 0) {
    if (size() >= kMostSteps) return InvalidArgument("it is too large");
    made_.steps_.push_back({kind, x, y});
    return Status::Ok();
  }
  Status EmitSet(Ranges ranges) {
    if (flags_.any_case) {
      for (size_t i = 0, count = ranges.size(); i < count; ++i)
        for (const auto& [from, to, by] : {std::tuple{'a', 'z', -32}, std::tuple{'A', 'Z', 32}}) {
          const int32_t first = std::max<int32_t>(ranges[i].first, from);
          const int32_t last = std::min<int32_t>(ranges[i].second, to);
          if (first <= last) ranges.emplace_back(first + by, last + by);
        }
    }
    made_.sets_.push_back(std::move(ranges));
    return Emit(Kind::kSet, static_cast<uint32_t>(made_.sets_.size() - 1));
  }
  // Makes room for `count` steps at `at`: those from there on move.
  Status Insert(uint32_t at, uint32_t count) {
    if (size() + count > kMostSteps) return InvalidArgument("it is too large");
    auto& steps = made_.steps_;
    steps.insert(steps.begin() + at, count, Step{Kind::kJump});
    for (uint32_t i = at + count; i < size(); ++i) Move(&steps[i], count);
    return Status::Ok();
  }
  static void Move(Step* step, uint32_t by) {
    if (step->kind == Kind::kSplit) step->y += by;
    if (step->kind == Kind::kSplit || step->kind == Kind::kJump) step->x += by;
  }

  Status Alternatives(int depth) {
    if (depth > kMostNested) return InvalidArgument("parentheses lie too deep");
    const Flags outer = flags_;
    const uint32_t begin = size();
    std::vector<uint32_t> ends;  // jumps behind the alternatives
    uint32_t from = begin;
    while (true) {
      HEDDLE_RETURN_IF_ERROR(Sequence(depth));
      if (!Accept("|")) break;
      HEDDLE_RETURN_IF_ERROR(Insert(from, 1));
      HEDDLE_RETURN_IF_ERROR(Emit(Kind::kJump));
      ends.push_back(size() - 1);
      made_.steps_[from] = {Kind::kSplit, from + 1, size()};
      from = size();
    }
    for (uint32_t end : ends) made_.steps_[end].x = size();
    flags_ = outer;
    return Status::Ok();
  }

  Status Sequence(int depth) {
    while (!rest_.empty() && rest_[0] != '|' && rest_[0] != ')') {
      const uint32_t begin = size();
      bool repeats = true;  // the part is one that can be repeated
      HEDDLE_RETURN_IF_ERROR(Part(depth, &repeats));
      HEDDLE_RETURN_IF_ERROR(Repeats(begin, repeats));
    }
    return Status::Ok();
  }

  // A repetition: at most `most` times, kNone: any number.
  struct Count {
    int least, most;
  };
  std::optional<Count> TakeCount() {
    if (Accept("*")) return Count{0, kNone};
    if (Accept("+")) return Count{1, kNone};
    if (Accept("?")) return Count{0, 1};
    const std::string_view before = rest_;
    if (Accept("{")) {
      const std::optional<int> least = Number();
      std::optional<int> most = least;
      if (least && Accept(",")) {
        most = Number();
        if (!most) most = kNone;
      }
      if (least && Accept("}")) return Count{*least, *most};
      rest_ = before;  // no count: a brace as it stands
    }
    return std::nullopt;
  }
  std::optional<int> Number() {
    int number = 0;
    size_t digits = 0;
    for (; digits < rest_.size() && rest_[digits] >= '0' && rest_[digits] <= '9'; ++digits)
      number = std::min(number * 10 + (rest_[digits] - '0'), kMostRepeats + 1);
    rest_.remove_prefix(digits);
    return digits == 0 ? std::nullopt : std::optional(number);
  }

  static Step Split(uint32_t again, uint32_t on, bool least) {
    return least ? Step{Kind::kSplit, on, again} : Step{Kind::kSplit, again, on};
  }

  Status Repeats(uint32_t begin, bool repeats) {
    const std::optional<Count> count = TakeCount();
    if (!count) return Status::Ok();
    if (!repeats) return InvalidArgument("nothing stands before a repetition");
    const bool least = Accept("?") != flags_.least;  // fewer repetitions are tried first
    if (TakeCount()) return InvalidArgument("a repetition of a repetition");
    if (count->least > kMostRepeats || count->most > kMostRepeats)
      return InvalidArgument("more than ", kMostRepeats, " repetitions");
    if (count->most != kNone && count->most < count->least)
      return InvalidArgument("a repetition with its limits the wrong way round");
    const std::vector<Step> part(made_.steps_.begin() + begin, made_.steps_.end());
    made_.steps_.resize(begin);
    const auto again = [&]() -> Status {
      const uint32_t by = size() - begin;
      if (size() + part.size() > kMostSteps) return InvalidArgument("it is too large");
      for (Step step : part) {
        Move(&step, by);
        made_.steps_.push_back(step);
      }
      return Status::Ok();
    };
    for (int i = 0; i < count->least; ++i) HEDDLE_RETURN_IF_ERROR(again());
    if (count->most == kNone) {
      const uint32_t split = size();
      HEDDLE_RETURN_IF_ERROR(Emit(Kind::kSplit));
      HEDDLE_RETURN_IF_ERROR(again());
      HEDDLE_RETURN_IF_ERROR(Emit(Kind::kJump, split));
      made_.steps_[split] = Split(split + 1, size(), least);
      return Status::Ok();
    }
    std::vector<uint32_t> splits;
    for (int i = count->least; i < count->most; ++i) {
      splits.push_back(size());
      HEDDLE_RETURN_IF_ERROR(Emit(Kind::kSplit));
      HEDDLE_RETURN_IF_ERROR(again());
    }
    for (uint32_t split : splits) made_.steps_[split] = Split(split + 1, size(), least);
    return Status::Ok();
  }

  Status Part(int depth, bool* repeats) {
    if (Accept("(")) return Group(depth, repeats);
    if (Accept("[")) return Class();
    if (Accept("."))
      return EmitSet(flags_.dot_is_all ? Ranges{{0, kLastCodePoint}} : Complement({{'\n', '\n'}}));
    if (Accept("^")) return Emit(flags_.lines ? Kind::kLineBegin : Kind::kTextBegin);
    if (Accept("$")) return Emit(flags_.lines ? Kind::kLineEnd : Kind::kTextEnd);
    if (Accept("\\")) return Escape(repeats);
    if (rest_[0] == '*' || rest_[0] == '+' || rest_[0] == '?') {
      *repeats = false;  // Repeats() says so
      return Status::Ok();
    }
    const int32_t code = TakeCodePoint(&rest_);
    if (code == kNone) return InvalidArgument("it is no UTF-8");
    return EmitSet({{code, code}});
  }

  Status Group(int depth, bool* repeats) {
    const Flags outer = flags_;
    bool captures = true;
    if (Accept("?")) {
      const bool named = Accept("P<") || Accept("<");
      if (named) {
        const size_t end = rest_.find('>');
        if (end == std::string_view::npos || end == 0) return InvalidArgument("a group's name");
        rest_.remove_prefix(end + 1);
      } else {
        captures = false;
        bool on = true;
        while (!rest_.empty() && rest_[0] != ':' && rest_[0] != ')') {
          const char flag = rest_[0];
          rest_.remove_prefix(1);
          if (flag == '-') on = false;
          if (flag == 'i') flags_.any_case = on;
          if (flag == 's') flags_.dot_is_all = on;
          if (flag == 'm') flags_.lines = on;
          if (flag == 'U') flags_.least = on;
          if (std::string_view("-ismU").find(flag) == std::string_view::npos)
            return InvalidArgument("a group '(?", std::string(1, flag), "' is not supported");
        }
        if (Accept(")")) {  // for the rest of what is around
          *repeats = false;
          return Status::Ok();
        }
        if (!Accept(":")) return InvalidArgument("a '(' without its ')'");
      }
    }
    const uint32_t group = captures ? ++made_.groups_ : 0;
    if (captures && group < kMostGroups) HEDDLE_RETURN_IF_ERROR(Emit(Kind::kSave, 2 * group));
    HEDDLE_RETURN_IF_ERROR(Alternatives(depth + 1));
    flags_ = outer;
    if (captures && group < kMostGroups) HEDDLE_RETURN_IF_ERROR(Emit(Kind::kSave, 2 * group + 1));
    return Accept(")") ? Status::Ok() : InvalidArgument("a '(' without its ')'");
  }

  // \d and the like; nothing for others.
  std::optional<Ranges> TakeClass() {
    for (const auto& [letter, ranges] :
         {std::pair<char, const Ranges*>{'d', &kDigits}, {'s', &kSpaces}, {'w', &kWords}}) {
      if (Accept(std::string_view(&letter, 1))) return *ranges;
      const char capital = static_cast<char>(letter - 32);
      if (Accept(std::string_view(&capital, 1))) return Complement(*ranges);
    }
    return std::nullopt;
  }

  // The code point that an escape stands for, behind its backslash.
  Result<int32_t> TakeEscaped() {
    if (rest_.empty()) return InvalidArgument("a '\\' at its end");
    const char c = rest_[0];
    constexpr std::string_view kLetters = "afnrtv", kMeant = "\a\f\n\r\t\v";
    if (const size_t at = kLetters.find(c); at != std::string_view::npos) {
      rest_.remove_prefix(1);
      return int32_t{kMeant[at]};
    }
    int32_t code = 0;
    const auto digits = [&](int base, size_t most) {
      size_t count = 0;
      for (; count < most && count < rest_.size(); ++count) {
        const char d = rest_[count];
        const int value = d >= '0' && d <= '9'   ? d - '0'
                          : d >= 'a' && d <= 'f' ? d - 'a' + 10
                          : d >= 'A' && d <= 'F' ? d - 'A' + 10
                                                 : base;
        if (value >= base) break;
        code = std::min(code * base + value, kLastCodePoint + 1);
      }
      rest_.remove_prefix(count);
      return count;
    };
    if (Accept("x{")) {
      if (digits(16, 8) == 0 || !Accept("}") || code > kLastCodePoint)
        return InvalidArgument("an escape \\x{...}");
      return code;
    }
    if (Accept("x")) {
      if (digits(16, 2) != 2) return InvalidArgument("an escape \\x without two digits");
      return code;
    }
    if (c == '0' ||
        (c >= '1' && c <= '7' && rest_.size() > 1 && rest_[1] >= '0' && rest_[1] <= '7')) {
      digits(8, 3);
      return code;
    }
    const bool plain = static_cast<uint8_t>(c) < 128 && !In(kWords, c);
    if (!plain && c != '_')
      return InvalidArgument("the escape \\", std::string(1, c), " is not supported");
    rest_.remove_prefix(1);
    return int32_t{c};
  }

  Status Escape(bool* repeats) {
    *repeats = true;
    if (Accept("A")) return Emit(Kind::kTextBegin);
    if (Accept("z")) return Emit(Kind::kTextEnd);
    if (Accept("b")) return Emit(Kind::kWordBorder);
    if (Accept("B")) return Emit(Kind::kNoWordBorder);
    if (Accept("Q")) {
      while (!rest_.empty() && !Accept("\\E")) {
        const int32_t code = TakeCodePoint(&rest_);
        if (code == kNone) return InvalidArgument("it is no UTF-8");
        HEDDLE_RETURN_IF_ERROR(EmitSet({{code, code}}));
      }
      return Status::Ok();
    }
    if (auto ranges = TakeClass()) return EmitSet(*std::move(ranges));
    HEDDLE_ASSIGN_OR_RETURN(const int32_t code, TakeEscaped());
    return EmitSet({{code, code}});
  }

  // One end of a range, or all of a part that is a class itself.
  Result<int32_t> ClassItem(Ranges* ranges, bool* is_class) {
    *is_class = true;
    if (Accept("[:")) {
      const bool negated = Accept("^");
      for (const Named& named : Posix()) {
        if (!Accept(StrCat(named.name, ":]"))) continue;
        const Ranges add = negated ? Complement(named.ranges) : named.ranges;
        ranges->insert(ranges->end(), add.begin(), add.end());
        return 0;
      }
      return InvalidArgument("an unknown class [:...:]");
    }
    const bool escaped = Accept("\\");
    if (escaped) {
      if (const auto add = TakeClass()) {
        ranges->insert(ranges->end(), add->begin(), add->end());
        return 0;
      }
    }
    *is_class = false;
    if (escaped) return TakeEscaped();
    if (rest_.empty()) return InvalidArgument("a '[' without its ']'");
    const int32_t code = TakeCodePoint(&rest_);
    if (code == kNone) return InvalidArgument("it is no UTF-8");
    return code;
  }

  Status Class() {
    const bool negated = Accept("^");
    Ranges ranges;
    for (bool first = true; first || !Accept("]"); first = false) {
      if (rest_.empty()) return InvalidArgument("a '[' without its ']'");
      bool is_class = false;
      HEDDLE_ASSIGN_OR_RETURN(const int32_t from, ClassItem(&ranges, &is_class));
      if (is_class) continue;
      int32_t to = from;
      if (rest_.size() > 1 && rest_[0] == '-' && rest_[1] != ']') {
        rest_.remove_prefix(1);
        HEDDLE_ASSIGN_OR_RETURN(to, ClassItem(&ranges, &is_class));
        if (is_class || to < from)
          return InvalidArgument("a range with its ends the wrong way round");
      }
      ranges.emplace_back(from, to);
    }
    if (!negated) return EmitSet(std::move(ranges));
    // A character that differs from a letter differs from it in upper and in lower case.
    HEDDLE_RETURN_IF_ERROR(EmitSet(std::move(ranges)));
    made_.sets_.back() = Complement(std::move(made_.sets_.back()));
    return Status::Ok();
  }

  std::string_view rest_;
  Pattern& made_;
  Flags flags_;
};

namespace {

// Of a text that is not empty.
int32_t LastCodePoint(std::string_view text) {
  size_t at = text.size() - 1;
  while (at > 0 && text.size() - at < 4 && !BeginsCharacter(text[at])) --at;
  std::string_view last = text.substr(at);
  const int32_t code = TakeCodePoint(&last);
  return last.empty() ? code : kNone;
}

}  // namespace

Result<Pattern> Pattern::Compile(std::string_view text) {
  Pattern made;
  HEDDLE_RETURN_IF_ERROR(PatternParser(text, &made).Run());
  return made;
}

// The machine's states at a place of the text, those that are preferred first.
class Pattern::States {
 public:
  explicit States(size_t count) : seen_(count, 0) {}
  void Clear() {
    list_.clear();
    ++round_;
  }
  bool Insert(uint32_t step) { return std::exchange(seen_[step], round_) != round_; }
  void Keep(uint32_t step, const Match& groups) { list_.push_back({step, groups}); }
  const std::vector<State>& list() const { return list_; }
  std::vector<State> open;  // while states are added

 private:
  std::vector<size_t> seen_;
  std::vector<State> list_;  // that wait for a code point, and the match
  size_t round_ = 1;
};

// All states that follow without a code point, at a place between these two.
void Pattern::Add(const State& first, const Place& place, States* states) const {
  const bool border = In(kWords, place.before) != In(kWords, place.after);
  states->open.assign(1, first);
  while (!states->open.empty()) {
    State state = states->open.back();
    states->open.pop_back();
    if (!states->Insert(state.step)) continue;
    const Step& step = steps_[state.step];
    const auto go = [&](uint32_t to) { states->open.push_back({to, state.groups}); };
    const auto on = [&](bool holds) {
      if (holds) go(state.step + 1);
    };
    switch (step.kind) {
      case Kind::kSet:
      case Kind::kMatch:
        states->Keep(state.step, state.groups);
        break;
      case Kind::kSplit:
        go(step.y);
        go(step.x);
        break;
      case Kind::kJump:
        go(step.x);
        break;
      case Kind::kSave:
        state.groups.places[step.x] = place.at;
        go(state.step + 1);
        break;
      case Kind::kTextBegin:
        on(place.before == kEdge);
        break;
      case Kind::kTextEnd:
        on(place.after == kEdge);
        break;
      case Kind::kLineBegin:
        on(place.before == kEdge || place.before == '\n');
        break;
      case Kind::kLineEnd:
        on(place.after == kEdge || place.after == '\n');
        break;
      case Kind::kWordBorder:
        on(border);
        break;
      case Kind::kNoWordBorder:
        on(!border);
        break;
    }
  }
}

std::optional<Pattern::Match> Pattern::Run(std::string_view text, size_t from,
                                           Wanted wanted) const {
  const bool whole = wanted == Wanted::kWhole;
  States now(steps_.size()), then(steps_.size());
  std::string_view ahead = text.substr(from);
  Place place;
  place.at = from;
  place.before = from == 0 ? kEdge : LastCodePoint(text.substr(0, from));
  place.after = ahead.empty() ? kEdge : TakeCodePoint(&ahead);
  std::optional<Match> found;
  while (true) {
    LookForInterrupt();
    // A match that begins later comes after all that have begun.
    if (!found && (!whole || place.at == from)) {
      Match begins;
      begins.places[0] = place.at;
      Add({0, begins}, place, &now);
    }
    if (now.list().empty() && (found || whole || place.after == kEdge)) return found;
    Place next;
    next.at = text.size() - ahead.size();
    next.before = place.after;
    next.after = ahead.empty() ? kEdge : TakeCodePoint(&ahead);
    then.Clear();
    for (const State& state : now.list()) {
      const Step& step = steps_[state.step];
      if (found && found->places[0] < state.groups.places[0]) break;  // begins later, as the rest
      if (step.kind == Kind::kMatch && (!whole || place.after == kEdge)) {
        found = state.groups;
        found->places[1] = place.at;
        if (wanted == Wanted::kLongest) continue;
        break;  // the states behind it are not preferred
      }
      if (step.kind == Kind::kSet && In(sets_[step.x], place.after))
        Add({state.step + 1, state.groups}, next, &then);
    }
    if (place.after == kEdge) return found;
    std::swap(now, then);
    place = next;
  }
}

bool Pattern::MatchesAll(std::string_view text) const {
  return Run(text, 0, Wanted::kWhole).has_value();
}

std::optional<Pattern::Match> Pattern::Find(std::string_view text, size_t from) const {
  return Run(text, from, Wanted::kFirst);
}

std::optional<Pattern::Match> Pattern::FindLongest(std::string_view text, size_t from) const {
  return Run(text, from, Wanted::kLongest);
}

Result<Pattern> CompiledPattern(const std::string& text) {
  auto pattern = Pattern::Compile(text);
  if (pattern.ok()) return pattern;
  return InvalidArgument("the pattern '", text, "' cannot be read: ", pattern.status().message());
}

}  // namespace heddle
