// Places: what the engine calls that which it keeps beside the tensors of a plan. Every name holds a space, which no name in a spec may.

/** Where the norm of each step in flight waits for the telemetry. */
export const STEP_NORMS = "norms of steps";
/** What the last layer makes of the staging rows. */
export const OUTPUTS = "outputs of the network";
/** Row numbers, by which rows of the data set are gathered; no input is called so. */
const ORDER = "order of rows";

/** @typedef {"data"|"epoch"|"stage"} Where the data set, batches that are trained on, rows that are evaluated or predicted */

/** What is fed, by the name of its tensor, in one of the textures through which it comes. @param {Where} where @param {string} name */
export const fedAt = (where, name) => `${where} of ${name}`;

/** The order of the rows that are gathered there. @param {"epoch"|"stage"} where */
export const orderAt = (where) => fedAt(where, ORDER);
