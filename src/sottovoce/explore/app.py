"""The page itself: a marimo app that wires sliders and uploads to views and charts (sottovoce explore)."""

import marimo

app = marimo.App(width="medium", app_title="sottovoce explorer", css_file="page.css")


@app.cell
def _imports():
    import marimo as mo
    import numpy as np

    import sottovoce as sv
    from sottovoce.demo import demo_data
    from sottovoce.explore import charts, views
    from sottovoce.explore.given import taken

    return charts, demo_data, mo, np, sv, taken, views


@app.cell
def _title(mo):
    mo.md(
        """
        # In a quiet voice

        Everybody's own data stay with them; each person releases **one** category. It should look like a draw
        from their own data, yet say little about them. How little is set by **ε**: no answer is more than e^ε
        times likelier from one person than from another. The public data are the anchor: somebody who is like
        the public is released undistorted.
        """
    )
    return


@app.cell
def _sources(demo_data, taken):
    _files = taken()
    given, users_given, left_out = dict(_files.priors), _files.users, _files.left_out
    _demo = demo_data()
    demo_priors = {f"demo: {group}": prior for group, prior in _demo.priors.items()}
    demo_users = {f"demo: {group}": _demo.users(group).toarray() for group in _demo.priors}
    return demo_priors, demo_users, given, left_out, users_given


@app.cell
def _choose_prior(demo_priors, given, mo):
    names = [*(f"file: {name}" for name in given), *demo_priors]
    chosen_prior = mo.ui.dropdown(names, value=names[1] if not given else names[0], label="public data")
    upload = mo.ui.file(
        filetypes=[".csv"], kind="button", label="or upload a CSV: item,count", max_size=10_000_000
    )
    return chosen_prior, upload


@app.cell
def _prior(chosen_prior, demo_priors, given, sv, upload, views):
    problem = ""
    uploaded = None
    if upload.value:
        try:
            uploaded = views.uploaded_prior(upload.value[0].contents, upload.value[0].name)
        except sv.SottovoceError as _problem:
            problem = str(_problem)
    _name = chosen_prior.value
    prior = (
        uploaded if uploaded is not None else given.get(_name.removeprefix("file: ")) or demo_priors[_name]
    )
    source = upload.value[0].name if uploaded is not None else _name
    order = [str(prior.categories[i]) for i in (-prior.probabilities).argsort(kind="stable").tolist()]
    return order, prior, problem, source


@app.cell
def _controls(chosen_prior, left_out, mo, prior, problem, source, sv, upload, views):
    epsilon = mo.ui.slider(0.5, 10, 0.5, value=3, show_value=True, label="ε, how much may be told")
    _on = ("kernel_clip", "minimax_kernel", "relative_mollifier")
    checked = mo.ui.dictionary({name: mo.ui.checkbox(value=name in _on, label=name) for name in sv.SAMPLERS})
    _mark = " **Made from the users it serves: not public.**" if prior.made_from_users else ""
    mo.vstack(
        [
            mo.hstack([chosen_prior, upload], justify="start", wrap=True),
            mo.callout(mo.md(f"**{views.shown(problem)}**"), kind="danger") if problem else mo.md(""),
            mo.md(
                f"Public data: {views.shown(source)}, {len(prior)} categories, rarest {prior.smallest:.4f}."
                f"{_mark} {'Users: ' + views.shown(left_out) + '.' if left_out else ''}"
            ),
            epsilon,
            mo.hstack(list(checked.elements.values()), justify="start", wrap=True),
        ]
    )
    return checked, epsilon


@app.cell
def _user_choice(demo_users, mo, np, order, prior, source, users_given, views):
    _held = None
    if source in demo_users:
        _held = demo_users[source]
    elif source.removeprefix("file: ") in users_given:
        _held = users_given[source.removeprefix("file: ")].p[:200].toarray()
    _whose = "a user from the data" if _held is not None and len(_held) else "an invented user"
    if _held is None or not len(_held):
        _held = np.random.default_rng(7).dirichlet(np.maximum(5 * prior.probabilities, 1e-3), size=50)
    people = _held
    which = mo.ui.slider(1, len(people), 1, value=min(4, len(people)), show_value=True, label=_whose)
    return people, which


@app.cell
def _user_text(mo, people, prior, views, which):
    typed = mo.ui.text_area(
        value=views.as_text(people[which.value - 1], prior),
        rows=6,
        label="or shape one: a category and a number a line",
    )
    mo.vstack([mo.md("## One person"), mo.hstack([which, typed], justify="start", wrap=True)])
    return (typed,)


@app.cell
def _user(mo, people, prior, sv, typed, views, which):
    user_problem = ""
    p = people[which.value - 1]
    if typed.value.strip() != views.as_text(p, prior):
        try:
            p = views.typed_user(typed.value, prior)
        except sv.SottovoceError as _problem:
            user_problem = str(_problem)
    mo.callout(mo.md(views.shown(user_problem)), kind="warn") if user_problem else None
    return (p,)


@app.cell
def _samplers(checked, epsilon, prior, views):
    chosen = [name for name, on in checked.value.items() if on] or ["kernel_clip"]
    samplers = views.make(prior, epsilon.value, chosen)
    return chosen, samplers


@app.cell
def _box(charts, mo, p, samplers, views):
    _intervals, _points = views.box_rows(samplers, p)
    mo.vstack(
        [
            mo.md(
                "**What may be released, and what is.** The grey bar is what the first clip sampler allows "
                "for each category, the black tick the public share. A larger ε makes the bars longer. "
                "Categories the person does not have are still released now and then: that is the privacy."
            ),
            charts.box(_intervals, _points),
            mo.md("Distance (TV): 0 is a perfect draw of their own data, 1 has nothing in common with it."),
            mo.md(views.distance_table(samplers, p)),
        ]
    )
    return


@app.cell
def _tradeoff(charts, chosen, epsilon, mo, p, prior, views):
    _own, _worst = charts.tradeoff(views.tradeoff_rows(prior, chosen, p), epsilon.value)
    mo.vstack(
        [
            mo.md("## What privacy costs\n\nLower is better. The dashed line is your ε."),
            _own,
            _worst,
        ]
    )
    return


@app.cell
def _kernel(charts, mo, samplers, views):
    _rows = next((rows for rows in (views.kernel_rows(one) for one in samplers) if rows), None)
    _parts = [mo.md("*Check minimax_kernel or randomized_response (up to 40 categories) to see a kernel.*")]
    if _rows:
        _words = "Each line is what is released for somebody who holds only that category; dark is often."
        _parts = [mo.md(_words), charts.heat_map(_rows)]
    mo.vstack([mo.md("## The kernel"), *_parts])
    return


@app.cell
def _mechanism_choice(chosen, mo):
    _first = "kernel_clip" if "kernel_clip" in chosen else chosen[0]
    release_with = mo.ui.dropdown(chosen, value=_first, label="release with", allow_select_none=False)
    return (release_with,)


@app.cell
def _mechanism(release_with, samplers, sv):
    _sampler = next(one for one in samplers if one.name == release_with.value)
    mechanism = sv.certify(_sampler, accept_prior_from_users=True)
    return (mechanism,)


@app.cell
def _budget(mo, p, prior):  # a new person or new public data: a new budget
    budget = mo.ui.number(1, 100, 1, value=9, label="budget of this person, in ε")
    get_spent, set_spent = mo.state([])
    return budget, get_spent, set_spent


@app.cell
def _release_button(budget, epsilon, get_spent, mechanism, mo, p, set_spent, views):
    def _release(_):
        spent = get_spent()
        left = views.left(budget.value, [cost for _, cost, _ in spent])
        if left < epsilon.value:
            words = f"**Refused**: {epsilon.value:g} is more than the {float(left):g} that was left."
            set_spent([*spent, ("", 0, f"{words} Each release spends its ε.")])
        else:
            answer = views.shown(mechanism.release(p=p))
            set_spent([*spent, (answer, epsilon.value, f"Released: **{answer}**.")])

    release = mo.ui.button(label="release one category", kind="success", on_click=_release)
    again = mo.ui.button(label="start over", on_click=lambda _: set_spent([]))
    return again, release


@app.cell
def _release(again, budget, get_spent, mechanism, mo, release, release_with, views):
    _spent = get_spent()
    _left = float(views.left(budget.value, [cost for _, cost, _ in _spent]))
    _words = _spent[-1][2] if _spent else "Nothing released yet."
    mo.vstack(
        [
            mo.md(
                f"## Release\n\nFrom the certified mechanism `{mechanism.sampler}` "
                f"({mechanism.digest[:16]}), in exact integers, with the operating system's randomness."
            ),
            mo.hstack([release_with, budget, release, again], justify="start", wrap=True),
            mo.callout(
                mo.md(f"{_words} Left of the budget: **{_left:g}** of {budget.value or 0:g}."),
                kind="warn" if "Refused" in _words else "neutral",
            ),
        ]
    )
    return


@app.cell
def _many(charts, mechanism, mo, np, order, people, views):
    _everyone = people[np.random.default_rng(1).integers(0, len(people), 1000)]
    simulated, _answers = views.simulated_rows(mechanism, _everyone)
    _parts = [
        mo.md("## Many people\n\n1,000 simulated people like those of the data release one category each."),
        charts.histogram(simulated, order),
    ]
    _found = views.estimate_rows(mechanism, _answers, _everyone.mean(axis=0))
    if _found is not None:
        _rows, found = _found
        _parts += [
            mo.md(f"**What the collector concludes.** {found.words()} Black ticks: the truth, unseen."),
            charts.estimated(_rows, order),
        ]
    else:
        _parts.append(
            mo.md(
                "*From this mechanism's reports one cannot tell what people hold. Release with "
                "minimax_kernel or randomized_response to see an estimate.*"
            )
        )
    mo.vstack(_parts)
    return


@app.cell
def _shuffled(mechanism, mo, views):
    mo.md(f"**If reports are shuffled.** {views.shuffled_words(mechanism)}")
    return


@app.cell
def _download(epsilon, mechanism, mo):
    import json

    _text = (
        json.dumps({**mechanism.document(), "digest": mechanism.digest}, ensure_ascii=False, indent=0) + "\n"
    )
    mo.vstack(
        [
            mo.md(
                "## Take it with you\n\nThe certified mechanism, for `sv.load` and `sottovoce release`. "
                "Pictures: the dots beside each chart save it as PNG or SVG."
            ),
            mo.download(
                _text.encode(), filename="mechanism.json", mimetype="application/json", label="mechanism.json"
            ),
        ]
    )
    return


if __name__ == "__main__":
    app.run()
