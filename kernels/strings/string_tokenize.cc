// Texts cut into the tokens that patterns separate or are, one row of tokens for each text.
#include <utility>
#include <vector>

#include "core/interrupts.h"
#include "core/operands/slot_kinds.h"
#include "kernels/strings/code_points.h"
#include "kernels/strings/pattern.h"
#include "kernels/strings/string_operand.h"

namespace heddle {
namespace {

using TokenList = std::vector<std::string_view>;

// The bytes of the character that begins at `at`.
size_t BytesAt(std::string_view text, size_t at) {
  if (at >= text.size()) return 1;
  std::string_view rest = text.substr(at);
  TakeCodePoint(&rest);
  return text.size() - at - rest.size();
}

int64_t Characters(std::string_view text) {
  int64_t count = 0;
  for (const char byte : text) count += BeginsCharacter(byte) ? 1 : 0;
  return count;
}

bool IsUtf8(std::string_view text) {
  while (!text.empty())
    if (TakeCodePoint(&text) == kNoCodePoint) return false;
  return true;
}

// How a text is cut: by characters, by what lies between separators, or by what a pattern matches.
class Cutter {
 public:
  static Result<Cutter> Of(const OpContext& ctx) {
    Cutter made;
    const Strings& separators = ctx.Attr<Strings>("separators");
    const std::string& token = ctx.Str("tokenexp");
    made.least_ = ctx.Int("mincharnum");
    if (made.least_ < 1)
      return InvalidArgument("'mincharnum' is ", made.least_, "; at least 1 is expected");
    if (separators.empty() && token.empty())
      return InvalidArgument("needs 'separators' or 'tokenexp'");
    made.by_character_ = separators.size() == 1 && separators[0].empty();
    if (made.by_character_ && made.least_ > 1)
      return InvalidArgument("'mincharnum' is ", made.least_,
                             ", and tokens are characters, as there is one empty separator");
    for (const std::string& one : separators) {
      HEDDLE_ASSIGN_OR_RETURN(Pattern pattern, CompiledPattern(one));
      made.separators_.push_back(std::move(pattern));
    }
    if (separators.empty()) {
      HEDDLE_ASSIGN_OR_RETURN(Pattern pattern, CompiledPattern(token));
      made.token_.push_back(std::move(pattern));
    }
    return made;
  }

  TokenList Cut(std::string_view text) const {
    if (by_character_) return ByCharacter(text);
    if (!token_.empty()) return Matched(text);
    TokenList tokens{text};
    for (const Pattern& separator : separators_) {
      TokenList finer;
      for (const std::string_view token : tokens) CutAt(separator, token, &finer);
      tokens = std::move(finer);
    }
    return tokens;
  }

 private:
  static TokenList ByCharacter(std::string_view text) {
    TokenList tokens;
    for (size_t at = 0; at < text.size();) {
      const size_t bytes = BytesAt(text, at);
      tokens.push_back(text.substr(at, bytes));
      at += bytes;
    }
    return tokens;
  }

  void Add(std::string_view token, TokenList* tokens) const {
    if (!token.empty() && Characters(token) >= least_) tokens->push_back(token);
  }

  // Behind a match of nothing one byte is passed over, which is in no token then.
  void CutAt(const Pattern& separator, std::string_view text, TokenList* tokens) const {
    size_t at = 0;
    while (at <= text.size()) {
      LookForInterrupt();
      const auto match = separator.FindLongest(text, at);
      if (!match) break;
      const size_t begin = match->places[0], end = match->places[1];
      Add(text.substr(at, begin - at), tokens);
      at = end > begin ? end : begin + 1;
    }
    if (at < text.size()) Add(text.substr(at), tokens);
  }

  // A match that is too short is tried again from its second character on.
  TokenList Matched(std::string_view text) const {
    TokenList tokens;
    for (size_t at = 0; at <= text.size();) {
      LookForInterrupt();
      const auto match = token_[0].FindLongest(text, at);
      if (!match) break;
      const size_t begin = match->places[0], end = match->places[1];
      const std::string_view token = text.substr(begin, end - begin);
      if (Characters(token) >= least_) {
        tokens.push_back(token);
        at = end;
      } else {
        at = begin + BytesAt(text, begin);
      }
    }
    return tokens;
  }

  bool by_character_ = false;
  int64_t least_ = 1;
  std::vector<Pattern> separators_, token_;  // at most one token_
};

Status Tokenize(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const auto x, StringsOf(ctx, "X"));
  HEDDLE_ASSIGN_OR_RETURN(const Cutter cutter, Cutter::Of(ctx));
  if (x->shape.rank() < 1 || x->shape.rank() > 2)
    return InvalidArgument("'X' has the shape ", x->shape.ToString(),
                           "; a vector or a matrix is expected");
  const std::string& pad = ctx.Str("pad_value");
  std::vector<TokenList> rows;
  size_t widest = 0;
  for (const std::string& text : x->elements) {
    LookForInterrupt();
    if (!IsUtf8(text)) return InvalidArgument("a text of 'X' is no UTF-8");
    rows.push_back(cutter.Cut(text));
    widest = std::max(widest, rows.back().size());
  }
  const bool marks = ctx.Bool("mark") && widest > 0;
  StringTensor out{x->shape, {}};
  if (x->elements.empty()) {
    out.shape = x->shape.rank() == 2 ? Shape{x->shape[0], 0} : Shape{0};
    SetStrings(ctx, "Y", std::move(out));
    return Status::Ok();
  }
  const size_t width = widest + (marks ? 2 : 0);
  out.shape.push_back(static_cast<int64_t>(width));
  out.elements.reserve(rows.size() * width);
  for (const TokenList& row : rows) {
    const size_t end = out.elements.size() + width;
    if (marks) out.elements.emplace_back("\x02");
    for (const std::string_view token : row) out.elements.emplace_back(token);
    if (marks) out.elements.emplace_back("\x03");
    out.elements.resize(end, pad);
  }
  SetStrings(ctx, "Y", std::move(out));
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(string_tokenize) {
  op.Doc(
      "the tokens of each text: what lies between matches of separators (patterns of RE2's syntax, "
      "the longest match counts), what 'tokenexp' matches, or, for one empty separator, its "
      "characters; shorter ones than 'mincharnum' characters do not count; 'mark': STX and ETX are "
      "around them");
  op.Input("X", kAnyKind | kOtherOnly).Output("Y", kOtherOnly);
  op.Attr("mark", false).Attr("pad_value", "").Attr("mincharnum", 1);
  op.Attr("separators", Strings{}).Attr("tokenexp", "").AnyKernel(Tokenize);
}
