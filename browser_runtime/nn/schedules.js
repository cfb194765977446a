// Learning-rate schedules: the rate of step t, counted from 0, of `total` steps.

/**
 * @param {{lr: number, schedule: {type: string, min_lr?: number}}} optimizer
 * @param {number} t
 * @param {number} total
 * @returns {number}
 */
export function learningRate({ lr, schedule }, t, total) {
  switch (schedule.type) {
    case "constant":
      return lr;
    case "cosine": {
      const low = schedule.min_lr ?? 0;
      return low + ((lr - low) * (1 + Math.cos((Math.PI * t) / total))) / 2;
    }
    default:
      throw new Error(`unknown schedule ${schedule.type}`);
  }
}
