"""Bytes from outside are read or refused with InputError; nothing else may happen."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lla_fusion_ros.messages import detections, images, status
from lla_fusion_ros.messages.cdr import CdrReader, Header
from lla_fusion_ros.types.errors import InputError

HEADER = Header(1_000_000_001, "camera")


def samples() -> dict:
    """A good message for every parser."""
    rng = np.random.default_rng(0)
    pmf = rng.dirichlet(np.ones(7), size=3)
    return {
        detections.parse_detections: detections.write_detections(
            HEADER, ["1", "zwei", "3"], rng.normal(size=(3, 5)), pmf
        ),
        images.parse_image: images.write_image(HEADER, rng.normal(size=(3, 4)).astype(np.float32), "32FC1"),
        images.parse_compressed_image: images.write_compressed_image(HEADER, b"\xff\xd8\xff\xd9", "jpeg"),
        status.parse_diagnostics: status.write_diagnostics(
            HEADER, [status.Status(1, "a", "b", "c", {"k": "v"})]
        ),
        status.parse_vision_info: status.write_vision_info(HEADER, "method", "place", 1),
    }


PARSERS = list(samples())


@pytest.mark.parametrize("parser", PARSERS)
def test_every_truncation_of_a_message_is_refused(parser):
    message = samples()[parser]
    for length in range(len(message)):
        with pytest.raises(InputError):
            parser(message[:length])


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(PARSERS),
    st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 255)), min_size=1, max_size=6),
)
def test_a_message_with_changed_bytes_is_read_or_refused(parser, changes):
    message = bytearray(samples()[parser])
    for at, value in changes:
        message[at % len(message)] = value
    with contextlib.suppress(InputError):
        parser(bytes(message))


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(PARSERS), st.binary(max_size=200))
def test_random_bytes_are_read_or_refused(parser, data):
    with contextlib.suppress(InputError):
        parser(b"\x00\x01\x00\x00" + data)


def test_a_claim_of_four_billion_detections_is_refused_without_allocating():
    message = bytearray(detections.write_detections(HEADER, [], np.zeros((0, 5))))
    message[-4:] = b"\xff\xff\xff\xff"
    with pytest.raises(InputError, match="claims 4294967295 elements"):
        detections.parse_detections(bytes(message))


def test_ids_that_are_no_utf8_are_kept_byte_for_byte():
    message = detections.write_detections(HEADER, ["abc"], np.zeros((1, 5)))
    damaged = message.replace(b"abc\0", b"a\xff\xfe\0")
    read = detections.parse_detections(damaged)
    assert detections.write_detections(HEADER, read.ids, read.bbox) == damaged


def test_big_endian_messages_are_read():
    reader = CdrReader(
        b"\x00\x00\x00\x00" + (7).to_bytes(4, "big") + (5).to_bytes(4, "big") + b"\0\0\0\3ab\0"
    )
    assert reader.header() == Header(7_000_000_005, "ab")


@pytest.mark.parametrize(
    ("encoding", "values", "says"), [("mono8", np.uint8, "not 32FC1"), ("32FC1", np.uint8, "has 12 bytes")]
)
def test_an_image_that_holds_no_embeddings_is_refused(encoding, values, says):
    message = images.write_image(HEADER, np.zeros((3, 4), values), encoding)
    with pytest.raises(InputError, match=says):
        images.matrix_of(images.parse_image(message))


@pytest.mark.parametrize(
    ("listing", "listed"),
    [
        (detections.ALL, (("1", 0.6), ("2", 0.3), ("0", 0.1))),
        (detections.Listing(most=2), (("1", 0.6), ("2", 0.3), ("", 0.1))),
        (detections.Listing(mass=0.5), (("1", 0.6), ("", 0.4))),
        (detections.Listing(mass=0.95, class_names="abc"), (("b", 0.6), ("c", 0.3), ("a", 0.1))),
        (detections.Listing(mass=0.8, class_names="abc"), (("b", 0.6), ("c", 0.3), ("", 0.1))),
    ],
)
def test_a_shortened_list_has_the_surest_first_and_the_rest_at_the_end(listing, listed):
    pmf = np.array([[0.1, 0.6, 0.3]])
    raw = detections.write_detections(HEADER, ["x"], np.zeros((1, 5)), pmf, listing)
    (read,) = detections.parse_detections(raw, with_scores=True).scores
    assert [class_id for class_id, _ in read] == [class_id for class_id, _ in listed]
    np.testing.assert_allclose([score for _, score in read], [score for _, score in listed])
