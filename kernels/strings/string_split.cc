// Strings joined and cut.
#include <algorithm>
#include <array>

#include "core/interrupts.h"
#include "core/operands/slot_kinds.h"
#include "core/shapes.h"
#include "kernels/strings/string_operand.h"

namespace heddle {
namespace {

Status Concat(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const auto x, StringsOf(ctx, "X"));
  HEDDLE_ASSIGN_OR_RETURN(const auto y, StringsOf(ctx, "Y"));
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, BroadcastShape(x->shape, y->shape, -1));
  StringTensor out{shape, {}};
  for (const auto part : Stretches(shape.numel()))
    for (int64_t i = part.begin; i < part.end; ++i)
      out.elements.push_back(BroadcastElement(*x, shape, i) + BroadcastElement(*y, shape, i));
  SetStrings(ctx, "Z", std::move(out));
  return Status::Ok();
}

using Parts = std::vector<std::string>;

// At stretches of white space, of which those at the ends separate nothing.
Parts SplitAtSpace(const std::string& text, size_t most) {
  constexpr std::string_view kSpace = " \t\r\n\f\v";
  Parts parts;
  size_t at = text.find_first_not_of(kSpace);
  while (at != std::string::npos) {
    const size_t end = parts.size() == most ? std::string::npos : text.find_first_of(kSpace, at);
    parts.push_back(text.substr(at, end - at));
    at = end == std::string::npos ? end : text.find_first_not_of(kSpace, end);
  }
  return parts;
}

Parts SplitAt(const std::string& text, const std::string& delimiter, size_t most) {
  Parts parts;
  size_t at = 0;
  while (parts.size() < most) {
    const size_t end = text.find(delimiter, at);
    if (end == std::string::npos) break;
    parts.push_back(text.substr(at, end - at));
    at = end + delimiter.size();
  }
  parts.push_back(text.substr(at));
  return parts;
}

Status Split(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const auto x, StringsOf(ctx, "X"));
  const std::string& delimiter = ctx.Str("delimiter");
  const int64_t limit = ctx.Int("maxsplit");
  const size_t most = limit < 0 ? SIZE_MAX : static_cast<size_t>(limit);
  std::vector<Parts> all;
  size_t widest = 0;
  for (const std::string& text : x->elements) {
    LookForInterrupt();
    all.push_back(delimiter.empty() ? SplitAtSpace(text, most) : SplitAt(text, delimiter, most));
    widest = std::max(widest, all.back().size());
  }
  if (x->shape.rank() == Shape::kMaxRank) return InvalidArgument("too many dimensions to add one");
  StringTensor out{x->shape, {}};
  out.shape.push_back(static_cast<int64_t>(widest));
  Tensor& counts = ctx.Alloc("Z", DType::kI64, x->shape);
  for (size_t i = 0; i < all.size(); ++i) {
    counts.mutable_data<int64_t>()[i] = static_cast<int64_t>(all[i].size());
    all[i].resize(widest);
    std::move(all[i].begin(), all[i].end(), std::back_inserter(out.elements));
  }
  SetStrings(ctx, "Y", std::move(out));
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(string_concat) {
  op.Doc("the strings of X, each followed by Y's, with broadcasting");
  op.Input("X", kAnyKind | kOtherOnly)
      .Input("Y", kAnyKind | kOtherOnly)
      .Output("Z", kOtherOnly)
      .AnyKernel(Concat);
}

HEDDLE_OP(string_split) {
  op.Doc("strings cut at a delimiter, or at white space; Z: how many parts each has");
  op.Input("X", kAnyKind | kOtherOnly).Output("Y", kOtherOnly).Output("Z");
  op.Attr("delimiter", "").Attr("maxsplit", -1).AnyKernel(Split);
}
