"""Which mutants a worker gets next."""

from collections import Counter

from msp_bridge.cluster.chunks import LARGEST, LOSSES, Chunks
from msp_bridge.model import Location, Mutant, Position


def mutants(path: str, count: int) -> list[Mutant]:
    return [Mutant(path, "m", Location(Position(n + 1, 1), Position(n + 1, 2)), "x") for n in range(count)]


def test_every_mutant_is_given_out_once_and_chunks_shrink_to_one() -> None:
    all_of_them = [mutant for number in range(7) for mutant in mutants(f"f{number}", 30 + number)]
    chunks = Chunks.of(all_of_them)
    given, sizes = Counter[Mutant](), []
    while chunk := chunks.take(f"w{len(sizes) % 3}", 3):
        given.update(chunk)
        sizes.append(len(chunk))
    assert given == Counter(all_of_them)
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] <= LARGEST
    assert sizes[-1] == 1


def test_a_worker_goes_on_with_its_file_and_another_takes_another() -> None:
    chunks = Chunks.of(mutants("small", 20) + mutants("large", 60))
    first, second = chunks.take("a", 2), chunks.take("b", 2)
    assert {mutant.path for mutant in first} == {"large"}
    assert {mutant.path for mutant in second} == {"small"}
    assert {mutant.path for mutant in chunks.take("a", 2)} == {"large"}


def test_what_was_lost_is_given_out_alone_and_not_again_and_again() -> None:
    (lost, other) = mutants("f", 2)
    chunks = Chunks.of([lost, other])
    assert chunks.take("a", 1) == [lost]
    for _ in range(LOSSES - 1):
        assert chunks.lost([lost]) == []
        chunks.leave("a")
        assert chunks.take("b", 1) == [lost]
    assert chunks.lost([lost]) == [lost]
    assert chunks.take("c", 1) == [other]
    assert chunks.take("c", 1) == []


def test_what_was_not_begun_is_given_out_again() -> None:
    chunks = Chunks.of(mutants("f", 3))
    taken = chunks.take("a", 1)
    chunks.put_back(taken)
    assert chunks.left == 3
