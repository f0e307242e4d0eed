// Calls of the host's kernels by devices that execute them (Device::has_host_kernels).
#pragma once

#include <cstddef>
#include <functional>

#include "device/device.h"

namespace heddle {

// Returns the host's address of `bytes` bytes at an address of a device. nullptr: the device has
// not given out that memory.
using ContentsOf = std::function<std::byte*(const void* address, size_t bytes)>;

// Executes call.host_kernel on the contents of the call's operands, in the caller's thread, and
// reports the outputs' sequence offsets (KernelCall::offsets). A result that the kernel leaves in
// the memory of an operand is copied to the output's own. The call stays as it is, so that it may
// be executed again. Does not throw. Threads: any, if `contents_of` may be called by any; one call
// at a time on the same memory.
Status CallHostKernel(const KernelCall& call, const ContentsOf& contents_of);

}  // namespace heddle
