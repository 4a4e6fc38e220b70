"""README's ten lines, and the first mechanism: `make lint` shows them to pyright (Pylance in VS Code)."""

import sottovoce as sv

prior = sv.Prior.from_counts({"Drama": 4012, "Comedy": 2300, "War": 120, "Western": 35})
mine = prior.frequencies(["War", "War", "Drama", "War"])  # one user's private history

paper = sv.minimax_kernel(prior, epsilon=4)  # the paper's: best worst case of all linear samplers that keep q
ours = sv.fitted(prior, epsilon=4)  # chosen with nothing but the prior
print(ours.distribution(mine).round(3))  # the law of what is released
print(ours.divergence(mine, sv.TV), paper.divergence(mine, sv.TV), ours.worst_case(sv.TV))
print(sv.compare([mine, prior.probabilities], [ours, paper], [sv.TV, sv.KL]))

mechanism = sv.certify(sv.fitted(prior, 2))
released: str | int = mechanism.release(["War", "Drama"])
