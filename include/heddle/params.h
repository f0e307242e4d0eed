// Parameters and optimizer state in Paddle's files.
//
// Layouts: *combined* (`.pdiparams`, one record after another, no names), *separate* (a directory
// with one such record per variable, under its name) and, for reading, *pickled* (`.pdparams`,
// `.pdopt`). A pickle is never executed: numbers, texts, lists, dicts and plain arrays are read,
// anything else is an error that names it.
//
// Errors: each names the file and the variable, and says what was expected and what was found.
// kNotFound: no such file, or no value to save; kDataLoss: truncated or damaged; kInvalidArgument:
// not the dtype or shape that the program declares; kUnimplemented: something else in a pickle;
// kResourceExhausted: the disk or the memory is full. A load that fails changes nothing in the
// scope; a save that fails leaves the old file. Threads: any; no run may write to the scope
// meanwhile.
#pragma once

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "heddle/program.h"
#include "heddle/scope.h"
#include "heddle/status.h"
#include "heddle/tensor.h"

namespace heddle {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

enum class ParameterReading {
  kNow,
  // Large weights of a combined file stay in it until a plan or Scope::Find needs them; those of
  // which plans only make copies in their own order are never in memory as a whole. The file stays
  // open. It may be removed or replaced (as saving does), but not written in place: then contents
  // that have not been read yet are kDataLoss for a run and for FindVariable, and Scope::Find does
  // not find them.
  kWhenNeeded,
};

// Reads the persistable variables of `program` into `scope`: all of them from a combined file or a
// directory; from a pickle those that it has (the others must have a value already).
Status LoadParameters(const Program& program, const std::string& path, Scope& scope,
                      ParameterReading reading = ParameterReading::kNow);

// The variable that Scope::Find finds; nullptr: there is none. kDataLoss and other errors, which
// name the variable: its contents cannot be read from its file.
Result<Value*> FindVariable(const Scope& scope, const std::string& name);

// Holds the write_mutex of a scope; to be destroyed on the thread that made it.
class ScopeWrites {
 public:
  ScopeWrites(ScopeWrites&& other) noexcept : mutex_(std::exchange(other.mutex_, nullptr)) {}
  ScopeWrites& operator=(ScopeWrites&&) = delete;
  ~ScopeWrites();

 private:
  friend Result<ScopeWrites> HoldWrites(Scope& scope);
  explicit ScopeWrites(std::mutex& mutex);
  std::mutex* mutex_;
};

// Waits for runs that write to the scope, within the calling thread's limits (heddle/limits.h). An
// error inside a call of the host (HostCalls) made by work that holds the mutex on this thread: it
// would wait for itself.
Result<ScopeWrites> HoldWrites(Scope& scope);

// Writes all persistable variables of `program`, combined, sorted by name. At any moment `path` is
// the whole old or the whole new file, even if the process is killed.
Status SaveParameters(const Program& program, const Scope& scope, const std::string& path);
// Writes one file per variable to `directory`, which is made if it does not exist. Each file is
// replaced as by SaveParameters.
Status SaveParametersSeparately(const Program& program, const Scope& scope,
                                const std::string& directory);

// All records of a combined file, in order.
Result<std::vector<Tensor>> ReadTensors(const std::string& path);
// Writes these tensors to a combined file in this order, replaced as a whole. The names are for
// error messages.
Status WriteTensors(const std::string& path, const NamedTensors& tensors);

// The arrays of a pickled state dict, under the names of variables if the file gives those for its
// structured names ("linear_0.weight").
Result<NamedTensors> ReadPickledTensors(const std::string& path);

}  // namespace heddle
