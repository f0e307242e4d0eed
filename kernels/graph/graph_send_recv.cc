// graph_send_recv, graph_send_ue_recv and graph_send_uv: messages along the edges of a graph.
#include <limits>

#include "core/interrupts.h"
#include "kernels/base/shape_checks.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

enum class Reduce { kSum, kMean, kMax, kMin };

Result<Reduce> ReduceOf(const std::string& name) {
  if (name == "SUM") return Reduce::kSum;
  if (name == "MEAN") return Reduce::kMean;
  if (name == "MAX") return Reduce::kMax;
  if (name == "MIN") return Reduce::kMin;
  return InvalidArgument("unknown reduce_op '", name, "'");
}
Result<bool> MultipliesOf(const std::string& name) {
  if (name == "MUL") return true;
  if (name == "ADD") return false;
  return InvalidArgument("unknown message_op '", name, "'");
}

Shape Features(const Shape& s) { return Shape(s.dims().subspan(s.rank() > 0 ? 1 : 0)); }

// Sources of the features of a broadcast message: element k is x[x_at(k)] op y[y_at(k)].
struct FeatureMap {
  Shape shape;
  int64_t size = 0, x_size = 0, y_size = 0;
  std::vector<int64_t> x_at, y_at;  // empty when element k is simply at k

  static Result<FeatureMap> Of(const Shape& x, const Shape& y) {
    FeatureMap m;
    HEDDLE_ASSIGN_OR_RETURN(m.shape, BroadcastShape(x, y, -1));
    m.size = m.shape.numel();
    m.x_size = x.numel();
    m.y_size = y.numel();
    if (m.x_size != m.size) m.x_at = Positions(m.shape, x);
    if (m.y_size != m.size) m.y_at = Positions(m.shape, y);
    return m;
  }
  int64_t X(int64_t k) const { return x_at.empty() ? k : x_at[static_cast<size_t>(k)]; }
  int64_t Y(int64_t k) const { return y_at.empty() ? k : y_at[static_cast<size_t>(k)]; }

 private:
  static std::vector<int64_t> Positions(const Shape& full, const Shape& own) {
    std::vector<int64_t> at(static_cast<size_t>(full.numel()), 0);
    for (const int64_t k : Watched(full.numel())) {
      int64_t rest = k, stride = 1, sum = 0;
      for (int i = full.rank() - 1, j = own.rank() - 1; i >= 0; --i, --j) {
        const int64_t pos = rest % full[i];
        rest /= full[i];
        if (j < 0) continue;
        sum += own[j] == 1 ? 0 : pos * stride;
        stride *= own[j];
      }
      at[static_cast<size_t>(k)] = sum;
    }
    return at;
  }
};

// The edges, checked against the numbers of rows they lead between.
struct Edges {
  Labels src, dst;
  int64_t count;

  Edges(KernelContext& ctx, Key s, Key d)
      : src(ctx, ctx.In(s)), dst(ctx, ctx.In(d)), count(ctx.In(s).numel()) {}
  Status Check(const KernelContext& ctx, Key d, int64_t from, int64_t to) const {
    if (ctx.In(d).numel() != count)
      return InvalidArgument("the source and destination indices must be equally many");
    constexpr int64_t kNone = std::numeric_limits<int64_t>::min();
    HEDDLE_RETURN_IF_ERROR(src.Check(count, from, kNone));
    return dst.Check(count, to, kNone);
  }
};

// Rows of the result: Out_size, else the attribute, else as many as X.
Result<int64_t> OutRows(const ShapeContext& ctx, int64_t own) {
  int64_t size = 0;
  if (ctx.HasIn("Out_size")) {
    const Tensor* t = ctx.InValue("Out_size");
    if (t == nullptr) return int64_t{-1};
    const Ints v = ToInts(*t);
    size = v.empty() ? 0 : v[0];
  } else if (const Ints& v = ctx.IntList("out_size"); !v.empty()) {
    size = v[0];
  }
  return size > 0 ? size : own;
}

Status CheckNodes(const ShapeContext& ctx, Key x) {
  const Shape& s = ctx.InShape(x);
  if (s.known_rank() && s.rank() < 1)
    return InvalidArgument(x.name, " must have at least one axis");
  return Status::Ok();
}

Status InferReceive(ShapeContext& ctx, bool edges) {
  HEDDLE_RETURN_IF_ERROR(CheckNodes(ctx, "X"));
  const Shape& x = ctx.InShape("X");
  if (!x.is_static()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const int64_t rows, OutRows(ctx, x[0]));
  if (rows < 0) return ctx.Defer();
  Shape features = Features(x);
  if (edges) {
    HEDDLE_RETURN_IF_ERROR(CheckNodes(ctx, "Y"));
    const Shape &y = ctx.InShape("Y"), &src = ctx.InShape("Src_index");
    if (!y.is_static() || !src.is_static()) return ctx.Defer();
    if (y[0] != src.numel())
      return InvalidArgument("Y ", y.ToString(), " must have one row per edge, ", src.numel());
    if (ctx.InDType("Y") != ctx.InDType("X"))
      return InvalidArgument("X and Y must have the same dtype");
    HEDDLE_ASSIGN_OR_RETURN(features, BroadcastShape(features, Features(y), -1));
  }
  Shape out{rows};
  for (int64_t d : features) out.push_back(d);
  ctx.SetOut("Out", out, ctx.InDType("X"));
  if (ctx.HasOut("Dst_count")) {
    const bool mean = ctx.Str("reduce_op") == "MEAN";
    ctx.SetOut("Dst_count", mean ? Shape{rows} : Shape{0}, DType::kI32);
  }
  return Status::Ok();
}
Status InferSendRecv(ShapeContext& ctx) { return InferReceive(ctx, false); }
Status InferUeRecv(ShapeContext& ctx) { return InferReceive(ctx, true); }

// A message of one edge: x's row, joined with y's row where there is one.
template <typename T>
struct Message {
  const T *x, *y;  // y may be null
  const FeatureMap& map;
  bool multiply;
  T At(int64_t src, int64_t edge, int64_t k) const {
    const T a = x[src * map.x_size + map.X(k)];
    if (y == nullptr) return a;
    const T b = y[edge * map.y_size + map.Y(k)];
    return multiply ? a * b : a + b;
  }
};

template <typename T>
void Receive(const Edges& e, const Message<T>& message, Reduce how, int64_t rows,
             Tensor& out_tensor, Tensor* counts) {
  ZeroAll(out_tensor);
  T* out = out_tensor.mutable_data<T>();
  const int64_t size = message.map.size;
  std::vector<int32_t> seen(static_cast<size_t>(rows), 0);
  for (const int64_t i : Watched(e.count)) {
    const bool first = seen[static_cast<size_t>(e.dst[i])]++ == 0;
    T* to = out + e.dst[i] * size;
    for (int64_t k = 0; k < size; ++k) {
      const T m = message.At(e.src[i], i, k);
      if (how == Reduce::kMax)
        to[k] = first ? m : std::max(to[k], m);
      else if (how == Reduce::kMin)
        to[k] = first ? m : std::min(to[k], m);
      else
        to[k] += m;
    }
  }
  if (how != Reduce::kMean) return;
  for (const int64_t r : Watched(rows))
    for (int64_t k = 0; k < size && seen[static_cast<size_t>(r)] > 1; ++k)
      out[r * size + k] /= static_cast<T>(seen[static_cast<size_t>(r)]);
  if (counts) std::copy(seen.begin(), seen.end(), counts->mutable_data<int32_t>());
}

template <typename T>
Status RunReceive(KernelContext& ctx, bool edges) {
  const Tensor& x = ctx.In("X");
  Tensor& out = ctx.Out("Out");
  HEDDLE_ASSIGN_OR_RETURN(const Reduce how, ReduceOf(ctx.Str("reduce_op")));
  const Edges e(ctx, "Src_index", "Dst_index");
  HEDDLE_RETURN_IF_ERROR(e.Check(ctx, "Dst_index", x.dim(0), out.dim(0)));
  const Shape fx = Features(x.shape());
  bool multiply = false;
  const T* y = nullptr;
  if (edges) {
    HEDDLE_ASSIGN_OR_RETURN(multiply, MultipliesOf(ctx.Str("message_op")));
    y = ctx.In("Y").template data<T>();
  }
  HEDDLE_ASSIGN_OR_RETURN(const FeatureMap map,
                          FeatureMap::Of(fx, edges ? Features(ctx.In("Y").shape()) : fx));
  Receive(e, Message<T>{x.data<T>(), y, map, multiply}, how, out.dim(0), out,
          ctx.OutOpt("Dst_count"));
  return Status::Ok();
}
template <typename T>
struct SendRecv {
  static Status Run(KernelContext& ctx) { return RunReceive<T>(ctx, false); }
};
template <typename T>
struct SendUeRecv {
  static Status Run(KernelContext& ctx) { return RunReceive<T>(ctx, true); }
};

template <typename T>
Status RunReceiveGrad(KernelContext& ctx, bool edges) {
  const Tensor &x = ctx.In("X"), &dout = ctx.In("Out@GRAD");
  HEDDLE_ASSIGN_OR_RETURN(const Reduce how, ReduceOf(ctx.Str("reduce_op")));
  const bool extreme = how == Reduce::kMax || how == Reduce::kMin;
  bool multiply = false;
  const T* y = nullptr;
  if (edges) {
    HEDDLE_ASSIGN_OR_RETURN(multiply, MultipliesOf(ctx.Str("message_op")));
    y = ctx.In("Y").template data<T>();
  }
  const Shape fx = Features(x.shape());
  HEDDLE_ASSIGN_OR_RETURN(const FeatureMap map,
                          FeatureMap::Of(fx, edges ? Features(ctx.In("Y").shape()) : fx));
  const Edges e(ctx, "Src_index", "Dst_index");
  if (dout.rank() < 1 || x.rank() < 1 || dout.numel() != dout.dim(0) * map.size ||
      (edges && ctx.In("Y").dim(0) != e.count))
    return InvalidArgument("Out@GRAD ", dout.shape().ToString(), " does not fit the messages");
  HEDDLE_RETURN_IF_ERROR(e.Check(ctx, "Dst_index", x.dim(0), dout.dim(0)));
  const T* out = extreme ? ctx.In("Out").template data<T>() : nullptr;
  const int32_t* counts = how == Reduce::kMean ? ctx.In("Dst_count").data<int32_t>() : nullptr;
  if ((out && ctx.In("Out").numel() != dout.numel()) ||
      (counts && ctx.In("Dst_count").numel() != dout.dim(0)))
    return InvalidArgument("Out and Dst_count must fit Out@GRAD");
  Tensor *gx = ctx.OutOpt("X@GRAD"), *gy = edges ? ctx.OutOpt("Y@GRAD") : nullptr;
  if (gx) ZeroAll(*gx);
  if (gy) ZeroAll(*gy);
  const Message<T> message{x.data<T>(), y, map, multiply};
  for (const int64_t i : Watched(e.count)) {
    const int64_t src = e.src[i], dst = e.dst[i];
    const T share = counts ? T(1) / static_cast<T>(std::max(1, counts[dst])) : T(1);
    for (int64_t k = 0; k < map.size; ++k) {
      const int64_t at = dst * map.size + k, xk = src * map.x_size + map.X(k);
      if (out && message.At(src, i, k) != out[at]) continue;
      const T d = dout.data<T>()[at] * share;
      const int64_t yk = i * map.y_size + map.Y(k);
      if (gx) gx->template mutable_data<T>()[xk] += multiply ? d * y[yk] : d;
      if (gy) gy->template mutable_data<T>()[yk] += multiply ? d * x.data<T>()[xk] : d;
    }
  }
  return Status::Ok();
}
template <typename T>
struct SendRecvGrad {
  static Status Run(KernelContext& ctx) { return RunReceiveGrad<T>(ctx, false); }
};
template <typename T>
struct SendUeRecvGrad {
  static Status Run(KernelContext& ctx) { return RunReceiveGrad<T>(ctx, true); }
};

Status InferUv(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckNodes(ctx, "x"));
  HEDDLE_RETURN_IF_ERROR(CheckNodes(ctx, "y"));
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "src_index", "dst_index"));
  const Shape &x = ctx.InShape("x"), &y = ctx.InShape("y"), &src = ctx.InShape("src_index");
  if (!x.is_static() || !y.is_static() || !src.is_static()) return ctx.Defer();
  if (ctx.InDType("x") != ctx.InDType("y"))
    return InvalidArgument("x and y must have the same dtype");
  HEDDLE_ASSIGN_OR_RETURN(const Shape features, BroadcastShape(Features(x), Features(y), -1));
  Shape out{src.numel()};
  for (int64_t d : features) out.push_back(d);
  ctx.SetOut("out", out, ctx.InDType("x"));
  return Status::Ok();
}

template <typename T>
struct SendUv {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("x"), &y = ctx.In("y");
    HEDDLE_ASSIGN_OR_RETURN(const bool multiply, MultipliesOf(ctx.Str("message_op")));
    HEDDLE_ASSIGN_OR_RETURN(const FeatureMap map,
                            FeatureMap::Of(Features(x.shape()), Features(y.shape())));
    const Edges e(ctx, "src_index", "dst_index");
    HEDDLE_RETURN_IF_ERROR(e.Check(ctx, "dst_index", x.dim(0), y.dim(0)));
    T* out = ctx.Out("out").template mutable_data<T>();
    for (const int64_t i : Watched(e.count))
      for (int64_t k = 0; k < map.size; ++k) {
        const T a = x.data<T>()[e.src[i] * map.x_size + map.X(k)];
        const T b = y.data<T>()[e.dst[i] * map.y_size + map.Y(k)];
        *out++ = multiply ? a * b : a + b;
      }
    return Status::Ok();
  }
};

template <typename T>
struct SendUvGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("x"), &y = ctx.In("y"), &dout = ctx.In("out@GRAD");
    HEDDLE_ASSIGN_OR_RETURN(const bool multiply, MultipliesOf(ctx.Str("message_op")));
    if (x.rank() < 1 || y.rank() < 1) return InvalidArgument("x and y must have an axis");
    HEDDLE_ASSIGN_OR_RETURN(const FeatureMap map,
                            FeatureMap::Of(Features(x.shape()), Features(y.shape())));
    const Edges e(ctx, "src_index", "dst_index");
    HEDDLE_RETURN_IF_ERROR(e.Check(ctx, "dst_index", x.dim(0), y.dim(0)));
    if (dout.numel() != e.count * map.size)
      return InvalidArgument("out@GRAD ", dout.shape().ToString(), " does not fit the edges");
    Tensor *gx = ctx.OutOpt("x@GRAD"), *gy = ctx.OutOpt("y@GRAD");
    if (gx) ZeroAll(*gx);
    if (gy) ZeroAll(*gy);
    const T* d = dout.data<T>();
    for (const int64_t i : Watched(e.count))
      for (int64_t k = 0; k < map.size; ++k, ++d) {
        const int64_t xk = e.src[i] * map.x_size + map.X(k), yk = e.dst[i] * map.y_size + map.Y(k);
        if (gx) gx->template mutable_data<T>()[xk] += multiply ? *d * y.data<T>()[yk] : *d;
        if (gy) gy->template mutable_data<T>()[yk] += multiply ? *d * x.data<T>()[xk] : *d;
      }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(graph_send_recv) {
  op.Doc("reduces the rows of X sent along edges into their destinations")
      .Input("X")
      .Input("Src_index")
      .Input("Dst_index")
      .Input("Out_size", kOptional | kShapeValue)
      .Output("Out")
      .Output("Dst_count", kOptional)
      .Attr("reduce_op", "SUM")
      .Attr("out_size", Ints{0})
      .InferShape(InferSendRecv)
      .Kernels<SendRecv, float, double, int32_t, int64_t>();
}

HEDDLE_OP(graph_send_recv_grad) {
  op.Input("X")
      .Input("Src_index")
      .Input("Dst_index")
      .Input("Out", kOptional)
      .Input("Dst_count", kOptional)
      .Input("Out@GRAD")
      .Output("X@GRAD")
      .Attr("reduce_op", "SUM")
      .Attr("out_size", Ints{0})
      .InferShape(GradLikeInputs)
      .Kernels<SendRecvGrad, float, double, int32_t, int64_t>();
}

HEDDLE_OP(graph_send_ue_recv) {
  op.Doc("graph_send_recv of messages joined with the edges' own features Y")
      .Input("X")
      .Input("Y")
      .Input("Src_index")
      .Input("Dst_index")
      .Input("Out_size", kOptional | kShapeValue)
      .Output("Out")
      .Output("Dst_count", kOptional)
      .Attr("message_op", "ADD")
      .Attr("reduce_op", "SUM")
      .Attr("out_size", Ints{0})
      .InferShape(InferUeRecv)
      .Kernels<SendUeRecv, float, double, int32_t, int64_t>();
}

HEDDLE_OP(graph_send_ue_recv_grad) {
  op.Input("X")
      .Input("Y")
      .Input("Src_index")
      .Input("Dst_index")
      .Input("Out", kOptional)
      .Input("Dst_count", kOptional)
      .Input("Out@GRAD")
      .Output("X@GRAD", kOptional)
      .Output("Y@GRAD", kOptional)
      .Attr("message_op", "ADD")
      .Attr("reduce_op", "SUM")
      .Attr("out_size", Ints{0})
      .InferShape(GradLikeInputs)
      .Kernels<SendUeRecvGrad, float, double, int32_t, int64_t>();
}

HEDDLE_OP(graph_send_uv) {
  op.Doc("joins the rows at both ends of each edge")
      .Input("x")
      .Input("y")
      .Input("src_index")
      .Input("dst_index")
      .Output("out")
      .Attr("message_op", "ADD")
      .InferShape(InferUv)
      .Kernels<SendUv, float, double, int32_t, int64_t>();
}

HEDDLE_OP(graph_send_uv_grad) {
  op.Input("x")
      .Input("y")
      .Input("src_index")
      .Input("dst_index")
      .Input("out@GRAD")
      .Output("x@GRAD", kOptional)
      .Output("y@GRAD", kOptional)
      .Attr("message_op", "ADD")
      .InferShape(GradLikeInputs)
      .Kernels<SendUvGrad, float, double, int32_t, int64_t>();
}
