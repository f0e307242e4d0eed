// ImplementationChoice: why a kernel uses its implementation. A plain value.
#pragma once

#include <string>
#include <vector>

namespace heddle {

struct ImplementationChoice {
  std::string family;  // as in CompileOptions::force
  std::string chosen;  // one of the candidates
  // "cost": the lowest estimate; "measured": the fastest when this plan was made; "kept": the
  // fastest according to a tuning file; "forced": the caller requires it; "only": no other can
  // compute it.
  std::string reason;
  struct Candidate {
    std::string name;
    double cost_ns = 0;      // estimated
    double measured_ns = 0;  // 0: not measured
  };
  std::vector<Candidate> candidates;  // those that can compute it, the cheapest first

  // "winograd: cheapest of winograd 1200 ns, onednn 1500 ns".
  std::string ToString() const;
};

}  // namespace heddle
