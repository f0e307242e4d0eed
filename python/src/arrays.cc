#include "python/src/arrays.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "heddle/read_only.h"
#include "heddle/string_tensor.h"
#include "python/src/dlpack.h"
#include "python/src/loans.h"

namespace heddle::python {
namespace {

// Element type of a buffer's format; kUnknown where heddle has none like it.
DType FromFormat(const char* format, Py_ssize_t size) {
  if (format == nullptr) return DType::kU8;
  const char* f = format;
  if (*f == '@' || *f == '=' || *f == '<' || *f == '|') ++f;  // the machine is little-endian
  if (*f == 'Z') return f[1] == 'f' ? DType::kC64 : f[1] == 'd' ? DType::kC128 : DType::kUnknown;
  if (f[0] == 0 || f[1] != 0) return DType::kUnknown;
  switch (*f) {
    case '?':
      return DType::kBool;
    case 'B':
      return DType::kU8;
    case 'b':
      return DType::kI8;
    case 'h':
      return DType::kI16;
    case 'i':
    case 'l':
    case 'q':
      return size == 4 ? DType::kI32 : DType::kI64;
    case 'H':
      return DType::kBF16;
    case 'e':
      return DType::kF16;
    case 'f':
      return DType::kF32;
    case 'd':
      return DType::kF64;
    default:
      return DType::kUnknown;
  }
}

const char* FormatOf(DType dtype) {
  constexpr const char* kFormats[kNumDTypes] = {"?", "B", "b", "h", "i",  "q",
                                                "e", "H", "f", "d", "Zf", "Zd"};
  return kFormats[static_cast<int>(dtype)];
}

[[noreturn]] void WrongType(const std::string& name, const std::string& why) {
  PyErr_SetString(PyExc_TypeError, ("'" + name + "': " + why).c_str());
  throw nb::python_error();
}

Taken TakeBuffer(nb::handle object, const std::string& name, Tensor* out) {
  if (!PyObject_CheckBuffer(object.ptr())) return Taken::kNo;
  auto view = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(object.ptr(), view.get(), PyBUF_STRIDED_RO | PyBUF_FORMAT) != 0) {
    PyErr_Clear();  // an array of a type that buffers cannot describe, such as ml_dtypes' bfloat16
    return Taken::kNo;
  }
  const DType dtype = FromFormat(view->format, view->itemsize);
  if (view->ndim > Shape::kMaxRank) {
    const int rank = view->ndim;
    PyBuffer_Release(view.get());
    WrongValue(name, "has rank " + std::to_string(rank) + "; at most " +
                         std::to_string(Shape::kMaxRank) + " dimensions are supported");
  }
  Py_buffer* raw = view.get();
  static_assert(sizeof(Py_ssize_t) == sizeof(int64_t));
  const Lent lent{.data = raw->buf,
                  .dtype = dtype,
                  .rank = raw->ndim,
                  .dims = reinterpret_cast<const int64_t*>(raw->shape),
                  .byte_strides = reinterpret_cast<const int64_t*>(raw->strides),
                  .read_only = raw->readonly != 0};
  const bool taken = dtype != DType::kUnknown && BorrowMemory(
                                                     lent, [raw] { ReturnLoan(raw); }, out);
  if (!taken) {
    PyBuffer_Release(raw);
    return Taken::kNeedsCopy;
  }
  view.release();
  return Taken::kYes;
}

// Offsets of sequences: nested lists of numbers.
LoD ToLod(nb::handle levels) {
  LoD lod;
  for (nb::handle level : levels) {
    std::vector<size_t> offsets;
    for (nb::handle offset : level) {
      const nb::object number = nb::steal(PyNumber_Index(offset.ptr()));
      const size_t at = number.is_valid() ? PyLong_AsSize_t(number.ptr()) : 0;
      if (PyErr_Occurred() != nullptr) throw nb::python_error();
      offsets.push_back(at);
    }
    lod.push_back(std::move(offsets));
  }
  return lod;
}

// Everything that is neither memory nor a pair, by way of NumPy.
Tensor TakeOther(nb::handle object, DType wanted, const std::string& name) {
  nb::module_ convert = nb::module_::import_("heddle._convert");
  const nb::object array = convert.attr("to_array")(
      object, wanted == DType::kUnknown ? std::string() : std::string(Name(wanted)), name);
  Tensor tensor;
  if (TakeBuffer(array, name, &tensor) != Taken::kYes)
    WrongType(name,
              "an array of " + nb::cast<std::string>(nb::str(array.attr("dtype"))) +
                  " cannot be used; heddle knows bool, uint8, int8 to int64, float16, bfloat16, "
                  "float32, float64, complex64 and complex128");
  return tensor;
}

}  // namespace

DType DTypeNamed(const std::string& name) {
  for (int i = 0; i < kNumDTypes - 1; ++i)
    if (Name(static_cast<DType>(i)) == name) return static_cast<DType>(i);
  return name == "uint16" ? DType::kBF16 : DType::kUnknown;
}

namespace {

// Whether it is a T of this module, and one whose __init__ was called.
template <typename T>
bool IsMade(nb::handle object, const std::string& name) {
  if (!nb::inst_check(object) || !nb::isinstance<T>(object)) return false;
  if (!nb::inst_ready(object)) WrongType(name, "was not made: its __init__ was not called");
  return true;
}

}  // namespace

namespace {

// What is no pair: a pair in a pair, to any depth, is an array or it is refused.
Tensor ToPlainTensor(nb::handle object, DType wanted, const std::string& name) {
  if (IsMade<Tensor>(object, name)) return nb::cast<Tensor>(object);
  Tensor tensor;
  if (TakeBuffer(object, name, &tensor) == Taken::kYes) return tensor;
  if (TakeDlpack(object, name, &tensor) == Taken::kYes) return tensor;
  tensor = TakeOther(object, wanted, name);
  if (PyObject_HasAttrString(object.ptr(), "lod")) {
    const nb::object lod = object.attr("lod");
    tensor.set_lod(ToLod(PyCallable_Check(lod.ptr()) ? nb::object(lod()) : lod));
  }
  return tensor;
}

}  // namespace

Tensor ToTensor(nb::handle object, DType wanted, const std::string& name) {
  SettleLoans();
  if (PyTuple_Check(object.ptr()) && PyTuple_GET_SIZE(object.ptr()) == 2) {
    const nb::object array = nb::borrow(PyTuple_GET_ITEM(object.ptr(), 0));
    const nb::object lod = nb::borrow(PyTuple_GET_ITEM(object.ptr(), 1));
    if (PyObject_HasAttrString(array.ptr(), "shape") &&
        (PyList_Check(lod.ptr()) || PyTuple_Check(lod.ptr()))) {
      Tensor tensor = ToPlainTensor(array, wanted, name);
      tensor.set_lod(ToLod(lod));
      return tensor;
    }
  }
  return ToPlainTensor(object, wanted, name);
}

Tensor ToOwnTensor(nb::handle object, DType wanted, const std::string& name) {
  Tensor own = ToTensor(object, wanted, name).Clone();
  if (!own.initialized()) throw std::bad_alloc();
  return own;
}

namespace {

// numpy.ndarray and its element types, looked up once.
struct Numpy {
  PyObject* ndarray = nullptr;
  PyObject* dtypes[kNumDTypes] = {};
  PyObject* keywords = nullptr;  // ("shape", "dtype", "buffer")

  static const Numpy& Get() {
    // The GIL guards it, which imports give away for a while: two threads may both make one. With a
    // static that is made on first use the second would wait for the first and keep the GIL from
    // it.
    static std::atomic<const Numpy*> made{nullptr};
    const Numpy* numpy = made.load(std::memory_order_acquire);
    if (numpy != nullptr) return *numpy;
    const Numpy* const mine = Make();
    if (made.compare_exchange_strong(numpy, mine)) return *mine;
    delete mine;
    return *numpy;
  }

 private:
  static const Numpy* Make() {
    auto numpy = std::make_unique<Numpy>();
    nb::module_ convert = nb::module_::import_("heddle._convert");
    numpy->ndarray = nb::object(convert.attr("ndarray")).release().ptr();
    for (int i = 0; i < kNumDTypes - 1; ++i)
      numpy->dtypes[i] =
          nb::object(convert.attr("dtype_named")(std::string(Name(static_cast<DType>(i)))))
              .release()
              .ptr();
    numpy->keywords = nb::make_tuple("shape", "dtype", "buffer").release().ptr();
    return numpy.release();
  }
};

nb::tuple ShapeTuple(const Shape& shape) {
  nb::object tuple = nb::steal(PyTuple_New(shape.rank()));
  if (!tuple.is_valid()) throw nb::python_error();
  for (int i = 0; i < shape.rank(); ++i)
    PyTuple_SET_ITEM(tuple.ptr(), i, PyLong_FromLongLong(shape[i]));
  return nb::borrow<nb::tuple>(tuple);
}

nb::list LodList(const LoD& lod) {
  nb::list levels;
  for (const auto& level : lod) {
    nb::list offsets;
    for (size_t offset : level) offsets.append(offset);
    levels.append(offsets);
  }
  return levels;
}

}  // namespace

nb::object ToArray(Tensor tensor) {
  const Numpy& numpy = Numpy::Get();
  if (!tensor.is_contiguous()) tensor = tensor.Contiguous();
  const nb::tuple shape = ShapeTuple(tensor.shape());
  PyObject* dtype = numpy.dtypes[static_cast<int>(tensor.dtype())];
  if (dtype == nullptr) throw nb::type_error("a tensor of unknown dtype");
  const nb::object memory = nb::cast(std::move(tensor));
  PyObject* args[] = {shape.ptr(), dtype, memory.ptr()};
  PyObject* array = PyObject_Vectorcall(numpy.ndarray, args, 0, numpy.keywords);
  if (array == nullptr) throw nb::python_error();
  return nb::steal(array);
}

namespace {

// An array of objects: texts, or bytes where an element is not UTF-8.
nb::object ToStrings(const StringTensor& strings) {
  nb::list elements;
  for (const std::string& s : strings.elements) {
    PyObject* text = PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), nullptr);
    if (text == nullptr) {
      PyErr_Clear();
      text = PyBytes_FromStringAndSize(s.data(), static_cast<Py_ssize_t>(s.size()));
      if (text == nullptr) throw nb::python_error();
    }
    elements.append(nb::steal(text));
  }
  nb::module_ convert = nb::module_::import_("heddle._convert");
  return convert.attr("to_strings")(ShapeTuple(strings.shape), elements);
}

// The elements of an array of texts, as `_convert.of_strings` gives them.
StringTensor StringsOf(const std::vector<int64_t>& shape, nb::list elements) {
  StringTensor strings;
  strings.shape = Shape(shape);
  for (nb::handle element : elements) {
    Py_ssize_t size = 0;
    const char* data = nullptr;
    if (PyBytes_Check(element.ptr())) {
      data = PyBytes_AS_STRING(element.ptr());
      size = PyBytes_GET_SIZE(element.ptr());
    } else if (PyUnicode_Check(element.ptr())) {
      data = PyUnicode_AsUTF8AndSize(element.ptr(), &size);
    } else {
      throw nb::type_error("an array of strings holds something else");
    }
    if (data == nullptr) throw nb::python_error();
    strings.elements.emplace_back(data, static_cast<size_t>(size));
  }
  if (strings.shape.numel() != static_cast<int64_t>(strings.elements.size()))
    throw nb::value_error("the number of strings is not that of the shape");
  return strings;
}

StringTensor StringsOf(nb::handle array) {
  const nb::object parts = nb::module_::import_("heddle._convert").attr("of_strings")(array);
  return StringsOf(nb::cast<std::vector<int64_t>>(parts[0]), nb::cast<nb::list>(parts[1]));
}

Value OfStrings(const std::vector<int64_t>& shape, const nb::list& elements) {
  return ValueOf(StringsOf(shape, elements));
}

Value OfArrays(const nb::list& arrays) {
  TensorArray items;
  // A copy: methods of an array may change the list.
  for (nb::handle array : nb::tuple(arrays))
    items.push_back(ToTensor(array, DType::kUnknown, "item"));
  return Value(std::move(items));
}

Value OfStringArrays(const nb::list& arrays) {
  StringList items;
  for (nb::handle array : nb::tuple(arrays)) items.push_back(StringsOf(array));
  return ValueOf(std::move(items));
}

}  // namespace

Value ToValue(nb::handle object, DType wanted, const std::string& name,
              const std::string& declared) {
  if (IsMade<Value>(object, name)) return nb::cast<Value>(object);
  if (declared.empty() || IsMade<Tensor>(object, name)) return ToTensor(object, wanted, name);
  nb::module_ convert = nb::module_::import_("heddle._convert");
  if (declared != "string")
    return ToTensor(convert.attr("to_held")(object, declared, name), wanted, name);
  return ValueOf(StringsOf(object));
}

nb::object ToPython(Value value, const std::string& declared) {
  if (!declared.empty() && (value.is_tensor() || value.is_array()))
    return nb::module_::import_("heddle._convert")
        .attr("from_held")(ToPython(std::move(value)), declared);
  if (value.is_tensor()) return ToArray(std::move(value.tensor()));
  if (value.is_array()) {
    nb::list list;
    for (const Tensor& t : value.array())
      list.append(t.initialized() ? ToArray(t) : nb::object(nb::none()));
    return list;
  }
  if (const auto strings = StringsIn(value)) return ToStrings(*strings);
  if (const auto texts = StringListIn(value)) {
    nb::list list;
    for (const StringTensor& t : *texts) list.append(ToStrings(t));
    return list;
  }
  if (value.is_rows()) {
    nb::list rows;
    for (int64_t r : value.rows().rows) rows.append(r);
    return nb::make_tuple(rows, ToArray(value.rows().value), value.rows().height);
  }
  return nb::none();
}

namespace {

// Row-major memory is column-major, too.
bool LiesEitherWay(const Tensor& t) {
  int long_dims = 0;
  for (const int64_t d : t.shape()) long_dims += d > 1;
  return long_dims <= 1 || t.numel() == 0;
}

// The buffer protocol, which numpy.ndarray uses to see a tensor's memory. Shape and strides live in
// one block that the view owns.
int GetBuffer(PyObject* self, Py_buffer* view, int flags) {
  *view = Py_buffer{};
  if (!nb::inst_ready(nb::handle(self))) {
    PyErr_SetString(PyExc_BufferError, "the tensor was not made: its __init__ was not called");
    return -1;
  }
  const Tensor& t = *nb::inst_ptr<Tensor>(nb::handle(self));
  if (!t.initialized() || !t.is_contiguous()) {
    PyErr_SetString(PyExc_BufferError, "the tensor holds no contiguous memory");
    return -1;
  }
  const bool read_only = IsReadOnly(t);
  if (read_only && (flags & PyBUF_WRITABLE) != 0) {
    PyErr_SetString(PyExc_BufferError, "the tensor's memory is read-only");
    return -1;
  }
  if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && !LiesEitherWay(t)) {
    PyErr_SetString(PyExc_BufferError, "the tensor's memory is row-major, not column-major");
    return -1;
  }
  view->readonly = read_only ? 1 : 0;
  view->buf = const_cast<void*>(t.raw());
  view->len = static_cast<Py_ssize_t>(t.bytes());
  view->itemsize = static_cast<Py_ssize_t>(SizeOf(t.dtype()));
  view->format = (flags & PyBUF_FORMAT) != 0 ? const_cast<char*>(FormatOf(t.dtype())) : nullptr;
  view->ndim = t.rank();
  if ((flags & PyBUF_ND) != 0 && t.rank() > 0) {
    auto* dims = new (std::nothrow) Py_ssize_t[2 * Shape::kMaxRank];
    if (dims == nullptr) {
      PyErr_NoMemory();
      return -1;
    }
    view->internal = dims;
    view->shape = dims;
    Py_ssize_t step = view->itemsize;
    for (int i = t.rank() - 1; i >= 0; --i) {
      dims[i] = t.shape()[i];
      dims[Shape::kMaxRank + i] = step;
      step *= dims[i];
    }
    if ((flags & PyBUF_STRIDES) == PyBUF_STRIDES) view->strides = dims + Shape::kMaxRank;
  }
  view->obj = self;
  Py_INCREF(self);
  return 0;
}

void ReleaseBuffer(PyObject*, Py_buffer* view) {
  delete[] static_cast<Py_ssize_t*>(view->internal);
}

}  // namespace

void BindTensor(nb::module_& module) {
  nb::class_<Value>(module, "Value", "A feed that is no tensor: a list of arrays, or strings.")
      .def_static("of_arrays", &OfArrays, nb::arg("arrays"))
      .def_static("of_string_arrays", &OfStringArrays, nb::arg("arrays"))
      .def_static("of_strings", &OfStrings, nb::arg("shape"), nb::arg("elements"));
  PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(GetBuffer)},
                         {Py_bf_releasebuffer, reinterpret_cast<void*>(ReleaseBuffer)},
                         {0, nullptr}};
  nb::class_<Tensor>(
      module, "Tensor", nb::type_slots(slots),
      "An array as heddle holds it: no copy of what it is made of, with sequence offsets "
      "in `lod`. numpy(), memoryview() and __dlpack__ share its memory, and are read-only where "
      "the array's was.")
      .def(
          "__init__",
          [](Tensor* self, nb::handle array, const std::string& dtype, nb::handle lod) {
            new (self) Tensor(ToTensor(array, DTypeNamed(dtype), "array"));
            if (!lod.is_none()) self->set_lod(ToLod(lod));
          },
          nb::arg("array"), nb::arg("dtype") = "", nb::arg("lod") = nb::none())
      .def_prop_ro("shape", [](const Tensor& t) { return ShapeTuple(t.shape()); })
      .def_prop_ro("dtype", [](const Tensor& t) { return std::string(Name(t.dtype())); })
      .def_prop_ro("nbytes", [](const Tensor& t) { return t.bytes(); })
      .def_prop_ro("address", [](const Tensor& t) { return reinterpret_cast<uintptr_t>(t.raw()); })
      .def_prop_rw(
          "lod", [](const Tensor& t) { return LodList(t.lod()); },
          [](Tensor& t, nb::handle lod) { t.set_lod(ToLod(lod)); })
      .def("numpy", [](const Tensor& t) { return ToArray(t); })
      .def("__dlpack__", &ExportDlpack)
      .def("__dlpack_device__", [](const Tensor&) { return nb::make_tuple(1, 0); });
}

}  // namespace heddle::python
