"""For an analyst: from a table to private reports, and from the reports to the population."""

# %% Two invented tables: a public survey, and the histories of people whom nobody may look at.
import numpy as np
import polars as pl

import sottovoce as sv

genres = ["Comedy", "Drama", "War", "Western"]
survey = pl.DataFrame({"genre": genres, "count": [2300, 4012, 620, 350]})
rng = np.random.default_rng(7)
people, films = 40_000, 5
taste = [0.25, 0.45, 0.20, 0.10]  # the truth, which the collector does not see
histories = pl.DataFrame(
    {
        "member": np.repeat(np.arange(people), films),
        "genre": rng.choice(genres, size=people * films, p=taste),
    }
)

# %% The survey becomes the prior. The histories become one distribution per member.
prior = sv.build_prior(survey, item="genre", weight="count")
users = sv.read_users(histories, user="member", item="genre", prior=prior)
print(f"prior over {len(prior)} genres; {users}")

# %% An estimate needs a linear mechanism. Ask first how many reports it takes.
mechanism = sv.certify(sv.minimax_kernel(prior, epsilon=2))
needed = sv.how_many(mechanism, error=0.02)
print(f"for ± 0.02 in every genre: {needed:,} reports; there are {len(users):,}")

# %% Each member releases one genre. Only these reports leave the members.
reports = list(mechanism.release_many(users.p))
print(f"reports of the first three members: {', '.join(reports[:3])}")

# %% The collector undoes the mechanism. The intervals hold for all genres at once.
found = sv.estimate(mechanism, reports, level=0.95)
low, high = found.interval(simultaneous=True)
print("genre      truth  survey  estimate  interval")
for i, genre in enumerate(found.categories):
    public, value = prior.probabilities[i], found.values[i]
    print(f"{genre:9} {taste[i]:6.3f} {public:7.3f} {value:9.3f}  [{low[i]:.3f}, {high[i]:.3f}]")

# %% A collector must also know how far liars can move the result.
print(f"one per cent of malicious reports moves some genre by up to {found.moved_by(share=0.01):.3f}")
