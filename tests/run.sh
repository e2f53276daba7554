#!/usr/bin/env bash
# Installs what the tests need, builds in Release and runs every test through CTest.
set -euo pipefail
cd "$(dirname "$0")/.."

bash harness/packages.sh test

echo "== format"
mapfile -t files < <(git ls-files '*.h' '*.cpp')
clang-format --dry-run --Werror "${files[@]}"

echo "== build"
cmake --preset release >/dev/null
cmake --build --preset release

echo "== tests"
ctest --preset release -j "$(nproc)"
