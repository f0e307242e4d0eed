#include "tests/support/program_builder.h"

#include <cstdio>
#include <cstdlib>
#include <random>

#include "core/shapes.h"

namespace heddle::testing {
namespace {

[[noreturn]] void Die(const Status& status) {
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::abort();
}

struct SetAttr {
  proto::OpDesc_Attr* a;
  void operator()(bool v) const {
    a->set_type(proto::BOOLEAN);
    a->set_b(v);
  }
  void operator()(int64_t v) const {
    if (v == static_cast<int32_t>(v)) {
      a->set_type(proto::INT);
      a->set_i(static_cast<int32_t>(v));
    } else {
      a->set_type(proto::LONG);
      a->set_l(v);
    }
  }
  void operator()(double v) const {
    a->set_type(proto::FLOAT);
    a->set_f(static_cast<float>(v));
  }
  void operator()(const std::string& v) const {
    a->set_type(proto::STRING);
    a->set_s(v);
  }
  void operator()(const Ints& v) const {
    a->set_type(proto::LONGS);
    for (int64_t x : v) a->add_longs(x);
  }
  void operator()(const heddle::Floats& v) const {
    a->set_type(proto::FLOATS);
    for (double x : v) a->add_floats(static_cast<float>(x));
  }
  void operator()(const Strings& v) const {
    a->set_type(proto::STRINGS);
    for (const std::string& x : v) a->add_strings(x);
  }
  void operator()(BlockRef v) const {
    a->set_type(proto::BLOCK);
    a->set_block_idx(v.id);
  }
  void operator()(const std::vector<BlockRef>& v) const {
    a->set_type(proto::BLOCKS);
    for (BlockRef x : v) a->add_blocks_idx(x.id);
  }
};

void SetTensor(proto::VarDesc* var, DType dtype, const Shape& shape) {
  auto* tensor = var->mutable_type()->mutable_lod_tensor()->mutable_tensor();
  tensor->set_data_type(static_cast<proto::VarType_Type>(DTypeToProto(dtype)));
  for (int64_t d : shape) tensor->add_dims(d);
}

}  // namespace

ProgramBuilder::ProgramBuilder() {
  desc_.mutable_version()->set_version(0);
  Block(-1);
}

int ProgramBuilder::Block(int parent) {
  auto* block = desc_.add_blocks();
  block->set_idx(desc_.blocks_size() - 1);
  block->set_parent_idx(parent);
  return block->idx();
}

ProgramBuilder& ProgramBuilder::In(int block) {
  block_ = block;
  return *this;
}

bool ProgramBuilder::Declared(const std::string& name) const {
  for (int b = block_; b >= 0; b = desc_.blocks(b).parent_idx())
    for (const auto& var : desc_.blocks(b).vars())
      if (var.name() == name) return true;
  return name == "@EMPTY@";
}

proto::VarDesc* ProgramBuilder::Declare(const std::string& name, proto::VarType::Type type) {
  auto* var = desc_.mutable_blocks(block_)->add_vars();
  var->set_name(name);
  var->mutable_type()->set_type(type);
  return var;
}

ProgramBuilder& ProgramBuilder::Var(const std::string& name, DType dtype, const Shape& shape) {
  SetTensor(Declare(name, proto::VarType::LOD_TENSOR), dtype, shape);
  return *this;
}

ProgramBuilder& ProgramBuilder::Param(const std::string& name, DType dtype, const Shape& shape) {
  auto* var = Declare(name, proto::VarType::LOD_TENSOR);
  var->set_persistable(true);
  SetTensor(var, dtype, shape);
  return *this;
}

ProgramBuilder& ProgramBuilder::Array(const std::string& name) {
  auto* array = Declare(name, proto::VarType::LOD_TENSOR_ARRAY)->mutable_type();
  array->mutable_tensor_array()->mutable_tensor()->set_data_type(proto::VarType::FP32);
  return *this;
}

ProgramBuilder& ProgramBuilder::Feed(const std::string& name, DType dtype, const Shape& shape) {
  if (!Declared("feed")) Declare("feed", proto::VarType::FEED_MINIBATCH)->set_persistable(true);
  Var(name, dtype, shape);
  return Op("feed", {{"X", {"feed"}}}, {{"Out", {name}}}, {{"col", int64_t{feeds_++}}});
}

ProgramBuilder& ProgramBuilder::Fetch(const std::string& name) {
  if (!Declared("fetch")) Declare("fetch", proto::VarType::FETCH_LIST)->set_persistable(true);
  return Op("fetch", {{"X", {name}}}, {{"Out", {"fetch"}}}, {{"col", int64_t{fetches_++}}});
}

ProgramBuilder& ProgramBuilder::Op(const std::string& type, const Slots& inputs,
                                   const Slots& outputs, const Attrs& attrs) {
  for (const auto& [slot, names] : outputs)
    for (const std::string& name : names)
      if (!Declared(name)) Declare(name, proto::VarType::LOD_TENSOR);
  auto* op = desc_.mutable_blocks(block_)->add_ops();
  op->set_type(type);
  for (const auto& [slot, names] : inputs) {
    auto* in = op->add_inputs();
    in->set_parameter(slot);
    for (const std::string& name : names) in->add_arguments(name);
  }
  for (const auto& [slot, names] : outputs) {
    auto* out = op->add_outputs();
    out->set_parameter(slot);
    for (const std::string& name : names) out->add_arguments(name);
  }
  for (const auto& [name, value] : attrs) {
    auto* a = op->add_attrs();
    a->set_name(name);
    std::visit(SetAttr{a}, value);
  }
  return *this;
}

ProgramBuilder& ProgramBuilder::Unary(const std::string& type, const std::string& x,
                                      const std::string& out) {
  return Op(type, {{"X", {x}}}, {{"Out", {out}}});
}

ProgramBuilder& ProgramBuilder::Binary(const std::string& type, const std::string& x,
                                       const std::string& y, const std::string& out) {
  return Op(type, {{"X", {x}}, {"Y", {y}}}, {{"Out", {out}}});
}

ProgramBuilder& ProgramBuilder::Scale(const std::string& x, const std::string& out, double scale,
                                      double bias) {
  return Op("scale", {{"X", {x}}}, {{"Out", {out}}}, {{"scale", scale}, {"bias", bias}});
}

ProgramBuilder& ProgramBuilder::Reshape(const std::string& x, const std::string& out, Ints shape) {
  return Op("reshape2", {{"X", {x}}}, {{"Out", {out}}}, {{"shape", std::move(shape)}});
}

ProgramBuilder& ProgramBuilder::Fill(const std::string& out, Ints shape, double value,
                                     DType dtype) {
  return Op("fill_constant", {}, {{"Out", {out}}},
            {{"shape", std::move(shape)}, {"value", value}, {"dtype", DTypeToProto(dtype)}});
}

ProgramBuilder& ProgramBuilder::Increment(const std::string& x, double step) {
  return Op("increment", {{"X", {x}}}, {{"Out", {x}}}, {{"step", step}});
}

Program ProgramBuilder::Build() const {
  auto program = TryBuild();
  if (!program.ok()) Die(program.status());
  return *std::move(program);
}

Tensor RandomF32(const Shape& shape, uint32_t seed, float bound) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> value(-bound, bound);
  std::vector<float> v(static_cast<size_t>(shape.numel()));
  for (float& x : v) x = value(random);
  return F32(shape, v);
}

Tensor F32(const Shape& shape, const std::vector<float>& values) {
  return Tensor::Of(DType::kF32, shape, values);
}
Tensor I64(const Shape& shape, const std::vector<int64_t>& values) {
  return Tensor::Of(DType::kI64, shape, values);
}
Tensor Bool(bool value) { return Tensor::Of(DType::kBool, Shape{1}, std::vector<uint8_t>{value}); }
std::vector<float> Floats(const Tensor& t) {
  if (t.dtype() != DType::kF32) Die(Status(StatusCode::kInternal, "the tensor is not float32"));
  return {t.data<float>(), t.data<float>() + t.numel()};
}
std::string Bits(const Tensor& t) { return {static_cast<const char*>(t.raw()), t.bytes()}; }

namespace {
bool SameTensor(const Tensor& a, const Tensor& b) {
  if (a.initialized() != b.initialized()) return false;
  return !a.initialized() || (a.dtype() == b.dtype() && a.shape() == b.shape() &&
                              a.lod() == b.lod() && Bits(a) == Bits(b));
}
}  // namespace

bool SameBits(const Value& a, const Value& b) {
  if (a.kind() != b.kind()) return false;
  if (a.is_tensor()) return SameTensor(a.tensor(), b.tensor());
  if (a.is_rows())
    return a.rows().rows == b.rows().rows && a.rows().height == b.rows().height &&
           SameTensor(a.rows().value, b.rows().value);
  if (a.array().size() != b.array().size()) return false;
  for (size_t i = 0; i < a.array().size(); ++i)
    if (!SameTensor(a.array()[i], b.array()[i])) return false;
  return true;
}

std::vector<Tensor> MustRun(Executor& executor, const CompiledProgram& compiled,
                            const std::vector<heddle::Feed>& feeds) {
  auto out = executor.Run(compiled, feeds);
  if (!out.ok()) Die(out.status());
  return *std::move(out);
}

CompiledProgram MustCompile(Executor& executor, const Program& program,
                            std::shared_ptr<Scope> scope, const CompileOptions& options) {
  auto compiled = executor.Compile(program, std::move(scope), options);
  if (!compiled.ok()) Die(compiled.status());
  return *std::move(compiled);
}

}  // namespace heddle::testing
