// The contents of a hash table when a model is loaded.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "formats/data_file.h"
#include "formats/tensorflow/bundle/bundle.h"
#include "formats/tensorflow/model.h"
#include "formats/tensorflow/tensor_data.h"
#include "heddle/value.h"

namespace heddle::tensorflow {

// A file of one entry a line. `key`, `value`: the columns of a line.
struct TableFile {
  static constexpr int64_t kWholeLine = -2, kLineNumber = -1;
  std::string name;  // below assets/
  int64_t key = kWholeLine, value = kLineNumber;
  int64_t count = -1;  // -1: of the lines, all
  int64_t first = 0;   // the number of the first line
  char delimiter = '\t';
  int key_type = kString, value_type = kInt64;
};

// Constants of the file, entries of the bundle, or a file of one entry a line.
struct TableContents {
  TensorData keys, values;
  std::string keys_entry, values_entry;  // of the bundle; empty: constants
  std::optional<TableFile> file;
  bool is_empty = false;  // there are no keys yet

  bool in_bundle() const { return !keys_entry.empty(); }
};

// The table of constants or of a file in the folder `assets`. `behind`: the folder behind a model
// that is a link (formats/model_folder.h), which links in `assets` may lead to; empty: it is none.
// kInvalidArgument: a line or a file that does not fit; a file that lies elsewhere, or has a second
// name (a hard link).
Result<Value> MakeTable(const TableContents& contents, const std::string& assets,
                        const std::string& behind = {});
// The table that maps these keys to these values.
Result<Value> MakeTable(const Value& keys, const Value& values);

}  // namespace heddle::tensorflow
