"""Decodes the inside of a JSON string that arrives in pieces."""

import re

_SHORT = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_LONG = re.compile(r"\\u[0-9a-fA-F]{4}")


class Unescaping:
    """Gives back what is certain by now; half an escape, or half a surrogate pair, waits for the rest."""

    def __init__(self) -> None:
        self._held = ""
        self._high = ""
        self.broken = False

    def feed(self, raw: str) -> str:
        """The next characters. After an escape that is none, `broken` is set and nothing more comes."""
        if self.broken:
            return ""
        raw, self._held = self._held + raw, ""
        shown: list[str] = []
        at = 0
        while (slash := raw.find("\\", at)) >= 0:
            shown.append(self._plain(raw[at:slash]))
            at = slash + (6 if raw[slash + 1 : slash + 2] == "u" else 2)
            if at > len(raw):
                self._held = raw[slash:]
                return "".join(shown)
            shown.append(self._escape(raw[slash:at]))
            if self.broken:
                return "".join(shown)
        shown.append(self._plain(raw[at:]))
        return "".join(shown)

    def _plain(self, text: str) -> str:
        if text and self._high:
            self.broken = True
        return "" if self.broken else text

    def _escape(self, escape: str) -> str:
        if escape[1] in _SHORT:
            return self._plain(_SHORT[escape[1]])
        if not _LONG.fullmatch(escape):
            self.broken = True
            return ""
        digits = self._high + escape[2:]
        if not self._high and 0xD800 <= int(digits, 16) < 0xDC00:
            self._high = digits
            return ""
        self._high = ""
        return self._character(digits)

    def _character(self, digits: str) -> str:
        """The character of one UTF-16 unit, or of a pair of them."""
        try:
            return bytes.fromhex(digits).decode("utf-16-be")
        except UnicodeDecodeError:
            self.broken = True
            return ""
