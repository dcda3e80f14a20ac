"""What a pure library may ask of the world outside: memory, arithmetic, and the C++ language.

A symbol that is not on the list is an error, so that a new way to read a clock or to open a file
cannot slip in because nobody thought of forbidding it.
"""

import re
import subprocess

# The C library, as far as its answer depends on the arguments alone.
C_FUNCTIONS = """
    memchr memcmp memcpy memmove memset bcmp strlen strcmp strncmp strchr
    memcpy_chk memmove_chk memset_chk
    abs ceil ceilf copysign exp2 floor floorf fma fmaf fmax fmaxf fmin fminf fmod frexp ilogb ilogbf
    ldexp ldexpf log2 lrint lrintf lround nearbyint nearbyintf rint rintf round roundf scalbn
    scalbnf sqrt sqrtf trunc truncf
""".split()
# How a broken invariant ends the process (base/check.hpp).
LAST_WORDS = ["abort", "fprintf", "fwrite", "fprintf_chk", "stderr"]

ALLOWED = [re.compile(pattern) for pattern in (
    r"cais::",
    r"(vtable|typeinfo|VTT|typeinfo name|guard variable|construction vtable|non-virtual thunk)"
    r"( for| to|-in-\w+)? .*(std|cais|__cxxabiv1)::",
    r"operator (new|delete)(\[\])?\(",
    # Strings, containers and string streams; what of std reaches outside is forbidden below.
    r"([\w:<>, *&]+ )?std::",
    r"(__gnu_cxx|__cxxabiv1)::",
    r"__(cxa|gxx)_(?!atexit_thread|thread_atexit)\w+$",
    r"_Unwind_Resume$",
    r"_GLOBAL_OFFSET_TABLE_$",
    r"__dso_handle$",
    r"__stack_chk_fail$",
    r"__libc_single_threaded$",  # how std::shared_ptr counts, not what it says
    # Arithmetic that the processor lacks, and what it has (for the choice of kernels).
    r"__(popcount|clz|ctz|mul|div|udiv|mod|umod|float|fix|ext|trunc)\w+[23]$",
    r"__cpu_(model|features2|indicator_init)$",
    r"hwy::(SupportedTargets|GetChosenTarget|ChosenTarget|TargetName)",
    r"__(asan|ubsan|tsan|sanitizer|gcov)_\w+$",
    r"_?_?(" + "|".join(C_FUNCTIONS + LAST_WORDS) + r")$",
)]
FORBIDDEN = [re.compile(pattern) for pattern in (
    r"([\w:<>, *&]+ )?std::(__\w+::)?(chrono|filesystem|this_thread|thread|jthread|random_device|"
    r"condition_variable|mutex|future|__future_base|atomic_wait|__atomic_futex)",
    r"([\w:<>, *&]+ )?std::(__\w+::)?basic_(o|i)?(fstream|filebuf)",
    r"std::(cout|cerr|clog|cin|wcout|wcerr)$",
)]


def is_pure(symbol):
    if any(pattern.match(symbol) for pattern in FORBIDDEN):
        return False
    return any(pattern.match(symbol) for pattern in ALLOWED)


def undefined_symbols(archive, nm="nm"):
    """Demangled names that the archive's members leave to others."""
    listed = subprocess.run([nm, "-u", "-C", str(archive)], check=True, capture_output=True,
                            text=True).stdout
    names = set()
    for line in listed.splitlines():
        match = re.match(r"\s+[UwvV] (.+)$", line)
        if match:
            names.add(match[1].split("@")[0])
    return names


def impurities(archive, nm="nm"):
    return sorted(s for s in undefined_symbols(archive, nm) if not is_pure(s))
