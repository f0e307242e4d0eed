#include "python/src/errors.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include "heddle/reader_queue.h"

namespace heddle::python {

namespace nb = nanobind;

void Raise(const Status& status) {
  const OpLocation at = status.location().value_or(OpLocation());
  const nb::object error =
      nb::module_::import_("heddle._errors")
          .attr("from_status")(IsEndOfData(status) ? std::string("END_OF_DATA")
                                                   : std::string(StatusCodeName(status.code())),
                               status.message(), status.ToString(), at.block, at.op, at.op_type,
                               at.output, at.call_stack);
  PyErr_SetObject(error.type().ptr(), error.ptr());
  throw nb::python_error();
}

}  // namespace heddle::python
