#include "kernels/strings/text_pool.h"

#include "core/error.h"
#include "core/interrupts.h"
#include "core/operands/slot_kinds.h"
#include "kernels/strings/string_operand.h"

namespace heddle {

int64_t TextPool::Number(const std::string& text) {
  const auto [found, is_new] = numbers_.emplace(text, static_cast<int64_t>(texts_.size()));
  if (is_new) texts_.push_back(&found->first);
  return found->second;
}

void TextPool::Add(const std::vector<std::string>& texts, int64_t* numbers) {
  MutexLock lock(mutex_);
  for (const int64_t i : Watched(std::ssize(texts)))
    numbers[i] = Number(texts[static_cast<size_t>(i)]);
}

Status TextPool::Find(const int64_t* numbers, int64_t count, std::vector<std::string>* texts) {
  MutexLock lock(mutex_);
  const auto n = static_cast<int64_t>(texts_.size());
  for (const int64_t i : Watched(count)) {
    if (numbers[i] < 0 || numbers[i] >= n)
      return OutOfRange("element ", i, " of 'Codes' is ", numbers[i], "; there are ", n, " texts");
    texts->push_back(*texts_[static_cast<size_t>(numbers[i])]);
  }
  return Status::Ok();
}

namespace {

using SharedPool = std::shared_ptr<TextPool>;

Result<SharedPool> PoolOf(const KernelContext& ctx) {
  if (const Value* v = ctx.InVar("Pool");
      v != nullptr && v->kind() == Value::Kind::kOther && v->initialized()) {
    Value copy = *v;
    if (const auto* pool = std::any_cast<SharedPool>(&copy.mutable_other())) return *pool;
  }
  return InvalidArgument("input 'Pool' must hold a pool of texts");
}

Status NewPool(KernelContext& ctx) {
  Value made;
  made.mutable_other() = std::make_shared<TextPool>();
  *ctx.OutVar("Out") = std::move(made);
  return Status::Ok();
}

Status AddTexts(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const SharedPool pool, PoolOf(ctx));
  for (int i = 0; i < ctx.InCount("X"); ++i) {
    HEDDLE_ASSIGN_OR_RETURN(const auto texts, StringsOf(ctx, "X", i));
    Tensor& codes = ctx.Alloc("Codes", DType::kI64, texts->shape, i);
    pool->Add(texts->elements, codes.mutable_data<int64_t>());
  }
  return Status::Ok();
}

Result<StringTensor> TextsOf(TextPool& pool, const Tensor& codes) {
  if (codes.dtype() != DType::kI64)
    return InvalidArgument("an item of 'Codes' is ", Name(codes.dtype()), "; int64 is expected");
  StringTensor texts{codes.shape(), {}};
  texts.elements.reserve(static_cast<size_t>(codes.numel()));
  HEDDLE_RETURN_IF_ERROR(pool.Find(codes.data<int64_t>(), codes.numel(), &texts.elements));
  return texts;
}

Status FindTexts(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const SharedPool pool, PoolOf(ctx));
  HEDDLE_ASSIGN_OR_RETURN(StringTensor texts, TextsOf(*pool, ctx.In("Codes")));
  SetStrings(ctx, "Out", std::move(texts));
  return Status::Ok();
}

Status AddList(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const SharedPool pool, PoolOf(ctx));
  const Value* x = ctx.InVar("X");
  const auto list = x == nullptr ? nullptr : StringListIn(*x);
  if (list == nullptr) return InvalidArgument("input 'X' must hold a list of strings");
  TensorArray made(list->size());
  for (size_t i = 0; i < made.size(); ++i) {
    LookForInterrupt();
    made[i] = Tensor::Empty(DType::kI64, (*list)[i].shape);
    pool->Add((*list)[i].elements, made[i].mutable_data<int64_t>());
  }
  ctx.OutVar("Codes")->mutable_array() = std::move(made);
  return Status::Ok();
}

Status FindList(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const SharedPool pool, PoolOf(ctx));
  const Value* codes = ctx.InVar("Codes");
  StringList list;
  if (codes != nullptr && codes->initialized()) {
    if (!codes->is_array()) return InvalidArgument("'Codes' must be a list of tensors");
    for (size_t i = 0; i < codes->array().size(); ++i) {
      LookForInterrupt();
      if (!codes->array()[i].initialized())
        return InvalidArgument("item ", i, " of 'Codes' was never set");
      HEDDLE_ASSIGN_OR_RETURN(StringTensor item, TextsOf(*pool, codes->array()[i].Contiguous()));
      list.push_back(std::move(item));
    }
  }
  *ctx.OutVar("Out") = ValueOf(std::move(list));
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(text_pool) {
  op.Doc("an empty pool, which keeps texts by number").Output("Out", kOtherOnly).AnyKernel(NewPool);
}
HEDDLE_OP(text_pool_add) {
  op.Doc("the numbers of the strings of all X in Pool, which gets those that it lacks");
  op.Input("X", kList | kAnyKind | kOtherOnly)
      .Input("Pool", kAnyKind | kOtherOnly)
      .Output("Codes", kList)
      .AnyKernel(AddTexts);
}
HEDDLE_OP(text_pool_find) {
  op.Doc("the strings of Pool that have the numbers Codes");
  op.Input("Pool", kAnyKind | kOtherOnly).Input("Codes").Output("Out", kOtherOnly);
  op.KernelKey("Codes").Kernel(DType::kI64, FindTexts);
}
HEDDLE_OP(text_pool_add_list) {
  op.Doc("the numbers of the strings of a list in Pool, as a list");
  op.Input("X", kAnyKind | kOtherOnly)
      .Input("Pool", kAnyKind | kOtherOnly)
      .Output("Codes", kArrayOnly)
      .AnyKernel(AddList);
}
HEDDLE_OP(text_pool_find_list) {
  op.Doc("a list of strings, of which Codes has the numbers in Pool");
  op.Input("Pool", kAnyKind | kOtherOnly)
      .Input("Codes", kAnyKind | kArrayOnly)
      .Output("Out", kOtherOnly)
      .AnyKernel(FindList);
}
