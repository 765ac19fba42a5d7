"use strict";
// The chart of costs by day: bars in the colours of the page, drawn again where those change.
(() => {
  const figure = document.getElementById("chart");
  if (!figure) return;
  const points = JSON.parse(figure.dataset.points);
  const xs = points.days.map((day) => Date.parse(`${day}T00:00:00Z`) / 1000);
  const hasCosts = points.costs.some((cost) => cost > 0);
  const ys = hasCosts ? points.costs : points.tokens;
  const DAY = 86400;
  let chart = null;

  const draw = () => {
    const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    chart?.destroy();
    const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
    const isoDay = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 10);
    const spread = xs.length ? [xs[0] - DAY, Math.max(xs.at(-1) + DAY, xs[0] + 6 * DAY)] : [0, DAY];
    chart = new uPlot({
      width: figure.clientWidth,
      height: figure.clientHeight,
      padding: [12, 36, 0, 0],
      legend: { show: false },
      cursor: { drag: { x: false, y: false }, points: { show: false } },
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
      scales: { x: { time: true, range: () => spread }, y: { range: (_, __, top) => [0, top > 0 ? top * 1.1 : 1] } },
      axes: [
        { ...axis, grid: { show: false }, space: 80, values: (_, splits) => splits.map(isoDay), incrs: [1, 2, 7, 14, 28, 91, 182, 364, 1820].map((days) => days * DAY) },
        { ...axis, size: 64, values: (_, splits) => splits.map((y) => (hasCosts ? `$${y.toLocaleString("en")}` : y.toLocaleString("en", { notation: "compact" }))) },
      ],
      series: [{}, { fill: colour("--accent"), width: 0, points: { show: false }, paths: uPlot.paths.bars({ size: [0.7, 28], radius: 0.15 }) }],
    }, [xs, ys], figure);
  };
  draw();
  new ResizeObserver(() => chart.setSize({ width: figure.clientWidth, height: figure.clientHeight })).observe(figure);
  new MutationObserver(draw).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  for (const query of ["(prefers-color-scheme: dark)", "print"]) matchMedia(query).addEventListener("change", draw);
})();
