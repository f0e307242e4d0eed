// A model's files: finds and writes them, and loads models from memory.
#pragma once

#include <string>
#include <string_view>

#include "heddle/program.h"
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

struct SavedModel {
  std::string program;
  std::string parameters;  // empty: the program has none
};
// Writes a model to a directory, which is made when absent, under the names that LoadModel looks
// for. `format` as in Program::Serialize. Each file is there whole or as it was before.
Result<SavedModel> SaveModel(const Model& model, const std::string& directory,
                             const std::string& format = "");

}  // namespace heddle
