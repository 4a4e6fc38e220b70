"""The page itself: a marimo app that wires sliders and uploads to views (sottovoce explore)."""

# /// script
# [tool.marimo.display]
# theme = "system"
# ///

import marimo

app = marimo.App(
    width="full", app_title="sottovoce explorer", css_file="page.css", html_head_file="head.html"
)


@app.cell
def _imports():
    import marimo as mo

    import sottovoce as sv
    from sottovoce.explore import cards, names, people, recommend, tiles, views
    from sottovoce.explore.given import taken

    return cards, mo, names, people, recommend, sv, taken, tiles, views


@app.cell
def _title(cards, mo):
    mo.Html(cards.title())
    return


@app.cell
def _sources(people, taken):
    _files, (_demo_priors, _members) = taken(), people.of_demo()
    left_out = _files.left_out
    priors = {f"file: {name}": prior for name, prior in _files.priors.items()}
    priors |= {f"demo: {group}": prior for group, prior in _demo_priors.items()}
    everybody = {f"file: {name}": people.of_users(users) for name, users in _files.users.items()}
    everybody |= {f"demo: {group}": members for group, members in _members.items()}
    start = next(iter(priors)) if _files.priors else "demo: 25 to 44"
    return everybody, left_out, priors, start


@app.cell
def _controls(mo, names, priors, recommend, start):
    chosen_prior = mo.ui.dropdown(
        list(priors), value=start, label="public data", allow_select_none=False, full_width=True
    )
    upload = mo.ui.file(
        filetypes=[".csv", ".xlsx"],
        kind="button",
        label="or upload CSV, Excel",
        max_size=10_000_000,
    )
    epsilon = mo.ui.slider(
        0.5, 10, 0.5, value=3, show_value=True, label="ε, how much may be told", full_width=True
    )
    checked = mo.ui.dictionary(
        {
            name: mo.ui.checkbox(value=name in names.CHOSEN, label=names.two_lines(name))
            for name in recommend.OFFERED
        }
    )
    reports = mo.ui.slider(
        steps=[100, 300, 1000, 3000, 10000], value=1000, show_value=True, label="people who report"
    )
    return checked, chosen_prior, epsilon, reports, upload


@app.cell
def _prior(chosen_prior, everybody, people, priors, sv, upload, views):
    problem, uploaded = "", None
    if upload.value:
        try:
            uploaded = views.uploaded_prior(upload.value[0].contents, upload.value[0].name)
        except sv.errors.SottovoceError as _problem:
            problem = str(_problem)
    source = chosen_prior.value if uploaded is None else upload.value[0].name
    prior = priors[source] if uploaded is None else uploaded
    crowd = everybody.get(source) if uploaded is None else None
    crowd = crowd if crowd is not None and len(crowd) else people.invented(prior)
    return crowd, prior, problem, source


@app.cell
def _who(crowd, mo):
    _whose = "a user from the data" if crowd.given else "an invented user"
    which = mo.ui.slider(
        1, max(len(crowd), 2), 1, value=min(4, len(crowd)), show_value=True, label=_whose, full_width=True
    )
    return (which,)


@app.cell
def _panel(cards, checked, chosen_prior, crowd, epsilon, left_out, mo, prior, problem, source, upload, which):
    mo.Html(
        cards.panel(
            data=[chosen_prior.text, upload.text],
            about=cards.about(prior, source, crowd, left_out),
            problem=problem,
            epsilon=epsilon.text,
            samplers={name: box.text for name, box in checked.elements.items()},
            person=which.text,
        )
    )
    return


@app.cell
def _advice(cards, crowd, epsilon, mo, prior, views):
    mo.Html(cards.card("Recommendation", views.advice(prior, epsilon.value, crowd), cards.CAUTION, wide=True))
    return


@app.cell
def _person_state(crowd, mo, which):
    get_counts, set_counts = mo.state(crowd.counts(min(which.value, len(crowd)) - 1), allow_self_loops=True)
    get_mistake, set_mistake = mo.state("")
    return get_counts, get_mistake, set_counts, set_mistake


@app.cell
def _person_edit(get_counts, mo, people, prior, set_counts, set_mistake, sv, views):
    counts = get_counts()

    def _read(text):
        try:
            set_counts(people.typed(text, prior))
            set_mistake("")
        except sv.errors.SottovoceError as problem:
            set_mistake(str(problem))

    def _step(place, by):
        def click(_):
            set_counts(people.changed(counts, place, by))
            set_mistake("")

        return click

    own, _ = people.own_first(counts, prior)
    own = own[: views.IN_FRONT]
    typed = mo.ui.text_area(
        value=people.as_text(counts, prior), rows=6, label="as text: a category and a number a line",
        on_change=_read, full_width=True,
    )  # fmt: skip
    steps = mo.ui.dictionary(
        {
            f"{sign}{place}": mo.ui.button(label=f"{sign}1", on_click=_step(place, by))
            for place in own
            for sign, by in (("−", -1), ("+", 1))
        }
    )
    return counts, own, steps, typed


@app.cell
def _person(cards, counts, get_mistake, mo, own, prior, steps, typed):
    _buttons = {name: button.text for name, button in steps.elements.items()}
    mo.Html(cards.card("One person", cards.person(counts, prior, own, _buttons, typed.text, get_mistake())))
    return


@app.cell
def _samplers(checked, epsilon, prior, recommend):
    chosen = [name for name, on in checked.value.items() if on] or ["fitted"]
    samplers = [recommend.sampler(prior, name, epsilon.value) for name in chosen]
    return chosen, samplers


@app.cell
def _box(cards, counts, mo, samplers, views):
    mo.Html(cards.card("What may be released, and what is", cards.BOX, views.box_chart(samplers, counts)))
    return


@app.cell
def _own_cost(cards, chosen, counts, epsilon, mo, people, prior, views):
    _chart = views.own_cost(prior, chosen, people.shares(counts), epsilon.value)
    mo.Html(cards.card("What privacy costs this person", cards.COST, _chart))
    return


@app.cell
def _typical_cost(cards, chosen, crowd, epsilon, mo, prior, views):
    _chart = views.typical_cost(prior, chosen, crowd, epsilon.value)
    mo.Html(cards.card("What it costs people like these", cards.typical(prior, crowd), _chart))
    return


@app.cell
def _distances(cards, counts, crowd, mo, people, samplers, views):
    _table = views.distances(samplers, people.shares(counts), crowd)
    mo.Html(cards.card("The distances", cards.DISTANCES, _table, wide=True))
    return


@app.cell
def _mechanism_choice(chosen, mo):
    release_with = mo.ui.dropdown(chosen, value=chosen[0], label="release with", allow_select_none=False)
    return (release_with,)


@app.cell
def _mechanism(release_with, samplers, sv):
    sampler = next(one for one in samplers if one.name == release_with.value)
    mechanism = sv.certify(sampler, provenance="users")
    return mechanism, sampler


@app.cell
def _budget(counts, mo, prior):  # a new person or new public data: a new budget
    budget = mo.ui.number(1, 100, 1, value=30, label="budget of this person, in ε")
    get_spent, set_spent = mo.state([])
    return budget, get_spent, set_spent


@app.cell
def _release_button(budget, counts, epsilon, get_spent, mechanism, mo, people, set_spent, views):
    def _released(times):
        def click(_):
            spent = list(get_spent())
            for _ in range(times):
                left = views.left(budget.value, [cost for _, cost in spent])
                if left < epsilon.value:
                    spent.append((f"{epsilon.value:g} is more than the {float(left):g} that was left", 0))
                    break
                spent.append((str(mechanism.release(p=people.shares(counts))), epsilon.value))
            set_spent(spent)

        return click

    release = mo.ui.button(label="release one category", on_click=_released(1))
    ten = mo.ui.button(label="release ten", on_click=_released(10))
    again = mo.ui.button(label="start over", on_click=lambda _: set_spent([]))
    return again, release, ten


@app.cell
def _release(again, budget, cards, get_spent, mechanism, mo, release, release_with, ten, tiles, views):
    _spent = get_spent()
    _left = float(views.left(budget.value, [cost for _, cost in _spent]))
    mo.Html(
        cards.card(
            "Release",
            cards.released_by(mechanism),
            cards.row(release_with.text, budget.text),
            cards.row(release.text, ten.text, again.text),
            tiles.budget_bar(_left, budget.value or 0),
            cards.refusal(_spent),
            tiles.answers(_spent),
        )
    )
    return


@app.cell
def _leak(cards, counts, mo, sampler, views):
    mo.Html(cards.card("What may leak", views.leak_words(sampler, counts)))
    return


@app.cell
def _many(cards, crowd, mechanism, mo, reports, views):
    _chart, _words = views.population_chart(mechanism, crowd.crowd(reports.value))
    mo.Html(cards.card("Many people", cards.MANY, reports.text, _chart, cards.concluded(_words), wide=True))
    return


@app.cell
def _kernel(cards, mo, samplers, tiles):
    _map = next((found for found in map(tiles.kernel_map, samplers) if found), None)
    mo.Html(cards.card("The kernel", *([cards.KERNEL, _map] if _map else [cards.NO_KERNEL])))
    return


@app.cell
def _shuffled(cards, mechanism, mo, views):
    mo.Html(cards.card("If reports are shuffled", cards.paragraph(views.shuffled_words(mechanism))))
    return


@app.cell
def _download(cards, mechanism, mo):
    import json

    _text = (
        json.dumps({**mechanism.document(), "digest": mechanism.digest}, ensure_ascii=False, indent=0) + "\n"
    )
    _file = mo.download(
        _text.encode(), filename="mechanism.json", mimetype="application/json", label="mechanism.json"
    )
    mo.Html(cards.card("Take it with you", cards.TAKE, mo.as_html(_file).text))
    return


@app.cell
def _ahead(crowd, prior, recommend):  # last: what the next moves of the slider will ask for
    recommend.warm(prior, crowd, sorted((0.5 * step for step in range(1, 21)), key=lambda one: abs(one - 3)))
    return


if __name__ == "__main__":
    app.run()
