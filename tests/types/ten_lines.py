"""README's ten lines, and the first mechanism: `make lint` shows them to pyright (Pylance in VS Code)."""

import sottovoce as sv

prior = sv.Prior.from_counts({"Drama": 4012, "Comedy": 2300, "War": 120, "Western": 35})
history = ["War", "War", "Drama", "War"]  # private: what one user watched
sampler = sv.fitted(prior, epsilon=4)  # chosen with nothing but the public prior
own = prior.frequencies(history)
law = sampler.distribution(own)
for row in zip(prior.categories, prior.probabilities, own, law, strict=True):
    print("{:8} public {:5.1%}   own {:5.1%}   released {:5.1%}".format(*row))
print("released now:", sv.certify(sampler).release(records=history))

mechanism = sv.certify(sv.fitted(prior, 2))
released: str | int = mechanism.release(records=["War", "Drama"])
