#!/usr/bin/env bash
# Installs what the tests need, builds with ASan+UBSan and in Release, and runs every test through CTest.
set -euo pipefail
cd "$(dirname "$0")/.."

bash harness/packages.sh test

echo "== format"
mapfile -t files < <(git ls-files '*.h' '*.cpp')
clang-format --dry-run --Werror "${files[@]}"

for preset in asan release; do
  echo "== $preset: build"
  cmake --preset "$preset" -DBUILD_TESTING=ON >/dev/null
  cmake --build --preset "$preset"
  echo "== $preset: tests"
  ctest --preset "$preset" -j "$(nproc)"
done
