#include "builder/call.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <type_traits>
#include <vector>

#include "core/error.h"
#include "core/op_registry.h"
#include "core/programs/sub_block_slots.h"
#include "core/shapes.h"

namespace heddle::builder {
namespace {

// The edit distance: the number of letters to change, insert or delete to turn one word into the
// other.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t corner = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t changed = corner + (a[i] == b[j] ? 0 : 1);
      corner = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, corner + 1});
    }
  }
  return row.back();
}

// The operator that was probably meant; "": none is similar.
std::string Nearest(std::string_view type) {
  std::string nearest;
  size_t least = std::max<size_t>(2, type.size() / 4) + 1;
  for (const std::string& name : SupportedOps()) {
    // Versions count as similar: "matmul" and "matmul_v2".
    const size_t distance =
        name.starts_with(type) || type.starts_with(name) ? 1 : Distance(type, name);
    if (distance < least) {
      least = distance;
      nearest = name;
    }
  }
  return nearest;
}

template <typename Defs>
std::string Names(const Defs& defs) {
  std::string names;
  for (const auto& def : defs)
    if (def.name.find(':') == std::string::npos) names += (names.empty() ? "" : ", ") + def.name;
  return names.empty() ? "none" : names;
}

template <typename Defs>
Result<size_t> Find(const char* what, const Defs& defs, std::string_view name) {
  for (size_t i = 0; i < defs.size(); ++i)
    if (defs[i].name == name && name.find(':') == std::string_view::npos) return i;
  return InvalidArgument("has no ", what, " '", std::string(name), "'; there is ", Names(defs));
}

const char* TypeName(const AttrValue& like) {
  constexpr const char* kNames[] = {"a bool",          "an int",         "a float",
                                    "a text",          "a list of ints", "a list of floats",
                                    "a list of texts", "a block",        "a list of blocks"};
  return kNames[like.index()];
}

// Converts numbers to the attribute's type if that is exact.
struct Conversion {
  const AttrValue& like;

  template <typename Want>
  bool wants() const {
    return std::holds_alternative<Want>(like);
  }
  // nullopt: the value does not fit.
  std::optional<AttrValue> operator()(bool v) const {
    if (wants<bool>()) return AttrValue(v);
    if (wants<int64_t>()) return AttrValue(int64_t{v});
    return std::nullopt;
  }
  std::optional<AttrValue> operator()(int64_t v) const {
    if (wants<int64_t>()) return AttrValue(v);
    if (wants<double>()) return AttrValue(static_cast<double>(v));
    if (wants<bool>() && (v == 0 || v == 1)) return AttrValue(v == 1);
    return std::nullopt;
  }
  std::optional<AttrValue> operator()(double v) const {
    if (wants<double>()) return AttrValue(v);
    return std::nullopt;
  }
  std::optional<AttrValue> operator()(const std::string& v) const {
    if (wants<std::string>()) return AttrValue(v);
    for (int t = 0; t + 1 < kNumDTypes; ++t)
      if (Name(static_cast<DType>(t)) == v) return (*this)(static_cast<DType>(t));
    return std::nullopt;
  }
  std::optional<AttrValue> operator()(const std::vector<int64_t>& v) const {
    if (wants<Ints>()) return AttrValue(v);
    if (wants<Floats>()) return AttrValue(Floats(v.begin(), v.end()));
    if (wants<Strings>() && v.empty()) return AttrValue(Strings());
    return std::nullopt;
  }
  std::optional<AttrValue> operator()(const std::vector<double>& v) const {
    if (wants<Floats>()) return AttrValue(v);
    return std::nullopt;
  }
  std::optional<AttrValue> operator()(const std::vector<std::string>& v) const {
    if (wants<Strings>()) return AttrValue(v);
    return std::nullopt;
  }
  std::optional<AttrValue> operator()(DType v) const {
    if (wants<int64_t>() && v != DType::kUnknown) return AttrValue(DTypeToProto(v));
    return std::nullopt;
  }
  std::optional<AttrValue> operator()(const Variable&) const { return std::nullopt; }
  std::optional<AttrValue> operator()(const std::vector<Variable>&) const { return std::nullopt; }
};

}  // namespace

Result<const OpDef*> OperatorNamed(std::string_view type) {
  const OpDef* def = FindOp(type);
  if (def == nullptr) {
    const std::string nearest = Nearest(type);
    return Unimplemented("heddle has no operator '", std::string(type), "'",
                         nearest.empty() ? "" : "; did you mean '" + nearest + "'?");
  }
  if (def->has(kControlFlow))
    return InvalidArgument("runs a block: BeginWhile and BeginIf add such operators");
  return def;
}

Result<size_t> InputNamed(const OpDef& def, std::string_view name) {
  return Find("input slot", def.inputs(), name);
}
Result<size_t> OutputNamed(const OpDef& def, std::string_view name) {
  return Find("output slot", def.outputs(), name);
}
Result<size_t> AttributeNamed(const OpDef& def, std::string_view name) {
  return Find("attribute", def.attrs(), name);
}

Result<AttrValue> Converted(const AttrDef& def, const AttributeArgument& value) {
  if (auto converted = std::visit(Conversion{def.default_value}, value)) return *converted;
  constexpr const char* kGiven[] = {
      "a bool",           "an int",          "a float", "a text",     "a list of ints",
      "a list of floats", "a list of texts", "a dtype", "a variable", "variables"};
  return InvalidArgument("attribute '", def.name, "' is ", TypeName(def.default_value), ", not ",
                         kGiven[value.index()]);
}

Status CheckInputs(const ir::Op& op) {
  const auto& defs = op.def->inputs();
  for (size_t s = 0; s < defs.size(); ++s) {
    if (ir::IsSubBlockSlot(defs[s])) continue;
    const auto& vars = op.inputs[s];
    if (!(defs[s].flags & kList) && vars.size() > 1)
      return InvalidArgument("input slot '", defs[s].name, "' takes one variable, not ",
                             vars.size());
    const bool given =
        std::any_of(vars.begin(), vars.end(), [](ir::VarId v) { return v != ir::kNoVar; });
    if (!given && !(defs[s].flags & kOptional))
      return InvalidArgument("input slot '", defs[s].name, "' is required; its inputs are ",
                             Names(defs));
  }
  return Status::Ok();
}

}  // namespace heddle::builder
