"""Bits into words, by the fast way and by the plain one; the circuit on every row of a small world."""

import bem
import numpy as np
import pytest
from bem import spaces as codecs
from bem.circuit import pack_bits
from gymnasium import spaces


@pytest.mark.parametrize("width", [1, 7, 8, 9, 63, 64, 65, 128, 200, 256])
def test_rows_become_the_words_of_their_bits(width):
    rows = np.random.default_rng(width).integers(0, 2, (300, width))
    plain = [[sum(int(bit) << place for place, bit in enumerate(row[low : low + 64])) for low in range(0, width, 64)] for row in rows]
    for dtype in (np.int8, np.uint8, np.bool_, np.int64, np.uint64, np.int32, np.int16, ">i8", ">u2"):
        assert (pack_bits(rows.astype(dtype), width)[0] == np.array(plain, dtype=np.uint64)).all()
        assert (codecs.Observations(spaces.MultiBinary(width)).pack(rows.astype(dtype))[0] == plain).all()
    for wrong in (2, -1):
        rows[7, width - 1] = wrong
        with pytest.raises(bem.BemError):
            pack_bits(rows.astype(np.int8), width)
        for dtype in (np.int64, np.int32, np.int16):
            with pytest.raises(bem.BemError):
                pack_bits(rows.astype(dtype), width)
            with pytest.raises(bem.BemError):
                codecs.Observations(spaces.MultiBinary(width)).pack(rows.astype(dtype))


def test_one_observation_and_many_have_the_same_bits():
    space = spaces.Dict(
        {
            "a": spaces.MultiDiscrete([[3, 9], [2, 70]], start=[[0, -4], [1, 5]]),
            "b": spaces.Tuple([spaces.Discrete(5, start=2), spaces.MultiBinary([3, 3])]),
            "c": spaces.MultiBinary(60),
        }
    )
    codec = codecs.Observations(space)
    assert codec.bits == 2 + 4 + 1 + 7 + 3 + 9 + 60 and codec.words == 2
    space.seed(1)
    rows = [space.sample() for _ in range(50)]
    from gymnasium.vector.utils import concatenate, create_empty_array

    many = concatenate(space, rows, create_empty_array(space, 50))
    words, is_many = codec.pack(many)
    assert is_many
    for row, packed in zip(rows, words):
        assert codec.encode(row) == int(packed[0]) | int(packed[1]) << 64
    assert codecs.to_json(codecs.from_json(codecs.to_json(space))) == codecs.to_json(space)
    assert len({codec.encode(row) for row in rows}) == 50


def test_circuits_come_back_from_bytes_and_other_forms():
    circuit = bem.Learner(bem.make("majority", n=7), seed=1).learn(3_000).circuit
    rows = np.array([[row >> bit & 1 for bit in range(7)] for row in range(128)], dtype=np.int8)
    right = (rows.sum(axis=1) > 3).astype(np.uint8)
    assert (circuit(rows)[:, 0] == right).all()
    again = bem.Circuit.from_bytes(circuit.to_bytes())
    assert again == circuit and again.reads == circuit.reads
    for form in ("aiger", "aiger-ascii", "blif", "net"):
        assert (bem.Circuit.parse(circuit.export(form))(rows)[:, 0] == right).all(), form
    for form in ("rust", "python", "javascript", "dot"):
        assert circuit.export(form)
    with pytest.raises(bem.BemError):
        bem.Circuit.parse("no circuit")
    with pytest.raises(bem.BemError):
        bem.Circuit.from_bytes(circuit.to_bytes()[:-3])
