#include "partition/description.h"

#include <cstring>
#include <unordered_set>

#include "core/error.h"
#include "formats/wire_fields.h"

namespace heddle::partition {
namespace {

using wire::Field;
using wire::Fields;

// The element type of a VarType.Type.
DType DTypeOf(uint64_t number) {
  constexpr DType kFirst[] = {DType::kBool, DType::kI16, DType::kI32, DType::kI64,
                              DType::kF16,  DType::kF32, DType::kF64};
  constexpr DType kLater[] = {DType::kU8, DType::kI8, DType::kBF16, DType::kC64, DType::kC128};
  if (number < std::size(kFirst)) return kFirst[number];
  if (number >= 20 && number - 20 < std::size(kLater)) return kLater[number - 20];
  return DType::kUnknown;
}

// Calls fn(value) for each number of a repeated scalar field, packed or not. False: the field is
// damaged.
template <typename Fn>
bool ForNumbers(const Field& field, Fn&& fn) {
  if (field.wire_type != Field::kBytes) {
    fn(field.varint);
    return true;
  }
  std::string_view rest = field.payload;
  while (!rest.empty()) {
    uint64_t value = 0;
    if (!wire::TakeVarint(&rest, &value)) return false;
    fn(value);
  }
  return true;
}

template <typename Fn>
void ForFixed(std::string_view payload, size_t width, Fn&& fn) {
  for (; payload.size() >= width; payload.remove_prefix(width)) {
    if (width == 4) {
      float value = 0;
      std::memcpy(&value, payload.data(), 4);
      fn(static_cast<double>(value));
    } else {
      double value = 0;
      std::memcpy(&value, payload.data(), 8);
      fn(value);
    }
  }
}

bool ReadTensor(std::string_view bytes, Variable* var) {
  var->ranked = true;
  Fields fields(bytes);
  for (Field f; !fields.done();) {
    if (!fields.Next(&f)) return false;
    if (f.IsVarint(1)) var->dtype = DTypeOf(f.varint);
    if (f.number == 2 &&
        !ForNumbers(f, [&](uint64_t dim) { var->dims.push_back(static_cast<int64_t>(dim)); }))
      return false;
  }
  return true;
}

bool ReadVarType(std::string_view bytes, Variable* var) {
  constexpr uint64_t kLoDTensor = 7;
  Fields fields(bytes);
  for (Field f; !fields.done();) {
    if (!fields.Next(&f)) return false;
    if (f.IsVarint(1)) var->dense = f.varint == kLoDTensor;
    if (!f.Is(3)) continue;
    Fields tensor(f.payload);
    for (Field t; !tensor.done();)
      if (!tensor.Next(&t) || (t.Is(1) && !ReadTensor(t.payload, var))) return false;
  }
  return true;
}

bool ReadVar(std::string_view bytes, Variable* var) {
  var->bytes = bytes;
  Fields fields(bytes);
  for (Field f; !fields.done();) {
    if (!fields.Next(&f)) return false;
    if (f.Is(1)) var->name = f.payload;
    if (f.Is(2) && !ReadVarType(f.payload, var)) return false;
    if (f.IsVarint(3)) var->persistable = f.varint != 0;
  }
  return true;
}

Scalar IntegerScalar(int64_t value) {
  Scalar scalar;
  scalar.is_integer = true;
  scalar.integer = value;
  scalar.number = static_cast<double>(value);
  return scalar;
}
Scalar NumberScalar(double value) {
  Scalar scalar;
  scalar.number = value;
  return scalar;
}
Scalar TextScalar(std::string_view value) {
  Scalar scalar;
  scalar.is_text = true;
  scalar.text = value;
  return scalar;
}

// AttrType, and the field of OpDesc.Attr that holds a value of it.
struct AttrForm {
  uint32_t field = 0;
  bool list = false;
  enum { kInt, kLong, kBool, kFloat, kDouble, kText } kind = kInt;
};
std::optional<AttrForm> FormOf(uint32_t type) {
  switch (type) {
    case 0:
      return AttrForm{3, false, AttrForm::kInt};
    case 1:
      return AttrForm{4, false, AttrForm::kFloat};
    case 2:
      return AttrForm{5, false, AttrForm::kText};
    case 3:
      return AttrForm{6, true, AttrForm::kInt};
    case 4:
      return AttrForm{7, true, AttrForm::kFloat};
    case 5:
      return AttrForm{8, true, AttrForm::kText};
    case 6:
      return AttrForm{10, false, AttrForm::kBool};
    case 7:
      return AttrForm{11, true, AttrForm::kBool};
    case 9:
      return AttrForm{13, false, AttrForm::kLong};
    case 11:
      return AttrForm{15, true, AttrForm::kLong};
    case 12:
      return AttrForm{16, true, AttrForm::kDouble};
    case 15:
      return AttrForm{19, false, AttrForm::kDouble};
    default:
      return std::nullopt;
  }
}

void AddValues(const AttrForm& form, const Field& f, std::vector<Scalar>* items) {
  if (form.kind == AttrForm::kText) {
    items->push_back(TextScalar(f.payload));
  } else if (form.kind == AttrForm::kFloat || form.kind == AttrForm::kDouble) {
    ForFixed(f.payload, form.kind == AttrForm::kFloat ? 4 : 8,
             [&](double value) { items->push_back(NumberScalar(value)); });
  } else {
    ForNumbers(f, [&](uint64_t raw) {
      const auto value = static_cast<int64_t>(raw);
      items->push_back(IntegerScalar(form.kind == AttrForm::kInt    ? static_cast<int32_t>(value)
                                     : form.kind == AttrForm::kBool ? int64_t{raw != 0}
                                                                    : value));
    });
  }
}

}  // namespace

int64_t Variable::elements() const {
  int64_t count = 1;
  for (const int64_t dim : dims) {
    if (dim < 0) continue;
    // More than any memory, which suffices for costs.
    if (__builtin_mul_overflow(count, dim, &count)) return int64_t{1} << 62;
  }
  return count;
}

std::optional<Literal> ValueOf(const Attr& attr) {
  const std::optional<AttrForm> form = FormOf(attr.type);
  if (!form) return std::nullopt;
  Fields values(attr.bytes);
  Literal literal;
  literal.is_list = form->list;
  for (Field f; !values.done() && values.Next(&f);)
    if (f.number == form->field) AddValues(*form, f, &literal.items);
  if (literal.is_list) return literal;
  if (literal.items.empty())
    literal.items.push_back(form->kind == AttrForm::kText ? TextScalar("") : IntegerScalar(0));
  literal.items.resize(1);
  return literal;
}

Result<Description> Description::Parse(std::string_view bytes) {
  Description d;
  d.bytes_ = bytes;
  Fields fields(bytes);
  for (Field f; !fields.done();) {
    if (!fields.Next(&f)) return DataLoss("not a Paddle program, or cut short");
    if (f.Is(1) && !d.ReadBlock(f.payload, &d.blocks_.emplace_back()))
      return DataLoss("block ", d.blocks_.size() - 1, " of the program is damaged");
  }
  if (d.blocks_.empty()) return DataLoss("the program has no block");
  // Parents must have lower numbers than their children, so that no walk here is endless.
  for (size_t b = 0; b < d.blocks_.size(); ++b)
    if (d.blocks_[b].parent >= static_cast<int>(b))
      return DataLoss("block ", b, " lies in block ", d.blocks_[b].parent);
  d.FindOuterNames();
  return d;
}

bool Description::ReadBlock(std::string_view bytes, BlockText* block) {
  size_t ops = 0, vars = 0;
  for (Fields fields(bytes); !fields.done();) {
    Field f;
    if (!fields.Next(&f)) return false;
    ops += f.Is(4);
    vars += f.Is(3);
  }
  block->ops.reserve(ops);
  block->declared.reserve(vars);
  block->names.reserve(vars);
  Fields fields(bytes);
  for (Field f; !fields.done() && fields.Next(&f);) {
    if (f.IsVarint(2)) block->parent = static_cast<int>(f.integer());
    if (f.IsVarint(5)) block->forward = static_cast<int>(f.integer());
    if (f.Is(4) && !ReadOp(f.payload, &block->ops.emplace_back())) return false;
    if (!f.Is(3)) continue;
    Variable var;
    if (!ReadVar(f.payload, &var)) return false;
    const auto [at, is_new] =
        block->names.emplace(var.name, static_cast<uint32_t>(block->declared.size()));
    if (is_new)
      block->declared.push_back(std::move(var));
    else
      block->declared[at->second] = std::move(var);
  }
  return true;
}

bool Description::ReadOp(std::string_view bytes, Operator* op) {
  op->bytes = bytes;
  op->first_argument = static_cast<uint32_t>(arguments_.size());
  op->first_attr = static_cast<uint32_t>(attrs_.size());
  for (const bool output : {false, true}) {
    Fields fields(bytes);
    for (Field f; !fields.done();) {
      if (!fields.Next(&f)) return false;
      if (f.Is(output ? 2 : 1) && !ReadSlot(f.payload, output)) return false;
      if (output) continue;
      if (f.Is(3)) {
        const auto [at, is_new] = type_ids_.emplace(f.payload, static_cast<TypeId>(types_.size()));
        if (is_new) types_.push_back(f.payload);
        op->type = at->second;
      }
      if (!f.Is(4)) continue;
      Attr& attr = attrs_.emplace_back();
      attr.bytes = f.payload;
      Fields parts(f.payload);
      for (Field p; !parts.done();) {
        if (!parts.Next(&p)) return false;
        if (p.Is(1)) attr.name = p.payload;
        if (p.IsVarint(2)) attr.type = static_cast<uint32_t>(p.varint);
      }
    }
  }
  op->num_arguments = static_cast<uint32_t>(arguments_.size()) - op->first_argument;
  op->num_attrs = static_cast<uint32_t>(attrs_.size()) - op->first_attr;
  return true;
}

bool Description::ReadSlot(std::string_view bytes, bool output) {
  std::string_view slot;
  for (const bool names : {true, false}) {
    Fields fields(bytes);
    for (Field f; !fields.done();) {
      if (!fields.Next(&f)) return false;
      if (names && f.Is(1)) slot = f.payload;
      if (!names && f.Is(2)) arguments_.push_back({slot, f.payload, output});
    }
  }
  return true;
}

const Attr* Description::FindAttr(const Operator& op, std::string_view name) const {
  const Attr* found = nullptr;
  for (uint32_t i = 0; i < op.num_attrs; ++i)
    if (const Attr& attr = attrs_[op.first_attr + i]; attr.name == name) found = &attr;
  return found;
}

std::vector<int> Description::SubBlocks(const Operator& op) const {
  constexpr uint32_t kBlock = 8, kBlocks = 10;
  std::vector<int> blocks;
  for (uint32_t i = 0; i < op.num_attrs; ++i) {
    const Attr& attr = attrs_[op.first_attr + i];
    if (attr.type != kBlock && attr.type != kBlocks) continue;
    Fields fields(attr.bytes);
    for (Field f; !fields.done() && fields.Next(&f);)
      if (f.number == (attr.type == kBlock ? 12u : 14u))
        ForNumbers(f, [&](uint64_t block) { blocks.push_back(static_cast<int>(block)); });
  }
  return blocks;
}

void Description::FindOuterNames() {
  if (blocks_.size() < 2) return;
  outer_names_.resize(blocks_.size());
  for (size_t b = blocks_.size(); b-- > 0;) {  // the blocks that a block runs have higher numbers
    std::unordered_set<std::string_view> read, written;
    const auto add = [&](std::string_view name, std::unordered_set<std::string_view>* seen,
                         std::vector<std::string_view>* names) {
      if (IsName(name) && !blocks_[b].names.contains(name) && seen->insert(name).second)
        names->push_back(name);
    };
    for (const Operator& op : blocks_[b].ops) {
      for (uint32_t k = 0; k < op.num_arguments; ++k) {
        const Argument& argument = arguments(op)[k];
        if (argument.output)
          add(argument.name, &written, &outer_names_[b].writes);
        else
          add(argument.name, &read, &outer_names_[b].reads);
      }
      for (const int inner : SubBlocks(op)) {
        if (inner <= static_cast<int>(b) || static_cast<size_t>(inner) >= blocks_.size()) continue;
        const OuterNames& names = outer_names_[static_cast<size_t>(inner)];
        for (const std::string_view name : names.reads) add(name, &read, &outer_names_[b].reads);
        for (const std::string_view name : names.writes)
          add(name, &written, &outer_names_[b].writes);
      }
    }
  }
}

}  // namespace heddle::partition
