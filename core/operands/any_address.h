// Operands that are read bytewise.
#pragma once

namespace heddle {

// A flag of input slots, besides SlotFlags: the kernel copies elements out of the operand by
// memcpy, so they need not be aligned, and mostly copies few of many. A large constant is then used
// in its file (ContentsInFile, core/memory/lazy_buffer.h), and kernels that pack one read it as
// BorrowedContents do, whatever its dtype.
inline constexpr unsigned kAnyAddress = 4096;

}  // namespace heddle
