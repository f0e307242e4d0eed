// Convolutions of images with channels second, by runners for channels last.
#include <algorithm>

#include "core/interrupts.h"
#include "kernels/integers/select.h"
#include "kernels/simd/bytes.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

class ChannelsFirstConv final : public IntegerRunner {
 public:
  ChannelsFirstConv(const IntegerConvCase& c, std::unique_ptr<IntegerRunner> inner)
      : batch_(c.g.batch),
        in_channels_(c.g.in_c),
        in_size_(c.g.in_size()),
        out_channels_(c.g.out_c),
        out_size_(c.g.out_size()),
        x_(c.x),
        out_(c.result.dtype),
        inner_(std::move(inner)) {}
  std::string name() const override { return inner_->name() + ", transposed"; }

  void Run(const KernelContext& ctx, const IntegerOperands& o) const override {
    Tensor x, out;
    IntegerOperands inside = o;
    if (in_channels_ > 1 && in_size_ > 1) {
      x = ctx.CallScratch(x_, {batch_ * in_channels_ * in_size_});
      Transpose(ctx, static_cast<const uint8_t*>(o.x), in_channels_, in_size_,
                static_cast<uint8_t*>(x.mutable_raw()));
      inside.x = x.raw();
    }
    const bool turns = out_channels_ > 1 && out_size_ > 1;
    if (turns) {
      out = ctx.CallScratch(out_, {batch_ * out_channels_ * out_size_});
      inside.out = out.mutable_raw();
    }
    inner_->Run(ctx, inside);
    if (!turns) return;
    if (SizeOf(out_) == 1)
      Transpose(ctx, static_cast<const uint8_t*>(inside.out), out_size_, out_channels_,
                static_cast<uint8_t*>(o.out));
    else
      back_.Run(ctx, inside.out, o.out);
  }

 private:
  void Transpose(const KernelContext& ctx, const uint8_t* from, int64_t rows, int64_t columns,
                 uint8_t* to) const {
    ctx.ParallelFor(batch_, 1, [&](int64_t begin, int64_t end) {
      for (const int64_t n : Watched(begin, end))
        simd::TransposeBytes(from + n * rows * columns, rows, columns, to + n * rows * columns);
    });
  }
  // Of results with more than one byte.
  StridedCopy Back() const {
    const CopyDim dims[] = {{batch_, out_size_ * out_channels_, out_size_ * out_channels_},
                            {out_channels_, 1, out_size_},
                            {out_size_, out_channels_, 1}};
    return StridedCopy(SizeOf(out_), dims);
  }

  const int64_t batch_, in_channels_, in_size_, out_channels_, out_size_;
  const DType x_, out_;
  const std::unique_ptr<IntegerRunner> inner_;
  const StridedCopy back_ = Back();
};

}  // namespace

std::unique_ptr<IntegerRunner> WithChannelsFirst(const IntegerConvCase& c,
                                                 std::unique_ptr<IntegerRunner> inner) {
  return std::make_unique<ChannelsFirstConv>(c, std::move(inner));
}

}  // namespace heddle
