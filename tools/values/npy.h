// Reading and writing tensors as NumPy's .npy and .npz files.
//
// All of heddle's types in either byte order, and texts (`S`, `U`, arrays of Python objects).
// bfloat16, which NumPy does not have, is stored as its 16 bits in `uint16`, so a `uint16` array is
// read as bfloat16; `uint32` and `uint64` are read as the bits of an int32 and an int64. Whoever
// knows what the array is for makes of it what is meant (tools/values/element_types.h). Nothing
// here trusts a file: lengths are checked against the file's size before memory is taken for them.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/status.h"
#include "heddle/string_tensor.h"
#include "heddle/tensor.h"
#include "heddle/value.h"

namespace heddle::tools {

// An array as a file has it.
struct NpyArray {
  Value value;  // a tensor, or a StringTensor
  // NumPy's name of its element type; "string" for texts, "void1" and "void2" for elements of 8 and
  // 16 bits whose type NumPy does not know.
  std::string type;
};

// The error for a file that begins as no `what` does: "NAME: not a .npy file, but an HTML page".
Status NotA(const std::string& what, const std::string& name, std::string_view begin);

// Whether the path names a pipe, whose bytes come once.
bool IsPipe(const std::string& path);
// All that comes through it until its end, which is waited for.
Result<std::string> Receive(const std::string& path);

// Reads format 1, 2 or 3, from a pipe as well. An array in Fortran order is transposed to row-major
// order.
Result<NpyArray> ReadNpyArray(const std::string& path);
// The same from memory. `name` appears in messages.
Result<NpyArray> ParseNpyArray(std::string_view bytes, const std::string& name);

// The same for arrays of numbers; kUnimplemented for others.
Result<Tensor> ReadNpy(const std::string& path);
Result<Tensor> ParseNpy(std::string_view bytes, const std::string& name);

// Writes format 1, row-major. A strided tensor is written as the row-major copy of itself.
// `type`: "uint16", "uint32" or "uint64", where the tensor holds these as heddle::InputTypes says;
// empty: its dtype's.
Status WriteNpy(const std::string& path, const Tensor& tensor, const std::string& type = "");
// The bytes of such a file.
Result<std::string> NpyBytes(const Tensor& tensor, const std::string& type = "");
// The .npy file of texts: `U`, or `S` where one of them is no UTF-8. kUnimplemented: one ends with
// a NUL, which NumPy's types would drop.
Result<std::string> NpyBytes(const StringTensor& strings, const std::string& name);

// The arrays of a .npz archive, from a pipe, too, in the archive's order, without the ".npy" of
// their names. Members may be stored or, in a build with zlib, deflated. kResourceExhausted: they
// would take more than `most` bytes, 0: more than 256 MiB and than 100 times the archive's.
using NamedArrays = std::vector<std::pair<std::string, NpyArray>>;
Result<NamedArrays> ReadNpzArrays(const std::string& path, uint64_t most = 0);
Result<NamedArrays> ParseNpzArrays(std::string_view bytes, const std::string& name,
                                   uint64_t most = 0);

// The same for archives of numbers, with the same `most`; kUnimplemented for others.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;
Result<NamedTensors> ReadNpz(const std::string& path, uint64_t most = 0);
// The same from memory. `name` appears in messages.
Result<NamedTensors> ParseNpz(std::string_view bytes, const std::string& name);

// The bytes of an archive of arrays, not deflated.
Result<std::string> PackNpz(const NamedTensors& arrays);

}  // namespace heddle::tools
