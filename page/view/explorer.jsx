/** The explorer: state, controls and the order of the cards. Everything is computed in this page, and nothing is sent. */
import { render } from "preact";
import { useEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";
import { TV, distanceOf, wasserstein } from "../src/distances.js";
import { lawOf, userOf } from "../src/laws.js";
import { priorOf } from "../src/numbers.js";
import { Collector, Frontier, Leaves, Person, Recommendation, Results, Stream, Take, save } from "./cards.jsx";
import { typed } from "./commands.js";
import { engine, samplerFrom, work } from "./engine.js";
import { Dropped } from "./dropped.jsx";

/** As in the library's choose: 0.25 to 2 in quarters, then to 10 in halves. */
const GRID = [...Array.from({ length: 8 }, (_, k) => (k + 1) / 4), ...Array.from({ length: 16 }, (_, k) => (k + 5) / 2)];
const EXAMPLE = {
  source: { prior: "prior.csv", item: "item", by: null },
  groups: [{ name: "all", categories: ["Comedy", "Drama", "War", "Western"], weights: [2300, 4012, 120, 35] }],
  epsilon: 2,
};

/** State that the address holds: nothing private, and nothing typed. */
function fromAddress(data) {
  const given = new URLSearchParams(location.hash.slice(1) || data.state);
  const epsilon = Number(given.get("epsilon"));
  const group = Number(given.get("group")) - 1;
  const person = Math.floor(Number(given.get("person")));
  return {
    epsilon: epsilon > 0 && epsilon <= 100 ? epsilon : data.epsilon,
    group: data.groups[group] ? group : 0,
    sampler: given.get("sampler"),
    options: { oneRecord: given.has("one-record"), sameForEverybody: given.has("same-for-everybody"), keepPrior: !given.has("any-prior") },
    number: person >= 1 && person <= 1200 ? person - 1 : 3,
  };
}

/** The same as a text; groups and people by their numbers, because their names may be private. */
function asFragment({ epsilon, group, sampler, options, person }, data) {
  const given = new URLSearchParams({ epsilon });
  if (data.groups.length > 1) given.set("group", group + 1);
  if (sampler) given.set("sampler", sampler);
  if (person.kind === "invented") given.set("person", person.number + 1);
  if (options.oneRecord) given.set("one-record", "");
  if (options.sameForEverybody) given.set("same-for-everybody", "");
  if (!options.keepPrior) given.set("any-prior", "");
  return String(given);
}

const firstPerson = (data, group, number) => (data.groups[group].users?.length ? { kind: "user", number: 0 } : { kind: "invented", number });

function Explorer({ start, source }) {
  const [data, setData] = useState(start);
  const begin = useMemo(() => fromAddress(start), []);
  const [epsilon, setEpsilon] = useState(begin.epsilon);
  const [groupAt, setGroupAt] = useState(begin.group);
  const [sampler, setSampler] = useState(begin.sampler);
  const [options, setOptions] = useState(begin.options);
  const [person, setPerson] = useState(() => firstPerson(start, begin.group, begin.number));
  const [horizon, setHorizon] = useState(12);
  const [, again] = useReducer((count) => count + 1, 0);
  const computing = useRef();
  computing.current ??= engine(again);

  const group = data.groups[groupAt];
  const q = useMemo(() => (data.exact ? Float64Array.from(group.weights) : priorOf(group.weights)), [group]);
  const near = data.geometry;
  useMemo(() => computing.current.about({ q: [...q], geometry: near, users: group.users }), [q, near, group]);

  const other = GRID.includes(epsilon) ? data.epsilon : epsilon;
  const grid = useMemo(() => [...new Set([...GRID, data.epsilon, other])].sort((a, b) => a - b), [data.epsilon, other]);
  const question = (e) => ({ kind: "choose", epsilon: e, options });
  const asked = computing.current.known(question(epsilon));
  const last = useRef();
  // Until the answer is there, everything shows the last one of the same data: numbers change together.
  if (asked?.answer) last.current = { q, choice: asked.answer };
  const choice = last.current?.q === q ? last.current.choice : undefined;
  const row = choice && (choice.rows.find((each) => typed(each) === sampler) ?? choice.rows[choice.best]);
  const recommended = choice && row === choice.rows[choice.best];
  const whoAsked = { kind: "person", number: person.number };
  const records = person.kind === "typed" ? [...person.counts] : person.kind === "user" ? group.users[person.number] : computing.current.known(whoAsked)?.answer;
  const measuring = choice && group.users?.length ? { kind: "measure", epsilon: choice.epsilon, row: { name: row.name, options: row.options } } : null;

  useEffect(() => {
    const ahead = grid.toSorted((a, b) => Math.abs(a - epsilon) - Math.abs(b - epsilon)).map(question);
    computing.current.want([question(epsilon), ...(person.kind === "invented" ? [whoAsked] : []), ...(measuring ? [measuring] : []), ...ahead]);
  });
  const fragment = asFragment({ epsilon, group: groupAt, sampler, options, person }, data);
  useEffect(() => {
    try {
      if (!data.dropped) history.replaceState(null, "", `#${fragment}`);
    } catch {
      // An embedded page may have no address of its own.
    }
  }, [fragment]);
  useEffect(() => {
    const listen = () => {
      const given = fromAddress(data);
      setEpsilon(given.epsilon);
      setGroupAt(given.group);
      setSampler(given.sampler);
      setOptions(given.options);
    };
    addEventListener("hashchange", listen);
    return () => removeEventListener("hashchange", listen);
  }, [data]);

  const made = useMemo(() => choice && samplerFrom({ ...row, options: { ...row.options, geometry: near } }, q, choice.epsilon), [q, near, choice, row]);
  const key = records?.join();
  const { user, counts } = useMemo(() => (records ? { user: userOf(records, q.length), counts: new Map(records) } : {}), [q, key]);
  const law = useMemo(() => made && user && lawOf(made, user), [made, user]);
  const distance = useMemo(() => made && user && distanceOf(made, user, near ? wasserstein(near) : TV), [made, user]);

  const points = grid.flatMap((e) => {
    const known = computing.current.known(question(e))?.answer;
    return known ? [{ epsilon: e, row: known.rows[known.best] }] : [];
  });
  const replaceData = (changed, at = 0) => {
    setData(changed);
    setGroupAt(at);
    setSampler(null);
    setPerson(firstPerson(changed, at, 3));
  };
  const savePage = () => save(withData(source, { ...data, state: fragment }), "sottovoce.html", "text/html");

  const factor = Math.exp(epsilon).toLocaleString("en", { maximumSignificantDigits: 3, roundingMode: "ceil" });

  return (
    <>
      <header>
        <h1>What one private answer costs</h1>
        <p class="lead">
          Each person keeps their own data and releases <b>one</b> category: a film genre, a website, a place. It should look like a draw from
          their own data, and yet tell little about them: no answer is more than <b class="number">{factor}</b> times likelier from one person than
          from another. That factor is set below, by <b>ε</b>. Public data, such as a survey, help to answer well.
        </p>
        {data.includesUsers && <p class="bad" role="note">This page holds private data: {data.includesUsers}. Do not pass it on.</p>}
        <p class="soft">Everything is computed in this page. It sends nothing and fetches nothing.</p>
      </header>
      <Dropped data={data} setData={replaceData} />
      <nav class="controls" aria-label="Controls">
        <label><span>epsilon (ε) <b class="number">{epsilon}</b>: at most e<sup>ε</sup> = {factor} times likelier</span>
          <input type="range" min={0} max={grid.length - 1} value={grid.indexOf(epsilon)} aria-valuetext={`epsilon ${epsilon}`} onInput={(event) => setEpsilon(grid[event.currentTarget.valueAsNumber])} />
        </label>
        <label><span>sampler</span>
          <select value={choice?.rows.some((each) => typed(each) === sampler) ? sampler : ""} onChange={(event) => setSampler(event.currentTarget.value || null)}>
            <option value="">recommended{choice ? `: ${typed(choice.rows[choice.best])}` : ""}</option>
            {choice?.rows.map(typed).map((name) => <option key={name} value={name}>{name}</option>)}
          </select>
        </label>
        {data.groups.length > 1 ? (
          <label><span>{data.source.by ?? "group"}</span>
            <select value={groupAt} onChange={(event) => { setGroupAt(Number(event.currentTarget.value)); setPerson(firstPerson(data, Number(event.currentTarget.value), 3)); }}>
              {data.groups.map(({ name }, i) => <option key={name} value={i}>{name}</option>)}
            </select>
          </label>
        ) : <p class="soft">{group.categories.length.toLocaleString("en")} categories</p>}
      </nav>
      <main class="cards" aria-busy={!asked}>
        {asked?.problem && <p class="bad" role="alert">{asked.problem}</p>}
        {choice && <Recommendation {...{ choice, row, recommended, near, options, setOptions }} limit={options.keepPrior && group.limits?.find((each) => each.epsilon === choice.epsilon)} measured={measuring && computing.current.known(measuring)?.answer} users={group.users?.length} fromUsers={group.provenance === "users"} />}
        {choice && user && <Person {...{ group, counts, person, setPerson, q }} people={group.users ?? []} />}
        {law && <Leaves {...{ group, user, counts, law, q, distance, near }} sampler={made} />}
        {choice && <Frontier {...{ points, near }} epsilon={choice.epsilon} limits={group.limits} total={grid} />}
        {choice && user && <Stream {...{ group, q, user, horizon, setHorizon, near }} epsilon={choice.epsilon} />}
        {choice && <Collector {...{ group, q, row }} epsilon={choice.epsilon} />}
        {choice && user && <Take {...{ data, group, choice, row, recommended, options, counts, horizon, savePage }} />}
        {data.results && <Results results={data.results} />}
      </main>
      <footer>
        <p>Chances on this page are computed in double precision, for planning and showing. Releases are made from certified integers (sottovoce release, or the client for browsers).</p>
        <details class="no-print"><summary>Licences of what is inside this page</summary><pre>{document.getElementById("licences").textContent}</pre></details>
      </footer>
    </>
  );
}

/** The page as it was opened, with these data in it. */
const withData = (page, data) =>
  page.replace(/(<script type="application\/json" id="data">)[^]*?(<\/script>)/, (_, open, close) => open + JSON.stringify(data).replaceAll("<", "\\u003c") + close);

if (typeof document === "undefined") work();
else {
  const source = `<!doctype html>\n${document.documentElement.outerHTML}`;
  const data = JSON.parse(document.getElementById("data").textContent) ?? EXAMPLE;
  render(<Explorer start={data} source={source} />, document.getElementById("page"));
}
