#include "core/programs/program_builder.h"

#include <algorithm>

#include "core/interrupts.h"
#include "core/op_registry.h"
#include "core/operands/slot_kinds.h"
#include "core/own_ops/own_registry.h"
#include "core/programs/op_check.h"
#include "core/programs/sub_block_slots.h"
#include "core/utf8.h"
#include "heddle/bounds.h"

namespace heddle::ir {
namespace {

constexpr size_t kMaxListed = 20;
constexpr size_t kShownBytes = 80;  // of a name that is too long
constexpr int kNotVisited = -2, kOpen = -1;

std::string LongName(const Var& var) {
  return StrCat("block ", var.block, ", variable ",
                var.name.substr(0, CharacterAt(var.name, kShownBytes)), "...: a name of ",
                var.name.size(), " bytes; ", kMostNameBytes, " are possible");
}

}  // namespace

ProgramBuilder::ProgramBuilder(std::string name, uint64_t hash) : p_(std::make_shared<Program>()) {
  p_->name = std::move(name);
  p_->hash = hash;
}

void ProgramBuilder::SetOpVersion(const std::string& type, int64_t version) {
  p_->op_versions[type] = version;
}

void ProgramBuilder::AddBlock(int parent, int forward_block) {
  const int b = static_cast<int>(p_->blocks.size());
  Block block;
  block.id = b;
  block.parent = b == 0 ? -1 : parent;
  block.forward_block = forward_block;
  if (b > 0 && parent == b) Problem("block ", b, " is its own parent");
  if (b > 0 && (parent < 0 || parent >= block_count_))
    Problem("block ", b, " has parent ", parent, ", which does not exist");
  else if (b > 0 && parent > b)
    Problem("block ", b, " has parent ", parent, "; a parent comes before its children");
  // A search for a name visits all these blocks, even if no operator runs them.
  const auto depth_of = [&](int seen) {
    return seen >= 0 && seen < b ? depths_[static_cast<size_t>(seen)] + 1 : 0;
  };
  depths_.push_back(b == 0 ? 0 : std::max(depth_of(parent), depth_of(forward_block)));
  if (depths_.back() > kMostNestedBlocks) {
    Problem("block ", b, ": more than ", kMostNestedBlocks, " levels of blocks in blocks");
    depths_.back() = 0;  // reported once
  }
  p_->blocks.push_back(std::move(block));
}

void ProgramBuilder::ReserveOps(int block, size_t count) { p_->blocks[block].ops.reserve(count); }

VarId ProgramBuilder::AddVar(Var var) {
  if (var.name.size() > kMostNameBytes) Problem(LongName(var));
  var.shape = Shape::Unknown();
  return p_->AddVar(std::move(var));
}

VarId ProgramBuilder::AddVar(Var var, std::span<const int64_t> dims) {
  if (var.name.size() > kMostNameBytes) Problem(LongName(var));
  var.shape = Shape::Unknown();
  if (dims.size() > Shape::kMaxRank) {
    Problem("block ", var.block, ", variable ", var.name, ": rank ", dims.size(),
            " is above the limit of ", Shape::kMaxRank);
  } else if (var.kind != VarKind::kArray) {
    var.shape = Shape();
    for (int64_t d : dims) var.shape.push_back(d);
  }
  return p_->AddVar(std::move(var));
}

VarId ProgramBuilder::Resolve(int block, const std::string& name) {
  if (name == "@EMPTY@" || name.empty()) return kNoVar;
  if (VarId v = p_->Find(block, name); v != kNoVar) return v;
  Var var;  // not declared by any block of the file
  var.name = name;
  var.block = block;
  return AddVar(std::move(var));
}

void ProgramBuilder::Add(OpBuilder op) {
  LookForInterrupt();
  Op& made = op.op_;
  if (!op.broken_)
    CheckOperands(*p_, op.block_, made, [&](int, const Op&, const std::string& problem) {
      Problem(op.Where(), ": ", problem);
    });
  DeclareArrays(made);
  op.CheckUnknown();
  for (const std::string& problem : op.bad_attrs_) Problem(problem);
  SetVersion(&made);
  SetRewrites(&made);
  for (const AttrValue& a : made.attrs)
    if (const auto* one = std::get_if<BlockRef>(&a); one != nullptr && one->id < 0)
      Problem(op.Where(), ": names no sub-block");
  for (int sub : made.SubBlocks())
    if (sub <= 0 || sub >= static_cast<int>(p_->blocks.size()))
      Problem(op.Where(), ": sub-block ", sub, " does not exist");
  p_->blocks[op.block_].ops.push_back(std::move(made));
}

Status ProgramBuilder::AddOrRefuse(OpBuilder op) {
  const int block = op.block_;
  Add(std::move(op));
  if (ok()) return Status::Ok();
  p_->blocks[static_cast<size_t>(block)].ops.pop_back();
  Status said = problems_.empty() ? UnknownOps() : Summary();
  problems_.clear();
  unknown_.clear();
  return said;
}

// Makes an undeclared variable an array if the operator makes it one.
void ProgramBuilder::DeclareArrays(const Op& op) {
  const auto& slots = op.def->outputs();
  for (size_t s = 0; s < slots.size(); ++s)
    if ((slots[s].flags & kArrayOnly) == kArrayOnly)
      for (VarId v : op.outputs[s])
        if (v != kNoVar && !IsDeclared(p_->vars[v])) p_->vars[v].kind = VarKind::kArray;
}

// An operator whose meaning has changed declares the attribute "op_version", with the present
// version as its default; a file's map of versions overrides it. A gradient has its forward
// operator's version.
void ProgramBuilder::SetVersion(Op* op) const {
  const int a = op->def->FindAttr("op_version");
  if (a < 0 || p_->op_versions.empty()) return;
  std::string_view name = op->def->name();
  while (name.ends_with("_grad")) name.remove_suffix(5);
  const auto found = p_->op_versions.find(std::string(name));
  op->attrs[a] = found == p_->op_versions.end() ? int64_t{0} : found->second;
}

// Whether an operator rewrites a variable is only known from the program: in a run, two operands
// may or may not share memory for other reasons.
void ProgramBuilder::SetRewrites(Op* op) {
  const auto& attrs = op->def->attrs();
  for (size_t a = 0; a < attrs.size(); ++a) {
    if (!attrs[a].name.starts_with(kRewrites)) continue;
    const std::string_view in = std::string_view(attrs[a].name).substr(kRewrites.size());
    for (const auto& pair : op->def->inplace()) {
      if (op->def->inputs()[pair.in].name != in) continue;
      const auto &from = op->inputs[pair.in], &to = op->outputs[pair.out];
      op->attrs[a] = !from.empty() && from == to && from[0] != kNoVar;
    }
  }
}

Result<std::shared_ptr<Program>> ProgramBuilder::Finish(
    std::shared_ptr<const formats::ProgramSource> source) && {
  if (p_->blocks.empty()) return DataLoss(p_->name, ": the program has no block");
  if (!unknown_.empty()) return UnknownOps();
  CheckNesting();
  CheckReserved(*p_, [&](int block, const Op& op, const std::string& problem) {
    Problem("block ", block, ", op ", op.index, " (", op.type(), "): ", problem);
  });
  LookForInterrupt();
  auto by_col = [](const Port& a, const Port& b) { return a.col < b.col; };
  std::stable_sort(p_->feeds.begin(), p_->feeds.end(), by_col);
  std::stable_sort(p_->fetches.begin(), p_->fetches.end(), by_col);
  if (const std::string wrong = FindBrokenControl(*p_); !wrong.empty()) Problem(wrong);
  LookForInterrupt();
  if (problems_.empty()) FillSubBlockSlots(p_.get());
  HEDDLE_RETURN_IF_ERROR(Summary());
  p_->as_parsed_.value = source != nullptr;
  p_->source = std::move(source);
  return std::move(p_);
}

Status ProgramBuilder::Summary() const {
  if (problems_.empty()) return Status::Ok();
  std::string text = p_->name + ": ";
  if (problems_.size() > 1) text += std::to_string(problems_.size()) + " problems:";
  for (size_t i = 0; i < problems_.size() && i < kMaxListed; ++i)
    text += (problems_.size() > 1 ? "\n  " : "") + problems_[i];
  if (problems_.size() > kMaxListed) text += "\n  ...";
  return InvalidArgument(text);
}

Status ProgramBuilder::UnknownOps() const {
  std::string text = p_->name + ": " + std::to_string(unknown_.size()) +
                     (unknown_.size() == 1 ? " operator that" : " operators that") +
                     " heddle does not have:";
  for (const auto& [type, where] : unknown_) text += "\n  " + type + " (" + where + ")";
  return Unimplemented(text);
}

// Checks that no block contains itself through operators that run blocks, and that blocks are not
// nested deeper than the stack of a run allows.
void ProgramBuilder::CheckNesting() {
  if (!problems_.empty()) return;
  nesting_.assign(p_->blocks.size(), kNotVisited);
  for (size_t b = 0; b < p_->blocks.size(); ++b) Visit(static_cast<int>(b), 0);
}

// Finds the number of levels of blocks inside `block`, which is itself nested `depth` deep.
void ProgramBuilder::Visit(int block, int depth) {
  if (nesting_[block] != kNotVisited) return;
  nesting_[block] = kOpen;
  int levels = 0;
  for (const Op& op : p_->blocks[block].ops) {
    for (int sub : op.SubBlocks()) {
      if (nesting_[sub] == kOpen) {
        Problem("block ", block, ", op ", op.index, " (", op.type(), "): runs block ", sub,
                ", inside which it stands");
        continue;
      }
      if (depth < kMostNestedBlocks) Visit(sub, depth + 1);
      levels = std::max(levels, nesting_[sub] + 1);
      if (depth < kMostNestedBlocks && levels <= kMostNestedBlocks) continue;
      Problem("block ", block, ", op ", op.index, " (", op.type(), "): more than ",
              kMostNestedBlocks, " levels of blocks in blocks");
      levels = 0;  // reported once
    }
  }
  nesting_[block] = levels;
}

OpBuilder::OpBuilder(ProgramBuilder& builder, int block, int index, std::string_view type)
    : builder_(builder), block_(block) {
  const OpDef* def = FindOp(type);
  if (def == nullptr) def = FindOwnOpOfFile(type);
  if (def == nullptr) {
    builder.unknown_.emplace(type, StrCat("first: block ", block, ", op ", index));
    return;
  }
  op_ = MakeOp(*def);
  op_.index = index;
}

int64_t OpBuilder::Mark() {
  StreamHints own = hints();
  own.marks.push_back(builder_.next_mark_++);
  const int64_t mark = own.marks.back();
  SetHints(std::move(own));
  return mark;
}

void OpBuilder::After(int64_t mark) {
  StreamHints own = hints();
  own.after.push_back(mark);
  SetHints(std::move(own));
}

std::string OpBuilder::Where() const {
  return StrCat("block ", block_, ", op ", op_.index, " (", op_.type(), ")");
}

std::vector<VarId>* OpBuilder::Slot(const SlotDef& def, int count, std::vector<VarId>* operands,
                                    std::vector<const SlotDef*>* given) {
  const bool again = std::find(given->begin(), given->end(), &def) != given->end();
  given->push_back(&def);
  if (again) builder_.Problem(Where(), ": slot '", def.name, "' is given twice");
  const bool fits = (def.flags & kList) || count <= 1;
  if (!fits) builder_.Problem(Where(), ": slot '", def.name, "' takes one variable, not ", count);
  if (!again && fits) return operands;
  broken_ = true;
  return nullptr;
}

std::vector<VarId>* OpBuilder::Input(std::string_view slot, int count) {
  const int s = def().FindInput(slot);
  if (s >= 0) return Slot(def().inputs()[s], count, &op_.inputs[s], &given_in_);
  if (count > 0) builder_.Problem(Where(), ": has no input slot '", slot, "'");
  return nullptr;
}

std::vector<VarId>* OpBuilder::Output(std::string_view slot, int count) {
  const int s = def().FindOutput(slot);
  if (s >= 0) return Slot(def().outputs()[s], count, &op_.outputs[s], &given_out_);
  if (count > 0) unknown_outputs_.emplace_back(slot);
  return nullptr;
}

namespace {

// Whether the names differ by one letter, or only in case.
bool IsMisspelling(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  if (b.size() < 3 || b.size() - a.size() > 1) return false;
  const auto [x, y] = std::mismatch(a.begin(), a.end(), b.begin());
  if (std::equal(x + (a.size() == b.size() && x != a.end() ? 1 : 0), a.end(),
                 y + (y != b.end() ? 1 : 0), b.end()))
    return true;
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char c, char d) { return lower(c) == lower(d); });
}

}  // namespace

// An unknown output slot is one that heddle does not compute, unless its name is a misspelling of a
// known one.
void OpBuilder::CheckUnknown() {
  for (const std::string& name : unknown_outputs_)
    for (size_t s = 0; s < op_.outputs.size(); ++s)
      if (op_.outputs[s].empty() && IsMisspelling(name, def().outputs()[s].name))
        builder_.Problem(Where(), ": has no output slot '", name, "'; there is '",
                         def().outputs()[s].name, "'");
}

void OpBuilder::SetAttr(int a, Result<AttrValue> value) {
  if (value.ok())
    op_.attrs[a] = *std::move(value);
  else
    bad_attrs_.push_back(StrCat(Where(), ": ", value.status().message()));
}

void OpBuilder::SetAttrFrom(int a, std::vector<VarId> vars) {
  op_.var_attrs.push_back(a);
  op_.inputs.push_back(std::move(vars));
}

}  // namespace heddle::ir
