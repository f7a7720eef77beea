"""A fault campaign: what gce promises on a bad day, tried some twenty thousand times.

``python -m campaign`` (or ``make campaign``) runs all parts, two at a time, and writes ``campaign/results.md``. A part
is a module with three names: ``PROMISE``, a sentence; ``FULL``, the number of its cases; and ``outcomes``, which yields
one :class:`campaign.outcomes.Outcome` per case. Case ``i`` of a seed always tries the same, so that a fault is repeated
by ``python -m campaign PART --seed SEED --case i``; but where a case is a matter of time, such as a kill some
milliseconds after a round, its moment depends on how fast the machine is, and a fault may need more than one try.
"""
