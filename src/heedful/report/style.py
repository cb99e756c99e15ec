"""The style sheet of the page: dark on white, readable on a phone."""

STYLE = """
:root { color-scheme: light; }
body { margin: 0; background: #fff; color: #1a1a1a; }
body { font: 16px/1.45 system-ui, "Segoe UI", Roboto, sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 14px; }
h1 { font-size: 1.5rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 2.2rem 0 .5rem; border-top: 1px solid #ddd; padding-top: .8rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 .4rem; }
p { margin: .5rem 0; max-width: 80ch; }
.about, .note, figcaption, .policy { color: #444; font-size: .875rem; overflow-wrap: anywhere; }
.note, figcaption { font-size: .8125rem; max-width: 105ch; }
.result { font-size: 1.1rem; font-weight: 600; padding: .6rem .8rem; }
.result { border-left: 5px solid #777; background: #f4f4f4; }
.result.gain { border-color: #0072b2; background: #eef6fb; }
.result.loss { border-color: #b00020; background: #fdf0f1; }
.alarm { color: #b00020; font-weight: 700; border: 2px solid #b00020; padding: .6rem .8rem; }
.first > * { min-width: 0; }
@media (min-width: 900px) {
  .first { display: grid; grid-template-columns: 1fr 440px; column-gap: 1.6rem; }
  .first .table { grid-column: 1 / -1; }
}
aside { background: #fff8e1; border: 1px solid #e0c36a; padding: .2rem .9rem .6rem; margin: 1.2rem 0; }
aside h2 { border: 0; margin: .4rem 0 0; padding: 0; font-size: 1rem; }
.notes { white-space: pre-line; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #e2e2e2; vertical-align: top; }
thead th { border-bottom: 2px solid #999; font-weight: 600; vertical-align: bottom; }
tbody th { font-weight: 400; background: #fff; max-width: 22rem; }
.w { text-align: left; }
.n { text-align: right; white-space: nowrap; }
thead .n { white-space: normal; }
.marked th, .marked td { font-weight: 700; background: #eef6fb; }
.warned th, .warned td { font-weight: 700; color: #b00020; }
.empty { color: #666; font-style: italic; }
figure { margin: .6rem 0; max-width: 560px; }
figure svg { width: 100%; height: auto; display: block; }
details { margin: .8rem 0; }
summary { cursor: pointer; color: #0b5394; font-size: .875rem; }
nav { margin: 1.2rem 0; font-size: .875rem; line-height: 2; }
#table-locked td { overflow-wrap: anywhere; }
@media (max-width: 600px) {
  .scroll tr > :first-child { position: sticky; left: 0; background: #fff; }
  .scroll tbody th { max-width: 9rem; overflow-wrap: break-word; }
  .scroll .marked > :first-child { background: #eef6fb; }
  th, td { padding: .25rem .4rem; }
}
@media print { main { max-width: none; } .scroll { overflow: visible; } }
"""
