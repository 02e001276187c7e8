"""Which resolver speaks for a dataset."""

from __future__ import annotations

from collections.abc import Mapping

from tallybook.errors import did_you_mean, fail
from tallybook.model.resolver import Resolver


def pick_resolver(
    dataset_id: str, resolver_id: str | None, overrides: Mapping[str, str], resolvers: Mapping[str, Resolver]
) -> Resolver:
    """The project's override, else the dataset's own, else the default one.

    A resolver that is named but missing or disabled is an error: going on to the next could read the wrong data.
    """
    if dataset_id in overrides:
        return _named(overrides[dataset_id], f"`resolver_overrides` of the project for '{dataset_id}'", resolvers)
    if resolver_id is not None:
        return _named(resolver_id, f"`resolver_id` of dataset '{dataset_id}'", resolvers)
    return _default(dataset_id, resolvers)


def _named(resolver_id: str, said_by: str, resolvers: Mapping[str, Resolver]) -> Resolver:
    resolver = resolvers.get(resolver_id)
    if resolver is None:
        hint = did_you_mean(resolver_id, resolvers)
        raise fail("ResolverNotFound", f"there is no resolver '{resolver_id}', named in {said_by}", hint=hint)
    if resolver.status == "disabled":
        raise fail("ResolverNotFound", f"resolver '{resolver_id}', named in {said_by}, is disabled")
    return resolver


def _default(dataset_id: str, resolvers: Mapping[str, Resolver]) -> Resolver:
    defaults = [resolver for resolver in resolvers.values() if resolver.is_default]
    active = [resolver for resolver in defaults if resolver.status == "active"]
    if len(active) == 1:
        return active[0]
    unnamed = f"dataset '{dataset_id}' names no resolver"
    if active:
        ids = ", ".join(sorted(resolver.id for resolver in active))
        raise fail("ResolverNotFound", f"{unnamed} and more than one is the default: {ids}")
    why = f"the default one, '{defaults[0].id}', is disabled" if defaults else "none is the default"
    raise fail(
        "ResolverNotFound",
        f"{unnamed} and {why}",
        hint=f"give the dataset a `resolver_id`, or the project `resolver_overrides: {{{dataset_id}: …}}`, or one "
        "resolver `is_default: true`",
    )
