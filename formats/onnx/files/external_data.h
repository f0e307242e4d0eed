// The files beside a model that hold contents of tensors: external data, in ONNX's term.
//
// A name in a model must be that of a regular file in the model's folder or below it. As in ONNX's
// own checker, no part of it may be a symbolic link, and the file must not have a second name (a
// hard link): otherwise a model could read any file of the machine. The exception for a model that
// is a link itself is in formats/model_folder.h.
//
// Ownership: shares the files, which stay open. Threads: one at a time.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "formats/data_file.h"
#include "formats/onnx/tensor_data.h"

namespace heddle::onnx {

class ExternalFiles {
 public:
  // `folder`: the model's folder; empty: the model is not read from a file. `model`: the model's
  // file.
  ExternalFiles(std::string folder, std::string model)
      : folder_(std::move(folder)), model_(std::move(model)) {}

  // Opens the file that `data` names. kInvalidArgument: the name is not allowed; kNotFound;
  // kDataLoss: the tensor states a checksum (SHA-1 of the whole file, which is then read), and the
  // file has another one.
  Result<std::shared_ptr<const formats::DataFile>> Open(const TensorData& data);
  // The path of the file that `data` names. kInvalidArgument: the name is not allowed.
  Result<std::string> PathOf(const TensorData& data) const;

 private:
  struct File {
    std::shared_ptr<const formats::DataFile> file;
    std::string sha1;  // empty: not computed yet
  };

  const std::string folder_, model_;
  std::unordered_map<std::string, File> files_;  // by the name in the model
};

}  // namespace heddle::onnx
