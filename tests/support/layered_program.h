// Programs of equal layers, each with parameters of its own, as exporters write them: one layer
// behind another.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/program_builder.h"

namespace heddle::testing {

class LayeredProgram {
 public:
  enum class Kind {
    kTransformer,  // attention and a feed-forward part, as in BERT
    kMlp,          // products, biases and activations
    kConv,         // convolution, batch_norm and activation, with a residual sum
    kRandom,       // random operators; layers may also read values of the layer before the last
    kTraining      // a kMlp of random operators with its gradients and updates
  };
  struct Options {
    Kind kind = Kind::kMlp;
    int layers = 12;
    int width = 64;     // features, or channels
    int64_t rows = 32;  // positions, or pixels along an edge
    int odd = -1;       // the layer that computes something else; -1: none
    bool open = false;  // the file leaves the number of rows open
    uint32_t seed = 1;  // of parameters, feeds, and what is random in the kind
  };
  explicit LayeredProgram(const Options& options);

  const Program& program() const { return program_; }
  // New parameters, equal in each call.
  std::shared_ptr<Scope> NewScope() const;
  const std::vector<heddle::Feed>& feeds() const { return feeds_; }
  const std::vector<std::string>& parameters() const { return parameter_names_; }

 private:
  struct Step {
    enum Kind { kProduct, kBias, kActivation, kSum, kNorm, kOld } kind;
    int from = 0, with = 0;  // values of the layer, by number
    std::string type;        // of an activation
  };
  // What a layer's gradient needs: operators in their order, with the values that they name.
  struct Made {
    Step step;
    std::string x, y, out;
  };

  uint32_t Next() { return random_ = random_ * 1664525u + 1013904223u; }
  int Pick(int n) { return static_cast<int>((Next() >> 8) % static_cast<uint32_t>(n)); }
  std::string Param(const std::string& name, const Shape& shape, float bound, float offset = 0);
  std::string Op(const std::string& type, Slots inputs, const Attrs& attrs = {},
                 const char* out = "Out");
  std::string Product(const std::string& x, const std::string& name, int from, int to);
  std::string Norm(const std::string& x, const std::string& name);
  std::string Transformer(const std::string& x, const std::string& name, bool odd);
  std::string Mlp(const std::string& x, const std::string& name, bool odd);
  std::string Conv(const std::string& x, const std::string& name, bool odd);
  void ChooseSteps();
  std::string Random(const std::string& x, const std::string& old, const std::string& name,
                     bool odd);
  void AddGradients(const std::string& last);

  const Options options_;
  uint32_t random_;
  ProgramBuilder b_;
  int numbers_ = 0;
  std::vector<Step> steps_;
  std::vector<Made> made_;
  struct Value {
    std::string name;
    Shape shape;
    float bound, offset;
  };
  std::vector<Value> parameters_;
  std::vector<std::string> parameter_names_;
  std::vector<heddle::Feed> feeds_;
  Program program_;
};

}  // namespace heddle::testing
