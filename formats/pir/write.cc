#include "formats/pir/write.h"

#include <algorithm>
#include <memory>

#include "core/shapes.h"
#include "formats/pir/write_text.h"
#include "heddle/program.h"

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

// The end of an operator's text, without attributes of results.
constexpr std::string_view kNoFacts = R"(,"OA":[]})";

std::string Values(const std::vector<ValueId>& ids) {
  std::vector<std::string> items;
  for (ValueId id : ids) items.push_back("{\"%\":" + std::to_string(id) + "}");
  return Joined(items);
}

}  // namespace

// Programs without feed and fetch operators, as training programs are: their inputs are the
// variables that must be fed, and their results are fetched, since values in PIR have no names.
Writer::Writer(const ir::Program& program)
    : p_(program), now_(program.vars.size()), stored_(program.vars.size()) {
  const Program view(std::shared_ptr<const ir::Program>(std::shared_ptr<void>(), &program));
  for (const ir::Port& feed : p_.feeds) feeds_.push_back(feed.var);
  for (const ir::Port& fetch : p_.fetches) fetches_.push_back(fetch.var);
  if (feeds_.empty())
    for (const TensorInfo& info : view.unwritten()) feeds_.push_back(p_.Find(0, info.name));
  if (fetches_.empty())
    for (const TensorInfo& info : view.results()) fetches_.push_back(p_.Find(0, info.name));
}

Result<std::string> Writer::Run() {
  BeginRegion();
  if (ReadsParameters()) AddParameters();
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
  return R"({"base_code":{"magic":"pir","trainable":true,"version":)" +
         std::to_string(kWrittenVersion) + R"(},"program":{"regions":[)" + region + "]}}\n";
}

void Writer::Note(const Op& op, std::string why) {
  Unsaid& unsaid = unsaid_[op.type()];
  if (unsaid.count++ > 0) return;
  unsaid.first = StrCat("block ", block_, ", op ", op.index);
  unsaid.why = std::move(why);
}

std::vector<ValueId> Writer::Emit(Text text) {
  if (role_ != 0) text.attributes.push_back(Named("op_role", *AttributeText("i32", role_)));
  std::vector<ValueId> ids;
  std::vector<std::string> results;
  for (const std::string& type : text.results) {
    ids.push_back(++results_);
    results.push_back("{\"%\":" + std::to_string(results_) + ",\"TT\":" + type + "}");
  }
  std::string op = "{\"#\":" + Quoted(ShortName(text.name)) + ",\"A\":" + Joined(text.attributes) +
                   ",\"I\":" + Values(text.operands) + ",\"O\":" + Joined(results);
  if (!text.regions.empty()) op += ",\"regions\":" + Joined(text.regions);
  if (ops_.size() == 1)
    for (size_t r = 0; r < ids.size(); ++r) makers_[ids[r]] = {ops_[0].size(), r, ids.size()};
  ops_.back().push_back(op + std::string(kNoFacts));
  return ids;
}

// Marks values as persistable; Paddle keeps all others in a scope of the run.
void Writer::MakePersistable(const std::vector<ValueId>& values) {
  std::map<size_t, std::vector<std::string>> flags;  // by operator: one flag per result
  for (const ValueId value : values) {
    const auto maker = makers_.find(value);
    if (maker == makers_.end()) continue;
    const auto [op, result, results] = maker->second;
    flags.try_emplace(op, results, R"({"#":"0.a_bool","D":false})").first->second[result] =
        R"({"#":"0.a_bool","D":true})";
  }
  for (const auto& [place, of_results] : flags) {
    std::string& op = ops_[0][place];
    op.resize(op.size() - kNoFacts.size());
    op += R"(,"OA":[{"N":"persistable","AT":{"#":"0.a_array","D":)" + Joined(of_results) + "}}]}";
  }
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

// Whether parameters must exist before a run. False for startup programs.
bool Writer::ReadsParameters() const {
  std::vector<bool> written(p_.vars.size());
  bool writes = false;
  for (const ir::Block& block : p_.blocks)
    for (const Op& op : block.ops) {
      bool reads = false;
      EachVar(op.inputs, [&](VarId v) { reads |= VarOf(v).persistable && !written[v]; });
      EachVar(op.outputs, [&](VarId v) {
        written[v] = true;
        writes |= VarOf(v).persistable;
      });
      if (reads || op.def->has(kControlFlow)) return true;
    }
  return !writes;
}

// Unused parameters are declared too, since the file of parameters contains them.
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
  for (const VarId feed : feeds_) {
    const ir::Var& var = VarOf(feed);
    Ints dims(var.shape.begin(), var.shape.end());
    now_[feed] =
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
  for (const VarId fetch : fetches_) {
    const ir::Var& var = VarOf(fetch);
    // An output that PIR's operator does not make.
    if (p_.fetches.empty() && now_[fetch] == 0) continue;
    Emit({.name = "pd_op.fetch",
          .attributes = {Named("name", *AttributeText("str", var.name)),
                         Named("col", *AttributeText("i32", column++))},
          .operands = {ValueOf(fetch)},
          .results = {TypeOf(var)}});
  }
  // The last value that an operator wrote to a variable of the scope is stored back.
  std::vector<ValueId> kept;
  for (VarId v = 0; v < p_.vars.size(); ++v) {
    const ir::Var& var = VarOf(v);
    if (!var.persistable || var.block != 0 || var.kind != ir::VarKind::kTensor) continue;
    if (now_[v] == stored_[v]) continue;
    kept.push_back(now_[v]);
    Emit({.name = "builtin.set_parameter",
          .attributes = {Named("parameter_name", *AttributeText("str", var.name))},
          .operands = {now_[v]}});
  }
  MakePersistable(kept);
}

void Writer::Operators(int block) {
  MakeArrays(block);
  const int outer = std::exchange(block_, block);
  for (const Op& op : p_.blocks[static_cast<size_t>(block)].ops) {
    const int64_t of_outer = std::exchange(role_, op.role ? op.role->bits : 0);
    Add(op);
    role_ = of_outer;
  }
  block_ = outer;
}

void Writer::Add(const Op& op) {
  if (op.type() == "while") return AddLoop(op);
  if (op.type() == "conditional_block" || op.type() == "conditional_block_infer")
    return AddBranch(op);
  if (const Handler handler = HandlerOf(op.type())) return (this->*handler)(op);
  AddMapped(op);
}

// write_to_array makes its array if there is none; PIR needs an operator that makes it, in the
// array's block.
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

// The tensors of outer blocks that block `sub`, or a block inside it, writes.
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

// Whether the variable had a value before block `sub`, or is read outside of it.
bool Writer::NeededOutside(VarId v, int sub) const {
  if (now_[v] != 0) return true;
  if (std::find(fetches_.begin(), fetches_.end(), v) != fetches_.end()) return true;
  for (const ir::Block& block : p_.blocks) {
    if (Within(block.id, sub)) continue;
    for (const Op& op : block.ops) {
      if (op.def->has(kControlFlow)) continue;  // its lists name what its blocks use
      bool reads = false;
      EachVar(op.inputs, [&](VarId in) { reads = reads || in == v; });
      if (reads) return true;
    }
  }
  return false;
}

// The variable's value; a zero placeholder, which is never read, if it has none yet.
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

namespace {

// Whether sparse gradients are added and only sgd reads the sum: dense gradients then give the
// same.
bool AddsRows(const ir::Program& p) {
  bool adds = false;
  for (const ir::Block& block : p.blocks)
    for (const Op& op : block.ops) {
      bool rows = false;
      EachVar(op.inputs, [&](VarId v) { rows |= p.vars[v].kind == ir::VarKind::kRows; });
      if (rows && op.type() != "sum" && op.type() != "sgd") return false;
      adds |= rows && op.type() == "sum";
    }
  return adds;
}

void MakeDense(ir::Program* p) {
  for (ir::Var& var : p->vars)
    if (var.kind == ir::VarKind::kRows) var.kind = ir::VarKind::kTensor;
  for (ir::Block& block : p->blocks)
    for (Op& op : block.ops)
      if (op.type() == "lookup_table_v2_grad" || op.type() == "lookup_table_grad")
        op.attrs[static_cast<size_t>(op.def->FindAttr("is_sparse"))] = false;
}

}  // namespace

// Paddle 3.3 accepts sums of selected rows, but their result is an empty tensor.
Result<std::string> WriteProgram(const ir::Program& program) {
  if (!AddsRows(program)) return Writer(program).Run();
  ir::Program dense = program;
  MakeDense(&dense);
  return Writer(dense).Run();
}

}  // namespace heddle::pir
