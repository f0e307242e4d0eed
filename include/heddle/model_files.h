// A model's files: finds and writes them, and loads models from memory.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "heddle/program.h"
#include "heddle/program_part.h"
#include "heddle/status.h"

namespace heddle {

// The program file that LoadModel reads for `path`: itself, or what lies in a directory. kNotFound:
// there is none; kInvalidArgument: several, and none is called as program files usually are.
Result<std::string> FindProgramFile(const std::string& path);

// The parameters that LoadModel reads with a program file when the user names none: a file or a
// directory, which may not be there.
std::string DefaultParameters(const std::string& program_file);

// LoadModel for files that are in memory. `parameters`: the bytes of a combined file; empty: none,
// or none yet, to be set in the model's scope. `name` stands before messages. Neither need outlive
// the call.
Result<Model> ParseModel(std::string_view program, std::string_view parameters,
                         const std::string& name = "program");

// Program::Load, LoadModel and ParseModel of one of the programs that a file holds. kNotFound: the
// file has no such signature, input or output.
Result<Program> LoadProgram(const std::string& path, const ProgramPart& part);
Result<Model> LoadModel(const std::string& path, const std::string& params,
                        const ProgramPart& part);
Result<Model> ParseModel(std::string_view program, std::string_view parameters,
                         const std::string& name, const ProgramPart& part);

// The signatures of the programs that the file, or what lies in the directory, holds: sorted, and
// without those that are not for users. Empty: the file holds one program, or names none.
Result<std::vector<std::string>> SignaturesOf(const std::string& path);

// Variables that the program writes and keeps from run to run; its other persistable variables are
// constants to it.
std::vector<TensorInfo> WrittenPersistables(const Program& program);

// Names of the element types that the file gives the program's inputs and outputs, for those that
// heddle holds in another dtype: "uint16" in int32, "uint32" in int64, "uint64" as the bits of an
// int64, "int4" and "int2" in int8, "uint4" and "uint2" in uint8, ONNX's narrow floats, as in
// "float8e4m3fn", as the bits of a uint8; "string" for texts; empty for all others. Of sequences,
// the type of their tensors' elements.
std::vector<std::string> InputTypes(const Program& program);
std::vector<std::string> OutputTypes(const Program& program);
// The same for each of `inputs` or `outputs`, found by its name: what a compiled program takes and
// gives may be some of the program's, in another order, and others besides, whose types are empty.
std::vector<std::string> InputTypes(const Program& program, const std::vector<TensorInfo>& inputs);
std::vector<std::string> OutputTypes(const Program& program,
                                     const std::vector<TensorInfo>& outputs);

// The kind of a file that begins with these bytes and is no model, for error messages: "a Git LFS
// pointer", "an HTML page", "a gzip archive". Empty where the beginning does not tell. Threads:
// any.
std::string KindOfBytes(std::string_view bytes);

struct SavedModel {
  std::string program;
  std::string parameters;  // empty: the program has none
  // Operators, each once, that heddle reads in such a file and Paddle does not know.
  std::vector<std::string> foreign;
};
// Writes a model to a directory, which is made when absent, under the names that LoadModel looks
// for. `format` as in Program::Serialize. Each file is there whole or as it was before.
Result<SavedModel> SaveModel(const Model& model, const std::string& directory,
                             const std::string& format = "");
// Writes the program without parameters to the file of that name in the directory, with the
// format's extension: startup and main programs of training jobs have none of their own.
Result<SavedModel> SaveProgram(const Program& program, const std::string& directory,
                               const std::string& name, const std::string& format = "");

}  // namespace heddle
