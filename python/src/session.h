// The types heddle._heddle.Executor and Session.
#pragma once

#include <nanobind/nanobind.h>

namespace heddle::python {

void BindSession(nanobind::module_& module);

}  // namespace heddle::python
