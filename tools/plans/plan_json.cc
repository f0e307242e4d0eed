#include "tools/plans/plan_json.h"

#include <concepts>
#include <memory>
#include <utility>

#include "tools/json_input.h"

namespace heddle::tools {
namespace {

Status Wrong(const std::string& where, const std::string& why) {
  return Status(StatusCode::kInvalidArgument, "the plan's JSON: " + where + " " + why);
}

// Whether `json` is such a value; numbers must be whole and in the type's range.
bool Get(const Json& json, bool* to) {
  if (json.is_boolean()) *to = json.get<bool>();
  return json.is_boolean();
}
bool Get(const Json& json, double* to) {
  if (json.is_number()) *to = json.get<double>();
  return json.is_number();
}
bool Get(const Json& json, std::string* to) {
  if (json.is_string()) *to = json.get<std::string>();
  return json.is_string();
}
template <std::integral T>
bool Get(const Json& json, T* to) {
  const bool fits = json.is_number_unsigned()  ? std::in_range<T>(json.get<uint64_t>())
                    : json.is_number_integer() ? std::in_range<T>(json.get<int64_t>())
                                               : false;
  if (fits) *to = json.get<T>();
  return fits;
}
template <typename T, typename U>
bool Get(const Json& json, std::pair<T, U>* to) {
  return json.is_array() && json.size() == 2 && Get(json[0], &to->first) &&
         Get(json[1], &to->second);
}
template <typename T>
bool Get(const Json& json, std::vector<T>* to) {
  to->clear();
  bool fits = json.is_array();
  for (size_t k = 0; fits && k < json.size(); ++k) fits = Get(json[k], &to->emplace_back());
  return fits;
}

// Reads members of one object; remembers the first that is wrong.
class Reader {
 public:
  Reader(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object_.is_object()) Fail("", "is no object");
  }

  template <typename T>
  void Read(const char* key, T* to, bool needed = true) {
    if (!status_.ok()) return;
    const auto at = object_.find(key);
    if (at == object_.end() || at->is_null()) {
      if (needed) Fail(key, "is missing");
      return;
    }
    if (!Get(*at, to)) Fail(key, "is of another type, or out of range");
  }
  const Json* List(const char* key, bool needed = true) {
    static const Json none = Json::array();
    if (!status_.ok()) return &none;
    const auto at = object_.find(key);
    if (at == object_.end() && !needed) return &none;
    if (at != object_.end() && at->is_array()) return &*at;
    Fail(key, "is no list");
    return &none;
  }
  void Fail(const std::string& key, const std::string& why) {
    if (status_.ok())
      status_ = Wrong(where_ + (where_.empty() || key.empty() ? "" : ".") + key, why);
  }
  bool Has(const char* key) const { return object_.is_object() && object_.contains(key); }
  Status Take() { return std::move(status_); }

 private:
  const Json& object_;
  const std::string where_;
  Status status_;
};

Status ReadSlot(const Json& json, const std::string& where, PlanDescription::Slot* slot) {
  Reader r(json, where);
  r.Read("variable", &slot->variable);
  r.Read("storage", &slot->storage);
  r.Read("place", &slot->place);
  r.Read("storage_id", &slot->storage_id);
  r.Read("block", &slot->block);
  r.Read("offset", &slot->offset, false);
  r.Read("base", &slot->base, false);
  if (!r.Has("dtype")) return r.Take();
  std::string dtype;
  std::vector<int64_t> shape;
  r.Read("dtype", &dtype);
  r.Read("shape", &shape);
  r.Read("bytes", &slot->bytes);
  if (shape.size() > static_cast<size_t>(Shape::kMaxRank)) r.Fail("shape", "has too many axes");
  if (Status s = r.Take(); !s.ok()) return s;
  for (int d = 0; d < static_cast<int>(DType::kUnknown); ++d)
    if (Name(static_cast<DType>(d)) == dtype) slot->dtype = static_cast<DType>(d);
  if (slot->dtype == DType::kUnknown) return Wrong(where + ".dtype", "is not known: " + dtype);
  slot->shape = Shape(shape);
  slot->is_static = true;
  return Status::Ok();
}

Status ReadChoice(const Json& json, const std::string& where, ImplementationChoice* choice) {
  Reader r(json, where);
  r.Read("family", &choice->family);
  r.Read("chosen", &choice->chosen);
  r.Read("reason", &choice->reason);
  return r.Take();
}

Status ReadStep(const Json& json, const std::string& where, size_t slots,
                PlanDescription::Instruction* in) {
  Reader r(json, where);
  r.Read("op", &in->op);
  r.Read("mode", &in->mode);
  r.Read("implementation", &in->implementation);
  r.Read("place", &in->place);
  r.Read("stream", &in->stream);
  r.Read("block", &in->block);
  r.Read("position", &in->position);
  r.Read("inputs", &in->inputs);
  r.Read("outputs", &in->outputs);
  r.Read("cost_ns", &in->cost_ns, false);
  r.Read("once", &in->once, false);
  r.Read("task", &in->task, false);
  r.Read("lane", &in->lane, false);
  r.Read("waits", &in->waits, false);
  r.Read("event", &in->event, false);
  const Json& choices = *r.List("choices", false);
  if (Status s = r.Take(); !s.ok()) return s;
  for (const auto* list : {&in->inputs, &in->outputs})
    for (int s : *list)
      if (s < -1 || (s >= 0 && static_cast<size_t>(s) >= slots))
        return Wrong(where, "names slot " + std::to_string(s) + ", which there is not");
  for (size_t k = 0; k < choices.size(); ++k)
    if (Status s = ReadChoice(choices[k], where + ".choices[" + std::to_string(k) + "]",
                              &in->choices.emplace_back());
        !s.ok())
      return s;
  return Status::Ok();
}

Status ReadPorts(const Json& list, const char* what, size_t slots,
                 std::vector<PlanDescription::Port>* ports) {
  for (size_t k = 0; k < list.size(); ++k) {
    Reader r(list[k], std::string(what) + "[" + std::to_string(k) + "]");
    PlanDescription::Port& port = ports->emplace_back();
    r.Read("name", &port.name);
    r.Read("slot", &port.slot);
    if (Status s = r.Take(); !s.ok()) return s;
    if (port.slot < 0 || static_cast<size_t>(port.slot) >= slots)
      return Wrong(what, "name a slot that there is not");
  }
  return Status::Ok();
}

}  // namespace

Result<PlanDescription> PlanFromJson(const Json& json) {
  PlanDescription plan;
  Reader r(json, "");
  std::string schema;
  r.Read("schema", &schema);
  if (schema != NewJson("plan", kPlanSchema)["schema"])
    r.Fail("schema", "is '" + schema + "', not '" +
                         NewJson("plan", kPlanSchema)["schema"].get<std::string>() + "'");
  r.Read("program", &plan.program);
  r.Read("version", &plan.version);
  r.Read("program_hash", &plan.program_hash);
  r.Read("machine", &plan.machine);
  r.Read("dispatch", &plan.dispatch);
  r.Read("lanes", &plan.lanes);
  r.Read("arena_bytes", &plan.arena_bytes);
  r.Read("order", &plan.order, false);
  r.Read("edges", &plan.dependencies);
  const Json &slots = *r.List("slots"), &steps = *r.List("steps");
  const Json &feeds = *r.List("feeds"), &fetches = *r.List("fetches");
  if (Status s = r.Take(); !s.ok()) return s;
  for (size_t k = 0; k < slots.size(); ++k)
    if (Status s =
            ReadSlot(slots[k], "slots[" + std::to_string(k) + "]", &plan.slots.emplace_back());
        !s.ok())
      return s;
  for (size_t k = 0; k < steps.size(); ++k)
    if (Status s = ReadStep(steps[k], "steps[" + std::to_string(k) + "]", slots.size(),
                            &plan.instructions.emplace_back());
        !s.ok())
      return s;
  if (Status s = ReadPorts(feeds, "feeds", slots.size(), &plan.feeds); !s.ok()) return s;
  if (Status s = ReadPorts(fetches, "fetches", slots.size(), &plan.fetches); !s.ok()) return s;
  return plan;
}

Json PlanOptionsJson(const ModelOptions& options) {
  Json json;
  json["opt"] = options.opt_level;
  json["lean"] = options.lean.value_or(false);
  json["reuse"] = static_cast<int>(options.reuse);
  json["in_place"] = options.in_place;
  json["precision"] = static_cast<int>(options.passes.precision);
  json["place"] = options.place;
  json["random_places"] = options.random_places;
  json["disable_passes"] = options.passes.disable;
  json["only_passes"] = options.passes.only;
  return json;
}

Status FollowPlan(ModelOptions* options) {
  const std::string& path = options->plan;
  if (path.empty()) return Status::Ok();
  HEDDLE_ASSIGN_OR_RETURN(const Json json, ReadJsonObject(path, "plan"));
  auto plan = PlanFromJson(json);
  if (!plan.ok()) return Status(plan.status().code(), path + ": " + plan.status().message());
  const auto made = json.find("options");
  const Json none;
  Reader r(made == json.end() ? none : *made, "options");
  bool lean = false;
  int precision = 0, threads = 0, reuse = 0;
  r.Read("opt", &options->opt_level);
  r.Read("lean", &lean);
  r.Read("reuse", &reuse);
  r.Read("in_place", &options->in_place);
  r.Read("precision", &precision);
  r.Read("place", &options->place);
  r.Read("random_places", &options->random_places);
  r.Read("disable_passes", &options->passes.disable);
  r.Read("only_passes", &options->passes.only, false);
  if (options->opt_level < 0 || options->opt_level > kMostOptLevel)
    r.Fail("opt", "is none that there is");
  if (precision < 0 || precision > static_cast<int>(Precision::kInt8Products))
    r.Fail("precision", "is none that there is");
  if (reuse < 0 || reuse > static_cast<int>(Reuse::kNone)) r.Fail("reuse", "is none that there is");
  if (Status s = r.Take(); !s.ok()) return Status(s.code(), path + ": " + s.message());
  options->reuse = static_cast<Reuse>(reuse);
  Reader top(json, "");
  top.Read("threads", &threads);
  if (threads < 0 || threads > kMostThreads)
    top.Fail("threads", "is not from 0 to " + std::to_string(kMostThreads));
  if (Status s = top.Take(); !s.ok()) return Status(s.code(), path + ": " + s.message());
  if (const std::string why = CheckPlace(options->place); !why.empty())
    return Status(StatusCode::kInvalidArgument, path + ": " + why);
  options->lean = lean;
  options->passes.precision = static_cast<Precision>(precision);
  if (options->threads == 0) options->threads = threads;
  options->follow = std::make_shared<const PlanDescription>(*std::move(plan));
  return Status::Ok();
}

}  // namespace heddle::tools
