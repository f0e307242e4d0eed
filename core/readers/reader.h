// Reader: where operator `read` gets its batches from. A variable of kind READER holds one, as a
// Value of kind kOther.
//
// Threads: all methods from any thread; each batch goes to one caller of Next.
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
  // The next batch; nullopt: the data are at their end. Arguments: as for ReaderQueue::Pop.
  virtual Result<std::optional<Batch>> Next(const std::function<Status()>& interrupted,
                                            size_t* generation = nullptr) = 0;
  // The queue that the batches come from.
  virtual const std::shared_ptr<ReaderQueue>& queue() const = 0;
  // The reader that this one takes batches of ahead; null: it takes none.
  virtual const Reader* source() const { return nullptr; }
};

// The dtype and the shape that one tensor of a batch must have.
struct ReaderSlot {
  DType dtype = DType::kUnknown;   // kUnknown: any
  Shape shape = Shape::Unknown();  // -1: any length
};

// Gives the queue's batches; those that are not as `slots` say (empty: anything) are errors.
std::shared_ptr<Reader> NewQueueReader(std::shared_ptr<ReaderQueue> queue,
                                       std::vector<ReaderSlot> slots);
// Takes up to two batches from `reader` ahead of being asked, on a thread of its own, and makes
// their tensors contiguous.
std::shared_ptr<Reader> NewBufferedReader(std::shared_ptr<Reader> reader);

// The reader, or the queue, that a variable holds; null: none.
std::shared_ptr<Reader> ReaderOf(const Value* value);
std::shared_ptr<ReaderQueue> QueueOf(const Value* value);

Status EndOfData();

}  // namespace heddle
