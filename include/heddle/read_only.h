// Memory of somebody else: what heddle must not write to, nor let its callers write to, and what it
// does not keep alive.
//
// The right stays with the memory: every tensor that shares it is read-only, an output of a run
// included. Runs never write to feeds, a scope takes a copy, and so does an operator that reads a
// queue. Tensor::mutable_raw() itself asks nobody.
#pragma once

#include <cstddef>
#include <functional>

#include "heddle/tensor.h"

namespace heddle {

// As BufferRef::Wrap, of memory that stays as it is. `release` may be empty; the last owner's
// thread calls it once. Throws std::bad_alloc, and has then not called it.
BufferRef WrapReadOnly(const void* data, size_t bytes, std::function<void()> release);

// The tensor's memory may not be written to. Threads: any.
bool IsReadOnly(const Tensor& t);

// The memory was wrapped, or wrapped read-only, without a `release`: whoever wrapped it keeps it
// alive, and the tensor does not. Threads: any.
bool IsBorrowed(const Tensor& t);

}  // namespace heddle
