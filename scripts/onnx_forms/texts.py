"""Texts: tokens, and counts of n-grams whose pool is of texts."""

import numpy as np

from .form import Form, form, pick

LETTERS = list("abcABC 12,.-") + ["ü", "é", "語", "  ", "\t"]
SEPARATORS = [" ", ",", r"\s+", r"[,.\-]", "a|aa", "b+", "[A-Z]", "", "a*", "^a", "c$", "語"]
TOKENS = [r"\w+", "[a-z]+", "[a-z]+|[0-9]+", "a|ab|abc", "[^ ]+", "a*b", r"[A-Za-zü]{2,3}", "x"]


def texts(r, shape, most=9):
    made = ["".join(r.choice(LETTERS, int(r.integers(0, most))))
            for _ in range(int(np.prod(shape)))]
    return np.array(made, object).reshape(shape)


@form
def tokenizer(r):
    f = Form(r, "Tokenizer", 17, domain="com.microsoft")
    shape = [int(r.integers(0 if r.random() < 0.1 else 1, 4)) for _ in range(int(r.integers(1, 3)))]
    f.add(texts(r, shape), const=False)
    f.attr(mark=int(r.integers(2)), pad_value=pick(r, "#", "", "pad"))
    f.attr(mincharnum=int(pick(r, 1, 1, 2, 3)))
    if r.random() < 0.6:
        count = 1 if r.random() < 0.4 else int(r.integers(1, 4))
        f.attr(separators=[str(s) for s in r.choice(SEPARATORS, count)])
    else:
        f.attr(tokenexp=str(r.choice(TOKENS)))
    return f


@form
def ngrams_of_texts(r):
    f = Form(r, "TfIdfVectorizer", int(r.integers(9, 18)))
    words = ["a", "b", "c", "ab", "", "ü"]
    shape = [int(r.integers(1, 9)) for _ in range(int(r.integers(1, 3)))]
    f.add(r.choice(words + ["x"], shape).astype(object), const=False)
    longest = int(r.integers(1, 4))
    counts, pool, columns = [], [], 0
    for length in range(1, longest + 1):
        counts.append(len(pool))
        grams = {tuple(str(w) for w in r.choice(words, length)) for _ in range(r.integers(1, 5))}
        for gram in sorted(grams):
            pool += gram
            columns += 1
    first = int(r.integers(1, longest + 1))
    f.attr(mode=pick(r, "TF", "IDF", "TFIDF"), min_gram_length=first, max_gram_length=longest)
    f.attr(max_skip_count=int(r.integers(0, 3)), ngram_counts=counts, pool_strings=pool)
    f.attr(ngram_indexes=[int(i) for i in r.permutation(columns)])
    if r.random() < 0.5:
        f.attr(weights=[float(w) for w in np.round(r.random(columns), 2)])
    return f
