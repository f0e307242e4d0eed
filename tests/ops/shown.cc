#include "tests/ops/shown.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <sstream>
#include <type_traits>

#include "core/programs/program_builder.h"
#include "tests/ops/compare.h"
#include "tests/ops/examine.h"

namespace heddle::testing {
namespace {

// One call of the operator in an example.
struct Call {
  std::set<std::string> inputs;  // slots that are given
  std::set<std::string> empty;   // those of which a variable holds nothing
  const std::vector<proto::OpDesc_Attr>* attrs = nullptr;
};

// An optional operand may be a variable that nothing was written to, or an array of nothing.
bool HoldsSomething(const ExampleInput& in) {
  return !in.nothing && (!in.value.is_array() || !in.value.array().empty());
}

std::vector<Call> CallsOf(const std::string& op, const Example& e) {
  std::vector<Call> calls;
  if (!e.is_program()) {
    Call& call = calls.emplace_back();
    for (const ExampleInput& in : e.inputs) {
      call.inputs.insert(in.slot);
      if (!HoldsSomething(in)) call.empty.insert(in.slot);
    }
    call.attrs = &e.attrs;
  }
  std::set<std::string> empty;  // variables of a program
  for (const ExampleInput& in : e.inputs)
    if (!HoldsSomething(in)) empty.insert(in.slot);
  for (const ExampleOp& one : e.program) {
    if (one.type == op) {
      Call& call = calls.emplace_back();
      for (const auto& [slot, names] : one.inputs)
        for (const std::string& name : names) {
          call.inputs.insert(slot);
          if (empty.count(name) != 0) call.empty.insert(slot);
        }
      call.attrs = &one.attrs;
    }
    for (const auto& [slot, names] : one.outputs)
      for (const std::string& name : names) empty.erase(name);
  }
  return calls;
}

// Applies `fn` to the tensors that the value holds until it is true; whether it was.
template <typename Fn>
bool AnyTensor(const Value& value, Fn&& fn) {
  if (value.is_rows()) return fn(value.rows().value);
  if (value.is_array()) return std::any_of(value.array().begin(), value.array().end(), fn);
  return value.is_tensor() && fn(value.tensor());
}

bool IsLarge(const Tensor& t) {
  return t.rank() >= 2 && t.numel() >= static_cast<int64_t>(kDifferent);
}

bool TellsElementsApart(const Tensor& t) {
  if (!IsLarge(t) || !t.initialized()) return false;
  std::set<std::pair<double, double>> different;
  bool negative = false, positive = false;
  for (int64_t i = 0; i < t.numel(); ++i) {
    const std::complex<double> x = ElementAt(t, i);
    if (std::isnan(x.real())) continue;
    different.insert({x.real(), x.imag()});
    negative = negative || x.real() < 0;
    positive = positive || x.real() > 0;
  }
  if (t.dtype() == DType::kBool) return different.size() == 2;
  return different.size() >= kDifferent && positive && (negative || t.dtype() == DType::kU8);
}

bool IsLongList(const Tensor& t) {
  if (!t.initialized()) return false;
  std::set<std::pair<double, double>> different;
  for (int64_t i = 0; i < t.numel(); ++i) {
    const std::complex<double> x = ElementAt(t, i);
    if (!std::isnan(x.real())) different.insert({x.real(), x.imag()});
  }
  return different.size() >= kDifferent;
}

template <typename Fn>
bool AnyOperand(const Example* e, Fn&& fn) {
  return std::any_of(e->inputs.begin(), e->inputs.end(),
                     [&](const ExampleInput& in) { return AnyTensor(in.value, fn); });
}
template <typename Fn>
bool AnyResult(const Example* e, Fn&& fn) {
  return std::any_of(e->outputs.begin(), e->outputs.end(),
                     [&](const ExampleOutput& out) { return AnyTensor(out.value, fn); });
}

bool ShowsValues(const std::vector<const Example*>& examples) {
  const auto any = [&](auto&& fn) { return std::any_of(examples.begin(), examples.end(), fn); };
  if (!any([](const Example* e) { return !e->random; })) return true;  // statistics have no places
  const auto is_matrix = [](const Tensor& t) { return t.rank() > 1; };
  if (any([&](const Example* e) { return AnyOperand(e, is_matrix); }))
    return any([](const Example* e) { return AnyOperand(e, TellsElementsApart); });
  if (any([](const Example* e) { return AnyResult(e, IsLarge); })) return true;
  if (any([&](const Example* e) { return AnyResult(e, is_matrix); })) return false;
  const auto are_several = [](const Tensor& t) { return t.numel() > 1; };
  return any([](const Example* e) {
           return AnyOperand(e, IsLongList) || AnyResult(e, IsLongList);
         }) ||
         !any([&](const Example* e) {
           return AnyOperand(e, are_several) || AnyResult(e, are_several);
         });
}

// The numbers or texts of a value, as text of one form whatever the file's type is.
std::string Canonical(const std::vector<double>& numbers) {
  std::ostringstream text;
  text.precision(9);
  for (const double x : numbers) text << static_cast<float>(x) << ' ';
  return text.str();
}
std::string Canonical(const std::vector<std::string>& texts) {
  std::string text;
  for (const std::string& t : texts) text += t + '\n';
  return text;
}

std::string Canonical(const proto::OpDesc_Attr& a) {
  std::vector<double> numbers;
  const auto add = [&](const auto& list) {
    numbers.insert(numbers.end(), list.begin(), list.end());
  };
  add(a.ints());
  add(a.floats());
  add(a.bools());
  add(a.longs());
  add(a.float64s());
  add(a.blocks_idx());
  const auto add_scalar = [&](const proto::Scalar& s) {
    numbers.push_back(s.type() == proto::Scalar::BOOLEAN ? s.b()
                      : s.type() == proto::Scalar::LONG  ? static_cast<double>(s.i())
                                                         : s.r());
  };
  for (const proto::Scalar& s : a.scalars()) add_scalar(s);
  switch (a.type()) {
    case proto::INT:
      return Canonical(std::vector<double>{static_cast<double>(a.i())});
    case proto::LONG:
      return Canonical(std::vector<double>{static_cast<double>(a.l())});
    case proto::FLOAT:
      return Canonical(std::vector<double>{a.f()});
    case proto::FLOAT64:
      return Canonical(std::vector<double>{a.float64()});
    case proto::BOOLEAN:
      return Canonical(std::vector<double>{a.b() ? 1.0 : 0.0});
    case proto::BLOCK:
      return Canonical(std::vector<double>{static_cast<double>(a.block_idx())});
    case proto::SCALAR:
      add_scalar(a.scalar());
      return Canonical(numbers);
    case proto::STRING:
      return Canonical(std::vector<std::string>{a.s()});
    case proto::STRINGS:
      return Canonical(std::vector<std::string>(a.strings().begin(), a.strings().end()));
    default:
      return Canonical(numbers);
  }
}

std::string Canonical(const AttrValue& value) {
  return std::visit(
      [](const auto& v) {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::string>) {
          return Canonical(std::vector<std::string>{v});
        } else if constexpr (std::is_same_v<T, Strings>) {
          return Canonical(v);
        } else if constexpr (std::is_same_v<T, BlockRef>) {
          return Canonical(std::vector<double>{static_cast<double>(v.id)});
        } else if constexpr (std::is_same_v<T, std::vector<BlockRef>>) {
          return Canonical(std::vector<double>(v.size(), 0));
        } else if constexpr (std::is_same_v<T, Ints> || std::is_same_v<T, heddle::Floats>) {
          return Canonical(std::vector<double>(v.begin(), v.end()));
        } else {
          return Canonical(std::vector<double>{static_cast<double>(v)});
        }
      },
      value);
}

bool ShowsAttr(const AttrDef& attr, const std::vector<Call>& calls) {
  const std::string usual = Canonical(attr.default_value);
  return std::any_of(calls.begin(), calls.end(), [&](const Call& call) {
    return std::any_of(call.attrs->begin(), call.attrs->end(), [&](const proto::OpDesc_Attr& a) {
      return a.name() == attr.name && Canonical(a) != usual;
    });
  });
}

// Whether an example that is no program has the operand.
bool ShowsAlone(const std::string& slot, const std::vector<const Example*>& examples) {
  return std::any_of(examples.begin(), examples.end(), [&](const Example* e) {
    return !e->is_program() && std::any_of(e->inputs.begin(), e->inputs.end(),
                                           [&](const auto& in) { return in.slot == slot; });
  });
}

// Whether `pattern`, which may end with '*', is the text or its beginning.
bool Fits(const std::string& pattern, const std::string& text) {
  return pattern.ends_with('*') ? text.starts_with(pattern.substr(0, pattern.size() - 1))
                                : text == pattern;
}

// What the builder of programs sets by itself.
bool IsDerived(const std::string& name) {
  return name.starts_with(ir::kRewrites) || name.find(':') != std::string::npos;
}

}  // namespace

std::vector<Gap> GapsOf(const OpDef& op, const std::vector<const Example*>& examples) {
  std::vector<Gap> gaps;
  if (!ShowsValues(examples)) gaps.push_back({op.name(), "values", ""});
  std::vector<Call> calls;
  for (const Example* e : examples)
    for (Call& call : CallsOf(op.name(), *e)) calls.push_back(std::move(call));
  for (const AttrDef& attr : op.attrs())
    if (!IsDerived(attr.name) && !ShowsAttr(attr, calls))
      gaps.push_back({op.name(), "attr", attr.name});
  for (const SlotDef& slot : op.inputs()) {
    if ((slot.flags & kOptional) == 0 || IsDerived(slot.name)) continue;
    const auto has = [&](const Call& call) { return call.inputs.count(slot.name) != 0; };
    if (std::none_of(calls.begin(), calls.end(), has))
      gaps.push_back({op.name(), "present", slot.name});
    const bool by_variant = IsOptionalGradient(slot) && ShowsAlone(slot.name, examples);
    const auto is_full = [&](const Call& call) {
      return has(call) && call.empty.count(slot.name) == 0;
    };
    if (!by_variant && std::all_of(calls.begin(), calls.end(), is_full))
      gaps.push_back({op.name(), "absent", slot.name});
  }
  return gaps;
}

Exceptions::Exceptions(const std::string& path) {
  std::ifstream file(path);
  int number = 0;
  for (std::string text; std::getline(file, text);) {
    ++number;
    if (text.empty() || text[0] == '#') continue;
    const size_t colon = text.find(": ");
    Line line;
    std::istringstream words(text.substr(0, std::min(colon, text.size())));
    std::string more;
    words >> line.op >> line.what >> line.of;
    if (colon == std::string::npos || line.what.empty() || words >> more) {
      errors_.push_back(path + ":" + std::to_string(number) +
                        ": expected 'OPERATOR WHAT OF: REASON'");
      continue;
    }
    line.text = path + ":" + std::to_string(number) + ": " + text;
    lines_.push_back(std::move(line));
  }
}

bool Exceptions::Allows(const Gap& gap) {
  bool allowed = false;
  for (Line& line : lines_) {
    if (!Fits(line.op, gap.op) || line.what != gap.what || !Fits(line.of, gap.of)) continue;
    line.used = allowed = true;
  }
  return allowed;
}

std::vector<std::string> Exceptions::Unused() const {
  std::vector<std::string> unused;
  for (const Line& line : lines_)
    if (!line.used && line.what != "dtype") unused.push_back(line.text);
  return unused;
}

}  // namespace heddle::testing
