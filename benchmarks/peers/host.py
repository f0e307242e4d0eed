"""Facts about the host, for every benchmark's results."""

import datetime
import os
import platform
import re
import subprocess

from peers.environment import ROOT


def _cpu():
    facts = {}
    with open("/proc/cpuinfo") as file:
        for line in file:
            key, _, value = line.partition(":")
            facts.setdefault(key.strip(), value.strip())
    name = facts.get("model name", platform.machine())
    flags = facts.get("flags", "").split()
    isa = next((f for f in ("amx_tile", "avx512_bf16", "avx512f", "avx2") if f in flags), "none")
    where = f"family {facts.get('cpu family', '?')}, model {facts.get('model', '?')}"
    return name, isa, where


def _git(*args):
    try:
        return subprocess.run(["git", "-C", str(ROOT), *args], capture_output=True, text=True,
                              check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def host_facts():
    name, isa, where = _cpu()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": name, "cpu_detail": where, "isa": isa,
        "cores": len(os.sched_getaffinity(0)), "memory_gb": round(memory / 2**30, 1),
        "system": platform.platform(), "python": platform.python_version(),
        "heddle_commit": _git("rev-parse", "--short", "HEAD") +
                         ("+changes" if _git("status", "--porcelain", "-uno") else ""),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "load_at_start": os.getloadavg()[0],
    }


def slug(host):
    text = re.sub(r"\((r|tm)\)|@.*", "", host["cpu"].lower())
    text = "-".join(re.findall(r"[a-z0-9.]+", text))
    if host["isa"] != "none":
        text += "-" + host["isa"].replace("_", "-")
    return f"{text}-{host['cores']}c"
