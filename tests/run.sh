#!/usr/bin/env bash
# Installs what the tests need, builds in Release and with ASan+UBSan, and runs every test through CTest.
set -euo pipefail
cd "$(dirname "$0")/.."

bash harness/packages.sh test

echo "== format"
mapfile -t files < <(git ls-files '*.h' '*.cpp')
clang-format --dry-run --Werror "${files[@]}"

echo "== ASan and UBSan"
cmake --preset asan >/dev/null
cmake --build --preset asan
ctest --preset asan -j "$(nproc)"

echo "== Release"
cmake --preset release >/dev/null
cmake --build --preset release
ctest --preset release -j "$(nproc)"
