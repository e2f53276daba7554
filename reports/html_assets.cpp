#include "reports/html_assets.h"

namespace beamline::reports {

const char* const html_style = R"css(
:root { color-scheme: light dark;
  --bg: #ffffff; --panel: #f6f7f9; --ink: #1c2330; --soft: #5a6475; --line: #d9dde4; --link: #1a5fb4;
  --good: #1a7f37; --bad: #c01c28; --warn: #9a5b00;
  --search: #8a94a6; --select: #0072b2; --confirm: #d55e00; --rejected: #c4c9d2; --odd: #b5179e; --loop: #12838f; }
@media (prefers-color-scheme: dark) { :root {
  --bg: #14171c; --panel: #1c2128; --ink: #e4e8ee; --soft: #9aa4b2; --line: #323a45; --link: #78aeed;
  --good: #57c276; --bad: #ff7b72; --warn: #e5a550;
  --search: #7d8799; --select: #56b4e9; --confirm: #ff9a4d; --rejected: #4b5462; --odd: #ee7fd9; --loop: #5fc7d2; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1240px; padding: 24px 20px 60px; background: var(--bg); color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif; }
h1 { font-size: 26px; margin: 0 0 2px; } h2 { font-size: 19px; margin: 34px 0 10px; }
h3 { font-size: 15px; margin: 18px 0 6px; }
a { color: var(--link); } .soft { color: var(--soft); } .good { color: var(--good); } .bad { color: var(--bad); }
.warn { color: var(--warn); }
code, pre, .mono { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: 12.5px; }
dl.facts { display: grid; grid-template-columns: max-content 1fr; gap: 2px 16px; margin: 12px 0; }
dl.facts dt { color: var(--soft); } dl.facts dd { margin: 0; overflow-wrap: anywhere; }
.tiles { display: flex; flex-wrap: wrap; gap: 12px; margin: 18px 0; padding: 0; list-style: none; }
.tiles li { background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: 8px 16px; min-width: 120px; }
.tiles b { display: block; font-size: 22px; font-weight: 600; }
.bar { display: flex; flex-wrap: wrap; gap: 12px; margin: 0 0 8px; align-items: center; }
input, select { font: inherit; color: inherit; background: var(--bg); border: 1px solid var(--line); border-radius: 6px; padding: 4px 8px; }
input[type=search] { width: 280px; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 8px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: 5px 10px; text-align: left; border-bottom: 1px solid var(--line); vertical-align: top; }
tbody tr:last-child td { border-bottom: 0; }
thead th { background: var(--panel); white-space: nowrap; font-weight: 600; }
th button { all: unset; cursor: pointer; } th button:focus-visible { outline: 2px solid var(--link); }
th[aria-sort] button::after { content: " \2191"; } th[aria-sort=descending] button::after { content: " \2193"; }
td.n, th.n { text-align: right; white-space: nowrap; }
td.opts { min-width: 190px; max-width: 340px; overflow-wrap: anywhere; } td.work { min-width: 170px; max-width: 260px; overflow-wrap: anywhere; }
tbody tr:hover { background: var(--panel); }
.badge { display: inline-block; border-radius: 10px; padding: 0 9px; font-size: 12.5px; border: 1px solid currentColor; white-space: nowrap; }
.tuned { color: var(--good); } .cached { color: var(--link); } .failed { color: var(--bad); } .untuned { color: var(--soft); }
details.kernel { border: 1px solid var(--line); border-radius: 8px; margin: 10px 0; content-visibility: auto; contain-intrinsic-size: auto 44px; }
details.kernel > summary { padding: 9px 14px; cursor: pointer; background: var(--panel); border-radius: 8px; }
details.kernel > div { padding: 4px 16px 16px; }
summary b { margin-right: 8px; } summary:focus-visible { outline: 2px solid var(--link); }
details.code > summary { cursor: pointer; margin: 8px 0; }
pre { background: var(--panel); border: 1px solid var(--line); border-radius: 6px; padding: 10px; overflow: auto; max-height: 460px; margin: 6px 0; }
.axes { display: flex; flex-wrap: wrap; gap: 6px; padding: 0; list-style: none; }
.axes li { border-radius: 6px; padding: 1px 9px; border: 1px solid currentColor; border-left-width: 5px; font-size: 13px; }
.axes li { color: var(--loop); } .axes .ax-THREAD { color: #3a6fd8; } .axes .ax-UPCAST { color: #a87400; } .axes .ax-REDUCE { color: #d0342c; } .axes .ax-UNROLL { color: #a445b2; }
@media (prefers-color-scheme: dark) { .axes .ax-THREAD { color: #86a9ff; } .axes .ax-UPCAST { color: #ecc94b; } .axes .ax-REDUCE { color: #ff8a80; }
  .axes .ax-UNROLL { color: #d99be4; } }
svg text { fill: var(--soft); font-size: 12px; } svg.scatter { width: 100%; max-width: 980px; display: block; }
svg .grid { stroke: var(--line); fill: none; } svg .axis { stroke: var(--soft); fill: none; }
.level { fill: none; stroke-width: 1.5; } .level.best { stroke: var(--good); } .level.heuristic { stroke: var(--select); stroke-dasharray: 7 4; }
.level.unoptimised { stroke: var(--soft); stroke-dasharray: 2 4; }
.m { stroke: none; fill: var(--search); fill-opacity: .75; } .m.select { fill: var(--select); } .m.confirm { fill: var(--confirm); fill-opacity: .95; }
path.m:not(.confirm) { stroke-width: 1.8; fill: none; }
.m.rejected { stroke: var(--rejected); } .m.mistrusted { stroke: var(--odd); fill: var(--odd); } .m.wrong_result { stroke: var(--bad); fill: var(--bad); }
.m.timeout { stroke: var(--warn); } .m.crashed { stroke: var(--bad); stroke-width: 3; } .m.compile_error { stroke: var(--warn); stroke-width: 3; } .m.launch_error { stroke: var(--odd); }
.legend { display: flex; flex-wrap: wrap; gap: 4px 16px; padding: 0; margin: 4px 0 0; list-style: none; font-size: 13px; color: var(--soft); }
.legend svg { vertical-align: -2px; margin-right: 4px; }
#tip { position: fixed; z-index: 9; max-width: 480px; pointer-events: none; white-space: pre-wrap; overflow-wrap: anywhere; background: var(--ink);
  color: var(--bg); border-radius: 6px; padding: 6px 10px; font-size: 12.5px; }
.sr { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
@media print { .bar { display: none; } details.kernel { content-visibility: visible; } }
)css";

const char* const html_script = R"js(
(function () {
  'use strict';
  var table = document.getElementById('tuning');
  if (table) {
    var body = table.tBodies[0], rows = Array.prototype.slice.call(body.rows);
    var shown = document.getElementById('shown'), text = document.getElementById('filter');
    var status = document.getElementById('status');
    var words = rows.map(function (r) { return r.textContent.toLowerCase(); });
    var filter = function () {
      var wanted = text.value.toLowerCase().split(/\s+/), n = 0;
      rows.forEach(function (r, i) {
        var on = wanted.every(function (w) { return words[i].indexOf(w) >= 0; }) &&
          (!status.value || r.dataset.status === status.value);
        r.hidden = !on;
        n += on ? 1 : 0;
      });
      shown.textContent = n + ' of ' + rows.length + ' kernels';
    };
    text.addEventListener('input', filter);
    status.addEventListener('change', filter);
    filter();
    var value = function (row, column) {
      var cell = row.cells[column];
      return 'v' in cell.dataset ? (cell.dataset.v === '' ? null : Number(cell.dataset.v)) : cell.textContent;
    };
    Array.prototype.forEach.call(table.tHead.rows[0].cells, function (head, column) {
      head.querySelector('button').addEventListener('click', function () {
        var up = head.getAttribute('aria-sort') !== 'ascending';
        Array.prototype.forEach.call(table.tHead.rows[0].cells, function (h) { h.removeAttribute('aria-sort'); });
        head.setAttribute('aria-sort', up ? 'ascending' : 'descending');
        rows.map(function (r, i) { return { r: r, v: value(r, column), i: i }; }).sort(function (a, b) {
          if (a.v === null || b.v === null) return a.v === b.v ? a.i - b.i : a.v === null ? 1 : -1;
          var c = typeof a.v === 'number' ? a.v - b.v : a.v.localeCompare(b.v);
          return (up ? c : -c) || a.i - b.i;
        }).forEach(function (x) { body.appendChild(x.r); });
      });
    });
  }
  var unfold = function () {
    var target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    if (target && target.tagName === 'DETAILS') { target.open = true; target.scrollIntoView(); }
  };
  window.addEventListener('hashchange', unfold);
  unfold();
  var tip = document.createElement('div');
  tip.id = 'tip';
  tip.hidden = true;
  document.body.appendChild(tip);
  document.addEventListener('mouseover', function (e) {
    var mark = e.target.closest && e.target.closest('svg .m, svg .level');
    if (!mark) { tip.hidden = true; return; }
    var title = mark.querySelector('title');
    if (title) { mark.setAttribute('aria-label', title.textContent); title.remove(); }
    tip.textContent = mark.getAttribute('aria-label') || '';
    tip.hidden = false;
    var box = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(e.clientX + 14, window.innerWidth - box.width - 8)) + 'px';
    tip.style.top = (e.clientY + 18 + box.height > window.innerHeight ? e.clientY - box.height - 12 : e.clientY + 18) + 'px';
  });
}());
)js";

}  // namespace beamline::reports
