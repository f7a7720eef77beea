"""Ways to fit and predict with several processes or threads; each gives the answers of all that took part."""

from __future__ import annotations

import multiprocessing
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import joblib
from sklearn.model_selection import cross_val_predict

from campaign.process_models import MODELS, Asked, use_torch

Answers = list[str]
Way = Callable[[Asked], Answers]
Work = Callable[[], str]


class Forks:
    """Copies of this process, each with some work.

    Parameters
    ----------
    works : sequence of callable
        Each gives an answer.
    """

    def __init__(self, works: Sequence[Work]) -> None:
        self._begun = [self._begin(work) for work in works]

    def _begin(self, work: Work) -> tuple[int, int]:
        read, write = os.pipe()
        child = os.fork()
        if child:
            os.close(write)
            return child, read
        status = 1
        try:
            os.close(read)
            os.write(write, work().encode())
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)

    def answers(self) -> Answers:
        """What each of them says; words about its end where that is nothing."""
        found = []
        for child, read in self._begun:
            with os.fdopen(read) as said:
                words = said.read()
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            found.append(words or f"a forked process ended with status {status}")
        return found


def repeated(work: Work, times: int) -> Work:
    """Work that is done some times, and gives all its answers if they differ."""
    return lambda: " and ".join(sorted({work() for _ in range(times)}))


def fork(asked: Asked) -> Answers:
    return Forks([asked.answer] * 2).answers()


def fork_after_a_fit(asked: Asked) -> Answers:
    use_torch()
    model = asked.fit()
    first = asked.predicted(model)
    works: list[Work] = [
        asked.answer,
        lambda: asked.predicted(model),
        lambda: Forks([asked.answer]).answers()[0],
    ]
    return [first, *Forks(works).answers(), asked.answer()]


def preload(asked: Asked) -> Answers:
    """A server's workers: the parent loads the model and predicts, the workers predict, and one fits anew."""
    model = asked.ready()
    use_torch()
    predict = repeated(lambda: asked.predicted(model), 5)
    first = predict()
    workers = Forks([predict, predict, asked.answer])
    return [first, predict(), *workers.answers()]


def _in_pool(asked: Asked, method: str) -> Answers:
    model = asked.fit()
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as pool:
        waiting = [pool.submit(asked.answer), pool.submit(asked.predicted, model), pool.submit(asked.answer)]
        return [asked.predicted(model), *(each.result() for each in waiting)]


def pool_fork(asked: Asked) -> Answers:
    return _in_pool(asked, "fork")


def pool_spawn(asked: Asked) -> Answers:
    return _in_pool(asked, "spawn")


def pool_forkserver(asked: Asked) -> Answers:
    return _in_pool(asked, "forkserver")


def threads_fit(asked: Asked) -> Answers:
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(lambda _: asked.answer(), range(4)))


def threads_predict(asked: Asked) -> Answers:
    model = asked.ready()
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(lambda _: asked.predicted(model), range(80)))


def fit_beside_predictions(asked: Asked) -> Answers:
    model = asked.fit()
    with ThreadPoolExecutor(4) as pool:
        fits = [pool.submit(asked.answer) for _ in range(2)]
        return [*pool.map(lambda _: asked.predicted(model), range(30)), *(fit.result() for fit in fits)]


def many_models(asked: Asked) -> Answers:
    """Three models at once, each in a thread."""
    names = list(MODELS)
    own = names.index(asked.name)
    others = [asked._replace(name=names[(own + more) % len(names)]) for more in (0, 1, 4)]
    with ThreadPoolExecutor(3) as pool:
        return list(pool.map(Asked.answer, others))


def _joblib(asked: Asked, backend: str) -> Answers:
    model = asked.fit()
    works: list[Any] = [joblib.delayed(asked.answer)(), joblib.delayed(asked.predicted)(model)]
    return list(joblib.Parallel(n_jobs=2, backend=backend)(works * 2))


def joblib_loky(asked: Asked) -> Answers:
    return _joblib(asked, "loky")


def joblib_threading(asked: Asked) -> Answers:
    return _joblib(asked, "threading")


def joblib_multiprocessing(asked: Asked) -> Answers:
    return _joblib(asked, "multiprocessing")


def cross_validation(asked: Asked) -> Answers:
    """Folds in several processes of scikit-learn, and in one."""
    X, y = asked.rows()
    one, two = (cross_val_predict(asked.estimator(), X, y, cv=2, n_jobs=n_jobs).tolist() for n_jobs in (1, 2))
    return [asked.answer() if one == two else "predictions of cross-validation differ"]


#: Ways that need no new interpreter, and those that start some.
COPIES: tuple[Way, ...] = (
    fork,
    fork_after_a_fit,
    preload,
    pool_fork,
    threads_fit,
    threads_predict,
    fit_beside_predictions,
    many_models,
    joblib_threading,
    joblib_multiprocessing,
)
STARTS: tuple[Way, ...] = (pool_spawn, pool_forkserver, joblib_loky, cross_validation)
