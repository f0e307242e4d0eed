// Tensors in every form in which files hold them.
#include "formats/tensorflow/tensor_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "heddle/string_tensor.h"
#include "tests/formats/recorded_tensors.h"
#include "tests/formats/tensorflow/graph_bytes.h"

namespace heddle::tensorflow {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Message;
using testing::RawOf;
using testing::tf::TensorHeadOf;

std::string ErrorOf(const Message& message) {
  const auto data = ReadTensorData(message.bytes());
  if (!data.ok()) return data.status().ToString();
  const auto made = MakeValue(*data);
  return made.ok() ? "" : made.status().ToString();
}

template <typename T>
std::vector<T> ValuesOf(const Message& message) {
  const std::string bytes = message.bytes();
  const auto data = ReadTensorData(bytes);
  EXPECT_TRUE(data.ok()) << data.status().ToString();
  const auto made = MakeTensor(*data);
  EXPECT_TRUE(made.ok()) << made.status().ToString();
  if (!made.ok()) return {};
  return {static_cast<const T*>(made->raw()), static_cast<const T*>(made->raw()) + made->numel()};
}

TEST(TensorflowTensor, EveryTypeInEveryEncodingIsAsTensorflowReadsIt) {
  testing::ExpectAsRecorded("tensorflow/tensors.txt", ReadTensorData, 500);
}

TEST(TensorflowTensor, RawContents) {
  const std::vector<float> values = {1, 2, 3};
  EXPECT_THAT(ValuesOf<float>(TensorHeadOf(kFloat, {3}).Bytes(4, RawOf(values))),
              ElementsAre(1, 2, 3));
  const std::vector<uint16_t> narrow = {1, 65535};
  EXPECT_THAT(ValuesOf<int32_t>(TensorHeadOf(kUint16, {2}).Bytes(4, RawOf(narrow))),
              ElementsAre(1, 65535));
}

TEST(TensorflowTensor, TheLastValueRepeatsAndNoneIsZero) {
  EXPECT_THAT(ValuesOf<float>(TensorHeadOf(kFloat, {4}).Float(5, 1).Float(5, 2)),
              ElementsAre(1, 2, 2, 2));
  EXPECT_THAT(ValuesOf<int32_t>(TensorHeadOf(kInt32, {2}).Int(7, -3)), ElementsAre(-3, -3));
  EXPECT_THAT(ValuesOf<int64_t>(TensorHeadOf(kInt64, {2})), ElementsAre(0, 0));
  EXPECT_THAT(ValuesOf<float>(TensorHeadOf(kFloat, {0})), ElementsAre());
  // Surplus ones are left.
  EXPECT_THAT(ValuesOf<float>(TensorHeadOf(kFloat, {1}).Float(5, 1).Float(5, 2)), ElementsAre(1));
}

TEST(TensorflowTensor, PackedAndSingleValuesMayBeMixed) {
  const std::string packed = {'\x05', '\x06'};
  EXPECT_THAT(ValuesOf<int8_t>(TensorHeadOf(kInt8, {3}).Bytes(7, packed).Int(7, 7)),
              ElementsAre(5, 6, 7));
  const std::string halves = {'\x80', '\x7f'};  // the varint 0x3f80: 1 in bfloat16
  EXPECT_THAT(ValuesOf<uint16_t>(TensorHeadOf(kBfloat16, {2}).Bytes(13, halves)),
              ElementsAre(0x3f80, 0x3f80));
}

TEST(TensorflowTensor, Strings) {
  const std::string bytes = TensorHeadOf(kString, {3}).Bytes(8, "a").Bytes(8, "bc").bytes();
  const auto data = ReadTensorData(bytes);
  ASSERT_TRUE(data.ok());
  const auto made = MakeValue(*data);
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  ASSERT_NE(StringsIn(*made), nullptr);
  EXPECT_THAT(StringsIn(*made)->elements, ElementsAre("a", "bc", "bc"));
}

TEST(TensorflowTensor, SizesAreCheckedBeforeMemoryIsTaken) {
  EXPECT_THAT(ErrorOf(TensorHeadOf(kFloat, {3}).Bytes(4, "1234")), HasSubstr("12 are expected"));
  EXPECT_THAT(ErrorOf(TensorHeadOf(kFloat, {int64_t{1} << 60}).Float(5, 1)),
              HasSubstr("is larger than"));
  EXPECT_THAT(ErrorOf(TensorHeadOf(kFloat, {int64_t{1} << 40, int64_t{1} << 40})),
              HasSubstr("is larger than"));
  EXPECT_THAT(ErrorOf(TensorHeadOf(kString, {int64_t{1} << 31})), HasSubstr("is larger than"));
  EXPECT_THAT(ErrorOf(TensorHeadOf(kString, {1 << 20}).Bytes(8, std::string(1 << 20, 'x'))),
              HasSubstr("is larger than"));
  EXPECT_THAT(ErrorOf(TensorHeadOf(kFloat, {-2})), HasSubstr("negative"));
  EXPECT_THAT(ErrorOf(TensorHeadOf(77, {1})), HasSubstr("type 77"));
  EXPECT_THAT(ErrorOf(TensorHeadOf(kFloat, {2}).Bytes(5, "12345")), HasSubstr("damaged"));
}

}  // namespace
}  // namespace heddle::tensorflow
