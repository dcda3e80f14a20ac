"""The tree keeps the arrows; and the check sees an include that does not."""

import tempfile
import unittest
from pathlib import Path

import include_graph

ROOT = Path(__file__).resolve().parents[2]


class Tree(unittest.TestCase):
    def test_every_include_follows_an_arrow(self):
        self.assertEqual(include_graph.violations(ROOT), [])

    def test_every_room_was_looked_at(self):
        rooms = {include_graph.room_of(p.relative_to(ROOT)) for p in (ROOT / "src").rglob("*.hpp")}
        self.assertGreaterEqual(rooms, {"base", "wire", "numeric", "nir", "core/agent"})


class Check(unittest.TestCase):
    """Each planted include must be found, under its own name."""

    def planted(self, path, line):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / path
            file.parent.mkdir(parents=True)
            file.write_text(f"#pragma once\n{line}\n", encoding="utf-8")
            return include_graph.violations(folder)

    def test_arrows_run_one_way(self):
        for path, line, wrong in [
            ("src/base/a.hpp", '#include "wire/header.hpp"', "base may not include wire"),
            ("src/wire/a.cpp", '#include "numeric/reduce.hpp"', "wire may not include numeric"),
            ("src/nir/passes/a.cpp", '  #  include "runtime/a.hpp"', "nir may not include runtime"),
            ("src/core/agent/a.hpp", '#include "io/a.hpp"', "core/agent may not include io"),
            ("src/io/udp/a.hpp", '#include "runtime/a.hpp"', "io may not include runtime"),
            ("torch_cais/csrc/a.cpp", '#include "rpc/a.hpp"', "torch_cais may not include rpc"),
        ]:
            with self.subTest(path):
                self.assertIn(wrong, "\n".join(self.planted(path, line)))

    def test_the_cores_never_meet(self):
        for ours, theirs in [("agent", "switching"), ("switching", "agent")]:
            found = self.planted(f"src/core/{ours}/a.cpp", f'#include "core/{theirs}/a.hpp"')
            self.assertEqual(
                found,
                [f"src/core/{ours}/a.cpp: core/{ours} may not include core/{theirs} "
                 f"(core/{theirs}/a.hpp)"],
            )

    def test_libraries_stay_in_their_rooms(self):
        for path, name in [
            ("src/core/switching/a.cpp", "hwy/highway.h"),
            ("src/runtime/a.cpp", "grpcpp/grpcpp.h"),
            ("src/runtime/a.cpp", "cais/v1/switch.pb.h"),
            ("src/runtime/a.cpp", "torch/torch.h"),
            ("src/runtime/a.cpp", "c10/util/Exception.h"),
            ("src/nir/a.cpp", "xxhash.h"),
            ("src/io/a.cpp", "spdlog/spdlog.h"),
        ]:
            for line in (f"#include <{name}>", f'#include "{name}"'):
                with self.subTest(line):
                    self.assertIn(f"may include {name}", "\n".join(self.planted(path, line)))

    def test_allowed_includes_pass(self):
        for path, line in [
            ("src/numeric/a.cpp", "#include <hwy/highway.h>"),
            ("src/rpc/a.cpp", '#include "cais/v1/switch.pb.h"'),
            ("src/nir/a.cpp", '#include "wire/descriptor.hpp"'),
            ("torch_cais/csrc/a.cpp", "#include <torch/torch.h>"),
            ("apps/a/main.cpp", '#include "core/agent/agent.hpp"'),
            ("src/io/a.cpp", "#include <sys/socket.h>"),
        ]:
            with self.subTest(path):
                self.assertEqual(self.planted(path, line), [])

    def test_unknown_rooms_are_named(self):
        self.assertEqual(self.planted("src/magic/a.cpp", ""),
                         ["src/magic/a.cpp: magic is no known room"])
        self.assertEqual(self.planted("src/nir/a.cpp", '#include "magic/a.hpp"'),
                         ["src/nir/a.cpp: magic/a.hpp is in no known room"])


if __name__ == "__main__":
    unittest.main()
