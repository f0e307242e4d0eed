// Fine-tuning: the types that heddle.train is made of.
#pragma once

#include <nanobind/nanobind.h>

namespace heddle::python {

void BindTraining(nanobind::module_& module);

}  // namespace heddle::python
