"""Small networks in NumPy, float64, with their gradients: what fine-tuning is compared with.

A network is a list of layers, each a dict: {"kind": "conv", "w": "w0", "b": "b0" or None, "k": 3},
{"kind": "norm", "names": [scale, shift, mean, variance]}, {"kind": "relu" | "tanh" | "sigmoid" |
"pool" | "flatten"}, {"kind": "fc", "w": …, "b": …, "turned": bool}, and at the end "softmax",
"log_softmax", "sigmoid" or nothing. Weights are in a dict by name, as a file has them."""

import numpy as np

EPSILON, MOMENTUM = 1e-5, 0.75


def draw(random, kinds, norms=True, classes=None):
    """(layers, weights, input shape without samples, classes)."""
    weights, layers = {}, []
    classes = classes or int(random.integers(2, 6))
    count = 0

    def add(stem, shape, scale=None):
        nonlocal count
        name = f"{stem}{count}"
        count += 1
        fan = int(np.prod(shape[1:])) if len(shape) > 1 else 1
        weights[name] = random.normal(0, scale or 1 / np.sqrt(max(fan, 1)), shape).astype("f4")
        return name

    convolutional = "conv" in kinds and random.random() < 0.6
    if convolutional:
        channels, size = int(random.integers(1, 4)), int(random.integers(4, 7))
        shape = (channels, size, size)
        for _ in range(int(random.integers(1, 3))):
            out, k = int(random.integers(2, 6)), int(random.choice([1, 3]))
            bias = random.random() < 0.5
            layers.append({"kind": "conv", "w": add("w", (out, channels, k, k)), "k": k,
                           "b": add("b", (out,), 0.1) if bias else None})
            channels = out
            if norms and random.random() < 0.6:
                names = [add("scale", (out,), 0.2), add("shift", (out,), 0.2),
                         add("mean", (out,), 0.2), add("variance", (out,), 0.2)]
                weights[names[0]] += 1
                weights[names[3]] = np.abs(weights[names[3]]) + np.float32(0.5)
                layers.append({"kind": "norm", "names": names})
            layers.append({"kind": str(random.choice(["relu", "tanh", "sigmoid"]))})
        if random.random() < 0.3:  # a head that is a convolution
            layers.append({"kind": "conv", "w": add("w", (classes, channels, 1, 1)), "k": 1,
                           "b": add("b", (classes,), 0.1) if random.random() < 0.5 else None})
            layers += [{"kind": "pool"}]
            return layers, weights, shape, classes
        if random.random() < 0.5:
            layers.append({"kind": "pool"})
            width = channels
        else:
            layers.append({"kind": "flatten"})
            width = channels * size * size
    else:
        width = int(random.integers(3, 9))
        shape = (width,)
    for _ in range(int(random.integers(0, 3))):
        out, turned = int(random.integers(3, 9)), bool(random.random() < 0.5)
        layers.append({"kind": "fc", "w": add("w", (out, width) if turned else (width, out)),
                       "b": add("b", (out,), 0.1) if random.random() < 0.7 else None,
                       "turned": turned})
        layers.append({"kind": str(random.choice(["relu", "tanh", "sigmoid"]))})
        width = out
    turned = bool(random.random() < 0.5)
    layers.append({"kind": "fc", "w": add("w", (classes, width) if turned else (width, classes)),
                   "b": add("b", (classes,), 0.1) if random.random() < 0.7 else None,
                   "turned": turned})
    return layers, weights, shape, classes


def head_of(layers):
    return [layer for layer in layers if layer["kind"] in ("fc", "conv")][-1]


class Twin:
    """Forward and backward; `train_norms`: batch norms use the batch's statistics."""

    def __init__(self, layers, weights, train_norms=False):
        self.layers, self.train_norms = layers, train_norms
        self.w = {name: np.asarray(value, "f8").copy() for name, value in weights.items()}
        self.adapters = {}  # weight -> (left, right, scale)

    def weight(self, name):
        w = self.w[name]
        if name in self.adapters:
            left, right, scale = self.adapters[name]
            w = w + scale * (left @ right).reshape(w.shape)
        return w

    def forward(self, x):
        """The logits: what the last layer with weights gives, pooled where it is a convolution."""
        self.kept, x = [], np.asarray(x, "f8")
        for layer in self.layers:
            x, back = getattr(self, "_" + layer["kind"])(x, layer)
            self.kept.append(back)
        return x

    def backward(self, g):
        self.g = {}
        for back in reversed(self.kept):
            g = back(g)
        grads = {}
        for name, value in self.g.items():
            if name in self.adapters:
                left, right, scale = self.adapters[name]
                flat = value.reshape(left.shape[0], right.shape[1])
                grads[name + ".left"] = scale * flat @ right.T
                grads[name + ".right"] = scale * left.T @ flat
            else:
                grads[name] = value
        return grads

    def _conv(self, x, layer):
        w, k = self.weight(layer["w"]), layer["k"]
        p = k // 2
        padded = np.pad(x, ((0, 0), (0, 0), (p, p), (p, p)))
        n, _, h, v = x.shape
        y = np.zeros((n, w.shape[0], h, v))
        for i in range(k):
            for j in range(k):
                y += np.einsum("nchw,oc->nohw", padded[:, :, i:i + h, j:j + v], w[:, :, i, j])
        if layer["b"]:
            y += self.w[layer["b"]].reshape(1, -1, 1, 1)

        def back(g):
            gw, gx = np.zeros_like(w), np.zeros_like(padded)
            for i in range(k):
                for j in range(k):
                    gw[:, :, i, j] = np.einsum("nohw,nchw->oc", g, padded[:, :, i:i + h, j:j + v])
                    gx[:, :, i:i + h, j:j + v] += np.einsum("nohw,oc->nchw", g, w[:, :, i, j])
            self.g[layer["w"]] = gw
            if layer["b"]:
                self.g[layer["b"]] = g.sum((0, 2, 3))
            return gx[:, :, p:p + h, p:p + v]
        return y, back

    def _norm(self, x, layer):
        scale, shift, mean, variance = layer["names"]
        axes, at = (0, 2, 3), (1, -1, 1, 1)
        if self.train_norms:
            m, v = x.mean(axes), x.var(axes)
            self.w[mean] = MOMENTUM * self.w[mean] + (1 - MOMENTUM) * m
            self.w[variance] = MOMENTUM * self.w[variance] + (1 - MOMENTUM) * v
        else:
            m, v = self.w[mean], self.w[variance]
        inverse = 1 / np.sqrt(v + EPSILON)
        h = (x - m.reshape(at)) * inverse.reshape(at)
        y = h * self.w[scale].reshape(at) + self.w[shift].reshape(at)
        fixed, factor = not self.train_norms, self.w[scale].copy()

        def back(g):
            self.g[scale], self.g[shift] = (g * h).sum(axes), g.sum(axes)
            gh = g * factor.reshape(at)
            if fixed:
                return gh * inverse.reshape(at)
            return inverse.reshape(at) * (gh - gh.mean(axes, keepdims=True)
                                          - h * (gh * h).mean(axes, keepdims=True))
        return y, back

    def _fc(self, x, layer):
        w = self.weight(layer["w"])
        m = w.T if layer["turned"] else w
        y = x @ m + (self.w[layer["b"]] if layer["b"] else 0)

        def back(g):
            gm = x.T @ g
            self.g[layer["w"]] = gm.T if layer["turned"] else gm
            if layer["b"]:
                self.g[layer["b"]] = g.sum(0)
            return g @ m.T
        return y, back

    def _relu(self, x, _):
        return np.maximum(x, 0), lambda g: g * (x > 0)

    def _tanh(self, x, _):
        y = np.tanh(x)
        return y, lambda g: g * (1 - y * y)

    def _sigmoid(self, x, _):
        y = 1 / (1 + np.exp(-x))
        return y, lambda g: g * y * (1 - y)

    def _pool(self, x, _):
        n, c, h, w = x.shape
        return x.mean((2, 3)), lambda g: np.broadcast_to(g.reshape(n, c, 1, 1) / (h * w), x.shape)

    def _flatten(self, x, _):
        return x.reshape(x.shape[0], -1), lambda g: g.reshape(x.shape)


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def ending(logits, final):
    """The model's output."""
    if final == "softmax":
        return softmax(logits)
    if final == "log_softmax":
        return np.log(softmax(logits))
    return 1 / (1 + np.exp(-logits)) if final == "sigmoid" else logits


def loss_of(logits, labels, op, final):
    """(loss, its gradient with respect to the logits)."""
    n = logits.shape[0]
    if op in ("softmax_with_cross_entropy", "cross_entropy"):
        x = logits
        if op == "softmax_with_cross_entropy" and final == "sigmoid":
            x = ending(logits, final)
        p = softmax(x)
        soft = labels if labels.dtype.kind == "f" else np.eye(x.shape[1])[labels.reshape(n)]
        g = (p * soft.sum(1, keepdims=True) - soft) / n
        if x is not logits:
            g = g * x * (1 - x)
        return -(soft * np.log(p)).sum() / n, g
    if op == "mse":
        y = ending(logits, final)
        g = 2 * (y - labels) / y.size
        if final == "softmax":
            g = y * (g - (g * y).sum(1, keepdims=True))
        elif final == "log_softmax":
            g = g - np.exp(y) * g.sum(1, keepdims=True)
        elif final == "sigmoid":
            g = g * y * (1 - y)
        return ((y - labels) ** 2).mean(), g
    p = 1 / (1 + np.exp(-logits))  # bce of a sigmoid, bce_with_logits
    each = -(labels * np.log(p) + (1 - labels) * np.log(1 - p))
    return each.mean(), (p - labels) / logits.size


class Rule:
    """sgd, momentum or adam."""

    def __init__(self, kind, rate):
        self.kind, self.rate, self.state, self.t = kind, rate, {}, 0

    def step(self, values, grads):
        self.t += 1
        for name, g in grads.items():
            p = values[name]
            if self.kind == "sgd":
                p -= self.rate * g
                continue
            m, u = self.state.setdefault(name, [np.zeros_like(p), np.zeros_like(p)])
            if self.kind == "momentum":
                m[...] = 0.9 * m + g
                p -= self.rate * m
                continue
            m[...] = 0.9 * m + 0.1 * g
            u[...] = 0.999 * u + 0.001 * g * g
            p -= self.rate * (m / (1 - 0.9 ** self.t)) / (np.sqrt(u / (1 - 0.999 ** self.t)) + 1e-8)
