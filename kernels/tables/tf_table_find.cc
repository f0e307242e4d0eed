#include "core/interrupts.h"
#include "core/memory/bytes.h"
#include "core/memory/watched_bytes.h"
#include "core/operands/slot_kinds.h"
#include "core/shapes.h"
#include "kernels/tables/table_operand.h"

namespace heddle {
namespace {

// As many elements as keys, each as the default is. Where keys or values are texts, the shape is
// theirs to know in a run.
Status FindShape(ShapeContext& ctx) {
  const Value *keys = ctx.InVar("keys"), *otherwise = ctx.InVar("default_value");
  if (keys == nullptr || otherwise == nullptr || !keys->is_tensor() || !otherwise->is_tensor() ||
      !ctx.HasIn("keys") || !ctx.HasIn("default_value"))
    return ctx.Defer();
  const Shape &shape = ctx.InShape("keys"), &row = ctx.InShape("default_value");
  if (!shape.is_static() || !row.is_static() || shape.rank() + row.rank() > Shape::kMaxRank)
    return ctx.Defer();
  Shape out = shape;
  for (int64_t d : row) out.push_back(d);
  ctx.SetOut("values", out, ctx.InDType("default_value"));
  return Status::Ok();
}

// The keys as rows of the table; -1: it has none.
struct Keys {
  bool are_texts = false;
  Shape shape;
  std::vector<int64_t> rows;
};
Result<Keys> RowsOf(const KernelContext& ctx, const LookupTable& table) {
  const Value* v = ctx.InVar("keys");
  Keys keys;
  if (const auto texts = v == nullptr ? nullptr : StringsIn(*v)) {
    if (table.has_numbers()) return InvalidArgument("'keys' are texts; the table's are integers");
    keys.are_texts = true;
    keys.shape = texts->shape;
    for (const std::string& key : texts->elements) keys.rows.push_back(table.Find(key));
    return keys;
  }
  const Tensor& t = ctx.In("keys");
  if (t.dtype() != DType::kI64 && t.dtype() != DType::kI32)
    return InvalidArgument("'keys' are ", Name(t.dtype()), "; expected texts or integers");
  if (table.has_texts()) return InvalidArgument("'keys' are integers; the table's are texts");
  keys.shape = t.shape();
  for (const auto part : Stretches(t.numel()))
    for (int64_t i = part.begin; i < part.end; ++i)
      keys.rows.push_back(
          table.Find(t.dtype() == DType::kI64 ? t.data<int64_t>()[i] : t.data<int32_t>()[i]));
  return keys;
}

Status FindTexts(const KernelContext& ctx, const LookupTable& table, const Keys& keys,
                 const StringTensor& otherwise) {
  if (table.size() > 0 && !table.values_are_texts())
    return InvalidArgument("'default_value' is a text; the table's values are numbers");
  if (otherwise.shape.numel() != 1)
    return InvalidArgument("'default_value' is ", otherwise.shape.ToString(),
                           "; expected one text");
  StringTensor out{keys.shape, {}};
  for (const int64_t row : keys.rows)
    out.elements.push_back(row < 0 ? otherwise.elements[0]
                                   : table.value_texts()[static_cast<size_t>(row)]);
  *ctx.OutVar("values") = ValueOf(std::move(out));
  return Status::Ok();
}

Status Find(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const SharedTable table, TableOf(ctx));
  HEDDLE_ASSIGN_OR_RETURN(const Keys keys, RowsOf(ctx, *table));
  const Value* given = ctx.InVar("default_value");
  if (const auto text = given == nullptr ? nullptr : StringsIn(*given))
    return FindTexts(ctx, *table, keys, *text);
  const Tensor& otherwise = ctx.In("default_value");
  Shape row;
  if (table->size() > 0) {
    if (table->values_are_texts())
      return InvalidArgument("'default_value' is a number; the table's values are texts");
    row = table->values().shape();
    row.erase(0);
    if (table->values().dtype() != otherwise.dtype() || row != otherwise.shape())
      return InvalidArgument("'default_value' is ", Name(otherwise.dtype()), " ",
                             otherwise.shape().ToString(), "; the table's values are ",
                             Name(table->values().dtype()), " ", row.ToString());
  }
  row = otherwise.shape();
  const size_t bytes = BytesFor(otherwise.dtype(), row);
  Shape shape = keys.shape;
  if (shape.rank() + row.rank() > Shape::kMaxRank)
    return InvalidArgument("'keys' have too many dimensions: ", shape.ToString());
  for (int64_t d : row) shape.push_back(d);
  // The shape function knows nothing of texts: then the output may hold an earlier result.
  Tensor& out = keys.are_texts ? ctx.Alloc("values", otherwise.dtype(), shape) : ctx.Out("values");
  auto* to = static_cast<std::byte*>(out.mutable_raw());
  const auto* rows = static_cast<const std::byte*>(table->values().raw());
  for (const int64_t at : keys.rows) {
    LookForInterrupt();
    const void* from = at < 0 ? otherwise.raw() : rows + static_cast<size_t>(at) * bytes;
    if (bytes > 0) WatchedMemcpy(to, from, bytes);
    to += bytes;
  }
  return Status::Ok();
}

Status OneCount(ShapeContext& ctx) {
  ctx.SetOut("size", Shape(), DType::kI64);
  return Status::Ok();
}

Status Size(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const SharedTable table, TableOf(ctx));
  *ctx.Out("size").mutable_data<int64_t>() = table->size();
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_table_find) {
  op.Doc("the values of keys in a table, default_value where it has none");
  op.Input("table", kAnyKind | kOtherOnly)
      .Input("keys", kAnyKind | kTakesOther)
      .Input("default_value", kAnyKind | kTakesOther);
  op.Output("values", kTakesOther).InferShape(FindShape).AnyKernel(Find);
}
HEDDLE_OP(tf_table_size) {
  op.Doc("how many keys a table has").Input("table", kAnyKind | kOtherOnly).Output("size");
  op.InferShape(OneCount).AnyKernel(Size);
}
