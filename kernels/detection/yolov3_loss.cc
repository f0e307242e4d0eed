// yolov3_loss: boxes against the truth, each true box at the one anchor and cell that it fits best.
#include <cmath>

#include "core/interrupts.h"
#include "kernels/base/shape_checks.h"
#include "kernels/base/to_place.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

template <typename T>
struct CentreBox {
  T x, y, w, h;  // centre and size, relative to the image
};

template <typename T>
T LossSigmoid(T x) {
  return static_cast<T>(1.0 / (1.0 + std::exp(-x)));
}
template <typename T>
T CrossEntropy(T x, T label) {
  return static_cast<T>((x > 0 ? x : 0.0) - x * label + std::log(1.0 + std::exp(-std::abs(x))));
}

template <typename T>
T Overlap1d(T c1, T w1, T c2, T w2) {
  const T left = std::max(c1 - w1 / 2, c2 - w2 / 2), right = std::min(c1 + w1 / 2, c2 + w2 / 2);
  return right - left;
}
template <typename T>
T Iou(const CentreBox<T>& a, const CentreBox<T>& b) {
  const T w = Overlap1d(a.x, a.w, b.x, b.w), h = Overlap1d(a.y, a.h, b.y, b.h);
  const T both = w < 0 || h < 0 ? T(0) : w * h;
  return both / (a.w * a.h + b.w * b.h - both);
}

// Layout of X [N, masks * (5 + classes), H, W] and the parameters of the operator.
template <typename T>
struct LossHead {
  const Ints &anchors, &mask;
  int64_t n, h, w, boxes, classes, input;
  T positive, negative;
  float scale, bias, ignore;

  static Result<LossHead> Of(const KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &truth = ctx.In("GTBox"), &label = ctx.In("GTLabel");
    const Ints &anchors = ctx.IntList("anchors"), &mask = ctx.IntList("anchor_mask");
    const int64_t classes = ctx.Int("class_num");
    if (x.rank() != 4 || truth.rank() != 3 || truth.dim(0) != x.dim(0) || truth.dim(2) != 4 ||
        label.numel() != truth.dim(0) * truth.dim(1) || label.dtype() != DType::kI32 ||
        truth.dtype() != x.dtype() || classes < 1 || x.dim(1) != std::ssize(mask) * (classes + 5) ||
        x.dim(2) != x.dim(3))
      return InvalidArgument("X ", x.shape().ToString(), ", GTBox ", truth.shape().ToString(),
                             " and GTLabel ", label.shape().ToString(), " do not fit each other");
    const Tensor* scores = ctx.InOpt("GTScore");
    if (scores != nullptr && scores->numel() != label.numel())
      return InvalidArgument("GTScore ", scores->shape().ToString(), " does not fit GTLabel ",
                             label.shape().ToString());
    for (int64_t m : mask)
      if (m < 0 || 2 * m + 1 >= std::ssize(anchors)) return OutOfRange("anchor_mask holds ", m);
    const float scale = static_cast<float>(ctx.Float("scale_x_y"));
    const T smooth = ctx.Bool("use_label_smooth")
                         ? static_cast<T>(std::min<double>(1.0 / static_cast<T>(classes), 1.0 / 40))
                         : T(0);
    return LossHead{anchors,
                    mask,
                    x.dim(0),
                    x.dim(2),
                    x.dim(3),
                    truth.dim(1),
                    classes,
                    ctx.Int("downsample_ratio") * x.dim(2),
                    T(1) - smooth,
                    smooth,
                    scale,
                    static_cast<float>(-0.5 * (scale - 1.)),
                    static_cast<float>(ctx.Float("ignore_thresh"))};
  }
  int64_t plane() const { return h * w; }
  int64_t masks() const { return std::ssize(mask); }
  int64_t Anchor(int64_t i) const { return anchors[static_cast<size_t>(i)]; }
  // The first value of mask m's cell.
  int64_t Entry(int64_t image, int64_t m, int64_t cell) const {
    return (image * masks() + m) * (classes + 5) * plane() + cell;
  }
  CentreBox<T> Predicted(const T* x, int64_t m, int64_t row, int64_t col) const {
    const int64_t a = mask[static_cast<size_t>(m)];
    const T grid = static_cast<T>(h), size = static_cast<T>(input);
    return {(static_cast<T>(col) + LossSigmoid(x[0]) * scale + bias) / grid,
            (static_cast<T>(row) + LossSigmoid(x[plane()]) * scale + bias) / grid,
            std::exp(x[2 * plane()]) * static_cast<T>(Anchor(2 * a)) / size,
            std::exp(x[3 * plane()]) * static_cast<T>(Anchor(2 * a + 1)) / size};
  }
  // The anchor whose shape fits best, as a place in the mask; -1 when it is not in it.
  int64_t Match(const CentreBox<T>& truth, int64_t* anchor) const {
    T best = 0;
    *anchor = 0;
    for (int64_t a = 0; a < std::ssize(anchors) / 2; ++a) {
      const CentreBox<T> box{0, 0, static_cast<T>(Anchor(2 * a)) / static_cast<T>(input),
                             static_cast<T>(Anchor(2 * a + 1)) / static_cast<T>(input)};
      const float iou = static_cast<float>(Iou(box, CentreBox<T>{0, 0, truth.w, truth.h}));
      if (iou > best) best = iou, *anchor = a;
    }
    const auto at = std::find(mask.begin(), mask.end(), *anchor);
    return at == mask.end() ? -1 : at - mask.begin();
  }
  Result<int64_t> Cell(const CentreBox<T>& truth) const {
    const auto col = ToPlace(truth.x * static_cast<T>(w));
    const auto row = ToPlace(truth.y * static_cast<T>(h));
    if (col < 0 || col >= w || row < 0 || row >= h)
      return OutOfRange("a true box has its centre outside the image");
    return row * w + col;
  }
  // Target values of the four box coordinates at the cell.
  CentreBox<T> Target(const CentreBox<T>& truth, int64_t anchor, int64_t cell) const {
    return {truth.x * static_cast<T>(h) - static_cast<T>(cell % w),
            truth.y * static_cast<T>(h) - static_cast<T>(cell / w),
            std::log(truth.w * static_cast<T>(input) / static_cast<T>(Anchor(2 * anchor))),
            std::log(truth.h * static_cast<T>(input) / static_cast<T>(Anchor(2 * anchor + 1)))};
  }
};

template <typename T>
bool IsBox(const CentreBox<T>& b) {
  return !(b.w < 1e-6) && !(b.h < 1e-6);
}

template <typename T>
CentreBox<T> TruthAt(const Tensor& truth, int64_t i) {
  const T* b = truth.data<T>() + i * 4;
  return {b[0], b[1], b[2], b[3]};
}

// The loss of one true box at its cell: position, size, class.
template <typename T>
T BoxLoss(const LossHead<T>& head, const T* x, const CentreBox<T>& truth, int64_t anchor,
          int64_t cell, int64_t label, T score) {
  const CentreBox<T> t = head.Target(truth, anchor, cell);
  const int64_t p = head.plane();
  const T weight = static_cast<T>(2.0 - truth.w * truth.h) * score;
  T loss = CrossEntropy(x[0], t.x) * weight + CrossEntropy(x[p], t.y) * weight +
           std::abs(t.w - x[2 * p]) * weight + std::abs(t.h - x[3 * p]) * weight;
  for (int64_t c = 0; c < head.classes; ++c)
    loss += CrossEntropy(x[(5 + c) * p], c == label ? head.positive : head.negative) * score;
  return loss;
}

Status InferLoss(ShapeContext& ctx) {
  const Shape &x = ctx.InShape("X"), &truth = ctx.InShape("GTBox");
  if (!x.is_static() || !truth.is_static()) return ctx.Defer();
  if (x.rank() != 4 || truth.rank() != 3) return InvalidArgument("X must be 4-D, GTBox 3-D");
  ctx.SetOut("Loss", Shape{x[0]}, ctx.InDType("X"));
  ctx.SetOut("ObjectnessMask",
             Shape{x[0], static_cast<int64_t>(ctx.IntList("anchor_mask").size()), x[2], x[3]},
             ctx.InDType("X"));
  ctx.SetOut("GTMatchMask", Shape{x[0], truth[1]}, DType::kI32);
  return Status::Ok();
}

template <typename T>
struct Yolov3Loss {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const LossHead<T> head, LossHead<T>::Of(ctx));
    ZeroAll(ctx.Out("Loss"));
    ZeroAll(ctx.Out("ObjectnessMask"));
    for (const int64_t n : Watched(head.n)) {
      IgnoreGood(ctx, head, n);
      HEDDLE_RETURN_IF_ERROR(MatchTruth(ctx, head, n));
      Objectness(ctx, head, n);
    }
    return Status::Ok();
  }

  // Predictions that overlap a true box well are no negative examples.
  static void IgnoreGood(KernelContext& ctx, const LossHead<T>& head, int64_t n) {
    const T* x = ctx.In("X").template data<T>();
    T* mask =
        ctx.Out("ObjectnessMask").template mutable_data<T>() + n * head.masks() * head.plane();
    for (int64_t m = 0; m < head.masks(); ++m)
      for (const int64_t cell : Watched(head.plane())) {
        const CentreBox<T> box =
            head.Predicted(x + head.Entry(n, m, cell), m, cell / head.w, cell % head.w);
        T best = 0;
        for (int64_t t = 0; t < head.boxes; ++t) {
          const CentreBox<T> truth = TruthAt<T>(ctx.In("GTBox"), n * head.boxes + t);
          if (IsBox(truth)) best = std::max(best, Iou(box, truth));
        }
        if (best > head.ignore) mask[m * head.plane() + cell] = T(-1);
      }
  }

  static Status MatchTruth(KernelContext& ctx, const LossHead<T>& head, int64_t n) {
    const T* x = ctx.In("X").template data<T>();
    const Tensor* scores = ctx.InOpt("GTScore");
    T* mask = ctx.Out("ObjectnessMask").template mutable_data<T>();
    for (const int64_t t : Watched(n * head.boxes, (n + 1) * head.boxes)) {
      int32_t& match = ctx.Out("GTMatchMask").template mutable_data<int32_t>()[t];
      const CentreBox<T> truth = TruthAt<T>(ctx.In("GTBox"), t);
      int64_t anchor = 0;
      match = IsBox(truth) ? static_cast<int32_t>(head.Match(truth, &anchor)) : -1;
      if (match < 0) continue;
      HEDDLE_ASSIGN_OR_RETURN(const int64_t cell, head.Cell(truth));
      const T score = scores != nullptr ? scores->data<T>()[t] : T(1);
      ctx.Out("Loss").template mutable_data<T>()[n] +=
          BoxLoss(head, x + head.Entry(n, match, cell), truth, anchor, cell,
                  ctx.In("GTLabel").template data<int32_t>()[t], score);
      mask[(n * head.masks() + match) * head.plane() + cell] = score;
    }
    return Status::Ok();
  }

  static void Objectness(KernelContext& ctx, const LossHead<T>& head, int64_t n) {
    const T *x = ctx.In("X").template data<T>(),
            *mask = ctx.Out("ObjectnessMask").template data<T>();
    T& loss = ctx.Out("Loss").template mutable_data<T>()[n];
    for (int64_t m = 0; m < head.masks(); ++m)
      for (const int64_t cell : Watched(head.plane())) {
        const T object = mask[(n * head.masks() + m) * head.plane() + cell];
        const T value = x[head.Entry(n, m, cell) + 4 * head.plane()];
        if (object > 1e-5)
          loss += CrossEntropy(value, T(1)) * object;
        else if (object > -0.5)
          loss += CrossEntropy(value, T(0));
      }
  }
};

Status InferLossGrad(ShapeContext& ctx) {
  SetOutsLike(ctx, {{"X", "X@GRAD"}, {"GTBox", "GTBox@GRAD"}, {"GTLabel", "GTLabel@GRAD"}});
  if (ctx.HasIn("GTScore")) SetOutsLike(ctx, {{"GTScore", "GTScore@GRAD"}});
  return Status::Ok();
}

template <typename T>
struct Yolov3LossGrad {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const LossHead<T> head, LossHead<T>::Of(ctx));
    for (const Key key : {Key("GTBox@GRAD"), Key("GTLabel@GRAD"), Key("GTScore@GRAD")})
      if (Tensor* t = ctx.OutOpt(key)) ZeroAll(*t);
    Tensor& dx = ctx.Out("X@GRAD");
    ZeroAll(dx);
    if (ctx.In("Loss@GRAD").numel() != head.n ||
        ctx.In("ObjectnessMask").numel() != head.n * head.masks() * head.plane() ||
        ctx.In("GTMatchMask").numel() != head.n * head.boxes)
      return InvalidArgument("what the forward operator left does not fit X");
    for (const int64_t n : Watched(head.n)) {
      for (int64_t t = n * head.boxes; t < (n + 1) * head.boxes; ++t)
        HEDDLE_RETURN_IF_ERROR(OneBox(ctx, head, n, t, dx.mutable_data<T>()));
      Objectness(ctx, head, n, dx.mutable_data<T>());
    }
    return Status::Ok();
  }

  static Status OneBox(const KernelContext& ctx, const LossHead<T>& head, int64_t n, int64_t t,
                       T* dx) {
    const int64_t match = ctx.In("GTMatchMask").template data<int32_t>()[t];
    if (match < 0) return Status::Ok();
    if (match >= head.masks()) return OutOfRange("GTMatchMask holds ", match);
    const CentreBox<T> truth = TruthAt<T>(ctx.In("GTBox"), t);
    HEDDLE_ASSIGN_OR_RETURN(const int64_t cell, head.Cell(truth));
    const CentreBox<T> target = head.Target(truth, head.mask[static_cast<size_t>(match)], cell);
    const Tensor* scores = ctx.InOpt("GTScore");
    const T score = scores != nullptr ? scores->data<T>()[t] : T(1);
    const T d = ctx.In("Loss@GRAD").template data<T>()[n];
    const T weight = static_cast<T>(2.0 - truth.w * truth.h) * score;
    const int64_t at = head.Entry(n, match, cell), p = head.plane();
    const T* x = ctx.In("X").template data<T>() + at;
    T* to = dx + at;
    to[0] = (LossSigmoid(x[0]) - target.x) * weight * d;
    to[p] = (LossSigmoid(x[p]) - target.y) * weight * d;
    to[2 * p] = (x[2 * p] > target.w ? T(1) : T(-1)) * weight * d;
    to[3 * p] = (x[3 * p] > target.h ? T(1) : T(-1)) * weight * d;
    const int64_t label = ctx.In("GTLabel").template data<int32_t>()[t];
    for (int64_t c = 0; c < head.classes; ++c)
      to[(5 + c) * p] =
          (LossSigmoid(x[(5 + c) * p]) - (c == label ? head.positive : head.negative)) * score * d;
    return Status::Ok();
  }

  static void Objectness(const KernelContext& ctx, const LossHead<T>& head, int64_t n, T* dx) {
    const T* x = ctx.In("X").template data<T>();
    const T* mask = ctx.In("ObjectnessMask").template data<T>();
    const T d = ctx.In("Loss@GRAD").template data<T>()[n];
    for (int64_t m = 0; m < head.masks(); ++m)
      for (const int64_t cell : Watched(head.plane())) {
        const T object = mask[(n * head.masks() + m) * head.plane() + cell];
        const int64_t at = head.Entry(n, m, cell) + 4 * head.plane();
        if (object > 1e-5)
          dx[at] = (LossSigmoid(x[at]) - T(1)) * object * d;
        else if (object > -0.5)
          dx[at] = LossSigmoid(x[at]) * d;
      }
  }
};

void DefineLoss(OpDef& op) {
  op.Input("X").Input("GTBox").Input("GTLabel").Input("GTScore", kOptional);
  op.Attr("anchors", Ints{}).Attr("anchor_mask", Ints{}).Attr("class_num", 1);
  op.Attr("ignore_thresh", 0.7).Attr("downsample_ratio", 32).Attr("use_label_smooth", true);
  op.Attr("scale_x_y", 1.0);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(yolov3_loss) {
  op.Doc("the loss of a YOLO head against true boxes");
  DefineLoss(op);
  op.Output("Loss").Output("ObjectnessMask").Output("GTMatchMask");
  op.InferShape(InferLoss).Kernels<Yolov3Loss, float, double>();
}
HEDDLE_OP(yolov3_loss_grad) {
  DefineLoss(op);
  op.Input("Loss@GRAD").Input("ObjectnessMask").Input("GTMatchMask").Output("X@GRAD");
  op.Output("GTBox@GRAD", kOptional).Output("GTLabel@GRAD", kOptional);
  op.Output("GTScore@GRAD", kOptional).InferShape(InferLossGrad);
  op.Kernels<Yolov3LossGrad, float, double>();
}
