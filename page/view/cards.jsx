/** The cards of the explorer, in the order in which they are shown. */
import { useMemo, useState } from "preact/hooks";
import { TV, distanceOf, wasserstein } from "../src/distances.js";
import { samplerOf } from "../src/floors.js";
import { streamOf, visits } from "../src/stream.js";
import { halfWidth, surveyOf } from "../src/survey.js";
import { Card, Key, Row, Table, lower, upper, percent, three, whole } from "./parts.jsx";
import { SHORT, commands, python, typed } from "./commands.js";

/** Categories that a chart shows at once, and at most. */
const [IN_FRONT, MOST] = [10, 60];
const TAIL = 0.3;

const SENTENCES = {
  fitted: "which is fitted to people invented from the public data",
  minimax_kernel: "the paper's kernel, which needs one record of a person only",
  kernel_clip: "the paper's floor with the best law above it",
  prior_minimax: "which makes the best promise to everybody",
  blend: "half way between the paper's floor and a plain one",
  power_caps: "which lets rare categories be boosted more than common ones",
  relative_mollifier: "which lets every category be boosted and suppressed alike",
  local_minimax: "which is made for people not far from the public data",
  global_minimax: "which does not use the public data",
  randomized_response: "the truth, or any category by chance",
  rr_with_prior: "randomized response on the likeliest categories",
  nearest: "which takes what is nearest on the map",
};

/** The distance, in words: what it is on this page. */
const unitOf = (near) => (near ? "W1, in the units of the positions" : "total variation");

const WISHES = {
  oneRecord: "one-record: the device may look at one record only",
  sameForEverybody: "same-for-everybody: the best promise, not the best average",
  keepPrior: "keep-prior: a person equal to the public data releases exactly the public data",
};

export function Recommendation({ choice, row, recommended, limit, near, measured, users, fromUsers, options, setOptions }) {
  const weighed = (one) => one.mean + TAIL * one.maximum;
  const [best, second] = [choice.rows[choice.best], choice.rows[choice.runnerUp]];
  return (
    <Card title={recommended ? "Recommendation" : "The sampler you picked"} wide>
      {fromUsers && <p class="bad" role="note">These data look like records of people. If they are the users to be served, they are not public: a prior made from them reveals them.</p>}
      <p class="answer">
        At ε = {choice.epsilon} {recommended ? "use" : "you picked"} <b>{row.name}</b>, {SENTENCES[row.name]}.
        {!near && <> For people invented from the public data, {percent(row.mean)} of the releases differ from an honest draw from their own data, on average. Your users may differ.</>}
      </p>
      <dl class="facts">
        <div><dt>mean distance</dt><dd>{three(row.mean)}</dd><dd>of 1,200 invented people</dd></div>
        <div>
          <dt>promise to everybody</dt><dd>{row.worstCase === null ? "not known" : `≤ ${upper(row.worstCase)}`}</dd>
          <dd>the distance of any possible person{near ? "" : "; near 1, somebody may get nothing of their own"}</dd>
        </div>
        <div>
          <dt>limit</dt><dd>{limit ? `≥ ${lower(limit.lower)}` : "not computed"}</dd>
          <dd>{limit ? `mean + 0.3 × maximum of any private sampler that keeps the public data; this one has ${three(weighed(row))}` : `sottovoce ${near ? "compare --limit" : "choose"} computes it`}</dd>
        </div>
        {measured && <div><dt>mean distance of your users</dt><dd>{three(measured.mean)}</dd><dd>{whole.format(users)} people, at most {three(measured.maximum)}</dd></div>}
      </dl>
      <p class="soft">
        The distance ({unitOf(near)}) is 0 for a perfect draw from the person's own data{near ? "." : " and 1 where nothing is left of it."}{" "}
        {recommended ? second && <>Second is {second.name}, with mean {three(second.mean)} and maximum {three(second.maximum)} (here {three(row.mean)} and {three(row.maximum)}).</>
          : <>The recommendation is {best.name}, with mean {three(best.mean)} and maximum {three(best.maximum)} (here {three(row.mean)} and {three(row.maximum)}).</>}
      </p>
      <details>
        <summary>All samplers, and how the recommendation is made</summary>
        <p>
          Every sampler is measured on 1,200 people who are invented from the public data; no private data are looked at. The
          recommendation has the smallest mean + 0.3 × maximum: it serves most people well, and the worst-served not too badly. The
          promise (nobody-above) holds for everybody, whatever they have.
        </p>
        <Table
          caption={`Samplers at ε = ${choice.epsilon}`}
          head={["sampler", "mean", "median", "99th percentile", "maximum", "promise", "keeps the public data"]}
          rows={choice.rows.map((one) => [typed(one), three(one.mean), three(one.median), three(one.p99), three(one.maximum), three(one.worstCase), one.keepsPrior ? "yes" : "no"])}
          best={choice.best}
        />
      </details>
      <details class="no-print">
        <summary>Wishes: what the recommendation has to respect</summary>
        {Object.entries(WISHES).map(([name, text]) => (
          <label key={name} class="check"><input type="checkbox" checked={options[name]} onChange={(event) => setOptions({ ...options, [name]: event.currentTarget.checked })} /> {text}</label>
        ))}
      </details>
    </Card>
  );
}

/** The person's own categories first, the largest first, then the others by their public share. */
function orderOf(counts, q) {
  const own = [...counts.keys()].sort((i, j) => counts.get(j) - counts.get(i) || i - j);
  const others = Array.from(q.keys()).filter((i) => !counts.has(i)).sort((i, j) => q[j] - q[i] || i - j);
  return [own, [...own, ...others]];
}

const asText = (counts, categories) => [...counts].map(([i, count]) => `${categories[i]}: ${count}`).join("\n");

/** Counts from lines such as "War: 3". */
function parsed(text, categories) {
  const exact = new Map(categories.map((name, i) => [String(name), i]));
  const loose = new Map(categories.map((name, i) => [String(name).trim().toLowerCase(), i]));
  const find = (name) => exact.get(name) ?? loose.get(name.trim().toLowerCase());
  const counts = new Map();
  for (const line of text.split("\n").filter((one) => one.trim())) {
    const [, name, amount] = /^(.*?)(?:\s*[:=,\t]?\s*([\d.]+))?\s*$/.exec(line);
    const whole = find(line);
    const i = whole ?? find(name);
    if (i === undefined) throw new Error(`"${name.trim() || line}" is no category of the public data`);
    const count = whole !== undefined || amount === undefined ? 1 : Number(amount);
    if (!(count > 0 && count < Infinity)) throw new Error(`"${line}": write a category and a number above 0`);
    counts.set(i, (counts.get(i) ?? 0) + count);
  }
  if (!counts.size) throw new Error("write at least one category");
  return counts;
}

export function Person({ group, counts, person, people, setPerson, q }) {
  const [problem, setProblem] = useState("");
  const [own] = orderOf(counts, q);
  const most = Math.max(...counts.values());
  const set = (i, count) => {
    const changed = new Map(counts);
    if (count > 0) changed.set(i, count);
    else if (changed.size > 1) changed.delete(i);
    setPerson({ kind: "typed", counts: changed });
    setProblem("");
  };
  const write = (text) => {
    try {
      setPerson({ kind: "typed", counts: parsed(text, group.categories) });
      setProblem("");
    } catch (wrong) {
      setProblem(wrong.message);
    }
  };
  const numbered = person.kind !== "typed";
  return (
    <Card title="One person">
      <p class="soft">{person.kind === "user" ? "A person of your table" : person.kind === "typed" ? "A person as you typed them" : "An invented person"}: their records stay on their device.</p>
      <div class="line">
        <label class="field"><span>{people.length ? "person of the table" : "invented person"}</span>
          <input type="number" min={1} max={people.length || 1200} value={numbered ? person.number + 1 : ""} placeholder="1"
            onInput={(event) => {
              const number = Math.round(event.currentTarget.valueAsNumber) - 1;
              const last = (people.length || 1200) - 1;
              if (number >= 0 && number <= last) setPerson({ kind: people.length ? "user" : "invented", number });
            }} />
        </label>
        <label class="field"><span>add a category</span>
          <select value="" onChange={(event) => { if (event.currentTarget.value !== "") set(Number(event.currentTarget.value), 1 + (counts.get(Number(event.currentTarget.value)) ?? 0)); event.currentTarget.value = ""; }}>
            <option value="">choose…</option>
            {group.categories.slice(0, 2000).map((name, i) => <option key={i} value={i}>{String(name).slice(0, 60)}</option>)}
            {group.categories.length > 2000 && <option disabled>the others can be typed below</option>}
          </select>
        </label>
      </div>
      {own.slice(0, IN_FRONT).map((i) => (
        <Row key={i} name={String(group.categories[i])} label={`${counts.get(i)} records`} scale={(x) => x / most} marks={[{ kind: "bar", from: 0, to: counts.get(i) }]}>
          <div class="value">
            {counts.get(i)}{" "}
            <button class="small" aria-label={`one ${group.categories[i]} less`} onClick={() => set(i, counts.get(i) - 1)}>−</button>{" "}
            <button class="small" aria-label={`one ${group.categories[i]} more`} onClick={() => set(i, counts.get(i) + 1)}>+</button>
          </div>
        </Row>
      ))}
      {own.length > IN_FRONT && <p><small>and {own.length - IN_FRONT} more categories</small></p>}
      <details>
        <summary>Type a person</summary>
        <label><span class="soft">A category and a number in each line</span>
          <textarea key={asText(counts, group.categories)} rows={6} defaultValue={asText(counts, group.categories)} onChange={(event) => write(event.currentTarget.value)} />
        </label>
        {problem && <p class="bad" role="alert">{problem}</p>}
      </details>
    </Card>
  );
}

/** A category drawn from a law. */
function drawn(law) {
  const [high, low] = crypto.getRandomValues(new Uint32Array(2));
  let left = (high * 2 ** 21 + (low >>> 11)) / 2 ** 53;
  for (let i = 0; i < law.length; i++) if ((left -= law[i]) < 0) return i;
  return law.findLastIndex((x) => x > 0);
}

const root = (x) => Math.sqrt(Math.max(x, 0));

export function Leaves({ group, sampler, user, counts, law, q, distance, near }) {
  const [answers, setAnswers] = useState([]);
  const key = `${sampler.name} ${sampler.epsilon} ${group.name} ${[...counts].join()}`;
  const shown = answers.key === key ? answers : [];
  const [own, order] = orderOf(counts, q);
  const cap = (i) => Math.min(sampler.a * sampler.floor[i], 1);
  const first = order.slice(0, q.length <= 2 * IN_FRONT ? q.length : Math.max(Math.min(own.length, IN_FRONT), 3));
  const rest = order.slice(first.length, MOST);
  const most = root(Math.max(...[...first, ...rest].map((i) => Math.max(cap(i), user.p[i], q[i], law[i]))));
  const row = (i) => (
    <Row
      key={i}
      name={String(group.categories[i])}
      label={`released with ${percent(law[i])}; between ${percent(sampler.floor[i])} and ${percent(cap(i))} for everybody; own data ${percent(user.p[i])}, public ${percent(q[i])}`}
      value={percent(law[i])}
      scale={(x) => root(x) / most}
      marks={[
        { kind: "band", from: sampler.floor[i], to: cap(i) },
        { kind: "tick", from: q[i] },
        ...(user.p[i] > 0 ? [{ kind: "own", from: user.p[i] }] : []),
        { kind: "released", from: law[i] },
      ]}
    />
  );
  const draw = (times) => setAnswers(Object.assign([...shown, ...Array.from({ length: times }, () => group.categories[drawn(law)])].slice(-40), { key }));
  return (
    <Card title="What may leave their device" tall>
      <p>
        One category, drawn with the chances of the blue diamonds. For <b>every</b> person each chance lies in its bar, whose ends differ
        by a factor of at most e<sup>ε</sup>: that is the privacy. The distance of this person is <b class="number">{three(distance)}</b>{near ? "" : ` (${percent(distance)})`}.
      </p>
      {first.map(row)}
      {rest.length > 0 && (
        <details>
          <summary>{rest.length} more categories{order.length > MOST ? ` (${whole.format(order.length - MOST)} are not drawn)` : ""}</summary>
          {rest.map(row)}
        </details>
      )}
      <Key marks={{ released: "released", own: "own data", band: "allowed for everybody", tick: "public share" }} />
      <p><small>Square-root scale.</small></p>
      <div class="line no-print">
        <button class="first" onClick={() => draw(1)}>release one category</button>
        <button onClick={() => draw(10)}>ten times, as an experiment</button>
      </div>
      <ul class="tiles" aria-label="released categories" aria-live="polite">{shown.map((name, i) => <li key={i}>{name}</li>)}</ul>
      {shown.length > 1 && <p><small>Each of these would cost ε = {sampler.epsilon} again: {shown.length} of them {(shown.length * sampler.epsilon).toFixed(1)}. A stream, below, costs ε once.</small></p>}
    </Card>
  );
}

const [WIDTH, HEIGHT, LEFT, BOTTOM] = [560, 250, 44, 34];

/** Distances over ε: the mean, the promise, and the limit where it is known. */
export function Frontier({ points, epsilon, limits, near, total }) {
  const last = Math.max(...total);
  const values = points.flatMap(({ row }) => [row.mean, row.worstCase ?? 0]);
  const most = near ? Math.max(...values, 1e-9) : 1;
  const x = (one) => LEFT + ((WIDTH - LEFT - 8) * one) / last;
  const y = (one) => 8 + (HEIGHT - BOTTOM - 8) * (1 - one / most);
  const line = (key) => points.filter(({ row }) => row[key] !== null).map(({ epsilon: e, row }) => `${x(e)},${y(row[key])}`).join(" ");
  const known = (limits ?? []).map((each) => [each.epsilon, each.mean]);
  return (
    <Card title="What another ε would give">
      <p>
        A larger ε tells more about the person and brings the released category nearer to their own data. The lines are the
        recommendation of each ε.
      </p>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`Distance over ε, for ${points.length} values of ε; the table below has the numbers`}>
        {[0, 0.25, 0.5, 0.75, 1].map((part) => (
          <g key={part}>
            <line class="grid" x1={LEFT} x2={WIDTH - 8} y1={y(part * most)} y2={y(part * most)} />
            <text x={LEFT - 6} y={y(part * most) + 4} text-anchor="end">{near ? (part * most).toPrecision(2) : part}</text>
          </g>
        ))}
        {[0, 2, 4, 6, 8, 10].filter((one) => one <= last).map((one) => <text key={one} x={x(one)} y={HEIGHT - 14} text-anchor="middle">{one}</text>)}
        <text x={(LEFT + WIDTH) / 2} y={HEIGHT} text-anchor="middle">ε</text>
        <line class="here" x1={x(epsilon)} x2={x(epsilon)} y1={8} y2={HEIGHT - BOTTOM} />
        <polyline class="curve worst" points={line("worstCase")} />
        <polyline class="curve mean" points={line("mean")} />
        {known.map(([e, mean]) => <circle key={e} class="dot" cx={x(e)} cy={y(mean)} r={4} />)}
      </svg>
      <ul class="key">
        <li><svg viewBox="0 0 24 10" style={{ width: "24px" }} aria-hidden="true"><line class="curve mean" x1={0} x2={24} y1={5} y2={5} /></svg>mean of invented people</li>
        <li><svg viewBox="0 0 24 10" style={{ width: "24px" }} aria-hidden="true"><line class="curve worst" x1={0} x2={24} y1={5} y2={5} /></svg>promise to everybody</li>
        {known.length > 0 && <li><svg viewBox="0 0 10 10" style={{ width: "10px" }} aria-hidden="true"><circle class="dot" cx={5} cy={5} r={4} /></svg>mean of the sampler with the least possible mean + 0.3 × maximum</li>}
      </ul>
      <details>
        <summary>The numbers</summary>
        <Table caption="Recommendations by ε" head={["ε", "sampler", "mean", "maximum", "promise"]}
          rows={points.map(({ epsilon: e, row }) => [String(e), row.name, three(row.mean), three(row.maximum), three(row.worstCase)])} />
      </details>
      {points.length < total.length && <p><small>{total.length - points.length} values of ε are still being computed.</small></p>}
    </Card>
  );
}

export function Stream({ group, q, user, epsilon, horizon, setHorizon, near }) {
  const [round, setRound] = useState(0);
  const measure = useMemo(() => (near ? wasserstein(near) : TV), [near]);
  const { made, problem } = useMemo(() => {
    try {
      return { made: visits(streamOf(q, epsilon, horizon, near), user, horizon, measure) };
    } catch (wrong) {
      return { problem: wrong.message };
    }
  }, [q, epsilon, horizon, user, round]);
  const mean = made && made.reduce((before, one) => before + one.distance, 0) / horizon;
  const split = useMemo(() => distanceOf(samplerOf("relative_mollifier", q, epsilon / horizon), user, measure), [q, epsilon, horizon, user]);
  return (
    <Card title="Many visits, one ε">
      <p>
        A stream carries what was spent from one release to the next: all releases of a lifetime together cost <b>one</b> ε, not one
        each. What is left shrinks and grows with what happens to be released.
      </p>
      <label class="field"><span>visits planned (horizon): <b class="number">{horizon}</b></span>
        <input type="range" min={1} max={52} value={horizon} onInput={(event) => setHorizon(event.currentTarget.valueAsNumber)} />
      </label>
      {problem ? <p class="bad" role="alert">{problem}</p> : (
        <>
          <p>
            In these {horizon} visits the mean distance of this person is <b class="number">{three(mean)}</b>. If ε were split evenly, with
            ε = {Number((epsilon / horizon).toPrecision(2))} for each visit, it would be <b class="number">{three(split)}</b> (relative_mollifier).
          </p>
          <Table caption="Visits" head={["visit", "released", "distance", "left"]}
            rows={made.map(({ category, distance, room }, k) => [String(k + 1), String(group.categories[category]), three(distance), percent(room)]).slice(0, 20)} />
          {horizon > 20 && <p><small>The first 20 are shown. Once nothing is left, the public data are released.</small></p>}
          <div class="line no-print"><button onClick={() => setRound(round + 1)}>draw the visits again</button></div>
        </>
      )}
    </Card>
  );
}

const REPORTS = [100, 300, 1000, 3000, 10000, 30000, 100000, 300000, 1000000];

export function Collector({ group, q, epsilon, row }) {
  const [chosen, setChosen] = useState(4);
  const reports = REPORTS[chosen];
  const survey = useMemo(() => surveyOf(q.length, epsilon), [q.length, epsilon]);
  const order = useMemo(() => Array.from(q.keys()).sort((i, j) => q[j] - q[i] || i - j).slice(0, IN_FRONT), [q]);
  const half = new Map(order.map((i) => [i, halfWidth(q[i], reports, q.length, survey, epsilon)]));
  const most = 1.02 * Math.min(1, Math.max(...order.map((i) => q[i] + half.get(i))));
  const told = order.filter((i) => q[i] > half.get(i)).length;
  const widest = Math.max(...half.values());
  return (
    <Card title="What a collector learns">
      <p>
        If the shares of the categories are what you want, ask people with a <b>survey</b>: one private report each,
        {survey.base === null ? " a category by randomized response" : ` the answer to a random question, one of ${survey.base}`}. Its reports are made to be counted.
      </p>
      <label class="field"><span>reports: <b class="number">{whole.format(reports)}</b></span>
        <input type="range" min={0} max={REPORTS.length - 1} value={chosen} aria-valuetext={`${whole.format(reports)} reports`} onInput={(event) => setChosen(event.currentTarget.valueAsNumber)} />
      </label>
      <p>
        {widest >= 1 ? <b>So few reports at this ε tell nothing.</b>
          : <>If the population were like the public data, these {order.length} largest shares would become known within <b class="number">± {percent(widest)}</b> or better (95 %), and {told} of them would stand out from zero.</>}
      </p>
      {order.map((i) => (
        <Row key={i} name={String(group.categories[i])} label={`public share ${percent(q[i])}, known within ± ${percent(half.get(i))}`} value={<>{percent(q[i])}<small>± {percent(half.get(i))}</small></>} scale={(x) => x / most}
          marks={[{ kind: "band", from: Math.max(q[i] - half.get(i), 0), to: Math.min(q[i] + half.get(i), 1) }, { kind: "tick", from: q[i] }]} />
      ))}
      <Key marks={{ tick: "a share as in the public data", band: "where its estimate falls" }} />
      <p><small>Releases of {row.name} are for personalising: a collector may count them too, but then learns what was released, not what people have{row.name.endsWith("kernel") || row.name === "randomized_response" ? ", unless it undoes the kernel (sottovoce estimate)" : ""}.</small></p>
    </Card>
  );
}

/** Text that can be copied. */
function Copied({ title, text }) {
  const [copied, setCopied] = useState("");
  const copy = () => navigator.clipboard.writeText(text).then(() => setCopied(text), () => setCopied(""));
  return (
    <>
      <div class="line copied"><h3>{title}</h3> <button class="small no-print" aria-label={`copy: ${title}`} onClick={copy}>{copied === text ? "copied" : "copy"}</button></div>
      <pre>{text}</pre>
    </>
  );
}

/** Save a text as a file. */
export function save(text, name, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export function Take({ data, group, choice, row, recommended, options, counts, horizon, savePage }) {
  const { mechanism } = data;
  const ready = mechanism && recommended && mechanism.epsilon === choice.epsilon && mechanism.samplers[group.name] === row.name;
  return (
    <Card title="Take it with you" wide>
      {ready ? (
        <p><button class="first" onClick={() => save(mechanism.text, "mechanism.json", "application/json")}>download mechanism.json</button> <small>The certified file of the recommendation at ε = {choice.epsilon}{data.groups.length > 1 ? ", for all groups" : ""}: integers and a certificate, for every client.</small></p>
      ) : <p class="soft">A certified mechanism file is made by Python: the second command writes it.{mechanism && ` This page holds that of the recommendation at ε = ${mechanism.epsilon}.`}</p>}
      <p class="no-print"><button onClick={savePage}>save this page as one file</button> <small>with the public data{data.groups.some((one) => one.users) ? " and the users" : ""}.</small></p>
      {data.source.note && <p class="soft">{data.source.note}</p>}
      {commands(data.source, { epsilon: choice.epsilon, row, recommended, options, horizon }).map(({ title, command }) => <Copied key={title} title={title} text={command} />)}
      {(!data.geometry || group.categories.length <= SHORT) && <Copied title="In Python" text={python({ ...data, group, epsilon: choice.epsilon, row, recommended, options, counts })} />}
    </Card>
  );
}

/** What a demo or an analysis measured: tables that came with the page. Cells may break inside, at a mark. */
export const Results = ({ results }) => results.map(({ title, words, head, rows }) => (
  <Card key={title} title={title} wide>
    <p>{words}</p>
    <Table caption={title} head={head} rows={rows.map((row) => row.map((cell) => `${cell}`.replaceAll(/[/_(=]/g, "$&\u200b")))} />
  </Card>
));
