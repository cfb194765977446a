// diagnostics_probe.js: how the precision report compares, and what is said of a run that diverged, for test_diverged.py.
import { compare as compared } from "../../browser_runtime/train/diagnostics.js";
import { divergence } from "../../browser_runtime/train/divergence.js";

/** @param {{data: ArrayLike<number>}} got @param {{data: ArrayLike<number>}} wanted */
export const compare = (got, wanted) => compared(Float64Array.from(got.data), Float64Array.from(wanted.data));

export { divergence };
