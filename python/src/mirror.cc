#include "python/src/mirror.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "python/src/arrays.h"
#include "python/src/loans.h"

namespace heddle::python {
namespace {

// Of all bytes of a small tensor, of words spread over a large one.
uint64_t FingerprintOf(const Tensor& t) {
  constexpr size_t kWords = 64;
  uint64_t hash = 0xcbf29ce484222325ull ^ t.bytes();
  const size_t words = t.bytes() / 8;
  const size_t step = words <= kWords ? 1 : words / kWords;
  const auto* at = t.data<std::byte>();
  const auto mix = [&hash](uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 32;
  };
  for (size_t i = 0; i < words; i += step) {
    uint64_t word = 0;
    std::memcpy(&word, at + i * 8, 8);
    mix(word);
  }
  uint64_t rest = 0;
  if (t.bytes() % 8 != 0) std::memcpy(&rest, at + words * 8, t.bytes() % 8);
  mix(rest);
  return hash;
}

bool IsPlain(const Value* v) {
  return v != nullptr && v->is_tensor() && v->initialized() && v->tensor().is_contiguous();
}

[[noreturn]] void WrongIndex(size_t index, size_t size) {
  throw nanobind::index_error(
      ("variable " + std::to_string(index) + " of " + std::to_string(size)).c_str());
}

}  // namespace

Mirror::Entry& Mirror::EntryOf(const std::string& name) {
  auto& entry = entries_[name];
  if (!entry) {
    entry = std::make_unique<Entry>();
    entry->name = name;
    scope_->Ensure(name);
  }
  return *entry;
}

MirrorView::MirrorView(std::shared_ptr<Mirror> mirror, const std::vector<std::string>& names)
    : mirror_(std::move(mirror)) {
  for (const std::string& name : names) uses_.push_back({&mirror_->EntryOf(name)});
}

Mirror::Entry& MirrorView::EntryAt(size_t index) const {
  if (index >= uses_.size()) WrongIndex(index, uses_.size());
  return *uses_[index].entry;
}

Value MirrorView::value(size_t index) const {
  const Value* const value = mirror_->ValueOf(EntryAt(index));
  return value != nullptr ? *value : Value();
}

void MirrorView::Adopt(size_t index, uintptr_t address, const std::string& dtype,
                       const std::vector<int64_t>& shape, nanobind::object owner) {
  Mirror::Entry& entry = EntryAt(index);
  if (DTypeNamed(dtype) == DType::kUnknown) WrongValue(entry.name, "no dtype '" + dtype + "'");
  int64_t bytes = static_cast<int64_t>(SizeOf(DTypeNamed(dtype)));
  bool fits = shape.size() <= static_cast<size_t>(Shape::kMaxRank);
  for (const int64_t d : shape)
    fits = fits && d >= 0 && !__builtin_mul_overflow(bytes, std::max<int64_t>(d, 1), &bytes);
  if (!fits) WrongValue(entry.name, "no memory has such a shape");
  if (address == 0 && std::count(shape.begin(), shape.end(), 0) == 0)
    WrongValue(entry.name, "its address is 0");
  void* data = reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
  PyObject* kept = owner.release().ptr();
  entry.shared = data;
  entry.shape = Shape(std::span<const int64_t>(shape));
  entry.dtype = DTypeNamed(dtype);
  Tensor tensor = Tensor::Wrap(data, entry.dtype, entry.shape, [kept] { ReturnLoan(kept); });
  mirror_->scope_->Set(entry.name, Value(std::move(tensor)));
  entry.has_fingerprint = false;
}

void MirrorView::Before() {
  for (Use& use : uses_) {
    Mirror::Entry& e = *use.entry;
    if (known_ && use.written) continue;
    use.version = mirror_->scope_->StampOf(e.name).version;
    const Value* const value = mirror_->ValueOf(e);
    if (!e.has_fingerprint || e.version != use.version || !IsPlain(value)) continue;
    if (FingerprintOf(value->tensor()) == e.fingerprint) continue;
    mirror_->scope_->MarkWritten(e.name);
    use.version = mirror_->scope_->StampOf(e.name).version;
    e.has_fingerprint = false;
  }
}

std::vector<size_t> MirrorView::After() {
  std::vector<size_t> moved;
  for (size_t i = 0; i < uses_.size(); ++i) {
    Use& use = uses_[i];
    Mirror::Entry& e = *use.entry;
    const Value* const value = mirror_->ValueOf(e);
    if (!IsPlain(value)) continue;
    const Tensor& now = value->tensor();
    if (now.raw() != e.shared || now.shape() != e.shape || now.dtype() != e.dtype)
      moved.push_back(i);
    if (known_ && use.written) continue;
    const uint64_t version = mirror_->scope_->StampOf(e.name).version;
    if (version != use.version) {
      use.written = true;
    } else if (!e.has_fingerprint || e.version != version) {
      e.fingerprint = FingerprintOf(now);
      e.version = version;
      e.has_fingerprint = true;
    }
  }
  known_ = true;
  return moved;
}

void BindMirror(nb::module_& module) {
  nb::class_<Mirror>(module, "Mirror")
      .def(nb::init<std::shared_ptr<Scope>>(), nb::arg("scope"))
      .def_prop_ro("scope", &Mirror::scope);
  nb::class_<MirrorView>(module, "MirrorView")
      .def(nb::init<std::shared_ptr<Mirror>, const std::vector<std::string>&>(), nb::arg("mirror"),
           nb::arg("names"))
      .def("adopt", &MirrorView::Adopt, nb::arg("index"), nb::arg("address"), nb::arg("dtype"),
           nb::arg("shape"), nb::arg("owner"))
      .def("before", &MirrorView::Before)
      .def("after", &MirrorView::After)
      .def(
          "name", [](const MirrorView& v, size_t i) { return v.name(i); }, nb::arg("index"))
      .def(
          "array", [](const MirrorView& v, size_t i) { return ToPython(v.value(i)); },
          nb::arg("index"));
}

}  // namespace heddle::python
