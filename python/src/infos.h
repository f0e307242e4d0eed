// Inputs, outputs and parameters as Python sees them: heddle._heddle.TensorInfo and DeclaredInfo.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "heddle/program.h"

namespace heddle::python {

// An input or output with the dtype that the program's file declares, which heddle may hold in
// another one.
struct DeclaredInfo : TensorInfo {
  std::string declared;  // the name of a type that NumPy has; empty where `dtype` is that type
};

// `types`: as heddle::InputTypes or OutputTypes says of each of `infos`.
std::vector<DeclaredInfo> Declared(const std::vector<TensorInfo>& infos,
                                   const std::vector<std::string>& types);

void BindInfos(nanobind::module_& module);

}  // namespace heddle::python
