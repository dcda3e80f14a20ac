"""The arrows between rooms, as docs/architecture.md draws them, held against every #include.

    base <- wire, numeric <- nir <- core <- telemetry, io, rpc <- runtime <- apps, torch_cais
"""

import re
from pathlib import Path

# What each room may include besides itself. The cores meet only in wire and nir.
CORE_FLOOR = {"base", "wire", "numeric", "nir"}
CORES = {"core/switching", "core/agent", "core/control"}
ALLOWED = {
    "base": set(),
    "wire": {"base"},
    "numeric": {"base"},
    "nir": {"base", "wire", "numeric"},
    "core/switching": CORE_FLOOR,
    "core/agent": CORE_FLOOR,
    "core/control": CORE_FLOOR,
    "telemetry": CORE_FLOOR | CORES,
    "io": CORE_FLOOR | CORES | {"telemetry"},
    "rpc": CORE_FLOOR | CORES | {"telemetry", "io"},
}
ALLOWED["runtime"] = set(ALLOWED) | {"cais"}
ALLOWED["apps"] = set(ALLOWED) | {"cais"}
ALLOWED["torch_cais"] = set(ALLOWED) - {"apps", "rpc"}

# Libraries that only one room may see.
LIBRARIES = {
    "numeric": re.compile(r"hwy/"),
    "wire": re.compile(r"xxh(ash|3)\.h|xxh_"),
    "telemetry": re.compile(r"spdlog/"),
    "rpc": re.compile(r"grpc|google/protobuf/|.*\.pb\.h"),
    "torch_cais": re.compile(r"torch/|ATen/|c10/|pybind11/|Python\.h"),
}
SOURCES = {".cpp", ".hpp", ".h", ".cc", ".c"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)


def room_of(path):
    """The room of a path below src/, apps/ or torch_cais/ or of an included name; None: no room."""
    parts = Path(path).parts
    if parts and parts[0] == "src":
        parts = parts[1:]
    if len(parts) > 2 and parts[0] == "core":
        return "/".join(parts[:2])
    return parts[0] if len(parts) > 1 else None


def judge(source, quote, name, is_local):
    """What is wrong with one include, or None. `source` is relative to the repository."""
    room = room_of(source)
    for owner, library in LIBRARIES.items():
        if library.match(name) and room != owner:
            return f"only {owner} may include {name}"
    if is_local or quote == "<":
        return None
    target = room_of(name)
    if target == room or target in ALLOWED[room]:
        return None
    if any(library.match(name) for library in LIBRARIES.values()):
        return None
    if target not in ALLOWED and target != "cais":
        return f"{name} is in no known room"
    return f"{room} may not include {target} ({name})"


def violations(root):
    """One line for each include that goes against an arrow."""
    root = Path(root)
    found = []
    for top in ("src", "apps", "torch_cais"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix not in SOURCES:
                continue
            source = path.relative_to(root)
            room = room_of(source)
            if room not in ALLOWED:
                found.append(f"{source}: {room} is no known room")
                continue
            for quote, name in INCLUDE.findall(path.read_text(encoding="utf-8")):
                wrong = judge(source, quote, name, (path.parent / name).is_file())
                if wrong:
                    found.append(f"{source}: {wrong}")
    return found
