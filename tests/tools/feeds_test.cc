// What goes into a model and comes out of it by the command line: every element type, every form of
// .npy file, every name. Cases are drawn from a seed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "tests/formats/onnx/onnx_bytes.h"
#include "tests/formats/tensorflow/graph_bytes.h"
#include "tests/tools/cases/case_maker.h"
#include "tests/tools/cli.h"
#include "tests/tools/npz_maker.h"

namespace heddle::tools {
namespace {

using heddle::testing::Node;
using heddle::testing::OnnxGraph;
using ::testing::HasSubstr;
using Json = nlohmann::json;

// A type of ONNX, and how NumPy stores arrays of it: what is fed, and what is written.
struct FedType {
  const char* name;
  int type;  // TensorProto.DataType
  const char* fed;
  const char* written;
  int bytes;
  uint8_t mask = 0xff;  // of the highest byte, where not every one is a value
};
constexpr FedType kFedTypes[] = {
    {"float32", 1, "<f4", "<f4", 4, 0x3f},
    {"uint8", 2, "|u1", "|u1", 1},
    {"int8", 3, "|i1", "|i1", 1},
    {"uint16", 4, "<u2", "<u2", 2},
    {"int16", 5, "<i2", "<i2", 2},
    {"int32", 6, "<i4", "<i4", 4},
    {"int64", 7, "<i8", "<i8", 8},
    {"bool", 9, "|b1", "|b1", 1, 1},
    {"float16", 10, "<f2", "<f2", 2, 0x3b},
    {"float64", 11, "<f8", "<f8", 8, 0x3f},
    {"uint32", 12, "<u4", "<u4", 4},
    {"uint64", 13, "<u8", "<u8", 8},
    {"bfloat16", 16, "<V2", "<u2", 2, 0x3f},
    {"bfloat16", 16, "<u2", "<u2", 2, 0x3f},
    {"float8e4m3fn", 17, "<V1", "|u1", 1},
    {"float8e4m3fnuz", 18, "|u1", "|u1", 1},
    {"float8e5m2", 19, "<f1", "|u1", 1},
    {"float8e5m2fnuz", 20, "<V1", "|u1", 1},
    {"uint4", 21, "<V1", "|u1", 1, 0x0f},
    {"uint4", 21, "|u1", "|u1", 1, 0x0f},
    {"uint4", 21, "|i1", "|u1", 1, 0x0f},
    {"int4", 22, "|i1", "|i1", 1, 0x07},
    {"int4", 22, "|u1", "|i1", 1, 0x07},
    {"float4e2m1", 23, "<V1", "|u1", 1, 0x0f},
    {"float8e8m0", 24, "<V1", "|u1", 1},
    {"uint2", 25, "|u1", "|u1", 1, 0x03},
    {"uint2", 25, "|i1", "|u1", 1, 0x03},
    {"int2", 26, "|u1", "|i1", 1, 0x01},
};

std::string Quote(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::string ShapeText(const std::vector<int64_t>& dims) {
  std::string text = "(";
  for (const int64_t d : dims) text += std::to_string(d) + ",";
  return text + ")";
}

int64_t CountOf(const std::vector<int64_t>& dims) {
  int64_t n = 1;
  for (const int64_t d : dims) n *= d;
  return n;
}

struct Port {
  std::string name;
  int type;
  std::vector<int64_t> dims;
};

class FeedsTest : public ::testing::Test {
 protected:
  // A model that gives back each of its inputs, under any name, as y0, y1, …
  std::string Copies(const std::vector<Port>& inputs) {
    OnnxGraph graph;
    for (size_t k = 0; k < inputs.size(); ++k) {
      const std::string y = "y" + std::to_string(k);
      graph.In(inputs[k].name, inputs[k].type, inputs[k].dims)
          .Out(y, inputs[k].type, inputs[k].dims)
          .Add(Node("Identity", {inputs[k].name}, {y}));
    }
    WriteFile(temp_ / "m.onnx", graph.Model(25));
    return temp_ / "m.onnx";
  }
  std::string Copies(const std::string& name, int type, const std::vector<int64_t>& dims) {
    return Copies({{name, type, dims}});
  }
  Json Run(const std::string& words) {
    const Outcome o = Heddle("run " + words + " --json --threads 1 --out " + Quote(temp_ / "out"));
    EXPECT_EQ(o.status, 0) << words << "\n" << o.err;
    return o.status == 0 ? Json::parse(o.out) : Json();
  }
  std::vector<int64_t> Dims(int most_rank = 4) {
    std::vector<int64_t> dims(random_() % (most_rank + 1));
    for (int64_t& d : dims) d = static_cast<int64_t>(random_() % 8 == 0 ? 0 : 1 + random_() % 3);
    return dims;
  }
  std::string Data(const FedType& t, int64_t count) {
    std::string data;
    for (int64_t i = 0; i < count; ++i)
      for (int b = 0; b < t.bytes; ++b)
        data += static_cast<char>(random_() & (b + 1 == t.bytes ? t.mask : 0xff));
    return data;
  }
  // What follows the header of the file that was written, which must say `descr`.
  std::string Written(const std::string& descr, size_t output = 0) {
    const std::string file = ReadFile(temp_ / ("out/out_" + std::to_string(output) + ".npy"));
    EXPECT_THAT(file.substr(0, 128), HasSubstr("'descr': '" + descr + "'"));
    return file.size() < 128 ? "" : file.substr(128);
  }

  // An input x0, x1, … for each of kFedTypes, and an array for it.
  struct Drawn {
    std::vector<Port> ports;
    std::vector<std::string> data, npy;
  };
  Drawn DrawEachType(int most_rank) {
    Drawn drawn;
    for (const FedType& t : kFedTypes) {
      drawn.ports.push_back({"x" + std::to_string(drawn.ports.size()), t.type, Dims(most_rank)});
      const std::vector<int64_t>& dims = drawn.ports.back().dims;
      drawn.data.push_back(Data(t, CountOf(dims)));
      drawn.npy.push_back(NpyBytes(t.fed, ShapeText(dims), drawn.data.back()));
    }
    return drawn;
  }

  TempDirectory temp_;
  std::mt19937 random_{20261128};
};

TEST_F(FeedsTest, EveryTypeComesOutAsItWentIn) {
  for (int round = 0; round < 8; ++round) {
    const Drawn drawn = DrawEachType(4);
    std::string words = Copies(drawn.ports);
    for (size_t k = 0; k < drawn.ports.size(); ++k) {
      const std::string& name = drawn.ports[k].name;
      WriteFile(temp_ / (name + ".npy"), drawn.npy[k]);
      words += " --feed " + name + "=" + (temp_ / (name + ".npy"));
    }
    const Json json = Run(words);
    ASSERT_FALSE(json.is_null());
    for (size_t k = 0; k < drawn.ports.size(); ++k) {
      const FedType& t = kFedTypes[k];
      EXPECT_EQ(json["outputs"][k]["dtype"], t.name);
      EXPECT_EQ(json["outputs"][k]["shape"], Json(drawn.ports[k].dims));
      EXPECT_EQ(Written(t.written, k), drawn.data[k]) << t.name << " " << t.fed;
    }
  }
}

TEST_F(FeedsTest, NarrowIntegersHaveTheirSign) {
  WriteFile(temp_ / "x.npy", NpyBytes("<V1", "(4,)", std::string("\x0f\x08\x07\0", 4)));
  const Json json = Run(Copies("x", 22, {4}) + " --feed x=" + (temp_ / "x.npy"));
  EXPECT_EQ(json["outputs"][0]["dtype"], "int4");
  EXPECT_EQ(json["outputs"][0]["first"], Json({-1, -8, 7, 0}));
  EXPECT_EQ(Written("|i1"), std::string("\xff\xf8\x07\0", 4));
  WriteFile(temp_ / "x.npy", NpyBytes("<V1", "(3,)", "\x03\x02\x01"));
  Run(Copies("x", 26, {3}) + " --feed x=" + (temp_ / "x.npy"));
  EXPECT_EQ(Written("|i1"), "\xff\xfe\x01");
}

TEST_F(FeedsTest, NarrowIntegersHaveTheirRange) {
  struct Narrow {
    const char* name;
    int type, low, high;
  };
  for (const Narrow& t : {Narrow{"uint4", 21, 0, 15},
                          {"int4", 22, -8, 7},
                          {"uint2", 25, 0, 3},
                          {"int2", 26, -2, 1}}) {
    for (const bool is_signed : {true, false}) {
      for (int round = 0; round < 6; ++round) {
        const auto byte = static_cast<uint8_t>(random_());
        const int number = is_signed ? static_cast<int8_t>(byte) : byte;
        if (number >= t.low && number <= t.high) continue;
        WriteFile(temp_ / "x.npy", NpyBytes(is_signed ? "|i1" : "|u1", "(2,)",
                                            std::string{'\1', static_cast<char>(byte)}));
        const Outcome o =
            Heddle("run " + Copies("x", t.type, {2}) + " --feed x=" + (temp_ / "x.npy"));
        EXPECT_EQ(o.status, 1);
        EXPECT_THAT(o.err, HasSubstr("holds " + std::to_string(number) + ", which input 'x' (" +
                                     t.name + ") cannot hold"));
      }
    }
  }
}

TEST_F(FeedsTest, NarrowFloatsAreShownAsNumbers) {
  const std::pair<int, const char*> types[] = {
      {17, "1.5 -448 nan"}, {18, "0.75 nan -240"}, {19, "nan -inf nan"}, {23, "-6 0.5 3"}};
  const char* bytes[] = {"\x3c\xfe\x7f", "\x3c\x80\xff", "\x7f\xfc\xff", "\x0f\x01\x05"};
  for (size_t i = 0; i < 4; ++i) {
    WriteFile(temp_ / "x.npy", NpyBytes("|u1", "(3,)", std::string(bytes[i], 3)));
    const Outcome o =
        Heddle("run " + Copies("x", types[i].first, {3}) + " --feed x=" + (temp_ / "x.npy"));
    EXPECT_THAT(o.out, HasSubstr("values  " + std::string(types[i].second) + "\n")) << o.err;
  }
}

TEST_F(FeedsTest, ArchivesAndPipesAreFed) {
  const Drawn drawn = DrawEachType(2);
  const std::string model = Copies(drawn.ports);
  std::vector<std::pair<std::string, std::string>> all;
  std::string own, other, descriptors, redirected, pipes;
  for (size_t k = 0; k < drawn.ports.size(); ++k) {
    const std::string &name = drawn.ports[k].name, &npy = drawn.npy[k];
    const std::string feed = " --feed " + name + "=", fd = std::to_string(10 + k);
    all.emplace_back(name, npy);
    WriteFile(temp_ / (name + ".npy"), npy);
    WriteFile(temp_ / (name + ".npz"), NpzBytes({{"more", npy}, {name, npy}}));
    WriteFile(temp_ / (name + "_other.npz"), NpzBytes({{"other", npy}}));
    own += feed + (temp_ / (name + ".npz"));
    other += feed + (temp_ / (name + "_other.npz"));
    descriptors += feed + "/dev/fd/" + fd;
    redirected += " " + fd + "< " + (temp_ / (name + ".npy"));
    pipes += feed + "<(cat " + (temp_ / (name + ".npy")) + ")";
  }
  WriteFile(temp_ / "all.npz", NpzBytes(all));
  for (const std::string& feeds :
       {" --feed-npz " + (temp_ / "all.npz"), " --feed-npz <(cat " + (temp_ / "all.npz") + ")", own,
        other, descriptors + redirected, pipes}) {
    const Outcome o = RunCommand(
        "bash -c " + Quote(ToolPath() + " run " + model + " --out " + (temp_ / "out") + feeds));
    ASSERT_EQ(o.status, 0) << feeds << "\n" << o.err;
    for (size_t k = 0; k < drawn.ports.size(); ++k)
      EXPECT_EQ(Written(kFedTypes[k].written, k), drawn.data[k]) << kFedTypes[k].name << feeds;
    std::filesystem::remove_all(temp_ / "out");
  }
}

TEST_F(FeedsTest, UnsignedNumbersAreShownAsTheyAre) {
  const std::string most(8, '\xff'), one = LittleEndian(1, 8);
  WriteFile(temp_ / "x.npy", NpyBytes("<u8", "(2,)", most + one));
  const std::string feed = Copies("x", 13, {-1}) + " --feed x=" + (temp_ / "x.npy");
  const Json json = Run(feed);
  EXPECT_EQ(json["outputs"][0]["first"][0], 18446744073709551615u);
  EXPECT_GT(json["outputs"][0]["max"], 1e19);
  EXPECT_THAT(Heddle("run " + feed).out, HasSubstr("uint64 [2]\n  values  18446744073709551615 1"));
}

TEST_F(FeedsTest, WhatAnInputCannotHoldIsRefused) {
  struct Bad {
    int type;
    const char *descr, *message;
    std::string data;
  };
  const std::string high = std::string("\xff\xff\xff\xff", 4);
  for (const Bad& bad :
       {Bad{4, "<i4", "holds -1, which input 'x' (uint16) cannot hold", high},
        Bad{4, "<i4", "holds 65536", LittleEndian(65536, 4)},
        Bad{12, "<i8", "holds 4294967296", LittleEndian(1ull << 32, 8)},
        Bad{13, "<i8", "holds -1", high + high}, Bad{6, "<u4", "holds 4294967295", high},
        Bad{7, "<u8", "holds 18446744073709551615", high + high},
        Bad{4, "<f4", "holds float32, input 'x' takes uint16", high},
        Bad{17, "<f4", "takes float8e4m3fn", high}, Bad{21, "|u1", "holds 16", LittleEndian(16, 1)},
        Bad{22, "|i1", "holds 8", LittleEndian(8, 1)},
        Bad{2, "<V1", "holds void1", LittleEndian(8, 1)}, Bad{8, "<f4", "takes string", high},
        Bad{1, "<U1", "holds string", LittleEndian(65, 4)}}) {
    WriteFile(temp_ / "x.npy", NpyBytes(bad.descr, "(1,)", bad.data));
    const Outcome o =
        Heddle("run " + Copies("x", bad.type, {1}) + " --feed x=" + (temp_ / "x.npy"));
    EXPECT_EQ(o.status, 1) << bad.message;
    EXPECT_THAT(o.err, HasSubstr(bad.message));
  }
}

TEST_F(FeedsTest, TextsComeOutAsTheyWentIn) {
  const std::vector<std::vector<uint32_t>> letters = {
      {'a', 'b', ' ', '"'}, {0xe4, 0x3b1, 0x4e2d, 0x1f600}, {1, 0x7f, 0x80, 0x7ff, 0x800, 0xffff}};
  for (int round = 0; round < 12; ++round) {
    const auto dims = Dims(2);
    const auto& from = letters[static_cast<size_t>(round) % letters.size()];
    std::string data;
    for (int64_t i = 0; i < CountOf(dims); ++i)
      for (int c = 0; c < 4; ++c) {
        // A whole text, or one that ends early.
        const bool end = c > 0 && static_cast<int>(i % 4) <= c;
        data += LittleEndian(end ? 0 : from[random_() % from.size()], 4);
      }
    if (CountOf(dims) > 0)  // the longest text is as wide as the type
      for (size_t c = 0; c < 4; ++c) data.replace(4 * c, 4, LittleEndian(from[0], 4));
    WriteFile(temp_ / "x.npy", NpyBytes("<U4", ShapeText(dims), data));
    const Json json = Run(Copies("x", 8, dims) + " --feed x=" + (temp_ / "x.npy"));
    ASSERT_FALSE(json.is_null());
    EXPECT_EQ(json["outputs"][0]["dtype"], "string");
    EXPECT_EQ(Written(CountOf(dims) > 0 ? "<U4" : "<U1"), data);
  }
  // Bytes that are no UTF-8 stay bytes.
  WriteFile(temp_ / "x.npy", NpyBytes("|S3", "(2,)", std::string("\xff\xfe\0abc", 6)));
  Run(Copies("x", 8, {2}) + " --feed x=" + (temp_ / "x.npy"));
  EXPECT_EQ(Written("|S3"), std::string("\xff\xfe\0abc", 6));
  EXPECT_EQ(Heddle("run " + Copies("x", 8, {2}) + " --random-feed --shape x=2 --repeat 2").status,
            0);
}

TEST_F(FeedsTest, NamesMayHaveAnyCharacters) {
  const std::vector<std::string> pieces = {"=", " ", ",", ":", "\"", "'",  "a", "b.c", "/", "ü",
                                           "[", "]", "{", "}", "$",  "\\", "|", "x",   "%", "🙂"};
  for (int round = 0; round < 6; ++round) {
    std::set<std::string> names;
    while (names.size() < 12) {
      std::string name = names.size() % 3 == 0 ? "" : "n";
      for (int i = 0, n = 1 + static_cast<int>(random_() % 5); i < n; ++i)
        name += pieces[random_() % pieces.size()];
      names.insert(name);
    }
    std::vector<Port> ports;
    std::string feeds, joined, shapes, fetches;
    for (const std::string& name : names) {
      const auto k = static_cast<float>(ports.size());
      const std::string file =
          (ports.size() % 2 == 0 ? "x" : "with=equals, blank") + std::to_string(ports.size());
      WriteFile(temp_ / (file + ".npy"), FloatNpy("(2,)", {1, k}));
      ports.push_back({name, 1, {-1}});
      const std::string pair = Quote(name + "=" + (temp_ / (file + ".npy")));
      feeds += " --feed " + pair;
      joined += " --feed=" + pair;
      shapes += " --shape " + Quote(name + "=3") + " --max-shape " + Quote(name + "=4");
      fetches += " --fetch=" + Quote(name);
    }
    const std::string model = Copies(ports);
    Json json = Run(model + (round % 2 == 0 ? feeds : joined));
    ASSERT_FALSE(json.is_null());
    for (size_t k = 0; k < ports.size(); ++k)
      EXPECT_EQ(json["outputs"][k]["first"][1], k) << ports[k].name;
    Run(model + " --random-feed" + shapes);
    json = Run(model + feeds + fetches);
    ASSERT_FALSE(json.is_null());
    for (size_t k = 0; k < ports.size(); ++k) {
      EXPECT_EQ(json["outputs"][k]["name"], ports[k].name);
      EXPECT_EQ(json["outputs"][k]["first"][1], k) << ports[k].name;
    }
  }
}

TEST_F(FeedsTest, TheLongestNameOfAnInputIsMeant) {
  WriteFile(temp_ / "m.onnx", OnnxGraph()
                                  .In("a", 1, {1})
                                  .In("a=b", 1, {1})
                                  .Out("y", 1, {1})
                                  .Add(Node("Sub", {"a", "a=b"}, {"y"}))
                                  .Model(17));
  WriteFile(temp_ / "x.npy", FloatNpy("(1,)", {5}));
  WriteFile(temp_ / "b=x.npy", FloatNpy("(1,)", {7}));
  const std::string in = "cd " + Quote(temp_ / ".") + " && " + ToolPath() + " run m.onnx --json ";
  const Outcome o = RunCommand("bash -c " + Quote(in + "--feed a=./b=x.npy --feed a=b=x.npy"));
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_EQ(Json::parse(o.out)["outputs"][0]["first"][0], 2);
}

void ExpectOffered(const Outcome& o, int status, const std::string& meant) {
  EXPECT_EQ(o.status, status) << o.err;
  EXPECT_THAT(o.err, HasSubstr("; did you mean '" + meant + "'?")) << o.err;
}

// TensorFlow's reader takes any tensor of the graph as an input or an output.
TEST_F(FeedsTest, NearNamesOfGraphsAreOffered) {
  namespace tf = heddle::testing::tf;
  tf::Graph g;
  g.Add(tf::PlaceholderNode("pixel_values")).Add("Neg", "scores", {"pixel_values"});
  const std::string model = temp_ / "graph.pb";
  WriteFile(model, g.bytes());
  WriteFile(temp_ / "x.npy", FloatNpy("(1,)", {5}));
  const std::string run = "run " + model + " --feed ";
  const std::string file = "=" + (temp_ / "x.npy");
  EXPECT_EQ(Heddle(run + "pixel_values" + file + " --fetch scores").status, 0);
  ExpectOffered(Heddle(run + "pixel_value" + file), 1, "pixel_values");
  ExpectOffered(Heddle(run + "pixel_values" + file + " --fetch score"), 1, "scores");
  EXPECT_THAT(Heddle(run + "other" + file).err, ::testing::Not(HasSubstr("did you mean")));
}

TEST_F(FeedsTest, NearNamesAreOffered) {
  const std::string model = Copies("pixel_values", 1, {-1});
  const auto asks = ExpectOffered;
  asks(Heddle("run " + model + " --feed pixel_value=x.npy"), 1, "pixel_values");
  asks(Heddle("run " + model + " --random-feed --fetch pixel_valeus"), 1, "pixel_values");
  asks(Heddle("rum " + model), 2, "run");
  asks(Heddle("rum " + model + " --threads 2"), 2, "run");
  asks(Heddle("isnpect " + model), 2, "inspect");
  asks(Heddle("run " + model + " --tread 2"), 2, "--threads");
  asks(Heddle("run " + model + " --rondom-feed"), 2, "--random-feed");
  asks(Heddle("run " + model + " --thread=2"), 2, "--threads");
  asks(Heddle("train --main m --startup s --step 3"), 2, "--steps");
  asks(Heddle("ops sotfmax"), 1, "softmax");
  asks(Heddle("ops Conv2D"), 1, "conv2d");
  for (const char* far : {"fly m", "run m --no-such-thing-at-all", "ops q"})
    EXPECT_THAT(Heddle(far).err, ::testing::Not(HasSubstr("did you mean"))) << far;
}

TEST_F(FeedsTest, OperatorsTellTheirFields) {
  const Json all = Json::parse(Heddle("ops --json").out);
  ASSERT_GT(all["operators"].size(), 1000u);
  int64_t gradients = 0;
  for (const Json& op : all["operators"]) {
    EXPECT_TRUE(std::filesystem::exists(std::string(HEDDLE_SOURCE_DIR) + "/" +
                                        op["file"].get<std::string>()))
        << op;
    EXPECT_FALSE(op["dtypes"].empty()) << op;
    gradients += op["gradient"].is_string();
  }
  EXPECT_GT(gradients, 200);
  const Json relu = Json::parse(Heddle("ops relu --json").out)["operators"][0];
  EXPECT_EQ(relu["gradient"], "relu_grad");
  EXPECT_EQ(relu["file"], "kernels/activation/relu.cc");
  EXPECT_TRUE(Json::parse(Heddle("ops shape --json").out)["operators"][0]["gradient"].is_null());
}

}  // namespace
}  // namespace heddle::tools
