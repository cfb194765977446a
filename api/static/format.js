// How numbers, times and device names are written for people. Pure functions; no DOM.

const NON_FINITE = new Map([["NaN", NaN], ["Infinity", Infinity], ["-Infinity", -Infinity]]);

/**
 * A number as the API writes it: non-finite ones are the strings "NaN", "Infinity" and "-Infinity".
 * @param {unknown} value
 * @returns {number | null} null where there is none
 */
export function toNumber(value) {
  if (typeof value === "number") return value;
  return typeof value === "string" ? NON_FINITE.get(value) ?? null : null;
}

/**
 * @param {unknown} value as the API writes it
 * @param {number} [digits] significant ones
 */
export function formatNumber(value, digits = 4) {
  const number = toNumber(value);
  if (number === null) return "–";
  if (Number.isNaN(number)) return "NaN";
  if (!Number.isFinite(number)) return number > 0 ? "∞" : "−∞";
  if (number === 0) return "0";
  const size = Math.abs(number);
  const text = size >= 1e6 || size < 1e-4 ? number.toExponential(Math.max(digits - 2, 1)) : number.toPrecision(digits);
  return text.replaceAll("-", "−").replace("e+", "e");
}

/** @param {unknown} value a count */
export function formatCount(value) {
  const number = toNumber(value);
  return number === null ? "–" : number.toLocaleString("en");
}

/** @param {unknown} value a share of 1 */
export function formatPercent(value) {
  const number = toNumber(value);
  if (number === null) return "–";
  return Number.isFinite(number) ? `${(100 * number).toFixed(2)} %` : formatNumber(number);
}

/** @param {number | null | undefined} seconds */
export function formatDuration(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  if (seconds < 1) return `${Math.round(1000 * seconds)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const whole = Math.round(seconds);
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60)];
  return hours ? `${hours} h ${minutes} min` : `${minutes} min ${whole % 60} s`;
}

/** @param {unknown} bytes */
export function formatBytes(bytes) {
  let number = toNumber(bytes);
  if (number === null) return "–";
  for (const unit of ["B", "KiB", "MiB"]) {
    if (number < 1024) return `${Number(number.toPrecision(3))} ${unit}`;
    number /= 1024;
  }
  return `${number.toFixed(1)} GiB`;
}

/**
 * @param {Date} then
 * @param {Date} now
 */
export function formatAge(then, now) {
  const seconds = (now.getTime() - then.getTime()) / 1000;
  if (seconds < 45) return "just now";
  const relative = new Intl.RelativeTimeFormat("en", { numeric: "always", style: "short" });
  if (seconds < 3600) return relative.format(-Math.round(seconds / 60), "minute");
  if (seconds < 86400) return relative.format(-Math.round(seconds / 3600), "hour");
  return relative.format(-Math.round(seconds / 86400), "day");
}

/**
 * The part of an unmasked renderer string that people know the device by:
 * "ANGLE (NVIDIA, Vulkan 1.4.303 (NVIDIA NVIDIA H200 (0x00002335)), NVIDIA)" is an "NVIDIA H200".
 * @param {string | null | undefined} renderer
 */
export function shortRenderer(renderer) {
  if (!renderer) return "–";
  const software = renderer.match(/SwiftShader|llvmpipe|softpipe|lavapipe|Microsoft Basic Render/i);
  if (software) return software[0];
  const inner = renderer.match(/^ANGLE \([^,]*, (.*?)(?:, [^,]*)?\)$/)?.[1] ?? renderer;
  const device = inner.match(/^Vulkan [\d.]+ \((.*?)(?: \(0x[0-9A-Fa-f]+\))?\)$/)?.[1] ?? inner;
  return device
    .replace(/ ?\(0x[0-9A-Fa-f]+\)/g, "")
    .replace(/\/PCIe.*$| Direct3D.*$|, OpenGL.*$|^ANGLE Metal Renderer: /g, "")
    .replace(/^(\S+) \1 /, "$1 ");
}
