#!/usr/bin/env bash
# From a clone to a tuning table: installs packages, builds in Release, tunes workloads/quickstart.toml on
# the CPU. Safe to run again: the build is reused and stored results are served.
set -euo pipefail
cd "$(dirname "$0")/.."

bash harness/packages.sh
echo "build: Release, in build/release"
cmake --preset release -DBUILD_TESTING=OFF >/dev/null
cmake --build --preset release
echo "tune: workloads/quickstart.toml"
exec build/release/bin/beamline tune workloads/quickstart.toml "$@"
