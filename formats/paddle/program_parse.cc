// Converts a ProgramDesc to calls of ir::ProgramBuilder.
#include <google/protobuf/arena.h>

#include <algorithm>
#include <iterator>
#include <limits>

#include "core/error.h"
#include "core/op_traits.h"
#include "core/programs/program_builder.h"
#include "core/shapes.h"
#include "formats/paddle/attr_convert.h"
#include "formats/paddle/call_stack.h"
#include "formats/paddle/format.h"
#include "formats/paddle/known_attrs.h"
#include "formats/paddle/older_loops.h"
#include "proto/framework.pb.h"

namespace heddle::paddle {
namespace {

using ir::OpBuilder;
using ir::StreamHints;
using ir::Var;
using ir::VarId;
using ir::VarKind;

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

// Call stacks by block and operator; operators at the end may lack one.
using Stacks = std::vector<std::vector<CallStack>>;

class Parser {
 public:
  Parser(const proto::ProgramDesc& desc, const Stacks& stacks, ir::ProgramBuilder* builder)
      : desc_(desc), stacks_(stacks), builder_(*builder) {}

  // Stops early if blocks are malformed, since all the rest refers to them.
  void Run() {
    builder_.SetVersion(desc_.version().version());
    for (const auto& pair : desc_.op_version_map().pair())
      builder_.SetOpVersion(pair.op_name(), pair.op_version().version());
    builder_.ReserveBlocks(desc_.blocks_size());
    for (int b = 0; b < desc_.blocks_size(); ++b) AddBlock(b);
    if (!builder_.ok()) return;
    size_t vars = 0;
    for (const auto& block : desc_.blocks()) vars += static_cast<size_t>(block.vars_size());
    builder_.ReserveVars(vars);
    for (int b = 0; b < desc_.blocks_size(); ++b)
      for (const auto& var : desc_.blocks(b).vars()) AddVar(b, var);
    for (int b = 0; b < desc_.blocks_size(); ++b) {
      builder_.ReserveOps(b, static_cast<size_t>(desc_.blocks(b).ops_size()));
      for (int i = 0; i < desc_.blocks(b).ops_size(); ++i) AddOp(b, i, desc_.blocks(b).ops(i));
    }
  }

 private:
  void AddBlock(int b) {
    const auto& desc = desc_.blocks(b);
    if (desc.idx() != b) builder_.Problem("block ", b, " says that it is block ", desc.idx());
    builder_.AddBlock(desc.parent_idx(), desc.forward_block_idx());
  }

  void AddVar(int b, const proto::VarDesc& desc) {
    Var var;
    var.name = desc.name();
    var.block = b;
    var.kind = KindOf(desc.type());
    var.persistable = desc.persistable();
    var.input = desc.need_check_feed();
    const proto::VarType::TensorDesc* tensor = nullptr;
    if (desc.type().has_lod_tensor()) {
      tensor = &desc.type().lod_tensor().tensor();
      var.lod_level = desc.type().lod_tensor().lod_level();
    }
    if (desc.type().has_selected_rows()) tensor = &desc.type().selected_rows();
    if (desc.type().has_tensor_array()) tensor = &desc.type().tensor_array().tensor();
    if (tensor == nullptr) {
      builder_.AddVar(std::move(var));
      return;
    }
    var.dtype = DTypeFromProto(tensor->data_type());
    const auto& dims = tensor->dims();
    builder_.AddVar(std::move(var), {dims.data(), static_cast<size_t>(dims.size())});
  }

  static int Col(const proto::OpDesc& desc) {
    for (const auto& a : desc.attrs())
      if (a.name() == "col") return a.i();
    return 0;
  }

  void AddPort(int b, int i, const proto::OpDesc& desc, bool feed) {
    const auto& slots = feed ? desc.outputs() : desc.inputs();
    if (slots.size() != 1 || slots[0].arguments_size() != 1)
      return builder_.Problem("block ", b, ", op ", i, " (", desc.type(),
                              "): needs exactly one variable");
    const VarId var = builder_.Resolve(b, slots[0].arguments(0));
    if (feed)
      builder_.AddFeed(var, Col(desc));
    else
      builder_.AddFetch(var, Col(desc));
  }

  void AddOp(int b, int i, const proto::OpDesc& desc) {
    if (b == 0 && desc.type() == "feed") return AddPort(b, i, desc, true);
    if (b == 0 && (desc.type() == "fetch" || desc.type() == "fetch_v2"))
      return AddPort(b, i, desc, false);
    OpBuilder op(builder_, b, i, desc.type());
    if (!op) return;
    const auto block = static_cast<size_t>(b), at = static_cast<size_t>(i);
    if (block < stacks_.size() && at < stacks_[block].size()) op.SetCallStack(stacks_[block][at]);
    if ((op.def().traits() & kScopeOperands) != 0) DeclareOperands(b, desc);
    for (const auto& slot : desc.inputs())
      Fill(b, slot, op.Input(slot.parameter(), slot.arguments_size()));
    for (const auto& slot : desc.outputs())
      Fill(b, slot, op.Output(slot.parameter(), slot.arguments_size()));
    for (const auto& attr : desc.attrs()) AddAttr(b, attr, &op);
    if (desc.type() == "fused_elementwise" || desc.type() == "fused_rows") CompleteLoop(desc, &op);
    builder_.Add(std::move(op));
  }

  static void CompleteLoop(const proto::OpDesc& desc, OpBuilder* op) {
    const int ops = op->def().FindAttr("ops"), values = op->def().FindAttr("values");
    AttrValue names = op->Wanted(ops), numbers = op->Wanted(values);
    for (const auto& attr : desc.attrs()) {
      const int a = op->def().FindAttr(attr.name());
      if (a < 0 || (a != ops && a != values)) continue;
      Result<AttrValue> value = ConvertAttr(attr, op->Wanted(a));
      if (!value.ok()) return;  // reported when it was set
      (a == ops ? names : numbers) = *std::move(value);
    }
    AddLaterNumbers(std::get<Strings>(names), &std::get<Floats>(numbers));
    op->SetAttr(values, std::move(numbers));
  }

  void DeclareOperands(int b, const proto::OpDesc& desc) {
    for (const auto& slot : desc.inputs()) {
      for (const std::string& name : slot.arguments()) {
        if (builder_.program().Find(b, name) != ir::kNoVar) continue;
        Var var;
        var.name = name;
        var.block = b;
        var.kind = VarKind::kRaw;
        var.persistable = true;
        builder_.AddVar(std::move(var));
      }
    }
  }

  void Fill(int b, const proto::OpDesc_Var& slot, std::vector<VarId>* operands) {
    if (operands == nullptr) return;
    for (const std::string& name : slot.arguments()) operands->push_back(builder_.Resolve(b, name));
  }

  void AddAttr(int b, const proto::OpDesc_Attr& attr, OpBuilder* op) {
    if (attr.name() == kDeviceAttr) op->SetDevice(attr.s());
    AddHint(attr, op);
    AddRole(attr, op);
    const int a = op->def().FindAttr(attr.name());
    if (a < 0) return;  // an attribute of the exporter or of another back end
    if (attr.type() != proto::VAR && attr.type() != proto::VARS)
      return op->SetAttr(a, ConvertAttr(attr, op->Wanted(a)));
    std::vector<VarId> vars;
    if (attr.type() == proto::VAR) vars.push_back(builder_.Resolve(b, attr.var_name()));
    for (const std::string& name : attr.vars_name()) vars.push_back(builder_.Resolve(b, name));
    op->SetAttrFrom(a, std::move(vars));
  }

  static void AddHint(const proto::OpDesc_Attr& attr, OpBuilder* op) {
    const std::string& name = attr.name();
    if (std::find(std::begin(kHintAttrs), std::end(kHintAttrs), name) == std::end(kHintAttrs))
      return;
    StreamHints hints = op->hints();
    const int64_t number = attr.type() == proto::LONG ? attr.l() : attr.i();
    if (name == "execution_stream")  // Paddle's word for none is "DefaultStream"
      hints.execution_stream = attr.s() == "DefaultStream" ? "" : attr.s();
    else if (name == "stream_priority")
      hints.stream_priority = number;
    else if (name == "scheduling_priority")
      hints.scheduling_priority = number;
    else if (name == "event_to_record")
      hints.event_to_record = attr.s();
    else if (name == "events_to_wait")
      hints.events_to_wait.assign(attr.strings().begin(), attr.strings().end());
    else
      AddMarks(attr, name == "control_marks" ? &hints.marks : &hints.after);
    op->SetHints(std::move(hints));
  }

  static void AddRole(const proto::OpDesc_Attr& attr, OpBuilder* op) {
    const bool pairs = attr.name() == kRolePairsAttr;
    if (!pairs && attr.name() != kRoleAttr) return;
    ir::OpRole role = op->role();
    if (pairs)
      role.pairs.assign(attr.strings().begin(), attr.strings().end());
    else
      role.bits = attr.type() == proto::LONG ? attr.l() : attr.i();
    // Every operator of a file for inference says that it is forward.
    if (role.bits != 0 || !role.pairs.empty()) op->SetRole(std::move(role));
  }

  static void AddMarks(const proto::OpDesc_Attr& attr, std::vector<int64_t>* marks) {
    marks->assign(attr.ints().begin(), attr.ints().end());
    marks->insert(marks->end(), attr.longs().begin(), attr.longs().end());
  }

  const proto::ProgramDesc& desc_;
  const Stacks& stacks_;
  ir::ProgramBuilder& builder_;
};

// A packed program: the bytes that the source keeps, and the call stacks, which are not in them.
class Packed : public formats::PackedProgram {
 public:
  explicit Packed(const ir::Program& program)
      : name_(program.name), hash_(program.hash), source_(program.source) {
    for (const ir::Block& block : program.blocks) {
      auto& stacks = stacks_.emplace_back();
      for (const ir::Op& op : block.ops) {
        if (op.call_stack.empty()) continue;
        stacks.resize(static_cast<size_t>(op.index) + 1);  // in the order of the file
        stacks.back() = op.call_stack;
      }
      stacks.shrink_to_fit();
    }
  }
  Result<std::shared_ptr<ir::Program>> Unpack() const override {
    google::protobuf::Arena arena;
    auto& desc = *google::protobuf::Arena::CreateMessage<proto::ProgramDesc>(&arena);
    if (!desc.ParseFromString(static_cast<const ProgramBytes&>(*source_).serialized()))
      return Internal("the source of '", name_, "' cannot be read again");
    ir::ProgramBuilder builder(name_, hash_);
    Parser(desc, stacks_, &builder).Run();
    return std::move(builder).Finish(source_);
  }

 private:
  const std::string name_;
  const uint64_t hash_;
  const std::shared_ptr<const formats::ProgramSource> source_;  // ProgramBytes
  Stacks stacks_;
};

}  // namespace

std::unique_ptr<const formats::PackedProgram> ProgramBytes::Pack(const ir::Program& program) const {
  return std::make_unique<Packed>(program);
}

Result<std::shared_ptr<const formats::ProgramSource>> ParseProgramDesc(
    std::string_view bytes, ir::ProgramBuilder& builder) {
  constexpr size_t kMost = std::numeric_limits<int>::max();
  if (bytes.size() > kMost)
    return ResourceExhausted(builder.name(), ": ", bytes.size(),
                             " bytes; protobuf reads messages of at most ", kMost);
  // On an arena, which frees the many small parts of a large program at once.
  google::protobuf::Arena arena;
  auto& desc = *google::protobuf::Arena::CreateMessage<proto::ProgramDesc>(&arena);
  SplitProgram split;
  const size_t file_size = bytes.size();
  if (SplitCallStacks(bytes, &split)) bytes = split.bytes;
  const std::string known = WithKnownAttrs(bytes);
  const std::string_view parsed = known.empty() ? bytes : known;
  // In two steps, since ParseFromArray prints to stderr when a required field is missing.
  if (!desc.ParsePartialFromArray(parsed.data(), static_cast<int>(parsed.size())) ||
      !desc.IsInitialized())
    return DataLoss(builder.name(), ": not a Paddle program, or cut short (", file_size, " bytes)");
  Parser(desc, split.stacks, &builder).Run();
  if (split.bytes.empty()) split.bytes = bytes;
  return std::shared_ptr<const formats::ProgramSource>(
      std::make_shared<ProgramBytes>(std::move(split.bytes)));
}

}  // namespace heddle::paddle
