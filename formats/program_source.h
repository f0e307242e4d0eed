// The interface between heddle and the files that programs are stored in: what a format must be
// able to do (Format), and what a program keeps of the file it was read from (ProgramSource).
//
// Each format is a folder of formats/ with one object of class Format, listed in
// formats/registry.cc. Everything else calls these interfaces and knows no format by name.
//
// Ownership: a Format lives as long as the process. A ProgramSource is shared by the programs made
// from it. Threads: any; all are immutable. Errors: see each function; messages begin with the name
// of the file.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "core/programs/ir.h"
#include "core/programs/program_builder.h"
#include "heddle/functions.h"
#include "heddle/params.h"
#include "heddle/program_part.h"
#include "heddle/status.h"

namespace heddle::formats {

// A program in packed form, a small part of its size, from which it can be made again.
class PackedProgram {
 public:
  virtual ~PackedProgram() = default;
  // Makes the program again. kDataLoss: its file was written to meanwhile.
  virtual Result<std::shared_ptr<ir::Program>> Unpack() const = 0;
};

class Format;

// What a file says about training, by the names of the program's variables. heddle runs programs
// without it; gradients need it.
struct TrainingMarks {
  // Whether `trainable` lists what is trained; if not, the file does not say.
  bool says_trainable = false;
  std::unordered_set<std::string> trainable;
  std::unordered_set<std::string> stopped;  // no gradient flows through these
};

// A gradient that a file asks for: of the sum of the losses' elements by each argument. The reader
// has written the losses, and zeros to the variables of the gradients.
struct GradientCall {
  std::vector<std::string> losses;                // variables of block 0
  std::vector<std::string> arguments, gradients;  // likewise, one each
  std::string where;                              // for messages
};

// What a program keeps of its file. Each format derives a class of its own.
class ProgramSource {
 public:
  virtual ~ProgramSource() = default;
  virtual const Format& format() const = 0;
  virtual size_t bytes() const = 0;  // memory that it holds, in bytes
  // NumPy's name of the element type that the file gives an input or output, where heddle holds it
  // in another dtype ("uint16" in int32); empty: the dtype is right.
  virtual std::string_view InputType(size_t) const { return {}; }
  virtual std::string_view OutputType(size_t) const { return {}; }
  // The user's name of the output that this variable holds, where the variable cannot have that
  // name; empty: the variable's name.
  virtual std::string_view OutputName(std::string_view) const { return {}; }
  // What the file says about training the variables of `program`, whose source this is.
  virtual Result<TrainingMarks> Marks(const ir::Program&) const { return TrainingMarks(); }
  // Implements heddle::FunctionsOf.
  virtual Result<FunctionLibrary> Functions() const { return FunctionLibrary(); }
  // The gradients that the file asks for, in the program's order.
  virtual const std::vector<GradientCall>& GradientCalls() const;
  // Packs `program` for the case that its file is not available. Precondition: this is its source,
  // and program.as_parsed().
  virtual std::unique_ptr<const PackedProgram> Pack(const ir::Program& program) const = 0;
};

// The input of Format::WriteTuned. All must outlive the call.
struct TunedModel {
  // The program of the file, perhaps with other shapes of the variables `reshaped`.
  const Program& program;
  const std::string& program_file;
  const Scope& scope;
  const std::vector<std::string>& changed;   // parameters whose values the scope has
  const std::vector<std::string>& reshaped;  // variables whose declared shapes `program` has
};

// The input of Format::Parse.
struct ParseRequest {
  std::string_view bytes;       // the contents of a file; need not outlive the call
  ir::ProgramBuilder& builder;  // receives the program, and the errors in a file that can be read
  // The file with these bytes. It can be read again later, so large contents may stay in it. Empty:
  // there is none.
  std::string path = {};
  // The folder of the files that the bytes name: external data, variables. Empty: not available.
  std::string folder = {};
  const ProgramPart& part = kWholeFile;

  static const ProgramPart kWholeFile;
  // `status` with the file's name in front.
  Status InFile(const Status& status) const {
    return Status(status.code(), builder.name() + ": " + status.message());
  }
};

// A file format of programs.
class Format {
 public:
  virtual ~Format() = default;

  virtual std::string_view name() const = 0;
  // Whether bytes are of this format, decided by their beginning. Bytes that are cut short or
  // damaged further on are recognised, so that Parse can say what is wrong.
  virtual bool Recognises(std::string_view bytes) const = 0;

  // A hash of a file's bytes that identifies the program (Program::hash). Contents of tensors that
  // the program does not depend on may be left out for large files, so that they need not be read.
  virtual uint64_t Hash(std::string_view bytes) const;
  // Gives the program to request.builder, which lists all errors, and returns what the program
  // keeps of its file. kDataLoss: not a file of this format, or cut short; kNotFound: the file has
  // no such signature or value.
  virtual Result<std::shared_ptr<const ProgramSource>> Parse(const ParseRequest& request) const = 0;
  // Whether a file can hold several programs, of which a ProgramPart names one; if not, Parse is
  // only asked for the whole file. The hash of such a program (ir::Program::hash) covers the bytes
  // and the part.
  virtual bool HasParts() const { return false; }
  // The signatures by which a ProgramPart may name programs of the file.
  virtual Result<std::vector<std::string>> Signatures(std::string_view bytes) const;
  // Whether Write is implemented. Programs of other formats are written as ProgramDescs unless the
  // user names a format.
  virtual bool CanWrite() const { return true; }
  // The bytes of a file of which Parse makes this program again. Details that heddle does not use
  // are taken from program.source if that is of this format. kResourceExhausted: the file would be
  // too large.
  virtual Result<std::string> Write(const ir::Program& program) const = 0;

  // The operators, each once, that Write puts into a file although the format's own framework lacks
  // them.
  virtual std::vector<std::string> Foreign(const ir::Program&) const { return {}; }

  // The usual names of program files in a directory, the best first, and the extension of others.
  virtual std::vector<std::string> FileNames() const = 0;
  virtual std::string Extension() const = 0;
  // A program file with an unusual name, found by other files in the directory; empty: there is
  // none.
  virtual std::string ProgramIn(const std::string&) const { return {}; }
  // The parameters that belong to a program file, when the user names none: a file or a directory.
  virtual std::string DefaultParameters(const std::string& program_file) const = 0;
  // Whether there are parameters at `path`.
  virtual bool HasParameters(const std::string& path) const;
  // Implements heddle::LoadParameters; kWhenNeeded leaves the contents in the file.
  virtual Status LoadParameters(const Program& program, const std::string& path, Scope& scope,
                                ParameterReading reading) const = 0;
  // Sets the parameters that the program file itself holds; most formats have none.
  virtual Status SetOwnParameters(const Program& program, Scope& scope) const;
  // LoadParameters for the bytes of one file, which need not outlive the call. kUnimplemented: this
  // format has no such file.
  virtual Status ParseParameters(const Program& program, std::string_view bytes,
                                 Scope& scope) const;
  // Writes the model of a file again, with other values of some parameters and other shapes of some
  // variables, into a directory that exists. Everything else stays as the file has it. By default
  // the program file is copied, or written if shapes differ, and the parameters are written beside
  // it.
  virtual Status WriteTuned(const TunedModel& tuned, const std::string& directory) const;
};

// Parses the bytes of a file of any format; `name` begins messages. All errors in a file are found
// here: kInvalidArgument lists them. kDataLoss: damaged; kUnimplemented: a format, or operators,
// that heddle does not read. `is_file`: `name` is a file with these bytes.
Result<std::shared_ptr<ir::Program>> ParseProgram(std::string_view bytes, const std::string& name,
                                                  bool is_file = false,
                                                  const ProgramPart& part = {});

// Packs a program so that its memory can be given back: as its file, which stays open, if that is
// unchanged, else as its source packs it. Precondition: program.as_parsed().
std::unique_ptr<const PackedProgram> Pack(const ir::Program& program);

}  // namespace heddle::formats
