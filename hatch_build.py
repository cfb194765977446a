"""Build hook: puts the engine's files inside the wheel, as texelgrad/engine/{browser_runtime,shaders}.

A static `force-include` would copy them for editable installs too, where the copies go stale beside the checkout.
"""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class EngineFiles(BuildHookInterface[Any]):
    """Adds the engine to standard wheels only."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before each build; `version` is `standard` or `editable`."""
        if version == "standard":
            for folder in ("browser_runtime", "shaders"):
                build_data["force_include"][f"{self.root}/{folder}"] = f"texelgrad/engine/{folder}"
