#include "formats/onnx/words.h"

namespace heddle::onnx {
namespace {

struct Translation {
  std::string_view op_type;  // of the standard's own domain
  formats::Words words;
};
constexpr Translation kWords[] = {
    {"ArgMax",
     {"arg_max", "X", "Out", "axis keepdims last<select_last_index axis=0 keepdims=true nan=wins"}},
    {"ArgMin",
     {"arg_min", "X", "Out", "axis keepdims last<select_last_index axis=0 keepdims=true nan=wins"}},
    {"Attention", {"grouped_query_attention"}},
    {"BlackmanWindow", {"window_function", "", "", "window=blackman"}},
    {"CausalConvWithState", {"causal_conv"}},
    {"CenterCropPad", {"center_crop_pad"}},
    {"Col2Im", {"col2im"}},
    {"Compress", {"compress"}},
    {"DFT", {"dft"}},
    {"DepthToSpace", {"pixel_shuffle", "X", "Out", "upscale_factor<blocksize mode mode=DCR"}},
    {"DequantizeLinear", {"affine_dequantize"}},
    {"Det", {"determinant"}},
    {"DynamicQuantizeLinear", {"dynamic_quantize"}},
    {"Einsum", {"einsum", "Operands", "Out", "equation"}},
    {"Expand", {"expand_v2", "X Shape", "Out", "mutual=true"}},
    {"Flatten", {"flatten2", "X", "Out", "axis scalar_to_matrix=true"}},
    {"GRU", {"recurrent_network", "", "", "cell=gru"}},
    {"Gather", {"gather", "X Index", "Out", "axis index_shape=true wrap=true"}},
    {"GatherElements", {"take_along_axis", "Input Index", "Result", "Axis<axis"}},
    {"GatherND", {"gather_nd", "X Index", "Out", "batch_dims"}},
    {"HammingWindow", {"window_function", "", "", "window=hamming"}},
    {"HannWindow", {"window_function", "", "", "window=hann"}},
    {"Hardmax", {"hardmax", "X", "Out", "axis"}},
    {"LSTM", {"recurrent_network", "", "", "cell=lstm"}},
    {"LinearAttention", {"linear_attention"}},
    {"MeanVarianceNormalization", {"mean_variance_norm", "X", "Out", "axes"}},
    {"MelWeightMatrix", {"mel_weight_matrix"}},
    {"NonZero", {"where_index", "Condition", "Out", "by_axis=true"}},
    {"OneHot", {"one_hot_v2", "X depth_tensor Values", "Out", "axis out_of_range=off wrap=true"}},
    {"QuantizeLinear", {"affine_quantize"}},
    {"RMSNormalization", {"rms_normalization", "X Scale", "Y", "axis epsilon"}},
    {"RNN", {"recurrent_network", "", "", "cell=rnn"}},
    {"Range", {"range", "Start End Step", "Out", "wrong_way=empty by_product=true"}},
    {"Reshape", {"reshape2", "X Shape", "Out", "literal_zero<allowzero"}},
    {"ReverseSequence", {"reverse_sequence", "X Lengths", "Out", "seq_axis<time_axis batch_axis"}},
    {"RotaryEmbedding", {"rotary_embedding"}},
    {"STFT", {"framed_dft"}},
    {"Slice",
     {"strided_slice", "Input StartsTensor EndsTensor AxesTensor StridesTensor", "Out",
      "bounds=from_end"}},
    {"SpaceToDepth", {"pixel_unshuffle", "X", "Out", "downscale_factor<blocksize mode mode=DCR"}},
    {"Squeeze", {"squeeze2", "X AxesTensor", "Out", "axes ones_only=true"}},
    {"SwiGLU", {"swiglu"}},
    {"TensorScatter", {"write_cache"}},
    {"TfIdfVectorizer", {"ngram_counts"}},
    {"Tile", {"tile", "X RepeatTimes", "Out", "same_rank=true"}},
    {"Unsqueeze", {"unsqueeze2", "X AxesTensor", "Out", "axes in_result=true"}},
    {"Where", {"where", "Condition X Y", "Out"}},
};

}  // namespace

const formats::Words* FindWords(const Node& node) {
  if (!node.domain.empty()) return nullptr;
  for (const Translation& t : kWords)
    if (t.op_type == node.op_type) return &t.words;
  return nullptr;
}

}  // namespace heddle::onnx
