// The files beside a model that hold tensors' contents: external data, as ONNX calls it.
//
// The name in a model is that of a regular file in the model's folder or below it. As in ONNX's own
// checker no part of it may be a symbolic link, nor may the file have a second name (a hard link):
// a model could otherwise name any file of the machine, whatever its own name says. Links of a
// model that is a link itself are the exception of formats/model_folder.h.
//
// Ownership: shares the files, which stay open. Threads: a caller's own.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "formats/data_file.h"
#include "formats/onnx/tensor_data.h"

namespace heddle::onnx {

class ExternalFiles {
 public:
  // `folder`: the model's; empty: it is not read from a file. `model`: the model's file.
  ExternalFiles(std::string folder, std::string model)
      : folder_(std::move(folder)), model_(std::move(model)) {}

  // The file that `data` names. kInvalidArgument: a name that is not allowed; kNotFound;
  // kDataLoss: the tensor says a checksum (SHA-1 of the whole file, which is read for that), and
  // the file has another one.
  Result<std::shared_ptr<const formats::DataFile>> Open(const TensorData& data);

 private:
  struct File {
    std::shared_ptr<const formats::DataFile> file;
    std::string sha1;  // empty: nobody has asked
  };
  Result<std::string> PathOf(const TensorData& data) const;

  const std::string folder_, model_;
  std::unordered_map<std::string, File> files_;  // by the name in the model
};

}  // namespace heddle::onnx
