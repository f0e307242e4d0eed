// Finds and writes a model's files, and loads models from memory.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "heddle/program.h"
#include "heddle/program_part.h"
#include "heddle/status.h"

namespace heddle {

// The program file that LoadModel reads for `path`: the file itself, or one in the directory.
// kNotFound: there is none; kInvalidArgument: several, none of which has a usual name.
Result<std::string> FindProgramFile(const std::string& path);

// The parameters that LoadModel reads with a program file by default: a file or a directory, which
// need not exist.
std::string DefaultParameters(const std::string& program_file);

// LoadModel for files in memory. `parameters`: the bytes of a combined file; empty: none, or to be
// set in the model's scope later. `name` precedes error messages. Neither must outlive the call.
Result<Model> ParseModel(std::string_view program, std::string_view parameters,
                         const std::string& name = "program");

// Program::Load, LoadModel and ParseModel for one of the programs in a file. kNotFound: the file
// has no such signature, input or output.
Result<Program> LoadProgram(const std::string& path, const ProgramPart& part);
Result<Model> LoadModel(const std::string& path, const std::string& params,
                        const ProgramPart& part);
Result<Model> ParseModel(std::string_view program, std::string_view parameters,
                         const std::string& name, const ProgramPart& part);

// The signatures of the programs in the file or the directory, sorted, without internal ones.
// Empty: the file holds one program, or names none.
Result<std::vector<std::string>> SignaturesOf(const std::string& path);

// Variables that the program writes and that keep their values from run to run; its other
// persistable variables are constants.
std::vector<TensorInfo> WrittenPersistables(const Program& program);

// The names of the element types that the file gives the program's inputs and outputs, if heddle
// uses another dtype: "uint16" in int32, "uint32" in int64, "uint64" as the bits of an int64,
// "int4" and "int2" in int8, "uint4" and "uint2" in uint8, ONNX's narrow floats, such as
// "float8e4m3fn", as the bits of a uint8; "string" for strings; empty for all others. For
// sequences, the type of their tensors' elements.
std::vector<std::string> InputTypes(const Program& program);
std::vector<std::string> OutputTypes(const Program& program);
// The same for each of `inputs` or `outputs`, found by name: a compiled program may have only some
// of the program's, in another order, and others as well, whose types are empty.
std::vector<std::string> InputTypes(const Program& program, const std::vector<TensorInfo>& inputs);
std::vector<std::string> OutputTypes(const Program& program,
                                     const std::vector<TensorInfo>& outputs);

// For error messages: what kind of file begins with these bytes and is not a model, such as "a Git
// LFS pointer", "an HTML page", "a gzip archive". Empty: unknown. Threads: any.
std::string KindOfBytes(std::string_view bytes);

struct SavedModel {
  std::string program;
  std::string parameters;  // empty: the program has none
  // The types of operators, each once, that heddle can read in such a file and Paddle cannot.
  std::vector<std::string> foreign;
};
// Writes a model to a directory, which is made if it does not exist, under the names that LoadModel
// finds. `format` as in Program::Serialize. Each file is replaced as a whole or not at all.
Result<SavedModel> SaveModel(const Model& model, const std::string& directory,
                             const std::string& format = "");
// Writes the model of `program_file`, from which `model` was loaded, to a directory, in the format
// that it has: with the scope's values of the parameters `changed`, and everything else as it is.
// `reshaped`: parameters, outputs and values between them whose shapes are no longer those of the
// file; model.program has them. kUnimplemented: the format cannot be written so.
Status SaveTunedModel(const Model& model, const std::string& program_file,
                      const std::vector<std::string>& changed, const std::string& directory,
                      const std::vector<std::string>& reshaped = {});
// Writes the program without parameters to the file of that name in the directory, with the
// format's extension: for startup and main programs of training jobs, which have none of their own.
Result<SavedModel> SaveProgram(const Program& program, const std::string& directory,
                               const std::string& name, const std::string& format = "");

}  // namespace heddle
