// Memory whose contents are made when somebody needs them: parameters that stay in their file, and
// constants computed from such. Code that only makes a copy of its own (packed weights) borrows the
// contents meanwhile (BorrowedContents, BorrowedStretches); all other code brings them in for good
// (MakeResident).
//
// Until then there is an address, by which packed copies are found, and no memory: touching it ends
// the process. Large contents that lie aligned in a file are mapped when they are brought in: if
// the file is made shorter afterwards, touching what is gone ends the process, too (SIGBUS), and
// what is written to the file in place may show. There is no guard against that: a look at the
// file's size before each run would still miss a change during the run, and a handler of SIGBUS
// belongs to the whole process, not to a library in it. A file that takes the name of this one does
// no harm.
//
// Scope::Find brings in what it finds, and a plan what its instructions read; only kernels that
// read constants while they are prepared (PrepareContext::ConstIn), passes, and code that comes by
// tensors of a scope in other ways have to know of this.
//
// Ownership: like any Buffer; holds its `contents` as long as it lives. Threads: any.
#pragma once

#include <functional>
#include <memory>

#include "core/memory/contents_origin.h"
#include "heddle/status.h"
#include "heddle/tensor.h"

namespace heddle {

// Writes bytes [begin, end) of a buffer to `to`: whole elements. Called any number of times, by any
// threads, always with the same result; an error leaves something in between. May throw
// std::bad_alloc.
using MakeContents = std::function<Status(void* to, size_t begin, size_t end)>;

// Contents of this size or larger that lie in a file are mapped and not copied: only the pages that
// are touched are read. Smaller contents gain more from huge pages, which mapped files have not.
inline constexpr size_t kLeastMapped = 64 << 20;

// `where`: the contents lie there byte for byte. An empty reference when there are no addresses
// left.
BufferRef MakeLazyBuffer(size_t bytes, MakeContents contents, ContentsOrigin origin = {},
                         FileStretch where = {});

// Small contents side by side, read ahead of need: one read of them all costs less than a read for
// each. They wait in memory until DropWaiting. Contents that were brought in by then stay; the
// others keep their addresses and lose their memory.
//
// Ownership: the memory lives as long as one of the buffers. Threads: one may Add; any may use
// buffers.
class LazyShelf {
 public:
  // Writes `bytes` bytes from `place` on, a number that Add was given or one within such contents,
  // to `to`. Called like MakeContents.
  using ReadAgain = std::function<Status(void* to, size_t place, size_t bytes)>;

  // For so many bytes in all, each buffer's rounded up to 64. `again` is for what has been dropped.
  LazyShelf(size_t bytes, ReadAgain again);
  // A buffer as MakeLazyBuffer's, whose contents the caller writes to its memory before anybody
  // else comes to know of it. An empty reference when the shelf is full.
  BufferRef Add(size_t bytes, size_t place);

  // The tensor's memory is on a shelf and has not been brought in.
  static bool IsWaiting(const Tensor& t);
  // If the tensor's memory is on a shelf: takes the memory of all contents of this shelf that were
  // not brought in.
  static void DropWaiting(const Tensor& t);

 private:
  friend Status MakeResident(const Tensor& t);
  friend std::shared_ptr<const MakeContents> ContentsToCome(const Tensor& t);
  class Memory;
  class Piece;
  const std::shared_ptr<Memory> memory_;
};

// True when the tensor's memory is not there.
bool IsAbsent(const Tensor& t);
// Brings it in, where it is not there. kResourceExhausted, or what `contents` says.
Status MakeResident(const Tensor& t);

// The contents of `t` as they lie in their file, at any address (elements need not be aligned):
// every call gives the same memory, of which only pages that are touched are read. Not initialised
// where the contents are there already, or nothing is gained.
Tensor ContentsInFile(const Tensor& t);

// The function that makes the contents of `t`; nullptr when they are there. `t` must be the whole
// of its memory.
std::shared_ptr<const MakeContents> ContentsToCome(const Tensor& t);
// The origin of the contents; unknown when they are there, since they may have been written to.
ContentsOrigin OriginOf(const Tensor& t);

// A tensor that holds what `source` does, in memory of its own where that is absent.
class BorrowedContents {
 public:
  // Throws std::bad_alloc, or a ContentsError with the Status of a failure.
  explicit BorrowedContents(const Tensor& source);
  const Tensor& tensor() const { return tensor_; }

 private:
  Tensor tensor_;
};

// Stretches of a tensor, one after another, in the same memory where the tensor's is absent: that
// of the largest one so far.
class BorrowedStretches {
 public:
  // Throws like BorrowedContents.
  explicit BorrowedStretches(const Tensor& source);
  // `count` elements from `first` on, in row-major order, as a tensor of rank 1 whose elements are
  // there until the next call. Throws likewise.
  const Tensor& Read(int64_t first, int64_t count);

 private:
  const Tensor source_;
  const std::shared_ptr<const MakeContents> contents_;  // nullptr: the tensor is in memory
  BufferRef room_;
  Tensor stretch_;
};

}  // namespace heddle
