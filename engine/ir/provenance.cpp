#include "engine/ir/provenance.h"

#include <algorithm>
#include <set>

namespace beamline {
namespace {

constexpr OpSet without = Op::CONST | Op::PARAM | Op::RANGE | Op::STACK | Op::BUFFER | Op::SPECIAL;

}  // namespace

uint32_t Provenance::id(const std::string& origin) {
  if (origin.empty()) return 0;
  const auto [it, fresh] = ids_.emplace(origin, static_cast<uint32_t>(names_.size()));
  if (fresh) names_.push_back(origin);
  return it->second;
}

std::vector<std::string> Provenance::by_node(UOp root) {
  std::vector<std::string> out;
  for (UOp u : toposort(root)) out.push_back(origin(u));
  return out;
}

void Provenance::restore(UOp root, std::span<const std::string> by_node) {
  const std::vector<UOp> nodes = toposort(root);
  for (size_t i = 0; i < std::min(nodes.size(), by_node.size()); i++)
    if (!by_node[i].empty()) of_.insert(nodes[i].node(), id(by_node[i]));
}

void Provenance::created(const Node* n) {
  if (without.has(n->op) || n->dtype == DType::WeakInt) return;  // indices belong to no line
  uint32_t from = now_;
  if (from == 0) {
    uint32_t newest = 0;
    for (size_t i = 0; i < n->nsrc; i++)
      if (const uint32_t o = origin_id(UOp(n->src[i])); o != 0 && n->src[i]->id >= newest)
        from = o, newest = n->src[i]->id;
  }
  if (from != 0) of_.insert(n, from);
}

std::vector<std::string> Provenance::origins(UOp root) {
  std::set<uint32_t> ids;
  for (UOp u : toposort(root))
    if (u.op() != Op::INDEX) ids.insert(origin_id(u));  // an address may be that of another's store
  std::vector<std::string> out;
  for (uint32_t i : ids)
    if (i != 0) out.push_back(names_[i]);
  return out;
}

}  // namespace beamline
