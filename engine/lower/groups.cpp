// Passes for targets whose threads come in groups: reductions across a group, and the grid.
#include <algorithm>

#include <fmt/format.h>

#include "engine/ir/node_map.h"
#include "engine/ir/provenance.h"
#include "engine/lower/passes.h"
#include "engine/rewrite/rewriter.h"

namespace beamline {
namespace {

bool has_type(UOp r, AxisType t) { return r.axis_type() == t; }

struct GroupReduce {
  int64_t next_slot = 0, next_id = 0;

  // REDUCE(x, loops, groups): every thread reduces its part over the loops and leaves it in shared
  // memory; after a barrier every thread reduces those.
  UOp operator()(UOp u, const std::vector<UOp>& src) {
    std::vector<UOp> loops, groups;
    for (size_t i = 1; i < src.size(); i++)
      (has_type(src[i], AxisType::GROUP_REDUCE) ? groups : loops).push_back(src[i]);
    if (groups.empty()) return rebuild(u, src);
    const UOp partial = loops.empty() ? src[0] : reduce(u.reduce_op(), src[0], loops, 0);
    std::vector<UOp> threads, written_out;
    for (const Node* n : partial.ranges()) {
      const UOp r(n);
      if (has_type(r, AxisType::LOCAL) || has_type(r, AxisType::GROUP_REDUCE)) threads.push_back(r);
      if (has_type(r, AxisType::UPCAST)) written_out.push_back(r);
    }
    Substitution of_all;  // the group's ranges as loops of the second reduction
    std::vector<UOp> second;
    for (UOp g : groups) {
      second.push_back(range(g.src(0), next_id++, AxisType::REDUCE));
      of_all.emplace(g, second.back());
    }
    int64_t size = 1;
    UOp mine = iconst(0), theirs = iconst(0);
    for (const auto* list : {&threads, &written_out})
      for (UOp r : *list) {
        const int64_t n = r.vmax() + 1;
        const auto it = of_all.find(r);
        mine = mine * iconst(n) + r;
        theirs = theirs * iconst(n) + (it == of_all.end() ? r : it->second);
        size *= n;
      }
    ParamArg arg;
    arg.slot = next_slot++;
    arg.addrspace = AddrSpace::Local;
    const int64_t shape[] = {size};
    const UOp shared = buffer(arg, u.dtype(), shape);
    std::vector<UOp> end{
        make(Op::STORE, DType::Void, {make(Op::INDEX, u.dtype(), {shared, mine}), partial})};
    end.insert(end.end(), groups.begin(), groups.end());
    end.insert(end.end(), written_out.begin(), written_out.end());
    const UOp barrier = make(Op::BARRIER, DType::Void, {make(Op::END, DType::Void, end)});
    const UOp read =
        make(Op::LOAD, u.dtype(),
             {make(Op::INDEX, u.dtype(), {make(Op::AFTER, u.dtype(), {shared, barrier}), theirs})});
    return reduce(u.reduce_op(), read, second, 0);
  }
};

}  // namespace

UOp reduce_across_groups(UOp ast) {
  GroupReduce group_reduce;
  const std::vector<UOp> order = toposort(ast);
  for (UOp u : order) {
    if (u.op() == Op::RANGE)
      group_reduce.next_id = std::max(group_reduce.next_id, u.range_id() + 1);
    if (u.op() == Op::BUFFER)
      group_reduce.next_slot = std::max(group_reduce.next_slot, u.param().slot + 1);
  }
  NodeMap<UOp> done;
  for (UOp u : order) {
    const Provenance::Of from(u);
    std::vector<UOp> src;
    for (size_t i = 0; i < u.nsrc(); i++) src.push_back(done.at(u.src(i)));
    done.emplace(u, u.op() == Op::REDUCE ? group_reduce(u, src)
                    : src == u.srcs()    ? u
                                         : rebuild(u, src));
  }
  return done.at(ast);
}

UOp add_grid(UOp ast, Grid& grid) {
  grid = {};
  Substitution place;  // a range as a special
  std::vector<UOp> global, local;
  const std::vector<UOp> order = toposort(ast);
  const auto special = [](const std::string& name, UOp size) {
    return make(Op::SPECIAL, DType::WeakInt, {size}, 0, intern(name));
  };
  for (UOp u : order) {
    if (u.op() != Op::RANGE) continue;
    if (has_type(u, AxisType::THREAD)) {
      grid.threads = u.vmax() + 1;
      place.emplace(u, special("core_id", u.src(0)));
    }
    if (has_type(u, AxisType::GLOBAL)) global.push_back(u);
    if (has_type(u, AxisType::LOCAL) || has_type(u, AxisType::GROUP_REDUCE) ||
        has_type(u, AxisType::WARP))
      local.push_back(u);
  }
  // Innermost range first, as hardware numbers its dimensions, but the lanes of a warp before all;
  // beyond three the outer ones share the last.
  const auto number = [&](std::vector<UOp>& ranges, const char* prefix,
                          std::vector<int64_t>& sizes) {
    std::ranges::sort(ranges, {},
                      [](UOp r) { return std::pair(!has_type(r, AxisType::WARP), -r.range_id()); });
    const size_t alone = ranges.size() > 3 ? 2 : ranges.size();
    for (size_t i = 0; i < alone; i++) {
      place.emplace(ranges[i], special(fmt::format("{}{}", prefix, i), ranges[i].src(0)));
      sizes.push_back(ranges[i].vmax() + 1);
    }
    if (alone == ranges.size()) return;
    int64_t all = 1;
    for (size_t i = alone; i < ranges.size(); i++) all *= ranges[i].vmax() + 1;
    UOp rest = special(fmt::format("{}{}", prefix, alone), iconst(all));
    for (size_t i = alone; i < ranges.size(); i++) {
      const UOp n = iconst(ranges[i].vmax() + 1);
      place.emplace(ranges[i], i + 1 == ranges.size() ? rest : rest % n);
      rest = rest / n;
    }
    sizes.push_back(all);
  };
  number(global, "gidx", grid.global);
  number(local, "lidx", grid.local);

  NodeMap<UOp> done;
  for (UOp u : order) {
    if (const auto it = place.find(u); it != place.end()) {
      done.emplace(u, it->second);
      continue;
    }
    std::vector<UOp> src;
    for (size_t i = 0; i < u.nsrc(); i++)
      if (i == 0 || u.op() != Op::END || !place.contains(u.src(i)))
        src.push_back(done.at(u.src(i)));
    UOp v = u.op() == Op::END && src.size() == 1 ? src[0] : src == u.srcs() ? u : rebuild(u, src);
    // What does not depend on a dimension of the group is stored by its first thread only; but each
    // thread has registers of its own.
    if (u.op() == Op::STORE && memory_of(u.src(0)).addrspace() != AddrSpace::Reg) {
      UOp gate = v.nsrc() == 3 ? v.src(2) : UOp{};
      for (UOp r : local) {
        if (u.src(0).has_range(r)) continue;
        const UOp first = place.at(r) < iconst(1);
        gate = gate ? gate & first : first;
      }
      if (gate) v = make(Op::STORE, DType::Void, {v.src(0), v.src(1), gate});
    }
    done.emplace(u, v);
  }
  return done.at(ast);
}

}  // namespace beamline
