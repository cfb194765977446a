// schedules.js: the learning rate of step t, counted from 0, of `total` steps.

/** @type {Record<string, (options: {lr: number, min_lr?: number}, t: number, total: number) => number>} */
export const schedules = {
  constant: ({ lr }) => lr,
  // half a cosine from lr at t = 0 towards min_lr at t = total, which the last step, total - 1, does not quite reach
  cosine: ({ lr, min_lr = 0 }, t, total) => min_lr + ((lr - min_lr) * (1 + Math.cos((Math.PI * t) / total))) / 2,
};
