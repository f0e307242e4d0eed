// run-case and run-cases.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "tests/tools/cases/case_maker.h"
#include "tests/tools/cli.h"

namespace heddle::tools {
namespace {

using testing::HasSubstr;

class CasesTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(std::filesystem::exists(ToolPath())) << ToolPath() << " is not built";
  }
  // Adds a case that works to the list.
  void AddGood(const std::string& name) {
    npy_ = MakeAssignCase(temp_ / name, "float32", "<f4", proto::VarType::FP32, 4);
    Add(name);
  }
  // Adds a case that does not end by itself: opening its io.txt waits for a writer.
  void AddStuck(const std::string& name) {
    Add(name);
    std::filesystem::create_directories(temp_ / name);
    ASSERT_EQ(mkfifo((temp_ / (name + "/io.txt")).c_str(), 0600), 0);
  }
  void Add(const std::string& name) {
    std::filesystem::create_directories(temp_ / ("out_" + name));
    list_ += (temp_ / name) + "\t" + (temp_ / ("out_" + name)) + "\n";
    WriteFile(temp_ / "list", list_);
  }
  std::string Written(const std::string& name) {
    return ReadFile(temp_ / ("out_" + name + "/out_0.npy"));
  }

  TempDirectory temp_;
  std::string npy_, list_;
};

TEST_F(CasesTest, EveryTypeGoesThrough) {
  using T = proto::VarType;
  const struct {
    const char *dtype, *descr;
    T::Type type;
    size_t size;
  } types[] = {{"bool", "|b1", T::BOOL, 1},          {"uint8", "|u1", T::UINT8, 1},
               {"int8", "|i1", T::INT8, 1},          {"int16", "<i2", T::INT16, 2},
               {"int32", "<i4", T::INT32, 4},        {"int64", "<i8", T::INT64, 8},
               {"float16", "<f2", T::FP16, 2},       {"bfloat16", "<u2", T::BF16, 2},
               {"float32", "<f4", T::FP32, 4},       {"float64", "<f8", T::FP64, 8},
               {"complex64", "<c8", T::COMPLEX64, 8}};
  for (const auto& t : types) {
    const std::string npy = MakeAssignCase(temp_ / t.dtype, t.dtype, t.descr, t.type, t.size);
    const std::string out = temp_ / (std::string("out_") + t.dtype);
    const Outcome outcome = Heddle("run-case " + (temp_ / t.dtype) + " --out " + out);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(ReadFile(out + "/out_0.npy"), npy) << t.dtype;
    EXPECT_FALSE(std::filesystem::exists(out + "/out_0.lod"));
  }
}

TEST_F(CasesTest, SequenceOffsetsAreWritten) {
  MakeAssignCase(temp_ / "lod", "float32", "<f4", proto::VarType::FP32, 4, "0,1|0,2");
  const Outcome outcome = Heddle("run-case " + (temp_ / "lod") + " --out " + (temp_ / "o"));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(ReadFile(temp_ / "o/out_0.lod"), "0,1\n0,2\n");
}

TEST_F(CasesTest, ACaseThatFailsIsStatus1) {
  const Outcome missing = Heddle("run-case /no/such/case --out " + (temp_ / "o"));
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(missing.err, HasSubstr("/no/such/case"));
  MakeAssignCase(temp_ / "bad", "int32", "<f4", proto::VarType::INT32, 4);
  const Outcome bad = Heddle("run-case " + (temp_ / "bad") + " --out " + (temp_ / "o"));
  EXPECT_EQ(bad.status, 1);
  EXPECT_THAT(bad.err, HasSubstr("io.txt says int32"));
  EXPECT_FALSE(std::filesystem::exists(temp_ / "o/out_0.npy"));
}

// A link to itself is nothing that can be looked at.
TEST_F(CasesTest, ACaseOfLoopingLinksIsAFailure) {
  std::filesystem::create_directory(temp_ / "loops");
  for (const char* name : {"model.onnx", "graph.pb"})
    std::filesystem::create_symlink(name, (temp_ / "loops/") + name);
  const Outcome outcome = Heddle("run-case " + (temp_ / "loops") + " --out " + (temp_ / "o"));
  EXPECT_EQ(outcome.status, 1) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("loops"));
}

TEST_F(CasesTest, DamagedDescriptionsAreErrors) {
  MakeAssignCase(temp_ / "c", "float32", "<f4", proto::VarType::FP32, 4);
  for (const char* io :
       {"", "opcase 2\n", "opcase 1\nin\n", "opcase 1\n\n", "opcase 1\nin\tfeed\tdense\tx\n",
        "opcase 1\nin\tfetch\tdense\tin_0.npy\tfloat32\t2,3\t-\tx\n",
        "opcase 1\nin\tfeed\tdense\tin_0.npy\tfloat33\t2,3\t-\tx\n",
        "opcase 1\nin\tfeed\tdense\tin_0.npy\tfloat32\t2,-3\t-\tx\n",
        "opcase 1\nin\tfeed\tdense\tin_0.npy\tfloat32\t2,3\t0,-2\tx\n",
        "opcase 1\nin\tparam\ttensor_array\t2\tx\nitem\tin_0.npy\tfloat32\t2,3\t-\n",
        "opcase 1\nin\tparam\tselected_rows\tin_0.npy\tfloat32\t2,3\t-\tx\n"}) {
    WriteFile(temp_ / "c/io.txt", io);
    const Outcome outcome = Heddle("run-case " + (temp_ / "c") + " --out " + (temp_ / "o"));
    EXPECT_EQ(outcome.status, 1) << io;
    EXPECT_THAT(outcome.err, HasSubstr("io.txt")) << io;
  }
}

TEST_F(CasesTest, AListGoesOnAfterAFailure) {
  AddGood("one");
  Add("missing");
  AddGood("two");
  const Outcome outcome = Heddle("run-cases --list " + (temp_ / "list"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("case missing: NOT_FOUND"));
  EXPECT_THAT(outcome.out, HasSubstr("ran 3 cases, 1 failed"));
  EXPECT_EQ(Written("one"), npy_);
  EXPECT_EQ(Written("two"), npy_);
}

TEST_F(CasesTest, EachCaseCanHaveAProcessOfItsOwn) {
  AddGood("one");
  Add("missing");
  AddGood("two");
  const Outcome outcome = Heddle("run-cases --isolate --list " + (temp_ / "list"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("case missing: NOT_FOUND"));
  EXPECT_THAT(outcome.out, HasSubstr("ran 3 cases, 1 failed"));
  EXPECT_EQ(Written("one"), npy_);
  EXPECT_EQ(Written("two"), npy_);
}

TEST_F(CasesTest, AListGoesOnAfterACaseWithoutEnd) {
  AddGood("one");
  AddStuck("stuck");
  AddGood("two");
  const Outcome outcome = Heddle("run-cases --limit 2 --list " + (temp_ / "list"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("case stuck: not finished after 2 s"));
  EXPECT_EQ(Written("one"), npy_);
  EXPECT_EQ(Written("two"), npy_);
}

TEST_F(CasesTest, AListGoesOnAfterACrash) {
  AddGood("one");
  AddStuck("crash");
  AddGood("two");
  // Once the first output is there, the child is about to wait in the second case: it is aborted
  // from outside (by a signal that sanitizers do not take for themselves).
  const std::string out = temp_ / "out_one/out_0.npy";
  const std::string script = temp_ / "script";
  WriteFile(script, "'" + ToolPath() + "' run-cases --limit 60 --list '" + (temp_ / "list") +
                        "' & p=$!\nwhile [ ! -s '" + out + "' ]; do sleep 0.05; done\nsleep 0.3\n" +
                        "kill -ABRT $(cat /proc/$p/task/$p/children)\nwait $p\n");
  const std::string said = temp_ / "said";
  const int status = std::system(("bash " + script + " >" + said + " 2>&1").c_str());  // NOLINT
  EXPECT_EQ(status, 0) << ReadFile(said);
  EXPECT_THAT(ReadFile(said), HasSubstr("case crash: crashed (signal 6)"));
  EXPECT_EQ(Written("two"), npy_);
}

TEST_F(CasesTest, AListMustBeWellFormed) {
  EXPECT_EQ(Heddle("run-cases --list /no/such/list").status, 1);
  WriteFile(temp_ / "list", "just one field\n");
  const Outcome outcome = Heddle("run-cases --list " + (temp_ / "list"));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("a tab"));
  WriteFile(temp_ / "list", "");
  EXPECT_EQ(Heddle("run-cases --list " + (temp_ / "list")).status, 0);
}

}  // namespace
}  // namespace heddle::tools
