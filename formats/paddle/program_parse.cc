// ProgramDesc bytes -> ir::Program: everything wrong with a file is found here.
#include <google/protobuf/arena.h>
#include <xxhash.h>

#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/ir.h"
#include "core/op_registry.h"
#include "core/shapes.h"
#include "core/sub_block_slots.h"
#include "formats/paddle/attr_convert.h"
#include "formats/paddle/known_attrs.h"
#include "proto/framework.pb.h"

namespace heddle::ir {
namespace {

constexpr int kMaxListed = 20;
constexpr int kMostNested = 200;  // blocks in blocks

// Recognises files of other kinds, to say more than "damaged".
Status CheckKind(std::string_view bytes, const std::string& name) {
  auto starts = [&](std::string_view s) { return bytes.substr(0, s.size()) == s; };
  if (bytes.empty()) return DataLoss(name, ": the file is empty; a Paddle program is expected");
  if (bytes[0] == '{')
    return Unimplemented(name,
                         ": this is a JSON file, probably Paddle 3's PIR format; export the "
                         "model with FLAGS_enable_pir_api=0 to get a .pdmodel");
  if (starts("PK\x03\x04"))
    return Unimplemented(name, ": this is a zip archive (PyTorch, Keras?), not a Paddle program");
  if (starts("\x80\x02") || starts("\x80\x03") || starts("\x80\x04") || starts("\x80\x05"))
    return Unimplemented(name,
                         ": this is a Python pickle (.pdparams, .pdopt?), not a Paddle program");
  // An ONNX ModelProto starts with its ir_version (field 1, varint), a ProgramDesc with a block
  // (field 1, length-delimited).
  if (bytes[0] == '\x08')
    return Unimplemented(name,
                         ": this looks like an ONNX model; heddle reads Paddle's .pdmodel "
                         "(convert with x2paddle, or export from Paddle)");
  return Status::Ok();
}

VarKind KindOf(const proto::VarType& type) {
  switch (type.type()) {
    case proto::VarType::LOD_TENSOR:
      return VarKind::kTensor;
    case proto::VarType::SELECTED_ROWS:
      return VarKind::kRows;
    case proto::VarType::LOD_TENSOR_ARRAY:
      return VarKind::kArray;
    case proto::VarType::STEP_SCOPES:
      return VarKind::kScopes;
    case proto::VarType::FEED_MINIBATCH:
      return VarKind::kFeedHolder;
    case proto::VarType::FETCH_LIST:
      return VarKind::kFetchHolder;
    default:
      return VarKind::kRaw;
  }
}

class Parser {
 public:
  // `stacks`: by block and operator, as far as there are any.
  Parser(const proto::ProgramDesc& desc, const std::vector<std::vector<CallStack>>& stacks,
         Program* program)
      : desc_(desc), stacks_(stacks), p_(*program) {}

  Status Run() {
    p_.version = desc_.version().version();
    for (const auto& pair : desc_.op_version_map().pair())
      p_.op_versions[pair.op_name()] = pair.op_version().version();
    if (desc_.blocks_size() == 0) return DataLoss(p_.name, ": the program has no block");
    for (int b = 0; b < desc_.blocks_size(); ++b) AddBlock(b);
    if (!problems_.empty()) return Summary();
    size_t vars = 0;
    for (const auto& block : desc_.blocks()) vars += static_cast<size_t>(block.vars_size());
    p_.vars.reserve(vars);
    for (int b = 0; b < desc_.blocks_size(); ++b)
      for (const auto& var : desc_.blocks(b).vars()) AddVar(b, var);
    for (int b = 0; b < desc_.blocks_size(); ++b) {
      p_.blocks[b].ops.reserve(desc_.blocks(b).ops_size());
      for (int i = 0; i < desc_.blocks(b).ops_size(); ++i) AddOp(b, i, desc_.blocks(b).ops(i));
    }
    if (!unknown_.empty()) return UnknownOps();
    CheckNesting();
    auto by_col = [](const Port& a, const Port& b) { return a.col < b.col; };
    std::stable_sort(p_.feeds.begin(), p_.feeds.end(), by_col);
    std::stable_sort(p_.fetches.begin(), p_.fetches.end(), by_col);
    if (problems_.empty()) FillSubBlockSlots(&p_);
    return Summary();
  }

 private:
  template <typename... Parts>
  void Problem(const Parts&... parts) {
    problems_.push_back(StrCat(parts...));
  }

  Status Summary() const {
    if (problems_.empty()) return Status::Ok();
    std::string text = p_.name + ": ";
    if (problems_.size() > 1) text += std::to_string(problems_.size()) + " problems:";
    for (size_t i = 0; i < problems_.size() && i < kMaxListed; ++i)
      text += (problems_.size() > 1 ? "\n  " : "") + problems_[i];
    if (problems_.size() > kMaxListed) text += "\n  ...";
    return InvalidArgument(text);
  }

  Status UnknownOps() const {
    std::string text = p_.name + ": " + std::to_string(unknown_.size()) +
                       (unknown_.size() == 1 ? " operator that" : " operators that") +
                       " heddle does not have:";
    for (const auto& [type, where] : unknown_) text += "\n  " + type + " (" + where + ")";
    return Unimplemented(text);
  }

  void AddBlock(int b) {
    const auto& desc = desc_.blocks(b);
    Block block;
    block.id = b;
    block.parent = desc.parent_idx();
    block.forward_block = desc.forward_block_idx();
    if (desc.idx() != b) Problem("block ", b, " says that it is block ", desc.idx());
    if (b > 0 && block.parent == b) Problem("block ", b, " is its own parent");
    if (b == 0) block.parent = -1;
    if (b > 0 && (block.parent < 0 || block.parent >= desc_.blocks_size()))
      Problem("block ", b, " has parent ", block.parent, ", which does not exist");
    else if (b > 0 && block.parent > b)
      Problem("block ", b, " has parent ", block.parent, "; a parent comes before its children");
    p_.blocks.push_back(std::move(block));
  }

  void AddVar(int b, const proto::VarDesc& desc) {
    Var var;
    var.name = desc.name();
    var.block = b;
    var.kind = KindOf(desc.type());
    var.persistable = desc.persistable();
    var.shape = Shape::Unknown();
    const proto::VarType::TensorDesc* tensor = nullptr;
    if (desc.type().has_lod_tensor()) {
      tensor = &desc.type().lod_tensor().tensor();
      var.lod_level = desc.type().lod_tensor().lod_level();
    }
    if (desc.type().has_selected_rows()) tensor = &desc.type().selected_rows();
    if (desc.type().has_tensor_array()) tensor = &desc.type().tensor_array().tensor();
    if (tensor != nullptr) {
      var.dtype = DTypeFromProto(tensor->data_type());
      if (tensor->dims_size() > Shape::kMaxRank) {
        Problem("block ", b, ", variable ", var.name, ": rank ", tensor->dims_size(),
                " is above the limit of ", Shape::kMaxRank);
      } else if (var.kind != VarKind::kArray) {
        var.shape = Shape();
        for (int64_t d : tensor->dims()) var.shape.push_back(d);
      }
    }
    p_.AddVar(std::move(var));
  }

  VarId Resolve(int b, const std::string& name) {
    if (name == "@EMPTY@" || name.empty()) return kNoVar;
    if (VarId v = p_.Find(b, name); v != kNoVar) return v;
    Var var;  // files name variables that no block declares
    var.name = name;
    var.block = b;
    var.shape = Shape::Unknown();
    return p_.AddVar(std::move(var));
  }

  static int Col(const proto::OpDesc& desc) {
    for (const auto& a : desc.attrs())
      if (a.name() == "col") return a.i();
    return 0;
  }

  void AddPort(int b, int i, const proto::OpDesc& desc, bool feed) {
    const auto& slots = feed ? desc.outputs() : desc.inputs();
    if (slots.size() != 1 || slots[0].arguments_size() != 1)
      return Problem("block ", b, ", op ", i, " (", desc.type(), "): needs exactly one variable");
    (feed ? p_.feeds : p_.fetches).push_back({Resolve(b, slots[0].arguments(0)), Col(desc)});
  }

  void AddOp(int b, int i, const proto::OpDesc& desc) {
    if (b == 0 && desc.type() == "feed") return AddPort(b, i, desc, true);
    if (b == 0 && (desc.type() == "fetch" || desc.type() == "fetch_v2"))
      return AddPort(b, i, desc, false);
    const OpDef* def = FindOp(desc.type());
    if (def == nullptr) {
      unknown_.emplace(desc.type(), StrCat("first: block ", b, ", op ", i));
      return;
    }
    Op op = MakeOp(*def);
    op.index = i;
    const auto block = static_cast<size_t>(b), at = static_cast<size_t>(i);
    if (block < stacks_.size() && at < stacks_[block].size()) op.call_stack = stacks_[block][at];
    const std::string where = StrCat("block ", b, ", op ", i, " (", desc.type(), ")");
    for (const auto& slot : desc.inputs()) {
      const int s = def->FindInput(slot.parameter());
      if (s >= 0)
        FillSlot(b, where, slot, def->inputs()[s], &op.inputs[s]);
      else if (slot.arguments_size() > 0)
        Problem(where, ": has no input slot '", slot.parameter(), "'");
    }
    for (const auto& slot : desc.outputs()) {
      // An output slot heddle does not know is one that nothing here computes; whoever reads its
      // variable is told so.
      const int s = def->FindOutput(slot.parameter());
      if (s >= 0) FillSlot(b, where, slot, def->outputs()[s], &op.outputs[s]);
    }
    for (size_t s = 0; s < def->inputs().size(); ++s)
      if (op.inputs[s].empty() && !(def->inputs()[s].flags & (kOptional | kList)))
        Problem(where, ": misses input '", def->inputs()[s].name, "'");
    FillAttrs(b, where, desc, &op);
    p_.blocks[b].ops.push_back(std::move(op));
  }

  void FillSlot(int b, const std::string& where, const proto::OpDesc_Var& slot, const SlotDef& def,
                std::vector<VarId>* out) {
    if (!(def.flags & kList) && slot.arguments_size() > 1)
      return Problem(where, ": slot '", def.name, "' takes one variable, not ",
                     slot.arguments_size());
    for (const std::string& name : slot.arguments()) out->push_back(Resolve(b, name));
  }

  // Variables that hold an attribute's value are operands behind those of the slots.
  void AddVarAttr(int b, const proto::OpDesc_Attr& attr, int a, Op* op) {
    std::vector<VarId> vars;
    if (attr.type() == proto::VAR) vars.push_back(Resolve(b, attr.var_name()));
    for (const std::string& name : attr.vars_name()) vars.push_back(Resolve(b, name));
    op->var_attrs.push_back(a);
    op->inputs.push_back(std::move(vars));
  }

  static void AddHint(const proto::OpDesc_Attr& attr, Op* op) {
    const std::string& name = attr.name();
    if (std::find(std::begin(kHintAttrs), std::end(kHintAttrs), name) == std::end(kHintAttrs))
      return;
    StreamHints hints = op->hints ? *op->hints : StreamHints();
    const int64_t number = attr.type() == proto::LONG ? attr.l() : attr.i();
    if (name == "execution_stream")  // Paddle's word for none is "DefaultStream"
      hints.execution_stream = attr.s() == "DefaultStream" ? "" : attr.s();
    else if (name == "stream_priority")
      hints.stream_priority = number;
    else if (name == "scheduling_priority")
      hints.scheduling_priority = number;
    else if (name == "event_to_record")
      hints.event_to_record = attr.s();
    else
      hints.events_to_wait.assign(attr.strings().begin(), attr.strings().end());
    op->hints = std::make_shared<const StreamHints>(std::move(hints));
  }

  void FillAttrs(int b, const std::string& where, const proto::OpDesc& desc, Op* op) {
    for (const auto& attr : desc.attrs()) {
      if (attr.name() == kDeviceAttr) op->device = attr.s();
      AddHint(attr, op);
      const int a = op->def->FindAttr(attr.name());
      if (a < 0) continue;  // bookkeeping of the exporter, or extra attributes of other back ends
      if (attr.type() == proto::VAR || attr.type() == proto::VARS) {
        AddVarAttr(b, attr, a, op);
        continue;
      }
      auto value = ConvertAttr(attr, op->attrs[a]);
      if (value.ok())
        op->attrs[a] = std::move(*value);
      else
        Problem(where, ": ", value.status().message());
    }
    SetVersion(op);
    for (const AttrValue& a : op->attrs)
      if (const auto* one = std::get_if<BlockRef>(&a); one != nullptr && one->id < 0)
        Problem(where, ": names no sub-block");
    for (int sub : op->SubBlocks())
      if (sub <= 0 || sub >= desc_.blocks_size())
        Problem(where, ": sub-block ", sub, " does not exist");
  }

  // An operator whose meaning changed declares the attribute "op_version", with the present version
  // as its default; files that name versions decide. A gradient goes by its operator's version.
  void SetVersion(Op* op) {
    const int a = op->def->FindAttr("op_version");
    if (a < 0 || p_.op_versions.empty()) return;
    std::string_view name = op->def->name();
    while (name.ends_with("_grad")) name.remove_suffix(5);
    const auto found = p_.op_versions.find(std::string(name));
    op->attrs[a] = found == p_.op_versions.end() ? int64_t{0} : found->second;
  }

  // A block must not contain itself through the operators that run blocks, nor stand deeper in
  // others than the stack of a run allows.
  void CheckNesting() {
    if (!problems_.empty()) return;
    nesting_.assign(p_.blocks.size(), kNotVisited);
    for (size_t b = 0; b < p_.blocks.size(); ++b) Visit(static_cast<int>(b), 0);
  }
  // Finds how many levels of blocks stand in block b, which stands in `depth` others.
  void Visit(int b, int depth) {
    if (nesting_[b] != kNotVisited) return;
    nesting_[b] = kOpen;
    int levels = 0;
    for (const Op& op : p_.blocks[b].ops) {
      for (int sub : op.SubBlocks()) {
        if (nesting_[sub] == kOpen) {
          Problem("block ", b, ", op ", op.index, " (", op.type(), "): runs block ", sub,
                  ", inside which it stands");
          continue;
        }
        if (depth < kMostNested) Visit(sub, depth + 1);
        levels = std::max(levels, nesting_[sub] + 1);
        if (depth < kMostNested && levels <= kMostNested) continue;
        Problem("block ", b, ", op ", op.index, " (", op.type(), "): more than ", kMostNested,
                " levels of blocks in blocks");
        levels = 0;  // said once
      }
    }
    nesting_[b] = levels;
  }

  const proto::ProgramDesc& desc_;
  const std::vector<std::vector<CallStack>>& stacks_;
  Program& p_;
  std::vector<std::string> problems_;
  std::map<std::string, std::string> unknown_;
  static constexpr int kNotVisited = -2, kOpen = -1;
  std::vector<int> nesting_;  // per block: levels of blocks inside
};

}  // namespace

Result<std::shared_ptr<Program>> ParseProgram(std::string_view bytes, const std::string& name) {
  HEDDLE_RETURN_IF_ERROR(CheckKind(bytes, name));
  // In an arena: a large program's many small parts are given back in one piece.
  google::protobuf::Arena arena;
  auto& desc = *google::protobuf::Arena::CreateMessage<proto::ProgramDesc>(&arena);
  SplitProgram split;
  const size_t file_size = bytes.size();
  const uint64_t hash = XXH64(bytes.data(), bytes.size(), 0);
  if (SplitCallStacks(bytes, &split)) bytes = split.bytes;
  const std::string known = WithKnownAttrs(bytes);
  const std::string_view parsed = known.empty() ? bytes : known;
  // In two steps, since the library prints to stderr where a required field is missing.
  if (!desc.ParsePartialFromArray(parsed.data(), static_cast<int>(parsed.size())) ||
      !desc.IsInitialized())
    return DataLoss(name, ": not a Paddle program, or cut short (", file_size, " bytes)");
  auto program = std::make_shared<Program>();
  program->name = name;
  program->hash = hash;
  HEDDLE_RETURN_IF_ERROR(Parser(desc, split.stacks, program.get()).Run());
  program->source = std::make_shared<const std::string>(
      split.bytes.empty() ? std::string(bytes) : std::move(split.bytes));
  program->as_parsed_.value = true;
  return program;
}

PackedProgram Pack(const Program& program) {
  PackedProgram packed{program.name, program.hash, program.source, {}};
  for (const Block& block : program.blocks) {
    auto& stacks = packed.stacks.emplace_back();
    for (const Op& op : block.ops) {
      if (op.call_stack.empty()) continue;
      stacks.resize(static_cast<size_t>(op.index) + 1);  // in the order of the file
      stacks.back() = op.call_stack;
    }
    stacks.shrink_to_fit();
  }
  return packed;
}

Result<std::shared_ptr<Program>> Unpack(const PackedProgram& packed) {
  google::protobuf::Arena arena;
  auto& desc = *google::protobuf::Arena::CreateMessage<proto::ProgramDesc>(&arena);
  if (!desc.ParseFromString(*packed.source))
    return Internal("the source of '", packed.name, "' cannot be read again");
  auto program = std::make_shared<Program>();
  program->name = packed.name;
  program->hash = packed.hash;
  HEDDLE_RETURN_IF_ERROR(Parser(desc, packed.stacks, program.get()).Run());
  program->source = packed.source;
  program->as_parsed_.value = true;
  return program;
}

}  // namespace heddle::ir
