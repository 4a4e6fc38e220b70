/** Files dropped onto the page: what they are, and which columns count. */
import { useEffect, useState } from "preact/hooks";
import { SEPARATORS, guess, looksLikePeople, peopleOf, publicGroups, readTable } from "./tables.js";

const KINDS = ".csv,.tsv,.txt,.gz,.parquet";

const Choice = ({ label, value, options, onChange }) => (
  <label class="field"><span>{label}</span>
    <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
      {options.map(([key, text]) => <option key={key} value={key}>{text}</option>)}
    </select>
  </label>
);

/** The data of the page with a table in place of the public data, or with its people. */
function applied(data, table, settings) {
  const dialect = { separator: table.separator, decimal: settings.comma ? "comma" : "point", encoding: table.encoding };
  const usual = !table.separator || (table.separator === "comma" && !settings.comma && !table.encoding);
  const read = usual ? "" : Object.entries(dialect).filter(([, value]) => value).map((pair) => pair.join("=")).join(",");
  if (settings.use === "public") {
    const source = { prior: table.name, item: settings.item, count: settings.count || "none", by: settings.by || null, read };
    const provenance = looksLikePeople(table, settings) ? "users" : "public";
    return { source, dropped: true, groups: publicGroups(table, settings).map((group) => ({ ...group, provenance })), epsilon: data.epsilon };
  }
  const { found, number, unknown, elsewhere } = peopleOf(table, settings, data.groups);
  const users = { path: table.name, user: settings.user, item: settings.item, weight: settings.count, read };
  const left = (unknown ? `; ${unknown} items that the public data lack were left out` : "")
    + (elsewhere ? `; ${elsewhere} people of other groups were left out` : "");
  return {
    ...data,
    source: { ...data.source, users },
    groups: data.groups.map((group, i) => ({ ...group, users: found[i] })),
    includesUsers: `${number} people of ${table.name}${left}`,
  };
}

export function Dropped({ data, setData }) {
  const [table, setTable] = useState(null);
  const [settings, setSettings] = useState(null);
  const [problem, setProblem] = useState("");
  const [over, setOver] = useState(false);
  const open = async (file) => {
    try {
      const read = await readTable(file);
      setTable(read);
      setSettings(guess(read));
      setProblem("");
    } catch (wrong) {
      setTable(null);
      setProblem(wrong.message);
    }
  };
  useEffect(() => {
    const listen = (kind, then) => {
      const handle = (event) => { event.preventDefault(); then(event); };
      document.addEventListener(kind, handle);
      return () => document.removeEventListener(kind, handle);
    };
    const all = [
      listen("dragover", () => setOver(true)),
      listen("dragleave", () => setOver(false)),
      listen("drop", (event) => { setOver(false); if (event.dataTransfer.files[0]) open(event.dataTransfer.files[0]); }),
    ];
    return () => all.forEach((remove) => remove());
  }, []);
  const names = table ? Object.keys(table.columns) : [];
  const column = (none) => [...(none ? [["", none]] : []), ...names.map((name) => [name, name])];
  const set = (change) => setSettings({ ...settings, ...change });
  const use = () => {
    try {
      setData(applied(data, table, data.source.by || settings.use === "public" ? settings : { ...settings, by: "" }));
      setTable(null);
      setProblem("");
    } catch (wrong) {
      setProblem(wrong.message);
    }
  };
  return (
    <section class={over ? "drop over" : "drop"} aria-label="Your own data">
      <div class="line">
        <label class="line">Your own data: drop a CSV or Parquet file here, or choose one
          <input type="file" accept={KINDS} onChange={(event) => { const [file] = event.currentTarget.files; event.currentTarget.value = ""; if (file) open(file); }} />
        </label>
      </div>
      {table && (
        <>
          <p><b>{table.name}</b>: {names.length} columns, {table.columns[names[0]].length.toLocaleString("en")} rows. It stays in this page.</p>
          <div class="fields">
            <Choice label="use it as" value={settings.use} options={[["public", "public data"], ["people", "people (private)"]]} onChange={(value) => set({ use: value })} />
            {settings.use === "people" && <Choice label="user" value={settings.user} options={column()} onChange={(value) => set({ user: value })} />}
            <Choice label="item (the category)" value={settings.item} options={column()} onChange={(value) => set({ item: value })} />
            <Choice label={settings.use === "people" ? "weight" : "count"} value={settings.count} options={column("none: every row counts once")} onChange={(value) => set({ count: value })} />
            {(settings.use === "public" || data.source.by) && <Choice label="by (group)" value={settings.by} options={column(settings.use === "public" ? "no groups" : "none: everybody in every group")} onChange={(value) => set({ by: value })} />}
            {table.again && <Choice label="separator" value={table.separator} options={Object.keys(SEPARATORS).map((name) => [name, name])} onChange={(value) => { const read = table.again(value); setTable(read); setSettings({ ...guess(read), use: settings.use }); }} />}
            {table.again && <Choice label="decimal" value={settings.comma ? "comma" : "point"} options={[["point", "point"], ["comma", "comma"]]} onChange={(value) => set({ comma: value === "comma" })} />}
          </div>
          <div class="line"><button class="first" onClick={use}>use this table</button><button onClick={() => setTable(null)}>cancel</button></div>
        </>
      )}
      {problem && <p class="bad" role="alert">{problem}</p>}
    </section>
  );
}
