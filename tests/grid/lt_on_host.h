// The host's cuBLASLt: what NVIDIA documents of cublasLtMatmul, so that the code that selects
// products and describes them is the card's.
#pragma once

#include <atomic>

#include "device/cuda/grid/lt_product.h"

namespace heddle::grid_on_host {

class LtOnHost final : public LtChoices {
 public:
  // `refuses`: has no algorithm for anything.
  explicit LtOnHost(bool refuses = false) : refuses_(refuses) {}

  int choices() const { return choices_; }  // how often an algorithm was chosen
  int late() const { return late_; }        // how often by a run, which should only look it up
  int products() const { return products_; }
  // The choice for a product that is to run now.
  const LtChoice* Find(const LtProduct& p);
  Status Run(const LtProduct& p, const LtChoice& choice);

 private:
  std::optional<LtChoice> Choose(const LtProduct& p) override;

  bool refuses_;
  std::atomic<int> choices_{0}, late_{0}, products_{0};
};

}  // namespace heddle::grid_on_host
