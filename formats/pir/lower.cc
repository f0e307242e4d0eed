#include "formats/pir/lower.h"

#include <utility>

#include "core/error.h"

namespace heddle::pir {

namespace {

// PIR has no constant tensors: constants are attributes, and parameters are in other files.
constexpr formats::ElementTypes kNoTypes({});

}  // namespace

Lowering::Lowering(const File& file, ir::ProgramBuilder* builder)
    : GraphLoweringOf(kNoTypes, builder, static_cast<size_t>(file.blocks)),
      file_(file),
      uses_(file, &table_) {}

Result<Draft> Lowering::Run() {
  LowerOperations(file_.main);
  if (const Status unknown = UnknownOperators(); !unknown.ok())
    return Status(unknown.code(), builder_.name() + ": " + unknown.message());
  RestoreProducts(&draft_);
  formats::FinishDraft(&draft_);
  return std::move(draft_);
}

void Lowering::LowerOperations(const Block& block) {
  for (const Operation& op : block.operations) Lower(op);
}

void Lowering::Lower(const Operation& op) {
  if (const Handler handler = HandlerOf(op.name)) return (this->*handler)(op);
  if (IsAlias(op)) {
    if (const Binding* x = Operand(op, 0)) Bind(op.results[0].id, *x);
    return;
  }
  const std::vector<Mapping>& mappings = table_.Find(op.name);
  if (!mappings.empty()) return LowerMapped(op, mappings);
  NoteUnknown(op.name, StrCat("block ", block_, ", op ", op.index));
  for (const Definition& result : op.results) Bind(result.id, NewBinding(result));
}

bool Lowering::HasOperands(const Operation& op, size_t operands, size_t results) {
  if (op.operands.size() == operands && op.results.size() == results) return true;
  Problem(op, "has ", op.operands.size(), " operands and ", op.results.size(), " results; ",
          operands, " and ", results, " are expected");
  for (const Definition& result : op.results) Bind(result.id, NewBinding(result));
  return false;
}

const Lowering::Binding* Lowering::Operand(const Operation& op, size_t i) {
  if (i >= op.operands.size()) {
    Problem(op, "has no operand ", i);
    return nullptr;
  }
  const ValueId id = op.operands[i];
  if (id == 0) return nullptr;
  const auto found = values_.find(id);
  if (found == values_.end()) {
    Problem(op, "operand ", i, " is %", id, ", which no operator before it defines here");
    return nullptr;
  }
  if (found->second.missing)
    Problem(op, "operand ", i, " is %", id, ", which heddle does not compute");
  return found->second.kind == Binding::Kind::kNothing ? nullptr : &found->second;
}

int Lowering::OperandVar(const Operation& op, size_t i) {
  const size_t before = i < op.operands.size() && op.operands[i] != 0 ? 1 : 0;
  const Binding* binding = Operand(op, i);
  if (binding != nullptr && binding->kind == Binding::Kind::kVar) return binding->var;
  if (binding != nullptr)
    Problem(op, "operand ", i, " (%", op.operands[i], ") must be one value, and is a list");
  else if (before == 0)
    Problem(op, "operand ", i, " is not given");
  return kNoDraft;
}

int Lowering::NewVar(const Type& type, ValueId id) {
  const int v = GraphLowering::NewVar("%" + std::to_string(id), type.dtype);
  DraftVar& made = var(v);
  made.id = id;
  made.ranked = type.ranked && type.dims.size() <= static_cast<size_t>(Shape::kMaxRank);
  if (made.ranked) {
    made.dims = type.dims;
    facts(v).shape = Shape(std::span<const int64_t>(type.dims));
  }
  if (type.kind == Type::Kind::kArray) made.kind = ir::VarKind::kArray;
  if (type.kind == Type::Kind::kRows) made.kind = ir::VarKind::kRows;
  if (type.kind == Type::Kind::kSparse || type.kind == Type::Kind::kOther)
    made.kind = ir::VarKind::kRaw;
  return v;
}

// Adds a variable for a value that the file lacks. The name cannot clash: names from the file begin
// otherwise or have no '/'.
int Lowering::NewOwn(std::string_view stem, DType dtype) {
  return GraphLowering::NewVar(StrCat(stem, "/", draft_.vars.size() + 1), dtype);
}

Lowering::Binding Lowering::NewBinding(const Definition& result) {
  Binding binding;
  switch (result.type.kind) {
    case Type::Kind::kNone:
      break;
    case Type::Kind::kList:
      binding.kind = Binding::Kind::kList;
      for (size_t i = 0; i < result.type.elements.size(); ++i) {
        const Type& type = result.type.elements[i];
        const int var = type.kind == Type::Kind::kNone ? kNoDraft : NewVar(type, result.id);
        if (var != kNoDraft) draft_.vars[static_cast<size_t>(var)].name += "." + std::to_string(i);
        binding.list.push_back(var);
      }
      break;
    default:
      binding.kind = Binding::Kind::kVar;
      binding.var = NewVar(result.type, result.id);
  }
  return binding;
}

void Lowering::Bind(ValueId id, Binding binding) { values_[id] = std::move(binding); }

void Lowering::BindVar(ValueId id, int var) {
  Binding binding;
  binding.kind = var == kNoDraft ? Binding::Kind::kNothing : Binding::Kind::kVar;
  binding.var = var;
  Bind(id, std::move(binding));
}

DraftOp& Lowering::Emit(std::string_view type, const Operation& op) {
  DraftOp& made = draft_.blocks[static_cast<size_t>(block_)].ops.emplace_back();
  made.type = type;
  made.index = op.index;
  made.source = &op;
  made.role = RoleOf(op);
  return made;
}

int64_t Lowering::RoleOf(const Operation& op) {
  int64_t role = 0;
  const Attribute* attribute = op.Find("op_role");
  if (attribute != nullptr) attribute->value["D"].Get(&role);
  return role;
}

void Lowering::In(DraftOp* to, std::string_view slot, std::vector<int> vars) {
  to->inputs.emplace_back(slot, std::move(vars));
}
void Lowering::Out(DraftOp* to, std::string_view slot, std::vector<int> vars) {
  to->outputs.emplace_back(slot, std::move(vars));
}

void Lowering::Copy(int from, int to, const Operation& op) {
  DraftOp& copy = Emit("assign", op);
  In(&copy, "X", {from});
  Out(&copy, "Out", {to});
}

// Adds a variable to the present block that holds a copy of another one.
int Lowering::CopyOf(int var, const Operation& op) {
  DraftVar like = draft_.vars[static_cast<size_t>(var)];
  like.name += "/" + std::to_string(draft_.vars.size());
  like.block = block_;
  like.persistable = like.named = like.fed = like.shared = false;
  const int made = GraphLowering::NewVar(like.name, like.dtype);
  draft_.vars.back() = std::move(like);
  TakeFacts(var, made);
  Copy(var, made, op);
  return made;
}

}  // namespace heddle::pir
