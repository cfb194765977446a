// The part of the HTTP API that the dashboard uses. The only file here that knows addresses and JSON names.

import { toNumber } from "./format.js";

/** @typedef {import("./curves.js").Curve} Curve */

/**
 * A job as `GET /v1/jobs/{id}` gives it; times are RFC 3339.
 * @typedef {"queued" | "running" | "succeeded" | "failed" | "cancelled" | "aborted"} State
 * @typedef {{id: string, kind?: "train" | "predict", name: string, tags: Record<string, string>, state: State, cause: string | null,
 *   message: string | null, failure: Record<string, unknown> | null, step: number, total_steps: number | null,
 *   metrics: Record<string, number | string | null>, queue: string, needs_hardware: boolean, dataset_id: string | null, created_at: string, started_at: string | null,
 *   ended_at: string | null, cancel_requested_at: string | null, backend: string | null, renderer: string | null,
 *   software: boolean | null, record: Record<string, any> | null, spec: Record<string, any>,
 *   attempts: import("./attempts.js").Attempt[], max_attempts: number, parent_id: string | null, resumed_from_step: number | null, resumable_from_step: number | null}} Job
 * @typedef {{id: string, name: string, rows: number, arrays: Record<string, any>}} Dataset
 */

export const FINAL_STATES = new Set(["succeeded", "failed", "cancelled", "aborted"]);
/** Types of events on a job's stream; EventSource hears only those that it asks for. */
const EVENT_TYPES = ["state", "attempt", "metrics", "progress", "cancel_requested", "diagnostics"];

/** An answer that is not 2xx; the message is the API's own. */
export class ApiError extends Error {
  /** @param {number} status @param {string} message */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/**
 * @param {string} path below /v1
 * @param {RequestInit} [init]
 * @returns {Promise<any>}
 */
async function request(path, init) {
  const response = await fetch(`/v1${path}`, { headers: { Accept: "application/json" }, ...init });
  const body = await response.json().catch(() => null);
  if (response.ok) return body;
  if (response.status === 401 && path !== "/session") location.assign("/login");
  throw new ApiError(response.status, body?.detail ?? body?.title ?? `The API answered ${response.status}.`);
}

/**
 * @param {string | null} cursor null for the newest
 * @returns {Promise<{jobs: Job[], next: string | null}>}
 */
export async function listJobs(cursor) {
  const page = await request(`/jobs?limit=50${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ""}`);
  return { jobs: page.items, next: page.next_cursor };
}

/** Exchange a key for a session, which the browser keeps as a cookie. @param {string} key */
export const logIn = (key) => request("/session", {
  method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ key }),
});

/** Those of the last day, stopped ones included. @returns {Promise<import("./workers.js").Worker[]>} */
export const listWorkers = async () => (await request("/workers?limit=200")).items;

/** @param {string} id @returns {Promise<Dataset | null>} null where it has been deleted */
export async function getDataset(id) {
  try {
    return await request(`/datasets/${encodeURIComponent(id)}`);
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  }
}

/** @param {string} id */
const ofJob = (id) => `/jobs/${encodeURIComponent(id)}`;

/** Why a job is where it is, in a sentence. @param {string} id @returns {Promise<string>} */
export const getWhy = async (id) => (await request(`${ofJob(id)}/why`)).summary;

/** @param {string} id @returns {Promise<Job>} */
export const getJob = (id) => request(ofJob(id));

/** @param {string} id @param {"cancel" | "resume"} action @returns {Promise<Job>} for resume the new one */
export const changeJob = (id, action) => request(`${ofJob(id)}/${action}`, { method: "POST" });

/**
 * The curves of a job, reduced to what a chart can show.
 * @param {string} id
 * @returns {Promise<Record<string, Curve>>} by key
 */
export async function getCurves(id) {
  const { series } = await request(`${ofJob(id)}/metrics?max_points=2000`);
  return Object.fromEntries(Object.entries(series).map(([key, { steps, values }]) =>
    [key, { steps, values: values.map((/** @type {unknown} */ value) => toNumber(value) ?? NaN) }]));
}

/** The report of a job of which a try has been `measured`. @param {string} id @returns {Promise<import("./report.js").Diagnostics>} */
export const getDiagnostics = (id) => request(`${ofJob(id)}/diagnostics`);

/** @param {string} id @param {"safetensors" | "npz" | "onnx" | "tfjs"} format */
export const weightsUrl = (id, format) => `/v1${ofJob(id)}/weights?format=${format}`;

/** @param {string} id a job that predicts */
export const predictionsUrl = (id) => `/v1${ofJob(id)}/predictions?format=csv`;

/**
 * Hear of every change of a job. EventSource reconnects by itself and says what it heard last.
 * @param {string} id
 * @param {{onChange: () => void, onConnection: (up: boolean) => void}} listeners
 * @returns {() => void} stops listening
 */
export function watchJob(id, { onChange, onConnection }) {
  const source = new EventSource(`/v1${ofJob(id)}/events`);
  for (const type of EVENT_TYPES) source.addEventListener(type, onChange);
  source.onopen = () => onConnection(true);
  source.onerror = () => onConnection(false);
  return () => source.close();
}
