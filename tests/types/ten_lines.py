"""README's ten lines, and the first mechanism: `make lint` shows them to pyright (Pylance in VS Code)."""

import sottovoce as sv

prior = sv.Prior.from_counts({"Drama": 4012, "Comedy": 2300, "War": 120, "Western": 35})  # public
history = ["War", "War", "Drama", "War"]  # private: what one user watched
sampler = sv.fitted(prior, epsilon=4)  # chosen with nothing but the prior
own = prior.frequencies(history)
law = sampler.distribution(own)
for i, genre in enumerate(prior.categories):
    print(f"{genre:8} public {prior.probabilities[i]:5.1%}   own {own[i]:5.1%}   released {law[i]:5.1%}")
print("released now:", sv.certify(sampler).release(history))

mechanism = sv.certify(sv.fitted(prior, 2))
released: str | int = mechanism.release(["War", "Drama"])
