// Devices: accelerators on which an executor may run operators, besides the host.
//
//   heddle::Executor executor({.device = *heddle::OpenDevice("emulated")});
//
// Ownership: executors share a device. Threads: any number of executors may use one device; its
// counts have a meaning only while no other thread runs on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "heddle/status.h"

namespace heddle {

class Device;

// An emulated accelerator: host threads work on queues of tasks, in an address space that no other
// code can read. Programs see a device: copies and kernels are asynchronous, and streams are
// ordered only by events.
struct EmulatedOptions {
  int number = 0;  // see OpenDevice
  size_t memory_bytes = size_t{4} << 30;
  // Delays, in ns, of every kernel and every copy; `jitter_ns`: the most that is added to them,
  // drawn from `seed`.
  int64_t kernel_delay_ns = 0, copy_delay_ns = 0, jitter_ns = 0;
  uint64_t seed = 0;
  // The number of kernels and copies that execute at a time; 0: one per stream. When one ends, the
  // next comes from the stream with the least priority.
  int units = 0;
  // Whether this device and other emulated devices with `peers` can read each other's memory.
  bool peers = true;
  // For tests: without threads; a task runs as late as possible, when the host, or a stream that
  // the host waits for, cannot continue without it. A missing event then always gives wrong
  // results.
  bool lazy = false;
  // Number of the call, from 1 and of those that can fail, that does fail: an allocation finds no
  // memory, a copy or a kernel ends in an error, any other call is refused. 0: none.
  int64_t fail_call = 0;
  // Whether the device is then lost: this call and all later ones fail.
  bool lost = false;
  // Number of the wait for an event, from 1, by a stream or by the host, that does not wait; on a
  // lazy device that stream is not lazy any more. 0: none.
  int64_t ignore_wait = 0;
};
std::shared_ptr<Device> NewEmulatedDevice(const EmulatedOptions& options = {});

// Counts of an emulated device, for tests: nothing may be alive when its users are gone.
struct EmulatedCounts {
  int64_t calls = 0;                                             // calls that can fail
  int64_t allocations = 0, streams = 0, events = 0, graphs = 0;  // alive
  size_t bytes = 0, peak_bytes = 0;
  // Totals. Kernels and copies of a captured graph count at each replay. pageable_copies: copies
  // between the device and host memory that the device did not allocate. peer_copies: copies from
  // another device's memory.
  int64_t kernels = 0, copies = 0, pageable_copies = 0, peer_copies = 0;
  int64_t records = 0, waits = 0, replays = 0;
};
EmulatedCounts CountsOf(const Device& emulated);

struct CudaOptions {
  // Products round their operands to TF32, with ten bits of fraction instead of 23, and are several
  // times as fast.
  bool tf32 = false;
};

// Opens a device by kind and number, 0 by default: "emulated", "emulated:1", or "cuda:0" if heddle
// was built with CUDA and there is a card. Each emulated device is a new one, whatever its number.
// `cuda` applies to CUDA alone. kInvalidArgument: there is no such device; kUnimplemented: heddle
// was built without CUDA, or has no support for that card.
Result<std::shared_ptr<Device>> OpenDevice(const std::string& name, const CudaOptions& cuda = {});
// Opens the devices of a comma-separated list, such as "emulated:0,emulated:1"; "cpu": none.
Result<std::vector<std::shared_ptr<Device>>> OpenDevices(const std::string& places,
                                                         const CudaOptions& cuda = {});

}  // namespace heddle
