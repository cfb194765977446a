// loss: the loss of a row and its gradient with respect to the logits, where a fragment sees all that they need:
// one texel with the whole row, or a loss that treats each output alone. LOSS is one of the numbers below.
// Lanes and rows are loops, not vector operations: inlined 16 times, exp and log1p take a software renderer a second to compile.
#include "lib/labels.glsl"
#include "lib/lane.glsl"
#include "lib/math.glsl"
#define BCE 1
#define MSE 2
#define SOFTMAX_CROSS_ENTROPY 3
#define MAE 4
#define HUBER 5
#define HINGE 6

struct RowLoss {
  float loss;     // this texel's part of the row's loss
  float correct;  // this texel's part of the row's accuracy
  vec4 grad;      // d loss / d z; lanes past the last column hold anything
};

// Over the lanes of a texel; of one lane no loop, nor what takes a lane out and puts it back.
#if CHANNELS == 1
#define EACH_LANE const int c = 0;
#else
#define EACH_LANE for (int c = 0; c < lanesOf(column4); c++)
#endif
int lanesOf(int column4) { return min(4, CHANNELS - 4 * channelTexel(column4)); }

// Of what is neither above nor below 0 itself: 0, or NaN, which the built-in sign may hide.
float signOf(float x) { return x > 0. ? 1. : x < 0. ? -1. : x; }

#if LOSS == BCE
RowLoss rowLoss(vec4 z, vec4 target, int column4) {
  const float mean = 1. / float(COLUMNS);
  RowLoss r = RowLoss(0., 0., vec4(0.));
#ifdef WEIGHTED
  vec4 weights = classWeights(column4);
#endif
  EACH_LANE {
    float x = laneOf(z, c), y = laneOf(target, c), e = tg_exp(-abs(x));
    float yes = smoothed(y, 2.), no = smoothed(1. - y, 2.);
#ifdef WEIGHTED
    yes *= laneOf(weights, c);
#endif
    // Not softplus(z) - y z: for y = 1 that subtracts two equal numbers where z is large.
    r.loss += (yes * tg_relu(-x) + no * tg_relu(x) + (yes + no) * tg_log1p_unit(e)) * mean;
    r.correct += (x > 0.) == (y > .5) ? mean : 0.;
    // (1 - y) sigmoid(z) - y sigmoid(-z), not sigmoid(z) - y: for y = 1 that cancels where z is large.
    float up = (x < 0. ? e : 1.) / (1. + e), down = (x < 0. ? 1. : e) / (1. + e);
    r.grad = withLane(r.grad, c, (no * up - yes * down) * mean);
  }
  return r;
}
#elif LOSS == MAE || LOSS == HUBER
RowLoss rowLoss(vec4 z, vec4 target, int column4) {
  const float mean = 1. / float(COLUMNS);
  RowLoss r = RowLoss(0., 0., vec4(0.));
  EACH_LANE {
    float d = laneOf(z, c) - laneOf(target, c), size = abs(d);
#if LOSS == MAE
    r.loss += size * mean;
    r.grad = withLane(r.grad, c, signOf(d) * mean);
#else
    r.loss += (size <= DELTA ? .5 * d * d : DELTA * (size - .5 * DELTA)) * mean;
    r.grad = withLane(r.grad, c, (size <= DELTA ? d : DELTA * signOf(d)) * mean);
#endif
  }
  return r;
}
#elif LOSS == HINGE
// Targets of 0 or -1 are the one class, of 1 the other.
RowLoss rowLoss(vec4 z, vec4 target, int column4) {
  const float mean = 1. / float(COLUMNS);
  RowLoss r = RowLoss(0., 0., vec4(0.));
  EACH_LANE {
    float x = laneOf(z, c), y = laneOf(target, c), side = y > .5 ? 1. : -1., margin = 1. - side * x;
    r.loss += tg_relu(margin) * mean;
    r.correct += (x > 0.) == (y > .5) ? mean : 0.;
    r.grad = withLane(r.grad, c, margin > 0. ? -side * mean : 0.);
  }
  return r;
}
#elif LOSS == MSE
RowLoss rowLoss(vec4 z, vec4 target, int column4) {
  const float mean = 1. / float(COLUMNS);
  RowLoss r = RowLoss(0., 0., vec4(0.));
  EACH_LANE {
    float d = laneOf(z, c) - laneOf(target, c);
    r.loss += d * d * mean;
    r.grad = withLane(r.grad, c, 2. * d * mean);
  }
  return r;
}
#elif LOSS == SOFTMAX_CROSS_ENTROPY
// COLUMNS <= 4. loss = sum_n y_n (logsumexp(z) - z_n); see lib/softmax.glsl for how no terms cancel.
RowLoss rowLoss(vec4 z, vec4 given, int column4) {
#if LABELS == LABELS_INDEX
  vec4 y = vec4(equal(ivec4(0, 1, 2, 3), ivec4(int(given.x))));  // class numbers lie in the first lane
#else
  vec4 y = given;
#endif
  // The first largest logit is the prediction, the first largest target the class.
  int predicted = 0, wanted = 0;
  for (int c = 1; c < COLUMNS; c++) {
    predicted = laneOf(z, c) > laneOf(z, predicted) ? c : predicted;
    wanted = laneOf(y, c) > laneOf(y, wanted) ? c : wanted;
  }
#ifdef WEIGHTED
  vec4 weights = classWeights(0);
#endif
  // Subtract the row maximum: exp overflows float32 above 88.7.
  float top = laneOf(z, predicted), rest = 0., weight = 0., toward = 0.;
  vec4 e = vec4(0.);
  for (int c = 0; c < COLUMNS; c++) {
    float x = laneOf(z, c), power = tg_exp(x - top), target = smoothed(laneOf(y, c), float(COLUMNS));
#ifdef WEIGHTED
    target *= laneOf(weights, c);
#endif
    e = withLane(e, c, power);
    y = withLane(y, c, target);
    rest += c == predicted ? 0. : power;
    weight += target;
    toward += target * (top - x);
  }
  return RowLoss(weight * tg_log1p(rest) + toward, float(predicted == wanted), ((e * weight - y) - y * rest) / (1. + rest));
}
#endif
