// OnnxSource: what a program keeps of the ONNX model that it was read from: the model without its
// large tensors, where those are, and the types of inputs and outputs.
//
// Ownership: shares the model's file, which stays open, and tensors that are not left in a file.
// Threads: any; it is immutable.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/lowering/file_tensor.h"
#include "formats/onnx/lower.h"
#include "formats/program_source.h"
#include "heddle/params.h"
#include "heddle/scope.h"

namespace heddle::onnx {

class ExternalFiles;

class OnnxSource : public formats::ProgramSource {
 public:
  static Result<std::shared_ptr<const OnnxSource>> Make(const formats::ParseRequest& request,
                                                        Lowered lowered);

  const formats::Format& format() const override;
  size_t bytes() const override { return skeleton_.size(); }
  std::string_view InputType(size_t k) const override { return NameOf(inputs_, k); }
  std::string_view OutputType(size_t k) const override { return NameOf(outputs_, k); }
  Result<FunctionLibrary> Functions() const override;
  // The initializers of the graph with a rank of 1 or more.
  Result<formats::TrainingMarks> Marks(const ir::Program& program) const override;
  std::unique_ptr<const formats::PackedProgram> Pack(const ir::Program& program) const override;

  const std::vector<Type>& inputs() const { return inputs_; }
  const std::vector<Type>& outputs() const { return outputs_; }
  const MapKeys* keys(size_t output) const { return keys_[output].get(); }
  const std::string& skeleton() const { return skeleton_; }
  // Sets the model's tensors in the scope under their names.
  Status SetParameters(Scope& scope, ParameterReading reading) const;

 private:
  // A tensor in memory, or a range of a file.
  struct Stored {
    std::string name;
    Value value;
    formats::FileTensor in_file;
  };
  // The name of the element type of value k, or of the elements of its sequence or optional.
  static std::string_view NameOf(const std::vector<Type>& types, size_t k);
  // `file`: the file that has `bytes` as contents; null: none.
  Status Store(const Parameter& p, std::string_view bytes,
               const std::shared_ptr<const formats::DataFile>& file);
  Status StoreExternal(const Parameter& p, ExternalFiles* files);

  std::string skeleton_;
  std::vector<Stored> parameters_;
  std::vector<Type> inputs_, outputs_;
  std::vector<std::shared_ptr<const MapKeys>> keys_;
};

// Parses a model's bytes and lowers it into `builder`.
Result<Lowered> LowerModel(std::string_view bytes, ir::ProgramBuilder* builder);

// The bytes of the model without the contents of large tensors: LowerModel makes the same program
// of them.
std::string Skeleton(std::string_view model);

// Implements Format::WriteTuned (tuned.cc): opset, names, nodes and all other tensors stay as they
// are. Changed tensors are in the model's file; files of external data that other tensors name are
// copied. Dimensions without a name are those of the reshaped variables. kInvalidArgument: a
// changed variable is no initializer, or has another dtype.
Status WriteTuned(const formats::TunedModel& tuned, const std::string& directory);

}  // namespace heddle::onnx
