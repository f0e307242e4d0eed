// The type heddle._heddle.Builder.
#pragma once

#include <nanobind/nanobind.h>

namespace heddle::python {

void BindBuilder(nanobind::module_& module);

}  // namespace heddle::python
