#!/usr/bin/env bash
# Installs what the tests need, builds with ASan+UBSan and in Release, and runs every test through CTest. The
# keys that name kernels in databases are computed by a build of another compiler as well.
set -euo pipefail
cd "$(dirname "$0")/.."

bash harness/packages.sh test

echo "== format"
mapfile -t files < <(git ls-files '*.h' '*.cpp')
clang-format --dry-run --Werror "${files[@]}"

echo "== clang, unoptimised: keys of kernels are those of every other build"
cmake --preset clang -DBUILD_TESTING=ON >/dev/null
cmake --build --preset clang --target workloads_test
build/clang/bin/workloads_test --gtest_brief=1 --gtest_filter='Shipped.KernelKeys*:Shipped.Names*'

for preset in asan release; do
  echo "== $preset: build"
  cmake --preset "$preset" -DBUILD_TESTING=ON >/dev/null
  cmake --build --preset "$preset"
  echo "== $preset: tests"
  ctest --preset "$preset" -j "$(nproc)"
done
