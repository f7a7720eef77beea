"""Threads that share the members of a boosting fit: none is run for more rounds than were asked for."""

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

from emulated import COMPILER, EMULATED
from gce._utils import cuda

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def taken_member(tmp_path_factory):
    made = tmp_path_factory.mktemp("taken") / "taken.so"
    paths = [f"-I{HERE.parent / 'native'}", f"-I{cuda.SOURCES}", HERE / "taken_members.cpp", "-o", made]
    subprocess.run([COMPILER, "-shared", "-fPIC", "-std=c++17", *paths], check=True)
    function = ctypes.CDLL(str(made)).taken_member
    function.restype = ctypes.c_int64

    def taken(rounds, count, others):
        given = np.array(rounds, np.int64)
        sizes = ctypes.c_int64(len(rounds)), given.ctypes.data_as(ctypes.c_void_p)
        return function(*sizes, ctypes.c_int64(count), ctypes.c_int64(others))

    return taken


@EMULATED
def test_the_member_with_the_fewest_rounds_is_taken(taken_member):
    assert taken_member([2, 1, 1], 3, 0) == 101
    assert taken_member([3, 3], 3, 0) == -1


@EMULATED
def test_a_member_that_another_thread_completes_meanwhile_is_left(taken_member):
    assert taken_member([2], 3, 1) == -1
    assert taken_member([2, 2], 3, 1) == 102
    # rounds that are left are run, whoever ran those before
    assert taken_member([1, 2], 3, 1) == 2
