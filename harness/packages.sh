#!/usr/bin/env bash
# Installs the Debian 12 packages that beamline is built and tested with; only what is missing.
# Needs root or sudo. Usage: harness/packages.sh [test]   ("test" adds what only the tests need)
set -euo pipefail

packages=(
  ca-certificates g++ cmake ninja-build ccache pkg-config
  libboost1.81-dev libboost-program-options1.81-dev
  llvm-19-dev libzstd-dev zlib1g-dev
  libhwloc-dev libsqlite3-dev libssl-dev
  libfmt-dev libspdlog-dev nlohmann-json3-dev libtomlplusplus-dev libbenchmark-dev
  libonnx-dev libprotobuf-dev
)
if [ "${1:-}" = test ]; then
  packages+=(
    libgtest-dev libgmock-dev clang-format clang-19
    libopenblas-dev libdnnl-dev
    libz3-dev
    pocl-opencl-icd ocl-icd-opencl-dev
    chromium
  )
fi

missing=()
for p in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q "ok installed" || missing+=("$p")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "packages: all present"
  exit 0
fi
echo "packages: installing ${missing[*]}"
sudo=""
[ "$(id -u)" -eq 0 ] || sudo=sudo
$sudo apt-get update -qq
$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
