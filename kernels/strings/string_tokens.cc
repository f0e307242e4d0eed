// Texts cut into parts, as the places and values of a sparse matrix; and runs of such parts.
#include <algorithm>
#include <cstring>

#include "core/interrupts.h"
#include "core/operands/slot_kinds.h"
#include "core/shapes.h"
#include "kernels/strings/string_operand.h"

namespace heddle {
namespace {

using Parts = std::vector<std::string>;

// At stretches of white space, of which those at the ends separate nothing. Behind the last cut
// that is allowed comes the rest, even where it is empty.
void CutAtSpace(std::string_view text, size_t most, Parts* parts) {
  text = text.substr(std::min(text.find_first_not_of(kWhiteSpace), text.size()));
  for (size_t cuts = 1; !text.empty(); ++cuts) {
    const size_t end = std::min(text.find_first_of(kWhiteSpace), text.size());
    parts->emplace_back(text.substr(0, end));
    text.remove_prefix(end);
    text = text.substr(std::min(text.find_first_not_of(kWhiteSpace), text.size()));
    if (cuts != most) continue;
    parts->emplace_back(text);
    return;
  }
}

void CutAt(std::string_view text, std::string_view separator, size_t most, Parts* parts) {
  size_t at = 0;
  for (size_t cuts = 0; cuts < most; ++cuts) {
    const size_t end = text.find(separator, at);
    if (end == std::string_view::npos) break;
    parts->emplace_back(text.substr(at, end - at));
    at = end + separator.size();
  }
  parts->emplace_back(text.substr(at));
}

// At each of these bytes; without any, between all bytes. An empty text has no parts.
void CutAtAny(std::string_view text, std::string_view bytes, bool skip_empty, Parts* parts) {
  if (text.empty()) return;
  if (bytes.empty()) {
    for (const char c : text) parts->emplace_back(1, c);
    return;
  }
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find_first_of(bytes, at), text.size());
    if (end > at || !skip_empty) parts->emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
}

Status Tokens(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const auto x, StringsOf(ctx, "X"));
  HEDDLE_ASSIGN_OR_RETURN(const std::string separator, OneText(ctx, "Separator", "separator"));
  if (x->shape.rank() != 1)
    return InvalidArgument("'X' has the shape ", x->shape.ToString(), "; a vector is expected");
  const int64_t limit = ctx.Int("maxsplit");
  const size_t most = limit <= 0 ? SIZE_MAX : static_cast<size_t>(limit);
  const bool any_byte = ctx.Bool("any_byte"), skip_empty = ctx.Bool("skip_empty");
  StringTensor values;
  Ints rows;
  Ints counts;
  for (const std::string& text : x->elements) {
    LookForInterrupt();
    const size_t before = values.elements.size();
    if (any_byte)
      CutAtAny(text, separator, skip_empty, &values.elements);
    else if (separator.empty())
      CutAtSpace(text, most, &values.elements);
    else
      CutAt(text, separator, most, &values.elements);
    counts.push_back(static_cast<int64_t>(values.elements.size() - before));
  }
  const auto n = static_cast<int64_t>(values.elements.size());
  values.shape = Shape{n};
  int64_t* place = ctx.Alloc("Indices", DType::kI64, Shape{n, 2}).mutable_data<int64_t>();
  for (size_t row = 0; row < counts.size(); ++row)
    for (int64_t k = 0; k < counts[row]; ++k) {
      *place++ = static_cast<int64_t>(row);
      *place++ = k;
    }
  int64_t* shape = ctx.Alloc("Shape", DType::kI64, Shape{2}).mutable_data<int64_t>();
  shape[0] = x->shape[0];
  shape[1] = counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
  SetStrings(ctx, "Values", std::move(values));
  return Status::Ok();
}

// n-grams of each row of a ragged vector.
class TextRuns {
 public:
  explicit TextRuns(const KernelContext& ctx)
      : separator_(ctx.Str("separator")),
        left_(ctx.Str("left_pad")),
        right_(ctx.Str("right_pad")),
        widths_(ctx.IntList("ngram_widths")),
        pad_(ctx.Int("pad_width")),
        keeps_short_(ctx.Bool("preserve_short_sequences")) {}

  const Ints& widths() const { return widths_; }
  int64_t PadOf(int64_t width) const {
    return std::max<int64_t>(0, pad_ < 0 ? width - 1 : std::min(pad_, width - 1));
  }
  int64_t CountOf(int64_t length, int64_t width) const {
    return std::max<int64_t>(0, length + 2 * PadOf(width) - width + 1);
  }
  void Append(const std::string* row, int64_t length, Parts* out) const {
    int64_t made = 0;
    for (const int64_t width : widths_) {
      const int64_t count = CountOf(length, width);
      for (const int64_t i : Watched(count)) out->push_back(One(row, length, i, width));
      made += count;
    }
    // A row that is shorter than every width is one n-gram with its pads.
    if (made > 0 || !keeps_short_ || length == 0) return;
    const int64_t pad = std::max<int64_t>(0, pad_);
    std::string text;
    for (int64_t k = 0; k < length + 2 * pad; ++k) AddItem(row, length, k - pad, k == 0, &text);
    out->push_back(std::move(text));
  }

 private:
  void AddItem(const std::string* row, int64_t length, int64_t at, bool first,
               std::string* text) const {
    if (!first) *text += separator_;
    *text += at < 0 ? left_ : at < length ? row[at] : right_;
  }
  std::string One(const std::string* row, int64_t length, int64_t i, int64_t width) const {
    std::string text;
    for (int64_t k = 0; k < width; ++k) AddItem(row, length, i - PadOf(width) + k, k == 0, &text);
    return text;
  }

  const std::string &separator_, &left_, &right_;
  const Ints& widths_;
  const int64_t pad_;
  const bool keeps_short_;
};

template <typename T>
Status NGramsOf(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const auto x, StringsOf(ctx, "X"));
  const Tensor& splits = ctx.In("Splits");
  const TextRuns grams(ctx);
  for (const int64_t width : grams.widths())
    if (width < 1) return InvalidArgument("an element of 'ngram_widths' is ", width);
  const T* at = splits.data<T>();
  const auto size = static_cast<int64_t>(x->elements.size());
  if (splits.numel() > 0 && at[0] != 0)
    return InvalidArgument("'Splits' begins with ", int64_t{at[0]}, ", expected 0");
  for (int64_t i = 1; i < splits.numel(); ++i)
    if (at[i] < at[i - 1] || at[i] > size)
      return InvalidArgument("element ", i, " of 'Splits' is ", int64_t{at[i]},
                             "; expected between the one before and ", size, ", the length of 'X'");
  if (splits.numel() > 0 && at[splits.numel() - 1] != size)
    return InvalidArgument("'Splits' ends with ", int64_t{at[splits.numel() - 1]}, ", expected ",
                           size, ", the length of 'X'");
  StringTensor out;
  T* to = ctx.Alloc("OutSplits", splits.dtype(), splits.shape()).template mutable_data<T>();
  if (splits.numel() > 0) to[0] = 0;
  for (int64_t i = 1; i < splits.numel(); ++i) {
    if (size > 0)  // without any text there are no pads either
      grams.Append(x->elements.data() + at[i - 1], int64_t{at[i]} - int64_t{at[i - 1]},
                   &out.elements);
    to[i] = static_cast<T>(out.elements.size());
  }
  out.shape = Shape{static_cast<int64_t>(out.elements.size())};
  SetStrings(ctx, "Out", std::move(out));
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(string_tokens) {
  op.Doc(
      "the parts of each text of a vector: Indices [n, 2] (text, part), Values [n], Shape [2] "
      "(texts, most parts). Cut at Separator, at most maxsplit times; at white space where it is "
      "empty; with any_byte at each of its bytes, or between all bytes");
  op.Input("X", kAnyKind | kOtherOnly)
      .Input("Separator", kOptional | kAnyKind | kOtherOnly)
      .Output("Indices")
      .Output("Values", kOtherOnly)
      .Output("Shape")
      .Attr("separator", "")
      .Attr("maxsplit", -1)
      .Attr("any_byte", false)
      .Attr("skip_empty", false)
      .AnyKernel(Tokens);
}

HEDDLE_OP(string_n_grams) {
  op.Doc("runs of ngram_widths texts in each row of X, whose rows begin and end at Splits");
  op.Input("X", kAnyKind | kOtherOnly)
      .Input("Splits")
      .Output("Out", kOtherOnly)
      .Output("OutSplits")
      .Attr("separator", " ")
      .Attr("ngram_widths", Ints{})
      .Attr("left_pad", "")
      .Attr("right_pad", "")
      .Attr("pad_width", 0)
      .Attr("preserve_short_sequences", false)
      .KernelKey("Splits");
  op.Kernel(DType::kI32, NGramsOf<int32_t>).Kernel(DType::kI64, NGramsOf<int64_t>);
}
