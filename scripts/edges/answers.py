"""What ONNX Runtime answers, and how a result differs from it."""
import fnmatch

import numpy as np

# Cases in which what ONNX Runtime makes of an element depends on its place, its neighbours or the
# type, or is an approximation; the definition, as ONNX's evaluator has it, is right there, too.
BY_DEFINITION = {
    'order/Arg*': 'NaN is passed over, or not, by its place',
    'reduce/ReduceM[ai][xn]/*': 'NaN is passed over, or not, by its place',
    'reduce/ReduceLogSumExp/*': 'as ReduceMax',
    'reduce/ReduceMean/float*/empty': 'the mean of nothing is 0; NaN in the tests of ONNX',
    'unary/Hardmax/*': 'as ArgMax',
    'unary/Sigmoid/*': 'what is below -18 gives 0',
    'chain/*/pair': 'as Sigmoid',
    'unary/Sign/float16': 'of NaN 0, of other types NaN',
    'unary/Shrink/float64': 'goes through float',
    'unary/LogSoftmax/float64': 'in rows with NaN the others are about -46 from it',
    'binary/Mean/float16*': 'added in float, where Add rounds to float16',
    'select/Where/*': 'a zero that is chosen loses its sign',
}


def answers(case):
    """Lists of outputs that are right, or the reason why there are none. ONNX's evaluator is asked
    where ONNX Runtime has no kernel, and about what BY_DEFINITION names."""
    import onnxruntime as ort
    ort.set_default_logger_severity(4)
    found, model, feeds = [], case.model().SerializeToString(), case.fed()
    levels = ort.GraphOptimizationLevel
    for level in (levels.ORT_DISABLE_ALL, levels.ORT_ENABLE_ALL):
        options = ort.SessionOptions()
        options.graph_optimization_level = level
        options.intra_op_num_threads = 1
        try:
            session = ort.InferenceSession(model, options, providers=['CPUExecutionProvider'])
            found.append(session.run(None, feeds))
        except Exception as e:  # noqa: the classes have no common base
            if level == levels.ORT_DISABLE_ALL:
                if 'NOT_IMPLEMENTED' not in str(e):
                    return None, str(e)
                why = str(e)
    if 'MaxPool' in case.name and case.feeds['x0'].dtype.kind == 'f' and found:
        return [nan_wins(case, least_is_infinite(found[0]))], None
    asked = [pattern for pattern in BY_DEFINITION if fnmatch.fnmatch(case.name, pattern)]
    if found and not asked:
        return found, None
    from onnx.reference import ReferenceEvaluator
    try:
        with np.errstate(all='ignore'):
            more = [np.asarray(v) for v in ReferenceEvaluator(case.model()).run(None, feeds)]
        found.append(more)
    except Exception as e:  # noqa
        return (found, None) if found else (None, '%s; %s' % (why, e))
    return found, None


def least_is_infinite(wants):
    """Some of ONNX Runtime's kernels begin a window with the least finite number, others with
    -infinity, which it then holds by definition. No operand has that number."""
    return [np.where(w == np.finfo(w.dtype).min, np.array(-np.inf, w.dtype), w) for w in wants]


def nan_wins(case, wants):
    """The answers, with NaN where a window has one, as by definition: in ONNX Runtime that depends
    on NaN's place in the window and on the kernel."""
    import copy
    import onnxruntime as ort
    flags = copy.copy(case)
    flags.feeds = {k: np.isnan(v).astype('float32') for k, v in case.feeds.items()}
    flags.outputs = [(name, 'float32') for name, _ in case.outputs]
    session = ort.InferenceSession(flags.model().SerializeToString(),
                                   providers=['CPUExecutionProvider'])
    found = session.run(None, flags.fed())
    return [np.where(f > 0, np.array(np.nan, w.dtype), w) for f, w in zip(found, wants)]


def differences(got, wants, case):
    """What is different, in words; None when one of `wants` has the class at every element."""
    first = wants[0]
    wants = [w for w in wants if w.shape == first.shape]
    if got.shape != first.shape:
        return 'shape %s, not %s' % (got.shape, first.shape)
    if first.dtype.kind in 'OSU':
        bad = [(str(g), str(w)) for g, w in zip(got.ravel(), first.ravel()) if str(g) != str(w)]
        return 'strings %s' % bad[:3] if bad else None
    if got.dtype != first.dtype:
        return 'type %s, not %s' % (got.dtype, first.dtype)
    fine = np.zeros(got.shape, bool)
    for want in wants:
        if want.dtype.kind != 'f':
            fine |= got == want
            continue
        rtol = case.rtol or {'float16': 4e-3, 'float32': 2e-5, 'float64': 1e-9}[want.dtype.name]
        g, w = got.astype('float64'), want.astype('float64')
        tiny = float(np.finfo(want.dtype).tiny)
        with np.errstate(all='ignore'):
            same = (np.isnan(g) & np.isnan(w)) | (g == w)
            size = np.abs(w)
            near = np.abs(g - w) <= rtol * size + 2 * tiny
            if case.sums:
                most = np.max(np.where(np.isfinite(w), size, 0), initial=0)
                near |= np.abs(g - w) <= case.sums * most
            near &= np.isfinite(g) & np.isfinite(w)
            if case.zeros:
                near &= ~((g == 0) & (w == 0) & (np.signbit(g) != np.signbit(w)))
                same &= ~((g == 0) & (w == 0) & (np.signbit(g) != np.signbit(w)))
        fine |= same | near
    if fine.all():
        return None
    at = tuple(int(i) for i in np.unravel_index(int(np.argmin(fine.reshape(-1))), fine.shape))
    return '%d of %d elements, first at %s: %s, not %s' % (
        (~fine).sum(), fine.size, list(at), got[at], ' or '.join(str(w[at]) for w in wants))
