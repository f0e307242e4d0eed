// Files that are no model: each kind by itself, in a directory, from memory, as parameters, and cut
// short anywhere; and bytes of nothing. There is one error, and it says what the file is.
#include "formats/other_kinds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "formats/leveldb_table.h"
#include "heddle/model_files.h"
#include "tests/formats/onnx/onnx_bytes.h"
#include "tests/formats/tensorflow/graph_bytes.h"
#include "tests/support/files.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace std::string_literals;

struct Kind {
  std::string name;   // of the file
  std::string bytes;  // of the file
  std::string said;   // a part of the message
  size_t least = 0;   // so many bytes tell the kind
};

std::string Noise(std::mt19937* random, size_t bytes) {
  std::string made(bytes, '\0');
  for (char& c : made) c = static_cast<char>((*random)());
  return made;
}

// A local header of a zip archive with a member, and its entry of the directory.
std::string ZipOf(const std::vector<std::string>& members) {
  std::string file, directory;
  for (const std::string& name : members) {
    std::string facts(26, '\0');
    facts[22] = static_cast<char>(name.size());
    file += "PK\3\4"s + facts + name;
    directory += "PK\1\2"s + std::string(24, '\0') + static_cast<char>(name.size()) +
                 std::string(17, '\0') + name;
  }
  return file + directory + "PK\5\6"s + std::string(18, '\0');
}

std::string Flat(std::string_view id) { return "\x1c\0\0\0"s + std::string(id); }

std::string Utf16(std::string_view text) {
  std::string made = "\xff\xfe";
  for (char c : text) made += {c, '\0'};
  return made;
}

std::string Tar() {
  std::string made(257, '\0');
  made.replace(0, 7, "m.onnx\0"s);
  return made + "ustar\00000"s;
}

std::string RecordFile() {
  const TempDir dir;
  EXPECT_TRUE(WriteTensors(dir / "p", {{"w", RandomF32({3, 4}, 1)}}).ok());
  return ReadAll(dir / "p");
}

std::vector<Kind> Kinds() {
  std::mt19937 random(3);
  std::vector<Kind> kinds = {
      {"model.onnx",
       "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n",
       "a Git LFS pointer", 39},
      {"model.onnx", "<!DOCTYPE html>\n<html><head><title>Sign in</title>", "an HTML page", 14},
      {"model.pdmodel", "\n\n  <HTML lang=\"en\">", "an HTML page", 9},
      {"m.pb", "\xef\xbb\xbf<html>", "an HTML page", 8},
      {"m.onnx", "<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code>",
       "an error message of a server", 28},
      {"m.tflite", Flat("TFL3") + Noise(&random, 200), "a TensorFlow Lite model", 8},
      {"m.ort", Flat("ORTM") + Noise(&random, 200), "an ONNX Runtime model", 8},
      {"m.ptl", Flat("PTMF") + Noise(&random, 200), "a PyTorch mobile model", 8},
      {"m.h5", "\x89HDF\r\n\x1a\n" + Noise(&random, 200), "HDF5", 8},
      {"m.keras", ZipOf({"metadata.json", "config.json", "model.weights.h5"}), "a Keras model"},
      {"m.pt", ZipOf({"m/data.pkl", "m/code/__torch__.py", "m/constants.pkl"}), "TorchScript"},
      {"m.pth", ZipOf({"m/data.pkl", "m/byteorder", "m/data/0"}), "a PyTorch file"},
      {"m.zip", ZipOf({"m/saved_model.pb"}), "a zip archive with a SavedModel"},
      {"m.zip", ZipOf({"folder/m.onnx"}), "a zip archive with an ONNX model"},
      {"m.zip", ZipOf({"notes.txt"}), "a zip archive", 4},
      {"m.npz", ZipOf({"x.npy", "y.npy"}), "a NumPy archive"},
      {"m.pt", "\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.", "a PyTorch file",
       14},
      {"m.pkl", "\x80\x04\x95\x10\0\0\0\0\0\0\0}\x94."s, "a Python pickle", 2},
      {"m.pdparams", "\x80\x02}q\x01(X\x08\0\0\0linear.w"s, "a Python pickle", 2},
      {"m.pkl", "(dp0\nS'a'\np1\n", "a Python pickle", 3},
      {"m.joblib", "\x80\x04\x95\x30\0\0\0\0\0\0\0\x8c\x10sklearn.pipeline\x94"s, "scikit-learn",
       24},
      {"model.safetensors", "\x40\0\0\0\0\0\0\0{\"w\":{\"dtype\":\"F32\",\"shape\":[2]}}"s,
       "a safetensors file", 10},
      {"m.gguf", "GGUF\3\0\0\0"s + Noise(&random, 100), "a GGUF file", 4},
      {"m.mlmodel", Message().Int(1, 4).Add(2, Message().Bytes(100, "x")).Bytes(500, "net").bytes(),
       "a Core ML model"},
      {"m.xml", "<?xml version=\"1.0\"?>\n<net name=\"m\" version=\"11\"><layers>",
       "an OpenVINO model", 28},
      {"m.mnn", "\x18\0\0\0\xf0\xff\xff\xff"s + Noise(&random, 90), "an MNN model"},
      {"m.param", "7767517\n2 2\nInput data 0 1 data\n", "an ncnn model", 8},
      {"m.engine", "ptrt\0\0\0\0"s + Noise(&random, 90), "a TensorRT engine", 4},
      {"m.json", "{\"modelTopology\": {}, \"weightsManifest\": []}", "a TensorFlow.js model", 18},
      {"config.json", "{\n \"architectures\": [\"BertModel\"]}", "the configuration of a model",
       18},
      {"m.json", "{\"class_name\": \"Sequential\", \"config\": {}}", "a Keras model", 38},
      {"m.json", "{\"a\": 1}", "a JSON file, but no PIR program", 3},
      {"m.json", "[1, 2, 3]", "a JSON file, but no PIR program", 2},
      {"m.gz", "\x1f\x8b\x08\0"s + Noise(&random, 90), "a gzip archive", 2},
      {"m.bz2", "BZh91AY" + Noise(&random, 90), "a bzip2 archive", 3},
      {"m.xz", "\xfd"s + "7zXZ\0"s + Noise(&random, 90), "an xz archive", 6},
      {"m.zst", "\x28\xb5\x2f\xfd" + Noise(&random, 90), "a Zstandard archive", 4},
      {"m.tar", Tar(), "a tar archive", 262},
      {"m.png", "\x89PNG\r\n\x1a\n" + Noise(&random, 90), "an image", 8},
      {"m.jpg", "\xff\xd8\xff\xe0" + Noise(&random, 90), "an image", 3},
      {"x.npy", "\x93NUMPY\1\0v\0{'descr': '<f4'"s, "a NumPy array", 6},
      {"input_0.pb", Tensor32("x", {2, 3}, {1, 2, 3, 4, 5, 6}).bytes(), "a single tensor"},
      {"m.txt", "Some notes on this model.\nThere are many.\n", "this is text", 1},
      {"m.py", "import numpy as np\n", "this is text", 1},
      {"m.txt", "\n\n\n\n\nSome notes on this model.", "this is text", 20},
      {"m.txt", "*** Settings ***\nLibrary", "this is text", 10},
      {"m.csv", "\"a\",\"b\"\n1,2\n", "this is text", 3},
      {"m.txt", Utf16("{\"base_code\": {}}"), "UTF-16", 2},
      {"m.pdiparams", RecordFile(), "Paddle's parameters", 21},
      {"m.data", std::string(500, '\0'), "a file of zeros", 64},
      {"m.so", "\x7f"s + "ELF\2\1\1"s + Noise(&random, 90), "a program or library", 4},
      {"checkpoint", "model_checkpoint_path: \"m.ckpt-10\"\n", "TensorFlow checkpoint", 22},
      {"m.index", Noise(&random, 90) + std::string(formats::kTableMagic),
       "the index of a TensorFlow checkpoint"},
      {"m.bin", "\x7c" + Noise(&random, 900), "a file of weights"},
      {"m.caffemodel", "\x0a\x03net" + Noise(&random, 90), "a Caffe model"},
  };
  for (Kind& k : kinds)
    if (k.least == 0) k.least = k.bytes.size();
  return kinds;
}

std::string ErrorOfLoading(const std::string& path) {
  const auto model = LoadModel(path);
  EXPECT_FALSE(model.ok());
  return model.ok() ? "" : model.status().ToString();
}

TEST(OtherKinds, AreNamedForWhatTheyAre) {
  for (const Kind& k : Kinds()) {
    SCOPED_TRACE(k.name + ", " + k.said);
    const TempDir dir;
    WriteAll(dir / k.name, k.bytes);
    const std::string error = ErrorOfLoading(dir / k.name);
    EXPECT_THAT(error, HasSubstr(k.said));
    EXPECT_THAT(error, HasSubstr(dir / k.name + ": "));
    const auto parsed = ParseModel(k.bytes, "", k.name);
    EXPECT_FALSE(parsed.ok());
    EXPECT_THAT(parsed.status().ToString(), HasSubstr(k.said));
    if (k.said == "this is text") continue;
    // A directory that holds it, and notes.
    WriteAll(dir / "README.md", "# Notes");
    EXPECT_THAT(ErrorOfLoading(dir.path()), HasSubstr(k.said));
  }
}

TEST(OtherKinds, AreNamedWhenTheyAreCutShort) {
  std::mt19937 random(5);
  for (const Kind& k : Kinds()) {
    for (int i = 0; i < 12; ++i) {
      const size_t length = i == 0 ? k.least : 1 + random() % k.bytes.size();
      SCOPED_TRACE(k.name + ", " + k.said + ", " + std::to_string(length));
      const auto parsed = ParseModel(k.bytes.substr(0, length), "", k.name);
      ASSERT_FALSE(parsed.ok());
      const std::string error = parsed.status().ToString();
      if (length >= k.least) {
        EXPECT_THAT(error, HasSubstr(k.said));
      } else {
        EXPECT_THAT(error, Not(HasSubstr("not a Paddle program")));
      }
    }
  }
}

TEST(OtherKinds, AreNamedInPlaceOfParameters) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1, 4}).Param("w", DType::kF32, {4, 3});
  b.Op("matmul_v2", {{"X", {"x"}}, {"Y", {"w"}}}, {{"Out", {"y"}}}).Fetch("y");
  const TempDir dir;
  WriteAll(dir / "m.pdmodel", b.Bytes());
  for (const Kind& k : Kinds()) {
    if (k.bytes[0] == '\0' || k.bytes[0] == '\x80') continue;  // records, pickles
    SCOPED_TRACE(k.name + ", " + k.said);
    WriteAll(dir / "m.pdiparams", k.bytes);
    const std::string error = ErrorOfLoading(dir / "m.pdmodel");
    EXPECT_THAT(error, HasSubstr("m.pdiparams: "));
    if (formats::OtherKindOf(k.bytes)) {
      EXPECT_THAT(error, HasSubstr(k.said));
    }
  }
}

TEST(OtherKinds, ExternalDataIsNamed) {
  const TempDir dir;
  const Message w = TensorHead("w", 1, {400})
                        .Int(14, 1)
                        .Add(13, Message().Bytes(1, "location").Bytes(2, "w.bin"));
  OnnxGraph g;
  g.In("x", 1, {400}).Weight(w).Add(Node("Add", {"x", "w"}, {"y"})).Out("y", 1, {400});
  WriteAll(dir / "m.onnx", g.Model());
  WriteAll(dir / "w.bin", Kinds()[0].bytes);
  EXPECT_THAT(ErrorOfLoading(dir / "m.onnx"), HasSubstr("it is a Git LFS pointer"));
}

TEST(OtherKinds, BytesOfNothingAreOneClearError) {
  std::mt19937 random(11);
  const int turns = Repeats("HEDDLE_OTHER_KINDS", 300);
  for (int i = 0; i < turns; ++i) {
    std::string bytes = Noise(&random, 1 + random() % 300);
    // Often what a model might begin with.
    constexpr std::string_view kFirst = "\x08\x0a\x12\x22\x2a{[\n\x80PK";
    if (i % 3 == 0) bytes[0] = kFirst[random() % kFirst.size()];
    const auto parsed = ParseModel(bytes, "", "some.bytes");
    ASSERT_FALSE(parsed.ok());
    const std::string error = parsed.status().ToString();
    EXPECT_THAT(error, HasSubstr("some.bytes: "));
    EXPECT_THAT(error, Not(HasSubstr("INTERNAL")));
    EXPECT_LT(std::count(error.begin(), error.end(), '\n'), 8) << error;
  }
}

// What a program begins with is nothing else.
TEST(OtherKinds, ProgramsAreNone) {
  for (const char* extension : {".pdmodel", ".onnx", ".pb", ".json"}) {
    for (const std::string& path : ModelFiles(extension)) {
      if (path.ends_with(".json") && path.find("inference.json") == std::string::npos &&
          path.find("model.json") == std::string::npos)
        continue;
      if (path.find("test_data") != std::string::npos) continue;
      const std::string bytes = ReadAll(path);
      const auto kind = formats::OtherKindOf(bytes);
      EXPECT_FALSE(kind) << path << ": " << kind->Text();
      for (const size_t length : {3, 10, 50, 300})
        EXPECT_FALSE(formats::OtherKindOf(std::string_view(bytes).substr(0, length))) << path;
    }
  }
}

TEST(OtherKinds, ADirectoryTellsOfAModelInAFolder) {
  const TempDir dir;
  fs::create_directory(dir / "onnx");
  WriteAll(dir / "onnx/model.onnx", "x");
  WriteAll(dir / "config.json", "{\"model_type\": \"bert\"}");
  EXPECT_THAT(ErrorOfLoading(dir.path()), HasSubstr(dir / "onnx/model.onnx"));
}

}  // namespace
}  // namespace heddle::testing
