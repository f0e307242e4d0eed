#include "python/src/errors.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>
#include <string_view>

#include "heddle/reader_queue.h"

namespace heddle::python {

namespace nb = nanobind;

namespace {

// Names that a file gives may be no UTF-8.
nb::object TextOf(std::string_view text) {
  return nb::steal(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
}

}  // namespace

void Raise(const Status& status) {
  const OpLocation at = status.location().value_or(OpLocation());
  const nb::object error =
      nb::module_::import_("heddle._errors")
          .attr("from_status")(IsEndOfData(status) ? std::string("END_OF_DATA")
                                                   : std::string(StatusCodeName(status.code())),
                               TextOf(status.message()), TextOf(status.ToString()), at.block, at.op,
                               TextOf(at.op_type), TextOf(at.output), TextOf(at.call_stack));
  PyErr_SetObject(error.type().ptr(), error.ptr());
  throw nb::python_error();
}

}  // namespace heddle::python
