#include "tests/ops/one_change.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <type_traits>

#include "core/error.h"
#include "core/op_registry.h"
#include "core/operands/slot_kinds.h"
#include "core/operands/unwritten.h"
#include "heddle/ranks.h"
#include "tests/ops/compare.h"
#include "tests/ops/crash_note.h"
#include "tests/ops/dtype_variants.h"
#include "tests/ops/examine.h"
#include "tests/ops/memory/guarded_memory.h"

namespace heddle::testing {
namespace {

constexpr const char* kKinds[] = {"dense", "selected_rows", "tensor_array", "step_scopes", "raw"};
constexpr DType kDTypes[] = {DType::kBool, DType::kU8,  DType::kI8,  DType::kI16,
                             DType::kI32,  DType::kI64, DType::kF16, DType::kBF16,
                             DType::kF32,  DType::kF64, DType::kC64, DType::kC128};

std::string TextOf(const proto::OpDesc_Attr& attr) {
  std::string text = attr.has_s() ? StrCat("'", attr.s(), "'") : "";
  if (attr.has_i()) text += StrCat(attr.i());
  if (attr.has_l()) text += StrCat(attr.l());
  if (attr.has_f()) text += StrCat(attr.f());
  if (attr.has_b()) text += attr.b() ? "true" : "false";
  const auto list = [&](const auto& values) {
    for (const auto& v : values) text += StrCat(" ", v);
  };
  list(attr.ints());
  list(attr.longs());
  list(attr.floats());
  list(attr.strings());
  return text;
}

// Calls fn for the attribute with other values of its type.
template <typename Fn>
void EachOther(const proto::OpDesc_Attr& attr, Fn&& fn) {
  constexpr int64_t kFar[] = {-1000, -7, -1, 0, 1, 2, 7, 1000};
  constexpr float kFloats[] = {-1e30F,
                               -1,
                               0,
                               1e30F,
                               std::numeric_limits<float>::quiet_NaN(),
                               std::numeric_limits<float>::infinity()};
  proto::OpDesc_Attr other = attr;
  const auto elements = [&](auto* list, const auto& values) {
    for (int i = 0; i < list->size() && i < 4; ++i) {
      const auto was = list->Get(i);
      for (const auto v : values) {
        list->Set(i, static_cast<std::decay_t<decltype(was)>>(v));
        fn(other);
      }
      list->Set(i, was);
    }
    list->Add(1);
    fn(other);
    for (const int fewer : {2, 1})
      if (list->size() >= fewer) {
        list->Truncate(list->size() - fewer);
        fn(other);
      }
  };
  switch (attr.type()) {
    case proto::INT:
      for (const int64_t v : kFar) other.set_i(static_cast<int32_t>(v)), fn(other);
      break;
    case proto::LONG:
      for (const int64_t v : kFar) other.set_l(v), fn(other);
      break;
    case proto::FLOAT:
      for (const float v : kFloats) other.set_f(v), fn(other);
      break;
    case proto::BOOLEAN:
      other.set_b(!attr.b());
      fn(other);
      break;
    case proto::STRING:
      for (const char* v : {"", "no_such_word"}) other.set_s(v), fn(other);
      break;
    case proto::INTS:
      elements(other.mutable_ints(), kFar);
      break;
    case proto::LONGS:
      elements(other.mutable_longs(), kFar);
      break;
    case proto::FLOATS:
      elements(other.mutable_floats(), kFloats);
      break;
    default:
      break;
  }
}

// The attribute with its default; false: it is of a type that is not changed.
bool SetDefault(const AttrDef& def, proto::OpDesc_Attr* attr) {
  attr->set_name(def.name);
  const AttrValue& value = def.default_value;
  if (const auto* i = std::get_if<int64_t>(&value)) {
    attr->set_type(proto::LONG);
    attr->set_l(*i);
  } else if (const auto* b = std::get_if<bool>(&value)) {
    attr->set_type(proto::BOOLEAN);
    attr->set_b(*b);
  } else if (const auto* f = std::get_if<double>(&value)) {
    attr->set_type(proto::FLOAT);
    attr->set_f(static_cast<float>(*f));
  } else if (const auto* s = std::get_if<std::string>(&value)) {
    attr->set_type(proto::STRING);
    attr->set_s(*s);
  } else if (const auto* ints = std::get_if<Ints>(&value)) {
    attr->set_type(proto::LONGS);
    for (const int64_t v : *ints) attr->add_longs(v);
  } else if (const auto* floats = std::get_if<heddle::Floats>(&value)) {
    attr->set_type(proto::FLOATS);
    for (const double v : *floats) attr->add_floats(static_cast<float>(v));
  } else {
    return false;
  }
  return true;
}

class Changes {
 public:
  explicit Changes(const Example& example) : example_(example) {}

  std::vector<Change> Run() {
    MoreOutputs();
    Less(&Example::inputs);
    if (example_.outputs.size() > 1) Less(&Example::outputs);
    Attributes();
    for (size_t i = 0; i < example_.outputs.size(); ++i)
      if (example_.outputs[i].same_as.empty()) {
        Kinds(&Example::outputs, i);
        SaidOutput(i);
      }
    for (size_t i = 0; i < example_.inputs.size(); ++i) {
      Kinds(&Example::inputs, i);
      const Value& value = example_.inputs[i].value;
      if (!value.is_tensor() || !value.tensor().initialized()) continue;
      DTypes(i, value.tensor());
      Shapes(i, value.tensor());
      Elements(i, value.tensor());
    }
    return std::move(changes_);
  }

 private:
  Change& Add(const std::string& slot, size_t i, const std::string& what,
              Change::Sort sort = Change::kOther) {
    changes_.push_back({slot + " " + std::to_string(i) + " " + what, example_, sort});
    const OpDef* const def = FindOp(example_.op);
    for (ExampleOutput& out : changes_.back().example.outputs) {  // each is fetched
      const int s = def == nullptr ? -1 : def->FindOutput(out.slot);
      if (s >= 0 && (def->outputs()[s].flags & kMayBeUnwritten) == 0) out.check = Check::kMeta;
    }
    return changes_.back();
  }

  template <typename Slots>
  void Less(Slots slots) {
    for (size_t i = 0; i < (example_.*slots).size(); ++i) {
      Change& change = Add((example_.*slots)[i].slot, i, "left out", Change::kLess);
      auto& list = change.example.*slots;
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  void Attributes() {
    for (size_t a = 0; a < example_.attrs.size(); ++a)
      EachOther(example_.attrs[a], [&](const proto::OpDesc_Attr& attr) {
        Add("attribute", a, StrCat(attr.name(), " is ", TextOf(attr)), Change::kAttribute)
            .example.attrs[a] = attr;
      });
    const OpDef* const def = FindOp(example_.op);
    if (def == nullptr) return;
    for (const AttrDef& declared : def->attrs()) {
      const bool given =
          std::any_of(example_.attrs.begin(), example_.attrs.end(),
                      [&](const auto& attr) { return attr.name() == declared.name; });
      proto::OpDesc_Attr attr;
      if (given || !SetDefault(declared, &attr)) continue;
      EachOther(attr, [&](const proto::OpDesc_Attr& other) {
        Add("attribute", example_.attrs.size(), StrCat(other.name(), " is ", TextOf(other)),
            Change::kAttribute)
            .example.attrs.push_back(other);
      });
    }
  }

  // Integers that are no index of anything, and numbers outside of what many functions are defined
  // for.
  void Elements(size_t i, const Tensor& t) {
    if (t.numel() == 0 || t.numel() > 4096) return;
    for (const int64_t at : std::set<int64_t>{0, t.numel() / 2, t.numel() - 1}) {
      const auto set = [&](auto element, const std::string& what) {
        using T = decltype(element);
        Tensor other = t.Clone();
        other.mutable_data<T>()[at] = element;
        Change& change =
            Add(example_.inputs[i].slot, i, StrCat("element ", at, " ", what), Change::kElements);
        change.example.inputs[i].value = Value(std::move(other));
      };
      const auto ends = [&](auto zero) {
        using T = decltype(zero);
        for (const int v : {-1000, -1, 0, 100, 1000}) set(static_cast<T>(v), std::to_string(v));
      };
      if (t.dtype() == DType::kI64) ends(int64_t{0});
      if (t.dtype() == DType::kI32) ends(int32_t{0});
      if (t.dtype() == DType::kF32) {
        set(-1.0F, "-1");
        set(100.0F, "100");
      }
    }
  }

  // An output that the example does without.
  void MoreOutputs() {
    const OpDef* const def = FindOp(example_.op);
    if (def == nullptr || def->has(kControlFlow)) return;
    for (const SlotDef& slot : def->outputs()) {
      const bool there = std::any_of(example_.outputs.begin(), example_.outputs.end(),
                                     [&](const ExampleOutput& o) { return o.slot == slot.name; });
      constexpr unsigned kOther = kList | kMayBeUnwritten | kRecord | kNoData | kTakesNoTensor;
      if (there || (slot.flags & kOther) != 0) continue;
      Change& change = Add(slot.name, 0, "given");
      ExampleOutput& out = change.example.outputs.emplace_back();
      out.slot = slot.name;
      out.check = Check::kMeta;
      out.value = Tensor::Zeros(DType::kF32, {1});
    }
  }

  template <typename Slots>
  void Kinds(Slots slots, size_t i) {
    for (const char* kind : kKinds)
      (Add((example_.*slots)[i].slot, i, std::string("declared as ") + kind, Change::kKind)
           .example.*
       slots)[i]
          .declared = kind;
  }

  void Give(size_t i, const std::string& what, Tensor t) {
    Add(example_.inputs[i].slot, i, what).example.inputs[i].value = Value(std::move(t));
  }

  void DTypes(size_t i, const Tensor& t) {
    for (DType to : kDTypes) {
      if (to == t.dtype()) continue;
      Give(i, StrCat("as ", Name(to)), CastTensor(t, to));
      Add(example_.inputs[i].slot, i, StrCat("said to be ", Name(to)), Change::kSaid)
          .example.inputs[i]
          .said = to;
    }
  }
  void SaidOutput(size_t i) {
    const Value& value = example_.outputs[i].value;
    if (!value.is_tensor() || !example_.outputs[i].declared.empty()) return;
    for (DType to : kDTypes) {
      if (value.initialized() && to == value.tensor().dtype()) continue;
      ExampleOutput& out =
          Add(example_.outputs[i].slot, i, StrCat("said to be ", Name(to)), Change::kSaid)
              .example.outputs[i];
      out.declared = "dense";
      out.said = to;
    }
  }

  void Shapes(size_t i, const Tensor& t) {
    std::vector<Shape> shapes{Shape{}, Shape{1}, Shape{0}, Shape{t.numel()}};
    const Shape& now = t.shape();
    Shape taller{1}, wider = now;
    for (int64_t d : now) taller.push_back(d);
    wider.push_back(1);
    if (now.rank() < Shape::kMaxRank) shapes.insert(shapes.end(), {taller, wider});
    // No elements, and dimensions that nobody can go through.
    for (const int empty : {0, now.rank() - 1}) {
      if (now.rank() < 2) break;
      shapes.push_back(now);
      shapes.back()[empty] = 0;
      shapes.back()[now.rank() - 1 - empty] = int64_t{1} << 40;
    }
    for (int axis = 0; axis < now.rank(); ++axis) {
      for (int64_t d : {now[axis] + 1, now[axis] - 1, now[axis] * 2, int64_t{1}, int64_t{0}}) {
        if (d < 0) continue;
        shapes.push_back(now);
        shapes.back()[axis] = d;
      }
      Shape without;
      for (int k = 0; k < now.rank(); ++k)
        if (k != axis) without.push_back(now[k]);
      shapes.push_back(without);
    }
    std::set<std::string> seen{now.ToString()};
    for (const Shape& shape : shapes)
      if (seen.insert(shape.ToString()).second)
        Give(i, "of shape " + shape.ToString(), Resized(t, shape));
  }

  const Example& example_;
  std::vector<Change> changes_;
};

// The example with operands in memory of their own.
Example Copied(const Example& example) {
  Example copy = example;
  for (ExampleInput& in : copy.inputs)
    if (in.value.is_tensor() && in.value.initialized()) in.value = Value(in.value.tensor().Clone());
  return copy;
}

bool IsClear(StatusCode code) {
  return code == StatusCode::kInvalidArgument || code == StatusCode::kUnimplemented ||
         code == StatusCode::kOutOfRange || code == StatusCode::kResourceExhausted ||
         code == StatusCode::kNotFound;
}

// Another level, and another number of threads, may add up in another order.
std::string Alike(const Value& got, const Value& want) {
  if (!got.is_tensor() || !want.is_tensor() || !got.initialized() || !want.initialized())
    return got.kind() == want.kind() && got.initialized() == want.initialized() ? ""
                                                                                : "another kind";
  const Tensor &a = got.tensor(), &b = want.tensor();
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape()))
    return StrCat(Name(a.dtype()), " ", a.shape().ToString(), ", expected ", Name(b.dtype()), " ",
                  b.shape().ToString());
  const bool small = a.dtype() == DType::kF16 || a.dtype() == DType::kBF16;
  return Near(a, b, small ? Tolerance{2e-2, 2e-2} : Tolerance{1e-4, 1e-4});
}

}  // namespace

std::vector<Change> ChangesOf(const Example& example) { return Changes(example).Run(); }

std::string AgreesEverywhere(Lab& lab, const Change& change) {
  CrashNote note(change.example, change.what);
  Executor guarded({.threads = 1, .communicator = NewRanks(1)[0]});
  struct {
    const char* name;
    Executor& executor;
    Schedule schedule;
    int opt_level;
  } const ways[] = {{"serial", lab.Reference(), Schedule::kSerial, 0},
                    {"memory that is not NaN before", lab.Plain(), Schedule::kSerial, 0},
                    {"guarded memory", guarded, Schedule::kSerial, 0},
                    {"lanes", lab.TwoThreads(), Schedule::kLanes, 0},
                    {"queue", lab.TwoThreads(), Schedule::kParallel, 0},
                    {"cleaned up", lab.Plain(), Schedule::kSerial, 1},
                    {"optimised", lab.Plain(), Schedule::kSerial, 2},
                    {"optimised, queue", lab.TwoThreads(), Schedule::kParallel, 2}};
  std::optional<Result<std::vector<Value>>> first;
  for (const auto& way : ways) {
    const bool guards = &way.executor == &guarded;
    const auto run = [&]() -> Result<std::vector<Value>> {
      std::optional<GuardedMemory> memory;
      if (guards) memory.emplace();
      HEDDLE_ASSIGN_OR_RETURN(
          const ExampleProgram program,
          BuildProgram(guards ? Copied(change.example) : change.example, Operands::kFed));
      CompileOptions options;
      options.fetches = program.fetches;
      options.seed = change.example.seed;
      options.opt_level = way.opt_level;
      options.schedule = way.schedule;
      HEDDLE_ASSIGN_OR_RETURN(const CompiledProgram compiled,
                              way.executor.Compile(program.program, program.NewScope(), options));
      return way.executor.RunValues(compiled, program.feeds);
    };
    const int64_t damaged = GuardedMemory::damaged();
    auto got = run();
    if (GuardedMemory::damaged() > damaged)
      return std::string(way.name) + ": it was written to beside a tensor";
    if (!got.ok() && !IsClear(got.status().code()))
      return std::string(way.name) + ": no clear refusal: " + got.status().ToString();
    if (!first) {
      first.emplace(std::move(got));
      continue;
    }
    if (got.ok() != first->ok())
      return std::string(way.name) + (got.ok() ? ": is run" : ": " + got.status().ToString()) +
             ", but " + ways[0].name +
             (first->ok() ? " is run" : ": " + first->status().ToString());
    if (!got.ok()) continue;
    for (size_t i = 0; i < got->size(); ++i) {
      const Value &a = (*got)[i], &b = (**first)[i];
      const bool same_sums = way.opt_level == 0 && &way.executor != &lab.TwoThreads();
      if (way.opt_level > 0 && change.example.random) continue;
      const std::string wrong = same_sums ? SameElements(a, b) : Alike(a, b);
      if (!wrong.empty())
        return std::string(way.name) + ": output " + std::to_string(i) + ": " + wrong;
    }
  }
  return "";
}

}  // namespace heddle::testing
