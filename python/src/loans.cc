#include "python/src/loans.h"

#include <pthread.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "core/thread_annotations.h"
#include "heddle/read_only.h"

namespace heddle::python {
namespace {

// Python objects that tensors borrowed memory from. The last owner of a tensor may be a thread
// without the GIL, or one that holds a lock which a thread with the GIL waits for; so it only
// leaves the object here, and whoever comes next with the GIL gives it back.
class Loans {
 public:
  static Loans& Instance() {
    // Outlives every tensor. A child of fork() may find the lock held by a thread that it has not.
    static auto* loans = [] {
      auto* const made = new Loans;
      ::pthread_atfork([] { Instance().Lock(); }, [] { Instance().Unlock(); },
                       [] { Instance().Unlock(); });
      return made;
    }();
    return *loans;
  }
  void Return(Py_buffer* view) {
    MutexLock lock(mutex_);
    views_.push_back(view);
  }
  void Return(PyObject* object) {
    MutexLock lock(mutex_);
    objects_.push_back(object);
  }
  // With the GIL. What is freed may run any code, so not under the lock.
  void Settle() {
    std::vector<Py_buffer*> views;
    std::vector<PyObject*> objects;
    {
      MutexLock lock(mutex_);
      views.swap(views_);
      objects.swap(objects_);
    }
    for (Py_buffer* view : views) {
      PyBuffer_Release(view);
      delete view;
    }
    for (PyObject* object : objects) Py_DECREF(object);
  }

 private:
  // The mutex is held from before a fork until after it, which the analysis cannot follow.
  void Lock() HEDDLE_NO_THREAD_SAFETY_ANALYSIS { mutex_.lock(); }
  void Unlock() HEDDLE_NO_THREAD_SAFETY_ANALYSIS { mutex_.unlock(); }

  Mutex mutex_;
  std::vector<Py_buffer*> views_ HEDDLE_GUARDED_BY(mutex_);
  std::vector<PyObject*> objects_ HEDDLE_GUARDED_BY(mutex_);
};

}  // namespace

bool BorrowMemory(const Lent& lent, std::function<void()> release, Tensor* out) {
  const auto size = static_cast<int64_t>(SizeOf(lent.dtype));
  if (lent.rank > Shape::kMaxRank ||
      reinterpret_cast<uintptr_t>(lent.data) % std::min<int64_t>(size, 8) != 0)
    return false;
  const Shape shape(std::span<const int64_t>(lent.dims, static_cast<size_t>(lent.rank)));
  bool dense = true;
  int64_t step = size;
  for (int i = lent.rank - 1; i >= 0; --i) {
    if (lent.byte_strides != nullptr && lent.dims[i] > 1 && lent.byte_strides[i] != step)
      dense = false;
    step *= lent.dims[i];
  }
  Tensor made;
  if (dense || step == 0) {
    made = Tensor::Wrap(lent.data, lent.dtype, shape);
  } else {
    std::vector<int64_t> strides;
    for (int i = 0; i < lent.rank; ++i) {
      if (lent.byte_strides[i] % size != 0) return false;
      strides.push_back(lent.byte_strides[i] / size);
    }
    made = Tensor::WrapStrided(lent.data, lent.dtype, shape, std::move(strides));
  }
  made.Bind(lent.read_only ? WrapReadOnly(lent.data, made.bytes(), std::move(release))
                           : BufferRef::Wrap(lent.data, made.bytes(), std::move(release)));
  *out = std::move(made);
  return true;
}

void ReturnLoan(PyObject* object) { Loans::Instance().Return(object); }
void ReturnLoan(Py_buffer* view) { Loans::Instance().Return(view); }
void SettleLoans() { Loans::Instance().Settle(); }

void WrongValue(const std::string& name, const std::string& why) {
  PyErr_SetString(PyExc_ValueError, ("'" + name + "': " + why).c_str());
  throw nb::python_error();
}

}  // namespace heddle::python
