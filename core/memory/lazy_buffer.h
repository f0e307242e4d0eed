// Lazy buffers: memory whose contents are made at first use: parameters that stay in their file,
// and constants computed from such. Code that only makes a copy of its own (packed weights) borrows
// the contents (BorrowedContents, BorrowedStretches); all other code makes them permanent
// (MakeResident).
//
// Until then there is an address, by which packed copies are found, but no memory: touching it ends
// the process. Large contents that are aligned in a file are mapped when they become resident: if
// the file is truncated afterwards, touching the missing part ends the process too (SIGBUS), and
// writes to the file in place may become visible. There is no guard against that: a check of the
// file's size before each run would still miss a change during the run, and a handler of SIGBUS
// belongs to the whole process, not to a library in it. Replacing the file by another one does no
// harm.
//
// Scope::Find makes what it finds resident, and a plan what its instructions read. Only kernels
// that read constants while they are prepared (PrepareContext::ConstIn), passes, and code that gets
// tensors of a scope in other ways need to know of this.
//
// Ownership: like any Buffer; keeps its `contents` as long as it lives. Threads: any.
#pragma once

#include <functional>
#include <memory>

#include "core/memory/contents_origin.h"
#include "heddle/status.h"
#include "heddle/tensor.h"

namespace heddle {

// Writes bytes [begin, end) of a buffer, whole elements, to `to`. May be called any number of
// times, on any threads, and always gives the same result; after an error the bytes are undefined.
// May throw std::bad_alloc.
using MakeContents = std::function<Status(void* to, size_t begin, size_t end)>;

// Contents of at least this size in a file are mapped and not copied: only touched pages are read.
// Smaller contents gain more from huge pages, which mapped files do not have.
inline constexpr size_t kLeastMapped = 64 << 20;

// Makes a lazy buffer. `where`: a position in a file with these contents. An empty reference if no
// addresses are left.
BufferRef MakeLazyBuffer(size_t bytes, MakeContents contents, ContentsOrigin origin = {},
                         FileStretch where = {});

// LazyShelf: small adjacent contents that are read in advance, since one read of all costs less
// than a read for each. They stay in memory until DropWaiting. Contents that are resident by then
// stay; the others keep their addresses and lose their memory.
//
// Ownership: the memory lives as long as one of the buffers. Threads: one at a time may Add; any
// may use buffers.
class LazyShelf {
 public:
  // Writes `bytes` bytes to `to`, from `place` on: a number that Add was given, or one inside such
  // contents. Called like MakeContents.
  using ReadAgain = std::function<Status(void* to, size_t place, size_t bytes)>;

  // `bytes`: the total size, with each buffer rounded up to 64. `again` reads contents that have
  // been dropped.
  LazyShelf(size_t bytes, ReadAgain again);
  // A buffer like those of MakeLazyBuffer. The caller must write the contents to its memory before
  // any other code gets it. An empty reference if the shelf is full.
  BufferRef Add(size_t bytes, size_t place);

  // Whether the tensor's memory is on a shelf and not resident.
  static bool IsWaiting(const Tensor& t);
  // If the tensor's memory is on a shelf: frees the memory of all contents of this shelf that are
  // not resident.
  static void DropWaiting(const Tensor& t);

 private:
  friend Status MakeResident(const Tensor& t);
  friend std::shared_ptr<const MakeContents> ContentsToCome(const Tensor& t);
  class Memory;
  class Piece;
  const std::shared_ptr<Memory> memory_;
};

// Whether the tensor's contents are not in memory.
bool IsAbsent(const Tensor& t);
// Makes the contents resident. kResourceExhausted, or the error of `contents`.
Status MakeResident(const Tensor& t);

// The contents of `t` in their file, at any address (elements need not be aligned): every call
// returns the same memory, of which only touched pages are read. Not initialised if the contents
// are in memory already, or if nothing would be gained.
Tensor ContentsInFile(const Tensor& t);

// The function that makes the contents of `t`; nullptr if they are in memory. Precondition: `t` is
// the whole of its memory.
std::shared_ptr<const MakeContents> ContentsToCome(const Tensor& t);
// The origin of the contents; unknown if they are in memory, since they may have been written to.
ContentsOrigin OriginOf(const Tensor& t);

// BorrowedContents: a tensor with the contents of `source`, in memory of its own if that is absent.
class BorrowedContents {
 public:
  // Throws std::bad_alloc, or a ContentsError with the Status of a failure.
  explicit BorrowedContents(const Tensor& source);
  const Tensor& tensor() const { return tensor_; }

 private:
  Tensor tensor_;
};

// BorrowedStretches: ranges of a tensor, one after another. If the tensor is absent they share
// memory of the size of the largest so far.
class BorrowedStretches {
 public:
  // Throws like BorrowedContents.
  explicit BorrowedStretches(const Tensor& source);
  // `count` elements from `first` on, in row-major order, as a tensor of rank 1 that is valid until
  // the next call. Throws likewise.
  const Tensor& Read(int64_t first, int64_t count);

 private:
  const Tensor source_;
  const std::shared_ptr<const MakeContents> contents_;  // nullptr: the tensor is in memory
  BufferRef room_;
  Tensor stretch_;
};

}  // namespace heddle
