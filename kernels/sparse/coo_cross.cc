// Crosses of columns of features: for each row every choice of one feature of each column, joined
// to one text or hashed to one number.
#include <memory>
#include <string>
#include <vector>

#include "core/interrupts.h"
#include "core/operands/slot_kinds.h"
#include "kernels/base/index_args.h"
#include "kernels/operands/operands.h"
#include "kernels/strings/string_operand.h"
#include "kernels/strings/text_hash.h"

namespace heddle {
namespace {

// A column's features, row by row: a sparse matrix's entries, or a dense matrix's rows.
struct Column {
  std::shared_ptr<const StringTensor> texts;  // null: the features are numbers
  const int64_t* numbers = nullptr;
  bool sparse = false;
  std::vector<int64_t> begins;  // of rows, and the end

  const std::string& text(int64_t i) const { return texts->elements[static_cast<size_t>(i)]; }
  std::string AsText(int64_t i) const {
    return texts != nullptr ? text(i) : std::to_string(numbers[i]);
  }
  int64_t count(int64_t row) const {
    return begins[static_cast<size_t>(row) + 1] - begins[static_cast<size_t>(row)];
  }
};

// Takes the features of operand `key`, and returns their shape.
Result<Shape> TakeFeatures(const KernelContext& ctx, Key key, int i, Column* column) {
  const Value* v = ctx.InVar(key, i);
  column->texts = v == nullptr ? nullptr : StringsIn(*v);
  if (column->texts != nullptr) return column->texts->shape;
  if (v == nullptr || !v->is_tensor() || v->tensor().dtype() != DType::kI64)
    return InvalidArgument("'", key.name, "' ", i, " must hold strings or int64");
  column->numbers = v->tensor().data<int64_t>();
  return v->tensor().shape();
}

Result<Column> SparseColumn(const KernelContext& ctx, int i, int64_t* rows) {
  Column column;
  column.sparse = true;
  HEDDLE_ASSIGN_OR_RETURN(const Shape values, TakeFeatures(ctx, "Values", i, &column));
  const Tensor &indices = ctx.In("Indices", i), &shape = ctx.In("Shapes", i);
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(indices.dtype(), "Indices"));
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(shape.dtype(), "Shapes"));
  if (indices.rank() != 2 || indices.dim(1) != 2 || values.rank() != 1 ||
      values.dim(0) != indices.dim(0) || shape.rank() != 1 || shape.dim(0) != 2)
    return InvalidArgument("sparse column ", i, " has indices ", indices.shape().ToString(),
                           ", values ", values.ToString(), " and a shape of ",
                           shape.shape().ToString(), "; [n, 2], [n] and [2] are expected");
  if (*rows < 0) *rows = IntAt(shape, 0);
  if (*rows < 0 || IntAt(shape, 0) != *rows)
    return InvalidArgument("sparse column ", i, " has ", IntAt(shape, 0), " rows; ",
                           std::max<int64_t>(*rows, 0), " are expected");
  HEDDLE_RETURN_IF_ERROR(MakeShape({*rows}, "Shapes").status());
  // Entries count while they are in the order of their rows.
  int64_t at = 0;
  for (const int64_t row : Watched(*rows)) {
    column.begins.push_back(at);
    while (at < indices.dim(0) && IntAt(indices, 2 * at) == row) ++at;
  }
  column.begins.push_back(at);
  return column;
}

Result<Column> DenseColumn(const KernelContext& ctx, int i, int64_t* rows) {
  Column column;
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, TakeFeatures(ctx, "Dense", i, &column));
  if (shape.rank() != 2)
    return InvalidArgument("dense column ", i, " has the shape ", shape.ToString(),
                           "; a matrix is expected");
  if (*rows < 0) *rows = shape[0];
  if (shape[0] != *rows)
    return InvalidArgument("dense column ", i, " has ", shape[0], " rows; ", *rows,
                           " are expected");
  for (int64_t row = 0; row <= *rows; ++row) column.begins.push_back(row * shape[1]);
  return column;
}

// What a cross becomes.
struct Crosser {
  std::string separator;
  bool starts_with_key = false;
  uint64_t key = 0;
  bool keyed = false, strong = false;
  uint64_t salt[2] = {0, 0};
  uint64_t buckets = 0;

  uint64_t FeatureHash(const Column& c, int64_t i) const {
    // Of a number, four bytes are hashed.
    const auto bytes = [&] {
      return std::string_view(reinterpret_cast<const char*>(c.numbers + i), 4);
    };
    if (keyed && strong)
      return SipHash(salt[0], salt[1]).Of(c.texts != nullptr ? c.text(i) : bytes());
    if (c.texts != nullptr) return Fingerprint::Of(c.text(i));
    return keyed && c.sparse ? Fingerprint::Of(bytes()) : static_cast<uint64_t>(c.numbers[i]);
  }

  int64_t Hash(const std::vector<Column>& columns, const std::vector<int64_t>& at) const {
    uint64_t hash = key;
    for (size_t c = 0; c < columns.size(); ++c) {
      const uint64_t next = FeatureHash(columns[c], at[c]);
      hash = c == 0 && !starts_with_key ? next : JoinedHash(hash, next);
    }
    return static_cast<int64_t>(hash % (buckets > 0 ? buckets : uint64_t{INT64_MAX}));
  }

  std::string Text(const std::vector<Column>& columns, const std::vector<int64_t>& at) const {
    std::string text;
    for (size_t c = 0; c < columns.size(); ++c) {
      if (c > 0) text += separator;
      text += columns[c].AsText(at[c]);
    }
    return text;
  }
};

Result<Crosser> CrosserOf(const KernelContext& ctx) {
  Crosser made;
  HEDDLE_ASSIGN_OR_RETURN(made.separator, OneText(ctx, "Separator", "separator"));
  int64_t buckets = ctx.Int("num_buckets");
  made.key = static_cast<uint64_t>(ctx.Int("hash_key"));
  made.keyed = ctx.InOpt("Salt") != nullptr;
  made.starts_with_key = !made.keyed;
  if (made.keyed) {
    const Tensor& salt = ctx.In("Salt");
    HEDDLE_RETURN_IF_ERROR(CheckIntDType(salt.dtype(), "Salt"));
    if (salt.numel() != 2)
      return InvalidArgument("'Salt' has ", salt.numel(), " elements; 2 are expected");
    for (int i = 0; i < 2; ++i) made.salt[i] = static_cast<uint64_t>(IntAt(salt, i));
    HEDDLE_ASSIGN_OR_RETURN(buckets, IntIn(ctx, "Buckets", 0));
    const Tensor* strong = ctx.InOpt("Strong");
    if (strong != nullptr && (strong->dtype() != DType::kBool || strong->numel() != 1))
      return InvalidArgument("'Strong' must hold one truth value");
    made.strong = strong != nullptr && *strong->data<bool>();
  }
  made.buckets = static_cast<uint64_t>(std::max<int64_t>(buckets, 0));
  return made;
}

// How many crosses each row has.
Result<std::vector<int64_t>> CountsOf(const std::vector<Column>& columns, int64_t rows) {
  std::vector<int64_t> counts;
  Shape all{0};
  for (const int64_t row : Watched(rows)) {
    int64_t count = 1;
    for (const Column& c : columns) {
      const int64_t features = c.count(row);
      if (features == 0) count = 0;
      if (count == 0) break;
      HEDDLE_ASSIGN_OR_RETURN(const Shape more, MakeShape({count, features}, "a row's crosses"));
      count = more.numel();
    }
    counts.push_back(columns.empty() ? 0 : count);
    HEDDLE_ASSIGN_OR_RETURN(all, MakeShape({all[0] + counts.back(), 2}, "crosses"));
  }
  return counts;
}

Status Cross(KernelContext& ctx) {
  const int sparse = ctx.InCount("Values"), dense = ctx.InCount("Dense");
  if (ctx.InCount("Indices") != sparse || ctx.InCount("Shapes") != sparse)
    return InvalidArgument("there are ", ctx.InCount("Indices"), " 'Indices', ", sparse,
                           " 'Values' and ", ctx.InCount("Shapes"),
                           " 'Shapes'; as many of each are expected");
  std::vector<Column> columns;
  int64_t rows = -1;
  for (int i = 0; i < sparse; ++i) {
    HEDDLE_ASSIGN_OR_RETURN(Column c, SparseColumn(ctx, i, &rows));
    columns.push_back(std::move(c));
  }
  for (int i = 0; i < dense; ++i) {
    HEDDLE_ASSIGN_OR_RETURN(Column c, DenseColumn(ctx, i, &rows));
    columns.push_back(std::move(c));
  }
  rows = std::max<int64_t>(rows, 0);
  HEDDLE_ASSIGN_OR_RETURN(const Crosser crosser, CrosserOf(ctx));
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<int64_t> counts, CountsOf(columns, rows));
  int64_t total = 0, most = 0;
  for (const int64_t count : counts) total += count, most = std::max(most, count);
  int64_t* place = ctx.Alloc("OutIndices", DType::kI64, Shape{total, 2}).mutable_data<int64_t>();
  int64_t* shape = ctx.Alloc("OutShape", DType::kI64, Shape{2}).mutable_data<int64_t>();
  shape[0] = rows, shape[1] = most;
  const bool hashed = ctx.Bool("hashed");
  StringTensor texts{Shape{total}, {}};
  int64_t* numbers =
      hashed ? ctx.Alloc("OutValues", DType::kI64, Shape{total}).mutable_data<int64_t>() : nullptr;
  std::vector<int64_t> at(columns.size());
  for (int64_t row = 0; row < rows; ++row) {
    for (size_t c = 0; c < columns.size(); ++c) at[c] = columns[c].begins[static_cast<size_t>(row)];
    for (const int64_t k : Watched(counts[static_cast<size_t>(row)])) {
      *place++ = row;
      *place++ = k;
      if (hashed)
        *numbers++ = crosser.Hash(columns, at);
      else
        texts.elements.push_back(crosser.Text(columns, at));
      // The next choice; the last column changes first.
      for (size_t c = columns.size(); c-- > 0;) {
        if (++at[c] < columns[c].begins[static_cast<size_t>(row) + 1]) break;
        at[c] = columns[c].begins[static_cast<size_t>(row)];
      }
    }
  }
  if (!hashed) SetStrings(ctx, "OutValues", std::move(texts));
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(coo_cross) {
  op.Doc(
      "for each row every choice of one feature of each column, as a sparse matrix: texts joined "
      "by a separator or, `hashed`, numbers modulo the buckets, if there are any. Columns are "
      "sparse matrices (Indices, Values, Shapes), then dense ones. With Salt, hashes are keyed by "
      "it where Strong says so; without, they begin with `hash_key`");
  op.Input("Indices", kList | kOptional)
      .Input("Values", kList | kOptional | kAnyKind | kTakesOther)
      .Input("Shapes", kList | kOptional)
      .Input("Dense", kList | kOptional | kAnyKind | kTakesOther)
      .Input("Separator", kOptional | kAnyKind | kOtherOnly)
      .Input("Buckets", kOptional)
      .Input("Strong", kOptional)
      .Input("Salt", kOptional);
  op.Output("OutIndices").Output("OutValues", kTakesOther).Output("OutShape");
  op.Attr("hashed", false).Attr("separator", "_X_").Attr("num_buckets", 0).Attr("hash_key", 0);
  op.AnyKernel(Cross);
}
