#include "python/src/dlpack.h"

#include <nanobind/ndarray.h>

#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "heddle/read_only.h"
#include "python/src/loans.h"

namespace heddle::python {
namespace {

uint8_t CodeOf(DType t) {
  using Code = nb::dlpack::dtype_code;
  const Code code = t == DType::kBool   ? Code::Bool
                    : t == DType::kU8   ? Code::UInt
                    : t == DType::kBF16 ? Code::Bfloat
                    : IsComplex(t)      ? Code::Complex
                    : IsFloat(t)        ? Code::Float
                                        : Code::Int;
  return static_cast<uint8_t>(code);
}

DType FromDlpack(nb::dlpack::dtype d) {
  if (d.lanes != 1) return DType::kUnknown;
  for (int i = 0; i < kNumDTypes - 1; ++i) {
    const auto t = static_cast<DType>(i);
    if (d.code == CodeOf(t) && d.bits == SizeOf(t) * 8) return t;
  }
  return DType::kUnknown;
}

// DLPack's capsules hold one of two structures (dlpack.h): the first form, which says nothing of
// the right to write, or the one with a version.
struct DlTensor {
  nb::dlpack::dltensor tensor;
  void* context;
  void (*deleter)(DlTensor*);
};
struct DlVersioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(DlVersioned*);
  uint64_t flags;
  nb::dlpack::dltensor tensor;
};
constexpr uint32_t kDlMajor = 1;
constexpr uint64_t kDlReadOnly = 1;

template <typename T>
void DeleteManaged(void* managed) noexcept {
  auto* const tensor = static_cast<T*>(managed);
  if (tensor->deleter != nullptr) tensor->deleter(tensor);
}

// A capsule of what a producer exports. Whoever takes its contents renames it, which tells the
// capsule not to free them and others that they are gone: they are taken once.
class DlCapsule {
 public:
  // Takes the capsule of an object with __dlpack__, or a capsule itself. Not valid(): there is
  // none.
  explicit DlCapsule(nb::handle object) {
    if (PyCapsule_CheckExact(object.ptr()) != 0) {
      capsule_ = nb::borrow(object);
    } else {
      static constexpr const char* kMethod = "__dlpack__";
      const nb::object method = nb::steal(PyObject_GetAttrString(object.ptr(), kMethod));
      const nb::object none = nb::make_tuple();
      nb::dict newest;
      newest["max_version"] = nb::make_tuple(kDlMajor, 0);
      if (method.is_valid()) {
        capsule_ = nb::steal(PyObject_Call(method.ptr(), none.ptr(), newest.ptr()));
        // Producers of before 2023 know no versions.
        if (!capsule_.is_valid() && PyErr_ExceptionMatches(PyExc_TypeError) != 0) {
          PyErr_Clear();
          capsule_ = nb::steal(PyObject_Call(method.ptr(), none.ptr(), nullptr));
        }
      }
      if (!capsule_.is_valid()) {
        if (PyErr_ExceptionMatches(PyExc_Exception) == 0) throw nb::python_error();  // Ctrl-C
        PyErr_Clear();
      }
    }
    if (!capsule_.is_valid() || PyCapsule_CheckExact(capsule_.ptr()) == 0) return;
    if (PyCapsule_IsValid(capsule_.ptr(), kVersioned) != 0)
      versioned_ = static_cast<DlVersioned*>(PyCapsule_GetPointer(capsule_.ptr(), kVersioned));
    else if (PyCapsule_IsValid(capsule_.ptr(), kFirst) != 0)
      first_ = static_cast<DlTensor*>(PyCapsule_GetPointer(capsule_.ptr(), kFirst));
    else
      taken_ = PyCapsule_IsValid(capsule_.ptr(), kUsedVersioned) != 0 ||
               PyCapsule_IsValid(capsule_.ptr(), kUsedFirst) != 0;
  }
  bool valid() const { return versioned_ != nullptr || first_ != nullptr; }
  bool was_taken() const { return taken_; }
  // The capsule has a later form than is known here, whose fields may lie elsewhere.
  bool is_newer() const { return versioned_ != nullptr && versioned_->major > kDlMajor; }
  const nb::dlpack::dltensor& tensor() const {
    return versioned_ != nullptr ? versioned_->tensor : first_->tensor;
  }
  // As NumPy takes it, the first form may be read only: it cannot say more.
  bool read_only() const { return versioned_ == nullptr || (versioned_->flags & kDlReadOnly) != 0; }
  // An object that frees the contents with its last reference. The capsule has them no more.
  nb::object Take() {
    void* const managed = versioned_ != nullptr ? static_cast<void*>(versioned_) : first_;
    const nb::object owner = versioned_ != nullptr
                                 ? nb::capsule(managed, &DeleteManaged<DlVersioned>)
                                 : nb::capsule(managed, &DeleteManaged<DlTensor>);
    PyCapsule_SetName(capsule_.ptr(), versioned_ != nullptr ? kUsedVersioned : kUsedFirst);
    // Some producers free whatever name it has.
    PyCapsule_SetDestructor(capsule_.ptr(), nullptr);
    return owner;
  }

 private:
  static constexpr const char* kFirst = "dltensor";
  static constexpr const char* kVersioned = "dltensor_versioned";
  static constexpr const char* kUsedFirst = "used_dltensor";
  static constexpr const char* kUsedVersioned = "used_dltensor_versioned";
  nb::object capsule_;
  DlVersioned* versioned_ = nullptr;
  DlTensor* first_ = nullptr;
  bool taken_ = false;
};

nb::dlpack::dtype ToDlpack(DType t) { return {CodeOf(t), static_cast<uint8_t>(SizeOf(t) * 8), 1}; }

// The consumer takes a form that has the flag.
bool SaysReadOnly(const nb::kwargs& options) {
  if (!options.contains("max_version")) return false;
  const nb::object version = options["max_version"];
  if (!PyTuple_Check(version.ptr()) || PyTuple_GET_SIZE(version.ptr()) != 2) return false;
  const long major = PyLong_AsLong(PyTuple_GET_ITEM(version.ptr(), 0));
  if (major == -1 && PyErr_Occurred() != nullptr) PyErr_Clear();
  return major >= static_cast<long>(kDlMajor);
}

}  // namespace

Taken TakeDlpack(nb::handle object, const std::string& name, Tensor* out) {
  if (PyCapsule_CheckExact(object.ptr()) == 0 &&
      !PyObject_HasAttrString(object.ptr(), "__dlpack__"))
    return Taken::kNo;
  DlCapsule capsule(object);
  if (capsule.was_taken())
    WrongValue(name, "its DLPack capsule was taken before, and can be taken once");
  if (!capsule.valid()) return Taken::kNo;
  if (capsule.is_newer()) WrongValue(name, "its DLPack capsule is of a later version");
  const nb::dlpack::dltensor& t = capsule.tensor();
  if (t.device.device_type != nb::device::cpu::value)
    WrongValue(name, "lies on another device; heddle takes memory of the CPU");
  const DType dtype = FromDlpack(t.dtype);
  if (dtype == DType::kUnknown) return Taken::kNeedsCopy;
  if (t.ndim < 0 || t.ndim > Shape::kMaxRank || (t.ndim > 0 && t.shape == nullptr))
    WrongValue(name, "has rank " + std::to_string(t.ndim) + "; at most " +
                         std::to_string(Shape::kMaxRank) + " dimensions are supported");
  const auto size = static_cast<int64_t>(SizeOf(dtype));
  int64_t bytes = size;
  for (int i = 0; i < t.ndim; ++i)
    if (t.shape[i] < 0 || __builtin_mul_overflow(bytes, std::max<int64_t>(t.shape[i], 1), &bytes))
      WrongValue(name, "has sizes that no memory holds");
  const bool empty = std::count(t.shape, t.shape + t.ndim, 0) > 0;
  // Strides of no step - an empty array's, a dimension of one - may be anything.
  std::vector<int64_t> strides;
  for (int i = 0; i < t.ndim && t.strides != nullptr; ++i) {
    int64_t step = 0, reach = 0;
    const int64_t steps = empty ? 0 : t.shape[i] - 1;
    if (steps > 0 && (__builtin_mul_overflow(t.strides[i], size, &step) ||
                      __builtin_mul_overflow(step, steps, &reach)))
      WrongValue(name, "has strides that no memory holds");
    strides.push_back(step);
  }
  static std::byte nothing[8];
  Lent lent{.data = t.data == nullptr ? nothing : static_cast<std::byte*>(t.data) + t.byte_offset,
            .dtype = dtype,
            .rank = t.ndim,
            .dims = t.shape,
            .byte_strides = t.strides == nullptr ? nullptr : strides.data(),
            .read_only = capsule.read_only()};
  if (t.data == nullptr && !empty) WrongValue(name, "its DLPack capsule holds no memory");
  // Tried with nobody to give back to, since the capsule keeps what cannot be used.
  if (!BorrowMemory(
          lent, [] {}, out))
    return Taken::kNeedsCopy;
  PyObject* const owner = capsule.Take().release().ptr();
  BorrowMemory(
      lent, [owner] { ReturnLoan(owner); }, out);
  return Taken::kYes;
}

nb::object ExportDlpack(nb::pointer_and_handle<Tensor> self, nb::kwargs options) {
  const Tensor& t = *self.p;
  if (!t.initialized() || !t.is_contiguous()) throw nb::buffer_error("the tensor holds no memory");
  std::vector<size_t> shape;
  for (int64_t d : t.shape()) shape.push_back(static_cast<size_t>(d));
  const auto export_as = [&](auto* kind) {
    using Array = std::remove_pointer_t<decltype(kind)>;
    return nb::cast(Array(const_cast<void*>(t.raw()), shape.size(), shape.data(), self.h, nullptr,
                          ToDlpack(t.dtype()), nb::device::cpu::value),
                    nb::rv_policy::reference);
  };
  using Writable = nb::ndarray<nb::array_api>;
  using ReadOnly = nb::ndarray<nb::array_api, nb::ro>;
  const bool read_only = IsReadOnly(t);
  if (read_only && !SaysReadOnly(options))
    throw nb::buffer_error(
        "the tensor's memory is read-only, which DLPack says from version 1 on: max_version=(1, 0) "
        "is needed");
  const nb::object exported = read_only ? export_as(static_cast<ReadOnly*>(nullptr))
                                        : export_as(static_cast<Writable*>(nullptr));
  return nb::getattr(exported, "__dlpack__")(**options);
}

}  // namespace heddle::python
