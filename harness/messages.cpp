#include "harness/messages.h"

#include <cfloat>
#include <cmath>

namespace beamline {
namespace {

using nlohmann::json;

// JSON has no infinity: the largest double stands for what is not finite.
double finite(double v) { return std::isfinite(v) ? v : DBL_MAX; }

// One list of fields per message serves both directions: `Out` writes a header, `In` reads one.
struct Out {
  json& h;
  template <class T>
  void operator()(const char* name, const T& v) const {
    if constexpr (std::is_same_v<T, double>)
      h[name] = finite(v);
    else
      h[name] = v;
  }
};

struct In {
  const json& h;
  template <class T>
  void operator()(const char* name, T& v) const {
    const auto it = h.find(name);
    if (it != h.end()) it->get_to(v);
  }
};

// A part of the payload, by offset and size.
struct Slice {
  uint64_t offset = 0, size = 0;
};

Slice append(std::string& payload, const std::string& bytes) {
  const Slice s = {payload.size(), bytes.size()};
  payload += bytes;
  return s;
}

std::string cut(const std::string& payload, uint64_t offset, uint64_t size) {
  if (offset > payload.size() || size > payload.size() - offset) throw std::out_of_range("slice");
  return payload.substr(offset, size);
}

json data_json(const Data& d, std::string& payload) {
  if (!d.path.empty()) return {{"path", d.path}};
  const Slice s = append(payload, d.bytes);
  return {{"offset", s.offset}, {"size", s.size}};
}

Data data_from(const json& j, const std::string& payload) {
  Data d;
  if (j.contains("path"))
    d.path = j.at("path").get<std::string>();
  else
    d.bytes = cut(payload, j.at("offset").get<uint64_t>(), j.at("size").get<uint64_t>());
  return d;
}

// clang-format off
template <class F, class M> void fields_CompileRequest(F f, M& m) {
  f("ast", m.ast); f("opts", m.opts); f("target", m.target); f("reference", m.reference);
  f("want_source", m.want_source); f("want_assembly", m.want_assembly); f("fresh", m.fresh);
}
template <class F, class M> void fields_CompileIrRequest(F f, M& m) {
  f("ir", m.ir); f("entry", m.entry); f("target", m.target); f("want_assembly", m.want_assembly);
}
template <class F, class M> void fields_KernelArg(F f, M& m) {
  f("slot", m.slot); f("dtype", m.dtype); f("elements", m.elements); f("written", m.written);
}
template <class F, class M> void fields_LayoutCode(F f, M& m) {
  f("slot", m.slot); f("bytes", m.bytes); f("entry_offset", m.entry_offset);
}
template <class F, class M> void fields_CompileReply(F f, M& m) {
  f("status", m.status); f("error", m.error); f("entry", m.entry); f("entry_offset", m.entry_offset);
  f("code_hash", m.code_hash); f("source_hash", m.source_hash); f("toolchain", m.toolchain);
  f("opts", m.opts); f("flops", m.flops); f("bytes", m.bytes); f("threads", m.threads);
  f("lower_ms", m.lower_ms); f("compile_ms", m.compile_ms); f("source", m.source); f("assembly", m.assembly);
  f("cached", m.cached); f("cache_warning", m.cache_warning);
}
template <class F, class M> void fields_BufferSpec(F f, M& m) {
  f("dtype", m.dtype); f("elements", m.elements); f("role", m.role); f("expected_dtype", m.expected_dtype);
  f("rtol", m.rtol); f("zero_ok", m.zero_ok);
}
template <class F, class M> void fields_SetupRequest(F f, M& m) {
  f("pus", m.pus); f("huge_pages", m.huge_pages);
}
template <class F, class M> void fields_LoadRequest(F f, M& m) {
  f("id", m.id); f("entry_offset", m.entry_offset); f("threads", m.threads);
}
template <class F, class M> void fields_CheckRequest(F f, M& m) {
  f("id", m.id); f("mistrust_above", m.mistrust_above);
}
template <class F, class M> void fields_TimeRequest(F f, M& m) {
  f("ids", m.ids); f("sweeps", m.sweeps); f("mode", m.mode); f("min_batch_ns", m.min_batch_ns);
  f("kill_factor", m.kill_factor); f("limit_ns", m.limit_ns); f("kill_after", m.kill_after);
  f("floor_ns", m.floor_ns); f("seed", m.seed); f("unchecked", m.unchecked);
}
template <class F, class M> void fields_RunRequest(F f, M& m) { f("id", m.id); }
template <class F, class M> void fields_UnloadRequest(F f, M& m) { f("id", m.id); }
template <class F, class M> void fields_Reply(F f, M& m) {
  f("status", m.status); f("error", m.error); f("facts", m.facts);
}
template <class F, class M> void fields_CheckReply(F f, M& m) {
  f("status", m.status); f("error", m.error); f("max_err", m.max_err); f("slot", m.slot);
  f("first_bad", m.first_bad); f("bad", m.bad); f("got", m.got); f("want", m.want);
  f("all_zero", m.all_zero); f("output_hash", m.output_hash);
}
template <class F, class M> void fields_TimedContestant(F f, M& m) {
  f("id", m.id); f("status", m.status); f("error", m.error); f("ns", m.ns); f("positions", m.positions);
  f("calls_per_sample", m.calls_per_sample); f("killed", m.killed);
}
template <class F, class M> void fields_TimeReply(F f, M& m) {
  f("status", m.status); f("error", m.error); f("session", m.session);
}
template <class F, class M> void fields_RunReply(F f, M& m) { f("status", m.status); f("error", m.error); }
// clang-format on

// What does not fit the header's list: the payload and lists of structs.
template <class M>
void write_rest(const M&, Frame&) {}
template <class M>
void read_rest(M&, const Frame&) {}

// Behind the kernel's own, in the payload.
void write_code(const std::string& code, const std::vector<LayoutCode>& layouts, Frame& f) {
  f.payload = code;
  json& list = f.header["layouts"] = json::array();
  for (const LayoutCode& l : layouts) {
    json& j = list.emplace_back(json::object());
    fields_LayoutCode(Out{j}, l);
    j["code_bytes"] = append(f.payload, l.code).size;
  }
}
void read_code(std::string& code, std::vector<LayoutCode>& layouts, const Frame& f) {
  size_t end = f.payload.size();
  const json& list = f.header.at("layouts");
  for (auto j = list.rbegin(); j != list.rend(); ++j) {  // the last is at the end
    LayoutCode l;
    fields_LayoutCode(In{*j}, l);
    const auto bytes = j->at("code_bytes").get<uint64_t>();
    if (bytes > end) throw std::out_of_range("slice");
    end -= bytes;
    l.code = cut(f.payload, end, bytes);
    layouts.insert(layouts.begin(), std::move(l));
  }
  code = f.payload.substr(0, end);
}

void write_rest(const CompileReply& m, Frame& f) {
  json& args = f.header["args"] = json::array();
  for (const KernelArg& a : m.args) fields_KernelArg(Out{args.emplace_back(json::object())}, a);
  write_code(m.code, m.layouts, f);
}
void read_rest(CompileReply& m, const Frame& f) {
  for (const json& a : f.header.at("args")) fields_KernelArg(In{a}, m.args.emplace_back());
  read_code(m.code, m.layouts, f);
}

void write_rest(const SetupRequest& m, Frame& f) {
  json& buffers = f.header["buffers"] = json::array();
  for (const BufferSpec& b : m.buffers) {
    json& j = buffers.emplace_back(json::object());
    fields_BufferSpec(Out{j}, b);
    j["init"] = data_json(b.init, f.payload);
    j["expected"] = data_json(b.expected, f.payload);
  }
}
void read_rest(SetupRequest& m, const Frame& f) {
  for (const json& j : f.header.at("buffers")) {
    BufferSpec& b = m.buffers.emplace_back();
    fields_BufferSpec(In{j}, b);
    b.init = data_from(j.at("init"), f.payload);
    b.expected = data_from(j.at("expected"), f.payload);
  }
}

void write_rest(const LoadRequest& m, Frame& f) { write_code(m.code, m.layouts, f); }
void read_rest(LoadRequest& m, const Frame& f) { read_code(m.code, m.layouts, f); }

void write_rest(const TimeReply& m, Frame& f) {
  json& list = f.header["contestants"] = json::array();
  for (const TimedContestant& c : m.contestants) {
    fields_TimedContestant(Out{list.emplace_back(json::object())}, c);
  }
}
void read_rest(TimeReply& m, const Frame& f) {
  for (const json& c : f.header.at("contestants"))
    fields_TimedContestant(In{c}, m.contestants.emplace_back());
}

void write_rest(const RunReply& m, Frame& f) {
  json& sizes = f.header["sizes"] = json::array();
  for (const std::string& o : m.outputs) sizes.push_back(append(f.payload, o).size);
}
void read_rest(RunReply& m, const Frame& f) {
  uint64_t offset = 0;
  for (const json& j : f.header.at("sizes")) {
    const uint64_t size = j.get<uint64_t>();
    m.outputs.push_back(cut(f.payload, offset, size));
    offset += size;
  }
}

// A helper's own failure, told in terms of the reply that was waited for. Requests have no status.
template <class M>
std::optional<M> read_error(const Frame& frame) {
  if constexpr (requires(M m) {
                  m.status;
                  m.error;
                }) {
    M m;
    m.status = std::is_same_v<M, CompileReply> ? "compile_error" : "launch_error";
    m.error = frame.header.value("error", "");
    return m;
  }
  return std::nullopt;
}

}  // namespace

#define MESSAGE(Type, kind_text)                                   \
  Frame to_frame(const Type& m) {                                  \
    Frame f;                                                       \
    f.header["kind"] = kind_text;                                  \
    fields_##Type(Out{f.header}, m);                               \
    write_rest(m, f);                                              \
    return f;                                                      \
  }                                                                \
  template <>                                                      \
  std::optional<Type> read_message<Type>(const Frame& frame) try { \
    if (frame.kind() == "error") return read_error<Type>(frame);   \
    if (frame.kind() != kind_text) return std::nullopt;            \
    Type m;                                                        \
    fields_##Type(In{frame.header}, m);                            \
    read_rest(m, frame);                                           \
    return m;                                                      \
  } catch (const json::exception&) {                               \
    return std::nullopt;                                           \
  } catch (const std::out_of_range&) {                             \
    return std::nullopt;                                           \
  }

MESSAGE(CompileRequest, "compile")
MESSAGE(CompileIrRequest, "compile_ir")
MESSAGE(CompileReply, "compiled")
MESSAGE(SetupRequest, "setup")
MESSAGE(LoadRequest, "load")
MESSAGE(CheckRequest, "check")
MESSAGE(TimeRequest, "time")
MESSAGE(RunRequest, "run")
MESSAGE(UnloadRequest, "unload")
MESSAGE(Reply, "done")
MESSAGE(CheckReply, "checked")
MESSAGE(TimeReply, "timed")
MESSAGE(RunReply, "ran")

}  // namespace beamline
