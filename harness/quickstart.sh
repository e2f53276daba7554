#!/usr/bin/env bash
# From a clone to a tuning table: installs packages, builds in Release, tunes workloads/quickstart.toml on
# the CPU and writes an HTML report. Safe to run again: the build is reused and stored results are served.
set -euo pipefail
cd "$(dirname "$0")/.."

bash harness/packages.sh
echo "build: Release, in build/release"
cmake --preset release -DBUILD_TESTING=OFF >/dev/null
cmake --build --preset release
echo "tune: workloads/quickstart.toml"
# The report is written whatever became of single kernels, and also when every result was stored before.
code=0
build/release/bin/beamline tune workloads/quickstart.toml "$@" || code=$?
case $code in 0 | 4) ;; *) exit "$code" ;; esac
report="$PWD/build/release/quickstart.html"
databases=()
while [ $# -gt 0 ]; do
  case $1 in
    --db) databases=(--db "$2") && shift ;;
    --db=*) databases=("$1") ;;
  esac
  shift
done
build/release/bin/beamline report html -o "$report" "${databases[@]}" >/dev/null
echo "report: $report"
exit "$code"
