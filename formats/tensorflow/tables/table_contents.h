// The initial contents of a hash table.
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

// A file with one entry per line. `key`, `value`: columns of a line.
struct TableFile {
  static constexpr int64_t kWholeLine = -2, kLineNumber = -1;
  std::string name;  // path below assets/
  int64_t key = kWholeLine, value = kLineNumber;
  int64_t count = -1;  // number of lines; -1: all
  int64_t first = 0;   // index of the first line
  char delimiter = '\t';
  int key_type = kString, value_type = kInt64;
};

// Contents from constants of the graph, entries of the bundle, or a file with one entry per line.
struct TableContents {
  TensorData keys, values;
  std::string keys_entry, values_entry;  // keys in the bundle; empty: constants
  std::optional<TableFile> file;
  bool is_empty = false;  // it has no entries yet

  bool in_bundle() const { return !keys_entry.empty(); }
};

// Makes the table from constants, or from a file in the folder `assets`. `behind`: the folder
// behind a model that is a link (formats/model_folder.h), to which links in `assets` may lead;
// empty: the model is no link. kInvalidArgument: a malformed line or file, or a file that lies
// elsewhere or has a second name (a hard link).
Result<Value> MakeTable(const TableContents& contents, const std::string& assets,
                        const std::string& behind = {});
// Makes a table that maps these keys to these values.
Result<Value> MakeTable(const Value& keys, const Value& values);

}  // namespace heddle::tensorflow
