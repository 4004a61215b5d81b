"""How a page of drawings looks, as CSS: one column of text, set like a book, in light and dark."""

from __future__ import annotations

from penstock.figures.markup import element
from penstock.figures.style import colours

_RULES = """
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%;scroll-behavior:smooth}
body{margin:0 auto;max-width:78rem;padding:2.5rem clamp(1rem,4vw,3rem) 5rem;background:var(--paper);color:var(--ink);
font:1.0625rem/1.55 "Iowan Old Style","Palatino Linotype",Palatino,"Book Antiqua",Georgia,serif;
overflow-wrap:break-word}
h1{font-size:clamp(1.7rem,5vw,2.4rem);line-height:1.15;font-weight:500;margin:0 0 .75rem;letter-spacing:-.01em;
max-width:24em;text-wrap:balance}
h2{font-size:1.3rem;line-height:1.25;font-weight:600;margin:0 0 .5rem;text-wrap:balance}
p{margin:0 0 .8rem;max-width:38rem;hyphens:auto}
a{color:inherit;text-decoration-color:var(--quiet);text-decoration-thickness:1px;text-underline-offset:.2em}
a:hover{text-decoration-color:currentColor}
.summary{display:flex;flex-wrap:wrap;gap:.2rem 1.4rem;color:var(--quiet)}
.count{white-space:nowrap}
nav{border-top:1px solid var(--line);border-bottom:1px solid var(--line);margin:2rem 0 0;padding:1.1rem 0 1.2rem}
nav h2{font-size:1rem;font-variant-caps:small-caps;letter-spacing:.06em;color:var(--quiet);font-weight:500}
nav ol{margin:0;padding:0;list-style:none;columns:25rem;column-gap:3rem}
nav li{display:flex;justify-content:space-between;gap:1rem;break-inside:avoid;padding:.12rem 0}
nav li a{text-decoration:none}
nav li a:hover{text-decoration:underline}
.marks{white-space:nowrap;letter-spacing:.15em}
.mark{font-family:system-ui,"Segoe UI Symbol","DejaVu Sans",sans-serif;font-weight:600}
.mark.passed{color:var(--on-time)}
.mark.differs{color:var(--early)}
.mark.failed{color:var(--late)}
.mark.not{color:var(--quiet)}
section{margin:3.2rem 0 0;scroll-margin-top:1rem}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,32rem),1fr));gap:2rem 2.5rem;
margin-top:1.2rem}
figure{margin:0;min-width:0;max-width:40rem}
figcaption{margin-top:.35rem;font-size:.95rem;line-height:1.4;color:var(--quiet)}
figcaption b{color:var(--ink);font-weight:600}
.drawing{overflow-x:auto;overscroll-behavior-x:contain}
.drawing svg{display:block;width:100%;min-width:31.5rem;height:auto}
.drawing:focus-visible,a:focus-visible{outline:2px solid var(--early);outline-offset:3px}
@media (max-width:40rem){.drawing svg{min-width:34rem}}
@media (prefers-reduced-motion:reduce){html{scroll-behavior:auto}}
@media print{body{padding:0;font-size:10.5pt}figure,nav li{break-inside:avoid}h2{break-after:avoid}
.drawing svg{min-width:0}.drawing{overflow:visible}}
"""

PAGE_STYLE = element("style", colours(":root"), _RULES.replace("\n", ""))
"""The style of a page."""
