// 16: neighbouring elements that are loaded or stored one by one become one access of a vector
// (engine.md 5.5). For targets that have no lanes of their own to spread a loop over.
#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

#include "engine/ir/node_map.h"
#include "engine/lower/passes.h"
#include "engine/rewrite/rewriter.h"
#include "engine/rules/linear.h"

namespace beamline {
namespace {

bool has_vector_accesses(DType t) {
  return t == DType::F32 || t == DType::I32 || t == DType::U32 || t == DType::F16 ||
         t == DType::Fp8e4m3 || t == DType::Fp8e5m2;
}

// Accesses of one buffer under one gate whose places differ by constants.
struct Group {
  UOp memory, base;
  std::array<UOp, 2> more;    // gate and alternative, or null
  int64_t steps = 0;          // the base moves by multiples of it; 0: not at all
  std::map<int64_t, UOp> at;  // by the constant
};

class Groups {
 public:
  void add(UOp access) {
    const UOp index = access.src(0);
    if (index.op() != Op::INDEX || !index.shape().empty() || access.nsrc() == 0) return;
    const AddrSpace space = index.src(0).addrspace();
    if (space != AddrSpace::Global && space != AddrSpace::Local) return;
    if (!has_vector_accesses(index.dtype())) return;
    auto sum = linear(index.src(1));
    if (!sum) return;
    const int64_t constant = sum->constant;
    sum->constant = 0;
    const UOp base = build(*sum, index.src(1).dtype());
    const bool load = access.op() == Op::LOAD, gated = access.nsrc() == 3;
    const std::array<UOp, 2> more{gated ? access.src(2) : UOp{},
                                  gated && load ? access.src(1) : UOp{}};
    for (const size_t i : by_base_[base]) {
      Group& g = all_[i];
      if (g.memory == index.src(0) && g.more == more) {
        g.at.emplace(constant, access);
        return;
      }
    }
    Group g{index.src(0), base, more, 0, {{constant, access}}};
    for (const Term& t : sum->terms) g.steps = gcd(g.steps, t.coef);
    by_base_[base].push_back(all_.size());
    all_.push_back(std::move(g));
  }

  // Calls f(group, first constant, accesses) for every run of four or two whose place divides.
  template <class F>
  void each_run(F f) const {
    for (const Group& g : all_)
      for (auto it = g.at.begin(); it != g.at.end();) {
        size_t width = 4;
        std::vector<UOp> run;
        for (; width > 1; width /= 2) {
          const auto w = static_cast<int64_t>(width);
          run.clear();
          for (auto k = it; k != g.at.end() && run.size() < width; ++k) {
            if (k->first != it->first + static_cast<int64_t>(run.size())) break;
            run.push_back(k->second);
          }
          if (run.size() == width && it->first % w == 0 && g.steps % w == 0) break;
        }
        if (width > 1) f(g, it->first, run);
        std::advance(it, width);
      }
  }

 private:
  std::vector<Group> all_;
  std::unordered_map<UOp, std::vector<size_t>, UOpHash> by_base_;
};

UOp vector_place(const Group& g, int64_t first, size_t width, DType t) {
  const UOp base[] = {first == 0 ? g.base : g.base + iconst(first, g.base.dtype())};
  const int64_t n[] = {static_cast<int64_t>(width)};
  return make(Op::SHRINK, t, {g.memory, stack(base), dims(n)});
}

UOp coalesce_loads(UOp ast) {
  Groups groups;
  for (UOp u : toposort(ast))
    if (u.op() == Op::LOAD) groups.add(u);
  Substitution lanes;
  groups.each_run([&](const Group& g, int64_t first, const std::vector<UOp>& run) {
    const UOp place = vector_place(g, first, run.size(), run[0].dtype());
    const UOp all = g.more[0] ? make(Op::LOAD, run[0].dtype(), {place, g.more[1], g.more[0]})
                              : make(Op::LOAD, run[0].dtype(), {place});
    for (size_t i = 0; i < run.size(); i++)
      lanes.emplace(run[i], make(Op::INDEX, all.dtype(), {all, iconst(static_cast<int64_t>(i))}));
  });
  return lanes.empty() ? ast : substitute(ast, lanes);
}

// Stores are written out side by side in a GROUP.
UOp coalesce_stores(UOp ast) {
  NodeMap<UOp> done;
  for (UOp u : toposort(ast)) {
    std::vector<UOp> src;
    for (size_t i = 0; i < u.nsrc(); i++) src.push_back(done.at(u.src(i)));
    if (u.op() == Op::GROUP) {
      Groups groups;
      for (UOp s : src)
        if (s.op() == Op::STORE && s.src(1).shape().empty()) groups.add(s);
      groups.each_run([&](const Group& g, int64_t first, const std::vector<UOp>& run) {
        std::vector<UOp> values;
        for (UOp s : run) values.push_back(s.src(1));
        std::vector<UOp> all{vector_place(g, first, run.size(), run[0].src(0).dtype()),
                             stack(values)};
        if (g.more[0]) all.push_back(g.more[0]);
        *std::ranges::find(src, run[0]) = make(Op::STORE, DType::Void, all);
        for (size_t i = 1; i < run.size(); i++) std::erase(src, run[i]);
      });
      if (src.size() == 1) {
        done.emplace(u, src[0]);
        continue;
      }
    }
    done.emplace(u, src == u.srcs() ? u : rebuild(u, src));
  }
  return done.at(ast);
}

}  // namespace

UOp coalesce_accesses(UOp ast) { return coalesce_stores(coalesce_loads(ast)); }

}  // namespace beamline
