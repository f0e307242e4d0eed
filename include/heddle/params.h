// Parameters and optimizer state in Paddle's files.
//
// Layouts: *combined* (`.pdiparams`, one record after another, no names), *separate* (a directory
// with one such record per variable, under its name) and, for reading, *pickled* (`.pdparams`,
// `.pdopt`). A pickle is not executed: numbers, texts, lists, dicts and plain arrays are
// understood, anything else is an error that names what was met.
//
// Errors: each names the file and the variable, and says what was expected and what was found.
// kNotFound: no such file, or no value to save; kDataLoss: cut short or damaged; kInvalidArgument:
// another dtype or shape than the program declares; kUnimplemented: something a pickle must not
// hold; kResourceExhausted: the disk or the memory is full. A load that fails changes nothing in
// the scope; a save that fails leaves the old file. Threads: any thread; a scope must not be
// written to by a run in the meantime.
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
  // Large weights of a combined file stay in it until a plan or Scope::Find needs them; those that
  // plans only make copies of, in an order of their own, are never held as a whole. The file stays
  // open. It may be removed or replaced (as saving does), but not be written to in place: what was
  // not read yet is then kDataLoss for a run and for FindVariable, and not found by Scope::Find.
  kWhenNeeded,
};

// Reads the persistable variables of `program` into `scope`: from a combined file or a directory
// all of them, from a pickle those it names (variables it does not name must have a value already).
Status LoadParameters(const Program& program, const std::string& path, Scope& scope,
                      ParameterReading reading = ParameterReading::kNow);

// The variable that Scope::Find finds: nullptr where there is none. kDataLoss and other errors,
// which name the variable: its contents cannot be read from its file.
Result<Value*> FindVariable(const Scope& scope, const std::string& name);

// The write_mutex of a scope, held until this goes, which it does on the thread that made it.
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
// error in a call of the host (HostCalls) that is made while the thread holds the mutex itself: the
// call would wait for the work that it is made from.
Result<ScopeWrites> HoldWrites(Scope& scope);

// Writes all persistable variables of `program`, combined in the sorted order of their names. At
// any moment `path` holds the old or the new file whole, also when the process is killed.
Status SaveParameters(const Program& program, const Scope& scope, const std::string& path);
// The same with one file per variable in `directory`, which is made when absent. Each file by
// itself is replaced like a combined one.
Status SaveParametersSeparately(const Program& program, const Scope& scope,
                                const std::string& directory);

// Every record of a combined file, in its order.
Result<std::vector<Tensor>> ReadTensors(const std::string& path);
// A combined file of these tensors in this order (names are for messages), replaced atomically.
Status WriteTensors(const std::string& path, const NamedTensors& tensors);

// The arrays of a pickled state dict. Where the file says which variables its structured names
// ("linear_0.weight") stand for, under these variables' names.
Result<NamedTensors> ReadPickledTensors(const std::string& path);

}  // namespace heddle
