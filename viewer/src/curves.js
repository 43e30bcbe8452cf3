// Curves over time with the present time as a line; a click goes there.
const CHOICES = {
  energies: { columns: ["kinetic", "potential", "contact work"] },
  residual: { columns: ["residual"], log: true },
  sweeps: { columns: ["sweeps"] },
  overlap: { columns: ["overlap / radius"] },
  contacts: { columns: ["contacts"] },
};
const TINTS = ["#4e79a7", "#59a14f", "#e15759"];

export const NAMES = Object.keys(CHOICES);

export function drawCurves(canvas, curves, name, time, ends, ink, short) {
  const ratio = window.devicePixelRatio || 1;
  const w = canvas.clientWidth;
  const h = canvas.clientHeight;
  canvas.width = w * ratio;
  canvas.height = h * ratio;
  const g = canvas.getContext("2d");
  g.scale(ratio, ratio);
  g.font = "11px system-ui, sans-serif";
  const { columns, log } = CHOICES[name];
  const t = curves.time;
  const series = columns.map((column) => {
    const values = (curves[column] || []).map((v) => (v === null ? NaN : v));
    if (column !== "potential") return values.map((v) => (log ? (v > 0 ? Math.log10(v) : NaN) : v));
    const end = values[values.length - 1]; // from its end, as its zero means nothing
    return values.map((v) => v - end);
  });
  const all = series.flat().filter(Number.isFinite);
  const left = 54;
  const [top, bottom] = [16, h - 6];
  const x = (at) => left + ((at - ends[0]) / (ends[1] - ends[0] || 1)) * (w - left - 6);
  if (all.length) {
    let low = all.reduce((a, b) => Math.min(a, b), log ? Infinity : 0);
    let high = all.reduce((a, b) => Math.max(a, b), -Infinity);
    if (high === low) high = low + 1;
    const y = (v) => bottom - ((v - low) / (high - low)) * (bottom - top);
    g.strokeStyle = g.fillStyle = ink;
    g.globalAlpha = 0.35;
    g.beginPath();
    g.moveTo(left, top);
    g.lineTo(left, bottom);
    g.lineTo(w - 6, bottom);
    g.stroke();
    g.globalAlpha = 0.8;
    g.textAlign = "right";
    const said = (v) => short(log ? 10 ** v : v);
    g.fillText(said(high), left - 4, top + 4);
    g.fillText(said(low), left - 4, bottom);
    g.globalAlpha = 1;
    g.textAlign = "left";
    let at = left + 6;
    series.forEach((values, k) => {
      g.strokeStyle = g.fillStyle = TINTS[k];
      g.beginPath();
      let pen = false;
      values.forEach((v, i) => {
        if (!Number.isFinite(v)) return (pen = false);
        pen ? g.lineTo(x(t[i]), y(v)) : g.moveTo(x(t[i]), y(v));
        pen = true;
      });
      g.stroke();
      const label = columns[k] === "potential" ? "potential, from its end" : columns[k];
      g.fillText(label, at, 11);
      at += g.measureText(label).width + 14;
    });
  } else {
    g.fillStyle = ink;
    g.fillText("The file has no log.", left, h / 2);
  }
  g.strokeStyle = ink;
  g.globalAlpha = 0.7;
  g.beginPath();
  g.moveTo(x(time), top - 4);
  g.lineTo(x(time), bottom);
  g.stroke();
  canvas.timeAt = (px) => ends[0] + ((px - left) / (w - left - 6)) * (ends[1] - ends[0]);
}
