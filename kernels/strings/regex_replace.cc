// Matches of a pattern replaced, with RE2's rules for rewrites and for empty matches.
#include "core/interrupts.h"
#include "core/operands/slot_kinds.h"
#include "kernels/strings/code_points.h"
#include "kernels/strings/pattern.h"
#include "kernels/strings/string_operand.h"

namespace heddle {
namespace {

// A rewrite: literal text, \0 … \9 for groups, \\ for a backslash.
class Rewrite {
 public:
  static Result<Rewrite> Read(const std::string& text, uint32_t groups) {
    Rewrite made;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '\\') {
        made.Literal().push_back(text[i]);
        continue;
      }
      const char c = ++i < text.size() ? text[i] : '\0';
      if (c == '\\') {
        made.Literal().push_back(c);
      } else if (c >= '0' && c <= '9') {
        const auto group = static_cast<uint32_t>(c - '0');
        if (group > groups)
          return InvalidArgument("the rewrite '", text, "' names group ", group,
                                 "; the pattern has ", groups);
        made.parts_.push_back({static_cast<int>(group), {}});
      } else {
        return InvalidArgument("the rewrite '", text, "' has a backslash without digit");
      }
    }
    return made;
  }

  void Append(const std::string& text, const Pattern::Match& match, std::string* out) const {
    for (const Part& part : parts_) {
      out->append(part.literal);
      if (part.group < 0) continue;
      const size_t begin = match.places[2 * static_cast<size_t>(part.group)];
      const size_t end = match.places[2 * static_cast<size_t>(part.group) + 1];
      if (begin != Pattern::Match::kNowhere && end != Pattern::Match::kNowhere)
        out->append(text, begin, end - begin);
    }
  }

 private:
  struct Part {
    int group = -1;  // none
    std::string literal;
  };
  std::string& Literal() {
    if (parts_.empty() || parts_.back().group >= 0) parts_.emplace_back();
    return parts_.back().literal;
  }
  std::vector<Part> parts_;
};

std::string ReplaceFirst(const std::string& text, const Pattern& pattern, const Rewrite& rewrite) {
  const auto match = pattern.Find(text);
  if (!match) return text;
  std::string out = text.substr(0, match->places[0]);
  rewrite.Append(text, *match, &out);
  return out.append(text, match->places[1]);
}

std::string ReplaceAll(const std::string& text, const Pattern& pattern, const Rewrite& rewrite) {
  std::string out;
  size_t at = 0, last_end = std::string::npos;
  while (at <= text.size()) {
    const auto match = pattern.Find(text, at);
    if (!match) break;
    const size_t begin = match->places[0], end = match->places[1];
    out.append(text, at, begin - at);
    if (begin == last_end && begin == end) {  // an empty match behind a match: one character on
      if (begin == text.size()) return out;
      std::string_view ahead = std::string_view(text).substr(begin);
      TakeCodePoint(&ahead);
      at = text.size() - ahead.size();
      out.append(text, begin, at - begin);
      continue;
    }
    rewrite.Append(text, *match, &out);
    at = last_end = end;
  }
  if (at < text.size()) out.append(text, at);
  return out;
}

Status Replace(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const auto x, StringsOf(ctx, "X"));
  HEDDLE_ASSIGN_OR_RETURN(const std::string given, OneText(ctx, "Pattern", "pattern"));
  HEDDLE_ASSIGN_OR_RETURN(const Pattern pattern, CompiledPattern(given));
  HEDDLE_ASSIGN_OR_RETURN(const std::string text, OneText(ctx, "Rewrite", "rewrite"));
  HEDDLE_ASSIGN_OR_RETURN(const Rewrite rewrite, Rewrite::Read(text, pattern.groups()));
  const bool all = ctx.Bool("replace_global");
  StringTensor out{x->shape, {}};
  for (const std::string& one : x->elements)
    out.elements.push_back(all ? ReplaceAll(one, pattern, rewrite)
                               : ReplaceFirst(one, pattern, rewrite));
  SetStrings(ctx, "Out", std::move(out));
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(regex_replace) {
  op.Doc(
      "strings with the matches of a pattern (RE2's syntax) replaced, all or the first; \\1 to \\9 "
      "in the rewrite are groups, \\0 is the match");
  op.Input("X", kAnyKind | kOtherOnly)
      .Input("Pattern", kOptional | kAnyKind | kOtherOnly)
      .Input("Rewrite", kOptional | kAnyKind | kOtherOnly)
      .Output("Out", kOtherOnly)
      .Attr("pattern", "")
      .Attr("rewrite", "")
      .Attr("replace_global", true)
      .AnyKernel(Replace);
}
