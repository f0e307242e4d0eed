#include "python/src/infos.h"

#include <nanobind/stl/string.h>

namespace heddle::python {
namespace nb = nanobind;
namespace {

nb::object DimsOf(const TensorInfo& info) {
  if (!info.shape.known_rank()) return nb::none();
  nb::list dims;
  for (int64_t d : info.shape) dims.append(d);
  return nb::tuple(dims);
}

std::string DTypeOf(const DeclaredInfo& info) {
  return info.declared.empty() ? std::string(Name(info.dtype)) : info.declared;
}

}  // namespace

std::vector<DeclaredInfo> Declared(const std::vector<TensorInfo>& infos,
                                   const std::vector<std::string>& types) {
  std::vector<DeclaredInfo> declared;
  for (size_t i = 0; i < infos.size(); ++i) {
    const bool wide = types[i] == "uint16" || types[i] == "uint32" || types[i] == "uint64";
    declared.push_back({infos[i], wide ? types[i] : std::string()});
  }
  return declared;
}

void BindInfos(nb::module_& module) {
  nb::class_<TensorInfo>(
      module, "TensorInfo",
      "An input, output or parameter as the program declares it: name, dtype, shape "
      "(-1: any length; None: any rank).")
      .def_ro("name", &TensorInfo::name)
      .def_prop_ro("dtype", [](const TensorInfo& i) { return std::string(Name(i.dtype)); })
      .def_prop_ro("shape", &DimsOf)
      .def("__repr__", [](const TensorInfo& i) {
        return i.name + ": " + std::string(Name(i.dtype)) + " " + i.shape.ToString();
      });
  nb::class_<DeclaredInfo, TensorInfo>(module, "DeclaredInfo",
                                       "An input or output with the dtype that its file declares.")
      .def_prop_ro("dtype", &DTypeOf)
      .def("__repr__", [](const DeclaredInfo& i) {
        return i.name + ": " + DTypeOf(i) + " " + i.shape.ToString();
      });
}

}  // namespace heddle::python
