// The few DOM helpers of the dashboard. Text is always set as text, never parsed as HTML.

/** @typedef {Node | string | null | undefined | false} Child */

/**
 * The element with this id.
 * @template {HTMLElement} [T=HTMLElement]
 * @param {string} id
 * @param {{new(): T, prototype: T}} [type] checked, so that a renamed element fails here and not later
 * @returns {T}
 */
export function byId(id, type = /** @type {any} */ (HTMLElement)) {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`no ${type.name} #${id} on this page`);
  return found;
}

/**
 * A new element: `make("td", {class: "number"}, "3")`.
 * @param {string} tag
 * @param {Record<string, string | number | boolean | null>} [attributes] null and false are left out
 * @param {...Child} children
 */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter(/** @returns {child is Node | string} */ (child) => Boolean(child)));
  return element;
}

/**
 * A word in a coloured pill.
 * @param {string} text
 * @param {string} [tone] good | bad | busy | warn
 */
export function label(text, tone = "") {
  return make("span", { class: `label ${tone}`.trim() }, text);
}

/**
 * Terms and descriptions for a `dl`; pairs whose value is null are left out.
 * @param {HTMLElement} list
 * @param {Array<[term: string, value: Child]>} pairs
 * @param {boolean} [grouped] wrap each pair in a div
 */
export function fillList(list, pairs, grouped = false) {
  const shown = pairs.filter(([, value]) => value);
  list.replaceChildren(
    ...shown.flatMap(([term, value]) => {
      const pair = [make("dt", {}, term), make("dd", {}, value)];
      return grouped ? [make("div", {}, ...pair)] : pair;
    }),
  );
}

/**
 * Show a message in the page's alert, or hide it.
 * @param {unknown} problem an error; null hides
 */
export function showProblem(problem) {
  const alert = byId("problem");
  alert.hidden = problem === null;
  alert.textContent = problem instanceof Error ? problem.message : String(problem ?? "");
}

/**
 * @param {string} text
 * @param {string} [tone] good | bad
 */
export function showConnection(text, tone = "") {
  const line = byId("connection");
  line.textContent = text;
  line.dataset.tone = tone;
}
