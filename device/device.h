// Device: memory, streams, events and kernels of something that executes asynchronously to the
// host.
//
// A *stream* executes what is put on it one after another, while the host goes on. An *event* marks
// a point of a stream; other streams and the host can wait for it. Nothing else orders streams.
//
// Ownership: streams and events must be gone before their device. Device memory is named by
// addresses that only kernels and copies may follow; freeing it and host memory that a copy uses
// is up to the caller, who must know that nobody uses it any more. Threads: a device's methods may
// be called from any thread; those of one stream by one thread at a time, but for WaitUntilDone
// and Record. An event is recorded by one thread at a time, waited for by any. Errors: a call that
// is refused returns why. What fails on the device itself fails its stream: everything put on it
// from then on is skipped (events are still reached, and carry the failure to the streams that
// wait for them), until TakeError is asked. The first failure is kept.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel_selector.h"
#include "core/services.h"
#include "core/shape_context.h"
#include "heddle/device.h"

namespace heddle {

// One call of an operator, with operands on the device. `op` refers to them by their position in
// `operands`; outputs have their shape and memory.
struct KernelCall {
  const BoundOp* op = nullptr;  // outlives the call
  std::vector<Value> operands;
  // The host's kernel for these dtypes, for devices that use it: see device/host_kernel.h.
  std::function<Status(KernelContext&)> host_kernel;
  const KernelState* state = nullptr;  // made by its Prepare step; outlives the call
  Services* services = nullptr;        // outlives the call
  // Receives the sequence offsets that the kernel gave its operands, by position; readers must wait
  // for the call. May be empty.
  std::function<void(size_t, const LoD&)> offsets;
};

// A call of an operator at placement: the operands that the program names (HasIn, HasOut), their
// dtypes and shapes, the attributes, and contents that never change (InValue).
class CallView : public ShapeContext {
 public:
  // `known`: the frame has the dtypes and shapes of all operands, outputs included, as in every
  // run. Otherwise those of inputs may be unknown, and those of outputs are.
  CallView(const BoundOp& op, Value* const* frame, bool known)
      : ShapeContext(op, frame), known_(known) {}
  bool known() const { return known_; }
  // The dtype that chooses the kernel, see KernelKey; kUnknown when not known.
  DType key() const { return known_ ? KernelKey(op(), frame()) : DType::kUnknown; }
  // Preconditions: known(), HasOut(key, i).
  DType OutDType(Key key, int i = 0) const { return OutVar(key, i)->tensor().dtype(); }
  const Shape& OutShape(Key key, int i = 0) const { return OutVar(key, i)->tensor().shape(); }

 private:
  bool known_;
};

// A failure on a stream. `tag`: the tag of the work that failed.
struct StreamError {
  Status status;
  uint64_t tag = 0;
  uint64_t order = 0;  // grows over all streams of a device: the least is the first failure
};

class Device;

class Event {
 public:
  virtual ~Event() = default;
  // Everything before the newest Record has been done (or skipped). True before the first one.
  virtual bool Reached() const = 0;
  // Waits for that; the host may then read what was copied. An error when its stream has failed.
  virtual Status Wait() = 0;
  // The time from `earlier` to this event, in nanoseconds of the device's clock.
  // Both are timed events (Device::NewEvent) and reached; otherwise an error.
  virtual Result<int64_t> NanosecondsSince(const Event& earlier) const = 0;
};

// Captured work that can be executed any number of times: see Stream::BeginCapture. All memory that
// its calls and copies refer to must outlive it.
class Graph {
 public:
  virtual ~Graph() = default;  // nobody may be executing it
};

class Stream {
 public:
  virtual ~Stream() = default;  // waits for what is on it
  // Host memory must stay as it is until the copy is done. The host may have to wait for copies of
  // memory that is not from Device::AllocateHost.
  virtual Status CopyToDevice(void* to, const void* from, size_t bytes, uint64_t tag) = 0;
  virtual Status CopyToHost(void* to, const void* from, size_t bytes, uint64_t tag) = 0;
  virtual Status CopyOnDevice(void* to, const void* from, size_t bytes, uint64_t tag) = 0;
  // From memory of `peer`, which the stream's device can reach (Device::CanReach) and which must
  // outlive the copy. What the peer still does, the caller has waited for: events of one device
  // mean nothing to another's streams.
  virtual Status CopyFromPeer(void* to, Device& peer, const void* from, size_t bytes, uint64_t tag);
  virtual Status Fill(void* to, uint8_t byte, size_t bytes, uint64_t tag) = 0;
  virtual Status Launch(KernelCall call, uint64_t tag) = 0;
  virtual Status Record(Event& event) = 0;
  // Later work on this stream waits for the newest Record of the event so far.
  virtual Status WaitFor(Event& event) = 0;
  // Waits until everything on the stream is done. Returns the stream's failure, and keeps it.
  virtual Status Synchronize() = 0;
  // Waits until all work on the stream is done or skipped. Any thread may call it
  // while another one uses the stream.
  virtual void WaitUntilDone() = 0;
  // Returns and clears the failure; nullopt: none. Call it after Synchronize.
  virtual std::optional<StreamError> TakeError() = 0;

  // From here to EndCapture nothing is done that is put on this stream, or on streams from the time
  // on that they wait for an event recorded under the capture: it is kept, with the order that
  // streams and events give it. Meanwhile the host must not wait for any of these streams and
  // events, nor this thread allocate or free memory of the device. At EndCapture this stream must
  // have waited, directly or not, for all work of the others; they are then as before. After an
  // error nothing is kept. kUnimplemented, as here: the device captures nothing.
  virtual Status BeginCapture();
  virtual Result<std::unique_ptr<Graph>> EndCapture();
  // Puts all the captured work on the stream as one unit; a failure has the tag of the work that
  // failed. The graph must not be on another stream that is not done.
  virtual Status Replay(Graph& graph);
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const std::string& name() const = 0;  // "emulated", "cuda"
  virtual int number() const { return 0; }      // among those of its kind
  virtual size_t memory_bytes() const = 0;

  // Aligned to 256 bytes, contents undefined; kResourceExhausted when there is no room. Slow, and
  // may wait for the device: see CachingAllocator.
  virtual Result<void*> Allocate(size_t bytes) = 0;
  virtual void Free(void* memory) = 0;
  // Page-locked host memory, for fast copies.
  virtual Result<void*> AllocateHost(size_t bytes) = 0;
  virtual void FreeHost(void* memory) = 0;

  // Priority: 0, or less for work that goes first where the device has a choice.
  virtual Result<std::unique_ptr<Stream>> NewStream(int priority) = 0;
  // `timed`: for NanosecondsSince; costs more.
  virtual Result<std::unique_ptr<Event>> NewEvent(bool timed) = 0;

  // The device has a kernel for the call. Otherwise the host executes it, so that a kernel need not
  // cover every dtype, shape or optional operand.
  virtual bool HasKernel(const CallView& call) const = 0;
  // The state that the call's kernel prepares once for all its runs; nullptr: it needs none. Of
  // devices with kernels of their own. Precondition: HasKernel. Any thread.
  virtual Result<std::unique_ptr<KernelState>> Prepare(const PrepareContext& call) const;
  // Its streams can copy out of the other device's memory. Otherwise values come by way of the
  // host.
  virtual bool CanReach(const Device& other) const;
  // The device executes the host's kernels: programs are fused as for the host, and results have
  // the same bits.
  virtual bool has_host_kernels() const { return false; }
  // The device has failed; every later call fails.
  virtual bool lost() const = 0;
  // Reused memory is overwritten first, so that a read that comes too early is found.
  virtual std::optional<uint8_t> scrub() const { return std::nullopt; }
};

inline Status Stream::CopyFromPeer(void*, Device& peer, const void*, size_t, uint64_t) {
  return Status(StatusCode::kUnimplemented,
                "the device cannot read the memory of '" + peer.name() + "'");
}
inline Status Stream::BeginCapture() {
  return Status(StatusCode::kUnimplemented, "the device captures nothing");
}
inline Result<std::unique_ptr<Graph>> Stream::EndCapture() { return Stream::BeginCapture(); }
inline Status Stream::Replay(Graph&) { return Stream::BeginCapture(); }
inline Result<std::unique_ptr<KernelState>> Device::Prepare(const PrepareContext&) const {
  return std::unique_ptr<KernelState>();
}
inline bool Device::CanReach(const Device&) const { return false; }

}  // namespace heddle
