"""The style of a report: light or dark as the reader's system is, one column on a phone."""

from __future__ import annotations

STYLE = """
:root { color-scheme: light dark; --page: #f4f6f9; --card: #ffffff; --text: #18202c; --soft: #566173; --line: #dfe4ec;
  --grid: #e8ecf2; --bar: #2f6fd6; --bar2: #0e9f8e; --good: #14805e; --warn: #a35f00; --bad: #c02639; --tint: #eef3fc;
  --c0: #2f6fd6; --c1: #0e9f8e; --c2: #c77700; --c3: #9a4fd0; --c4: #d1447c; --c5: #5f7f1e; --c6: #8792a3; }
@media (prefers-color-scheme: dark) { :root { --page: #0f131a; --card: #181e28; --text: #e7ebf2; --soft: #9ba7b8;
  --line: #2b3443; --grid: #252d3a; --bar: #6aa2ff; --bar2: #3ecfbb; --good: #4cc99b; --warn: #f0ab4b; --bad: #ff7b8a;
  --tint: #1d2738; --c0: #6aa2ff; --c1: #3ecfbb; --c2: #f0ab4b; --c3: #c08bf0; --c4: #f283ac; --c5: #a5c85a;
  --c6: #8893a5; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); overflow-wrap: break-word;
  font: 15px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main, header { max-width: 76rem; margin: 0 auto; padding: 0 1rem; }
header { padding-top: 1.6rem; }
h1 { font-size: 1.55rem; margin: 0 0 .15rem; letter-spacing: -.01em; }
h2 { font-size: 1.12rem; margin: 0 0 .2rem; }
h3 { font-size: .95rem; margin: 0 0 .35rem; font-weight: 600; }
p { margin: .2rem 0 .6rem; }
.soft { color: var(--soft); }
.path { overflow-wrap: anywhere; font-size: .86rem;
  font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .7rem; margin: 1.1rem 0; }
.tile, section { background: var(--card); border: 1px solid var(--line); border-radius: .7rem; }
.tile { padding: .7rem .9rem; }
.tile dt { color: var(--soft); font-size: .8rem; }
.tile dd { margin: 0; font-size: 1.35rem; font-weight: 650; font-variant-numeric: tabular-nums; }
.tile dd small { display: block; font-size: .78rem; font-weight: 400; color: var(--soft); }
section { padding: 1rem 1.1rem 1.1rem; margin: 0 0 1rem; }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr)); gap: 1.1rem 1.6rem; }
.grid > * { min-width: 0; }
figure { margin: 0; } figure + .scroll { margin-top: .8rem; }
figcaption { font-weight: 600; font-size: .92rem; margin-bottom: .3rem; }
svg { display: block; width: 100%; max-width: 38rem; height: auto; }
svg text { fill: var(--soft); font-size: 11px; font-family: inherit; }
svg .value { fill: var(--text); font-variant-numeric: tabular-nums; }
svg .label { fill: var(--text); }
.bar { fill: var(--bar); } .bar2 { fill: var(--bar2); } .track { fill: var(--grid); }
.gridline { stroke: var(--grid); stroke-width: 1; } .axis { stroke: var(--line); stroke-width: 1; }
.curve { fill: none; stroke: var(--bar); stroke-width: 2; } .area { fill: var(--bar); opacity: .14; }
.c0 { fill: var(--c0); } .c1 { fill: var(--c1); } .c2 { fill: var(--c2); } .c3 { fill: var(--c3); }
.c4 { fill: var(--c4); } .c5 { fill: var(--c5); } .c6 { fill: var(--c6); }
.legend { display: flex; flex-wrap: wrap; gap: .2rem .9rem; list-style: none; padding: 0; margin: .35rem 0 0;
  font-size: .82rem; color: var(--soft); }
.legend svg { display: inline-block; width: .75em; height: .75em; margin-right: .35em; vertical-align: -.05em; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .86rem; }
caption { text-align: left; font-weight: 600; padding-bottom: .3rem; }
th, td { text-align: left; padding: .3rem .9rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th.n { text-align: right; }
thead th { color: var(--soft); font-weight: 600; white-space: nowrap; }
td { overflow-wrap: anywhere; min-width: 7rem; }
td:last-child { min-width: 9rem; } td:first-child { min-width: 7rem; }
td.n { min-width: 0; text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
tbody th { font-weight: 500; }
details { margin-top: .5rem; font-size: .86rem; }
summary { cursor: pointer; color: var(--soft); }
summary:focus-visible, .scroll:focus-visible { outline: 2px solid var(--bar); outline-offset: 2px; }
.grid > div > .advice { height: 100%; }
.advice { background: var(--tint); border-radius: .6rem; padding: .7rem .9rem; }
.advice strong { display: block; font-size: 1.1rem; }
.good { color: var(--good); } .warn { color: var(--warn); } .bad { color: var(--bad); }
.tags { display: flex; flex-wrap: wrap; gap: .35rem; list-style: none; padding: 0; margin: .2rem 0; }
.tags li { background: var(--tint); border-radius: 1rem; padding: .1rem .65rem; font-size: .84rem; }
footer { max-width: 76rem; margin: 0 auto; padding: .2rem 1rem 2rem; color: var(--soft); font-size: .82rem; }
@media print { body { background: #fff; } section, .tile { break-inside: avoid; } }
""".strip()
