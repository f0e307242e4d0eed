// Reading and writing tensors as NumPy's .npy and .npz files.
//
// Little-endian data of all of heddle's types. bfloat16, which NumPy does not have, is stored as
// its 16 bits in `uint16`, so a `uint16` array is read as bfloat16; `uint32` and `uint64` are read
// as the bits of an int32 and an int64. Nothing here trusts a file: lengths are checked against the
// file's size before memory is taken for them.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/status.h"
#include "heddle/tensor.h"

namespace heddle::tools {

// Whether the path names a pipe, whose bytes come once.
bool IsPipe(const std::string& path);
// All that comes through it until its end, which is waited for.
Result<std::string> Receive(const std::string& path);

// Reads format 1, 2 or 3, from a pipe, too. An array in Fortran order is transposed to row-major
// order. `type`: becomes the name of an unsigned type of more than 8 bits, where the array is of
// one.
Result<Tensor> ReadNpy(const std::string& path, std::string* type = nullptr);
// The same from memory. `name` appears in messages.
Result<Tensor> ParseNpy(std::string_view bytes, const std::string& name);

// Writes format 1, row-major. A strided tensor is written as the row-major copy of itself.
// `type`: "uint16", "uint32" or "uint64", where the tensor holds these as heddle::InputTypes says;
// empty: its dtype's.
Status WriteNpy(const std::string& path, const Tensor& tensor, const std::string& type = "");
// The bytes of such a file.
Result<std::string> NpyBytes(const Tensor& tensor, const std::string& type = "");
// An array of such a type as it was read, as heddle holds it. Others stay as they are.
Tensor Widened(const Tensor& read, const std::string& type);

// The arrays of a .npz archive, from a pipe, too, in the archive's order, without the ".npy" of
// their names. Members may be stored or, in a build with zlib, deflated.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;
Result<NamedTensors> ReadNpz(const std::string& path);
// The bytes of an archive of arrays, not deflated.
Result<std::string> PackNpz(const NamedTensors& arrays);
// The same from memory. `name` appears in messages.
Result<NamedTensors> ParseNpz(std::string_view bytes, const std::string& name);

}  // namespace heddle::tools
