/** Boxes whose knots crowd around one value, and a target that puts m among them: the rare paths of step 2. */
const N = 1n << 62n;
const below = (bound) => BigInt(Math.floor(Math.random() * Number(bound))); // tests only: nothing is released

/** What `solve` says in step 2 must solve the equation: Σ x = N, and x = clamp(m·prior) for one m. Yields complaints. */
export function* crowded({ solve, rounded, prepareBox, drawBox }, count) {
  for (let round = 0; round < count; round++) {
    const n = 3 + (round % 6);
    const prior = Array.from({ length: n }, () => (N >> 5n) + below(1n << 50n));
    const grid = prepareBox({ low: prior, high: prior, prior, n }).grid;
    const crowd = (one) => (one * 3n) / 4n + ((one >> grid) * below(6000n)) / 1000n; // knots within six cells
    const low = prior.map(crowd);
    const high = low.map((one, i) => (round % 2 ? crowd(prior[i]) : one * 2n)).map((one, i) => (one > low[i] ? one : low[i]));
    const floors = low.slice(1).reduce((a, b) => a + b);
    const caps = high.slice(1).reduce((a, b) => a + b);
    const share = prior.slice(1).reduce((a, b) => a + (b >> grid)) * 6n;
    const target = floors + 1n + below(caps - floors < share ? caps - floors : share);
    if (target > caps) continue;
    high[0] = N - target;
    const box = { low, high, prior, n };
    box.low[0] = 1n;
    box.ready = prepareBox(box);
    const { all } = solve(box, { mine: [0], counts: [1n] });
    if (!all) {
      yield `round ${round}: not step 2`;
      continue;
    }
    const [state, [top, bottom]] = all;
    const weights = rounded(prior, low, high, all, N);
    if (weights.reduce((a, b) => a + b) !== N) yield `round ${round}: not one`;
    for (let i = 1; i < n; i++) {
      const x = top * prior[i];
      if (state[i] === 1 ? x < low[i] * bottom || x > high[i] * bottom : top && (state[i] ? x < high[i] * bottom : x > low[i] * bottom))
        yield `round ${round}: position ${i} is in a wrong state`;
    }
    let end = 0n;
    for (const [i, weight] of weights.entries()) {
      const words = weight ? [end, end + weight - 1n, end + weight / 2n] : [];
      end += weight;
      for (const word of words) if (drawBox(box, { mine: [0], counts: [1n] }, [word]) !== i) yield `round ${round}: word ${word}`;
    }
  }
}
