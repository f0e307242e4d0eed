#include "core/programs/function_library.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/error.h"
#include "core/interrupts.h"
#include "heddle/bounds.h"

namespace heddle {
namespace {

using Kind = FunctionValue::Kind;
using Named = std::vector<NamedFunctionValue>;

// The deepest nesting of instances: functions that call others with ever larger attributes would
// never end.
constexpr size_t kMostNested = kMostNestedCalls;
// The most names of a cycle in a message.
constexpr size_t kMostNamed = 8;

// An index of a list by its elements' names. Long lists are hashed, since a file may have any
// number of attributes.
template <typename T>
class ByName {
 public:
  explicit ByName(const std::vector<T>& all) : all_(all) {
    if (all.size() <= kFew) return;
    for (const T& one : all) found_.emplace(one.name, &one);
  }
  // The first one of this name.
  const T* Find(std::string_view name) const {
    if (all_.size() > kFew) {
      const auto at = found_.find(name);
      return at == found_.end() ? nullptr : at->second;
    }
    const auto at =
        std::find_if(all_.begin(), all_.end(), [&](const T& one) { return one.name == name; });
    return at == all_.end() ? nullptr : &*at;
  }

 private:
  static constexpr size_t kFew = 16;  // that a hash is no faster for
  const std::vector<T>& all_;
  std::unordered_map<std::string_view, const T*> found_;
};

const FunctionValue* FindIn(const ByName<NamedFunctionValue>& values, std::string_view name) {
  const NamedFunctionValue* found = values.Find(name);
  return found == nullptr ? nullptr : &found->value;
}

std::string_view KindName(const FunctionValue& value) {
  switch (value.kind) {
    case Kind::kNone:
      return "nothing";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kString:
      return "string";
    case Kind::kType:
      return "type";
    case Kind::kFunction:
      return "func";
    case Kind::kList:
      return "list";
    case Kind::kPlaceholder:
      return "placeholder";
    case Kind::kMessage:
      return value.text;
  }
  return "";
}

bool HasType(const FunctionValue& value, std::string_view type) {
  if (type.empty()) return true;
  if (!type.starts_with("list(")) return KindName(value) == type;
  const std::string_view inner = type.substr(5, type.size() - 6);
  return value.kind == Kind::kList &&
         std::all_of(value.items.begin(), value.items.end(),
                     [&](const FunctionValue& item) { return KindName(item) == inner; });
}

void AppendText(std::string_view text, std::string* key) {
  *key += std::to_string(text.size());
  *key += ':';
  *key += text;
}

// Appends a text that is equal for equal values.
void AppendKey(const FunctionValue& value, std::string* key) {
  *key += static_cast<char>('a' + static_cast<int>(value.kind));
  *key += std::to_string(value.i);
  *key += ',';
  // Bitwise, so that -0 and the NaNs are separate values.
  *key += std::to_string(std::bit_cast<uint64_t>(value.f));
  AppendText(value.text, key);
  // A long message is identified by its address: equal contents elsewhere count as another value.
  constexpr size_t kMostCompared = 4096;
  if (value.message.size() <= kMostCompared) {
    AppendText(value.message, key);
  } else {
    *key += std::to_string(reinterpret_cast<uintptr_t>(value.message.data()));
    *key += '+';
    *key += std::to_string(value.message.size());
  }
  *key += std::to_string(value.items.size());
  for (const FunctionValue& item : value.items) AppendKey(item, key);
  std::vector<const NamedFunctionValue*> sorted;
  for (const NamedFunctionValue& a : value.attributes) sorted.push_back(&a);
  std::sort(sorted.begin(), sorted.end(),
            [](const auto* a, const auto* b) { return a->name < b->name; });
  *key += ';';
  for (const NamedFunctionValue* a : sorted) {
    AppendText(a->name, key);
    AppendKey(a->value, key);
  }
  *key += '.';
}

// Calls `found` with each placeholder in the value.
template <typename Found>
void ForPlaceholders(const FunctionValue& value, const Found& found) {
  if (value.kind == Kind::kPlaceholder) found(value.text);
  for (const FunctionValue& item : value.items) ForPlaceholders(item, found);
  for (const NamedFunctionValue& a : value.attributes) ForPlaceholders(a.value, found);
}

// Calls `found` with each function that the value names.
template <typename Found>
void ForFunctions(const FunctionValue& value, const Found& found) {
  if (value.kind == Kind::kFunction) found(value);
  for (const FunctionValue& item : value.items) ForFunctions(item, found);
  for (const NamedFunctionValue& a : value.attributes) ForFunctions(a.value, found);
}

template <typename TypeText>
std::string ValueText(const FunctionValue& value, const TypeText& type_text) {
  switch (value.kind) {
    case Kind::kBool:
      return value.i != 0 ? "true" : "false";
    case Kind::kInt:
      return std::to_string(value.i);
    case Kind::kFloat:
      return StrCat(value.f);
    case Kind::kString:
      return StrCat("\"", value.text, "\"");
    case Kind::kType:
      return type_text(static_cast<int>(value.i));
    case Kind::kList: {
      std::string text;
      for (const FunctionValue& item : value.items)
        text += StrCat(text.empty() ? "" : ", ", ValueText(item, type_text));
      return StrCat("[", text, "]");
    }
    case Kind::kMessage:
      return StrCat("a ", value.text);
    default:
      return value.text;
  }
}

}  // namespace

namespace {

Named Filled(const Named& values, const FunctionBody* around);

// kNone for a placeholder that is none of the attributes.
FunctionValue Filled(const FunctionValue& value, const FunctionBody* around) {
  if (value.kind == Kind::kPlaceholder) {
    const size_t at = around == nullptr ? 0 : around->Place(value.text);
    if (around == nullptr || at == around->attributes.size()) return FunctionValue();
    return around->attributes[at].value;
  }
  FunctionValue made = value;
  for (FunctionValue& item : made.items) item = Filled(item, around);
  made.attributes = Filled(value.attributes, around);
  return made;
}

Named Filled(const Named& values, const FunctionBody* around) {
  Named made;
  for (const NamedFunctionValue& a : values) {
    FunctionValue value = Filled(a.value, around);
    if (a.value.kind == Kind::kPlaceholder && value.kind == Kind::kNone) continue;
    made.push_back({a.name, std::move(value)});
  }
  return made;
}

}  // namespace

Named WithoutPlaceholders(const Named& values, const FunctionBody* around) {
  return Filled(values, around);
}

size_t FunctionBody::Place(std::string_view attribute) const {
  if (by_name.size() != attributes.size()) {
    for (size_t i = 0; i < attributes.size(); ++i)
      if (attributes[i].name == attribute) return i;
    return attributes.size();
  }
  const auto at = std::lower_bound(
      by_name.begin(), by_name.end(), attribute,
      [&](uint32_t i, std::string_view name) { return attributes[i].name < name; });
  return at != by_name.end() && attributes[*at].name == attribute ? *at : attributes.size();
}

Named FunctionBody::AttributesOf(const FunctionNode& node) const {
  return Filled(node.attributes, this);
}

struct FunctionLibrary::Impl {
  struct Entry {
    std::function<FunctionDefinition()> make;  // null: it has been called
    FunctionDefinition definition;
    std::vector<std::string> mentioned;  // attributes of the function that its nodes use
    std::vector<size_t> callers;         // positions of the nodes that call or name functions
    size_t known = 0;                    // number of functions when its nodes were looked at
  };
  struct Instance {
    FunctionBody body;
    Status status;
    bool done = false;
  };
  // A called function, with known attributes.
  struct Called {
    std::string_view name;
    const Named* attributes;
  };

  std::string format;
  TypeName type_name = nullptr;
  std::vector<std::string> names;
  std::vector<std::unique_ptr<Entry>> entries;
  std::unordered_map<std::string, size_t> places;
  std::vector<std::unique_ptr<Instance>> instances;
  std::unordered_map<std::string, Handle> handles;  // by name and attributes
  std::vector<Handle> open;                         // the ones being looked at, outermost first
  std::unordered_map<std::string, size_t> outside_calls;
  std::unordered_map<std::string, size_t> calls;
  bool counted = false;
  std::vector<std::shared_ptr<const void>> kept;

  Status Add(std::string name, Entry entry) {
    if (!places.emplace(name, entries.size()).second)
      return InvalidArgument("function '", name, "' is given twice");
    names.push_back(std::move(name));
    entries.push_back(std::make_unique<Entry>(std::move(entry)));
    counted = false;
    return Status::Ok();
  }

  Entry* Find(std::string_view name) {
    const auto found = places.find(std::string(name));
    if (found == places.end()) return nullptr;
    Entry& entry = *entries[found->second];
    if (entry.make != nullptr) {
      entry.definition = entry.make();
      entry.make = nullptr;  // no sooner: it may throw, and is called again then
    }
    if (entry.known != names.size()) Look(&entry);
    return &entry;
  }

  void Look(Entry* entry) const {
    entry->known = names.size();
    entry->mentioned.clear();
    entry->callers.clear();
    std::unordered_set<std::string_view> seen;
    const auto mention = [&](const std::string& name) {
      if (!name.empty() && seen.insert(name).second) entry->mentioned.push_back(name);
    };
    const FunctionDefinition& d = entry->definition;
    for (const FunctionAttribute& a : d.attributes) mention(a.name);
    for (const auto* ports : {&d.arguments, &d.results})
      for (const FunctionArgument& a : *ports) {
        mention(a.type_attribute);
        mention(a.number);
        mention(a.types);
      }
    for (size_t i = 0; i < d.nodes.size(); ++i) {
      LookForInterrupt();
      bool calls = Has(d.nodes[i].op);
      for (const NamedFunctionValue& a : d.nodes[i].attributes) {
        ForPlaceholders(a.value, [&](const std::string& name) {
          mention(name);
          calls = true;  // it may name a function
        });
        ForFunctions(a.value, [&](const FunctionValue&) { calls = true; });
      }
      if (calls) entry->callers.push_back(i);
    }
  }

  bool Has(std::string_view name) const { return places.contains(std::string(name)); }

  // The attributes of a call that the function uses, completed by defaults.
  Status Complete(const Entry& entry, const Named& given, Named* attributes) const {
    const FunctionDefinition& d = entry.definition;
    const ByName<FunctionAttribute> declarations(d.attributes);
    const ByName<NamedFunctionValue> values(given);
    for (const std::string& name : entry.mentioned) {
      const FunctionAttribute* declared = declarations.Find(name);
      const FunctionValue* value = FindIn(values, name);
      if (value != nullptr && value->kind == Kind::kNone) value = nullptr;
      if (value != nullptr && declared != nullptr && !HasType(*value, declared->type))
        return InvalidArgument("function '", d.name, "': attribute '", name, "' is ",
                               KindName(*value), " where its signature says ", declared->type);
      if (value == nullptr && declared != nullptr && declared->default_value.kind != Kind::kNone)
        value = &declared->default_value;
      if (value != nullptr)
        attributes->push_back({name, *value});
      else if (declared == nullptr || !declared->may_be_absent)
        return Missing(d, name, declared != nullptr);
    }
    return Status::Ok();
  }

  // The error that an attribute is missing, with what needs it.
  static Status Missing(const FunctionDefinition& d, const std::string& name, bool declared) {
    const std::string_view why =
        declared ? ", which the call does not give and which has no default"
                 : ", which the call does not give and the signature does not have";
    for (const FunctionNode& node : d.nodes)
      for (const NamedFunctionValue& a : node.attributes) {
        bool uses = false;
        ForPlaceholders(a.value, [&](const std::string& p) { uses = uses || p == name; });
        if (uses)
          return InvalidArgument("function '", d.name, "', node '", node.name, "' (", node.op,
                                 "): attribute '", a.name, "' is the function's '", name, "'", why);
      }
    for (const auto* ports : {&d.arguments, &d.results})
      for (const FunctionArgument& a : *ports)
        if (a.type_attribute == name || a.number == name || a.types == name)
          return InvalidArgument("function '", d.name, "', ",
                                 ports == &d.arguments ? "argument" : "result", " '", a.name,
                                 "': its type is the function's attribute '", name, "'", why);
    return InvalidArgument("function '", d.name, "' has attribute '", name, "'", why);
  }

  static Status Expand(const FunctionDefinition& d, const std::vector<FunctionArgument>& signature,
                       const Named& given, std::vector<FunctionPort>* ports,
                       std::vector<size_t>* sizes) {
    const ByName<NamedFunctionValue> attributes(given);
    // A number in a file must not take more room than any call has values.
    constexpr int64_t kMostPorts = 1 << 16;
    for (const FunctionArgument& a : signature) {
      const auto wrong = [&](const std::string& attribute, const char* what) {
        return InvalidArgument("function '", d.name, "', '", a.name, "': attribute '", attribute,
                               "' is no ", what);
      };
      std::vector<int> types = {a.type};
      if (!a.types.empty()) {
        types.clear();
        const FunctionValue* list = FindIn(attributes, a.types);
        if (list == nullptr || !HasType(*list, "list(type)"))
          return wrong(a.types, "list of types");
        for (const FunctionValue& item : list->items) types.push_back(static_cast<int>(item.i));
      }
      if (!a.type_attribute.empty()) {
        const FunctionValue* type = FindIn(attributes, a.type_attribute);
        if (type == nullptr || type->kind != Kind::kType) return wrong(a.type_attribute, "type");
        types[0] = static_cast<int>(type->i);
      }
      if (!a.number.empty()) {
        const FunctionValue* number = FindIn(attributes, a.number);
        if (number == nullptr || number->kind != Kind::kInt || number->i < 0 ||
            number->i > kMostPorts)
          return wrong(a.number, "number of values");
        types.assign(static_cast<size_t>(number->i), types[0]);
      }
      if (ports->size() + types.size() > kMostPorts)
        return InvalidArgument("function '", d.name, "' has more than ", kMostPorts, " ports");
      const bool is_list = !a.number.empty() || !a.types.empty();
      for (size_t k = 0; k < types.size(); ++k)
        ports->push_back({is_list ? StrCat(a.name, ":", k) : a.name, types[k], a.from});
      sizes->push_back(types.size());
    }
    return Status::Ok();
  }

  // Bounds, since values and calls may double from one function to the next, so that a small file
  // has huge ones. A file of many functions may call each of them.
  static constexpr size_t kMostKeyBytes = 1 << 20, kMostInstances = 1 << 16;

  Result<Handle> Instantiate(std::string_view name, const Named& given) {
    Entry* entry = Find(name);
    if (entry == nullptr) return NotFound("there is no function '", name, "'");
    Named attributes;
    HEDDLE_RETURN_IF_ERROR(Complete(*entry, given, &attributes));
    std::string key;
    AppendText(name, &key);
    for (const NamedFunctionValue& a : attributes) {
      AppendText(a.name, &key);
      AppendKey(a.value, &key);
    }
    if (key.size() > kMostKeyBytes)
      return InvalidArgument("function '", name, "': the attributes of a call take more than ",
                             kMostKeyBytes, " bytes");
    const auto [known, is_new] = handles.try_emplace(std::move(key), instances.size());
    const Handle handle = known->second;
    if (!is_new) {
      const Instance& instance = *instances[handle];
      if (!instance.done) return Circle(handle);
      if (!instance.status.ok()) return instance.status;
      return handle;
    }
    const std::string own_key = known->first;
    if (const size_t most = kMostInstances + entries.size(); instances.size() >= most) {
      handles.erase(own_key);
      return InvalidArgument("function '", name, "': more than ", most,
                             " pairs of a function and the attributes of a call");
    }
    Instance& instance = *instances.emplace_back(std::make_unique<Instance>());
    instance.body.definition = &entry->definition;
    instance.body.attributes = std::move(attributes);
    SortNames(&instance.body);
    open.push_back(handle);
    try {
      instance.status = Fill(*entry, &instance.body);
    } catch (...) {  // an interrupt, or no memory: the next call begins anew
      open.pop_back();
      handles.erase(own_key);
      throw;
    }
    open.pop_back();
    instance.done = true;
    if (!instance.status.ok()) return instance.status;
    return handle;
  }

  static void SortNames(FunctionBody* body) {
    const Named& all = body->attributes;
    body->by_name.resize(all.size());
    std::iota(body->by_name.begin(), body->by_name.end(), 0u);
    std::sort(body->by_name.begin(), body->by_name.end(),
              [&](uint32_t a, uint32_t b) { return all[a].name < all[b].name; });
  }

  Status Fill(const Entry& entry, FunctionBody* body) {
    const FunctionDefinition& d = entry.definition;
    if (open.size() > kMostNested)
      return InvalidArgument("functions call each other more than ", kMostNested, " deep");
    HEDDLE_RETURN_IF_ERROR(
        Expand(d, d.arguments, body->attributes, &body->arguments, &body->argument_sizes));
    HEDDLE_RETURN_IF_ERROR(
        Expand(d, d.results, body->attributes, &body->results, &body->result_sizes));
    for (size_t i : entry.callers) {
      LookForInterrupt();
      const Named attributes = body->AttributesOf(d.nodes[i]);
      if (Has(d.nodes[i].op))
        HEDDLE_RETURN_IF_ERROR(Instantiate(d.nodes[i].op, attributes).status());
      Status status;
      for (const NamedFunctionValue& a : attributes)
        ForFunctions(a.value, [&](const FunctionValue& f) {
          if (status.ok() && Has(f.text)) status = Instantiate(f.text, f.attributes).status();
        });
      HEDDLE_RETURN_IF_ERROR(status);
    }
    return Status::Ok();
  }

  // The error for a cycle, with the functions from the repeated one on.
  Status Circle(Handle again) const {
    const auto begin = std::find(open.begin(), open.end(), again);
    const auto count = static_cast<size_t>(open.end() - begin);
    const auto name = [&](size_t k) -> const std::string& {
      return instances[begin[static_cast<int64_t>(k)]]->body.definition->name;
    };
    std::string text = StrCat("'", name(0), "'");
    for (size_t k = 1; k < std::min(count, kMostNamed); ++k)
      text += StrCat(k == 1 ? " calls '" : ", which calls '", name(k), "'");
    if (count > kMostNamed) text += StrCat(", which by ", count - kMostNamed, " others");
    text += StrCat(count == 1 || count > kMostNamed ? " calls '" : ", which calls '", name(0), "'");
    return InvalidArgument("recursion is refused: function ", text);
  }

  void Count(const FunctionNode& node, std::unordered_map<std::string, size_t>* counts) const {
    std::unordered_set<std::string> named;
    if (Has(node.op)) named.insert(node.op);
    for (const NamedFunctionValue& a : node.attributes)
      ForFunctions(a.value, [&](const FunctionValue& f) {
        if (Has(f.text)) named.insert(f.text);
      });
    for (const std::string& name : named) ++(*counts)[name];
  }
};

FunctionLibrary::FunctionLibrary(std::string format, TypeName type_name)
    : impl_(std::make_unique<Impl>()) {
  impl_->format = std::move(format);
  impl_->type_name = type_name;
}
FunctionLibrary::FunctionLibrary(FunctionLibrary&&) noexcept = default;
FunctionLibrary& FunctionLibrary::operator=(FunctionLibrary&&) noexcept = default;
FunctionLibrary::~FunctionLibrary() = default;

Status FunctionLibrary::Add(FunctionDefinition definition) {
  std::string name = definition.name;
  auto held = std::make_shared<FunctionDefinition>(std::move(definition));
  return Add(std::move(name), [held] { return std::move(*held); });
}

Status FunctionLibrary::Add(std::string name, std::function<FunctionDefinition()> make) {
  Impl::Entry entry;
  entry.make = std::move(make);
  return impl_->Add(std::move(name), std::move(entry));
}

const FunctionDefinition* FunctionLibrary::Find(std::string_view name) {
  const Impl::Entry* entry = impl_->Find(name);
  return entry == nullptr ? nullptr : &entry->definition;
}

bool FunctionLibrary::Has(std::string_view name) const { return impl_->Has(name); }

const std::vector<std::string>& FunctionLibrary::names() const { return impl_->names; }

Result<FunctionLibrary::Handle> FunctionLibrary::Instantiate(
    std::string_view name, const std::vector<NamedFunctionValue>& attributes) {
  return impl_->Instantiate(name, attributes);
}

const FunctionBody& FunctionLibrary::Body(Handle instance) const {
  return impl_->instances[instance]->body;
}

size_t FunctionLibrary::instances() const { return impl_->instances.size(); }

size_t FunctionLibrary::CallsOf(std::string_view name) {
  if (!std::exchange(impl_->counted, true)) {
    impl_->calls = impl_->outside_calls;
    for (const std::string& each : impl_->names)
      for (const FunctionNode& node : impl_->Find(each)->definition.nodes)
        impl_->Count(node, &impl_->calls);
  }
  const auto found = impl_->calls.find(std::string(name));
  return found == impl_->calls.end() ? 0 : found->second;
}

void FunctionLibrary::CountCalls(const FunctionNode& caller) {
  impl_->Count(caller, &impl_->outside_calls);
  impl_->counted = false;
}

const std::string& FunctionLibrary::format() const { return impl_->format; }

std::string FunctionLibrary::Signature(std::string_view name) {
  const FunctionDefinition* d = Find(name);
  if (d == nullptr) return {};
  const auto type_text = [&](int type) {
    const std::string_view named =
        impl_->type_name == nullptr ? std::string_view() : impl_->type_name(type);
    return named.empty() ? StrCat("type ", type) : std::string(named);
  };
  const auto ports = [&](const std::vector<FunctionArgument>& list) {
    std::string text;
    for (const FunctionArgument& a : list) {
      std::string type = a.type_attribute;
      if (!a.types.empty()) type = StrCat("*", a.types);
      if (type.empty() && a.type != 0) type = type_text(a.type);
      if (!a.number.empty()) type = StrCat(a.number, "*", type);
      text += StrCat(text.empty() ? "" : ", ", a.name, type.empty() ? "" : ": ", type);
    }
    return StrCat("(", text, ")");
  };
  std::string text = StrCat(d->name, ports(d->arguments), " -> ", ports(d->results));
  std::string attributes;
  for (const FunctionAttribute& a : d->attributes) {
    attributes +=
        StrCat(attributes.empty() ? "" : ", ", a.name, a.type.empty() ? "" : ": ", a.type);
    if (a.default_value.kind != Kind::kNone)
      attributes += StrCat(" = ", ValueText(a.default_value, type_text));
  }
  return attributes.empty() ? text : StrCat(text, " {", attributes, "}");
}

void FunctionLibrary::Keep(std::shared_ptr<const void> bytes) {
  impl_->kept.push_back(std::move(bytes));
}

}  // namespace heddle
