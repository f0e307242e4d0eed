// Devices: what an executor may run operators on besides the host.
//
//   heddle::Executor executor({.device = *heddle::OpenDevice("emulated")});
//
// Ownership: executors share a device; it must not be asked for its figures during a run of another
// thread if they are to mean something. Threads: any number of executors may use one device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "heddle/status.h"

namespace heddle {

class Device;

// An accelerator that is none: host threads with an address space of their own, which no other code
// can read, work on queues of tasks. For programs it behaves as one: copies and kernels are
// asynchronous, streams know nothing of each other but by events.
struct EmulatedOptions {
  int number = 0;  // see OpenDevice
  size_t memory_bytes = size_t{4} << 30;
  // Added to every kernel and every copy; jitter: up to as much again, drawn from `seed`.
  int64_t kernel_delay_ns = 0, copy_delay_ns = 0, jitter_ns = 0;
  uint64_t seed = 0;
  // The number of kernels and copies executed at a time; 0: one of each stream. When one has ended,
  // the next is of the stream with the least priority.
  int units = 0;
  // It and other emulated devices of which the same is said read each other's memory.
  bool peers = true;
  // No threads: a task runs when the host, or a stream the host waits for, cannot go on without it,
  // and not before. Whatever no event orders then goes wrong, every time. For tests.
  bool lazy = false;
  // The fail_call-th call (from 1) of the device that can fail does fail: an allocation finds no
  // memory, a copy or kernel ends in an error, anything else is refused. 0: none.
  int64_t fail_call = 0;
  // It is the device that is lost then: that call and all later ones fail.
  bool lost = false;
  // The ignore_wait-th wait for an event (from 1), of a stream or of the host, does not wait; when
  // the device is lazy, that stream is not any more. 0: none.
  int64_t ignore_wait = 0;
};
std::shared_ptr<Device> NewEmulatedDevice(const EmulatedOptions& options = {});

// The figures of an emulated device, for tests: nothing may be left when its users are gone.
struct EmulatedCounts {
  int64_t calls = 0;                                             // that can fail
  int64_t allocations = 0, streams = 0, events = 0, graphs = 0;  // alive
  size_t bytes = 0, peak_bytes = 0;
  // So far; kernels and copies of a captured graph count whenever it is replayed. pageable_copies:
  // those between the device and host memory that it did not allocate.
  // peer_copies: of the copies, those out of another device's memory.
  int64_t kernels = 0, copies = 0, pageable_copies = 0, peer_copies = 0;
  int64_t records = 0, waits = 0, replays = 0;
};
EmulatedCounts CountsOf(const Device& emulated);

struct CudaOptions {
  // Products take their factors in TF32, ten bits of fraction instead of 23: several times as fast.
  bool tf32 = false;
};

// A device by kind and number, 0 where none is given: "emulated", "emulated:1", or "cuda:0" where
// heddle was built with CUDA and there is a card. Each emulated device is a new one, whatever its
// number. `cuda` is for CUDA alone.
Result<std::shared_ptr<Device>> OpenDevice(const std::string& name, const CudaOptions& cuda = {});
// The devices of a list with commas between, as in "emulated:0,emulated:1"; "cpu": none.
Result<std::vector<std::shared_ptr<Device>>> OpenDevices(const std::string& places,
                                                         const CudaOptions& cuda = {});

}  // namespace heddle
