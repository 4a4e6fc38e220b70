/** Exact laws of a release by counting words, as docs/format.md says; only tests need them. */
const N = 1n << 62n;
const ceil = (a, b) => (a + b - 1n) / b;

/** How many of the N words choose each of the user's positions. */
function chosen({ mine, counts }) {
  const total = counts.reduce((a, b) => a + b, 0n);
  let before = 0n;
  return mine.map((i, j) => {
    const k = counts[j];
    const words = ceil((before + k) * N, total) - ceil(before * N, total);
    before += k;
    return [i, words];
  });
}

/** All weights of a box: own ones and floors, and what is left, shared in proportion to the public law above the floors. */
function boxWeights({ solve, publicLaw }, box, user) {
  const { own, left } = solve(box, user);
  const weights = [...box.low];
  user.mine.forEach((i, j) => (weights[i] = own[j]));
  const rooms = publicLaw(box).map((one, i) => (user.mine.includes(i) ? 0n : one - box.low[i]));
  const room = rooms.reduce((a, b) => a + b, 0n);
  let before = 0n;
  return weights.map((weight, i) => {
    const start = before;
    before += rooms[i];
    return left ? weight + ceil(before * left, room) - ceil(start * left, room) : weight;
  });
}

/** A user without records is released as the public: as one who has the weights of the prior. */
export const everyone = ({ n, order, prior }) => {
  const even = (i) => ceil(BigInt(i + 1) * N, BigInt(n)) - ceil(BigInt(i) * N, BigInt(n));
  const counts = prior ? [...prior] : Array.from({ length: n }, (_, i) => even(i));
  if (order) order.forEach((i, j) => (counts[i] = prior[j]));
  return { mine: Array.from({ length: n }, (_, i) => i), counts };
};

/** Of a survey: every report by its question, written in digits. */
function surveyWeights({ base, reports, own, other }, user) {
  const weights = Array(reports).fill(0n);
  const sigma = BigInt(reports / base);
  const leading = [];
  for (let v = 1; leading.length < reports / base; v++) if (v.toString(base)[0] === "1") leading.push(v);
  for (const [i, words] of chosen(user))
    leading.forEach((v, s) => {
      const [a, b] = [v, i].map((x) => [...x.toString(base)].reverse().map((digit) => parseInt(digit, base)));
      const right = a.reduce((sum, digit, j) => sum + digit * (b[j] ?? 0), 0) % base;
      const chance = ceil(BigInt(s + 1) * N, sigma) - ceil(BigInt(s) * N, sigma);
      for (let r = 0; r < base; r++) weights[s * base + r] += words * chance * (r === right ? own : other);
    });
  return weights;
}

/** Over N^d, d being the number of words; in the order of the categories. */
export function law(client, ready, user) {
  if (ready.kind === "nearest") return client.nearestOf(ready, user);
  if (!user.mine.length) user = everyone(ready);
  if (ready.kind === "box") return boxWeights(client, ready, user);
  if (ready.kind === "survey") return surveyWeights(ready, user);
  const weights = Array(ready.n).fill(0n);
  for (const [i, words] of chosen(user)) {
    if (ready.kind === "response") {
      const { kept, own, other } = ready;
      const k = BigInt(kept.length);
      kept.forEach((place, j) => {
        const among = ceil(BigInt(j + 1) * N, k) - ceil(BigInt(j) * N, k);
        weights[place] += words * (!kept.includes(i) ? among : place === i ? own : other);
      });
      continue;
    }
    const { order, low, own, prior } = ready;
    const r = order.indexOf(i);
    const below = low.slice(0, r).reduce((a, b) => a + b, 0n);
    const passed = prior.slice(0, r + 1).reduce((a, b) => a + b, 0n);
    for (let j = 0; j < r; j++) weights[order[j]] += words * low[j] * N;
    weights[i] += words * own[r] * N;
    let before = 0n;
    for (let j = r + 1; j < ready.n; j++) {
      const end = before + prior[j];
      const tail = ceil(end * N, N - passed) - ceil(before * N, N - passed);
      weights[order[j]] += words * (N - below - own[r]) * tail;
      before = end;
    }
  }
  return weights;
}
