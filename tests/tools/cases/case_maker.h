// Writes small operator cases (see tools/case_file.h) for tests.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "proto/framework.pb.h"
#include "tests/tools/cli.h"

namespace heddle::tools {

// A .npy file of format 1.
inline std::string NpyBytes(const std::string& descr, const std::string& shape,
                            const std::string& data) {
  std::string header =
      "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }";
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string file = "\x93NUMPY";
  file += {'\1', '\0', static_cast<char>(header.size()), '\0'};
  return file + header + data;
}

// A program of one block.
class ProgramMaker {
 public:
  ProgramMaker() {
    block_ = program_.add_blocks();
    block_->set_idx(0);
    block_->set_parent_idx(-1);
    program_.mutable_version()->set_version(2006002);
  }
  void AddVar(const std::string& name, proto::VarType::Type dtype,
              const std::vector<int64_t>& shape, bool persistable = false) {
    proto::VarDesc* var = block_->add_vars();
    var->set_name(name);
    var->set_persistable(persistable);
    var->mutable_type()->set_type(proto::VarType::LOD_TENSOR);
    auto* tensor = var->mutable_type()->mutable_lod_tensor()->mutable_tensor();
    tensor->set_data_type(dtype);
    for (int64_t d : shape) tensor->add_dims(d);
  }
  void AddHolder(const std::string& name, proto::VarType::Type type) {
    proto::VarDesc* var = block_->add_vars();
    var->set_name(name);
    var->set_persistable(true);
    var->mutable_type()->set_type(type);
  }
  proto::OpDesc* AddOp(const std::string& type, const std::string& x, const std::string& out) {
    proto::OpDesc* op = block_->add_ops();
    op->set_type(type);
    auto* input = op->add_inputs();
    input->set_parameter("X");
    input->add_arguments(x);
    auto* output = op->add_outputs();
    output->set_parameter("Out");
    output->add_arguments(out);
    return op;
  }
  void AddFeedOrFetch(const std::string& type, const std::string& x, const std::string& out) {
    auto* attr = AddOp(type, x, out)->add_attrs();
    attr->set_name("col");
    attr->set_type(proto::INT);
    attr->set_i(0);
  }
  std::string bytes() const { return program_.SerializeAsString(); }

 private:
  proto::ProgramDesc program_;
  proto::BlockDesc* block_;
};

// A case whose program is `out = assign(x)` for a 2x3 tensor; returns its input file.
inline std::string MakeAssignCase(const std::string& directory, const std::string& dtype,
                                  const std::string& descr, proto::VarType::Type type,
                                  size_t item_size, const std::string& lod = "-") {
  std::filesystem::create_directories(directory);
  ProgramMaker program;
  program.AddVar("x", type, {2, 3});
  program.AddVar("y", type, {2, 3});
  program.AddOp("assign", "x", "y");
  WriteFile(directory + "/program.pb", program.bytes());
  std::string data;
  for (size_t i = 0; i < 6 * item_size; ++i)
    data += static_cast<char>(dtype == "bool" ? i % 2 : 29 * i + 5);
  const std::string npy = NpyBytes(descr, "(2, 3)", data);
  WriteFile(directory + "/in_0.npy", npy);
  const std::string tensor = dtype + "\t2,3\t" + lod;
  WriteFile(directory + "/io.txt", "opcase 1\nin\tfeed\tdense\tin_0.npy\t" + tensor + "\tx\n" +
                                       "out\tfetch\tdense\texact\t0\t0\tout_0.npy\t" + tensor +
                                       "\ty\n");
  return npy;
}

}  // namespace heddle::tools
