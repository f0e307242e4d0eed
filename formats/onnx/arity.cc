// The numbers of inputs and outputs that operators may have.
#include <algorithm>
#include <cstddef>
#include <string>
#include <unordered_map>

#include "core/error.h"
#include "formats/onnx/handlers.h"

namespace heddle::onnx {
namespace {

constexpr size_t kAny = ~size_t{0};

struct Arity {
  std::string_view domain;
  size_t inputs, outputs;  // the most in any version
  std::string_view op_types;
};

// The definitions of the onnx package, 1.23. Operators that are not here take any number.
constexpr Arity kArities[] = {
    {"", 0, 1, "Constant RandomNormal RandomUniform SequenceEmpty"},
    {"", 1, 1,
     "Abs Acos Acosh ArgMax ArgMin Asin Asinh Atan Atanh AveragePool Bernoulli BitCast "
     "BitwiseNot BlackmanWindow Cast Ceil Celu ConcatFromSequence ConstantOfShape Cos Cosh "
     "DepthToSpace Det Elu Erf Exp EyeLike Flatten Floor Gelu GlobalAveragePool GlobalLpPool "
     "GlobalMaxPool HammingWindow HannWindow HardSigmoid HardSwish Hardmax Identity "
     "ImageDecoder IsInf IsNaN LRN LeakyRelu Log LogSoftmax LpNormalization LpPool "
     "MeanVarianceNormalization Mish Multinomial Neg NonZero Not Optional OptionalGetElement "
     "OptionalHasElement RandomNormalLike RandomUniformLike Reciprocal RegexFullMatch Relu "
     "Round Selu SequenceLength Shape Shrink Sigmoid Sign Sin Sinh Size Softmax Softplus "
     "Softsign SpaceToDepth Sqrt StringNormalizer Swish Tan Tanh TfIdfVectorizer "
     "ThresholdedRelu Transpose"},
    {"", 1, 2, "MaxPool StringSplit"},
    {"", 1, 3, "DynamicQuantizeLinear"},
    {"", 1, 4, "Unique"},
    {"", 1, kAny, "If"},
    {"", 2, 1,
     "Add AffineGrid And BitShift BitwiseAnd BitwiseOr BitwiseXor CastLike CenterCropPad "
     "Compress CumProd CumSum Div Equal Expand Gather GatherElements GatherND Greater "
     "GreaterOrEqual GridSample Less LessOrEqual MatMul MaxRoiPool Mod Mul Or PRelu Pow "
     "RMSNormalization ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean "
     "ReduceMin ReduceProd ReduceSum ReduceSumSquare Reshape ReverseSequence SequenceAt "
     "SequenceErase SplitToSequence Squeeze StringConcat Sub SwiGLU Trilu Unsqueeze Upsample "
     "Xor"},
    {"", 2, 2, "TopK"},
    {"", 2, kAny, "Split"},
    {"", 3, 1,
     "Clip Col2Im Conv ConvTranspose DFT DequantizeLinear Gemm GroupNormalization "
     "InstanceNormalization MaxUnpool NegativeLogLikelihoodLoss OneHot QuantizeLinear Range "
     "RoiAlign Scatter ScatterElements ScatterND SequenceInsert TensorScatter Tile Where"},
    {"", 3, 2, "Dropout SoftmaxCrossEntropyLoss"},
    {"", 3, 3, "LayerNormalization"},
    {"", 4, 1, "ConvInteger MatMulInteger Pad Resize RotaryEmbedding STFT"},
    {"", 4, 2, "CausalConvWithState"},
    {"", 5, 1, "DeformConv MelWeightMatrix NonMaxSuppression Slice"},
    {"", 5, 5, "BatchNormalization"},
    {"", 6, 2, "GRU LinearAttention RNN"},
    {"", 7, 4, "Attention"},
    {"", 8, 1, "QLinearMatMul"},
    {"", 8, 3, "LSTM"},
    {"", 9, 1, "QLinearConv"},
    {"", kAny, 1, "Concat Einsum Max Mean Min SequenceConstruct Sum"},
    {"ai.onnx.ml", 1, 1,
     "Binarizer CastMap CategoryMapper DictVectorizer Imputer LabelEncoder LinearRegressor "
     "Normalizer OneHotEncoder SVMRegressor Scaler TreeEnsemble TreeEnsembleRegressor ZipMap"},
    {"ai.onnx.ml", 1, 2, "LinearClassifier SVMClassifier TreeEnsembleClassifier"},
    {"ai.onnx.ml", 2, 1, "ArrayFeatureExtractor"},
    {"ai.onnx.ml", kAny, 1, "FeatureVectorizer"},
    {"ai.onnx.preview", 3, 1, "FlexAttention"},
};

std::unordered_map<std::string, const Arity*> ByName() {
  std::unordered_map<std::string, const Arity*> all;
  for (const Arity& a : kArities) {
    std::string_view rest = a.op_types;
    while (!rest.empty()) {
      const size_t length = std::min(rest.find(' '), rest.size());
      all.emplace(StrCat(a.domain, ":", rest.substr(0, length)), &a);
      rest.remove_prefix(std::min(length + 1, rest.size()));
    }
  }
  return all;
}

// The number of names without empty ones at the end of the list.
size_t Given(const std::vector<std::string_view>& names) {
  size_t count = names.size();
  while (count > 0 && names[count - 1].empty()) --count;
  return count;
}

}  // namespace

bool CheckArity(NodeLowering& n) {
  static const std::unordered_map<std::string, const Arity*> all = ByName();
  const Node& node = n.node();
  const auto found = all.find(StrCat(node.domain, ":", node.op_type));
  if (found == all.end()) return true;
  const Arity& arity = *found->second;
  const size_t inputs = Given(node.inputs), outputs = Given(node.outputs);
  if (inputs > arity.inputs)
    n.Problem("has ", inputs, " inputs; this operator takes at most ", arity.inputs);
  if (outputs > arity.outputs)
    n.Problem("has ", outputs, " outputs; this operator gives at most ", arity.outputs);
  return inputs <= arity.inputs && outputs <= arity.outputs;
}

}  // namespace heddle::onnx
