"""The core is pure; and the check sees a library that is not.

    purity_test.py NM CXX ARCHIVE...
"""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import purity

NM, CXX, *ARCHIVES = sys.argv[1:]

# What each line of C++ asks of the outside world.
IMPURE = {
    "clock_gettime": "#include <time.h>\nvoid f() { timespec t; clock_gettime(CLOCK_REALTIME, &t); }",
    "gettimeofday": "#include <sys/time.h>\nvoid f() { timeval t; gettimeofday(&t, nullptr); }",
    "time": "#include <time.h>\nlong f() { return time(nullptr); }",
    "system_clock::now": "#include <chrono>\nauto f() { return std::chrono::system_clock::now(); }",
    "steady_clock::now": "#include <chrono>\nauto f() { return std::chrono::steady_clock::now(); }",
    "socket": "#include <sys/socket.h>\nint f() { return socket(AF_INET, SOCK_DGRAM, 0); }",
    "sendto": "#include <sys/socket.h>\nlong f() { return sendto(0, 0, 0, 0, 0, 0); }",
    "recvmmsg": "#include <sys/socket.h>\nint f() { return recvmmsg(0, 0, 0, 0, 0); }",
    "pthread_create": "#include <pthread.h>\nint f() { return pthread_create(0, 0, 0, 0); }",
    "std::thread": "#include <thread>\nvoid f() { std::thread([] {}).join(); }",
    "pthread_mutex_lock": "#include <mutex>\nvoid f(std::mutex& m) { m.lock(); }",
    "getenv": "#include <stdlib.h>\nchar* f() { return getenv(\"HOME\"); }",
    "open": "#include <fcntl.h>\nint f() { return open(\"/\", 0); }",
    "fopen": "#include <stdio.h>\nvoid* f() { return fopen(\"a\", \"r\"); }",
    "ifstream": "#include <fstream>\nvoid f() { std::ifstream file(\"a\"); }",
    "cout": "#include <iostream>\nvoid f() { std::cout << 1; }",
    "rand": "#include <stdlib.h>\nint f() { return rand(); }",
    "random_device": "#include <random>\nunsigned f() { return std::random_device()(); }",
    "getrandom": "#include <sys/random.h>\nlong f(char* p) { return getrandom(p, 1, 0); }",
    "mmap": "#include <sys/mman.h>\nvoid* f() { return mmap(0, 1, 0, 0, 0, 0); }",
    "syscall": "#include <unistd.h>\nlong f() { return syscall(1); }",
}


class Libraries(unittest.TestCase):
    def test_ask_for_nothing_but_memory_and_arithmetic(self):
        self.assertTrue(ARCHIVES)
        for archive in ARCHIVES:
            with self.subTest(Path(archive).name):
                self.assertEqual(
                    purity.impurities(archive, NM), [],
                    "is not pure. If such a symbol depends on its arguments alone, purity.py's "
                    "list may name it; otherwise what needs it belongs in io or runtime")

    def test_were_read(self):
        for archive in ARCHIVES:
            with self.subTest(Path(archive).name):
                self.assertTrue(purity.undefined_symbols(archive, NM))


class Check(unittest.TestCase):
    def test_finds_what_is_planted(self):
        with tempfile.TemporaryDirectory() as folder:
            source, archive = Path(folder) / "a.cpp", Path(folder) / "a.o"
            for symbol, text in IMPURE.items():
                with self.subTest(symbol):
                    source.write_text(text + "\n", encoding="utf-8")
                    subprocess.run([CXX, "-std=c++20", "-O1", "-c", source, "-o", archive],
                                   check=True)
                    self.assertIn(symbol, "\n".join(purity.impurities(archive, NM)))

    def test_lets_arithmetic_and_containers_pass(self):
        text = """
            #include <cmath>
            #include <map>
            #include <sstream>
            #include <stdexcept>
            std::string f(double x) {
              std::map<int, double> m{{1, std::fma(x, x, 1)}};
              std::ostringstream out;
              out << m.at(1);
              return out.str();
            }
        """
        with tempfile.TemporaryDirectory() as folder:
            source, archive = Path(folder) / "a.cpp", Path(folder) / "a.o"
            source.write_text(text, encoding="utf-8")
            subprocess.run([CXX, "-std=c++20", "-O1", "-c", source, "-o", archive], check=True)
            self.assertEqual(purity.impurities(archive, NM), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
