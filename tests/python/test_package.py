"""The installed package: found without an import, cheap, and honest about the torch it fits."""
import os
import pathlib
import subprocess
import sys
import threading

import torch

import torch_cais
from torch_cais import _version_check

ROOT = pathlib.Path(__file__).resolve().parents[2]


def python(code, check=True, **environment):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100,
                          env={**os.environ, **environment}, cwd="/", check=False)
    assert not check or done.returncode == 0, done.stderr
    return done


USE = (
    "import torch.distributed as dist, torch\n"
    "dist.init_process_group('cais', store=dist.HashStore(), rank=0, world_size=1)\n"
    "x = torch.ones(3); dist.all_reduce(x); print(x.sum().item(), dist.get_backend())\n"
    "dist.destroy_process_group()\n"
)


def test_no_import_is_needed():
    assert python(USE).stdout.split() == ["3.0", "cais"]


def test_autoload_can_be_switched_off():
    code = "import torch, sys; print('torch_cais' in sys.modules)"
    assert python(code).stdout.strip() == "True"
    assert python(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0").stdout.strip() == "False"
    assert python("import torch_cais\n" + USE,
                  TORCH_DEVICE_BACKEND_AUTOLOAD="0").stdout.split() == ["3.0", "cais"]


def test_import_is_cheap():
    """No extension, no thread: ranks may still be forked after it."""
    code = ("import torch, sys, threading, os\n"
            "print('torch_cais._C' in sys.modules, len(os.listdir('/proc/self/task')))\n")
    loaded, threads = python(code).stdout.split()
    without = python(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0").stdout.split()[1]
    assert loaded == "False"
    assert threads == without


def test_entry_points():
    from importlib.metadata import entry_points

    for group in ("torch.backends", "torch.distributed.backends"):
        values = [e.value for e in entry_points(group=group) if "cais" in e.name]
        assert values == ["torch_cais_autoload:register"]


MISMATCH = (
    "import sys, types\n"
    "info = types.ModuleType('torch_cais._build_info')\n"
    "info.TORCH_VERSION, info.CAIS_VERSION = '2.1.0', '0'\n"
    "sys.modules['torch_cais._build_info'] = info\n"
)


def test_another_torch_is_refused_in_words():
    done = python(MISMATCH + "import torch_cais", check=False)
    message = done.stderr.strip().splitlines()[-1]
    assert message.startswith("ImportError")
    assert "2.1.0" in message and torch.__version__ in message and "pip install" in message


def test_another_torch_does_not_break_torch():
    done = python(MISMATCH + "import torch; print(torch.ones(2).sum().item())\n" + USE, check=False)
    assert done.stdout.strip() == "2.0"
    assert "built for torch 2.1.0" in done.stderr.strip().splitlines()[-1]


def test_same_release_of_another_flavour_fits(monkeypatch):
    release = torch.__version__.split("+")[0]
    monkeypatch.setattr(_version_check, "TORCH_VERSION", release + "+cu999")
    _version_check.check_torch_version()


def test_odd_settings_are_told():
    done = python("import warnings; warnings.simplefilter('always')\n" + USE,
                  CAIS_CHUNK_BYTE="65536")
    assert "CAIS_CHUNK_BYTES" in done.stderr
    done = python(USE, check=False, CAIS_CHUNK_BYTES="7")
    assert "CAIS_CHUNK_BYTES" in done.stderr and "DistBackendError" in done.stderr


def test_symbols_stay_apart():
    """libtorch exports a protobuf of its own: none of ours, nor gRPC, may be in one scope with it."""
    extension = next(pathlib.Path(torch_cais.__file__).parent.glob("_C*.so"))
    symbols = subprocess.run(["nm", "-D", "--defined-only", str(extension)], capture_output=True,
                             text=True, check=True).stdout
    exported = [line.split()[-1] for line in symbols.splitlines()]
    assert exported == ["PyInit__C"], exported
    needed = subprocess.run(["readelf", "-d", str(extension)], capture_output=True, text=True,
                            check=True).stdout
    assert "grpc" not in needed and "protobuf" not in needed
    assert "/" not in "".join(line for line in needed.splitlines() if "NEEDED" in line)
    wanted = subprocess.run(["nm", "-D", "--undefined-only", str(extension)], capture_output=True,
                            text=True, check=True).stdout
    assert "grpc" not in wanted and "protobuf" not in wanted


def test_build_finds_torch_where_pip_installs(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(ROOT / "torch_cais" / "build_backend"))
    cais_build = __import__("cais_build")
    found = cais_build._find_torch({})
    assert found == pathlib.Path(torch.__file__).parent
    monkeypatch.setattr(cais_build, "_package_folders", lambda: [str(tmp_path)])
    try:
        cais_build._find_torch({})
    except SystemExit as refusal:
        assert str(tmp_path) in str(refusal) and "Install torch" in str(refusal)
    else:
        raise AssertionError("a build without torch was not refused")


def test_no_thread_was_started_here():
    assert threading.active_count() == 1
