"""
Categories and dates
====================

Text, categories, missing values and dates go in as they are: no encoder, no imputer, no pipeline. The table of hotel
bookings is made up, so that what the model should find is known.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import gce
from gce.inspection import partial_dependence

rng = np.random.default_rng(0)
n = 1200
arrival = pd.Series(pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 730, n), unit="D"))
X = pd.DataFrame(
    {
        "arrival": arrival,
        "city": pd.Categorical(rng.choice(["Basel", "Bern", "Chur", "Genf"], n)),
        "guests": rng.integers(1, 5, n).astype(float),
        "breakfast": rng.random(n) < 0.5,
    }
)
weekend = arrival.dt.day_of_week >= 4
price = (
    60
    + 25 * X["guests"]
    + 30 * weekend
    + X["city"].map({"Basel": 0, "Bern": 10, "Chur": -15, "Genf": 40}).astype(float)
)
price += 15 * X["breakfast"] + rng.normal(0, 8, n)

# a fifth of all values are lost; the price is known all the same
X = X.mask(rng.random(X.shape) < 0.2)
X.head()

# %%
# A fit reads the types of the columns. Of a date it makes the parts that vary: here year, month, day and weekday, and
# where in the year and the week it is.

model = gce.GCERegressor(random_state=0).fit(X[:900], price[:900])
print(model.table_)
print(model.table_.split_names)
print(f"R² on new rows: {model.score(X[900:], price[900:]):.3f}")

# %%
# New rows may have categories that the fit did not know, missing values, and columns in another order.

new = pd.DataFrame({"city": ["Lugano", None], "guests": [2, None], "arrival": pd.to_datetime(["2024-12-28", None])})
model.predict(new.assign(breakfast=[True, None])).round(1)

# %%
# Two weeks of arrivals, and the cities: mean predictions if every row had that value.

week = pd.date_range("2024-03-04", periods=14)
by_date = partial_dependence(model, X[900:], "arrival", custom_values={"arrival": week.to_numpy()})
by_city = partial_dependence(model, X[900:], "city")

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained", sharey=True, width_ratios=[3, 2])
left.plot(week, by_date.average[0], marker="o")
left.set_xticks(week[::2], [day.strftime("%a") for day in week[::2]])
left.set(xlabel="arrival", ylabel="mean predicted price")
right.bar([str(city) for city in by_city.grid_values[0]], by_city.average[0], width=0.6)
right.set(xlabel="city", ylim=(80, 200))
plt.show()
