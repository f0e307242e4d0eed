#include "formats/other_kinds.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <vector>

#include "core/error.h"
#include "formats/data_file.h"
#include "formats/leveldb_table.h"
#include "formats/registry.h"
#include "formats/wire_fields.h"

namespace heddle::formats {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLooked = 64 << 10;  // bytes at the beginning, and as many at the end

constexpr const char* kToOnnx = "heddle reads no such files; export the model to ONNX";
constexpr const char* kUnpack = "unpack it and name the model in it";
constexpr const char* kNoModel = "it holds no model";
constexpr const char* kWeightsAlone =
    "it holds weights without a program; export the model with its program, to ONNX say";

// Kinds of files that are known by certain bytes at a fixed position.
struct Magic {
  size_t at;
  std::string_view bytes;
  const char* what;
  const char* instead;
};
using namespace std::string_view_literals;
constexpr Magic kMagics[] = {
    {4, "TFL3", "a TensorFlow Lite model",
     "heddle does not read these; name the TensorFlow model it was made of, or convert it to ONNX "
     "(python -m tf2onnx.convert --tflite)"},
    {4, "ORTM", "an ONNX Runtime model (.ort)",
     "heddle does not read these; name the .onnx file it was made of"},
    {4, "PTMF", "a PyTorch mobile model", kToOnnx},
    {4, "ET12", "an ExecuTorch program", kToOnnx},
    {0, "\x89HDF\r\n\x1a\n", "an HDF5 file, such as Keras' .h5",
     "heddle does not read these; in Keras, model.export(directory) writes a SavedModel, which "
     "heddle reads"},
    {0, "GGUF", "a GGUF file (llama.cpp)", kWeightsAlone},
    {0, "ggjt", "a GGML file (llama.cpp)", kWeightsAlone},
    {0, "tjgg", "a GGML file (llama.cpp)", kWeightsAlone},
    {0, "lmgg", "a GGML file (llama.cpp)", kWeightsAlone},
    {0, "ptrt", "a TensorRT engine",
     "it holds code for one kind of GPU; name the model it was made of"},
    {0, "ftrt", "a TensorRT engine",
     "it holds code for one kind of GPU; name the model it was made of"},
    {0, "7767517\n", "an ncnn model (.param)",
     "heddle does not read these; name the model it was made of, or export that to ONNX"},
    {0, "7767517\r", "an ncnn model (.param)",
     "heddle does not read these; name the model it was made of, or export that to ONNX"},
    {0, "RKNN", "an RKNN model", "heddle does not read these; name the model it was made of"},
    {0, "\x93NUMPY", "a NumPy array (.npy)", "it is no model; name it with --feed"},
    {0, "PAR1", "a Parquet table", kNoModel},
    {0, "ARROW1", "an Arrow table", kNoModel},
    {0, "SQLite format 3", "an SQLite database", kNoModel},
    {0, "CBM1", "a CatBoost model", kToOnnx},
    {0, "tree\nversion=", "a LightGBM model", kToOnnx},
    {0, "\x1f\x8b", "a gzip archive", kUnpack},
    {0, "BZh", "a bzip2 archive", kUnpack},
    {0,
     "\xfd"
     "7zXZ\0"sv,
     "an xz archive", kUnpack},
    {0, "\x28\xb5\x2f\xfd", "a Zstandard archive", kUnpack},
    {0, "7z\xbc\xaf\x27\x1c", "a 7z archive", kUnpack},
    {0, "Rar!\x1a\x07", "a RAR archive", kUnpack},
    {257, "ustar", "a tar archive", kUnpack},
    {0, "\x89PNG\r\n\x1a\n", "an image (PNG)", kNoModel},
    {0, "\xff\xd8\xff", "an image (JPEG)", kNoModel},
    {0, "GIF8", "an image (GIF)", kNoModel},
    {0, "RIFF", "a RIFF file (WAV, AVI, WebP)", kNoModel},
    {0, "II*\0"sv, "an image (TIFF)", kNoModel},
    {0, "%PDF-", "a PDF document", kNoModel},
    {0,
     "\x7f"
     "ELF",
     "a program or library of this system (ELF)", kNoModel},
    {0, "MZ\x90", "a Windows program", kNoModel},
    {0, "\0asm"sv, "a WebAssembly module", kNoModel},
    {0, "\xff\xfe", "text in UTF-16",
     "heddle reads text (PIR's JSON, TensorFlow's .pbtxt) in UTF-8 only"},
    {0, "\xfe\xff", "text in UTF-16",
     "heddle reads text (PIR's JSON, TensorFlow's .pbtxt) in UTF-8 only"},
    {0, "model_checkpoint_path:", "the list of a TensorFlow checkpoint's files",
     "name its directory, or the .meta file, which has the graph"},
};

bool Contains(std::string_view bytes, std::string_view part) {
  return bytes.find(part) != std::string_view::npos;
}

std::string Lower(std::string_view text) {
  std::string made(text);
  for (char& c : made) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return made;
}

std::string_view Trimmed(std::string_view bytes) {
  if (bytes.starts_with("\xef\xbb\xbf")) bytes.remove_prefix(3);
  bytes.remove_prefix(std::min(bytes.find_first_not_of(" \t\r\n"), bytes.size()));
  return bytes;
}

std::optional<OtherKind> LfsPointer(std::string_view bytes) {
  if (!bytes.starts_with("version https://git-lfs.github.com/spec")) return std::nullopt;
  std::string size;
  if (const size_t at = bytes.find("\nsize "); at != std::string_view::npos)
    for (size_t i = at + 6; i < bytes.size() && std::isdigit(bytes[i]) != 0; ++i) size += bytes[i];
  return OtherKind{"a Git LFS pointer, not the file itself" +
                       (size.empty() ? std::string() : " (of " + size + " bytes)"),
                   "fetch the file with 'git lfs pull'"};
}

std::optional<OtherKind> Markup(std::string_view bytes) {
  const std::string_view begin = Trimmed(bytes);
  const std::string first = Lower(begin.substr(0, 16));
  for (const char* html : {"<!doctype html", "<html", "<head", "<body", "<script"})
    if (std::string_view(first).starts_with(html))
      return OtherKind{"an HTML page",
                       "a server sent it in place of the file; download the file itself"};
  const std::string_view xml = begin.substr(0, 4096);
  if (xml.starts_with("<net ") || (xml.starts_with("<?xml") && Contains(xml, "<net ")))
    return OtherKind{"an OpenVINO model (IR)",
                     "heddle does not read these; name the model it was made of"};
  if (xml.starts_with("<?xml") && Contains(xml, "<Error>"))
    return OtherKind{"an error message of a server (XML)",
                     "it was sent in place of the file; download the file itself"};
  if (xml.starts_with("<?xml") || xml.starts_with("<!--") || xml.starts_with("<svg"))
    return OtherKind{"an XML file", kNoModel};
  return std::nullopt;
}

std::optional<OtherKind> KindOfJson(std::string_view bytes) {
  const std::string_view text = Trimmed(bytes);
  if (text.empty() || (text[0] != '{' && text[0] != '[')) return std::nullopt;
  // TensorFlow's text form may begin like this, and so may arbitrary bytes.
  const std::string_view rest = Trimmed(text.substr(1));
  if (text[0] == '{' && !rest.empty() && rest[0] != '"' && rest[0] != '}') return std::nullopt;
  if (text[0] == '[' && !rest.empty() && !Contains("[{\"]-0123456789tfn", rest.substr(0, 1)))
    return std::nullopt;
#ifdef HEDDLE_WITHOUT_PIR
  if (rest.starts_with("\"base_code\"") || rest.starts_with("\"program\""))
    return OtherKind{"a PIR program", "this build of heddle does not read these"};
#else
  for (const std::string_view key : {"\"base_code\"", "\"program\""})
    if (text[0] == '{' && rest.substr(0, key.size()) == key.substr(0, rest.size()))
      return std::nullopt;  // a PIR program, perhaps cut short
#endif
  if (Contains(text, "\"modelTopology\"") || Contains(text, "\"weightsManifest\""))
    return OtherKind{"a TensorFlow.js model",
                     "heddle does not read these; name the TensorFlow model it was made of"};
  if (Contains(text, "\"arg_nodes\"") && Contains(text, "\"nodes\""))
    return OtherKind{"an MXNet model", kToOnnx};
  if (Contains(text, "\"class_name\"") && Contains(text, "\"config\""))
    return OtherKind{"the configuration of a Keras model",
                     "it has no weights; in Keras, model.export(directory) writes a SavedModel, "
                     "which heddle reads"};
  if (Contains(text, "\"weight_map\""))
    return OtherKind{"the index of a model's weight files", kWeightsAlone};
  if (Contains(text, "\"learner\"") && Contains(text, "\"gradient_booster\""))
    return OtherKind{"an XGBoost model", kToOnnx};
  if (Contains(text, "\"model_type\"") || Contains(text, "\"architectures\""))
    return OtherKind{"the configuration of a model, such as Hugging Face's config.json",
                     "it has no program; export the model to ONNX"};
  return OtherKind{"a JSON file, but no PIR program",
                   "one of those begins with \"base_code\" (Paddle 3 writes it as inference.json)"};
}

std::optional<OtherKind> Zip(std::string_view begin, std::string_view end) {
  if (!begin.starts_with("PK\x03\x04") && !begin.starts_with("PK\x05\x06")) return std::nullopt;
  const auto has = [&](std::string_view part) {
    return Contains(begin, part) || Contains(end, part);
  };
  if (has("constants.pkl") || has("/code/__torch__"))
    return OtherKind{"a TorchScript model",
                     "heddle does not read these; export it to ONNX (torch.onnx.export)"};
  if (has("data.pkl") || has("archive_format") || has("byteorder"))
    return OtherKind{"a PyTorch file",
                     "heddle does not read these; export the model to ONNX (torch.onnx.export)"};
  if (has("model.weights.h5"))
    return OtherKind{"a Keras model (.keras)",
                     "heddle does not read these; in Keras, model.export(directory) writes a "
                     "SavedModel, which heddle reads"};
  if (has("saved_model.pb")) return OtherKind{"a zip archive with a SavedModel", kUnpack};
  if (has(".onnx")) return OtherKind{"a zip archive with an ONNX model", kUnpack};
  if (has(".mlmodel")) return OtherKind{"a zipped Core ML package", kToOnnx};
  if (has(".npy"))
    return OtherKind{"a NumPy archive (.npz)", "it is no model; name it with --feed-npz"};
  return OtherKind{"a zip archive", kUnpack};
}

std::optional<OtherKind> Pickle(std::string_view bytes) {
  bool is = false;
  if (bytes.size() >= 2 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5)
    is = bytes.size() < 3 || Contains("}])(cXUC\x8c\x95.K\x8a\x4a\x4d", bytes.substr(2, 1));
  for (const char* old : {"(dp", "(lp", "(ip", "ccopy_reg\n", "cnumpy", "ccollections\n"})
    is = is || bytes.starts_with(old);
  if (!is) return std::nullopt;
  if (Contains(bytes, "torch") || Contains(bytes, "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"))
    return OtherKind{"a PyTorch file",
                     "heddle does not read these; export the model to ONNX (torch.onnx.export)"};
  if (Contains(bytes, "sklearn"))
    return OtherKind{"a scikit-learn model",
                     "heddle does not read pickles of classes; convert it "
                     "to ONNX (skl2onnx)"};
  return OtherKind{"a Python pickle",
                   "it holds no program; one with parameters (.pdparams, .pdopt) is named with "
                   "--params, beside its program"};
}

std::optional<OtherKind> Safetensors(std::string_view bytes) {
  uint64_t header = 0;
  if (bytes.size() < 10) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof(header));
  const std::string_view text = bytes.substr(sizeof(header));
  if (header < 2 || header > 100'000'000 || text[0] != '{' || (text[1] != '"' && text[1] != '}'))
    return std::nullopt;
  return OtherKind{"a safetensors file", kWeightsAlone};
}

// Recognises protobuf messages of other formats by their fields.
std::optional<OtherKind> OtherMessage(std::string_view bytes) {
  if (!bytes.starts_with('\x08') && !bytes.starts_with('\x10')) return std::nullopt;
  bool tensor = true, typed = false, filled = false, described = false;
  constexpr int kMostFields = 64;
  for (int i = 0; i < kMostFields && !bytes.empty(); ++i) {
    uint64_t tag = 0, value = 0;
    if (!wire::TakeVarint(&bytes, &tag) || (tag & 7) == wire::Field::kFixed64 ||
        (tag & 7) == wire::Field::kFixed32 || !wire::TakeVarint(&bytes, &value))
      break;
    const uint64_t field = tag >> 3;
    const bool is_message = (tag & 7) == wire::Field::kBytes;
    // Core ML: a description, then the model in a field whose number is its kind. ONNX has no such
    // numbers.
    if (described && is_message && field >= 200 && field <= 3000)
      return OtherKind{"a Core ML model", kToOnnx};
    described = described || (is_message && field == 2);
    // ONNX tensors: dimensions and a type, then data or a name.
    typed = typed || (field == 2 && !is_message);
    filled = filled || (is_message && (field == 8 || field == 9 || field == 13));
    tensor = tensor &&
             (field == 1 || field == 4 || field == 5 || field >= 7 || (field == 2 && !is_message));
    if (is_message) bytes.remove_prefix(std::min<uint64_t>(value, bytes.size()));
  }
  if (tensor && typed && filled)
    return OtherKind{"a single tensor in ONNX's form", "it is no model; name it with --feed"};
  return std::nullopt;
}

// Recognises a record of Paddle's parameters (formats/paddle/param_records.h).
std::optional<OtherKind> PaddleParameters(std::string_view bytes) {
  static constexpr std::string_view kBegin("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
  if (bytes.size() < 21 || !bytes.starts_with(kBegin)) return std::nullopt;
  int32_t desc = 0;
  std::memcpy(&desc, bytes.data() + kBegin.size(), sizeof(desc));
  if (desc <= 0 || desc > 4096 || bytes[20] != '\x08') return std::nullopt;
  return OtherKind{"a file of Paddle's parameters (.pdiparams)",
                   "name its program (.pdmodel or .json), and this one with --params where it is "
                   "not beside it"};
}

std::optional<OtherKind> TableIndex(std::string_view end) {
  if (!end.ends_with(kTableMagic)) return std::nullopt;
  return OtherKind{"the index of a TensorFlow checkpoint",
                   "name the SavedModel, or the .meta file, which has the graph"};
}

std::optional<OtherKind> Zeros(std::string_view begin, std::string_view end) {
  const auto zero = [](char c) { return c == '\0'; };
  if (begin.size() < 64 || !std::all_of(begin.begin(), begin.end(), zero) ||
      !std::all_of(end.begin(), end.end(), zero))
    return std::nullopt;
  return OtherKind{"a file of zeros",
                   "its contents were never written, as in a download that was "
                   "interrupted; fetch it again"};
}

// Kinds without recognisable bytes, by the names of their files.
std::optional<OtherKind> KindByName(std::string_view name) {
  struct Ending {
    const char* ending;
    const char* what;
    const char* instead;
  };
  static constexpr Ending kEndings[] = {
      {".mnn", "an MNN model", "heddle does not read these; name the model it was made of"},
      {".nb", "a Paddle Lite model",
       "heddle does not read these; name the .pdmodel it was made of"},
      {".engine", "a TensorRT engine", "name the model it was made of"},
      {".plan", "a TensorRT engine", "name the model it was made of"},
      {".trt", "a TensorRT engine", "name the model it was made of"},
      {".om", "an Ascend model", "name the model it was made of"},
      {".dlc", "a Snapdragon model", "name the model it was made of"},
      {".caffemodel", "a Caffe model", kToOnnx},
      {".prototxt", "a Caffe network", kToOnnx},
      {".cfg", "a Darknet network", kToOnnx},
      {".weights", "a file of weights", kWeightsAlone},
      {".bin", "a file of weights", kWeightsAlone},
      {".data", "a file of weights", "name the model that it belongs to"},
      {".onnx_data", "a file of weights", "name the .onnx file that it belongs to"},
      {".pt", "a PyTorch file", kToOnnx},
      {".pth", "a PyTorch file", kToOnnx},
      {".pdiparams", "a file of Paddle's parameters", "name its program (.pdmodel or .json)"},
  };
  const std::string lower = Lower(name);
  for (const Ending& e : kEndings)
    if (std::string_view(lower).ends_with(e.ending)) return OtherKind{e.what, e.instead};
  if (Contains(lower, ".data-0"))
    return OtherKind{"a file of TensorFlow's variables",
                     "name the SavedModel, or the .meta file, which has the graph"};
  return std::nullopt;
}

std::optional<OtherKind> KindOfEnds(std::string_view begin, std::string_view end) {
  if (auto kind = LfsPointer(begin)) return kind;
  for (const Magic& m : kMagics) {
    // FlatBuffers begin with a small offset, so byte 3 is zero; a text may have the same bytes at
    // 4.
    if (begin.size() < m.at || (m.at == 4 && begin[3] != '\0')) continue;
    if (begin.substr(m.at).starts_with(m.bytes)) return OtherKind{m.what, m.instead};
  }
  if (auto kind = Markup(begin)) return kind;
  if (auto kind = Zip(begin, end)) return kind;
  if (auto kind = Pickle(begin)) return kind;
  if (auto kind = PaddleParameters(begin)) return kind;
  if (auto kind = Safetensors(begin)) return kind;
  if (auto kind = KindOfJson(begin)) return kind;
  if (auto kind = TableIndex(end)) return kind;
  if (auto kind = Zeros(begin, end)) return kind;
  return OtherMessage(begin);
}

bool IsText(std::string_view bytes) {
  return !bytes.empty() && std::all_of(bytes.begin(), bytes.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x80 || std::isprint(byte) != 0 || std::isspace(byte) != 0;
  });
}

std::string InHex(std::string_view bytes) {
  std::string text;
  for (char c : bytes.substr(0, 8)) {
    constexpr char kDigits[] = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    text += text.empty() ? "" : " ";
    text += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return text;
}

}  // namespace

std::optional<OtherKind> OtherKindOf(std::string_view bytes) {
  const std::string_view end = bytes.substr(bytes.size() - std::min(bytes.size(), kLooked));
  return KindOfEnds(bytes.substr(0, kLooked), end);
}

std::optional<OtherKind> OtherKindOf(const DataFile& file) {
  std::string begin(std::min(file.size(), kLooked), '\0'), end = begin;
  if (!file.Fill(begin.data(), begin.size(), 0).ok() ||
      !file.Fill(end.data(), end.size(), file.size() - end.size()).ok())
    return std::nullopt;
  return KindOfEnds(begin, end);
}

Status CheckKind(std::string_view bytes, const std::string& name) {
  if (bytes.empty()) return DataLoss(name, ": the file is empty");
  if (const auto kind = OtherKindOf(bytes)) return Unimplemented(name, ": this is ", kind->Text());
  return Status::Ok();
}

Status UnknownKind(std::string_view bytes, const std::string& name) {
  constexpr const char* kReads =
      "heddle reads ONNX models, TensorFlow graphs and SavedModels, and Paddle's programs "
      "(.pdmodel, .json)";
  if (const auto kind = KindByName(name))
    return Unimplemented(name, ": no model that heddle reads; by its name this is ", kind->Text());
  if (IsText(bytes.substr(0, 512))) {
    std::string_view line = Trimmed(bytes).substr(0, 40);
    line = line.substr(0, line.find_first_of("\r\n"));
    return Unimplemented(name, ": this is text, which begins with '", line, "', and no model; ",
                         kReads);
  }
  return DataLoss(name, ": none of the models that heddle knows begins with the bytes ",
                  InHex(bytes), " (", bytes.size(), " in all); ", kReads);
}

std::string OtherKindNote(const DataFile& file) {
  const auto kind = OtherKindOf(file);
  return kind ? StrCat("; it is ", kind->Text()) : std::string();
}

std::string OtherKindsIn(const std::string& directory) {
  std::vector<fs::path> files, folders;
  std::error_code error;
  constexpr size_t kMostEntries = 1000;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (files.size() + folders.size() == kMostEntries) break;
    if (it->is_regular_file(ignored)) files.push_back(it->path());
    if (it->is_directory(ignored)) folders.push_back(it->path());
  }
  std::sort(files.begin(), files.end());
  std::sort(folders.begin(), folders.end());
  // Models may also lie one folder below.
  for (const fs::path& folder : folders)
    for (const Format* format : Formats())
      for (const std::string& file : format->FileNames())
        if (fs::is_regular_file(folder / file, error))
          return StrCat("; there is one in ", (folder / file).string());
  // A model of another kind is more likely to be meant than a note beside it, so it is named first.
  std::string note;
  for (const fs::path& path : files) {
    const auto file = DataFile::Open(path.string());
    if (!file.ok()) continue;
    auto kind = OtherKindOf(**file);
    if (!kind) kind = KindByName(path.filename().string());
    if (!kind) continue;
    std::string text = StrCat("; ", path.filename().string(), " is ", kind->Text());
    const bool is_note =
        kind->instead == kNoModel || path.extension() == ".json" || path.extension() == ".html";
    if (!is_note) return text;
    if (note.empty()) note = std::move(text);
  }
  return note;
}

}  // namespace heddle::formats
