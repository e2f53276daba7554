// The page is one text: style, markup, the trace as JSON, and the script that shows it.
#include "harness/commands/ir_trace_page.h"

#include <nlohmann/json.hpp>

namespace beamline::cli {
namespace {

using nlohmann::ordered_json;

constexpr const char* head = R"html(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>beamline trace</title>
<style>
:root { color-scheme: light dark; --back: #fff; --fore: #1b1f24; --dim: #667; --line: #d5d9e0; --panel: #f5f6f8;
  --mark: #0b6bcb; --new: #1a7f37; --value: #e8ecf4; --memory: #cfe3ff; --loop: #ffe2b8; --choice: #e7d6ff;
  --reduce: #ffd0d0; --edge: #9aa3b0; }
@media (prefers-color-scheme: dark) { :root { --back: #14171b; --fore: #e6e9ee; --dim: #98a1ad; --line: #323842;
  --panel: #1c2026; --mark: #6cb2ff; --new: #56d364; --value: #2b313a; --memory: #1d3b63; --loop: #5a3d12;
  --choice: #43306a; --reduce: #63292b; --edge: #5d6673; } }
* { box-sizing: border-box; }
body { margin: 0; height: 100vh; display: grid; grid-template: auto 1fr auto / 21rem 1fr; background: var(--back);
  color: var(--fore); font: 14px/1.4 system-ui, sans-serif; }
header { grid-column: 1 / 3; padding: .5rem .8rem; border-bottom: 1px solid var(--line); display: flex; gap: 1rem;
  align-items: baseline; flex-wrap: wrap; }
h1 { font-size: 1rem; margin: 0; }
code, pre, li, output { font-family: ui-monospace, monospace; font-size: 12px; }
header code { color: var(--dim); overflow-wrap: anywhere; }
nav { display: flex; flex-direction: column; min-height: 0; border-right: 1px solid var(--line);
  background: var(--panel); }
nav ol { list-style: none; margin: 0; padding: .3rem; overflow: auto; }
#passes { flex: none; max-height: 45%; border-bottom: 1px solid var(--line); }
#rewrites { flex: 1; }
li { padding: .15rem .4rem; border-radius: 4px; cursor: pointer; white-space: nowrap; overflow: hidden;
  text-overflow: ellipsis; }
li:hover { background: var(--line); }
li[aria-current=true] { background: var(--mark); color: var(--back); }
li small { color: inherit; opacity: .75; }
nav input { margin: .4rem; padding: .3rem; font: inherit; color: inherit; background: var(--back);
  border: 1px solid var(--line); border-radius: 4px; }
main { position: relative; min-width: 0; min-height: 0; }
svg { width: 100%; height: 100%; display: block; cursor: grab; }
svg .edge { fill: none; stroke: var(--edge); stroke-width: 1; }
svg rect { stroke: var(--line); rx: 4; fill: var(--value); }
svg .memory rect { fill: var(--memory); } svg .loop rect { fill: var(--loop); }
svg .choice rect { fill: var(--choice); } svg .reduce rect { fill: var(--reduce); }
svg .new rect { stroke: var(--new); stroke-width: 3; } svg .root rect { stroke-width: 3; stroke: var(--fore); }
svg .picked rect { stroke: var(--mark); stroke-width: 3; }
svg text { font: 12px ui-monospace, monospace; fill: var(--fore); text-anchor: middle; pointer-events: none; }
svg g.node { cursor: pointer; }
aside { position: absolute; right: .6rem; top: .6rem; width: min(30rem, 48%); max-height: 70%; overflow: auto;
  background: var(--panel); border: 1px solid var(--line); border-radius: 6px; padding: .5rem .7rem; }
aside h2 { font-size: .9rem; margin: .2rem 0; } aside pre { margin: .2rem 0 .5rem; white-space: pre-wrap;
  overflow-wrap: anywhere; }
footer { grid-column: 1 / 3; border-top: 1px solid var(--line); padding: .3rem .8rem; display: flex; gap: 1.2rem;
  color: var(--dim); flex-wrap: wrap; }
footer output { color: var(--fore); }
kbd { border: 1px solid var(--line); border-radius: 3px; padding: 0 .3rem; background: var(--panel); }
#error { color: #d1242f; }
</style>
</head>
<body>
<header><h1 id="name"></h1><code id="facts"></code></header>
<nav aria-label="passes and rewrites">
<ol id="passes"></ol>
<input id="filter" type="search" placeholder="rules that contain ..." aria-label="filter rewrites by rule">
<ol id="rewrites"></ol>
</nav>
<main><svg id="graph" role="img" aria-label="the graph"></svg><aside id="detail" hidden></aside></main>
<footer><output id="status"></output><span><kbd>&larr;</kbd> <kbd>&rarr;</kbd> rewrite</span>
<span><kbd>&uarr;</kbd> <kbd>&darr;</kbd> pass</span><span><kbd>+</kbd> <kbd>-</kbd> zoom</span>
<span><kbd>f</kbd> whole graph</span><span id="error" hidden></span></footer>
<script type="application/json" id="data">)html";

constexpr const char* script_model = R"html(</script>
<script>
'use strict';
const error = document.getElementById('error');
window.onerror = message => { error.hidden = false; error.textContent = 'error: ' + message; };
const data = JSON.parse(document.getElementById('data').textContent);
const byId = new Map(data.nodes.map(n => [n.id, n]));
const commutative = new Set(['ADD', 'MUL', 'MAX', 'CMPNE', 'CMPEQ', 'XOR', 'AND', 'OR']);
const keyOf = (n, src) => {
  const s = commutative.has(n.op) ? [...src].sort((a, b) => a - b) : src;
  return n.op + '|' + n.dtype + '|' + n.arg + '|' + s.join(',');
};
const byKey = new Map(data.nodes.map(n => [keyOf(n, n.src), n.id]));
let nextId = -1;

// The graph after the first `count` rewrites of a pass: nodes in the order sources first. A node over
// rewritten sources is the recorded node of that structure, or one made up here.
function graphAfter(pass, count) {
  if (count > pass.rewrites.length) return collect(pass.root_after, id => byId.get(id));
  const became = new Map();
  for (const r of pass.rewrites.slice(0, count)) became.set(r.before, r.after);
  const result = new Map(), made = new Map(), open = new Set();
  const stack = [[pass.root_before, 0]];
  while (stack.length) {
    const [id, stage] = stack.pop();
    if (result.has(id)) continue;
    const n = byId.get(id);
    if (stage === 0) {
      if (open.has(id)) continue;
      open.add(id);
      stack.push([id, 1]);
      if (became.has(id) && !result.has(became.get(id))) stack.push([became.get(id), 0]);
      if (!became.has(id)) for (const s of n.src) if (!result.has(s)) stack.push([s, 0]);
    } else if (became.has(id)) {
      result.set(id, result.get(became.get(id)) ?? became.get(id));
    } else {
      const src = n.src.map(s => result.get(s) ?? s);
      let now = id;
      if (src.some((s, i) => s !== n.src[i])) {
        const key = keyOf(n, src);
        now = byKey.get(key) ?? made.get(key);
        if (now === undefined) { now = nextId--; made.set(key, now); made.set(now, { ...n, id: now, src }); }
        let hops = 0;  // what was rebuilt may itself have been rewritten
        while (became.has(now) && hops++ < 1000) now = became.get(now);
      }
      result.set(id, now);
    }
  }
  return collect(result.get(pass.root_before), id => byId.get(id) ?? made.get(id));
}
function collect(root, node) {
  const list = [], seen = new Set(), stack = [[root, 0]];
  while (stack.length) {
    const [id, stage] = stack.pop();
    if (stage) { list.push(node(id)); continue; }
    if (seen.has(id)) continue;
    seen.add(id);
    stack.push([id, 1]);
    for (const s of node(id).src) if (!seen.has(s)) stack.push([s, 0]);
  }
  return list;
}
const valueOf = n => n.arg.startsWith('value=') ? n.arg.slice(6) : n.dtype;
function textOf(id, depth) {
  const n = byId.get(id);
  if (n.op === 'CONST') return valueOf(n);
  const arg = n.arg ? '[' + n.arg + ']' : '';
  if (!n.src.length) return n.op + arg;
  if (depth === 0) return n.op + '#' + id;
  return n.op + arg + '(' + n.src.slice(0, 8).map(s => textOf(s, depth - 1)).join(', ') +
    (n.src.length > 8 ? ', ...' : '') + ')';
}

// Layers by distance from the sources, ordered by the middle of what each node stands on.
function layout(list) {
  const shown = list.filter(n => n.op !== 'CONST'), at = new Map(), layers = [];
  for (const n of shown) {
    let depth = 0;
    for (const s of n.src) if (at.has(s)) depth = Math.max(depth, at.get(s).depth + 1);
    const place = { node: n, depth, x: 0, up: [] };
    at.set(n.id, place);
    (layers[depth] ??= []).push(place);
  }
  for (const p of at.values())
    for (const s of p.node.src) if (at.has(s)) at.get(s).up.push(p);
  for (const p of at.values()) {
    const consts = p.node.src.map(s => constants.get(s)).filter(c => c !== undefined);
    p.label = p.node.op + (consts.length ? ' ' + consts.join(' ') : '');
    p.arg = p.node.arg.length > 26 ? p.node.arg.slice(0, 25) + '~' : p.node.arg;
    p.width = Math.max(60, 8 * Math.max(p.label.length, p.arg.length, p.node.dtype.length) + 14);
  }
  const settle = layer => {
    let x = 0;
    const middle = layer.reduce((w, p) => w + p.width + 16, 0) / 2;
    for (const p of layer) { p.x = x + p.width / 2 - middle; x += p.width + 16; }
  };
  const mean = list => list.reduce((a, p) => a + p.x, 0) / list.length;
  layers.forEach(settle);
  for (let sweep = 0; sweep < (shown.length > 1500 ? 2 : 6); sweep++) {
    for (const layer of sweep % 2 ? [...layers].reverse() : layers) {
      for (const p of layer) {
        const near = sweep % 2 ? p.up : p.node.src.map(s => at.get(s)).filter(Boolean);
        p.want = near.length ? mean(near) : p.x;
      }
      layer.sort((a, b) => a.want - b.want);
      settle(layer);
    }
  }
  return at;
}
let constants = new Map();
)html";

constexpr const char* script_view = R"html(
const kinds = { memory: ['PARAM', 'BUFFER', 'LOAD', 'STORE', 'INDEX', 'SHRINK', 'STAGE'],
  loop: ['RANGE', 'END', 'SINK', 'GROUP', 'AFTER', 'SPECIAL', 'BARRIER'], choice: ['WHERE', 'CMPLT', 'CMPNE', 'CMPEQ'],
  reduce: ['REDUCE', 'WMMA'] };
const kindOf = op => Object.keys(kinds).find(k => kinds[k].includes(op)) ?? 'value';
const escape = s => String(s).replace(/[&<>"']/g, c => '&#' + c.charCodeAt(0) + ';');
const svg = document.getElementById('graph'), detail = document.getElementById('detail');
let state = { pass: 0, step: 0 }, view = null, places = new Map(), picked = null;
const stepsOf = pass => pass.rewrites.length + 1;  // the last one is the pass's own result

function draw(fit) {
  const pass = data.passes[state.pass];
  const list = graphAfter(pass, state.step);
  constants = new Map(list.filter(n => n.op === 'CONST').map(n => [n.id, valueOf(n)]));
  const before = state.step > 0
    ? new Set(graphAfter(pass, state.step - 1).map(n => n.id)) : new Set(list.map(n => n.id));
  places = layout(list);
  const rowHeight = 74, parts = [], root = list.length ? list[list.length - 1].id : null;
  for (const p of places.values()) {
    p.y = p.depth * rowHeight;
    for (const s of p.node.src) {
      const q = places.get(s);
      if (!q) continue;
      const a = q.depth * rowHeight + 22, b = p.y - 22, m = (a + b) / 2;
      parts.push(`<path class="edge" d="M${q.x} ${a}C${q.x} ${m} ${p.x} ${m} ${p.x} ${b}"/>`);
    }
  }
  let changed = null;
  for (const p of places.values()) {
    const isNew = !before.has(p.node.id);
    if (isNew) changed = p;
    parts.push(`<g class="node ${kindOf(p.node.op)}${isNew ? ' new' : ''}${p.node.id === root ? ' root' : ''}" ` +
      `data-id="${p.node.id}" transform="translate(${p.x - p.width / 2} ${p.y - 22})">` +
      `<rect width="${p.width}" height="44"/><text x="${p.width / 2}" y="18">${escape(p.label)}</text>` +
      `<text x="${p.width / 2}" y="35">${escape(p.arg || p.node.dtype)}</text></g>`);
  }
  svg.innerHTML = parts.join('');
  if (fit || !view) {
    fitView();
    const at = changed ?? places.get(root);  // a large graph starts where something can be read
    if (view.w > 5000 && at) zoom(2200 / view.w, at.x, at.y), view.x = at.x - view.w / 2, view.y = at.y - view.h / 2;
  }
  else if (changed) { view.x = changed.x - view.w / 2; view.y = changed.y - view.h / 2; }
  showView();
  showLists();
  showDetail();
  const total = stepsOf(pass);
  document.getElementById('status').textContent = `pass ${state.pass + 1}/${data.passes.length} ${pass.name}, ` +
    `step ${state.step}/${total}, ${list.length} nodes`;
  const hash = `#p=${state.pass}&s=${state.step}`;
  if (location.hash !== hash) history.replaceState(null, '', hash);
}
function fitView() {
  let x0 = Infinity, x1 = -Infinity, y1 = 0;
  for (const p of places.values()) {
    x0 = Math.min(x0, p.x - p.width / 2); x1 = Math.max(x1, p.x + p.width / 2); y1 = Math.max(y1, p.y);
  }
  if (!places.size) { x0 = 0; x1 = 100; }
  const box = svg.getBoundingClientRect(), ratio = (box.width || 1) / (box.height || 1);
  let w = x1 - x0 + 60, h = y1 + 110;
  if (w / h < ratio) w = h * ratio; else h = w / ratio;
  view = { x: (x0 + x1) / 2 - w / 2, y: y1 / 2 - h / 2, w, h };
}
const showView = () => svg.setAttribute('viewBox', `${view.x} ${view.y} ${view.w} ${view.h}`);
function zoom(factor, x = view.x + view.w / 2, y = view.y + view.h / 2) {
  view = { x: x - (x - view.x) * factor, y: y - (y - view.y) * factor, w: view.w * factor, h: view.h * factor };
  showView();
}
function showLists() {
  const micro = ns => (ns / 1000).toFixed(ns < 10000 ? 1 : 0) + ' &micro;s';
  document.getElementById('passes').innerHTML = data.passes.map((p, i) =>
    `<li data-pass="${i}" aria-current="${i === state.pass}">${escape(p.name)} <small>${p.nodes} nodes, ` +
    `${micro(p.ns)}${p.rewrites.length ? ', ' + p.rewrites.length + ' rewrites' : ''}</small></li>`).join('');
  const pass = data.passes[state.pass], wanted = document.getElementById('filter').value;
  const rows = [];  // a window around the current step: lists may have thousands
  const matching = pass.rewrites.map((r, i) => [r, i + 1]).filter(([r]) => r.rule.includes(wanted));
  const middle = matching.findIndex(([, i]) => i >= state.step), from = Math.max(0, (middle < 0 ? 0 : middle) - 150);
  if (from > 0) rows.push(`<li data-step="${matching[from - 1][1]}">... ${from} before</li>`);
  for (const [r, i] of matching.slice(from, from + 300))
    rows.push(`<li data-step="${i}" aria-current="${i === state.step}">${i} ${escape(r.rule)} ` +
      `<small>${escape(r.file)}:${r.line}</small></li>`);
  if (matching.length > from + 300)
    rows.push(`<li data-step="${matching[from + 300][1]}">... ${matching.length - from - 300} more</li>`);
  const list = document.getElementById('rewrites');
  list.innerHTML = rows.join('');
  for (const li of document.querySelectorAll('li[aria-current=true]')) li.scrollIntoView({ block: 'nearest' });
}
function showDetail() {
  const pass = data.passes[state.pass], r = pass.rewrites[state.step - 1];
  let html = '';
  if (r) html += `<h2>${escape(r.rule)} <small>${escape(r.file)}:${r.line}, ${r.ns.toFixed(0)} ns</small></h2>` +
    `<pre>#${r.before} ${escape(textOf(r.before, 5))}</pre><h2>became</h2>` +
    `<pre>#${r.after} ${escape(textOf(r.after, 5))}</pre>`;
  else if (state.step > pass.rewrites.length) html += '<h2>the result of the pass</h2>';
  if (picked !== null && places.has(picked)) {
    const n = places.get(picked).node;
    html += `<h2>node #${n.id}</h2><pre>${escape(n.op)}:${escape(n.dtype)}(${n.src.map(s => '#' + s).join(', ')})` +
      `${n.arg ? '[' + escape(n.arg) + ']' : ''}</pre>`;
  }
  detail.hidden = !html;
  detail.innerHTML = html;
}
function go(pass, step) {
  const samePass = pass === state.pass;
  state.pass = Math.min(Math.max(pass, 0), data.passes.length - 1);
  state.step = Math.min(Math.max(step, 0), stepsOf(data.passes[state.pass]));
  draw(!samePass);
}
function press(key) {
  const steps = stepsOf(data.passes[state.pass]);
  if (key === 'ArrowRight') { if (state.step < steps) go(state.pass, state.step + 1); else go(state.pass + 1, 0); }
  else if (key === 'ArrowLeft') {
    if (state.step > 0) go(state.pass, state.step - 1);
    else if (state.pass > 0) go(state.pass - 1, stepsOf(data.passes[state.pass - 1]));
  } else if (key === 'ArrowDown') go(state.pass + 1, 0);
  else if (key === 'ArrowUp') go(state.pass - 1, 0);
  else if (key === '+') zoom(0.8);
  else if (key === '-') zoom(1.25);
  else if (key === 'f') { fitView(); showView(); }
  else return false;
  return true;
}
document.addEventListener('keydown', e => {
  if (e.target.tagName !== 'INPUT' && press(e.key)) e.preventDefault();
});
document.getElementById('filter').addEventListener('input', showLists);
document.getElementById('passes').addEventListener('click', e => {
  const li = e.target.closest('li'); if (li) go(+li.dataset.pass, 0);
});
document.getElementById('rewrites').addEventListener('click', e => {
  const li = e.target.closest('li'); if (li) go(state.pass, +li.dataset.step);
});
const pointOf = e => {
  const box = svg.getBoundingClientRect();
  return [view.x + (e.clientX - box.left) / box.width * view.w, view.y + (e.clientY - box.top) / box.height * view.h];
};
svg.addEventListener('wheel', e => { e.preventDefault(); zoom(e.deltaY > 0 ? 1.15 : 0.87, ...pointOf(e)); },
  { passive: false });
let drag = null;
svg.addEventListener('pointerdown', e => { drag = { at: pointOf(e) }; });
svg.addEventListener('pointermove', e => {
  if (!drag || !e.buttons) { drag = null; return; }
  const [x, y] = pointOf(e);
  view.x -= x - drag.at[0]; view.y -= y - drag.at[1];
  showView();
});
svg.addEventListener('click', e => {
  const g = e.target.closest('g.node');
  for (const old of svg.querySelectorAll('.picked')) old.classList.remove('picked');
  picked = g ? +g.dataset.id : null;
  if (g) g.classList.add('picked');
  showDetail();
});
document.getElementById('name').textContent = data.name;
document.getElementById('facts').textContent = `${data.key.slice(0, 12)}  ${data.opts || '(no opts)'}  ${data.device}` +
  (data.left_out ? `  ${data.left_out} rewrites left out` : '');
document.title = data.name + ' - trace';
// #p=PASS&s=STEP opens at a step; &keys=ArrowRight,f presses keys then.
const wish = new URLSearchParams(location.hash.slice(1));
state.pass = Math.min(+(wish.get('p') ?? 0) || 0, data.passes.length - 1);
state.step = Math.min(+(wish.get('s') ?? 0) || 0, stepsOf(data.passes[state.pass]));
draw(true);
for (const key of (wish.get('keys') ?? '').split(',').filter(Boolean))
  document.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
</script>
</body>
</html>
)html";

// JSON inside a script element: "</script>" and "<!--" must not appear.
std::string for_script(const ordered_json& document) {
  std::string out;
  for (char c : document.dump(-1, ' ', false, ordered_json::error_handler_t::replace))
    out += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return out;
}

}  // namespace

std::string trace_page(const RecordedTrace& trace, const TracePageFacts& facts) {
  ordered_json nodes = ordered_json::array(), passes = ordered_json::array();
  for (const TracedNode& n : trace.nodes())
    nodes.push_back(
        {{"id", n.id}, {"op", n.op}, {"dtype", n.dtype}, {"arg", n.arg}, {"src", n.src}});
  for (const TracedPass& p : trace.passes()) {
    ordered_json rewrites = ordered_json::array();
    for (const TracedRewrite& r : p.rewrites)
      rewrites.push_back({{"rule", r.rule},
                          {"file", r.file},
                          {"line", r.line},
                          {"before", r.before},
                          {"after", r.after},
                          {"ns", r.ns}});
    passes.push_back({{"name", p.name},
                      {"root_before", p.root_before},
                      {"root_after", p.root_after},
                      {"ns", p.ns},
                      {"nodes", p.nodes},
                      {"rewrites", rewrites}});
  }
  const ordered_json document = {
      {"name", facts.name},          {"key", facts.key}, {"opts", facts.opts},
      {"device", facts.device},      {"nodes", nodes},   {"passes", passes},
      {"left_out", trace.left_out()}};
  return head + for_script(document) + script_model + script_view;
}

}  // namespace beamline::cli
