// Writes an ir::Program as a ProgramDesc. What heddle does not use (attributes of other back ends,
// integer widths, flags of variables) is taken from the file that the program came from.
#include <google/protobuf/arena.h>

#include <limits>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>

#include "core/error.h"
#include "core/programs/ir.h"
#include "core/programs/program_builder.h"
#include "core/shapes.h"
#include "formats/paddle/attr_convert.h"
#include "formats/paddle/format.h"
#include "formats/paddle/known_attrs.h"
#include "formats/paddle/op_demands.h"
#include "formats/paddle_words.h"
#include "proto/framework.pb.h"

namespace heddle::paddle {
namespace {

using ir::Block;
using ir::kNoVar;
using ir::Op;
using ir::Port;
using ir::StreamHints;
using ir::Var;
using ir::VarId;
using ir::VarKind;
using Attr = proto::OpDesc_Attr;

bool FitsInt(int64_t v) { return v == static_cast<int32_t>(v); }
bool FitInts(const Ints& list) {
  for (int64_t v : list)
    if (!FitsInt(v)) return false;
  return true;
}

// Sets an attribute. It keeps the type that it has in the file if that can hold the value; `type`
// is for attributes that are in no file.
class AttrWriter {
 public:
  AttrWriter(Attr* a, proto::AttrType type) : a_(a), type_(a->has_type() ? a->type() : type) {
    const std::string name = a->name();
    a->Clear();
    a->set_name(name);
  }
  void operator()(bool v) const {
    if (type_ == proto::INT) return (*this)(int64_t{v});
    a_->set_type(proto::BOOLEAN);
    a_->set_b(v);
  }
  void operator()(int64_t v) const {
    const bool wide = type_ == proto::LONG || !FitsInt(v);
    a_->set_type(wide ? proto::LONG : proto::INT);
    if (wide)
      a_->set_l(v);
    else
      a_->set_i(static_cast<int32_t>(v));
  }
  void operator()(double v) const {
    if (type_ == proto::SCALAR) {
      a_->set_type(proto::SCALAR);
      return SetScalar(v, a_->mutable_scalar());
    }
    const bool wide = type_ == proto::FLOAT64;
    a_->set_type(wide ? proto::FLOAT64 : proto::FLOAT);
    if (wide)
      a_->set_float64(v);
    else
      a_->set_f(static_cast<float>(v));
  }
  void operator()(const std::string& v) const {
    a_->set_type(proto::STRING);
    a_->set_s(v);
  }
  void operator()(const Ints& v) const {
    const bool bools = type_ == proto::BOOLEANS;
    const bool wide = type_ == proto::LONGS || !FitInts(v);
    a_->set_type(bools ? proto::BOOLEANS : wide ? proto::LONGS : proto::INTS);
    for (int64_t x : v) {
      if (bools)
        a_->add_bools(x != 0);
      else if (wide)
        a_->add_longs(x);
      else
        a_->add_ints(static_cast<int32_t>(x));
    }
  }
  void operator()(const Floats& v) const {
    if (type_ == proto::SCALARS) {
      a_->set_type(proto::SCALARS);
      for (double x : v) SetScalar(x, a_->add_scalars());
      return;
    }
    const bool wide = type_ == proto::FLOAT64S;
    a_->set_type(wide ? proto::FLOAT64S : proto::FLOATS);
    for (double x : v) {
      if (wide)
        a_->add_float64s(x);
      else
        a_->add_floats(static_cast<float>(x));
    }
  }
  void operator()(const Strings& v) const {
    a_->set_type(proto::STRINGS);
    for (const std::string& x : v) a_->add_strings(x);
  }
  void operator()(BlockRef v) const {
    a_->set_type(proto::BLOCK);
    a_->set_block_idx(v.id);
  }
  void operator()(const std::vector<BlockRef>& v) const {
    a_->set_type(proto::BLOCKS);
    for (BlockRef b : v) a_->add_blocks_idx(b.id);
  }

 private:
  static void SetScalar(double v, proto::Scalar* scalar) {
    scalar->set_type(proto::Scalar::FLOAT64);
    scalar->set_r(v);
  }

  Attr* a_;
  const proto::AttrType type_;
};

proto::VarType::Type TypeOf(VarKind kind) {
  switch (kind) {
    case VarKind::kTensor:
      return proto::VarType::LOD_TENSOR;
    case VarKind::kRows:
      return proto::VarType::SELECTED_ROWS;
    case VarKind::kArray:
      return proto::VarType::LOD_TENSOR_ARRAY;
    case VarKind::kScopes:
      return proto::VarType::STEP_SCOPES;
    case VarKind::kFeedHolder:
      return proto::VarType::FEED_MINIBATCH;
    case VarKind::kFetchHolder:
      return proto::VarType::FETCH_LIST;
    case VarKind::kRaw:
      break;
  }
  return proto::VarType::RAW;
}

class Writer {
 public:
  Writer(const ir::Program& p, const proto::ProgramDesc& source, proto::ProgramDesc* out)
      : p_(p), source_(source), out_(*out) {}

  void Run() {
    out_.mutable_version()->set_version(p_.version);
    if (source_.has_op_version_map()) *out_.mutable_op_version_map() = source_.op_version_map();
    for (const Block& block : p_.blocks) AddBlock(block);
    for (VarId v = 0; v < p_.vars.size(); ++v) AddVar(p_.vars[v]);
    for (const Port& f : p_.feeds) AddPort(f, true);
    for (const Block& block : p_.blocks)
      for (const Op& op : block.ops) AddOp(block.id, op);
    for (const Port& f : p_.fetches) AddPort(f, false);
  }

 private:
  void AddBlock(const Block& block) {
    auto* desc = out_.add_blocks();
    desc->set_idx(block.id);
    // The first block has no parent; the file's own number for "none" is kept.
    const bool known = block.id < source_.blocks_size();
    desc->set_parent_idx(known && block.id == 0 ? source_.blocks(0).parent_idx() : block.parent);
    if (!known || source_.blocks(block.id).has_forward_block_idx())
      desc->set_forward_block_idx(block.forward_block);
    known_.emplace_back();
    written_.emplace_back();
    if (!known) return;
    for (const auto& var : source_.blocks(block.id).vars()) known_.back().emplace(var.name(), &var);
  }

  const proto::VarDesc* Known(int block, const std::string& name) const {
    const auto found = known_[block].find(name);
    return found == known_[block].end() ? nullptr : found->second;
  }

  bool IsFed(const std::string& name) const {
    return std::any_of(p_.feeds.begin(), p_.feeds.end(), [&](const ir::Port& feed) {
      return feed.var != kNoVar && p_.vars[feed.var].name == name;
    });
  }

  void AddVar(const Var& var) {
    const proto::VarDesc* known = Known(var.block, var.name);
    // A variable that the builder added to the sub-block to hide an outer one
    // (core/programs/sub_block_slots.h) is left out: the builder adds it again when the file is
    // read.
    if (known == nullptr && var.block > 0)
      if (p_.Find(p_.blocks[var.block].parent, var.name) != kNoVar) return;
    // An input that the file does not declare may have any rank, and a declaration would state one.
    if (known == nullptr && IsFed(var.name) && !var.shape.known_rank()) return;
    if (!written_[var.block].insert(var.name).second) return;
    auto* desc = out_.mutable_blocks(var.block)->add_vars();
    if (known != nullptr) *desc = *known;
    desc->set_name(var.name);
    if (var.persistable || desc->has_persistable()) desc->set_persistable(var.persistable);
    if (known == nullptr || var.kind != VarKind::kRaw)
      desc->mutable_type()->set_type(TypeOf(var.kind));
    proto::VarType::TensorDesc* tensor = nullptr;
    if (var.kind == VarKind::kTensor)
      tensor = desc->mutable_type()->mutable_lod_tensor()->mutable_tensor();
    if (var.kind == VarKind::kRows) tensor = desc->mutable_type()->mutable_selected_rows();
    if (var.kind == VarKind::kArray && known == nullptr)
      tensor = desc->mutable_type()->mutable_tensor_array()->mutable_tensor();
    if (tensor == nullptr) return;
    // The file declares no type for this variable. A tensor type would need a dtype, so none is
    // written.
    if (known != nullptr && !known->type().has_lod_tensor() && var.kind == VarKind::kTensor &&
        var.dtype == DType::kUnknown && !var.shape.known_rank())
      return desc->mutable_type()->clear_lod_tensor();
    const DType dtype = var.dtype == DType::kUnknown ? DType::kF32 : var.dtype;
    if (!tensor->has_data_type() || var.dtype != DType::kUnknown)
      tensor->set_data_type(static_cast<proto::VarType::Type>(DTypeToProto(dtype)));
    if (!var.shape.known_rank()) return;
    tensor->clear_dims();
    for (int64_t d : var.shape) tensor->add_dims(d);
  }

  const std::string& NameOf(VarId v) const {
    static const std::string kEmpty = "@EMPTY@";
    return v == kNoVar ? kEmpty : p_.vars[v].name;
  }

  std::string Holder(VarKind kind, const char* fallback) {
    for (const Var& v : p_.vars)
      if (v.kind == kind && v.block == 0) return v.name;
    if (!written_[0].insert(fallback).second) return fallback;
    auto* desc = out_.mutable_blocks(0)->add_vars();
    desc->set_name(fallback);
    desc->set_persistable(true);
    desc->mutable_type()->set_type(TypeOf(kind));
    return fallback;
  }

  void AddPort(const Port& port, bool feed) {
    auto* desc = out_.mutable_blocks(0)->add_ops();
    desc->set_type(feed ? "feed" : "fetch");
    const std::string holder =
        feed ? Holder(VarKind::kFeedHolder, "feed") : Holder(VarKind::kFetchHolder, "fetch");
    auto* in = desc->add_inputs();
    in->set_parameter("X");
    in->add_arguments(feed ? holder : NameOf(port.var));
    auto* out = desc->add_outputs();
    out->set_parameter("Out");
    out->add_arguments(feed ? NameOf(port.var) : holder);
    auto* col = desc->add_attrs();
    col->set_name("col");
    col->set_type(proto::INT);
    col->set_i(port.col);
  }

  // The file's own form of the operator; nullptr if it is not in the file.
  const proto::OpDesc* SourceOf(int block, const Op& op) const {
    if (op.index < 0 || block >= source_.blocks_size() ||
        op.index >= source_.blocks(block).ops_size())
      return nullptr;
    const auto& desc = source_.blocks(block).ops(op.index);
    return desc.type() == op.type() ? &desc : nullptr;
  }

  void AddOp(int block, const Op& op) {
    if (const auto said = formats::InPaddlesWords(op)) return AddOp(block, *said);
    const proto::OpDesc* source = SourceOf(block, op);
    const std::string count = source == nullptr ? CastCount(block, op) : "";
    auto* desc = out_.mutable_blocks(block)->add_ops();
    if (source != nullptr) *desc = *source;
    desc->set_type(op.type());
    for (size_t s = 0; s < op.def->inputs().size(); ++s)
      SetSlot(op.def->inputs()[s], op.inputs[s], desc->mutable_inputs());
    for (size_t s = 0; s < op.def->outputs().size(); ++s)
      SetSlot(op.def->outputs()[s], op.outputs[s], desc->mutable_outputs());
    AddUnknownOutputs(block, op, *desc);
    if (source == nullptr) AddDemands(block, op, desc);
    for (size_t a = 0; a < op.attrs.size(); ++a) SetAttr(op, a, source == nullptr, desc);
    if (source == nullptr) SetInferFlags(op, desc);
    SetPlace(op, desc);
    if (!count.empty())
      for (auto& s : *desc->mutable_inputs())
        if (s.parameter() == "Num") s.set_arguments(0, count);
    if (op.call_stack.empty()) return;
    auto* stack = desc->add_attrs();
    stack->set_name("op_callstack");
    stack->set_type(proto::STRINGS);
    for (std::string_view line : op.call_stack.Lines())
      stack->add_strings(line.data(), line.size());
  }

  // Writes device, hints and control edges, which passes may have moved to operators that are in no
  // file. An attribute of the file is only rewritten if its value has changed.
  static void SetPlace(const Op& op, proto::OpDesc* desc) {
    static const StreamHints kNone;
    const StreamHints& hints = op.hints ? *op.hints : kNone;
    SetHint(kDeviceAttr, op.device, desc);
    SetHint("execution_stream", hints.execution_stream, desc, std::string("DefaultStream"));
    SetHint("stream_priority", hints.stream_priority, desc);
    SetHint("scheduling_priority", hints.scheduling_priority, desc);
    SetHint("event_to_record", hints.event_to_record, desc);
    SetHint("events_to_wait", hints.events_to_wait, desc);
    static const ir::OpRole kForward;
    const ir::OpRole& role = op.role ? *op.role : kForward;
    SetHint(kRoleAttr, role.bits, desc);
    SetHint(kRolePairsAttr, role.pairs, desc);
    // An attribute of heddle's own, which other readers ignore.
    if (!op.has_control_edges()) return;
    SetHint("control_marks", hints.marks, desc);
    SetHint("control_after", hints.after, desc);
  }

  // `none`: the file's text for no value.
  template <typename T>
  static void SetHint(std::string_view name, const T& value, proto::OpDesc* desc,
                      const T& none = T()) {
    Attr* attr = nullptr;
    for (auto& a : *desc->mutable_attrs())
      if (a.name() == name) attr = &a;
    if (attr == nullptr && value == T()) return;
    if (attr == nullptr) {
      attr = desc->add_attrs();
      attr->set_name(name.data(), name.size());
    } else if (auto before = ConvertAttr(*attr, value); before.ok()) {
      const T& in_file = std::get<T>(*before);
      if ((in_file == none ? T() : in_file) == value) return;
    }
    const auto type = std::is_same_v<T, Ints> ? proto::LONGS : proto::INT;
    AttrWriter(attr, type)(value);
  }

  template <typename Slots>
  void SetSlot(const SlotDef& def, const std::vector<VarId>& vars, Slots* slots) const {
    if (def.name.starts_with("sub_block:")) return;  // the reader finds these anew
    proto::OpDesc_Var* slot = nullptr;
    for (auto& s : *slots)
      if (s.parameter() == def.name) slot = &s;
    if (slot == nullptr) {
      if (vars.empty()) return;
      slot = slots->Add();
      slot->set_parameter(def.name);
    }
    slot->clear_arguments();
    for (VarId v : vars) slot->add_arguments(NameOf(v));
  }

  // Adds the variables of outputs that heddle does not compute.
  void AddUnknownOutputs(int block, const Op& op, const proto::OpDesc& desc) {
    for (const auto& slot : desc.outputs()) {
      if (op.def->FindOutput(slot.parameter()) >= 0) continue;
      for (const std::string& name : slot.arguments()) {
        for (int b = block; b >= 0; b = p_.blocks[b].parent) {
          const proto::VarDesc* known = Known(b, name);
          if (known == nullptr) continue;
          if (written_[b].insert(name).second) *out_.mutable_blocks(b)->add_vars() = *known;
          break;
        }
      }
    }
  }

  // Adds outputs and attributes without which Paddle refuses the operator, or uses a wrong default.
  void AddDemands(int block, const Op& op, proto::OpDesc* desc) {
    for (const DemandedOutput& output : DemandedOutputs(op.type())) {
      proto::OpDesc_Var* slot = nullptr;
      for (auto& s : *desc->mutable_outputs())
        if (s.parameter() == output.slot) slot = &s;
      if (slot != nullptr && slot->arguments_size() > 0) continue;
      if (slot == nullptr) {
        slot = desc->add_outputs();
        slot->set_parameter(output.slot.data(), output.slot.size());
      }
      for (int count = output.list ? CountFor(op, output.slot) : 1; count > 0; --count)
        slot->add_arguments(MakeVar(block, op, output.slot));
    }
    for (const auto& [name, text] : DemandedTexts(op.type())) {
      auto* attr = desc->add_attrs();
      attr->set_name(name.data(), name.size());
      attr->set_type(proto::STRING);
      attr->set_s(text.data(), text.size());
    }
  }

  // The number of variables to declare for a list output that is not read: new states are as many
  // as the old ones, and any other list is as long as the operator's input list.
  static int CountFor(const Op& op, std::string_view slot) {
    if (op.def->has(kControlFlow)) return 0;  // its lists name what its blocks write
    size_t count = 1;
    for (size_t s = 0; s < op.inputs.size() && s < op.def->inputs().size(); ++s) {
      const SlotDef& in = op.def->inputs()[s];
      if (!(in.flags & kList) || op.inputs[s].empty()) continue;
      count = op.inputs[s].size();
      if (in.name.ends_with(slot)) break;
    }
    return static_cast<int>(count);
  }

  std::string MakeVar(int block, const Op& op, std::string_view slot,
                      DType dtype = DType::kUnknown) {
    Var var;
    var.block = block;
    var.dtype = dtype;
    do {
      var.name = StrCat(op.type(), "_", made_++, ".", std::string(slot));
    } while (p_.Find(block, var.name) != kNoVar);
    AddVar(var);
    return var.name;
  }

  // Paddle reads one flag per axis even where the file has none: -1 where tensors give the limits,
  // else 1.
  static void SetInferFlags(const Op& op, proto::OpDesc* desc) {
    if (op.def->FindAttr("infer_flags") < 0 || op.def->FindAttr("axes") < 0) return;
    if (!op.Attr<Ints>("infer_flags").empty()) return;
    bool tensors = false;
    for (const auto& in : desc->inputs())
      tensors = tensors ||
                (in.arguments_size() > 0 && in.parameter().find("Tensor") != in.parameter().npos);
    for (auto& attr : *desc->mutable_attrs()) {
      if (attr.name() != "infer_flags") continue;
      for (size_t i = 0; i < op.Attr<Ints>("axes").size(); ++i) attr.add_ints(tensors ? -1 : 1);
    }
  }

  // Paddle's linspace accepts int32 alone as its number of elements. Adds a cast before it and
  // returns the variable to use instead, or an empty name.
  std::string CastCount(int block, const Op& op) {
    if (op.type() != "linspace" || op.In("Num").empty()) return "";
    const VarId num = op.In("Num")[0];
    if (num == kNoVar || p_.vars[num].dtype != DType::kI64) return "";
    const std::string made = MakeVar(block, op, "Num", DType::kI32);
    auto* cast = out_.mutable_blocks(block)->add_ops();
    cast->set_type("cast");
    auto* in = cast->add_inputs();
    in->set_parameter("X");
    in->add_arguments(NameOf(num));
    auto* out = cast->add_outputs();
    out->set_parameter("Out");
    out->add_arguments(made);
    for (const auto& [name, dtype] :
         {std::pair("in_dtype", DType::kI64), {"out_dtype", DType::kI32}}) {
      auto* attr = cast->add_attrs();
      attr->set_name(name);
      attr->set_type(proto::INT);
      attr->set_i(static_cast<int32_t>(DTypeToProto(dtype)));
    }
    return made;
  }

  void SetAttr(const Op& op, size_t a, bool all, proto::OpDesc* desc) const {
    const AttrDef& def = op.def->attrs()[a];
    if (def.name == "op_version") return;  // it is in the file's map of operator versions
    if (def.name.starts_with(ir::kRewrites)) return;  // it follows from the operands
    Attr* attr = nullptr;
    for (auto& x : *desc->mutable_attrs())
      if (x.name() == def.name) attr = &x;
    const int variable = VariableOf(op, static_cast<int>(a));
    if (attr != nullptr && variable < 0 && attr->type() != proto::VAR &&
        attr->type() != proto::VARS) {
      auto value = ConvertAttr(*attr, def.default_value);
      if (value.ok() && *value == op.attrs[a]) return;
    }
    if (attr == nullptr) {
      if (!all && variable < 0 && op.attrs[a] == def.default_value) return;
      attr = desc->add_attrs();
      attr->set_name(def.name);
    }
    if (variable < 0) {
      std::visit(AttrWriter(attr, DemandedType(op.type(), def.name)), op.attrs[a]);
      return;
    }
    const auto& vars = op.inputs[op.def->inputs().size() + static_cast<size_t>(variable)];
    const bool list = attr->type() == proto::VARS || vars.size() != 1;
    attr->Clear();
    attr->set_name(def.name);
    attr->set_type(list ? proto::VARS : proto::VAR);
    if (!list) attr->set_var_name(NameOf(vars[0]));
    if (list)
      for (VarId v : vars) attr->add_vars_name(NameOf(v));
  }
  // The attribute's index in op.var_attrs; -1 when it has a value of its own.
  static int VariableOf(const Op& op, int a) {
    for (size_t k = 0; k < op.var_attrs.size(); ++k)
      if (op.var_attrs[k] == a) return static_cast<int>(k);
    return -1;
  }

  const ir::Program& p_;
  const proto::ProgramDesc& source_;
  proto::ProgramDesc& out_;
  // Per block: the file's variables by name, and the names already written.
  std::vector<std::unordered_map<std::string_view, const proto::VarDesc*>> known_;
  std::vector<std::unordered_set<std::string>> written_;
  int made_ = 0;  // number of variables added for Paddle's demands
};

}  // namespace

Result<std::string> WriteProgramDesc(const ir::Program& program) {
  google::protobuf::Arena arena;
  auto& source = *google::protobuf::Arena::CreateMessage<proto::ProgramDesc>(&arena);
  const auto* bytes_of_source = dynamic_cast<const ProgramBytes*>(program.source.get());
  if (bytes_of_source != nullptr && !source.ParseFromString(bytes_of_source->serialized()))
    return Internal("the source of '", program.name, "' cannot be read again");
  auto& out = *google::protobuf::Arena::CreateMessage<proto::ProgramDesc>(&arena);
  Writer(program, source, &out).Run();
  // Protobuf's limit; a program without weights is never so large.
  if (out.ByteSizeLong() > static_cast<size_t>(std::numeric_limits<int32_t>::max()))
    return ResourceExhausted("the program is larger than 2 GiB");
  std::string bytes;
  if (!out.SerializeToString(&bytes)) return Internal("the program cannot be written");
  return bytes;
}

}  // namespace heddle::paddle
