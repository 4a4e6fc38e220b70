"""For a privacy engineer: from public counts to releases that a budget limits and an audit checks."""

# %% The prior is public. Here it is the counts of a published survey.
import tempfile
from pathlib import Path

import sottovoce as sv

prior = sv.Prior.from_counts({"Drama": 4012, "Comedy": 2300, "War": 120, "Western": 35})
sampler = sv.kernel_clip(prior, epsilon=2)
print(f"sampler: {sampler.name}, worst-case distance {sampler.worst_case(sv.TV):.3f}")

# %% `certify` turns the sampler into whole numbers. It gives a mechanism only if the numbers prove ε.
mechanism = sv.certify(sampler)
ratio = float(mechanism.ratio)
print(f"certified: no release is more than {ratio:.6f} ≤ e^ε times likelier from one user than from another")

# %% The server saves the mechanism. The client loads it, and the file has to satisfy the client's policy.
folder = tempfile.TemporaryDirectory()
file = Path(folder.name) / "genres.json"
mechanism.save(file)
policy = sv.Policy(max_epsilon=2, digest=mechanism.digest, provenance="public")
client = sv.load(file, policy=policy)
print(f"loaded: the same mechanism is {client == mechanism}")

# %% A client with a stricter policy refuses the same file.
try:
    sv.load(file, policy=sv.Policy(max_epsilon=1))
except sv.errors.MechanismFileError:
    print("refused: a client that accepts ε up to 1 does not load it")

# %% The ledger charges a user before anything is drawn. The budget of one epoch is one release.
ledger = sv.Ledger.create(Path(folder.name) / "budget.db", budget=2)
history = ["War", "War", "Drama", "War"]
first = ledger.release(client, "ann", records=history, epoch="2025-05")
again = ledger.release(client, "ann", records=history, epoch="2025-05")
print(f"released: {first}; asked again, the answer is the same: {first == again}")
print(f"left for ann in this epoch: {ledger.left('ann', '2025-05')}")

# %% Another mechanism would be a second release. The budget does not allow it, and nobody is charged.
other = sv.certify(sv.minimax_kernel(prior, epsilon=2))
try:
    ledger.release(other, "ann", records=history, epoch="2025-05")
except sv.errors.BudgetError as refusal:
    print(f"refused: {refusal}")
ledger.close()
folder.cleanup()

# %% The audit proves the certificate again, then looks for a violation in many releases.
report = sv.audit(client, draws=200_000, confidence=0.999999)
print(
    f"audit: certificate {report.certificate}, ε is at least {report.lower_bound:.2f}, passed {report.passed}"
)
