#include "harness/bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <stdexcept>

namespace beamline {

BenchReport::BenchReport(const std::string& format, bool color, const std::string& file) {
  using benchmark::ConsoleReporter;
  if (format == "json")
    to_.push_back(std::make_unique<benchmark::JSONReporter>());
  else
    to_.push_back(std::make_unique<ConsoleReporter>(color ? ConsoleReporter::OO_ColorTabular
                                                          : ConsoleReporter::OO_Tabular));
  to_.back()->SetOutputStream(&std::cout);
  to_.back()->SetErrorStream(&std::cerr);
  if (file.empty()) return;
  errno = 0;
  file_.open(file, std::ios::binary | std::ios::trunc);
  if (!file_) throw std::runtime_error(fmt::format("{}: {}", file, std::strerror(errno)));
  to_.push_back(std::make_unique<benchmark::JSONReporter>());
  to_.back()->SetOutputStream(&file_);
  to_.back()->SetErrorStream(&std::cerr);
}

bool BenchReport::ReportContext(const Context& context) {
  if (!begun_)
    for (auto& r : to_)
      if (!r->ReportContext(context)) return false;
  begun_ = true;
  return true;
}

void BenchReport::ReportRuns(const std::vector<Run>& runs) {
  std::vector<Run> numbered = runs;
  for (Run& r : numbered) {
    families_ = std::max(families_, r.family_index + 1);
    r.family_index += family_offset_;
    failed_ += r.error_occurred;
  }
  for (auto& r : to_) r->ReportRuns(numbered);
}

void BenchReport::next() {
  family_offset_ += families_;
  families_ = 0;
}

bool BenchReport::end() {
  if (begun_)
    for (auto& r : to_) r->Finalize();
  std::cout.flush();
  if (!file_.is_open()) return true;
  file_.close();
  return !file_.fail();
}

}  // namespace beamline
