// Chooses the fastest of several implementations by measuring them on this machine. A kernel that
// has several asks for the one that was kept, and has them measured when there is none. Without a
// tuner it makes its usual choice.
//
// Ownership: whoever makes a PackCache gives the tuner to it, which keeps it. Threads: all methods
// may be called from any thread; measurements wait for each other.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/function_ref.h"
#include "core/services.h"

namespace heddle {

class KernelTuner {
 public:
  virtual ~KernelTuner() = default;
  // The name of the way that is kept for `key`, which says operator, attributes, shapes and dtypes;
  // empty when none is.
  virtual std::string Kept(const std::string& key) = 0;
  // Whether keys that have no kept choice are to be measured. Only while a plan is built.
  virtual bool measures() const = 0;
  // The fastest of the ways called `names`, which is kept from now on; a later one has to be
  // clearly faster than the first. run(i, services) computes once by way i, as a kernel with these
  // services.
  virtual int Measure(const std::string& key, const std::vector<std::string>& names,
                      FunctionRef<void(int, Services&)> run) = 0;
};

// The tuner of the plans that share these packs; nullptr: nothing is tuned.
inline KernelTuner* TunerOf(PackCache& packs, std::shared_ptr<KernelTuner> tuner = nullptr) {
  using Held = std::shared_ptr<KernelTuner>;
  return packs.Get<Held>(Tensor(), "kernel_tuner", [&] { return new Held(std::move(tuner)); })
      ->get();
}

}  // namespace heddle
