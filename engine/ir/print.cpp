#include "engine/ir/print.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "engine/base/check.h"
#include "engine/base/sha256.h"
#include "engine/ir/node_map.h"

namespace beamline {
namespace {

std::string float_text(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  return fmt::format("{:a}", v);
}
std::string quoted(std::string_view s) {
  std::string out = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    out += c;
  }
  return out + "\"";
}

// Arguments as "key=value" in a fixed order; defaults are left out. Names are not part of a key.
std::string arg_text(UOp u, bool for_key) {
  std::vector<std::string> a;
  switch (u.op()) {
    case Op::CONST:
      if (u.dtype() == DType::Invalid) break;
      if (!is_float(u.dtype()))
        a.push_back(fmt::format("value={}", u.ival()));
      else if (for_key)
        a.push_back(fmt::format("value={:016x}", static_cast<uint64_t>(u.node()->val)));
      else
        a.push_back("value=" + float_text(u.fval()));
      break;
    case Op::RANGE:
      a.push_back(fmt::format("id={}", u.range_id()));
      a.push_back(fmt::format("type={}", axis_type_name(u.axis_type())));
      break;
    case Op::REDUCE:
      a.push_back(fmt::format("op={}", op_name(u.reduce_op())));
      if (u.reduce_dims()) a.push_back(fmt::format("n={}", u.reduce_dims()));
      break;
    case Op::ALLREDUCE: a.push_back(fmt::format("op={}", op_name(u.reduce_op()))); break;
    case Op::GETTUPLE:
    case Op::MSELECT: a.push_back(fmt::format("index={}", u.node()->val)); break;
    default: break;
  }
  if (!u.node()->ext) return fmt::format("{}", fmt::join(a, ","));
  const Extra& e = *u.node()->ext;
  if (const auto* p = std::get_if<ParamArg>(&e)) {
    a.push_back(fmt::format("slot={}", p->slot));
    if (p->vmin != 0 || p->vmax != 0) a.push_back(fmt::format("vmin={},vmax={}", p->vmin, p->vmax));
    if (p->multiple_of != 1) a.push_back(fmt::format("multiple_of={}", p->multiple_of));
    if (!p->name.empty() && !for_key) a.push_back("name=" + quoted(p->name));
    if (p->addrspace != AddrSpace::Global)
      a.push_back(fmt::format("addrspace={}", addrspace_name(p->addrspace)));
    if (p->constant) a.push_back("const=1");
  } else if (const auto* ints = std::get_if<Ints>(&e)) {
    a.push_back(fmt::format("axes=({})", fmt::join(*ints, ",")));
  } else if (const auto* text = std::get_if<std::string>(&e)) {
    a.push_back("name=" + quoted(*text));
  } else if (const auto* info = std::get_if<KernelInfo>(&e); !for_key && !info->name.empty()) {
    a.push_back("name=" + quoted(info->name));
  }
  return fmt::format("{}", fmt::join(a, ","));
}

std::string lines(std::span<const UOp> list, bool for_key) {
  NodeMap<size_t> number;
  std::string out;
  for (UOp u : list) {
    fmt::format_to(std::back_inserter(out), "%{}={}:{}(", number.size(), op_name(u.op()),
                   dtype_name(u.dtype()));
    for (size_t i = 0; i < u.nsrc(); i++)
      fmt::format_to(std::back_inserter(out), "{}%{}", i ? "," : "", *number.find(u.src(i).node()));
    out += ")";
    if (const std::string a = arg_text(u, for_key); !a.empty()) out += "[" + a + "]";
    out += "\n";
    number.insert(u.node(), number.size());
  }
  return out;
}

}  // namespace

std::string print_argument(UOp u) { return arg_text(u, false); }
std::string print_uops(UOp root) { return "uop 1\n" + lines(toposort(root), false); }
std::string print_linear(std::span<const UOp> list) { return "uop 1\n" + lines(list, false); }
std::string kernel_key(UOp prepared) {
  return sha256_hex("uop-key 1\n" + lines(toposort(prepared), true));
}
std::string tensor_graph_hash(UOp sink) {
  return sha256_hex("tensor-graph 1\n" + lines(toposort(sink), true));
}

std::string extra_text(const Extra& e) {
  if (const auto* ints = std::get_if<Ints>(&e))
    return fmt::format("ints {}", fmt::join(*ints, ","));
  if (const auto* text = std::get_if<std::string>(&e)) return "text " + *text;
  if (const auto* info = std::get_if<KernelInfo>(&e)) return "kernel " + info->name;
  const auto& p = std::get<ParamArg>(e);
  return fmt::format("param {:+021d} {} {} {} {} {} {}", p.slot, p.vmin, p.vmax, p.multiple_of,
                     addrspace_name(p.addrspace), p.constant, p.name);
}

}  // namespace beamline
