// Makes the text of PIR programs in a test.
//
//   PirText p;
//   p.Data(1, "x", "f32", "[-1,2]").Op("1.relu", {1}, {2}).Fetch(2, "y");
//   Program program = p.Build();
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "heddle/heddle.h"

namespace heddle::testing {

class PirText {
 public:
  using Ids = std::vector<int>;

  static std::string Type(const std::string& element, const std::string& dims) {
    return R"({"#":"0.t_dtensor","D":[{"#":"0.t_)" + element + R"("},)" + dims +
           R"(,"NCHW",[],0]})";
  }
  static std::string Attr(const std::string& name, const std::string& type,
                          const std::string& value) {
    return R"({"N":")" + name + R"(","AT":{"#":")" + type + R"(","D":)" + value + "}}";
  }
  static std::string Text(const std::string& name, const std::string& value) {
    return Attr(name, "0.a_str", '"' + value + '"');
  }
  static std::string Flag(const std::string& name, bool value) {
    return Attr(name, "0.a_bool", value ? "true" : "false");
  }

  // `regions`: texts of blocks, as Block() gives them. Results are float32 of unknown dims unless
  // `type` says otherwise.
  PirText& Op(const std::string& name, const Ids& in, const Ids& out, const std::string& attrs = "",
              const std::string& type = Type("f32", "[-1]"),
              const std::vector<std::string>& regions = {}) {
    std::string text = R"({"#":")" + name + R"(","A":[)" + attrs + R"(],"I":[)";
    for (size_t i = 0; i < in.size(); ++i)
      text += (i > 0 ? "," : "") + (R"({"%":)" + std::to_string(in[i]) + "}");
    text += R"(],"O":[)";
    for (size_t i = 0; i < out.size(); ++i)
      text += (i > 0 ? "," : "") + (R"({"%":)" + std::to_string(out[i]) + R"(,"TT":)" + type + "}");
    text += "]";
    for (size_t i = 0; i < regions.size(); ++i)
      text += (i == 0 ? R"(,"regions":[)" : ",") + (R"({"#":"r","blocks":[)" + regions[i] + "]}");
    if (!regions.empty()) text += "]";
    return Add(text + "}");
  }
  PirText& Data(int id, const std::string& name, const std::string& element = "f32",
                const std::string& dims = "[-1]") {
    return Op("1.data", {}, {id}, Text("name", name), Type(element, dims));
  }
  PirText& Param(int id, const std::string& name, const std::string& element,
                 const std::string& dims) {
    return Add(R"({"#":"p","A":[0,1,1,")" + name + R"("],"DA":[],"QA":[],"OA":[1,0,1],"O":{"%":)" +
               std::to_string(id) + R"(,"TT":)" + Type(element, dims) + "}}");
  }
  PirText& Full(int id, double value, const std::string& dtype = "float32",
                const std::string& element = "f32") {
    return Op("1.full", {}, {id},
              Attr("shape", "1.a_intarray", "[1]") + "," +
                  Attr("value", "0.a_f64", std::to_string(value)) + "," +
                  Attr("dtype", "1.a_dtype", '"' + dtype + '"'),
              Type(element, "[1]"));
  }
  PirText& Fetch(int id, const std::string& name) {
    const std::string col = std::to_string(fetches_++);
    return Op("1.fetch", {id}, {40 + fetches_},
              Text("name", name) + "," + Attr("col", "0.a_i32", col));
  }
  PirText& Add(const std::string& operation) {
    ops_ += (ops_.empty() ? "" : ",") + operation;
    return *this;
  }

  // The operators so far as a block of another program, with arguments of these ids.
  std::string Block(const Ids& arguments = {},
                    const std::string& type = Type("f32", "[-1]")) const {
    std::string args;
    for (int id : arguments)
      args +=
          (args.empty() ? "" : ",") + (R"({"#":)" + std::to_string(id) + R"(,"TT":)" + type + "}");
    return R"({"#":"b","args":[)" + args + R"(],"ops":[)" + ops_ + "]}";
  }
  std::string File(int version = 4) const {
    return R"({"base_code":{"magic":"pir","trainable":true,"version":)" + std::to_string(version) +
           R"(},"program":{"regions":[{"#":"region_0","blocks":[)" + Block() + "]}]}}";
  }
  Result<Program> TryBuild() const { return Program::Parse(File(), "test.json"); }

 private:
  std::string ops_;
  int fetches_ = 0;
};

}  // namespace heddle::testing
