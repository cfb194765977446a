// What is wrong with a spec that begins with weights which are there already; the same as weights_faults of texelgrad/spec_weights.py.

/** @param {any} spec validated field by field @param {(field: string, value: unknown, message: string) => void} fault */
export function weightsFaults({ fine_tune: tune, predict, model, data }, fault) {
  if (tune === null) {
    if (data.normalize === "inherit") fault("data.normalize", "inherit", "needs weights to begin with; legal: none, standard or minmax; or fine_tune");
    return;
  }
  if (predict !== null) fault("fine_tune", undefined, "a job trains or predicts; legal: null with predict");
  if (tune.job !== null && tune.weights !== null) fault("fine_tune", undefined, "takes one of job and weights");
  const names = model.layers.map((/** @type {any} */ layer) => layer.name);
  (tune.layers ?? []).forEach((/** @type {string} */ name, /** @type {number} */ i) => {
    if (!names.includes(name)) fault(`fine_tune.layers.${i}`, name, `is no layer of this model; legal: ${names.join(", ")}`);
  });
}
