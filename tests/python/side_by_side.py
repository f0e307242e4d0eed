"""Work of several threads at once, for tests."""

import random
import threading


def side_by_side(rng, count, work):
    """Calls `work` with random numbers of its own on each of `count` threads.

    Raises the first error that one of them raised, when all have ended.
    """
    failures = []

    def call(seed):
        try:
            work(random.Random(seed))
        except BaseException as error:  # pylint: disable=broad-exception-caught
            failures.append(error)

    threads = [threading.Thread(target=call, args=(rng.getrandbits(32),)) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
