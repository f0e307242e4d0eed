#include "offload/group_key.h"

#include <xxhash.h>

#include <cstring>

#include "core/error.h"
#include "heddle/read_only.h"

namespace heddle::offload {
namespace {

void AddIndices(const int32_t* indices, size_t count, Digest* to) {
  to->AddNumber(static_cast<int64_t>(count));
  to->Add(indices, count * sizeof *indices);
}

enum class Contents { kWhole, kChecksum };

void AddValue(const heddle_engine_value& value, Contents contents, Digest* to) {
  to->AddNumber(value.dtype);
  to->AddNumber(value.rank);
  if (value.rank > 0) to->Add(value.dims, static_cast<size_t>(value.rank) * sizeof *value.dims);
  to->AddNumber(value.data != nullptr ? 1 : 0);
  if (contents == Contents::kWhole)
    return to->AddText({static_cast<const char*>(value.data), value.bytes});
  to->AddNumber(static_cast<int64_t>(value.bytes));
  if (value.bytes == 0) return;
  const XXH128_hash_t sum = XXH3_128bits(value.data, value.bytes);
  to->Add(&sum, sizeof sum);
}

void AddSlots(const heddle_engine_slot* const* slots, size_t count, Digest* to) {
  to->AddNumber(static_cast<int64_t>(count));
  for (size_t s = 0; s < count; ++s) {
    to->AddText(slots[s]->name);
    AddIndices(slots[s]->values, slots[s]->count, to);
  }
}

void AddAttribute(const heddle_engine_attribute& a, Digest* to) {
  to->AddText(a.name);
  to->AddNumber(a.kind);
  to->AddNumber(static_cast<int64_t>(a.count));
  switch (a.kind) {
    case HEDDLE_ENGINE_REAL:
    case HEDDLE_ENGINE_REALS:
      to->Add(a.reals, a.count * sizeof *a.reals);
      break;
    case HEDDLE_ENGINE_TEXT:
    case HEDDLE_ENGINE_TEXTS:
      for (size_t i = 0; i < a.count; ++i) to->AddText(a.texts[i]);
      break;
    case HEDDLE_ENGINE_HELD:
      to->Add(a.values, a.count * sizeof *a.values);
      break;
    default:
      to->Add(a.ints, a.count * sizeof *a.ints);
  }
}

void AddGroup(const heddle_engine_group& group, Contents contents, Digest* to) {
  to->AddNumber(static_cast<int64_t>(group.num_values));
  for (size_t i = 0; i < group.num_values; ++i) AddValue(*group.values[i], contents, to);
  to->AddNumber(static_cast<int64_t>(group.num_operators));
  for (size_t i = 0; i < group.num_operators; ++i) {
    const heddle_engine_operator& op = *group.operators[i];
    to->AddText(op.type);
    AddSlots(op.inputs, op.num_inputs, to);
    AddSlots(op.outputs, op.num_outputs, to);
    to->AddNumber(static_cast<int64_t>(op.num_attributes));
    for (size_t a = 0; a < op.num_attributes; ++a) AddAttribute(*op.attributes[a], to);
  }
}

}  // namespace

Result<std::shared_ptr<const Group>> WithoutNames(const Group& group) {
  const ir::Program& named = *group.program;
  auto program = std::make_shared<ir::Program>();
  program->name = "group";
  program->version = named.version;
  program->op_versions = named.op_versions;
  program->hash = named.hash;
  program->blocks = named.blocks;
  program->feeds = named.feeds;
  program->fetches = named.fetches;
  for (const ir::Var& var : named.vars) {
    ir::Var mine = var;
    mine.name = StrCat("v", program->vars.size());
    program->AddVar(std::move(mine));
  }
  auto made = std::make_shared<Group>(group);
  made->symbol = "group";
  made->program = std::move(program);
  for (auto& [var, tensor] : made->parameters) {
    if (!IsBorrowed(tensor)) continue;
    tensor = tensor.Clone();
    if (!tensor.initialized())
      return ResourceExhausted("no memory for a copy of parameter '", named.vars[var].name, "'");
  }
  return std::shared_ptr<const Group>(std::move(made));
}

DigestBytes KeyOf(const GroupDescription& description, const std::string& about) {
  const heddle_engine_group& group = description.get();
  Digest digest;
  digest.AddText(about);
  AddGroup(group, Contents::kWhole, &digest);
  AddIndices(group.inputs, group.num_inputs, &digest);
  AddIndices(group.outputs, group.num_outputs, &digest);
  // Contents of parameters have been added, and are the bulk of a model.
  digest.AddText(description.onnx_outline());
  return std::move(digest).Finish();
}

DigestBytes AnswersKeyOf(const Group& group, OnnxWriter* onnx, const std::string& about) {
  const GroupDescription description(group);
  const heddle_engine_group& told = description.get();
  Digest digest;
  digest.AddText("answers");
  digest.AddText(about);
  AddGroup(told, Contents::kChecksum, &digest);
  for (size_t i = 0; i < told.num_values; ++i) digest.AddText(told.values[i]->name);
  AddIndices(told.inputs, told.num_inputs, &digest);
  digest.AddText(onnx != nullptr ? onnx->OutlineOfRanges() : "");
  return std::move(digest).Finish();
}

bool HaveEqualParameters(const heddle_engine_group& a, const heddle_engine_group& b) {
  if (a.num_values != b.num_values) return false;
  for (size_t i = 0; i < a.num_values; ++i) {
    const heddle_engine_value &x = *a.values[i], &y = *b.values[i];
    if (x.bytes != y.bytes) return false;
    if (x.data != y.data && x.bytes > 0 && std::memcmp(x.data, y.data, x.bytes) != 0) return false;
  }
  return true;
}

}  // namespace heddle::offload
