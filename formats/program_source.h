// The seam between heddle and the files that programs are stored in: what a format must be able to
// do (Format), and what a program remembers of the file it was read from (ProgramSource).
//
// Each format is a folder of formats/ with one object of class Format, listed in
// formats/registry.cc. Everything else calls these interfaces and knows no format by name.
//
// Ownership: a Format lives as long as the process. A ProgramSource is shared by the programs that
// came of it. Threads: any; all are immutable. Errors: see each function; messages begin with the
// name of the file.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/programs/ir.h"
#include "core/programs/program_builder.h"
#include "heddle/functions.h"
#include "heddle/params.h"
#include "heddle/program_part.h"
#include "heddle/status.h"

namespace heddle::formats {

// A program that was let go. It can be made again, and takes a small part of its size until then.
class PackedProgram {
 public:
  virtual ~PackedProgram() = default;
  // kDataLoss where the file it is in was written to meanwhile.
  virtual Result<std::shared_ptr<ir::Program>> Unpack() const = 0;
};

class Format;

// The part of a file that its program remembers. Each format derives a class of its own.
class ProgramSource {
 public:
  virtual ~ProgramSource() = default;
  virtual const Format& format() const = 0;
  virtual size_t bytes() const = 0;  // of memory that it holds
  // NumPy's names of the element types that the file gives the program's inputs and outputs, where
  // heddle holds them in another dtype ("uint16" in int32); empty: the dtype says it.
  virtual std::string_view InputType(size_t) const { return {}; }
  virtual std::string_view OutputType(size_t) const { return {}; }
  // What the user calls the output that this variable holds, where the variable cannot be called
  // so; empty: as the variable.
  virtual std::string_view OutputName(std::string_view) const { return {}; }
  // heddle::FunctionsOf
  virtual Result<FunctionLibrary> Functions() const { return FunctionLibrary(); }
  // Makes something that gives `program` again, without its file. Precondition: this is its source,
  // and program.as_parsed().
  virtual std::unique_ptr<const PackedProgram> Pack(const ir::Program& program) const = 0;
};

// What a program is made of.
struct ParseRequest {
  std::string_view bytes;       // of a file; they need not outlive the call
  ir::ProgramBuilder& builder;  // takes the program, and mistakes within a file that can be read
  // The file that the bytes are those of. It can be read again later, so that what is large may
  // stay in it. Empty: there is none.
  std::string path = {};
  // Where the files lie that the bytes name: external data, variables. Empty: they are not at hand.
  std::string folder = {};
  const ProgramPart& part = kWholeFile;

  static const ProgramPart kWholeFile;
  // `status`, said of the file.
  Status InFile(const Status& status) const {
    return Status(status.code(), builder.name() + ": " + status.message());
  }
};

// A file format of programs.
class Format {
 public:
  virtual ~Format() = default;

  virtual std::string_view name() const = 0;
  // Whether the bytes of a file are of this format, by a look at its first ones. Bytes that are cut
  // short or damaged further on are recognised, so that Parse can say what is wrong with them.
  virtual bool Recognises(std::string_view bytes) const = 0;

  // Tells programs apart by the bytes of their files (Program::hash). Of large files, the contents
  // of tensors that the program does not depend on may be left out, so that nobody need read them.
  virtual uint64_t Hash(std::string_view bytes) const;
  // Hands over the program to request.builder, which lists all its mistakes, and returns what the
  // program remembers of its file. kDataLoss: not a file of this format, or cut short; kNotFound:
  // the file has no such signature or value.
  virtual Result<std::shared_ptr<const ProgramSource>> Parse(const ParseRequest& request) const = 0;
  // Whether a file holds several programs, of which a ProgramPart names one: Parse is given no
  // other part than the whole file otherwise. The number of such a program (ir::Program::hash) is
  // that of the bytes and of the part.
  virtual bool HasParts() const { return false; }
  // The signatures by which a ProgramPart may name programs of the file.
  virtual Result<std::vector<std::string>> Signatures(std::string_view bytes) const;
  // Whether Write makes files of this format. Programs of one that does not are written as
  // ProgramDescs unless the user names another format.
  virtual bool CanWrite() const { return true; }
  // The bytes of a file that Parse makes this program of again. What heddle has no use for is taken
  // from program.source where that is of this format. kResourceExhausted: it cannot be so large.
  virtual Result<std::string> Write(const ir::Program& program) const = 0;

  // Operators of the program that Write puts into a file and that the framework which the format is
  // of does not have, each once.
  virtual std::vector<std::string> Foreign(const ir::Program&) const { return {}; }

  // The names of program files in a directory, the best first, and the ending of other names.
  virtual std::vector<std::string> FileNames() const = 0;
  virtual std::string Extension() const = 0;
  // A program file in a directory that has another name, by which other files there tell it; empty:
  // there is none.
  virtual std::string ProgramIn(const std::string&) const { return {}; }
  // The parameters that belong to a program file when the user names none: a file or a directory.
  virtual std::string DefaultParameters(const std::string& program_file) const = 0;
  // Whether `path` names parameters that are there.
  virtual bool HasParameters(const std::string& path) const;
  // heddle::LoadParameters for programs of this format; kWhenNeeded leaves them in the file.
  virtual Status LoadParameters(const Program& program, const std::string& path, Scope& scope,
                                ParameterReading reading) const = 0;
  // Gives the scope the parameters that the program's own file holds; none in most formats.
  virtual Status SetOwnParameters(const Program& program, Scope& scope) const;
  // LoadParameters for the bytes of one file, which need not outlive the call. kUnimplemented: this
  // format has no such file.
  virtual Status ParseParameters(const Program& program, std::string_view bytes,
                                 Scope& scope) const;
};

// Makes the program of a file's bytes, of whichever format they are; `name` stands before messages.
// Everything wrong with a file is found here: kInvalidArgument lists it. kDataLoss: damaged;
// kUnimplemented: a format, or operators, that heddle does not read.
// `is_file`: they are those of the file called so.
Result<std::shared_ptr<ir::Program>> ParseProgram(std::string_view bytes, const std::string& name,
                                                  bool is_file = false,
                                                  const ProgramPart& part = {});

// Lets `program` be forgotten: where the file called program.name still is what it was read from,
// that file, which stays open, else what its source packs. Precondition: program.as_parsed().
std::unique_ptr<const PackedProgram> Pack(const ir::Program& program);

}  // namespace heddle::formats
