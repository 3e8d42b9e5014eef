"""Validate the docstrings of the public API with numpydoc: ``python docs/check_docstrings.py [package ...]``."""

from __future__ import annotations

import importlib
import inspect
import sys
import warnings
from collections.abc import Iterator

from numpydoc.validate import validate

import simtree

PACKAGES = ("simtree", *simtree._PUBLIC)
# What is not asked for: an extended summary, "See Also", and examples of methods (those of classes and functions are tested).
IGNORED = {"ES01", "SA01", "EX01"}
# A Protocol has no parameters, but numpydoc sees those of its base class.
EXCEPTIONS = {("simtree.trees.Region", "PR01")}


def public_names(packages: list[str]) -> Iterator[str]:
    """Yield the import paths of all public classes, functions, methods and properties, each once."""
    # By identity; the objects are kept, because the number of one that is gone may be given to another.
    seen: dict[int, object] = {}
    for package in packages:
        path = "simtree" if package == "simtree" else f"simtree.{package}"
        module = importlib.import_module(path)
        names = getattr(module, "__all__", None) or [
            name for name, obj in vars(module).items() if getattr(obj, "__module__", "") == path and not name.startswith("_")
        ]
        for name in names:
            obj = getattr(module, name)
            if not (inspect.isclass(obj) or inspect.isfunction(obj)) or id(obj) in seen:
                continue
            seen[id(obj)] = obj
            yield f"{path}.{name}"
            if inspect.isclass(obj):
                for member, value in inspect.getmembers(obj):
                    function = value.fget if isinstance(value, property) else value
                    ours = inspect.isfunction(function) and function.__module__.startswith("simtree.")
                    if not member.startswith("_") and ours and id(function) not in seen:
                        seen[id(function)] = function
                        yield f"{path}.{name}.{member}"


def main() -> None:
    """Print what numpydoc finds wrong, and exit with 1 if there is anything."""
    warnings.simplefilter("ignore")
    n_names, found = 0, []
    for name in public_names(sys.argv[1:] or list(PACKAGES)):
        n_names += 1
        errors = [
            (code, message)
            for code, message in validate(name)["errors"]
            if code not in IGNORED and (name, code) not in EXCEPTIONS
        ]
        found += [f"{name}: {code} {message}" for code, message in errors]
    print("\n".join(found) if found else f"{n_names} public docstrings are valid")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
