"""For a researcher: compare the samplers on invented users, in the mean and in the worst case."""

# %% The prior is long-tailed. Most users are close to it; some are far from it.
import tempfile
from pathlib import Path

import numpy as np

import sottovoce as sv

rng = np.random.default_rng(20250503)
prior = sv.Prior.from_counts(1 / np.arange(1, 21))
closeness = rng.choice([2.0, 20.0, 200.0], size=500)
users = np.stack([rng.dirichlet(c * prior.probabilities + 1e-3) for c in closeness])

# %% Every sampler gets the same prior and the same ε. The distance is total variation.
samplers = [make(prior, 2.0) for make in sv.SAMPLERS.values()]
table = sv.compare(users, samplers, [sv.TV, sv.KL])
print("sampler, mean and maximum over the users, worst case over all users (total variation):")
for sampler, row in zip(samplers, [row for row in table if row.divergence == "tv"], strict=True):
    worst = sampler.worst_case(sv.TV)
    print(f"{row.sampler:20} {row.mean:.3f} {row.maximum:.3f} {worst:.3f}")

# %% The theory says: `kernel_clip` is never worse than the paper's kernel, user by user, for any f.
ours, paper = sv.kernel_clip(prior, 2.0), sv.minimax_kernel(prior, 2.0)
for f in (sv.TV, sv.KL, sv.CHI2):
    gain = paper.divergence(users, f) - ours.divergence(users, f)
    print(f"{f.name}: kernel_clip is at least as close for {np.mean(gain >= -1e-12):.0%} of the users")

# %% The paper's worst case has a closed form. The sampler attains it.
bound = sv.bounds.optimal_utility(prior, 2.0, sv.TV)
print(f"closed form {bound:.6f}, the paper's sampler {paper.worst_case(sv.TV):.6f}")

# %% No sampler that keeps the prior can do better than this one in the worst case.
print(f"the best of all that keep the prior: {sv.prior_minimax(prior, 2.0).worst_case(sv.TV):.6f}")

# %% A picture: what one user may release, and what three samplers make of it.
with tempfile.TemporaryDirectory() as folder:
    picture = Path(folder) / "box.png"
    sv.plot_box([ours, paper, sv.relative_mollifier(prior, 2.0)], users[0]).figure.savefig(picture)
    print(f"picture: {picture.name}, {picture.stat().st_size // 1000} kB")
