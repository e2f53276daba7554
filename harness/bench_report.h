// One Google Benchmark document out of several runs of its library: kernel after kernel, each with
// its variants interleaved. Google Benchmark lives in bench.cpp and bench_report.cpp.
#pragma once
#include <benchmark/benchmark.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace beamline {

/// Passes on to the reporters of stdout and of --benchmark_out; the context once, the end once.
class BenchReport final : public benchmark::BenchmarkReporter {
 public:
  /// `format`: console or json. `file`: "" = none, always JSON. Throws std::runtime_error when the
  /// file cannot be written.
  BenchReport(const std::string& format, bool color, const std::string& file);
  bool ReportContext(const Context& context) override;
  void ReportRuns(const std::vector<Run>& runs) override;
  /// Does nothing: more runs may follow.
  void Finalize() override {}
  /// Closes the documents; false when the file could not be written whole.
  bool end();
  /// Before each run of the library but the first: families are numbered on.
  void next();
  /// Benchmarks that ended with an error so far.
  int failed() const { return failed_; }

 private:
  std::vector<std::unique_ptr<benchmark::BenchmarkReporter>> to_;
  std::ofstream file_;
  bool begun_ = false;
  int64_t family_offset_ = 0, families_ = 0;
  int failed_ = 0;
};

}  // namespace beamline
