// Memory of somebody else: what heddle must not write to, nor let its callers write to, and what it
// does not keep alive.
//
// The property belongs to the memory: every tensor that shares it is read-only, including an output
// of a run. Runs never write to feeds; a scope takes a copy, and so does an operator that reads a
// queue. Tensor::mutable_raw() does not check it.
#pragma once

#include <cstddef>
#include <functional>

#include "heddle/tensor.h"

namespace heddle {

// As BufferRef::Wrap, for read-only memory. `release` may be empty; it is called once, on the
// thread of the last owner. Throws std::bad_alloc, without having called it.
BufferRef WrapReadOnly(const void* data, size_t bytes, std::function<void()> release);

// Whether the tensor's memory is read-only. Threads: any.
bool IsReadOnly(const Tensor& t);

// The memory was wrapped, or wrapped read-only, without a `release`: whoever wrapped it keeps it
// alive, and the tensor does not. Threads: any.
bool IsBorrowed(const Tensor& t);

}  // namespace heddle
