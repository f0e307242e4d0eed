// Tensors in every form in which files hold them.
#include "formats/onnx/tensor_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/formats/onnx/onnx_bytes.h"
#include "tests/formats/recorded_tensors.h"

namespace heddle::onnx {
namespace {

using ::testing::HasSubstr;
using testing::Message;
using testing::TensorHead;

TEST(OnnxTensor, EveryTypeInEveryEncodingIsAsOnnxReadsIt) {
  testing::ExpectAsRecorded("onnx/tensors.txt", ReadTensorData, 500);
}

std::string ErrorOf(const Message& message) {
  const auto data = ReadTensorData(message.bytes());
  if (!data.ok()) return data.status().ToString();
  const auto made = MakeTensor(*data);
  return made.ok() ? "" : made.status().ToString();
}

TEST(OnnxTensor, ContentsMustFitTypeAndDimensions) {
  EXPECT_THAT(ErrorOf(TensorHead("w", kInt8, {3}).Int(5, 1).Int(5, 2)),
              HasSubstr("tensor 'w' (int8 [3]): 2 values are stored, 3 are expected"));
  EXPECT_THAT(ErrorOf(TensorHead("w", kBool, {1}).Int(5, 1).Int(5, 2)), HasSubstr("2 values"));
  EXPECT_THAT(ErrorOf(TensorHead("w", kInt4, {3}).Bytes(9, "1")), HasSubstr("2 are expected"));
  EXPECT_THAT(ErrorOf(TensorHead("w", kInt64, {1}).Int(5, 1)), HasSubstr("belong into field 7"));
  EXPECT_THAT(ErrorOf(TensorHead("w", kFloat, {1}).Bytes(4, "12345")), HasSubstr("damaged"));
  EXPECT_THAT(ErrorOf(TensorHead("w", kString, {1})), HasSubstr("numbers are expected"));
  EXPECT_THAT(ErrorOf(TensorHead("w", 99, {1}).Bytes(9, "1")), HasSubstr("no element type"));
}

}  // namespace
}  // namespace heddle::onnx
