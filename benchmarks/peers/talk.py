"""How a worker process talks: it answers lines of JSON, and blocks on its input in between."""

import json
import os
import sys


def status_mb(field):
    """A size of this process from /proc: "VmHWM", "VmRSS", ..."""
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith(field + ":"):
                return int(line.split()[1]) / 1024
    return 0.0


def load_arrays(feeds):
    import numpy as np

    return {name: np.require(np.load(file), requirements="C") for name, file in feeds.items()}


class Answers:
    """Keeps standard output for answers: what libraries print goes to standard error."""

    def __init__(self):
        self.file = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)

    def say(self, message):
        self.file.write(json.dumps(message) + "\n")
        self.file.flush()

    def serve(self, engine, run_slice, run_clients=None):
        """{"slice": seconds} runs the engine for that long, with "clients" by so many threads;
        {"outputs": folder} writes what the last run gave; an empty object ends the process."""
        import numpy as np

        for line in sys.stdin:
            request = json.loads(line)
            if "clients" in request:
                self.say(run_clients(engine, request["slice"], request["clients"]))
            elif "slice" in request:
                self.say(run_slice(engine, request["slice"]))
            elif "outputs" in request:
                for k, out in enumerate(engine.outputs()):
                    np.save(os.path.join(request["outputs"], f"out_{k}.npy"), out)
                self.say({"ok": True})
            else:
                break
        self.file.flush()
        os._exit(0)  # without the libraries' own goodbyes, which take time
