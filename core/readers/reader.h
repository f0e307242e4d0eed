// Reader: the source of the batches of operator `read`. A variable of kind READER holds one, as a
// Value of kind kOther.
//
// Threads: all methods may be called from any thread; each batch goes to one caller of Next.
#pragma once

#include <any>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heddle/reader_queue.h"

namespace heddle {

class Reader {
 public:
  using Batch = ReaderQueue::Batch;
  virtual ~Reader() = default;
  // The next batch; nullopt: the end of the data. Arguments: as for ReaderQueue::Pop.
  virtual Result<std::optional<Batch>> Next(const std::function<Status()>& interrupted,
                                            size_t* generation = nullptr) = 0;
  // The queue from which the batches come.
  virtual const std::shared_ptr<ReaderQueue>& queue() const = 0;
  // The reader from which this one takes batches in advance; null: none.
  virtual const Reader* source() const { return nullptr; }
};

// The required dtype and shape of one tensor of a batch.
struct ReaderSlot {
  DType dtype = DType::kUnknown;   // kUnknown: any
  Shape shape = Shape::Unknown();  // -1: any length
};

// A reader of a queue; batches that do not match `slots` (empty: anything) are errors.
std::shared_ptr<Reader> NewQueueReader(std::shared_ptr<ReaderQueue> queue,
                                       std::vector<ReaderSlot> slots);
// A reader that takes up to two batches from `reader` in advance, on a thread of its own, and makes
// their tensors contiguous.
std::shared_ptr<Reader> NewBufferedReader(std::shared_ptr<Reader> reader);

// The reader, or the queue, in a variable's value; null: none.
std::shared_ptr<Reader> ReaderOf(const Value* value);
std::shared_ptr<ReaderQueue> QueueOf(const Value* value);

Status EndOfData();

}  // namespace heddle
