#include "formats/pir/write.h"

#include <algorithm>

#include "core/shapes.h"
#include "formats/pir/write_text.h"

namespace heddle::pir {
namespace {

using ir::kNoVar;
using ir::Op;
using ir::VarId;

template <typename Fn>
void EachVar(const std::vector<std::vector<VarId>>& slots, Fn&& fn) {
  for (const auto& slot : slots)
    for (VarId v : slot)
      if (v != kNoVar) fn(v);
}

std::string ShortName(std::string_view name) {
  for (const auto& [dialect, digit] :
       {std::pair("builtin.", "0."), std::pair("pd_op.", "1."), std::pair("cf.", "2.")})
    if (name.starts_with(dialect))
      return digit + std::string(name.substr(std::string_view(dialect).size()));
  return std::string(name);
}

std::string Values(const std::vector<ValueId>& ids) {
  std::vector<std::string> items;
  for (ValueId id : ids) items.push_back("{\"%\":" + std::to_string(id) + "}");
  return Joined(items);
}

}  // namespace

Writer::Writer(const ir::Program& program)
    : p_(program), now_(program.vars.size()), stored_(program.vars.size()) {}

Result<std::string> Writer::Run() {
  BeginRegion();
  AddParameters();
  AddInputs();
  Operators(0);
  AddOutputs();
  const std::string region = EndRegion({});
  if (!unsaid_.empty()) {
    std::string text = StrCat(p_.name, ": cannot be written as PIR, for ", unsaid_.size(),
                              unsaid_.size() == 1 ? " kind of operator:" : " kinds of operators:");
    for (const auto& [type, unsaid] : unsaid_)
      text += StrCat("\n  ", type, " (", unsaid.count, unsaid.count == 1 ? " time" : " times",
                     ", first: ", unsaid.first, "): ", unsaid.why);
    return Unimplemented(text);
  }
  return R"({"base_code":{"magic":"pir","trainable":true,"version":4},"program":{"regions":[)" +
         region + "]}}\n";
}

void Writer::Note(const Op& op, std::string why) {
  Unsaid& unsaid = unsaid_[op.type()];
  if (unsaid.count++ > 0) return;
  unsaid.first = StrCat("block ", block_, ", op ", op.index);
  unsaid.why = std::move(why);
}

std::vector<ValueId> Writer::Emit(Text text) {
  std::vector<ValueId> ids;
  std::vector<std::string> results;
  for (const std::string& type : text.results) {
    ids.push_back(++results_);
    results.push_back("{\"%\":" + std::to_string(results_) + ",\"TT\":" + type + "}");
  }
  std::string op = "{\"#\":" + Quoted(ShortName(text.name)) + ",\"A\":" + Joined(text.attributes) +
                   ",\"I\":" + Values(text.operands) + ",\"O\":" + Joined(results) + ",\"OA\":[]";
  if (!text.regions.empty()) op += ",\"regions\":" + Joined(text.regions);
  ops_.back().push_back(op + "}");
  return ids;
}

void Writer::BeginRegion() {
  ops_.emplace_back();
  regions_.push_back(next_region_++);
}

std::string Writer::EndRegion(const std::vector<std::string>& arguments) {
  const std::string number = std::to_string(regions_.back());
  const std::string text = "{\"#\":\"region_" + number + "\",\"blocks\":[{\"#\":\"block_" + number +
                           "\",\"args\":" + Joined(arguments) + ",\"ops\":" + Joined(ops_.back()) +
                           "}]}";
  ops_.pop_back();
  regions_.pop_back();
  return text;
}

// Unused parameters are added too, since the file of parameters has them.
void Writer::AddParameters() {
  for (VarId v = 0; v < p_.vars.size(); ++v) {
    const ir::Var& var = VarOf(v);
    if (!var.persistable || var.block != 0 ||
        (var.kind != ir::VarKind::kTensor && var.kind != ir::VarKind::kRows))
      continue;
    now_[v] = stored_[v] = ++results_;
    ops_.back().push_back("{\"#\":\"p\",\"A\":[0,1,1," + Quoted(var.name) +
                          "],\"DA\":[],\"O\":{\"%\":" + std::to_string(results_) +
                          ",\"TT\":" + TypeOf(var) + "},\"OA\":[1,0,1],\"QA\":[]}");
  }
}

void Writer::AddInputs() {
  for (const ir::Port& feed : p_.feeds) {
    const ir::Var& var = VarOf(feed.var);
    Ints dims(var.shape.begin(), var.shape.end());
    now_[feed.var] =
        EmitOne({.name = "pd_op.data",
                 .attributes = {Named("name", *AttributeText("str", var.name)),
                                Named("shape", *AttributeText("ints", dims)),
                                Named("dtype", *AttributeText("dtype", DTypeToProto(var.dtype))),
                                Named("place", *AttributeText("place", false))},
                 .results = {TypeOf(var)}});
  }
}

void Writer::AddOutputs() {
  int64_t column = 0;
  for (const ir::Port& fetch : p_.fetches) {
    const ir::Var& var = VarOf(fetch.var);
    Emit({.name = "pd_op.fetch",
          .attributes = {Named("name", *AttributeText("str", var.name)),
                         Named("col", *AttributeText("i32", column++))},
          .operands = {ValueOf(fetch.var)},
          .results = {TypeOf(var)}});
  }
  // A variable of the scope keeps the value that an ordinary operator wrote to it.
  for (VarId v = 0; v < p_.vars.size(); ++v) {
    const ir::Var& var = VarOf(v);
    if (!var.persistable || var.block != 0 || var.kind != ir::VarKind::kTensor) continue;
    if (now_[v] == stored_[v]) continue;
    Emit({.name = "builtin.set_parameter",
          .attributes = {Named("parameter_name", *AttributeText("str", var.name))},
          .operands = {now_[v]}});
  }
}

void Writer::Operators(int block) {
  MakeArrays(block);
  const int outer = std::exchange(block_, block);
  for (const Op& op : p_.blocks[static_cast<size_t>(block)].ops) Add(op);
  block_ = outer;
}

void Writer::Add(const Op& op) {
  if (op.type() == "while") return AddLoop(op);
  if (op.type() == "conditional_block" || op.type() == "conditional_block_infer")
    return AddBranch(op);
  if (const Handler handler = HandlerOf(op.type())) return (this->*handler)(op);
  AddMapped(op);
}

// write_to_array makes an array where there is none. In PIR arrays are made by an operator of the
// block they belong to.
void Writer::MakeArrays(int block) {
  for (VarId v = 0; v < p_.vars.size(); ++v) {
    const ir::Var& var = VarOf(v);
    if (var.kind != ir::VarKind::kArray || var.block != block || now_[v] != 0) continue;
    const DType dtype = var.dtype == DType::kUnknown ? DType::kF32 : var.dtype;
    now_[v] = EmitOne({.name = "pd_op.create_array",
                       .attributes = {Named("dtype", *AttributeText("dtype", DTypeToProto(dtype)))},
                       .results = {TypeOf(var)}});
  }
}

bool Writer::Within(int block, int outer) const {
  while (block > 0 && block != outer) block = p_.blocks[static_cast<size_t>(block)].parent;
  return block == outer;
}

// Tensors of outer blocks that the block `sub`, or one in it, writes.
std::vector<VarId> Writer::WrittenOutside(int sub) const {
  std::vector<VarId> written;
  for (const ir::Block& block : p_.blocks) {
    if (!Within(block.id, sub)) continue;
    for (const Op& op : block.ops)
      EachVar(op.outputs, [&](VarId v) {
        if (!Within(VarOf(v).block, sub) && VarOf(v).kind == ir::VarKind::kTensor &&
            std::find(written.begin(), written.end(), v) == written.end())
          written.push_back(v);
      });
  }
  return written;
}

// The variable had a value before the block `sub`, or something outside of it reads it.
bool Writer::NeededOutside(VarId v, int sub) const {
  if (now_[v] != 0) return true;
  for (const ir::Port& fetch : p_.fetches)
    if (fetch.var == v) return true;
  for (const ir::Block& block : p_.blocks) {
    if (Within(block.id, sub)) continue;
    for (const Op& op : block.ops) {
      if (op.def->has(kControlFlow)) continue;  // lists what its blocks touch
      bool reads = false;
      EachVar(op.inputs, [&](VarId in) { reads = reads || in == v; });
      if (reads) return true;
    }
  }
  return false;
}

// A value for a variable that has none yet, which nobody reads as it is.
ValueId Writer::ValueFor(VarId v) {
  if (now_[v] != 0) return now_[v];
  Shape shape = VarOf(v).shape.known_rank() ? VarOf(v).shape : Shape{1};
  for (int i = 0; i < shape.rank(); ++i) shape[i] = std::max<int64_t>(shape[i], 1);
  return Full(VarOf(v).dtype, shape, 0);
}

void Writer::AddBranch(const Op& op) {
  const int sub = op.SubBlocks().at(0);
  std::vector<VarId> written = WrittenOutside(sub);
  std::erase_if(written, [&](VarId v) { return !NeededOutside(v, sub); });
  const VarId condition = op.In("Cond").at(0);
  if (VarOf(condition).dtype != DType::kBool) return CannotSay(op, "its condition is no bool");
  const std::vector<ValueId> before = now_;
  Text text{.name = "pd_op.if", .operands = {ValueOf(condition)}};
  for (const bool taken : {true, false}) {
    BeginRegion();
    if (taken) Operators(sub);
    std::vector<ValueId> yielded;
    for (VarId v : written) yielded.push_back(ValueFor(v));
    Emit({.name = "cf.yield", .operands = yielded});
    text.regions.push_back(EndRegion({}));
    now_ = before;
  }
  for (VarId v : written) text.results.push_back(TypeOf(VarOf(v)));
  const std::vector<ValueId> results = Emit(std::move(text));
  for (size_t i = 0; i < written.size(); ++i) Set(written[i], results[i]);
}

void Writer::AddLoop(const Op& op) {
  const int sub = op.SubBlocks().at(0);
  const VarId condition = op.In("Condition").at(0);
  std::vector<VarId> carried = WrittenOutside(sub);
  std::erase_if(carried, [&](VarId v) { return !NeededOutside(v, sub); });
  Text text{.name = "pd_op.while", .operands = {ValueOf(condition)}};
  for (VarId v : carried) text.operands.push_back(ValueFor(v));
  const std::vector<ValueId> before = now_;
  BeginRegion();
  std::vector<std::string> arguments;
  for (VarId v : carried) {
    Set(v, --arguments_);
    arguments.push_back("{\"#\":" + std::to_string(arguments_) + ",\"TT\":" + TypeOf(VarOf(v)) +
                        "}");
  }
  Operators(sub);
  std::vector<ValueId> next = {ValueOf(condition)};
  for (VarId v : carried) next.push_back(ValueFor(v));
  Emit({.name = "cf.yield", .operands = next});
  text.regions.push_back(EndRegion(arguments));
  now_ = before;
  for (VarId v : carried) text.results.push_back(TypeOf(VarOf(v)));
  const std::vector<ValueId> results = Emit(std::move(text));
  for (size_t i = 0; i < carried.size(); ++i) Set(carried[i], results[i]);
}

Result<std::string> WriteProgram(const ir::Program& program) { return Writer(program).Run(); }

}  // namespace heddle::pir
