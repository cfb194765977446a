// Checkpoint: all that a session needs to go on from a step, as a safetensors file.
import { EngineError } from "../errors.js";
import { crc32 } from "./crc32.js";
import { decode, encode } from "./safetensors.js";
import { checkWeights, readWeights, writeWeights } from "./weights.js";

/** @import { Tensor } from "./safetensors.js" */
/** @import { Session } from "./session.js" */

/** Where training goes on, whether with the bits of an undisturbed run, and where not, why.
 * @typedef {{step: number, bitExact: boolean, reason?: string}} Restored */

/** Before the names of the best validation's weights in a checkpoint. */
const BEST = "best/";
/** What its metadata say of a validation that had begun; another session begins it anew. */
const PENDING = "pending";

/** All that training needs to go on bit for bit. @param {Session} session @returns {Uint8Array<ArrayBuffer>} safetensors */
export function encodeCheckpoint(session) {
  const { plan, executable } = session;
  const tensors = session.getWeights();
  for (const state of plan.states) Object.assign(tensors, readWeights(plan, executable, state));
  for (const [name, tensor] of Object.entries(session.progress.bestWeights ?? {})) tensors[BEST + name] = tensor;
  const stopping = session.progress.stopping && { early_stopping: session.progress.stopping.state };
  const validation = session.pipeline.validating && { validation: PENDING };
  const metadata = { step: String(session.step), planKey: session.planKey, data: session.rowHashes.key, spec: specKeyOf(specOf(session)), ...stopping, ...validation };
  return encode(tensors, { ...metadata, crc32: checksumOf(tensors, metadata) });
}

/**
 * @param {Session} session @param {Uint8Array} bytes a checkpoint
 * @returns {Restored}
 */
export function restoreCheckpoint(session, bytes) {
  const { plan, executable } = session;
  const { tensors, metadata: { crc32: checksum, ...metadata } } = decode(bytes, "checkpoint");
  // Checkpoints of early versions have none.
  if (checksum !== undefined && checksum !== checksumOf(tensors, metadata)) {
    const message = "checkpoint: its bytes are not those that were saved, as its checksum (crc32) tells: take another copy, an earlier checkpoint, or start anew";
    throw new EngineError("data_invalid", message, { field: "checkpoint" });
  }
  if (metadata.spec === undefined) {
    throw new EngineError("data_invalid", "checkpoint: it is a file of weights or of other tensors, not a checkpoint; weights go to compile() as initialWeights", { field: "checkpoint" });
  }
  const other = differences(metadata.spec, specOf(session));
  if (other.length > 0) {
    const message = `checkpoint: it belongs to another model or training set-up: other than in this session: ${other.join(", ")}`;
    throw new EngineError("data_invalid", message, { field: "checkpoint", detail: { differs: other } });
  }
  const step = Number(metadata.step);
  if (!(Number.isInteger(step) && step >= 0 && step <= session.totalSteps)) {
    throw new EngineError("data_invalid", `checkpoint: its step is ${metadata.step}; legal: 0 to ${session.totalSteps}`, { field: "checkpoint" });
  }
  // All is checked before anything is written: a checkpoint that is refused leaves the session as it was.
  const states = ["", ...plan.states];
  for (const state of states) checkWeights(plan, tensors, state);
  const stop = session.progress.stopping?.prepare(metadata.early_stopping);
  const kept = Object.entries(tensors).flatMap(([name, tensor]) => (name.startsWith(BEST) ? [[name.slice(BEST.length), tensor]] : []));
  const best = kept.length > 0 ? Object.fromEntries(kept) : null;
  if (best) checkWeights(plan, best, "");
  for (const state of states) writeWeights(plan, executable, tensors, state);
  stop?.();
  session.progress.restart(best);
  session.pipeline.restart(step, metadata.validation === PENDING);
  session.startFrom(tensors);
  const reason = whyOtherBits(session, metadata);
  return { step: session.step, bitExact: reason === null, ...(reason !== null && { reason }) };
}

/** @param {Session} session @param {Record<string, string>} metadata of a checkpoint; those of early versions say nothing of the data @returns {string|null} */
function whyOtherBits(session, { planKey, data }) {
  if (data !== undefined && data !== session.rowHashes.key) return "it was made with other data";
  return planKey === session.planKey ? null : "it was made on another device, driver, browser or engine";
}

/**
 * Of all that a checkpoint says, in the order of names, which other writers of safetensors change.
 * @param {Record<string, Tensor>} tensors @param {Record<string, string>} metadata without the checksum
 * @returns {string} 8 hexadecimal digits
 */
function checksumOf(tensors, metadata) {
  const names = Object.keys(tensors).sort();
  const said = [Object.entries(metadata).sort(), names.map((name) => [name, tensors[name].shape])];
  let crc = crc32(new TextEncoder().encode(JSON.stringify(said)));
  for (const { data } of names.map((name) => tensors[name])) crc = crc32(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), crc);
  return crc.toString(16).padStart(8, "0");
}

/** What must be equal for a checkpoint to make sense, by name. @param {Session} session @returns {[string, any][]} */
function specOf({ spec, rows }) {
  const { model, loss, optimizer, train, data } = spec;
  return [["model", model], ["loss", loss], ["optimizer", optimizer], ["train", train], ["data.validation", data?.validation ?? null], ["data.normalize", data?.normalize ?? null], ["number of rows", rows]];
}

/** @param {[string, any][]} spec */
const specKeyOf = (spec) => JSON.stringify(spec.map(([, value]) => value));

/** The names of what differs. @param {string} stored a key as specKeyOf() gives @param {[string, any][]} spec @returns {string[]} */
function differences(stored, spec) {
  if (stored === specKeyOf(spec)) return [];
  /** @type {any} */
  let values;
  try {
    values = JSON.parse(stored);
  } catch {
    values = [];
  }
  return spec.flatMap(([name, value], i) => (JSON.stringify(values[i] ?? null) === JSON.stringify(value) ? [] : [name]));
}
