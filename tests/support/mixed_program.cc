#include "tests/support/mixed_program.h"

#include <algorithm>

namespace heddle::testing {
namespace {

constexpr int kDeepest = 3;  // levels of blocks, block 0 included

Ints ToInts(const Shape& s) { return {s.begin(), s.end()}; }

}  // namespace

MixedProgram::MixedProgram(uint32_t seed, int steps, int scale)
    : scale_(scale),
      flat_{12 * scale * scale},
      wide_{2 * scale, 6 * scale},
      tall_{6 * scale, 2 * scale},
      square_{6 * scale, 6 * scale},
      row_{6 * scale},
      parts_{24 * scale * scale},
      table_{4, 6 * scale},
      rng_(seed) {
  levels_.emplace_back();
  Start();
  if (scale > 1) {
    Steps(2 + Pick(3));
    Loop();
    Steps(1 + Pick(3));
  } else {
    Steps(steps > 0 ? steps : 8 + Pick(30));
  }
  End();
  if (seed % 4 == 1) Annotate();
  bytes_ = builder_.Bytes();
}

void MixedProgram::Start() {
  for (const auto& [name, shape] : {std::pair("x", wide_), std::pair("y", flat_)}) {
    builder_.Feed(name, DType::kF32, shape);
    levels_[0].own[name] = shape;
  }
  for (int f = 0; f < 2; ++f) {
    builder_.Feed("flag" + std::to_string(f), DType::kBool, {1});
    flags_[f] = Chance(50);
  }
  for (const auto& [name, shape] :
       {std::pair("w", square_), std::pair("scale", row_), std::pair("bias", row_),
        std::pair("table", table_), std::pair("filter", Shape{2, 2, 1, 1})}) {
    builder_.Param(name, DType::kF32, shape);
    levels_[0].own[name] = shape;
    parameters_.emplace_back(name);
  }
  builder_.Param("rate", DType::kF32, {1});
  builder_.Param("pick", DType::kBool, wide_).Param("ids", DType::kI64, {2 * scale_});
  builder_.Array("array");
  builder_.Fill("zero", {1}, 0, DType::kI64);
  Emit("write_to_array", {{"X", {"x"}}, {"I", {"zero"}}}, {{"Out", {"array"}}});
  // Variables that blocks may rewrite.
  for (const Shape& shape : {flat_, wide_, tall_}) {
    const std::string from = shape == wide_ ? "x" : "y", name = Name("v");
    if (shape == tall_)
      builder_.Reshape(from, name, ToInts(shape));
    else
      builder_.Scale(from, name, 0.5, 0.25);
    levels_[0].own[name] = shape;
  }
}

size_t MixedProgram::LevelOf(const std::string& name) const {
  for (size_t l = levels_.size(); l-- > 0;)
    if (levels_[l].own.count(name) > 0) return l;
  return 0;
}

bool MixedProgram::MayUse(const std::string& name, bool writes) const {
  if (writes && only_read_.count(name) > 0) return false;
  const auto storage = storages_.find(name);
  if (storage == storages_.end()) return true;
  for (size_t l = LevelOf(name) + 1; l < levels_.size(); ++l) {
    const auto use = levels_[l].uses.find(storage->second);
    if (use == levels_[l].uses.end() || !(writes || use->second.written)) continue;
    if (use->second.several || use->second.name != name) return false;
  }
  return true;
}

void MixedProgram::NoteUse(const std::string& name, bool writes) {
  const auto storage = storages_.find(name);
  if (storage == storages_.end()) return;
  for (size_t l = LevelOf(name) + 1; l < levels_.size(); ++l) {
    Level::Use& use = levels_[l].uses.try_emplace(storage->second, Level::Use{name}).first->second;
    use.several = use.several || use.name != name;
    use.written = use.written || writes;
  }
}

int MixedProgram::StorageOf(const std::string& name) {
  const auto [at, fresh] = storages_.try_emplace(name, storage_count_);
  storage_count_ += fresh;
  return at->second;
}

std::vector<std::string> MixedProgram::Visible(const Shape& shape, bool writes) const {
  std::vector<std::string> names;
  for (const Level& level : levels_)
    for (const auto& [name, s] : level.own)
      if (s == shape && MayUse(name, writes)) names.push_back(name);
  return names;
}

std::string MixedProgram::Any(const Shape& shape) {
  const std::vector<std::string> names = Visible(shape);
  const std::string& name = names[static_cast<size_t>(Pick(static_cast<int>(names.size())))];
  NoteUse(name, false);
  return name;
}

// A new variable of this block, or one that is overwritten. Feeds and parameters stay, but for what
// is written to another name of theirs.
std::string MixedProgram::Target(const Shape& shape) {
  if (Chance(55))
    for (const std::string& name : Visible(shape, true))
      if ((name[0] == 'v' || name[0] == 'a') && Chance(50)) {
        NoteUse(name, true);
        return name;
      }
  const std::string name = Name("v");
  levels_.back().own[name] = shape;
  return name;
}

// A block takes what lives outside it: so do the blocks around it, up to where it lives.
void MixedProgram::Uses(const std::string& name, bool writes) {
  for (size_t l = levels_.size(); l-- > 0;) {
    if (levels_[l].own.count(name) > 0) return;
    if (l == 0) return;  // counters, flags and arrays of block 0
    levels_[l].read.insert(name);
    if (writes) levels_[l].written.insert(name);
  }
}

void MixedProgram::Emit(const std::string& type, const Slots& ins, const Slots& outs,
                        const Attrs& attrs) {
  for (const auto& [slot, names] : ins)
    for (const std::string& name : names) Uses(name, false);
  for (const auto& [slot, names] : outs)
    for (const std::string& name : names) Uses(name, true);
  builder_.Op(type, ins, outs, attrs);
}

void MixedProgram::Steps(int count) {
  for (int i = 0; i < count; ++i) Step();
}

void MixedProgram::Step() {
  const Shape* shapes[] = {&flat_, &wide_, &tall_};
  const Shape& shape = *shapes[Pick(3)];
  switch (Pick(22)) {
    case 0:
    case 1:
    case 2:
      return Unary(shape);
    case 3:
    case 4:
    case 5:
      return Binary(shape);
    case 6:
      return Joined();
    case 7:
      return Product();
    case 8:
      return Normalised(shape);
    case 9:
      return Moved();
    case 10:
      return Chance(70) ? Alias(shape) : SharedBuffers();
    case 11:
      return Drawn(shape);
    case 12:
      return Array();
    case 13:
      return Chance(50) ? Update() : Checked();
    case 14:
    case 15:
      return Branch();
    case 16:
      return Parts();
    case 17:
      return OfShape();
    case 18:
      return Chance(50) ? OfUnknownSize() : Convolved();
    case 19:
      return Chance(50) ? Rows() : Copied(shape);
    default:
      return Loop();
  }
}

void MixedProgram::Unary(const Shape& shape) {
  const char* const types[] = {"relu", "tanh", "sigmoid", "square", "abs", "exp"};
  const std::string x = Any(shape);
  // exp of what a loop keeps growing would leave float32 behind.
  const char* const type = types[Pick(6)];
  if (std::string(type) == "exp" || std::string(type) == "square") {
    const std::string small = Target(shape);
    Emit("tanh", {{"X", {x}}}, {{"Out", {small}}});
    return Emit(type, {{"X", {small}}}, {{"Out", {Target(shape)}}});
  }
  if (Chance(40)) {
    const std::string in_place = Target(shape);
    Emit("scale", {{"X", {x}}}, {{"Out", {in_place}}}, {{"scale", 0.5}, {"bias", 0.125}});
    return Emit(type, {{"X", {in_place}}}, {{"Out", {in_place}}});
  }
  Emit(type, {{"X", {x}}}, {{"Out", {Target(shape)}}});
}

void MixedProgram::Binary(const Shape& shape) {
  const char* const types[] = {"elementwise_add", "elementwise_sub", "elementwise_mul",
                               "elementwise_max"};
  const std::string type = types[Pick(4)];
  const bool along_rows = shape == wide_ && Chance(30);
  const std::string x = Any(shape), y = along_rows ? Any(row_) : Any(shape), out = Target(shape);
  Emit(type, {{"X", {x}}, {"Y", {y}}}, {{"Out", {out}}});
  if (type == "elementwise_mul") Emit("tanh", {{"X", {out}}}, {{"Out", {out}}});
}

void MixedProgram::Joined() {
  const std::string a = Any(wide_), b = Any(wide_), all = Name("t");
  Emit("concat", {{"X", {a, b, a}}}, {{"Out", {all}}}, {{"axis", int64_t{0}}});
  Emit("scale", {{"X", {all}}}, {{"Out", {all}}}, {{"scale", 0.5}});
  const std::string parts[] = {Name("t"), Name("t"), Name("t")};
  Emit("split", {{"X", {all}}}, {{"Out", {parts[0], parts[1], parts[2]}}},
       {{"axis", int64_t{0}}, {"num", int64_t{3}}});
  Emit("sum", {{"X", {parts[Pick(3)], parts[Pick(3)], b}}}, {{"Out", {Target(wide_)}}});
}

void MixedProgram::Product() {
  const std::string x = Any(wide_), product = Name("t"), out = Target(wide_);
  Emit("matmul_v2", {{"X", {x}}, {"Y", {"w"}}}, {{"Out", {product}}});
  if (Chance(60)) {
    const std::string shifted = Name("t"), bias = Any(row_);
    Emit("elementwise_add", {{"X", {product}}, {"Y", {bias}}}, {{"Out", {shifted}}});
    return Emit(Chance(50) ? "relu" : "tanh", {{"X", {shifted}}}, {{"Out", {out}}});
  }
  Emit("tanh", {{"X", {product}}}, {{"Out", {out}}});
}

void MixedProgram::Normalised(const Shape& shape) {
  const std::string x = Any(shape);
  if (shape == wide_ && Chance(50)) {
    const std::string scale = Any(row_), bias = Any(row_);
    return Emit("layer_norm", {{"X", {x}}, {"Scale", {scale}}, {"Bias", {bias}}},
                {{"Y", {Target(shape)}}, {"Mean", {Name("t")}}, {"Variance", {Name("t")}}},
                {{"begin_norm_axis", int64_t{1}}});
  }
  Emit("softmax", {{"X", {x}}}, {{"Out", {Target(shape)}}}, {{"axis", int64_t{-1}}});
}

void MixedProgram::Moved() {
  if (Chance(50)) {
    const Shape& to = Chance(50) ? flat_ : tall_;
    const std::string x = Any(wide_);
    return Emit("reshape2", {{"X", {x}}}, {{"Out", {Target(to)}}, {"XShape", {Name("t")}}},
                {{"shape", ToInts(to)}});
  }
  const std::string x = Any(tall_);
  Emit("transpose2", {{"X", {x}}}, {{"Out", {Target(wide_)}}, {"XShape", {Name("t")}}},
       {{"axis", Ints{1, 0}}});
}

// Another name of a variable's storage; both are read and written later, but for a block's name of
// what lies outside it, which is only read.
void MixedProgram::Alias(const Shape& of) {
  const Shape& shape = Chance(15) ? row_ : of;
  const std::string x = Any(shape);
  if (Chance(15)) return Emit("assign", {{"X", {x}}}, {{"Out", {Target(shape)}}});
  const bool outside = LevelOf(x) + 1 < levels_.size() || only_read_.count(x) > 0;
  std::string alias = Name("a");
  if (!outside && Chance(25))  // one that leaves its storage
    for (const auto& [name, s] : levels_.back().own)
      if (name[0] == 'a' && s == shape && name != x && only_read_.count(name) == 0) alias = name;
  levels_.back().own[alias] = shape;
  storages_[alias] = StorageOf(x);
  if (outside) only_read_.insert(alias);
  Emit("share_data", {{"X", {x}}}, {{"Out", {alias}}});
}

// Names for the storages of two variables of this block.
void MixedProgram::SharedBuffers() {
  std::vector<std::string> own;
  for (const auto& [name, shape] : levels_.back().own)
    if ((name[0] == 'v' || name[0] == 'a') && shape == wide_ && only_read_.count(name) == 0)
      own.push_back(name);
  if (own.size() < 2) return;
  const std::string x = own[0],
                    y = own[static_cast<size_t>(1 + Pick(static_cast<int>(own.size()) - 1))];
  const std::string a = Name("a"), b = Name("a");
  for (const auto& [alias, name] : {std::pair(a, x), std::pair(b, y)}) {
    levels_.back().own[alias] = wide_;
    storages_[alias] = StorageOf(name);
  }
  std::vector<std::string> in_order;
  if (Chance(50)) in_order = {x, y};
  Emit("share_buffer", {{"X", {x, y}}}, {{"Out", {a, b}}, {"XOut", in_order}},
       {{"share_dims_and_dtype", Ints{1, 1}}});
}

// A storage that is parts, and all of it.
void MixedProgram::Parts() {
  if (Visible(parts_).empty() || Chance(40)) {
    const std::string x = Any(flat_), y = Any(wide_), a = Name("a"), b = Name("a"), all = Name("a");
    for (const auto& [name, shape] :
         {std::pair(all, parts_), std::pair(a, flat_), std::pair(b, wide_)}) {
      levels_.back().own[name] = shape;
      storages_[name] = StorageOf(all);
    }
    return Emit("coalesce_tensor", {{"Input", {x, y}}},
                {{"Output", {a, b}}, {"FusedOutput", {all}}},
                {{"copy_data", true}, {"use_align", false}, {"dtype", int64_t{5}}});
  }
  const std::string all = Any(parts_);
  if (MayUse(all, true) && Chance(60)) {
    NoteUse(all, true);
    return Emit("tanh", {{"X", {all}}}, {{"Out", {all}}});
  }
  Emit("slice", {{"Input", {all}}}, {{"Out", {Target(flat_)}}},
       {{"axes", Ints{0}},
        {"starts", Ints{6 * scale_ * scale_}},
        {"ends", Ints{18 * scale_ * scale_}}});
}

// Operands of which only the shape is read.
void MixedProgram::OfShape() {
  const std::string x = Any(wide_);
  if (Chance(30)) {
    const std::string shape = Name("t"), filled = Name("t"), y = Any(wide_);
    Emit("shape", {{"Input", {x}}}, {{"Out", {shape}}});
    Emit("fill_constant", {{"ShapeTensor", {shape}}}, {{"Out", {filled}}},
         {{"value", 0.25}, {"dtype", int64_t{5}}});
    return Emit("elementwise_add", {{"X", {y}}, {"Y", {filled}}}, {{"Out", {Target(wide_)}}});
  }
  if (Chance(40))
    return Emit("fill_any_like", {{"X", {x}}}, {{"Out", {Target(wide_)}}}, {{"value", 0.5}});
  const std::string y = Any(row_), grad = Any(wide_);
  Emit("elementwise_add_grad", {{"X", {x}}, {"Y", {y}}, {"Out@GRAD", {grad}}},
       {{"X@GRAD", {Target(wide_)}}, {"Y@GRAD", {Name("t")}}}, {{"axis", int64_t{1}}});
}

void MixedProgram::OfUnknownSize() {
  const std::string x = Any(wide_), y = Any(wide_), some = Name("t"), sum = Name("t"),
                    shifted = Name("t");
  Emit("masked_select", {{"X", {x}}, {"Mask", {"pick"}}}, {{"Y", {some}}});
  Emit("reduce_mean", {{"X", {some}}}, {{"Out", {sum}}},
       {{"reduce_all", true}, {"keep_dim", false}});
  Emit("elementwise_add", {{"X", {y}}, {"Y", {sum}}}, {{"Out", {shifted}}});
  Emit("tanh", {{"X", {shifted}}}, {{"Out", {Target(wide_)}}});
}

// A stretch whose layout passes may change.
void MixedProgram::Convolved() {
  const std::string x = Any(flat_), image = Name("t"), conv = Name("t"), active = Name("t"),
                    again = Name("t");
  Emit("reshape2", {{"X", {x}}}, {{"Out", {image}}, {"XShape", {Name("t")}}},
       {{"shape", Ints{1, 2, 2, 3 * scale_ * scale_}}});
  for (const auto& [from, to] : {std::pair(image, conv), std::pair(active, again)}) {
    Emit("conv2d", {{"Input", {from}}, {"Filter", {"filter"}}}, {{"Output", {to}}},
         {{"strides", Ints{1, 1}}, {"paddings", Ints{0, 0}}, {"dilations", Ints{1, 1}}});
    if (to == conv) Emit("tanh", {{"X", {conv}}}, {{"Out", {active}}});
  }
  Emit("reshape2", {{"X", {again}}}, {{"Out", {Target(flat_)}}, {"XShape", {Name("t")}}},
       {{"shape", ToInts(flat_)}});
}

// A sparse gradient and its update.
void MixedProgram::Rows() {
  const std::string rows = Name("t"), grad = Any(wide_);
  auto* const var = builder_.desc().mutable_blocks(builder_.current())->add_vars();
  var->set_name(rows);
  var->mutable_type()->set_type(proto::VarType::SELECTED_ROWS);
  Emit("lookup_table_v2", {{"Ids", {"ids"}}, {"W", {"table"}}}, {{"Out", {Target(wide_)}}});
  Emit("lookup_table_v2_grad", {{"Ids", {"ids"}}, {"W", {"table"}}, {"Out@GRAD", {grad}}},
       {{"W@GRAD", {rows}}}, {{"is_sparse", true}});
  Emit("sgd", {{"Param", {"table"}}, {"Grad", {rows}}, {"LearningRate", {"rate"}}},
       {{"ParamOut", {"table"}}});
}

// A copy between places.
void MixedProgram::Copied(const Shape& shape) {
  const char* const types[] = {"memcpy_h2d", "memcpy_d2h", "memcpy"};
  const int type = Pick(3);
  const std::string x = Any(shape);
  Attrs attrs;
  if (type == 2) attrs = {{"dst_place_type", int64_t{Pick(2)}}};
  Emit(types[type], {{"X", {x}}}, {{"Out", {Target(shape)}}}, attrs);
}

void MixedProgram::Drawn(const Shape& shape) {
  if (Chance(50))
    return Emit("uniform_random", {}, {{"Out", {Target(shape)}}},
                {{"shape", ToInts(shape)}, {"min", -1.0}, {"max", 1.0}, {"dtype", int64_t{5}}});
  const std::string x = Any(shape);
  Emit("dropout", {{"X", {x}}}, {{"Out", {Target(shape)}}, {"Mask", {Name("t")}}},
       {{"dropout_prob", 0.25}, {"dropout_implementation", "upscale_in_train"}});
}

// Entries keep their shape, as those of loops do.
void MixedProgram::Array() {
  if (Chance(50))
    Emit("write_to_array", {{"X", {Any(wide_)}}, {"I", {"zero"}}}, {{"Out", {"array"}}});
  else
    Emit("read_from_array", {{"X", {"array"}}, {"I", {"zero"}}}, {{"Out", {Target(wide_)}}});
}

void MixedProgram::Update() {
  const std::string name = Chance(50) ? "scale" : "bias";
  if (!MayUse(name, true)) return;
  NoteUse(name, true);
  const std::string grad = Name("t"), rows = Any(wide_);
  Emit("reduce_mean", {{"X", {rows}}}, {{"Out", {grad}}}, {{"dim", Ints{0}}});
  Emit("sgd", {{"Param", {name}}, {"Grad", {grad}}, {"LearningRate", {"rate"}}},
       {{"ParamOut", {name}}});
}

// An operator with a side effect that later ones must not overtake the cause of.
void MixedProgram::Checked() {
  const std::string finite = Name("t"), x = Any(wide_);
  Emit("isfinite", {{"X", {x}}}, {{"Out", {finite}}});
  Emit("assert", {{"Cond", {finite}}, {"Data", {x}}}, {});
}

MixedProgram::Level MixedProgram::Body(int block) {
  const int outer = builder_.current();
  builder_.In(block);
  levels_.emplace_back();
  Steps(scale_ > 1 && levels_.size() == 2 ? 6 + Pick(16) : 1 + Pick(5));
  builder_.In(outer);
  Level level = std::move(levels_.back());
  levels_.pop_back();
  return level;
}

namespace {

std::vector<std::string> List(const std::set<std::string>& names) {
  return {names.begin(), names.end()};
}

}  // namespace

void MixedProgram::Branch() {
  if (levels_.size() >= kDeepest) return;
  const int body = builder_.Block(builder_.current());
  const Level level = Body(body);
  Emit("conditional_block",
       {{"Cond", {"flag" + std::to_string(Pick(2))}}, {"Input", List(level.read)}},
       {{"Out", List(level.written)}, {"Scope", {}}},
       {{"sub_block", BlockRef{body}}, {"is_scalar_condition", true}});
}

void MixedProgram::Loop() {
  if (levels_.size() >= kDeepest) return;
  const std::string i = Name("i"), n = Name("n"), go = Name("go");
  builder_.Fill(i, {1}, 0, DType::kI64).Fill(n, {1}, Pick(4), DType::kI64);
  builder_.Binary("less_than", i, n, go);
  const int outer = builder_.current(), body = builder_.Block(outer);
  Level level = Body(body);
  builder_.In(body).Increment(i).Binary("less_than", i, n, go);
  builder_.In(outer);
  level.read.insert({i, n, go});
  level.written.insert({i, go});
  for (const std::string& name : {i, n, go}) levels_.back().own[name] = Shape{1};
  Emit("while", {{"X", List(level.read)}, {"Condition", {go}}},
       {{"Out", List(level.written)}, {"StepScopes", {}}}, {{"sub_block", BlockRef{body}}});
}

void MixedProgram::End() {
  int fetched = 0;
  for (const auto& [name, shape] : levels_[0].own)
    if ((name[0] == 'v' || name[0] == 'a') && (Chance(60) || fetched == 0)) {
      builder_.Fetch(name);
      ++fetched;
    }
}

// Every operator says where it wants to run.
void MixedProgram::Annotate() {
  for (auto& block : *builder_.desc().mutable_blocks())
    for (auto& op : *block.mutable_ops()) {
      if (op.type() == "feed" || op.type() == "fetch") continue;
      auto* attr = op.add_attrs();
      attr->set_name("op_device");
      attr->set_type(proto::STRING);
      const bool host =
          block.idx() > 0 || op.type() == "while" || op.type() == "conditional_block" || Chance(50);
      attr->set_s(host ? "cpu" : "gpu:0");
    }
}

std::map<std::string, int> MixedProgram::OpCounts() const {
  proto::ProgramDesc desc;
  desc.ParseFromString(bytes_);
  std::map<std::string, int> counts;
  for (const auto& block : desc.blocks())
    for (const auto& op : block.ops()) ++counts[op.type()];
  return counts;
}

std::vector<heddle::Feed> MixedProgram::Feeds() const {
  std::vector<heddle::Feed> feeds = {{"x", RandomF32(wide_, 1)}, {"y", RandomF32(flat_, 2)}};
  for (int f = 0; f < 2; ++f) feeds.push_back({"flag" + std::to_string(f), Bool(flags_[f])});
  return feeds;
}

std::shared_ptr<Scope> MixedProgram::NewScope() const {
  auto scope = std::make_shared<Scope>();
  scope->Set("w", RandomF32(square_, 3));
  scope->Set("scale", RandomF32(row_, 4));
  scope->Set("bias", RandomF32(row_, 5));
  scope->Set("rate", F32({1}, {0.125f}));
  scope->Set("table", RandomF32(table_, 6));
  scope->Set("filter", RandomF32({2, 2, 1, 1}, 7));
  Ints ids = {3, 1};
  while (std::ssize(ids) < 2 * scale_) ids.push_back(std::ssize(ids) % 4);
  scope->Set("ids", I64({2 * scale_}, ids));
  Tensor pick = Tensor::Empty(DType::kBool, wide_);
  for (int64_t i = 0; i < pick.numel(); ++i) pick.mutable_data<bool>()[i] = i % 3 != 1;
  scope->Set("pick", pick);
  return scope;
}

}  // namespace heddle::testing
