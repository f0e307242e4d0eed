// print: hands a tensor on and writes it to the standard error stream.
#include <atomic>
#include <complex>
#include <cstdio>
#include <sstream>

#include "core/interrupts.h"
#include "core/shapes.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

// Number of times that this plan has printed, for first_n.
struct Printed : KernelState {
  mutable std::atomic<int64_t> times{0};
};
Result<std::unique_ptr<KernelState>> PreparePrint(PrepareContext&) {
  return std::unique_ptr<KernelState>(std::make_unique<Printed>());
}

template <typename T>
void WriteValue(std::ostream& out, T v) {
  if constexpr (std::is_same_v<T, bool> || sizeof(T) == 1)
    out << static_cast<int>(v);
  else if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>)
    out << static_cast<float>(v);
  else
    out << v;
}

void WriteValues(std::ostream& out, const Tensor& x, int64_t most) {
  const int64_t n = most < 0 ? x.numel() : std::min(most, x.numel());
  out << "  - data: [";
  VisitDType<bool, uint8_t, int8_t, int16_t, int32_t, int64_t, float16, bfloat16, float, double,
             std::complex<float>, std::complex<double>>(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (const int64_t i : Watched(n)) {
      if (i > 0) out << ' ';
      WriteValue(out, x.data<T>()[i]);
    }
  });
  out << (n < x.numel() ? " …]\n" : "]\n");
}

void WriteLoD(std::ostream& out, const LoD& lod) {
  out << "  - lod: {";
  for (const auto& level : lod) {
    out << '{';
    for (size_t i = 0; i < level.size(); ++i) out << (i ? ", " : "") << level[i];
    out << '}';
  }
  out << "}\n";
}

Status Print(KernelContext& ctx) {
  const Tensor& x = ctx.In("In");
  const std::string& phase = ctx.Str("print_phase");
  const bool wanted = phase == "BOTH" || phase == (ctx.Bool("is_forward") ? "FORWARD" : "BACKWARD");
  const int64_t most = ctx.Int("first_n");
  if (wanted && (most < 0 || !ctx.has_state() || ctx.State<Printed>().times++ < most)) {
    std::ostringstream text;
    text << ctx.Str("message") << '\n';
    if (ctx.Bool("print_tensor_lod")) WriteLoD(text, x.lod());
    if (ctx.Bool("print_tensor_shape")) text << "  - shape: " << x.shape().ToString() << '\n';
    if (ctx.Bool("print_tensor_type")) text << "  - dtype: " << Name(x.dtype()) << '\n';
    WriteValues(text, x, ctx.Int("summarize"));
    std::fputs(text.str().c_str(), stderr);
  }
  Tensor* out = ctx.OutOpt("Out");
  if (out != nullptr && out->raw() != x.raw())
    CopyBytes(ctx, x.raw(), out->mutable_raw(), x.bytes());
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(print) {
  op.Doc("hands In on and writes it to the standard error stream");
  op.Input("In").Output("Out", kOptional).Traits(kSideEffect).InferShape(SameShape);
  op.Attr("first_n", -1).Attr("message", "").Attr("summarize", -1);
  op.Attr("print_tensor_name", true).Attr("print_tensor_type", true);
  op.Attr("print_tensor_shape", true).Attr("print_tensor_layout", true);
  op.Attr("print_tensor_lod", true).Attr("print_phase", "BOTH").Attr("is_forward", true);
  op.Prepare(PreparePrint).AnyKernel(Print);
}
