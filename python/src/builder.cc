#include "python/src/builder.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heddle/program_builder.h"
#include "python/src/arrays.h"
#include "python/src/errors.h"

namespace heddle::python {
namespace {

using Handles = std::vector<std::optional<Variable>>;

Shape ToShape(const std::vector<int64_t>& dims, const std::string& name) {
  if (dims.size() > static_cast<size_t>(Shape::kMaxRank))
    throw nb::value_error(("rank " + std::to_string(dims.size()) + " of '" + name + "' is above " +
                           std::to_string(Shape::kMaxRank))
                              .c_str());
  return Shape(dims);
}

std::vector<Variable> ToVariables(const Handles& handles) {
  std::vector<Variable> variables;
  for (const auto& handle : handles) variables.push_back(handle.value_or(Variable()));
  return variables;
}

// `what` is for messages: "attribute 'axis'".
int64_t ToInteger(nb::handle value, const std::string& what) {
  const nb::int_ number(nb::borrow(value));
  int overflow = 0;
  const int64_t integer = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow != 0)
    throw nb::value_error((what + ": " + nb::str(number).c_str() + " is too large").c_str());
  return integer;
}

// A list of numbers, texts or variables; integers where all are, else floats.
AttributeArgument ListValue(nb::handle value, const std::string& name) {
  std::vector<Variable> variables;
  std::vector<std::string> texts;
  std::vector<int64_t> integers;
  std::vector<double> reals;
  size_t count = 0;
  for (nb::handle item : value) {
    ++count;
    if (nb::isinstance<Variable>(item)) {
      variables.push_back(nb::cast<Variable>(item));
    } else if (PyUnicode_Check(item.ptr())) {
      texts.push_back(nb::cast<std::string>(item));
    } else if (PyIndex_Check(item.ptr())) {
      integers.push_back(ToInteger(item, "attribute '" + name + "'"));
      reals.push_back(static_cast<double>(integers.back()));
    } else {
      reals.push_back(nb::cast<double>(nb::float_(nb::borrow(item))));
    }
  }
  if (variables.size() == count && count > 0) return variables;
  if (texts.size() == count && count > 0) return texts;
  if (integers.size() == count) return integers;
  if (reals.size() == count) return reals;
  throw nb::type_error(("attribute '" + name + "': a list of one kind is expected").c_str());
}

AttributeArgument ToAttribute(nb::handle value, const std::string& name) {
  if (nb::isinstance<Variable>(value)) return nb::cast<Variable>(value);
  if (PyBool_Check(value.ptr())) return nb::cast<bool>(value);
  if (PyUnicode_Check(value.ptr())) return nb::cast<std::string>(value);
  if (PyIndex_Check(value.ptr())) return ToInteger(value, "attribute '" + name + "'");
  if (PyFloat_Check(value.ptr())) return nb::cast<double>(value);
  if (nb::isinstance<nb::sequence>(value)) return ListValue(value, name);
  return nb::cast<double>(nb::float_(nb::borrow(value)));  // NumPy's numbers
}

// A count, names, or variables.
Target ToTarget(nb::handle value, const std::string& slot) {
  if (PyIndex_Check(value.ptr())) {
    constexpr int64_t kMost = std::numeric_limits<int>::max();
    const int64_t count = ToInteger(value, "output slot '" + slot + "'");
    return static_cast<int>(std::clamp<int64_t>(count, -1, kMost));
  }
  std::vector<std::string> names;
  Handles handles;
  for (nb::handle item : value) {
    if (PyUnicode_Check(item.ptr()))
      names.push_back(nb::cast<std::string>(item));
    else
      handles.push_back(nb::cast<std::optional<Variable>>(item));
  }
  if (!names.empty() && !handles.empty())
    throw nb::type_error(("output slot '" + slot + "': names or variables, not both").c_str());
  if (!names.empty()) return names;
  return ToVariables(handles);
}

OperatorResults AddOperator(ProgramBuilder& b, const std::string& type,
                            const std::vector<std::pair<std::string, Handles>>& inputs,
                            const std::vector<std::pair<std::string, nb::object>>& attributes,
                            const std::vector<std::pair<std::string, nb::object>>& targets,
                            const std::string& place) {
  Operands operands;
  for (const auto& [slot, handles] : inputs) operands.emplace_back(slot, ToVariables(handles));
  Attributes values;
  for (const auto& [name, value] : attributes) values.emplace_back(name, ToAttribute(value, name));
  Targets to;
  for (const auto& [slot, value] : targets) to.emplace_back(slot, ToTarget(value, slot));
  b.SetPlace(place);
  return Check(b.Add(type, operands, values, to));
}

}  // namespace

void BindBuilder(nb::module_& module) {
  nb::class_<Variable>(module, "Variable", "A variable of a program that is being built.")
      .def("__eq__", [](const Variable& a, const Variable& b) { return a == b; });
  nb::class_<ProgramBuilder>(module, "Builder", "What heddle.build.Builder stands on.")
      .def(nb::init<std::string>(), nb::arg("name") = "program")
      .def(
          "feed",
          [](ProgramBuilder& b, const std::string& name, const std::string& dtype,
             const std::vector<int64_t>& shape, int lod_level) {
            return Check(b.Feed(name, DTypeNamed(dtype), ToShape(shape, name), lod_level));
          },
          nb::arg("name"), nb::arg("dtype"), nb::arg("shape"), nb::arg("lod_level") = 0)
      .def(
          "parameter",
          [](ProgramBuilder& b, const std::string& name, nb::handle value,
             const std::string& dtype) {
            return Check(b.Parameter(name, ToOwnTensor(value, DTypeNamed(dtype), name)));
          },
          nb::arg("name"), nb::arg("value"), nb::arg("dtype") = "")
      .def(
          "declare_parameter",
          [](ProgramBuilder& b, const std::string& name, const std::string& dtype,
             const std::vector<int64_t>& shape) {
            return Check(b.Parameter(name, DTypeNamed(dtype), ToShape(shape, name)));
          },
          nb::arg("name"), nb::arg("dtype"), nb::arg("shape"))
      .def(
          "array",
          [](ProgramBuilder& b, const std::string& name, const std::string& dtype) {
            return Check(b.Array(name, DTypeNamed(dtype)));
          },
          nb::arg("name"), nb::arg("dtype"))
      .def(
          "fetch", [](ProgramBuilder& b, Variable v) { Check(b.Fetch(v)); }, nb::arg("variable"))
      .def("add", &AddOperator, nb::arg("type"), nb::arg("inputs"), nb::arg("attributes"),
           nb::arg("targets"), nb::arg("place") = "")
      .def(
          "begin_while", [](ProgramBuilder& b, Variable v) { Check(b.BeginWhile(v)); },
          nb::arg("condition"))
      .def(
          "begin_if", [](ProgramBuilder& b, Variable v) { Check(b.BeginIf(v)); },
          nb::arg("condition"))
      .def("end_block", [](ProgramBuilder& b) { Check(b.EndBlock()); })
      .def(
          "declare",
          [](ProgramBuilder& b, Variable v, const std::string& dtype,
             const std::vector<int64_t>& shape) {
            Check(b.Declare(v, DTypeNamed(dtype), ToShape(shape, "declare")));
          },
          nb::arg("variable"), nb::arg("dtype"), nb::arg("shape"))
      .def(
          "info", [](const ProgramBuilder& b, Variable v) { return Check(b.Info(v)); },
          nb::arg("variable"))
      .def("finish", [](ProgramBuilder& b) {
        Model model = Check(std::move(b).Finish());
        return std::make_pair(std::move(model.program), std::move(model.scope));
      });
}

}  // namespace heddle::python
