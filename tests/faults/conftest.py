"""The fault series run the workspaces of the tests of runs."""

from tests.runs.conftest import active, appending, books, forks  # noqa: F401  # fixtures
