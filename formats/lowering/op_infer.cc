// Infers the dtypes and shapes of an operator's results, by its own shape function, as far as they
// are known before any run.
#include <algorithm>
#include <deque>

#include "core/guard.h"
#include "core/op_registry.h"
#include "core/shape_context.h"
#include "core/shapes.h"
#include "formats/lowering/op_maker.h"

namespace heddle::formats {
namespace {

// An operator of the draft, bound to values with a dtype and a shape but without contents.
class Bound {
 public:
  Bound(const DraftOp& op, const OpDef& def) {
    op_.def = &def;
    for (const AttrDef& a : def.attrs()) attrs_.push_back(a.default_value);
    for (const auto& [name, value] : op.attributes)
      if (const int a = def.FindAttr(name); a >= 0) attrs_[static_cast<size_t>(a)] = value;
    op_.attrs = attrs_.data();
  }

  // `value_of(var, slot)` gives the operand, or an empty value.
  template <typename ValueOf>
  void Bind(const DraftOp& op, ValueOf value_of) {
    std::vector<uint32_t> begin{0}, all;
    for (const SlotDef& slot : op_.def->inputs()) {
      for (const auto& [name, vars] : op.inputs) {
        if (name != slot.name) continue;
        for (int v : vars) all.push_back(v == kNoDraft ? kNoSlot : Add(value_of(v, slot)));
      }
      begin.push_back(static_cast<uint32_t>(all.size()));
    }
    op_.in = IdList(std::span<const uint32_t>(all));
    op_.in_begin = IdList(std::span<const uint32_t>(begin));
    begin.assign(1, 0);
    all.clear();
    for (const SlotDef& slot : op_.def->outputs()) {
      for (const auto& [name, vars] : op.outputs)
        if (name == slot.name)
          for (int v : vars) {
            all.push_back(v == kNoDraft ? kNoSlot : Add(Value()));
            outputs.push_back(v);
          }
      begin.push_back(static_cast<uint32_t>(all.size()));
    }
    op_.out = IdList(std::span<const uint32_t>(all));
    op_.out_begin = IdList(std::span<const uint32_t>(begin));
  }

  const BoundOp& op() const { return op_; }
  Value* const* frame() const { return frame_.data(); }
  std::vector<int> outputs;  // variables, in the order of op().out

 private:
  uint32_t Add(Value v) {
    values_.push_back(std::move(v));
    frame_.push_back(&values_.back());
    return static_cast<uint32_t>(frame_.size() - 1);
  }

  BoundOp op_;
  std::vector<AttrValue> attrs_;
  std::deque<Value> values_;
  std::vector<Value*> frame_;
};

}  // namespace

namespace {

// The shape function is called once with each of these sizes in place of the open dimensions; a
// dimension of a result that is equal in all calls does not depend on them. 1 broadcasts with any
// size; 2 and 3 reveal where a size is the rank of a result; the others are multiples of most
// factors. The large ones are for windows with so many elements, and are used where few of the
// others were accepted.
constexpr int64_t kProbes[] = {1, 2, 3, 48, 96, 144, 4032, 8064};
constexpr int64_t kDivisible = 48, kLarge = 1000;

Shape Probed(Shape shape, int64_t probe) {
  for (int i = 0; i < shape.rank(); ++i)
    if (shape[i] < 0) shape[i] = probe;
  return shape;
}

// Keeps in `all` the dimensions that are equal in this trial and in those before it.
void Merge(const ShapeContext::OutMeta& trial, bool first, ShapeContext::OutMeta* all) {
  if (first) {
    *all = trial;
    return;
  }
  if (!trial.set || !all->set || trial.shape.rank() != all->shape.rank()) {
    all->set = false;
    return;
  }
  for (int i = 0; i < trial.shape.rank(); ++i)
    if (trial.shape[i] != all->shape[i]) all->shape[i] = -1;
}

// A tensor filled with `content`, in place of one whose contents are not known.
Tensor FilledLike(DType dtype, const Shape& shape, int64_t content) {
  Tensor t;
  VisitDType<int32_t, int64_t, float, double>(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    t = Tensor::Of(dtype, shape,
                   std::vector<T>(static_cast<size_t>(shape.numel()), static_cast<T>(content)));
  });
  return t;
}

bool IsComparison(std::string_view op) {
  for (std::string_view stem :
       {"equal", "not_equal", "less_", "greater_", "logical_", "isnan", "isinf"})
    if (op.starts_with(stem)) return true;
  return false;
}

// Operators whose first output always has the rank of their first operand.
bool KeepsRank(std::string_view op) {
  static constexpr std::string_view kNames[] = {"onnx_resize",
                                                "top_k_v2",
                                                "tril_triu",
                                                "onnx_conv",
                                                "onnx_max_pool",
                                                "onnx_average_pool",
                                                "center_crop_pad",
                                                "slice",
                                                "strided_slice",
                                                "pad",
                                                "tile",
                                                "split"};
  for (std::string_view name : kNames)
    if (op == name) return true;
  return false;
}

}  // namespace

// The rank of the first output of an operator whose result shape depends on values; -1: not known.
int OpMaker::RankOf(const DraftOp& op) const {
  const auto operand = [&](std::string_view slot) {
    for (const auto& [name, vars] : op.inputs)
      if (name == slot && !vars.empty()) return vars[0];
    return kNoDraft;
  };
  const auto length = [&](int v) {
    return rank(v) == 1 && shape(v)[0] >= 0 ? static_cast<int>(shape(v)[0]) : -1;
  };
  const int first =
      op.inputs.empty() || op.inputs[0].second.empty() ? kNoDraft : op.inputs[0].second[0];
  for (const auto& [name, value] : op.attributes)
    if (const auto* gone = std::get_if<Ints>(&value);
        name == "decrease_axis" && gone != nullptr && !gone->empty())
      return -1;
  if (KeepsRank(op.type)) return rank(first);
  if (op.type == "reshape2") {
    for (const auto& [name, value] : op.attributes)
      if (const auto* dims = std::get_if<Ints>(&value); name == "shape" && dims != nullptr)
        return static_cast<int>(dims->size());
    return length(operand("Shape"));
  }
  if (op.type == "fill_constant") return length(operand("ShapeTensor"));
  if (op.type == "expand_v2") {
    const int wanted = length(operand("Shape")), has = rank(operand("X"));
    return wanted < 0 || has < 0 ? -1 : std::max(wanted, has);
  }
  if (op.type == "range") return 1;
  if (op.type == "where_index") return 2;
  if (op.type == "non_max_suppression") return rank(operand("boxes")) == 3 ? 2 : -1;
  if (op.type == "one_hot_v2") return rank(first) < 0 ? -1 : rank(first) + 1;
  return -1;
}

// The shape of a concatenation or of a broadcast of partly known operands: a dimension is known
// where those of the operands determine it.
Shape OpMaker::JoinedShape(const DraftOp& op) const {
  const bool concat = op.type == "concat";
  if (!concat && !op.type.starts_with("elementwise_")) return Shape::Unknown();
  int64_t axis = concat ? 0 : -1;
  for (const auto& [name, value] : op.attributes)
    if (const auto* i = std::get_if<int64_t>(&value); name == "axis" && i != nullptr) axis = *i;
  std::vector<int> operands;
  int most = 0;
  for (const auto& [slot, vars] : op.inputs)
    for (int v : vars) {
      if (rank(v) < 0) return Shape::Unknown();
      most = std::max(most, rank(v));
      operands.push_back(v);
    }
  if (concat ? axis < -most || axis >= most : axis != -1) return Shape::Unknown();
  if (axis < 0) axis += most;
  Shape all;
  for (int i = 0; i < most; ++i) {
    int64_t dim = concat && i == axis ? 0 : concat ? -1 : 1;
    for (int v : operands) {
      const int at = i - (most - rank(v));
      if (concat && rank(v) != most) return Shape::Unknown();
      const int64_t d = at < 0 ? 1 : shape(v)[at];
      if (concat)
        dim = i != axis ? std::max(dim, d) : d < 0 || dim < 0 ? -1 : dim + d;
      else
        dim = dim > 1 || d == 1 ? dim : d;
    }
    all.push_back(dim);
  }
  return all;
}

// The shape of a matrix product of partly known factors. The shape function may refuse them: before
// a loop's first iteration its variable may have a number of columns that does not match the
// constant's rows.
Shape OpMaker::ProductShape(const DraftOp& op) const {
  if (op.type != "matmul_v2" || op.inputs.size() < 2 || op.inputs[0].second.size() != 1 ||
      op.inputs[1].second.size() != 1)
    return Shape::Unknown();
  const int x = op.inputs[0].second[0], y = op.inputs[1].second[0];
  const int r = rank(x);
  if (op.inputs[0].first != "X" || op.inputs[1].first != "Y" || r < 2 || rank(y) != 2)
    return Shape::Unknown();
  bool trans_x = false, trans_y = false;
  for (const auto& [name, value] : op.attributes) {
    const auto* set = std::get_if<bool>(&value);
    if (set != nullptr && name == "trans_x") trans_x = *set;
    if (set != nullptr && name == "trans_y") trans_y = *set;
  }
  Shape product = shape(x);
  product[r - 2] = shape(x)[trans_x ? r - 1 : r - 2];
  product[r - 1] = shape(y)[trans_y ? 0 : 1];
  return product;
}

void OpMaker::Infer(const DraftOp& op, const OpDef& def) {
  bool known = def.infer_shape() != nullptr, open = false;
  std::vector<int> outputs;
  for (const auto& [slot, vars] : op.inputs)
    for (int v : vars) {
      if (v == kNoDraft) continue;
      open = open || !shape(v).is_static();
      known = known && shape(v).known_rank() && dtype(v) != DType::kUnknown;
    }
  std::vector<ShapeContext::OutMeta> metas;
  int trials = 0, small = 0;  // accepted ones in all, and with sizes 2 and 3
  for (int64_t probe : kProbes) {
    if (!known || (!open && trials > 0) || (probe > kLarge && trials - small > 1)) break;
    Bound bound(op, def);
    bound.Bind(op, [&](int v, const SlotDef& slot) {
      if ((slot.flags & kShapeValue) != 0) {
        if (const Tensor* t = Constant(v)) return Value(*t);
      }
      Value value;
      value.tensor().SetMeta(dtype(v), Probed(shape(v), probe));
      return value;
    });
    outputs = bound.outputs;
    ShapeContext context(bound.op(), bound.frame());
    if (!Guard([&] { return def.infer_shape()(context); }).ok() || context.deferred()) continue;
    context.outs().resize(outputs.size());
    metas.resize(outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) Merge(context.outs()[i], trials == 0, &metas[i]);
    ++trials;
    if (probe > 1 && probe < kDivisible) ++small;
  }
  if (outputs.empty())
    for (const SlotDef& slot : def.outputs())
      for (const auto& [name, vars] : op.outputs)
        if (name == slot.name) outputs.insert(outputs.end(), vars.begin(), vars.end());
  std::optional<std::vector<DType>> dtypes;  // inferred only if the trials did not give the dtype
  for (size_t i = 0; i < outputs.size(); ++i) {
    const int v = outputs[i];
    // For arrays the shape function gives the shape of the items, not of the array.
    if (v == kNoDraft || draft_var(v).kind == ir::VarKind::kArray) continue;
    if (i < metas.size() && metas[i].set) {
      Shape shape = metas[i].shape;
      for (int d = 0; d < shape.rank(); ++d)
        if (shape[d] < 0 || (open && trials - small <= 1)) shape[d] = -1;
      if (const Shape joined = JoinedShape(op); joined.rank() == shape.rank() && i == 0)
        for (int d = 0; d < shape.rank(); ++d)
          if (shape[d] < 0) shape[d] = joined[d];
      SetShape(v, shape);
      draft_var(v).dtype = metas[i].dtype;
      if (shape.known_rank()) continue;
    }
    if (draft_var(v).dtype == DType::kUnknown) {
      if (!dtypes) dtypes = DTypesMade(op, def);
      if (i < dtypes->size()) draft_var(v).dtype = (*dtypes)[i];
    }
    if (i == 0 && draft_var(v).dtype == DType::kUnknown) draft_var(v).dtype = SaidDType(op);
    if (const Shape joined = JoinedShape(op); i == 0 && joined.known_rank())
      SetShape(v, joined);
    else if (const Shape product = ProductShape(op); i == 0 && product.known_rank())
      SetShape(v, product);
    else if (const int r = RankOf(op); i == 0 && r >= 0 && r <= Shape::kMaxRank) {
      Shape shape;
      for (int d = 0; d < r; ++d) shape.push_back(-1);
      SetShape(v, shape);
    }
  }
}

// Infers the dtypes of the outputs, which depend on neither shapes nor values: unknown ranks,
// dimensions and contents are replaced by some that the operator accepts. kUnknown: none was
// accepted, or the dtype depends on an unknown one.
std::vector<DType> OpMaker::DTypesMade(const DraftOp& op, const OpDef& def) {
  std::vector<DType> made;
  if (def.infer_shape() == nullptr) return made;
  bool all_typed = true, open_ranks = false, open_dims = false;
  std::vector<int64_t> sizes = {1, kDivisible};
  for (const auto& [slot, vars] : op.inputs)
    for (int v : vars) {
      if (v == kNoDraft) continue;
      if (draft_var(v).kind == ir::VarKind::kArray) return made;
      all_typed = all_typed && dtype(v) != DType::kUnknown;
      open_ranks |= !shape(v).known_rank();
      open_dims |= !shape(v).is_static();
      for (const int64_t d : shape(v))
        if (d > 0 && sizes.size() < 8 && std::find(sizes.begin(), sizes.end(), d) == sizes.end())
          sizes.push_back(d);
    }
  // A split or a reshape to sizes in an attribute accepts operands with just as many elements.
  for (const auto& [name, value] : op.attributes) {
    const auto* ints = std::get_if<Ints>(&value);
    if (ints == nullptr) continue;
    int64_t sum = 0, product = 1;
    for (const int64_t i : *ints) {
      sum = std::min<int64_t>(sum + std::clamp<int64_t>(i, 0, kLarge), kLarge);
      product = std::min<int64_t>(product * std::clamp<int64_t>(i, 1, kLarge), kLarge);
    }
    for (const int64_t size : {sum, product})
      if (size > 1) sizes.push_back(size);
  }
  // Trials vary only what some operand leaves open.
  bool open_values = false, open_lengths = false;
  for (const SlotDef& slot : def.inputs()) {
    if ((slot.flags & kShapeValue) == 0) continue;
    for (const auto& [name, vars] : op.inputs)
      for (int v : vars) {
        if (name != slot.name || v == kNoDraft || Constant(v) != nullptr) continue;
        open_values = true;
        open_lengths |= !shape(v).is_static();
      }
  }
  const int values_tried = open_lengths ? Trial::kValues : open_values ? Trial::kContents : 1;
  std::vector<int> ranks = {4, 2, 1, 3, 0, 5};
  if (!open_ranks && !open_lengths) ranks.resize(1);
  if (!open_dims) sizes.resize(1);
  // Operands of unknown dtype are tried with two dtypes: a result that is the same for both does
  // not depend on them.
  for (DType stand_in : {DType::kF32, DType::kI64, DType::kBool, DType::kF64}) {
    std::vector<DType> told;
    const auto ask = [&](const Trial& trial) {
      if (!told.empty() && std::find(told.begin(), told.end(), DType::kUnknown) == told.end())
        return;
      const std::vector<DType> more = Try(op, def, trial);
      if (told.empty()) told = more;
      for (size_t i = 0; i < more.size(); ++i)
        if (told[i] == DType::kUnknown) told[i] = more[i];
    };
    // First with the shapes as they are: the shape function may set what does not depend on them.
    ask({.dtype = stand_in});
    for (int rank : ranks)
      for (int64_t size : sizes)
        for (int values = 0; values < (size <= kDivisible ? values_tried : 1); ++values)
          for (int vectors = 0; vectors <= (open_ranks ? 1 : 0); ++vectors)
            ask({.rank = rank,
                 .size = size,
                 .dtype = stand_in,
                 .values = values,
                 .vectors = vectors != 0});
    if (all_typed) return told;
    if (told.empty()) continue;
    const bool first = made.empty();
    if (first) made = told;
    for (size_t i = 0; i < made.size(); ++i)
      if (made[i] != told[i]) made[i] = DType::kUnknown;
    if (!first) return made;
  }
  return {};
}

// The dtypes of the outputs in one trial; empty: the operator does not accept the operands.
std::vector<DType> OpMaker::Try(const DraftOp& op, const OpDef& def, const Trial& trial) {
  Bound bound(op, def);
  bound.Bind(op, [&](int v, const SlotDef& slot) {
    const DType type = dtype(v) == DType::kUnknown ? trial.dtype : dtype(v);
    const bool decides = (slot.flags & kShapeValue) != 0;
    if (const Tensor* t = decides ? Constant(v) : nullptr) return Value(*t);
    Shape stands = trial.rank < 0 ? shape(v) : Probed(shape(v), trial.size);
    if (!stands.known_rank() && trial.rank >= 0) {
      stands = Shape();
      const bool vector = trial.vectors && slot.name != def.inputs()[0].name;
      for (int i = 0; i < (vector ? 1 : trial.rank); ++i) stands.push_back(trial.size);
    }
    if (decides && trial.values > 0) {
      if (!shape(v).is_static()) stands = Shape{trial.length()};
      if (stands.numel() <= 64)
        if (Tensor t = FilledLike(type, stands, trial.content()); t.initialized()) return Value(t);
    }
    Value value;
    value.tensor().SetMeta(type, stands);
    return value;
  });
  ShapeContext context(bound.op(), bound.frame());
  std::vector<DType> told;
  if (!Guard([&] { return def.infer_shape()(context); }).ok() || context.outs().empty())
    return told;
  context.outs().resize(bound.outputs.size());
  bool any = false;
  for (const ShapeContext::OutMeta& out : context.outs()) {
    told.push_back(out.set ? out.dtype : DType::kUnknown);
    any = any || told.back() != DType::kUnknown;
  }
  return any ? told : std::vector<DType>();
}

// The output dtype that the operator's name or an attribute determines.
DType OpMaker::SaidDType(const DraftOp& op) const {
  if (IsComparison(op.type)) return DType::kBool;
  if (op.type == "shape") return DType::kI32;
  // Its attribute dtype is that of positions and counts.
  if (op.type == "unique")
    return op.inputs.empty() ? DType::kUnknown : dtype(op.inputs[0].second[0]);
  if (op.type == "size" || op.type == "where_index") return DType::kI64;
  for (const auto& [name, value] : op.attributes) {
    const auto* number = std::get_if<int64_t>(&value);
    if (number == nullptr || *number < 0) continue;
    if (name == "out_dtype" || (name == "dtype" && !op.type.starts_with("onnx_")))
      return DTypeFromProto(*number);
    if (name == "to" || name == "output_dtype" || name == "dtype")
      if (*number > 0) return StorageOfOnnxType(*number);
  }
  return DType::kUnknown;
}

}  // namespace heddle::formats
