#include "tests/ops/example_program.h"

#include <map>
#include <set>

#include "core/op_registry.h"
#include "core/shapes.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

proto::VarType::Type KindOf(const Value& value) {
  if (value.is_rows()) return proto::VarType::SELECTED_ROWS;
  if (value.is_array()) return proto::VarType::LOD_TENSOR_ARRAY;
  return proto::VarType::LOD_TENSOR;
}

proto::VarType::Type KindOf(const std::string& name) {
  const std::map<std::string, proto::VarType::Type> kinds = {
      {"dense", proto::VarType::LOD_TENSOR},
      {"selected_rows", proto::VarType::SELECTED_ROWS},
      {"tensor_array", proto::VarType::LOD_TENSOR_ARRAY},
      {"step_scopes", proto::VarType::STEP_SCOPES},
      {"rank_table", proto::VarType::LOD_RANK_TABLE}};
  const auto found = kinds.find(name);
  return found == kinds.end() ? proto::VarType::RAW : found->second;
}

void Describe(DType dtype, const Shape& shape, proto::VarType::TensorDesc* tensor) {
  tensor->set_data_type(static_cast<proto::VarType_Type>(DTypeToProto(dtype)));
  for (int64_t d : shape) tensor->add_dims(d);
}

class Build {
 public:
  Build(const Example& e, Operands operands) : example_(e), operands_(operands) {}

  Result<ExampleProgram> Run() {
    if (example_.is_program())
      AddProgram();
    else
      AddOperator();
    HEDDLE_ASSIGN_OR_RETURN(out_.program, builder_.TryBuild());
    return std::move(out_);
  }

 private:
  proto::VarDesc* Declare(const std::string& name, proto::VarType::Type kind, int block = 0) {
    auto* var = builder_.desc().mutable_blocks(block)->add_vars();
    var->set_name(name);
    var->mutable_type()->set_type(kind);
    return var;
  }

  void DeclareAs(const std::string& kind, std::optional<DType> said, const std::string& name) {
    auto* type = Declare(name, KindOf(kind))->mutable_type();
    const DType dtype = said.value_or(DType::kF32);
    if (kind == "dense")
      Describe(dtype, said ? Shape::Unknown() : Shape{-1},
               type->mutable_lod_tensor()->mutable_tensor());
    else if (kind == "selected_rows")
      Describe(dtype, Shape{-1}, type->mutable_selected_rows());
    else if (kind == "tensor_array")
      Describe(dtype, Shape{}, type->mutable_tensor_array()->mutable_tensor());
  }

  // A variable that holds `value` when the operator runs.
  void Give(const std::string& name, const ExampleInput& in) {
    auto* var = Declare(name, in.declared.empty() ? KindOf(in.value) : KindOf(in.declared));
    var->set_persistable(in.param);
    if (in.value.is_tensor()) {
      const Tensor& t = in.value.tensor();
      auto* type = var->mutable_type()->mutable_lod_tensor();
      Describe(in.said.value_or(t.dtype()), t.shape(), type->mutable_tensor());
      type->set_lod_level(static_cast<int32_t>(t.lod().size()));
    } else if (in.value.is_rows()) {
      const Tensor& t = in.value.rows().value;
      Describe(t.dtype(), t.shape(), var->mutable_type()->mutable_selected_rows());
    } else if (!in.value.array().empty()) {
      const Tensor& t = in.value.array()[0];
      Describe(t.dtype(), Shape{}, var->mutable_type()->mutable_tensor_array()->mutable_tensor());
    }
    if (!IsLeftOut(in)) (in.param ? out_.params : out_.feeds).push_back({name, in.value});
  }

  // Whether the variable is never written: an operand that may hold nothing does so. Of others a
  // shape is read, as of XShape: they hold zeros.
  bool IsLeftOut(const ExampleInput& in) const {
    if (!in.nothing || example_.is_program()) return in.nothing;
    const OpDef* const def = FindOp(example_.op);
    const int slot = def == nullptr ? -1 : def->FindInput(in.slot);
    return slot >= 0 && (def->inputs()[static_cast<size_t>(slot)].flags & kOptional) != 0;
  }

  // The variable that the operator reads: `name`, or a copy of it.
  std::string Operand(const std::string& name, const ExampleInput& in) {
    Give(name, in);
    if (operands_ == Operands::kFed || in.param || !in.value.is_tensor() || IsLeftOut(in))
      return name;
    const std::string copy = name + ".copy";
    builder_.Unary("assign", name, copy);
    return copy;
  }

  static void AddAttrs(const std::vector<proto::OpDesc_Attr>& attrs, proto::BlockDesc* block) {
    proto::OpDesc* op = block->mutable_ops(block->ops_size() - 1);
    for (const auto& a : attrs) *op->add_attrs() = a;
  }

  static std::vector<std::string>& NamesOf(const std::string& slot, Slots* slots) {
    for (auto& [name, names] : *slots)
      if (name == slot) return names;
    return slots->emplace_back(slot, std::vector<std::string>()).second;
  }

  void AddOperator() {
    Slots inputs, outputs;
    std::vector<std::pair<std::string, Value>> copies;
    for (const ExampleInput& in : example_.inputs) {
      auto& names = NamesOf(in.slot, &inputs);
      const std::string fed = in.slot + "." + std::to_string(names.size());
      names.push_back(Operand(fed, in));
      if (names.back() != fed) copies.emplace_back(names.back(), in.value);
    }
    std::set<std::string> written;
    for (const ExampleOutput& out : example_.outputs) {
      auto& names = NamesOf(out.slot, &outputs);
      std::string name = "out." + out.slot + "." + std::to_string(names.size());
      if (!out.same_as.empty()) {
        const auto& shared = NamesOf(out.same_as, &inputs);
        const size_t at = out.same_index >= 0 ? static_cast<size_t>(out.same_index) : names.size();
        if (at < shared.size()) name = shared[at];
        written.insert(name);
      } else if (!out.declared.empty()) {
        DeclareAs(out.declared, out.said, name);
      } else if (!out.value.is_tensor()) {
        Declare(name, KindOf(out.value));
      }
      names.push_back(name);
      if (out.check != Check::kNothing) out_.fetches.push_back(name);
    }
    builder_.Op(example_.op, inputs, outputs);
    AddAttrs(example_.attrs, builder_.desc().mutable_blocks(0));
    if (operands_ != Operands::kKept) return;
    for (auto& [name, value] : copies) {
      if (written.count(name) != 0) continue;
      out_.fetches.push_back(name);
      out_.kept.push_back(std::move(value));
    }
  }

  void AddProgram() {
    for (size_t b = 1; b < example_.block_parents.size(); ++b) {
      const int block = builder_.Block(example_.block_parents[b]);
      if (example_.forward_blocks[b] >= 0)
        builder_.desc().mutable_blocks(block)->set_forward_block_idx(example_.forward_blocks[b]);
    }
    std::set<std::string> declared;
    for (const ExampleInput& in : example_.inputs) {
      Give(in.slot, in);
      declared.insert(in.slot);
    }
    for (const ExampleVar& var : example_.vars) {
      auto* desc = Declare(var.name, KindOf(var.kind), var.block);
      declared.insert(var.name);
      if (desc->type().type() == proto::VarType::LOD_TENSOR && var.dtype)
        Describe(*var.dtype, var.shape.value_or(Shape{}),
                 desc->mutable_type()->mutable_lod_tensor()->mutable_tensor());
      if (desc->type().type() == proto::VarType::SELECTED_ROWS && var.dtype)
        Describe(*var.dtype, var.shape.value_or(Shape{}),
                 desc->mutable_type()->mutable_selected_rows());
      if (desc->type().type() == proto::VarType::LOD_TENSOR_ARRAY)
        Describe(var.dtype.value_or(DType::kF32), var.shape.value_or(Shape{}),
                 desc->mutable_type()->mutable_tensor_array()->mutable_tensor());
    }
    for (const ExampleOutput& out : example_.outputs) {
      if (declared.insert(out.slot).second) Declare(out.slot, KindOf(out.value));
      if (out.check != Check::kNothing) out_.fetches.push_back(out.slot);
    }
    DeclareOthers(&declared);
    for (const ExampleOp& op : example_.program) {
      builder_.In(op.block).Op(op.type, op.inputs, op.outputs);
      AddAttrs(op.attrs, builder_.desc().mutable_blocks(op.block));
    }
  }

  // Variables that only operators mention: in the block that alone does, else in block 0.
  void DeclareOthers(std::set<std::string>* declared) {
    std::map<std::string, std::set<int>> blocks;
    for (const ExampleOp& op : example_.program)
      for (const auto* slots : {&op.inputs, &op.outputs})
        for (const auto& [slot, names] : *slots)
          for (const std::string& name : names) blocks[name].insert(op.block);
    for (const auto& [name, in] : blocks)
      if (name != "@EMPTY@" && declared->insert(name).second)
        Declare(name, proto::VarType::LOD_TENSOR, in.size() == 1 ? *in.begin() : 0);
  }

  const Example& example_;
  const Operands operands_;
  ProgramBuilder builder_;
  ExampleProgram out_;
};

Value CloneOf(const Value& value) {
  if (value.is_tensor()) return value.tensor().initialized() ? value.tensor().Clone() : value;
  if (value.is_rows()) {
    SelectedRows rows = value.rows();
    rows.value = rows.value.Clone();
    return Value(std::move(rows));
  }
  TensorArray array = value.array();
  for (Tensor& t : array) t = t.Clone();
  return Value(std::move(array));
}

}  // namespace

std::shared_ptr<Scope> ExampleProgram::NewScope() const {
  auto scope = std::make_shared<Scope>();
  for (const auto& [name, value] : params) scope->Set(name, CloneOf(value));
  return scope;
}

Result<ExampleProgram> BuildProgram(const Example& example, Operands operands) {
  return Build(example, operands).Run();
}

}  // namespace heddle::testing
