// ImplementationChoice: why a kernel computes in the way it does. A plain value.
#pragma once

#include <string>
#include <vector>

namespace heddle {

struct ImplementationChoice {
  std::string family;  // as in CompileOptions::force
  std::string chosen;  // one of the candidates
  // "cost": the cheapest as estimated; "measured": the fastest, while this plan was made; "kept":
  // the fastest, as a tuning file says; "forced": the caller insists on it; "only": no other covers
  // the case.
  std::string reason;
  struct Candidate {
    std::string name;
    double cost_ns = 0;      // as estimated
    double measured_ns = 0;  // 0: not measured
  };
  std::vector<Candidate> candidates;  // that cover the case, the cheapest first

  // "winograd: cheapest of winograd 1200 ns, onednn 1500 ns".
  std::string ToString() const;
};

}  // namespace heddle
