"""Write an example table with text, booleans, missing values, and a category that occurs in the test rows only.

    python examples/make_table.py [FOLDER]

Writes train.csv (2,000 customers) and test.csv (500), generated from a seed: who leaves depends on the plan, the months
as a customer, calls to support and the price, plus noise. The data are synthetic.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import polars as pl

TRAIN, TEST = 2000, 500
PLANS = ["basic", "plus", "family", "business"]
REGIONS = ["north", "south", "east", "west", "coast", "hills"]
OFFERS = ["none", "discount", "upgrade", "phone"]
#: Fraction of missing values, by column.
MISSING = {"age": 0.08, "satisfaction": 0.3, "last_offer": 0.15, "paperless": 0.1}


def customers(rows: int, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    plan, offer = rng.choice(PLANS, rows, p=[0.4, 0.3, 0.2, 0.1]), rng.choice(OFFERS, rows, p=[0.5, 0.25, 0.15, 0.1])
    region = rng.choice(REGIONS, rows)
    age = np.clip(rng.normal(45, 15, rows), 18, 90).round()
    months = rng.gamma(1.5, 20, rows).round() + 1
    calls = rng.poisson(1.2, rows)
    price = np.array([15, 25, 45, 80])[[PLANS.index(p) for p in plan]] + rng.normal(0, 4, rows)
    paperless = rng.random(rows) < 0.6
    mood = rng.normal(size=rows) - 0.5 * calls
    push = (
        -0.6 + 2.2 * (calls > 2) + 0.09 * (price - 25) * (plan != "business") - 0.08 * np.minimum(months, 48)
        + 2.0 * ((plan == "basic") & (age < 35)) - 1.8 * (offer == "discount") - 1.4 * mood
        + 1.2 * np.isin(region, ["coast", "hills"]) + 1.5 * np.cos(months / 6)
    )  # fmt: skip
    leaves = rng.random(rows) < 1 / (1 + np.exp(-push))
    table = pl.DataFrame(
        {
            "age": age.astype(int),
            "region": region,
            "plan": plan,
            "months": months.astype(int),
            "price": price.round(2),
            "calls": calls,
            "paperless": paperless,
            "satisfaction": np.clip(np.round(3 + mood), 1, 5).astype(int),
            "last_offer": offer,
            "leaves": np.where(leaves, "yes", "no"),
        }
    )
    masked = [pl.when(pl.Series(rng.random(rows) >= share)).then(name).alias(name) for name, share in MISSING.items()]
    return table.with_columns(masked)


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out")
    folder.mkdir(parents=True, exist_ok=True)
    customers(TRAIN, 0).write_csv(folder / "train.csv")
    test = customers(TEST, 1)
    moved = pl.Series(np.arange(TEST) % 50 == 0)
    test = test.with_columns(pl.when(moved).then(pl.lit("island")).otherwise("region").alias("region"))
    test.write_csv(folder / "test.csv")


if __name__ == "__main__":
    main()
