// Strings as numbers and back: operators that move, compare or order elements do so with the
// numbers, and need not know of strings.
#include <algorithm>

#include "core/interrupts.h"
#include "core/operands/slot_kinds.h"
#include "kernels/strings/string_operand.h"

namespace heddle {
namespace {

using SharedStrings = std::shared_ptr<const StringTensor>;

// The distinct strings in bytewise order.
std::vector<std::string> Distinct(const std::vector<SharedStrings>& all) {
  std::vector<std::string> texts;
  for (const SharedStrings& s : all)
    texts.insert(texts.end(), s->elements.begin(), s->elements.end());
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  return texts;
}

Status Encode(KernelContext& ctx) {
  std::vector<SharedStrings> all;
  for (int i = 0; i < ctx.InCount("X"); ++i) {
    HEDDLE_ASSIGN_OR_RETURN(SharedStrings s, StringsOf(ctx, "X", i));
    all.push_back(std::move(s));
  }
  StringTensor texts;
  texts.elements = Distinct(all);
  texts.shape = Shape{static_cast<int64_t>(texts.elements.size())};
  for (size_t i = 0; i < all.size(); ++i) {
    Tensor& codes = ctx.Alloc("Codes", DType::kI64, all[i]->shape, static_cast<int>(i));
    for (size_t k = 0; k < all[i]->elements.size(); ++k)
      codes.mutable_data<int64_t>()[k] =
          std::lower_bound(texts.elements.begin(), texts.elements.end(), all[i]->elements[k]) -
          texts.elements.begin();
  }
  SetStrings(ctx, "Texts", std::move(texts));
  return Status::Ok();
}

Status Decode(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const SharedStrings texts, StringsOf(ctx, "Texts"));
  const Tensor& codes = ctx.In("Codes");
  const auto n = static_cast<int64_t>(texts->elements.size());
  StringTensor out{codes.shape(), {}};
  for (const int64_t i : Watched(codes.numel())) {
    const int64_t code = codes.data<int64_t>()[i];
    if (code < -n || code >= n)
      return OutOfRange("element ", i, " of 'Codes' is ", code, "; there are ", n, " texts");
    out.elements.push_back(texts->elements[static_cast<size_t>(code < 0 ? code + n : code)]);
  }
  SetStrings(ctx, "Out", std::move(out));
  return Status::Ok();
}

Status Find(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const SharedStrings x, StringsOf(ctx, "X"));
  const Strings& keys = ctx.Attr<Strings>("keys");
  Tensor& out = ctx.Alloc("Out", DType::kI64, x->shape);
  for (size_t i = 0; i < x->elements.size(); ++i) {
    const auto found = std::find(keys.begin(), keys.end(), x->elements[i]);
    out.mutable_data<int64_t>()[i] = found == keys.end() ? -1 : found - keys.begin();
  }
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(string_encode) {
  op.Doc("strings of all X as their places among the distinct ones, Texts, in bytewise order");
  op.Input("X", kList | kAnyKind | kOtherOnly)
      .Output("Codes", kList)
      .Output("Texts", kOtherOnly)
      .AnyKernel(Encode);
}

HEDDLE_OP(string_decode) {
  op.Doc(
      "the strings of Texts at the places that Codes names, counted from the end where negative");
  op.Input("Texts", kAnyKind | kOtherOnly)
      .Input("Codes")
      .Output("Out", kOtherOnly)
      .KernelKey("Codes");
  op.Kernel(DType::kI64, Decode);
}

HEDDLE_OP(string_find) {
  op.Doc("the place of each string among `keys`, -1 where it is none of them");
  op.Input("X", kAnyKind | kOtherOnly).Output("Out").Attr("keys", Strings{}).AnyKernel(Find);
}
