#include "formats/onnx/wordings.h"

#include <algorithm>
#include <vector>

namespace heddle::onnx {
namespace {

const std::vector<Wording>& Wordings() {
  const auto text = [](const char* value) { return AttrValue(std::string(value)); };
  static const std::vector<Wording> all = {
      {"", "CenterCropPad", "center_crop_pad"},
      {"", "Col2Im", "col2im"},
      {"", "Compress", "compress"},
      {"",
       "DepthToSpace",
       "depth_to_space",
       "input",
       "output",
       "blocksize>block_size mode",
       {{"data_format", text("NCHW")}}},
      {"", "Expand", "expand_v2", "X Shape", "Out", "", {{"mutual", true}}},
      {"", "Flatten", "flatten2", "X", "Out", "axis", {{"scalar_to_matrix", true}}},
      {"", "Gather", "gather", "X Index", "Out", "axis", {{"index_shape", true}, {"wrap", true}}},
      {"", "GatherElements", "take_along_axis", "Input Index", "Result", "axis>Axis"},
      {"", "GatherND", "gather_nd", "X Index", "Out", "batch_dims"},
      {"", "NonZero", "where_index", "Condition", "Out", "", {{"by_axis", true}}},
      {"",
       "OneHot",
       "one_hot_v2",
       "X depth_tensor Values",
       "Out",
       "axis",
       {{"out_of_range", text("off")}, {"wrap", true}}},
      {"",
       "Range",
       "range",
       "Start End Step",
       "Out",
       "",
       {{"wrong_way", text("empty")}, {"by_product", true}}},
      {"", "Reshape", "reshape2", "X Shape", "Out", "allowzero>literal_zero"},
      {"", "ReverseSequence", "reverse_sequence", "X Lengths", "Out",
       "time_axis>seq_axis batch_axis"},
      {"",
       "Slice",
       "strided_slice",
       "Input StartsTensor EndsTensor AxesTensor StridesTensor",
       "Out",
       "",
       {{"bounds", text("from_end")}}},
      {"",
       "SpaceToDepth",
       "space_to_depth",
       "input",
       "output",
       "blocksize>block_size mode",
       {{"data_format", text("NCHW")}}},
      {"", "Squeeze", "squeeze2", "X AxesTensor", "Out", "axes", {{"ones_only", true}}},
      {"", "TensorScatter", "write_cache"},
      {"", "Tile", "tile", "X RepeatTimes", "Out", "", {{"same_rank", true}}},
      {"", "Unsqueeze", "unsqueeze2", "X AxesTensor", "Out", "axes", {{"in_result", true}}},
      {"", "Where", "where", "Condition X Y", "Out"},
      {"",
       "ArgMax",
       "arg_max",
       "X",
       "Out",
       "axis keepdims select_last_index>last",
       {{"axis", int64_t{0}}, {"keepdims", true}, {"nan", std::string("wins")}}},
      {"",
       "ArgMin",
       "arg_min",
       "X",
       "Out",
       "axis keepdims select_last_index>last",
       {{"axis", int64_t{0}}, {"keepdims", true}, {"nan", std::string("wins")}}},
      {"", "Hardmax", "hardmax", "X", "Out", "axis"},
      {"", "RMSNormalization", "rms_normalization", "X Scale", "Y", "axis epsilon"},
      {"", "TfIdfVectorizer", "ngram_counts"},
      {"", "MeanVarianceNormalization", "mean_variance_norm", "X", "Out", "axes"},
      {"", "Attention", "grouped_query_attention"},
      {"", "BlackmanWindow", "window_function", "", "", "", {{"window", text("blackman")}}},
      {"", "CausalConvWithState", "causal_conv"},
      {"", "DFT", "dft"},
      {"", "DequantizeLinear", "affine_dequantize"},
      {"", "DynamicQuantizeLinear", "dynamic_quantize"},
      {"", "Det", "determinant"},
      {"", "GRU", "recurrent_network", "", "", "", {{"cell", text("gru")}}},
      {"", "HammingWindow", "window_function", "", "", "", {{"window", text("hamming")}}},
      {"", "HannWindow", "window_function", "", "", "", {{"window", text("hann")}}},
      {"", "LSTM", "recurrent_network", "", "", "", {{"cell", text("lstm")}}},
      {"", "LinearAttention", "linear_attention"},
      {"", "MelWeightMatrix", "mel_weight_matrix"},
      {"", "QuantizeLinear", "affine_quantize"},
      {"", "RNN", "recurrent_network", "", "", "", {{"cell", text("rnn")}}},
      {"", "RotaryEmbedding", "rotary_embedding"},
      {"", "STFT", "framed_dft"},
      {"", "SwiGLU", "swiglu"},
  };
  return all;
}

}  // namespace

const Wording* FindWording(const Node& node) {
  const auto& all = Wordings();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Wording& w) {
    return w.domain == node.domain && w.op_type == node.op_type;
  });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace heddle::onnx
