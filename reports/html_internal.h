// What the parts of the page share. All texts given are plain, all results are HTML.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "reports/report.h"

namespace beamline::reports {

std::string mono(const std::string& text);
/// Opts of a kernel, "(none)" for none; lines may break after each.
std::string opts_html(const std::string& opts);
/// A list of names and values; the values are HTML already, empty ones are left out.
using Facts = std::vector<std::pair<std::string, std::string>>;
std::string facts(const Facts& list);
/// The kernel's status and state.
std::string badge(const KernelFacts& k);

/// Everything about one kernel, to be unfolded. `marks` and `code_bytes` limit its picture and each
/// of its code texts.
std::string kernel_section(const KernelFacts& k, size_t index, bool open, size_t marks,
                           size_t code_bytes);

}  // namespace beamline::reports
