"""What tests of writers share."""

from __future__ import annotations

import pytest

from tallybook.errors import RunError


def refusal(save, *arguments, **options) -> str:
    """Returns the message of the WriteFailed that saving rows raises; `save` is the fixture."""
    with pytest.raises(RunError) as caught:
        save(*arguments, **options)
    assert caught.value.problem.type == "WriteFailed"
    return caught.value.problem.message
