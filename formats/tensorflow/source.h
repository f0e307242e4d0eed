// TensorflowSource: what a program keeps of the graph that it was read from: the graph without its
// large constants, which part of it is the program, and where constants and variables are.
//
// Ownership: shares the files, which stay open, and tensors that are not left in a file. Threads:
// any; it is immutable.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "formats/lowering/file_tensor.h"
#include "formats/program_source.h"
#include "formats/tensorflow/bundle/bundle.h"
#include "formats/tensorflow/lower.h"
#include "heddle/params.h"
#include "heddle/scope.h"

namespace heddle::tensorflow {

class TensorflowSource : public formats::ProgramSource {
 public:
  static Result<std::shared_ptr<const TensorflowSource>> Make(const formats::ParseRequest& request,
                                                              Lowered lowered);

  const formats::Format& format() const override;
  size_t bytes() const override { return skeleton_.size(); }
  std::string_view InputType(size_t k) const override { return NameOf(inputs_, k); }
  std::string_view OutputType(size_t k) const override { return NameOf(outputs_, k); }
  std::string_view OutputName(std::string_view variable) const override {
    const auto found = output_names_.find(variable);
    return found == output_names_.end() ? std::string_view() : found->second;
  }
  Result<FunctionLibrary> Functions() const override;
  const std::vector<formats::GradientCall>& GradientCalls() const override {
    return gradient_calls_;
  }
  // The variables that were saved as trainable.
  Result<formats::TrainingMarks> Marks(const ir::Program& program) const override;
  std::unique_ptr<const formats::PackedProgram> Pack(const ir::Program& program) const override;

  const std::string& skeleton() const { return skeleton_; }
  const ProgramPart& part() const { return part_; }
  const std::vector<Port>& inputs() const { return inputs_; }
  const std::vector<Port>& outputs() const { return outputs_; }
  // Implements Format::WriteTuned: the folder of a SavedModel with other values of variables.
  Status WriteTuned(const formats::TunedModel& tuned, const std::string& directory) const;
  // Sets constants and restored variables in the scope under their names. `bundle`: the variables
  // to use; null: those beside the graph. kNotFound: the graph has none, or the bundle lacks a
  // variable.
  Status SetParameters(Scope& scope, ParameterReading reading,
                       const Bundle* bundle = nullptr) const;

 private:
  Status WriteShapes(const formats::TunedModel& tuned, const std::string& directory) const;

  // A tensor in memory, a range of a file, or an entry of the bundle.
  struct Stored {
    std::string name;
    Value value;
    formats::FileTensor in_file;
    std::string key;
    std::string values_key;    // of a table in the bundle, whose keys are under `key`
    bool guessed_key = false;  // Parameter::guessed_key
  };
  static std::string_view NameOf(const std::vector<Port>& ports, size_t k) {
    if (k >= ports.size()) return {};
    const int type = ports[k].type;
    const bool held = type == kUint16 || type == kUint32 || type == kUint64 || type == kString;
    return held ? TypeName(type) : "";
  }
  // `file`: the file that has `bytes` as contents; null: none.
  Status Store(const Parameter& p, std::string_view bytes,
               const std::shared_ptr<const formats::DataFile>& file);
  Status StoreTable(const Parameter& p, const std::string& assets, const std::string& behind);

  std::string skeleton_;
  ProgramPart part_;
  std::vector<Stored> parameters_;
  std::vector<Port> inputs_, outputs_;
  std::map<std::string, std::string, std::less<>> output_names_;  // by variable
  std::shared_ptr<const Bundle> bundle_;
  formats::TrainingMarks marks_;
  std::vector<formats::GradientCall> gradient_calls_;
  Status bundle_error_;  // why bundle_ is null although variables need one
};

// The file without the contents of large tensors: LowerBytes makes the same program of it.
std::string Skeleton(std::string_view bytes);

// The ending of a meta graph's file name. The rest is the prefix of its checkpoint's files.
inline constexpr std::string_view kMetaEnding = ".meta";
// The prefix of the newest checkpoint in a folder, from its file `checkpoint`; empty: there is
// none.
std::string NewestCheckpoint(const std::string& folder);

// The prefix of the checkpoint that `path` names: the prefix itself, a file of the checkpoint, or a
// folder that holds one; empty: none.
std::string CheckpointAt(const std::string& path);

// Parses a graph's bytes and lowers a part of it into `builder`.
Result<Lowered> LowerBytes(std::string_view bytes, const ProgramPart& part,
                           ir::ProgramBuilder* builder);

}  // namespace heddle::tensorflow
