// One body of a kernel as LLVM IR: instructions, node by node, as text. Private to the renderer;
// llvm.cpp makes the module around it. Throws llvm_words::Unsupported. Values are named by the
// order of their instructions, so equal lists give equal text.
#pragma once
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include "engine/ir/tensor_core.h"
#include "engine/ir/uop.h"
#include "engine/lower/lower.h"
#include "engine/render/llvm_words.h"
#include "engine/render/origin_comments.h"

namespace beamline {

class LlvmBody {
 public:
  static constexpr int64_t stream_align = 64;

  /// `streaming`: stores of whole aligned vectors go past the caches. `scales`: the processor
  /// scales vectors by powers of two. The kernel must outlive the body.
  LlvmBody(const LinearKernel& kernel, bool streaming, bool scales)
      : kernel_(kernel), streaming_(streaming), scales_(scales) {}

  /// Appends what the node is.
  void emit(UOp u);
  /// With its origin, where that changes.
  void add(UOp u) {
    const size_t before = body_.size();
    emit(u);
    origins_.note(u, body_, before, "  ", "; ");
  }
  /// What was added, as an internal function.
  std::string function(std::string_view name, const std::string& params) const;
  /// Of the intrinsics that it calls.
  std::set<std::string>& declared() { return declared_; }
  /// Some store to a buffer does not go past the caches.
  bool ordinary_stores() const { return ordinary_stores_; }

 private:
  // llvm_memory.cpp
  int64_t divisor(UOp u) const;
  void note_divisor(UOp u);
  bool streams(UOp at, int64_t w, DType t) const;
  static std::string pointer(UOp buffer);
  std::string element(UOp buffer, UOp index);
  std::string lane_index(UOp index, int64_t lane, const std::string& gate, int64_t gates);
  std::string to_value(const std::string& v, DType t, int64_t w);
  std::string load(UOp u);
  void store(UOp u);
  void prefetch(UOp at, bool written);
  // llvm_product.cpp
  std::string product_by_lane(UOp u);
  std::string resized(const std::string& v, std::string_view scalar, int64_t from, int64_t to);
  std::string one_group(UOp u, DType t, const std::string& group);
  std::string factor(UOp u, DType t, const MatrixShape& shape, int64_t lanes, int64_t width);
  // llvm_scale.cpp
  std::string scaled(UOp u);
  // llvm_body.cpp
  std::string value(UOp u, int64_t w);
  std::string splat(const std::string& v, std::string_view scalar, int64_t w);
  std::string convert(UOp u);
  std::string alu_value(UOp u);
  std::string across(UOp u);
  bool shuffled(UOp u);

  // INDEX(vector, constant): a lane of a value.
  static bool is_lane(UOp u) {
    return u.op() == Op::INDEX && u.src(0).addrspace() == AddrSpace::None;
  }
  template <class... A>
  std::string line(fmt::format_string<A...> f, A&&... a) {
    std::string name = fmt::format("%v{}", next_++);
    body_.append("  ").append(name).append(" = ");
    fmt::format_to(std::back_inserter(body_), f, std::forward<A>(a)...);
    body_ += '\n';
    return name;
  }
  void declare(std::string_view result, std::string_view name, std::string_view args) {
    declared_.insert(fmt::format("declare {} @{}({})\n", result, name, args));
  }

  const LinearKernel& kernel_;
  const bool streaming_, scales_;
  bool ordinary_stores_ = false;
  std::unordered_map<UOp, int64_t, UOpHash> divisors_;  // of index math
  OriginComments origins_;
  std::string body_, allocas_, block_ = "entry";
  std::set<std::string> declared_;
  std::unordered_map<UOp, std::string, UOpHash> names_;
  std::unordered_map<UOp, std::string, UOpHash> splats_;  // of scalars, in their last width
  std::unordered_map<UOp, int64_t, UOpHash> splat_width_;
  std::unordered_map<UOp, size_t, UOpHash> loop_id_;
  size_t next_ = 0;
};

}  // namespace beamline
