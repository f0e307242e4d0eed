#include "tools/feeds.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <utility>

#include "heddle/model_files.h"
#include "heddle/onnx.h"
#include "heddle/string_tensor.h"
#include "tools/values/element_types.h"
#include "tools/values/names.h"
#include "tools/values/npy.h"
#include "tools/values/sequences.h"
#include "tools/values/values.h"

namespace heddle::tools {
namespace {

// "2,3,224" or "2x3x224"; "-" for a scalar. At most Shape::kMaxRank dimensions >= 0.
bool ParseShape(const std::string& text, Shape* shape) {
  *shape = Shape();
  if (text == "-") return true;
  const char* p = text.data();
  const char* end = p + text.size();
  while (true) {
    int64_t d = 0;
    const auto [next, error] = std::from_chars(p, end, d);
    if (error != std::errc() || d < 0 || shape->rank() == Shape::kMaxRank) return false;
    shape->push_back(d);
    if (next == end) return true;
    if (*next != ',' && *next != 'x') return false;
    p = next + 1;
  }
}

std::string InputNames(const std::vector<TensorInfo>& inputs) {
  if (inputs.empty()) return "the model has no inputs";
  std::string names;
  for (const TensorInfo& i : inputs) names += (names.empty() ? "" : ", ") + i.name;
  return "the model's inputs are: " + names;
}

// SplitMix64: one well-mixed number per step.
class Random {
 public:
  explicit Random(const std::string& name) {
    for (char c : name) state_ = (state_ ^ static_cast<uint8_t>(c)) * 0x100000001b3ull;  // FNV-1a
  }
  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  // In [-1, 1), exact in every float type of 8 bits of precision or more.
  float Unit() { return static_cast<float>(Next() >> 56) / 128.0f - 1.0f; }

 private:
  uint64_t state_ = 0xcbf29ce484222325ull;
};

uint16_t HalfBits(float x, DType dtype) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  if (dtype == DType::kBF16) return static_cast<uint16_t>(bits >> 16);
  if (x == 0) return 0;
  const uint32_t exponent = ((bits >> 23) & 255) - 127 + 15;  // Unit() is normal in float16
  return static_cast<uint16_t>((bits >> 16 & 0x8000) | exponent << 10 | (bits >> 13 & 0x3ff));
}

// Floats in [-1, 1); integers and bools 0 or 1, which are valid as an index, a class or a length of
// almost any model.
void FillRandom(const std::string& name, Tensor* tensor) {
  Random random(name);
  const DType dtype = tensor->dtype();
  const size_t size = SizeOf(dtype);
  auto* at = tensor->mutable_data<std::byte>();
  if (IsInteger(dtype)) {
    std::memset(at, 0, tensor->bytes());
    for (int64_t i = 0; i < tensor->numel(); ++i)
      at[i * size] = static_cast<std::byte>(random.Next() >> 63);
    return;
  }
  const bool wide = dtype == DType::kF64 || dtype == DType::kC128;
  const int64_t n = tensor->numel() * (IsComplex(dtype) ? 2 : 1);
  for (int64_t i = 0; i < n; ++i) {
    const float x = random.Unit();
    if (size == 2) {
      reinterpret_cast<uint16_t*>(at)[i] = HalfBits(x, dtype);
    } else if (wide) {
      reinterpret_cast<double*>(at)[i] = x;
    } else {
      reinterpret_cast<float*>(at)[i] = x;
    }
  }
}

// Texts of one letter.
Value RandomTexts(const std::string& name, const Shape& shape) {
  Random random(name);
  StringTensor strings{shape, {}};
  for (int64_t i = 0; i < shape.numel(); ++i)
    strings.elements.emplace_back(1, static_cast<char>('a' + random.Next() % 26));
  return ValueOf(std::move(strings));
}

Result<Value> RandomValue(const TensorInfo& input, const std::string& type, const Shape* shape) {
  Shape actual = shape ? *shape : input.shape;
  if (!actual.known_rank())
    return Status(StatusCode::kInvalidArgument, "the model does not say the rank of input '" +
                                                    input.name + "': give --shape " + input.name +
                                                    "=…");
  for (int i = 0; i < actual.rank(); ++i)
    if (actual[i] < 0) actual[i] = 1;
  if (type == "string") return RandomTexts(input.name, actual);
  const DType dtype = input.dtype == DType::kUnknown ? DType::kF32 : input.dtype;
  Tensor tensor = Tensor::Empty(dtype, actual);
  if (!tensor.initialized())
    return Status(StatusCode::kResourceExhausted,
                  "no memory for input '" + input.name + "' of shape " + actual.ToString());
  FillRandom(input.name, &tensor);
  return Value(std::move(tensor));
}

using Pair = std::pair<std::string, std::string>;

std::vector<std::string> NamesOf(const std::vector<TensorInfo>& inputs) {
  std::vector<std::string> names;
  for (const TensorInfo& i : inputs) names.push_back(i.name);
  return names;
}

// Pairs as a map; a name that is no input, or given twice, is an error.
Result<std::map<std::string, std::string>> ByName(
    const std::vector<std::string>& texts, const std::string& option,
    const std::vector<TensorInfo>& inputs, const std::function<Pair(const std::string&)>& cut) {
  std::map<std::string, std::string> map;
  const std::vector<std::string> names = NamesOf(inputs);
  for (const std::string& text : texts) {
    auto [name, value] = cut(text);
    if (std::find(names.begin(), names.end(), name) == names.end())
      return Status(StatusCode::kInvalidArgument, option + ": there is no input '" + name + "'" +
                                                      DidYouMean(name, names) + "; " +
                                                      InputNames(inputs));
    if (!map.emplace(name, std::move(value)).second)
      return Status(StatusCode::kInvalidArgument, option + ": input '" + name + "' is given twice");
  }
  return map;
}

bool BeginsWith(const std::string& path, std::string_view bytes) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;  // a pipe is read once
  std::ifstream file(path, std::ios::binary);
  std::string start(bytes.size(), '\0');
  return file.read(start.data(), static_cast<std::streamsize>(start.size())) && start == bytes;
}

// The only array of an archive, or that of the input's name.
Result<NpyArray> ReadMember(const std::string& path, const std::string& input, uint64_t most) {
  HEDDLE_ASSIGN_OR_RETURN(NamedArrays arrays, ReadNpzArrays(path, most));
  for (auto& [name, array] : arrays)
    if (name == input || arrays.size() == 1) return std::move(array);
  return Status(StatusCode::kNotFound, path + ": has no array '" + input + "'");
}

// A TensorProto of ONNX.
Result<Value> ReadProto(const std::string& path, DType dtype, const std::string& type,
                        const std::string& what) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Status(StatusCode::kNotFound, path + ": no such file, or not readable");
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::string given;
  auto value = ReadOnnxTensor(bytes, &given);
  if (!value.ok()) {
    // A TensorProto begins with its dimensions or its type.
    const bool another = !bytes.starts_with('\x08') && !bytes.starts_with('\x10') &&
                         (bytes.empty() || !KindOfBytes(bytes).empty());
    if (another) return NotA("a TensorProto", path, bytes);
    return Status(value.status().code(), path + ": " + value.status().message());
  }
  const std::string expected = TypeText(dtype, type);
  if (given == expected || (type.empty() && dtype == DType::kUnknown)) return value;
  return Status(StatusCode::kInvalidArgument,
                path + ": holds " + given + ", " + what + " takes " + expected);
}

Result<Value> ReadFeed(const std::string& path, const TensorInfo& input, const std::string& type,
                       uint64_t unpack_limit) {
  const std::string what = "input '" + input.name + "'";
  if (path.ends_with(".pb")) return ReadProto(path, input.dtype, type, what);
  auto array =
      BeginsWith(path, "PK\3\4") ? ReadMember(path, input.name, unpack_limit) : ReadNpyArray(path);
  HEDDLE_RETURN_IF_ERROR(array.status());
  return FeedValue(*array, input.dtype, type, path, what);
}

// The arrays of an archive by the inputs' names. Offsets are numbers, and go with theirs.
Status ReadArchive(const std::string& path, uint64_t most, const ProgramInputs& inputs,
                   std::map<std::string, Value>* values) {
  HEDDLE_ASSIGN_OR_RETURN(NamedArrays arrays, ReadNpzArrays(path, most));
  NamedTensors tensors;
  for (auto& [name, array] : arrays) {
    size_t k = 0;
    while (k < inputs.infos.size() && inputs.infos[k].name != name) ++k;
    if (k < inputs.infos.size()) {
      HEDDLE_ASSIGN_OR_RETURN(array.value,
                              FeedValue(array, inputs.infos[k].dtype, inputs.types[k],
                                        path + ": array '" + name + "'", "input '" + name + "'"));
    }
    if (array.value.is_tensor())
      tensors.emplace_back(name, array.value.tensor());
    else
      values->emplace(name, array.value);
  }
  HEDDLE_RETURN_IF_ERROR(AttachOffsets(path, &tensors));
  for (auto& [name, tensor] : tensors) values->emplace(name, Value(std::move(tensor)));
  return Status::Ok();
}

Status NoValue(const TensorInfo& input, const std::string& type) {
  return Status(StatusCode::kInvalidArgument,
                "input '" + input.name + "' (" + TypeText(input.dtype, type) + " " +
                    input.shape.ToString() + ") has no value: give --feed " + input.name +
                    "=FILE.npy, or --random-feed");
}

}  // namespace

void AddPairs(Command app, const std::string& name, std::vector<std::string>* pairs,
              const std::string& type, const std::string& help,
              std::function<std::string(const std::string&)> check) {
  app.add_option(name, *pairs, help).type_name(type).one_value_each().check(std::move(check));
}

std::string CheckShape(const std::string& text) {
  const std::string why = CheckPair(text);
  if (!why.empty()) return why;
  Shape shape;
  if (ParseShape(SplitAtLast(text).second, &shape)) return "";
  return "'" + text + "' is not of the form NAME=2,3,4";
}

std::pair<std::string, Shape> SplitShape(const std::string& text) {
  const auto [name, numbers] = SplitAtLast(text);
  Shape shape;
  ParseShape(numbers, &shape);
  return {name, shape};
}

std::string CheckLod(const std::string& text) {
  const std::string why = CheckPair(text);
  if (!why.empty()) return why;
  const auto lod = ParseLod(SplitAtLast(text).second);
  return lod.ok() ? CheckOffsets(*lod).message() : lod.status().message();
}

void AddFeedOptions(Command app, FeedOptions* options) {
  AddPairs(app, "--feed", &options->files, "NAME=FILE",
           "value of an input; once for each input: an array of NumPy's, an archive of one, or a "
           "TensorProto (.pb)",
           CheckPair);
  app.add_option("--feed-npz", options->npz, "values of inputs, under their names")
      .type_name("FILE.npz");
  app.add_option("--unpack-limit", options->unpack_limit,
                 "bytes that the arrays of an archive may have in all; 0 = 256 MiB, or 100 times "
                 "the archive's")
      .type_name("BYTES");
  app.add_flag(
      "--random-feed", options->random,
      "random values for the inputs without one: the same in every run; floats in [-1, 1), "
      "integers 0 or 1, open dimensions 1");
  AddPairs(app, "--shape", &options->shapes, "NAME=1,3,224,224", "shape of a random input",
           CheckShape);
  AddPairs(app, "--lod", &options->lods, "NAME=0,2,5",
           "sequence offsets of an input, levels separated by |", CheckLod);
}

std::vector<TensorInfo> InputsOf(const Program& program) {
  std::vector<TensorInfo> inputs = program.inputs();
  return inputs.empty() ? program.unwritten() : inputs;
}

Result<std::vector<std::string>> FeedNames(const std::string& model, const std::string& signature,
                                           const std::vector<std::string>& pairs) {
  std::vector<std::string> known;
  if (!IsPipe(model) && std::any_of(pairs.begin(), pairs.end(), IsAmbiguousPair)) {
    HEDDLE_ASSIGN_OR_RETURN(const std::string file, FindProgramFile(model));
    const auto program = LoadProgram(file, {.signature = signature});
    if (program.ok())
      for (const TensorInfo& input : InputsOf(*program)) known.push_back(input.name);
  }
  std::vector<std::string> names;
  for (const std::string& pair : pairs) names.push_back(SplitPair(pair, known).first);
  return names;
}

ProgramInputs TypedInputsOf(const Program& program) {
  std::vector<TensorInfo> inputs = InputsOf(program);
  std::vector<std::string> types = InputTypes(program, inputs);
  return {std::move(inputs), std::move(types)};
}

Result<std::vector<Feed>> MakeFeeds(const ProgramInputs& inputs, const FeedOptions& options) {
  const std::vector<std::string> names = NamesOf(inputs.infos);
  HEDDLE_ASSIGN_OR_RETURN(const auto files,
                          ByName(options.files, "--feed", inputs.infos,
                                 [&](const std::string& text) { return SplitPair(text, names); }));
  HEDDLE_ASSIGN_OR_RETURN(const auto shapes,
                          ByName(options.shapes, "--shape", inputs.infos, SplitAtLast));
  HEDDLE_ASSIGN_OR_RETURN(const auto lods,
                          ByName(options.lods, "--lod", inputs.infos, SplitAtLast));
  std::map<std::string, Value> archive;
  if (!options.npz.empty())
    HEDDLE_RETURN_IF_ERROR(ReadArchive(options.npz, options.unpack_limit, inputs, &archive));
  std::vector<Feed> feeds;
  for (size_t k = 0; k < inputs.infos.size(); ++k) {
    const TensorInfo& input = inputs.infos[k];
    const std::string& type = inputs.types[k];
    Value value;
    const auto shape = shapes.find(input.name);
    if (const auto file = files.find(input.name); file != files.end()) {
      HEDDLE_ASSIGN_OR_RETURN(value, ReadFeed(file->second, input, type, options.unpack_limit));
    } else if (const auto member = archive.find(input.name); member != archive.end()) {
      value = member->second;
    } else if (options.random) {
      Shape wanted;
      if (shape != shapes.end()) ParseShape(shape->second, &wanted);
      HEDDLE_ASSIGN_OR_RETURN(value,
                              RandomValue(input, type, shape != shapes.end() ? &wanted : nullptr));
    } else {
      return NoValue(input, type);
    }
    if (const auto lod = lods.find(input.name); lod != lods.end() && value.is_tensor()) {
      HEDDLE_ASSIGN_OR_RETURN(LoD levels, ParseLod(lod->second));
      value.tensor().set_lod(std::move(levels));
    }
    feeds.push_back({input.name, std::move(value)});
  }
  return feeds;
}

}  // namespace heddle::tools
