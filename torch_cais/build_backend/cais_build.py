"""The PEP 517 build backend: scikit-build-core, told where the torch to build for lies.

A C++ extension fits one torch only, so it is built for the one in the environment that pip installs
into. Under build isolation that torch cannot be imported (pip hides the environment's packages from
the build), but it can be found: pip runs the build with the environment's own interpreter, and
`sysconfig` still names its package folders.
"""
import os
import pathlib
import shutil
import site
import sys
import sysconfig

import scikit_build_core.build as backend
from scikit_build_core.build import *  # noqa: F401,F403: the hooks that need no torch

SETTING = "torch-dir"


def _package_folders():
    """Where the interpreter that pip installs for may keep packages, most likely first."""
    folders = [sysconfig.get_path(name) for name in ("platlib", "purelib")]
    folders += site.getsitepackages()
    environment = os.environ.get("VIRTUAL_ENV")
    if environment:  # builders that make an interpreter of their own for the build
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        folders.append(os.path.join(environment, "lib", version, "site-packages"))
    if site.ENABLE_USER_SITE:
        folders.append(site.getusersitepackages())
    return list(dict.fromkeys(folders))


def _find_torch(settings):
    if SETTING in settings:
        candidates = [pathlib.Path(settings[SETTING])]
    else:
        candidates = [pathlib.Path(folder) / "torch" for folder in _package_folders()]
    for candidate in candidates:
        if (candidate / "version.py").exists() and (candidate / "include").is_dir():
            return candidate
    looked = "\n".join(f"  {candidate}" for candidate in candidates)
    raise SystemExit(
        "torch_cais is built for the PyTorch that it will run with, and there is none in this "
        f"environment. Looked at:\n{looked}\n"
        "Install torch (2.5 or newer) first, with the same pip; or name its folder with "
        f"`pip install -C {SETTING}=/path/to/site-packages/torch .`"
    )


def _with_torch(settings):
    settings = dict(settings or {})
    torch = _find_torch(settings)
    settings.pop(SETTING, None)
    settings["cmake.define.CAIS_TORCH_DIR"] = str(torch)
    return settings


def get_requires_for_build_wheel(config_settings=None):
    """The programs of the build, where the machine has none of its own."""
    return [name for name in ("cmake", "ninja") if not shutil.which(name)]


get_requires_for_build_editable = get_requires_for_build_wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return backend.build_wheel(wheel_directory, _with_torch(config_settings), metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return backend.build_editable(wheel_directory, _with_torch(config_settings), metadata_directory)


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    return backend.prepare_metadata_for_build_wheel(metadata_directory, _without_torch(config_settings))


def prepare_metadata_for_build_editable(metadata_directory, config_settings=None):
    return backend.prepare_metadata_for_build_editable(
        metadata_directory, _without_torch(config_settings)
    )


def _without_torch(settings):
    return {name: value for name, value in (settings or {}).items() if name != SETTING}
