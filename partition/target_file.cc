// Reads target files.
#include <algorithm>
#include <deque>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "formats/json.h"
#include "partition/target.h"

namespace heddle::partition {
namespace {

using Path = std::string;  // a place in the file, as in "units[1].ops[0].rank"

constexpr std::pair<std::string_view, Test::Kind> kTests[] = {
    {"eq", Test::Kind::kEqual},     {"ne", Test::Kind::kNotEqual}, {"in", Test::Kind::kIn},
    {"not_in", Test::Kind::kNotIn}, {"min", Test::Kind::kMin},     {"max", Test::Kind::kMax},
    {"all", Test::Kind::kAll},      {"len", Test::Kind::kLength}};

std::string Quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

template <typename... Parts>
Status Wrong(const Path& at, const Parts&... parts) {
  return InvalidArgument(at, ": ", parts...);
}

// Checks that the value is an object with no other keys than these; `what` names it in messages.
Status CheckKeys(Json json, const Path& at, const char* what,
                 std::initializer_list<std::string_view> known) {
  if (!json.is_object()) return Wrong(at, what, " is an object");
  for (const std::string_view key : json.keys()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    std::string list;
    for (const std::string_view k : known) list += (list.empty() ? "" : ", ") + std::string(k);
    return Wrong(at, "unknown key ", Quoted(key), " of ", what, "; there is ", list);
  }
  return Status::Ok();
}

Status Need(Json json, const Path& at, const char* what,
            std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys)
    if (!json[key]) return Wrong(at, "the key ", Quoted(key), " of ", what, " is missing");
  return Status::Ok();
}

Status ReadText(Json json, const Path& at, std::string* text) {
  std::string_view view;
  if (!json.Get(&view) || view.empty()) return Wrong(at, "a text that is not empty is expected");
  *text = view;
  return Status::Ok();
}

Status ReadFlag(Json json, const Path& at, bool* flag) {
  if (json.is_number() || !json.Get(flag)) return Wrong(at, "true or false is expected");
  return Status::Ok();
}

Status ReadCount(Json json, const Path& at, int64_t least, int64_t* count) {
  int64_t value = 0;
  if (!json.is_number() || !json.Get(&value)) return Wrong(at, "an integer is expected");
  if (value < least) return Wrong(at, "at least ", least, " is expected, not ", value);
  *count = value;
  return Status::Ok();
}

Status ReadPrice(Json json, const Path& at, double* price) {
  double value = 0;
  if (!json.Get(&value)) return Wrong(at, "a number is expected");
  if (value < 0) return Wrong(at, "a cost is not below 0");
  *price = value;
  return Status::Ok();
}

bool ReadScalar(Json json, Scalar* scalar) {
  std::string_view text;
  bool flag = false;
  if (json.Get(&text)) {
    scalar->is_text = true;
    scalar->text = text;
  } else if (json.is_number()) {
    scalar->is_integer = json.Get(&scalar->integer);
    json.Get(&scalar->number);
  } else if (json.Get(&flag)) {
    scalar->is_integer = true;
    scalar->integer = flag;
    scalar->number = flag;
  } else {
    return false;
  }
  return true;
}

Status ReadLiteral(Json json, const Path& at, Literal* literal) {
  literal->is_list = json.is_array();
  literal->items.resize(json.is_array() ? json.size() : 1);
  bool read = true;
  if (!json.is_array()) read = ReadScalar(json, literal->items.data());
  size_t i = 0;
  for (const Json item : json) read = ReadScalar(item, &literal->items[i++]) && read;
  return read ? Status::Ok() : Wrong(at, "a number, a text, true, false or a list is expected");
}

Status ReadTest(Json json, const Path& at, Test* test) {
  if (test->kind == Test::Kind::kIn || test->kind == Test::Kind::kNotIn) {
    if (!json.is_array()) return Wrong(at, "a list is expected");
    for (const Json item : json)
      HEDDLE_RETURN_IF_ERROR(ReadLiteral(item, at, &test->values.emplace_back()));
    return Status::Ok();
  }
  Literal& value = test->values.emplace_back();
  HEDDLE_RETURN_IF_ERROR(ReadLiteral(json, at, &value));
  const bool ordered = test->kind == Test::Kind::kMin || test->kind == Test::Kind::kMax ||
                       test->kind == Test::Kind::kLength;
  if ((ordered || test->kind == Test::Kind::kAll) && value.is_list)
    return Wrong(at, "one value is expected, not a list");
  if (ordered && !json.is_number()) return Wrong(at, "a number is expected");
  if (test->kind == Test::Kind::kLength && !value.items[0].is_integer)
    return Wrong(at, "an integer is expected");
  return Status::Ok();
}

Status ReadAttrRule(Json json, const Path& at, AttrRule* rule) {
  if (!json.is_object()) {
    rule->tests.push_back({Test::Kind::kEqual, {}});
    return ReadTest(json, at, &rule->tests[0]);
  }
  for (const std::string_view key : json.keys()) {
    const Path place = at + "." + std::string(key);
    if (key == "absent") {
      HEDDLE_RETURN_IF_ERROR(ReadFlag(json[key], place, &rule->may_be_absent));
      continue;
    }
    if (key == "default") {
      HEDDLE_RETURN_IF_ERROR(ReadLiteral(json[key], place, &rule->fallback.emplace()));
      continue;
    }
    const auto* known = std::find_if(std::begin(kTests), std::end(kTests),
                                     [&](const auto& test) { return test.first == key; });
    if (known == std::end(kTests))
      return Wrong(at, "unknown condition ", Quoted(key),
                   "; there is eq, ne, in, not_in, min, max, all, len, default, absent");
    rule->tests.push_back({known->second, {}});
    HEDDLE_RETURN_IF_ERROR(ReadTest(json[key], place, &rule->tests.back()));
  }
  return Status::Ok();
}

Status ReadDTypes(Json json, const Path& at, std::optional<std::vector<DType>>* dtypes) {
  if (!json) return Status::Ok();
  if (!json.is_array()) return Wrong(at, "a list of element types is expected");
  dtypes->emplace();
  for (const Json item : json) {
    std::string_view name;
    if (!item.Get(&name)) return Wrong(at, "an element type is a text");
    auto dtype = DType::kBool;
    while (dtype != DType::kUnknown && Name(dtype) != name)
      dtype = static_cast<DType>(static_cast<int>(dtype) + 1);
    if (dtype == DType::kUnknown)
      return Wrong(at, "unknown element type ", Quoted(name), "; they are named as in 'float32'");
    (*dtypes)->push_back(dtype);
  }
  return Status::Ok();
}

Status ReadRank(Json json, const Path& at, std::optional<RankRange>* rank) {
  if (!json) return Status::Ok();
  int64_t bounds[2] = {0, 0};
  size_t i = 0;
  if (!json.is_array() || json.size() != 2) return Wrong(at, "two integers are expected");
  for (const Json item : json) HEDDLE_RETURN_IF_ERROR(ReadCount(item, at, 0, &bounds[i++]));
  if (bounds[0] > bounds[1])
    return Wrong(at, "the least rank, ", bounds[0], ", is above the most, ", bounds[1]);
  *rank = RankRange{bounds[0], bounds[1]};
  return Status::Ok();
}

Status ReadSlotRule(Json json, const Path& at, SlotRule* rule) {
  HEDDLE_RETURN_IF_ERROR(
      CheckKeys(json, at, "a slot", {"constant", "dtypes", "rank", "max_elements", "absent"}));
  HEDDLE_RETURN_IF_ERROR(ReadDTypes(json["dtypes"], at + ".dtypes", &rule->dtypes));
  HEDDLE_RETURN_IF_ERROR(ReadRank(json["rank"], at + ".rank", &rule->rank));
  if (const Json flag = json["constant"])
    HEDDLE_RETURN_IF_ERROR(ReadFlag(flag, at + ".constant", &rule->constant.emplace()));
  if (const Json flag = json["absent"])
    HEDDLE_RETURN_IF_ERROR(ReadFlag(flag, at + ".absent", &rule->may_be_absent));
  if (const Json count = json["max_elements"])
    HEDDLE_RETURN_IF_ERROR(
        ReadCount(count, at + ".max_elements", 0, &rule->max_elements.emplace()));
  return Status::Ok();
}

Status ReadCost(Json json, const Path& at, Cost* cost) {
  if (!json) return Status::Ok();
  HEDDLE_RETURN_IF_ERROR(CheckKeys(json, at, "a cost", {"call", "element"}));
  if (const Json price = json["call"])
    HEDDLE_RETURN_IF_ERROR(ReadPrice(price, at + ".call", &cost->call));
  if (const Json price = json["element"])
    HEDDLE_RETURN_IF_ERROR(ReadPrice(price, at + ".element", &cost->element));
  return Status::Ok();
}

Status ReadPattern(Json json, const Path& at, const Cost& cost, Pattern* pattern) {
  HEDDLE_RETURN_IF_ERROR(
      CheckKeys(json, at, "a pattern", {"type", "attrs", "dtypes", "rank", "slots", "cost"}));
  HEDDLE_RETURN_IF_ERROR(Need(json, at, "a pattern", {"type"}));
  HEDDLE_RETURN_IF_ERROR(ReadText(json["type"], at + ".type", &pattern->type));
  HEDDLE_RETURN_IF_ERROR(ReadDTypes(json["dtypes"], at + ".dtypes", &pattern->dtypes));
  HEDDLE_RETURN_IF_ERROR(ReadRank(json["rank"], at + ".rank", &pattern->rank));
  pattern->cost = cost;
  HEDDLE_RETURN_IF_ERROR(ReadCost(json["cost"], at + ".cost", &pattern->cost));
  const Json attrs = json["attrs"], slots = json["slots"];
  if (attrs && !attrs.is_object()) return Wrong(at, "'attrs' is an object");
  if (slots && !slots.is_object()) return Wrong(at, "'slots' is an object");
  for (const std::string_view key : attrs.keys()) {
    AttrRule& rule = pattern->attrs.emplace_back();
    rule.name = key;
    HEDDLE_RETURN_IF_ERROR(ReadAttrRule(attrs[key], at + ".attrs." + rule.name, &rule));
  }
  for (const std::string_view key : slots.keys()) {
    SlotRule& rule = pattern->slots.emplace_back();
    rule.slot = key;
    HEDDLE_RETURN_IF_ERROR(ReadSlotRule(slots[key], at + ".slots." + rule.slot, &rule));
  }
  return Status::Ok();
}

Status ReadPatterns(Json json, const Path& at, const Cost& cost, std::vector<Pattern>* patterns) {
  if (!json) return Status::Ok();
  if (!json.is_array()) return Wrong(at, "a list of patterns is expected");
  for (const Json item : json) {
    const Path place = StrCat(at, "[", patterns->size(), "]");
    HEDDLE_RETURN_IF_ERROR(ReadPattern(item, place, cost, &patterns->emplace_back()));
  }
  return Status::Ok();
}

class TargetReader {
 public:
  TargetReader(Json root, const std::string& file, Target* target)
      : root_(root), file_(file), target_(*target) {}

  Status Run() {
    HEDDLE_RETURN_IF_ERROR(CheckKeys(root_, file_, "a target",
                                     {"name", "version", "objective", "units", "links", "start",
                                      "helpers", "limits", "cost", "host"}));
    HEDDLE_RETURN_IF_ERROR(Need(root_, file_, "a target", {"name", "units", "links", "start"}));
    HEDDLE_RETURN_IF_ERROR(ReadText(root_["name"], At("name"), &target_.name));
    if (int64_t version = 1; root_["version"]) {
      HEDDLE_RETURN_IF_ERROR(ReadCount(root_["version"], At("version"), 1, &version));
      if (version != 1) return Wrong(At("version"), "version 1 is read, not ", version);
    }
    HEDDLE_RETURN_IF_ERROR(ReadObjective());
    HEDDLE_RETURN_IF_ERROR(ReadUnits());
    HEDDLE_RETURN_IF_ERROR(ReadLinks());
    HEDDLE_RETURN_IF_ERROR(ReadStart());
    HEDDLE_RETURN_IF_ERROR(ReadPatterns(root_["helpers"], At("helpers"), Cost(), &target_.helpers));
    HEDDLE_RETURN_IF_ERROR(ReadLimits());
    return ReadCosts();
  }

 private:
  Path At(std::string_view key) const { return file_ + ": " + std::string(key); }

  Status ReadObjective() {
    std::string_view objective = "cover";
    if (root_["objective"] && !root_["objective"].Get(&objective))
      return Wrong(At("objective"), "'cover' or 'cost' is expected");
    if (objective != "cover" && objective != "cost")
      return Wrong(At("objective"), "unknown objective ", Quoted(objective),
                   "; there is cover, cost");
    target_.objective = objective == "cost" ? Objective::kCost : Objective::kCover;
    return Status::Ok();
  }

  Status ReadUnits() {
    const Json units = root_["units"];
    if (!units.is_array()) return Wrong(At("units"), "a list of units is expected");
    for (const Json json : units) {
      const Path at = StrCat(At("units"), "[", target_.units.size(), "]");
      HEDDLE_RETURN_IF_ERROR(CheckKeys(json, at, "a unit", {"name", "cost", "ops"}));
      HEDDLE_RETURN_IF_ERROR(Need(json, at, "a unit", {"name", "ops"}));
      Unit unit;
      Cost cost;
      HEDDLE_RETURN_IF_ERROR(ReadText(json["name"], at + ".name", &unit.name));
      if (Find(unit.name) >= 0) return Wrong(at, "two units are called ", Quoted(unit.name));
      HEDDLE_RETURN_IF_ERROR(ReadCost(json["cost"], at + ".cost", &cost));
      HEDDLE_RETURN_IF_ERROR(ReadPatterns(json["ops"], at + ".ops", cost, &unit.patterns));
      target_.units.push_back(std::move(unit));
    }
    return Status::Ok();
  }

  UnitId Find(std::string_view name) const {
    for (size_t i = 0; i < target_.units.size(); ++i)
      if (target_.units[i].name == name) return static_cast<UnitId>(i);
    return -1;
  }
  Status ReadUnit(Json json, const Path& at, UnitId* unit) const {
    std::string_view name;
    if (!json.Get(&name)) return Wrong(at, "the name of a unit is expected");
    *unit = Find(name);
    return *unit >= 0 ? Status::Ok() : Wrong(at, "there is no unit ", Quoted(name));
  }

  Status ReadLinks() {
    const Json links = root_["links"];
    if (!links.is_array()) return Wrong(At("links"), "a list of links is expected");
    for (const Json json : links) {
      const Path at = StrCat(At("links"), "[", target_.links.size(), "]");
      if (!json.is_array() || json.size() != 2) return Wrong(at, "two names of units are expected");
      UnitId ends[2] = {0, 0};
      size_t i = 0;
      for (const Json end : json) HEDDLE_RETURN_IF_ERROR(ReadUnit(end, at, &ends[i++]));
      target_.links.push_back({ends[0], ends[1]});
    }
    return Status::Ok();
  }

  Status ReadStart() {
    const Json start = root_["start"];
    if (!start.is_array() || start.size() == 0)
      return Wrong(At("start"), "a list of at least one unit is expected");
    for (const Json json : start)
      HEDDLE_RETURN_IF_ERROR(ReadUnit(json, At("start"), &target_.start.emplace_back()));
    return Status::Ok();
  }

  Status ReadLimits() {
    const Json limits = root_["limits"];
    if (!limits) return Status::Ok();
    HEDDLE_RETURN_IF_ERROR(
        CheckKeys(limits, At("limits"), "limits",
                  {"min_group", "max_group", "max_inputs", "max_outputs", "static_shapes"}));
    for (const auto& [key, limit] : {std::pair{"min_group", &target_.limits.min_group},
                                     std::pair{"max_group", &target_.limits.max_group},
                                     std::pair{"max_inputs", &target_.limits.max_inputs},
                                     std::pair{"max_outputs", &target_.limits.max_outputs}})
      if (limits[key])
        HEDDLE_RETURN_IF_ERROR(ReadCount(limits[key], At("limits.") + key, 1, limit));
    if (limits["static_shapes"])
      HEDDLE_RETURN_IF_ERROR(ReadFlag(limits["static_shapes"], At("limits.static_shapes"),
                                      &target_.limits.static_shapes));
    return Status::Ok();
  }

  Status ReadCosts() {
    HEDDLE_RETURN_IF_ERROR(ReadCost(root_["host"], At("host"), &target_.host));
    const Json cost = root_["cost"];
    if (!cost) return Status::Ok();
    HEDDLE_RETURN_IF_ERROR(CheckKeys(cost, At("cost"), "a cost", {"group", "byte"}));
    if (cost["group"])
      HEDDLE_RETURN_IF_ERROR(ReadPrice(cost["group"], At("cost.group"), &target_.group_cost));
    if (cost["byte"])
      HEDDLE_RETURN_IF_ERROR(ReadPrice(cost["byte"], At("cost.byte"), &target_.byte_cost));
    return Status::Ok();
  }

  const Json root_;
  const std::string& file_;
  Target& target_;
};

// Units that can be reached from `roots` along the links, breadth first. `last` is found only as
// one of `roots`, and the search does not continue beyond it.
std::vector<UnitId> Along(const Target& target, const std::vector<std::vector<UnitId>>& links,
                          const std::vector<UnitId>& roots, UnitId last) {
  std::vector<bool> seen(target.units.size());
  std::vector<UnitId> found;
  std::deque<UnitId> queue(roots.begin(), roots.end());
  while (!queue.empty()) {
    const UnitId unit = queue.front();
    queue.pop_front();
    if (seen[static_cast<size_t>(unit)]) continue;
    seen[static_cast<size_t>(unit)] = true;
    found.push_back(unit);
    if (unit == last) continue;
    for (const UnitId to : links[static_cast<size_t>(unit)])
      if (!seen[static_cast<size_t>(to)] && to != last) queue.push_back(to);
  }
  return found;
}

void FindWays(Target* target) {
  std::vector<std::vector<UnitId>> links(target->units.size());
  for (const Link& link : target->links) {
    auto& from = links[static_cast<size_t>(link.from)];
    if (std::find(from.begin(), from.end(), link.to) == from.end()) from.push_back(link.to);
  }
  for (size_t unit = 0; unit < links.size(); ++unit)
    target->next.push_back(Along(*target, links, links[unit], static_cast<UnitId>(unit)));
  target->first = Along(*target, links, target->start, -1);
}

}  // namespace

Result<Target> ParseTarget(std::string_view json, const std::string& name) {
  auto document = JsonDocument::Parse(json);
  if (!document.ok())
    return Status(document.status().code(), name + ": " + document.status().message());
  Target target;
  HEDDLE_RETURN_IF_ERROR(TargetReader(document->root(), name, &target).Run());
  FindWays(&target);
  return target;
}

Result<Target> LoadTarget(const std::string& path) {
  HEDDLE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return ParseTarget(text, path);
}

}  // namespace heddle::partition
