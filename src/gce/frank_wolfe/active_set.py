"""The active set: atoms, their weights on the simplex, and their combined predictions. The mutable state of a fit.

Atoms are appended and never deleted during a fit; a dropped atom has weight exactly 0. One formula serves every step,

    d = [toward] (s - F) + [away] (F - v),

because the pairwise direction ``s - v`` is the sum of the Frank-Wolfe and the away direction. It is linear in the
weights, so the same coefficients move weights, training predictions and validation predictions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from gce._utils.memory import CACHE_BYTES
from gce.bases.base import Atoms, Zero
from gce.bases.neural.stored_inputs import StoredInputs
from gce.bases.proposal import Proposal
from gce.frank_wolfe.output_sums import add_outputs, inner_products
from gce.frank_wolfe.slot import ActiveSetState, Slot
from gce.frank_wolfe.step import Direction
from gce.preprocessing.sparse import Inputs

_BLOCK_BYTES = 2**28
#: How far a sum of weights may be from 1.
_DRIFT = 1e-14


class ActiveSet:
    """Atoms and weights of ``M`` members over ``N`` rows, of which the first ``n`` are trained on.

    Parameters
    ----------
    X : Tensor or SparseRows of shape (N, d)
    train_rows : int
        ``n``.
    members : int
        ``M``.
    outputs : int
        ``k``.
    separate : bool
        Each output has simplex weights of its own: ``J = k`` instead of 1.
    cache_bytes : int
    """

    def __init__(
        self,
        X: Inputs,
        train_rows: int,
        members: int,
        outputs: int,
        *,
        separate: bool = False,
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        self.X, self.train_rows, self.outputs = X, train_rows, outputs
        self.members = torch.arange(members, device=X.device)
        self.slots: list[Slot] = []
        #: Some atoms may be returned again by their oracle.
        self.has_keys = False
        self.t = 0
        self.calls = torch.zeros(members, dtype=torch.long, device=X.device)
        #: The gap at each member's last oracle call, which blended steps compare their local gap with.
        self.last_gap = torch.full((members,), torch.inf, dtype=torch.float64, device=X.device)
        #: What exact oracles have proved: the risk is at most this far above the least in the hull.
        self.suboptimality = torch.full_like(self.last_gap, torch.inf)
        self._cache_bytes = cache_bytes
        #: The last slot whose atoms came with their outputs, and these outputs ``(A, N, k)``.
        self._newest: tuple[int, Tensor] | None = None
        #: Predictions of an earlier run, to continue from.
        self._stored_pred: Tensor | None = None
        #: The last direction in prediction space: without a cache it would be evaluated twice.
        self._delta: tuple[Direction | None, Tensor] = (None, X.new_empty(0))
        self._cache: Tensor | None = X.new_empty(members, 0, len(X), outputs)
        blocks = outputs if separate else 1
        self.weights = torch.ones(members, 0, blocks, dtype=torch.float64, device=X.device)
        #: Predictions, or what computes them: of rounds that were run ahead they are needed of few.
        self._pred: Tensor | Callable[[], Tensor] = torch.zeros(
            members, len(X), outputs, dtype=torch.float64, device=X.device
        )
        self.admit(Proposal(Zero(members, outputs)), torch.ones(members, dtype=torch.bool, device=X.device))
        self.weights[:] = 1.0

    @property
    def pred(self) -> Tensor:
        """Predictions on all rows, ``(M, N, k)``, from the offset."""
        if not isinstance(self._pred, Tensor):
            self._pred = self._pred()
        return self._pred

    @pred.setter
    def pred(self, pred: Tensor) -> None:
        self._pred = pred

    def bookmark(self) -> Tensor | Callable[[], Tensor]:
        """The predictions of now, which later steps do not change, or a function that returns them."""
        return self._pred

    @property
    def train_pred(self) -> Tensor:
        """Predictions on the training rows, ``(M, n, k)``, from the offset."""
        return self.pred[:, : self.train_rows]

    @property
    def present(self) -> Tensor:
        """Mask ``(M, T)`` of the members that have an atom in a slot."""
        return torch.stack([slot.position >= 0 for slot in self.slots], 1)

    def admit(self, proposal: Proposal, called: Tensor) -> Tensor:
        """Append the atoms of a proposal.

        An atom with a key that the member already has is not appended again.

        Parameters
        ----------
        proposal : Proposal
        called : Tensor of shape (M,)
            Mask of the members whose oracle was called.

        Returns
        -------
        Tensor of shape (M,)
            The slot of each member's atom, -1 for the other members.
        """
        atoms = proposal.atoms
        position = torch.full_like(self.members, -1)
        position[called] = torch.arange(int(called.sum()), device=position.device)
        slot = torch.full_like(self.members, -1)
        if atoms.keys is not None:
            known = self._known(atoms.keys, position)
            slot, position = known, torch.where(known >= 0, -1, position)
            if not (position >= 0).any():
                return slot
        # outputs that came with the atoms are needed in this round, and rarely in later ones
        self._newest = None if proposal.outputs is None else (len(self.slots), proposal.outputs)
        self._append(Slot(atoms, position, proposal.step_length))
        return torch.where(position >= 0, len(self.slots) - 1, slot)

    def newest(self, called: Tensor) -> Atoms | None:
        """The last atom of each member in a mask ``(M,)``; None where one of them has only the zero function."""
        count = torch.arange(len(self.slots), device=self.X.device)
        latest = (self.present * count).amax(1)[called]
        if not latest.all():
            return None
        slots = [self.slots[t] for t in latest.tolist()]
        if len({slot.atoms.form for slot in slots}) > 1:
            return None
        places = [slot.position[m] for slot, m in zip(slots, called.nonzero().flatten(), strict=True)]
        if all(slot is slots[0] for slot in slots):
            return slots[0].atoms.select(torch.stack(places))
        return type(slots[0].atoms).cat(
            [slot.atoms.select(place[None]) for slot, place in zip(slots, places, strict=True)]
        )

    def readmit(self, slot: Slot) -> None:
        """Append a slot of an earlier run."""
        self._append(slot)

    def resume(
        self, weights: Tensor, counters: list[tuple[int, float, float]], t: int, replay: Callable[[], Tensor | None]
    ) -> None:
        """Continue an earlier run: weights ``(M, T, J)``, each member's calls, last gap and suboptimality; the round.

        ``replay`` returns predictions ``(M, N, k)`` where atoms cannot be evaluated on these rows.
        """
        calls, *gaps = zip(*counters, strict=True)
        self.calls, self.weights, self.t = torch.tensor(calls, device=self.X.device), weights, t
        self.last_gap, self.suboptimality = torch.tensor(gaps, dtype=torch.float64, device=self.X.device)
        known = replay() if self._stored_pred is None else self._stored_pred
        self.pred, self._stored_pred = self.combine(weights) if known is None else known, None

    @property
    def state(self) -> ActiveSetState:
        """What another active set needs to continue, beside atoms and weights."""
        return replace(self.state_without_predictions, pred=self.pred if self._cache is None else None)

    @property
    def state_without_predictions(self) -> ActiveSetState:
        """The same, where predictions are found again."""
        cached = 0 if self._cache is None else self._cache.shape[1]
        return ActiveSetState(self.members.tolist(), self._cache_bytes, cached, None)

    def restore_state(self, state: ActiveSetState) -> None:
        """Set up the cache as in an earlier run, as far as memory allows; call it before :meth:`readmit`.

        For other members than the earlier run's only its memory limit is kept.
        """
        self._cache_bytes = min(self._cache_bytes, state.cache_bytes)
        if state.members != self.members.tolist():
            return
        size = state.cached * self.pred.numel() * self.X.dtype.itemsize
        if state.cached == 0 or size > self._cache_bytes:
            self._cache = None
        elif self._cache is not None:
            known = self._cache[:, : len(self.slots)]
            self._cache = self.X.new_empty(len(known), state.cached, *known.shape[2:])
            self._cache[:, : len(self.slots)] = known
        if state.pred is not None:
            self._stored_pred = state.pred.to(self.pred)

    def _known(self, keys: Tensor, position: Tensor) -> Tensor:
        found = torch.full_like(position, -1)
        wanted = torch.where(position >= 0, keys[position], -1)
        for t, slot in enumerate(self.slots):
            if slot.atoms.keys is not None:
                same = (slot.position >= 0) & (position >= 0) & (slot.atoms.keys[slot.position] == wanted)
                found = torch.where(same, t, found)
        return found

    def add(self, proposal: Proposal, size: Tensor, gap: Tensor, pred: Tensor | Callable[[], Tensor]) -> None:
        """Add ``size`` of new atoms, taken from the weight of the zero function.

        For algorithms that only append atoms: there is no cache of outputs.

        Parameters
        ----------
        proposal : Proposal
            One new atom per member.
        size : Tensor of shape (M, 1)
        gap : Tensor of shape (M,)
            At this oracle call.
        pred : Tensor of shape (M, N, k), or a function that returns it
            Predictions after the step.
        """
        position = torch.arange(len(self.members), device=self.members.device)
        self.slots.append(Slot(proposal.atoms, position, proposal.step_length))
        self.weights = torch.cat([self.weights, size[:, None]], 1)
        # step by step, as kernels do: the same bits wherever a fit was interrupted
        self.weights[:, 0] = (self.weights[:, 0] - size).clamp(min=0)
        self._pred = pred
        self.calls, self.last_gap, self.t = self.calls + 1, gap, self.t + 1
        self._cache = None

    def _append(self, slot: Slot) -> None:
        self.slots.append(slot)
        self.has_keys |= slot.atoms.keys is not None
        self.weights = torch.nn.functional.pad(self.weights, (0, 0, 0, 1))
        if self._cache is None:
            return
        used = len(self.slots) - 1
        out = self._outputs(used)
        if used == self._cache.shape[1]:
            # memory for half as many again: appending stays linear without holding twice what is needed
            room = max(4, used + used // 2)
            # old and new memory are held together while one is copied to the other
            if len(out) * (used + room) * out[0].numel() * out.element_size() > self._cache_bytes:
                self._cache = None
                return
            grown = self.X.new_empty(len(out), room, *out.shape[1:], dtype=out.dtype)
            grown[:, :used] = self._cache[:, :used]
            self._cache = grown
        self._cache[:, used] = out

    def _outputs(self, t: int) -> Tensor:
        """Outputs of a slot's atoms on all rows, ``(M, N, k)``."""
        newest = self._newest
        return self.slots[t].outputs(self.X, None if newest is None or newest[0] != t else newest[1])

    def _blocks(self, needed: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Needed slots (mask ``(T,)``) with their outputs ``(M, s, N, k)`` in float64, in blocks."""
        if self._cache is None:
            for t in needed.nonzero().flatten().tolist():
                if isinstance(self.slots[t].atoms, Zero):
                    continue
                yield torch.tensor([t], device=needed.device), self._outputs(t)[:, None].double()
            return
        cache = self._cache[:, : len(self.slots)]
        if needed.all() and cache.dtype == torch.float64:
            yield needed.nonzero().flatten(), cache
            return
        step = max(1, _BLOCK_BYTES // (8 * self.pred.numel()))
        for index in needed.nonzero().flatten().split(step):
            yield index, cache[:, index].double()

    def inner(self, gradient: Tensor, first: int = 0) -> Tensor:
        """``<D, g>`` of the atoms from slot ``first`` on, ``(M, T - first, J)``; infinite where a member has none."""
        # the zero function is not looked at
        product = torch.zeros_like(self.weights)
        if first == len(self.slots):
            return product[:, first:]
        if self._compiled:
            assert self._cache is not None
            division = self.X.division if isinstance(self.X, StoredInputs) else None
            product[:, first:, 0] = inner_products(self._cache[:, first : len(self.slots)], gradient, division)
        else:
            needed = torch.arange(len(self.slots), device=self.X.device) >= first
            for index, out in self._blocks(needed):
                train = out[:, :, : self.train_rows]
                if out.shape[1] == 1:
                    by_output = (train[:, 0] * gradient).sum(1)
                    product[:, index[0]] = by_output if product.shape[2] > 1 else by_output.sum(1, keepdim=True)
                elif self.weights.shape[2] == 1:
                    product[:, index, 0] = (train.flatten(2) @ gradient.flatten(1)[..., None])[..., 0]
                else:
                    product[:, index] = torch.einsum("mtnk,mnk->mtk", train, gradient)
        present = torch.stack([slot.position >= 0 for slot in self.slots[first:]], 1)
        return product[:, first:].masked_fill_(~present[..., None], torch.inf)

    def combine(self, coefficients: Tensor) -> Tensor:
        """``sum_t coefficients_t G_t`` on all rows, ``(M, N, k)``: one sum in one order."""
        used = (coefficients != 0).any(2).any(0)
        if self._cache is None:
            own = [coefficients[:, index] * out[:, 0] for index, out in self._blocks(used)]
            return sum(own[1:], own[0]) if own else torch.zeros_like(self.pred)
        total = self._zeros()
        if self._compiled:
            add_outputs(self._cache[:, : len(self.slots)], coefficients[..., 0], total)
            return total
        for index, out in self._blocks(used):
            part = coefficients[:, index]
            if part.shape[2] == 1:
                total += (part.transpose(1, 2) @ out.flatten(2)).view_as(total)
            else:
                total += torch.einsum("mtk,mtnk->mnk", part, out)
        return total

    def _zeros(self) -> Tensor:
        """Predictions of 0: of rows in files they are in files, too."""
        if isinstance(self.X, StoredInputs):
            return self.X.to(torch.float64).new_zeros(*self.pred.shape)
        return torch.zeros_like(self.pred)

    @property
    def _compiled(self) -> bool:
        return self._cache is not None and self._cache.device.type == "cpu" and self.weights.shape[2] == 1

    def moves(self, go: Direction) -> Tensor:
        """The direction's coefficients ``[toward](e_s - w) + [away](w - e_v)``, shape ``(M, T, J)``."""
        toward, away = (go.toward >= 0)[:, None], (go.away >= 0)[:, None]
        to = torch.zeros_like(self.weights).scatter_(1, go.toward.clamp(min=0)[:, None], 1.0)
        off = torch.zeros_like(self.weights).scatter_(1, go.away.clamp(min=0)[:, None], 1.0)
        both = toward & away
        alone = toward * (to - self.weights) + away * (self.weights - off)
        # written out, so that the weights cancel exactly and not to rounding
        return torch.where(both, to - off, alone)

    def delta(self, go: Direction) -> Tensor:
        """The direction in prediction space, on all rows, ``(M, N, k)``."""
        self._delta = go, self.combine(self.moves(go))
        return self._delta[1]

    def limit(self, go: Direction) -> Tensor:
        """The longest step allowed, ``(M, J)``: 1 toward, ``w/(1-w)`` away, ``w`` for both, 0 for neither."""
        w = self.weights.gather(1, go.away.clamp(min=0)[:, None])[:, 0]
        toward, away = go.toward >= 0, go.away >= 0
        longest = torch.where(away, torch.where(toward, w, w / (1 - w)), toward.to(w.dtype))
        if not torch.isfinite(longest).all():
            raise ValueError("an away step from an atom of weight 1 has no direction")
        return longest

    def apply(self, go: Direction, size: Tensor) -> None:
        """Move weights and predictions by ``size`` of shape ``(M, J)`` along a direction."""
        moves, full = self.moves(go), (go.away >= 0) & (size >= self.limit(go))
        known, delta = self._delta
        if self._cache is None and known is not go:
            delta = self.combine(moves)
        weights = (self.weights + size[:, None] * moves).clamp_(min=0)
        dropped = torch.zeros_like(weights, dtype=torch.bool).scatter_(1, go.away.clamp(min=0)[:, None], full[:, None])
        weights.masked_fill_(dropped & (go.toward != go.away)[:, None], 0.0)
        # the sum stays 1 to rounding however many steps are taken; a weight that no step moved keeps its bits
        total = weights.sum(1, keepdim=True)
        self.weights = torch.where((total - 1).abs() > _DRIFT, weights / total, weights)
        # without a cache the sum would cost an evaluation of every atom: the predictions move with the weights
        if self._cache is not None:
            self.pred = self.combine(self.weights)
        else:
            self.pred = torch.addcmul(self.pred, size[:, None], delta)
        self._delta = None, self.X.new_empty(0)
        self.t += 1

    def certify(self, gap: Tensor, change: Tensor) -> None:
        """Carry what is proved over a step that changed the risk, both ``(M,)``.

        ``R(F) - min R <= gap`` at the iterate where the oracle was called (``gap`` is NaN elsewhere), and the
        difference moves with ``R(F)`` whatever the step.
        """
        self.suboptimality = (torch.fmin(self.suboptimality, gap) + change).clamp(min=0)

    def retire(self, keep: Tensor) -> None:
        """Keep only some members (mask ``(M,)``); the others have finished."""
        index = keep.nonzero().flatten()
        self.slots = [replace(slot, position=slot.position[index]) for slot in self.slots]
        self.members, self.calls, self.last_gap = self.members[index], self.calls[index], self.last_gap[index]
        self.suboptimality = self.suboptimality[index]
        self.weights, self.pred = self.weights[index], self.pred[index]
        if self._cache is not None:
            self._cache = self._cache[index, : len(self.slots)]
